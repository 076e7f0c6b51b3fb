//! Result types of the operations on batch axes.

use fhelium_ir::state::ErrorKind;
use fhelium_ir::{Attributes, Ckks, He, InferContext, InferError, OpKind, Type};

fn infer(
    kind: impl Into<OpKind>,
    operands: &[&Type],
    attributes: Attributes,
) -> Result<Type, InferError> {
    let context = InferContext::default();
    let mut types = kind.into().infer(&context, operands, &attributes)?;
    assert_eq!(types.len(), 1);
    Ok(types.remove(0))
}

fn ints(name: &'static str, values: &[i64]) -> Attributes {
    Attributes::new().with(name, values.to_vec())
}

/// Guards that operations on batch axes leave open states open, at `he` only, and that errors name
/// the batch shape.
#[test]
fn batch_axes_of_open_states() {
    let open = |batch: &[usize]| Type::Ciphertext {
        batch: batch.to_vec(),
        state: None,
    };
    let x = open(&[2, 3]);
    let axis = |axis: i64| Attributes::new().with("axis", axis);
    let slice = ints("starts", &[1, 2])
        .with("sizes", vec![1, 3])
        .with("steps", vec![1, -1])
        .with("dropped", vec![-2]);
    let shape = ints("shape", &[-1, 2]);
    for (he, ckks, attributes, batch) in [
        (He::SumBatch, Ckks::SumBatch, axis(-1), vec![2]),
        (He::BatchSlice, Ckks::BatchSlice, slice, vec![3]),
        (He::BatchReshape, Ckks::BatchReshape, shape, vec![3, 2]),
        (He::StackBatch, Ckks::StackBatch, axis(1), vec![2, 1, 3]),
    ] {
        assert_eq!(infer(he, &[&x], attributes.clone()), Ok(open(&batch)));
        let error = infer(ckks, &[&x], attributes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Compile, "{error}");
    }
    for (kind, operands, attributes) in [
        (He::SumBatch, vec![&x], axis(2)),
        (He::StackBatch, vec![&x], axis(-4)),
        (He::StackBatch, vec![&x, &open(&[3])], axis(0)),
        (He::BatchReshape, vec![&x], ints("shape", &[5])),
    ] {
        let error = infer(kind, &operands, attributes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value, "{error}");
        assert!(error.to_string().contains("[2, 3]"), "{error}");
    }
    let error = infer(He::SumBatch, &[&open(&[0])], axis(0)).unwrap_err();
    assert!(error.to_string().contains("empty"), "{error}");
}
