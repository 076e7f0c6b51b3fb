//! The verifier.
//!
//! Of every Program it holds that
//!
//! 1. the chain's numbers make sense; inputs have distinct names and types that values can have: levels within the chain, scales
//!    that fit, 2 or 3 parts, shapes that memory can number;
//! 2. materials are tensors, plaintexts, ciphertexts or keys, of such types;
//! 3. a value is defined once, by an argument or an operation, before every use; values are
//!    numbered in the order of their definitions;
//! 4. an operation's operands, attributes and region are what its entry of the table allows, its
//!    attributes are in canonical form, and its results have the types of the entry's rule;
//! 5. a region sees only its own arguments;
//! 6. `he` operations do not stand beside `ckks` or `rns` operations, and below the `he` level
//!    every input has a level and scale;
//! 7. the output tree's leaves are the results, each once and in order; dict keys are distinct
//!    and nesting is bounded.

use crate::builder::check_tree;
use crate::{Body, InferContext, IrError, Level, Material, Op, Origin, Program, Type, ValueId};
use fhelium_state::Scale;
use std::collections::HashSet;

const MAX_LOG_N: u32 = 20;
const MAX_PRIMES: usize = 512;
const MAX_SCALE_BITS: f64 = 120.0;

/// Checks a Program from nothing.
pub(crate) fn verify(program: &Program) -> Result<(), IrError> {
    let context = InferContext {
        chain: program.chain.as_deref(),
        materials: Some(&program.materials),
    };
    if let Some(chain) = context.chain {
        check_chain(
            chain.log_n(),
            chain.moduli(),
            chain.special_moduli(),
            chain.scale(),
        )?;
    }
    for (symbol, material) in program.materials.iter() {
        check_material(&context, symbol, material)?;
    }
    let body = &program.body;
    if body.arguments().len() != program.inputs.len() {
        return Err(IrError::malformed(format!(
            "the body takes {} arguments for {} inputs",
            body.arguments().len(),
            program.inputs.len()
        )));
    }
    let mut names = HashSet::new();
    for (argument, input) in body.arguments().zip(program.inputs.iter()) {
        let about = |error: IrError| error.about(format_args!("input {}", input.name));
        if !names.insert(&input.name) {
            return Err(about(IrError::malformed(
                "the name is taken by another input",
            )));
        }
        if body.values.get(argument.index()).map(|value| &value.ty) != Some(&input.ty) {
            return Err(about(IrError::malformed(
                "its type is not the body's argument's",
            )));
        }
        crate::operations::check_type(&context, &input.ty).map_err(|error| about(error.into()))?;
    }
    verify_body(&context, body)?;
    verify_structure(program)
}

/// Invariants 6 and 7: those that no single operation's rule checks.
pub(crate) fn verify_structure(program: &Program) -> Result<(), IrError> {
    let mut first: [Option<&Op>; 3] = [None; 3];
    for op in program.body.ops() {
        if let Some(level) = op.kind.level() {
            first[level as usize].get_or_insert(op);
        }
    }
    let [he, ckks, rns] = first;
    if let (Some(he), Some(lower)) = (he, ckks.or(rns)) {
        return Err(IrError::malformed(format!(
            "it stands beside {}: he operations do not mix with lower levels; lower all of them",
            lower.kind
        ))
        .at(he.kind.name(), he.location()));
    }
    if program.level() != Level::He
        && let Some(input) = program.inputs.iter().find(|input| input.ty.is_unplaced())
    {
        return Err(IrError::malformed(format!(
            "input {}: level and scale are not known, which the {} level needs",
            input.name,
            program.level()
        )));
    }
    check_tree(&program.outputs)?;
    let mut leaves = 0;
    program.outputs.map(&mut |&place| {
        leaves += 1;
        if place == leaves - 1 {
            Ok(())
        } else {
            Err(IrError::malformed(format!(
                "leaf {} of the output tree names result {place}; leaf i is result i",
                leaves - 1
            )))
        }
    })?;
    if leaves != program.results().len() {
        return Err(IrError::malformed(format!(
            "the output tree has {leaves} leaves for {} results",
            program.results().len()
        )));
    }
    Ok(())
}

/// What a chain's numbers must be for levels and scales to mean something.
pub(crate) fn check_chain(
    log_n: u32,
    moduli: &[u64],
    special: &[u64],
    scale: &Scale,
) -> Result<(), IrError> {
    let refuse = |what: String| Err(IrError::malformed(format!("chain: {what}")));
    if !(1..=MAX_LOG_N).contains(&log_n) {
        return refuse(format!("log_n is {log_n}, expected 1 to {MAX_LOG_N}"));
    }
    if moduli.is_empty() || moduli.len() + special.len() > MAX_PRIMES {
        return refuse(format!(
            "{} moduli and {} special primes, expected 1 modulus at least and {MAX_PRIMES} primes \
             at most",
            moduli.len(),
            special.len()
        ));
    }
    let mut seen = HashSet::new();
    for &prime in moduli.iter().chain(special) {
        if prime < 3 || prime % 2 == 0 || prime >> 62 != 0 {
            return refuse(format!("{prime} is no odd prime below 2^62"));
        }
        if !seen.insert(prime) {
            return refuse(format!("the prime {prime} is given twice"));
        }
    }
    let bits = scale.log2();
    if !(1.0..=MAX_SCALE_BITS).contains(&bits) {
        return refuse(format!(
            "the scale is {scale}, expected 2 to 2^{MAX_SCALE_BITS}"
        ));
    }
    Ok(())
}

/// Invariant 2.
pub(crate) fn check_material(
    context: &InferContext<'_>,
    symbol: &str,
    material: &Material,
) -> Result<(), IrError> {
    let about =
        |error: IrError| error.about(format_args!("material {}", crate::text::Symbol(symbol)));
    if symbol.is_empty() {
        return Err(about(IrError::malformed("a symbol is not empty")));
    }
    match &material.ty {
        Type::Residues { .. } => Err(about(IrError::malformed(
            "its type is residues; a material is a tensor, plaintext, ciphertext or key",
        ))),
        ty if ty.is_unplaced() => Err(about(IrError::malformed(
            "its level and scale are missing; a material is data that has them",
        ))),
        ty => crate::operations::check_type(context, ty).map_err(|error| about(error.into())),
    }
}

/// Invariants 3, 4 and 5.
fn verify_body(context: &InferContext<'_>, body: &Body) -> Result<(), IrError> {
    let define = |next: usize, id: ValueId, origin: Origin| {
        let value = body.values.get(id.index());
        if id.index() != next || value.is_none_or(|value| value.origin != origin) {
            return Err(IrError::malformed(format!(
                "value {} is defined out of order",
                id.index()
            )));
        }
        Ok(())
    };
    let mut defined = 0;
    for (place, argument) in body.arguments().enumerate() {
        define(defined, argument, Origin::Argument(place))?;
        defined += 1;
    }
    for (place, op) in body.ops.iter().enumerate() {
        let at = |error: IrError| error.at(op.kind.name(), op.location());
        let mut types = Vec::with_capacity(op.operands.len());
        for operand in &op.operands {
            if operand.index() >= defined {
                return Err(at(IrError::malformed(format!(
                    "value {} is used before it is defined",
                    operand.index()
                ))));
            }
            types.push(body.type_of(*operand));
        }
        if let Some(region) = &op.region {
            verify_body(context, region)?;
        }
        let resolved = op
            .kind
            .resolve(context, &types, &op.attributes, op.region.as_deref())
            .map_err(|error| at(error.into()))?;
        if resolved.attributes != op.attributes {
            return Err(at(IrError::malformed(
                "the attributes are not in canonical form",
            )));
        }
        for (index, result) in op.results.iter().enumerate() {
            define(defined, *result, Origin::Result { op: place, index }).map_err(at)?;
            defined += 1;
        }
        let types = op.results.iter().map(|&result| body.type_of(result));
        if !types.eq(resolved.results.iter()) {
            return Err(at(IrError::malformed(
                "the results do not have the types of the operation's rule",
            )));
        }
    }
    if let Some(undefined) = body.results.iter().find(|value| value.index() >= defined) {
        return Err(IrError::malformed(format!(
            "value {} is returned but not defined",
            undefined.index()
        )));
    }
    if defined != body.values.len() {
        return Err(IrError::malformed(format!(
            "{} values are listed, {defined} are defined",
            body.values.len()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attribute, Attributes, DType, Location, OutputTree, ProgramBuilder, Tensor};
    use std::sync::Arc;

    /// roll of x, then -x + that.
    fn program() -> Program {
        let mut builder = ProgramBuilder::new("p", None);
        let x = builder.input("x", Type::tensor(DType::F64, [4])).unwrap();
        let roll = Attributes::new().with("shift", 1i64).with("axis", 0i64);
        let line = Location::new("f.py", 3, "f");
        let a = builder.one(Tensor::Roll, &[x], &roll, Some(line)).unwrap();
        let b = builder
            .one(Tensor::Neg, &[x], &Attributes::new(), None)
            .unwrap();
        let c = builder
            .one(Tensor::Add, &[b, a], &Attributes::new(), None)
            .unwrap();
        builder.finish(&OutputTree::Value(c)).unwrap()
    }

    /// The verifier's words on a Program whose fields were changed past every builder.
    fn refusal(spoil: impl FnOnce(&mut Program, &mut Body)) -> String {
        let mut program = program();
        program.verify().unwrap();
        let mut body = Body::clone(&program.body);
        spoil(&mut program, &mut body);
        program.body = Arc::new(body);
        program.verify().unwrap_err().to_string()
    }

    /// Guards that the verifier trusts nothing: each invariant is broken by hand in turn.
    #[test]
    fn every_broken_invariant_is_found() {
        let swapped = refusal(|_, body| body.ops.swap(0, 1));
        assert!(swapped.contains("out of order"), "{swapped}");
        let forward = refusal(|_, body| body.ops[0].operands[0] = ValueId(3));
        assert!(forward.starts_with("f.py:3 in f: tensor.roll: value 3 is used before"));
        let wrong_type = refusal(|_, body| body.values[1].ty = Type::tensor(DType::F64, [5]));
        assert!(
            wrong_type.contains("types of the operation's rule"),
            "{wrong_type}"
        );
        let origin = refusal(|_, body| body.values[1].origin = Origin::Argument(1));
        assert!(origin.contains("out of order"), "{origin}");
        let axis = refusal(|_, body| body.ops[0].attributes.set("axis", -1i64));
        assert!(axis.contains("canonical"), "{axis}");
        let kind = refusal(|_, body| body.ops[0].attributes.set("axis", DType::F64));
        assert!(kind.contains("axis is f64, expected an integer"), "{kind}");
        let unknown = refusal(|_, body| body.ops[1].attributes.set("axis", 0i64));
        assert!(
            unknown.contains("unknown: this operation has none"),
            "{unknown}"
        );
        let missing = refusal(|_, body| body.ops[0].attributes = Attributes::new());
        assert!(missing.contains("shift is missing"), "{missing}");
        let dangling = refusal(|_, body| body.results[0] = ValueId(9));
        assert!(dangling.contains("value 9 is returned"), "{dangling}");
        let extra = refusal(|_, body| {
            let value = body.values[3].clone();
            body.values.push(value);
        });
        assert!(
            extra.contains("5 values are listed, 4 are defined"),
            "{extra}"
        );
        let operands = refusal(|_, body| body.ops[2].operands.truncate(1));
        assert!(
            operands.contains("expected 2 operands (x, y), found 1"),
            "{operands}"
        );
        let region = refusal(|_, body| body.ops[1].region = Some(Arc::default()));
        assert!(region.contains("has none"), "{region}");
        let leaf = refusal(|program, _| program.outputs = Arc::new(OutputTree::Value(1)));
        assert!(
            leaf.contains("leaf 0 of the output tree names result 1"),
            "{leaf}"
        );
        let no_leaf = refusal(|program, _| program.outputs = Arc::new(OutputTree::List(vec![])));
        assert!(no_leaf.contains("0 leaves for 1 results"), "{no_leaf}");
        let inputs = refusal(|program, _| program.inputs = Arc::from([]));
        assert!(inputs.contains("1 arguments for 0 inputs"), "{inputs}");
        let input = refusal(|program, _| {
            let ty = Type::tensor(DType::I64, [4]);
            program.inputs = Arc::from([crate::Input {
                name: "x".into(),
                ty,
            }]);
        });
        assert!(input.contains("input x: its type is not"), "{input}");
        let material = refusal(|program, _| {
            let residues = Type::Residues {
                batch: vec![],
                parts: 1,
                basis: crate::Basis::Q { level: 0 },
                domain: crate::Domain::Ntt,
            };
            Arc::make_mut(&mut program.materials).insert("m".into(), Material::new(residues, ""));
        });
        assert!(
            material.contains("material @m: its type is residues"),
            "{material}"
        );
        let symbol = Attribute::Symbol("absent".into());
        let absent = refusal(|_, body| {
            body.ops[1].kind = crate::Core::Material.into();
            body.ops[1].operands.clear();
            body.ops[1].attributes.set("symbol", symbol);
        });
        assert!(
            absent.contains("no material is declared as @absent"),
            "{absent}"
        );
    }
}
