//! Groups as regions.

use std::collections::HashMap;
use std::sync::Arc;

use fhelium_ir::operations::InferContext;
use fhelium_ir::{
    Attributes, Body, BodyBuilder, IrError, Location, OpKind, Program, Rewriter, Rns, Type, ValueId,
};
use fhelium_state::ErrorKind;

use crate::passes::lower_to_rns::residue_operation;

use super::groups::Group;

/// The region of operations at some places that takes and yields these values.
pub(super) fn region(
    program: &Program,
    members: &[usize],
    operands: &[ValueId],
    results: &[ValueId],
) -> Result<Body, IrError> {
    let body = program.body();
    let context = InferContext {
        chain: program.chain().map(AsRef::as_ref),
        materials: None,
    };
    let mut region = Region {
        context: &context,
        builder: BodyBuilder::new(),
        residues: HashMap::new(),
    };
    for &operand in operands {
        let argument = region.builder.argument(body.type_of(operand).clone())?;
        region.residues.insert(operand, argument);
    }
    for &operand in operands {
        let argument = region.residues[&operand];
        let residues = region.op(Rns::Residues, &[argument], &Attributes::new(), None)?;
        region.residues.insert(operand, residues);
    }
    for &place in members {
        let op = &body.ops()[place];
        let at = |error: IrError| error.at(op.kind().name(), op.location());
        let OpKind::Ckks(kind) = op.kind() else {
            return Err(at(missing()));
        };
        let rns = residue_operation(kind).ok_or_else(|| at(missing()))?;
        let [result] = *op.results() else {
            return Err(at(missing()));
        };
        let mut values = Vec::with_capacity(op.operands().len());
        for operand in op.operands() {
            let value = region.residues.get(operand).copied();
            let value = value.ok_or_else(|| at(missing()))?;
            values.push(match rns {
                Rns::DropLimbs => value,
                _ => region.at_level(value, level(body.type_of(result)))?,
            });
        }
        let value = region.op(rns, &values, op.attributes(), op.location())?;
        region.residues.insert(result, value);
    }
    let mut yielded = Vec::with_capacity(results.len());
    for result in results {
        let value = region.residues.get(result).copied().ok_or_else(missing)?;
        let Type::Ciphertext {
            state: Some(state), ..
        } = body.type_of(*result)
        else {
            return Err(missing());
        };
        let attributes = Attributes::new().with("scale", state.scale.clone());
        yielded.push(region.op(Rns::Ciphertext, &[value], &attributes, None)?);
    }
    region.builder.finish(&yielded)
}

/// A group in the place of its operations.
pub(super) fn emit(group: &Group, rewriter: &mut Rewriter<'_>) -> Result<(), IrError> {
    let program = rewriter.source();
    let region = region(program, &group.members, &group.operands, &group.results)?;
    let operands = rewriter.map_all(&group.operands)?;
    // Its operations keep theirs; the last one stands for all.
    let members = group.members.iter().rev();
    let mut locations = members.filter_map(|&place| program.body().ops()[place].location());
    let location = locations.next().cloned();
    let results = rewriter.builder().op_with_region(
        Rns::Fused,
        &operands,
        &Attributes::new(),
        location,
        Some(Arc::new(region)),
    )?;
    let results = results.to_vec();
    for (&old, new) in group.results.iter().zip(results) {
        rewriter.bind(old, new);
    }
    Ok(())
}

/// What would be a fault of this pass.
fn missing() -> IrError {
    IrError::new(ErrorKind::Compile, "a group holds what does not fuse")
}

fn level(ty: &Type) -> usize {
    match ty {
        Type::Ciphertext {
            state: Some(state), ..
        } => state.level,
        Type::Residues { basis, .. } => basis.level(),
        _ => 0,
    }
}

struct Region<'a> {
    context: &'a InferContext<'a>,
    builder: BodyBuilder,
    /// The residues that stand for values of the Program.
    residues: HashMap<ValueId, ValueId>,
}

impl Region<'_> {
    fn op(
        &mut self,
        kind: Rns,
        operands: &[ValueId],
        attributes: &Attributes,
        location: Option<&Location>,
    ) -> Result<ValueId, IrError> {
        let location = location.cloned();
        let context = self.context;
        let results =
            self.builder
                .op(context, kind.into(), operands, attributes, location, None)?;
        results.first().copied().ok_or_else(missing)
    }

    /// Residues by the primes of a level alone.
    fn at_level(&mut self, value: ValueId, to: usize) -> Result<ValueId, IrError> {
        let from = self.builder.type_of(value).map_or(to, level);
        match from.saturating_sub(to) {
            0 => Ok(value),
            count => {
                let attributes = Attributes::new().with("count", count as i64);
                self.op(Rns::DropLimbs, &[value], &attributes, None)
            }
        }
    }
}
