//! `reuse`: one computation for equal ones.

use fhelium_ir::{Attributes, Ckks, He, IrError, Op, OpKind, Program, Rewriter, Rns, ValueId};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::compilation::Compilation;
use crate::error::PassError;
use crate::pass::{Pass, PassContext, PassResult, PassStats};

/// Merges operations of one kind with the same operands and attributes, references to one
/// material among them, into the first of them. A rotation by 0 and a drop of no levels give way to
/// their operand; a product of a value with itself equals its square.
///
/// Every operation of the table gives the same results for the same operands within a call, bit
/// for bit; encryption and whatever else draws randomness has no entry there and so is never
/// merged. Values never change, so a value that is returned twice may be one. Sums and products
/// of ciphertexts or residues are recognised in either order, since their residues do not depend
/// on it; those of clear floats only in the order given. Operations that hold a region stay.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reuse;

#[derive(PartialEq, Eq, Hash)]
struct Computation {
    kind: OpKind,
    operands: SmallVec<[ValueId; 3]>,
    attributes: Attributes,
}

impl Pass for Reuse {
    fn name(&self) -> &str {
        "reuse"
    }

    fn cache_key(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }

    fn run(
        &self,
        compilation: &mut Compilation,
        context: &PassContext<'_>,
    ) -> Result<PassResult, PassError> {
        let merged = merge(compilation.program());
        let (program, merged) = merged.map_err(|error| context.ir_error(error))?;
        if merged > 0 {
            compilation.set_program(program);
        }
        Ok(PassResult {
            stats: PassStats {
                matched: merged,
                transformed: merged,
                removed: merged,
                ..PassStats::default()
            },
            ..PassResult::default()
        })
    }
}

fn merge(program: &Program) -> Result<(Program, usize), IrError> {
    let mut rewriter = Rewriter::new(program)?;
    let mut known: HashMap<Computation, Vec<ValueId>> = HashMap::new();
    let mut merged = 0;
    for op in program.body().ops() {
        if op.region().is_some() {
            rewriter.copy(op)?;
            continue;
        }
        if changes_nothing(op) {
            let operand = rewriter.map(op.operands()[0])?;
            rewriter.replace(op, &[operand])?;
            merged += 1;
            continue;
        }
        match known.entry(Computation::of(op, &rewriter)?) {
            Entry::Occupied(earlier) => {
                rewriter.replace(op, earlier.get())?;
                merged += 1;
            }
            Entry::Vacant(entry) => {
                entry.insert(rewriter.copy(op)?);
            }
        }
    }
    Ok((rewriter.finish()?, merged))
}

impl Computation {
    /// What an operation computes over the new values, the same for operations that are equal.
    fn of(op: &Op, rewriter: &Rewriter<'_>) -> Result<Self, IrError> {
        let mut kind = op.kind();
        let mut operands: SmallVec<[ValueId; 3]> =
            SmallVec::from_vec(rewriter.map_all(op.operands())?);
        if is_symmetric(kind) {
            operands.sort();
        }
        let square = match kind {
            OpKind::He(He::Mul) => Some(He::Square.into()),
            OpKind::Ckks(Ckks::Mul) => Some(Ckks::Square.into()),
            _ => None,
        };
        if let (Some(square), [x, y]) = (square, &operands[..])
            && x == y
        {
            kind = square;
            operands.truncate(1);
        }
        Ok(Computation {
            kind,
            operands,
            attributes: op.attributes().clone(),
        })
    }
}

/// Whether an operation gives its first operand as it is.
fn changes_nothing(op: &Op) -> bool {
    let is_zero = |name: &str| op.attributes().int(name) == Some(0);
    match op.kind() {
        OpKind::He(He::Rotate) => is_zero("step"),
        OpKind::He(He::DropLevels) | OpKind::Ckks(Ckks::DropLevels) => is_zero("count"),
        _ => false,
    }
}

/// Whether the first two operands may change places without a bit of the result changing.
fn is_symmetric(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::He(He::Add | He::Mul)
            | OpKind::Ckks(Ckks::Add | Ckks::Mul)
            | OpKind::Rns(Rns::Add | Rns::Mul)
    )
}
