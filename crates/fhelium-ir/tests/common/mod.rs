//! What several tests need.

use fhelium_ir::operations::EXAMPLE_HEADER;
use fhelium_ir::{
    Attribute, AttributeKind, Attributes, DType, OpKind, Program, ProgramBuilder, Real, Rewriter,
    Type, ValueId,
};
use std::sync::Arc;

/// A Program with the inputs and the material of the table's examples and no operations.
pub fn inputs() -> Program {
    Program::parse(&format!("{EXAMPLE_HEADER} return () }} }}")).unwrap()
}

/// A builder over those inputs, and the inputs.
#[allow(dead_code, reason = "not every test builds")]
pub fn builder() -> (ProgramBuilder, Vec<ValueId>) {
    let inputs = inputs();
    let mut builder = ProgramBuilder::without_inputs_of(&inputs);
    let values = inputs
        .inputs()
        .iter()
        .map(|input| builder.input(input.name.clone(), input.ty.clone()).unwrap())
        .collect();
    (builder, values)
}

/// A Program of one level whose operations are chosen by numbers; those that do not apply to the
/// values that there are, are left out.
#[allow(dead_code, reason = "not every test builds")]
pub fn random_program(choices: &[(u16, [u16; 3], i64)], below_he: bool) -> Program {
    let (mut builder, mut values) = builder();
    let kinds: Vec<OpKind> = OpKind::all()
        .filter(|kind| match kind.def().dialect.name() {
            "he" => !below_he,
            "ckks" | "rns" => below_he && !kind.def().has_region,
            _ => true,
        })
        .collect();
    for &(choice, operands, number) in choices {
        let kind = kinds[usize::from(choice) % kinds.len()];
        let def = kind.def();
        // Of all values, those that the operand's kind lets in.
        let chosen: Option<Vec<ValueId>> = (0..def.operands.len())
            .map(|place| {
                let fitting: Vec<ValueId> = values
                    .iter()
                    .copied()
                    .filter(|&value| {
                        let ty = builder.type_of(value).unwrap();
                        accepts(def.operands[place].kind.to_string().as_str(), ty)
                    })
                    .collect();
                let selector = usize::from(operands[place % operands.len()]);
                (!fitting.is_empty()).then(|| fitting[selector % fitting.len()])
            })
            .collect();
        let Some(chosen) = chosen else { continue };
        let mut attributes = Attributes::new();
        for spec in def.attributes {
            attributes.set(spec.name, attribute(spec.kind, number));
        }
        let location = fhelium_ir::Location::new("a \"b\".py", number.unsigned_abs() as u32, "f");
        let results = builder.op(kind, &chosen, &attributes, Some(location));
        values.extend(results.unwrap_or_default().to_vec());
    }
    let outputs = values.iter().rev().take(5).copied();
    let outputs = outputs.map(fhelium_ir::OutputTree::Value).collect();
    builder
        .finish(&fhelium_ir::OutputTree::List(outputs))
        .unwrap()
}

fn accepts(kind: &str, ty: &Type) -> bool {
    kind.split(" or ").any(|kind| {
        ty.noun() == kind || (kind == "an evaluation key" && matches!(ty, Type::Key(_)))
    })
}

/// A value for an attribute, made from a number.
fn attribute(kind: AttributeKind, number: i64) -> Attribute {
    match kind {
        AttributeKind::Bool => Attribute::Bool(number % 2 == 0),
        AttributeKind::Int => Attribute::Int(number),
        AttributeKind::Ints => Attribute::Ints(vec![number]),
        AttributeKind::Number => match number % 3 {
            0 => Attribute::Int(number),
            1 => Attribute::Float(Real::new((number as f64).recip())),
            _ => Attribute::Complex(Real::new(number as f64), Real::new(f64::NAN)),
        },
        AttributeKind::Symbol => Attribute::Symbol(Arc::from("weights")),
        AttributeKind::Scale => Attribute::Scale(fhelium_ir::state::Scale::from_bits(
            number.unsigned_abs() as u32,
        )),
        AttributeKind::DType => Attribute::DType(DType::ALL[number.unsigned_abs() as usize % 7]),
    }
}

/// The Program rebuilt by copying each operation.
#[allow(dead_code, reason = "not every test builds")]
pub fn copied(program: &Program) -> Program {
    let mut rewriter = Rewriter::new(program).unwrap();
    for op in program.body().ops() {
        rewriter.copy(op).unwrap();
    }
    rewriter.finish().unwrap()
}
