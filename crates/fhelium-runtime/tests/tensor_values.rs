//! Tensors themselves: making them, sharing them, and refusing what is none.

use fhelium_ir::operations::{Count, Presence};
use fhelium_ir::{
    Attribute, AttributeKind, Attributes, DType, InferContext, OpKind, Real, Tensor as Operation,
    Type,
};
use fhelium_runtime::tensor::{Tensor, TensorError, evaluate};
use fhelium_state::ErrorKind;
use num_complex::Complex;
use proptest::prelude::*;

fn counted(shape: &[usize]) -> Tensor {
    let count = shape.iter().product::<usize>();
    Tensor::from_vec((0..count).map(|position| position as f64).collect(), shape).unwrap()
}

fn first_element(tensor: &Tensor) -> *const f64 {
    tensor.array::<f64>().unwrap().as_ptr()
}

/// Guards that views and reshapes of row-major arrays copy nothing.
#[test]
fn views_share_their_elements() {
    let matrix = counted(&[3, 4]);
    let run = |operation, attributes| evaluate(operation, &[&matrix], &attributes).unwrap();
    let start = first_element(&matrix);
    let none = Attributes::new();
    assert_eq!(first_element(&matrix.clone()), start);
    assert_eq!(first_element(&matrix.to_contiguous()), start);
    assert_eq!(
        first_element(&run(Operation::Transpose, none.clone())),
        start
    );
    assert_eq!(first_element(&run(Operation::Conj, none)), start);
    let flat = Attributes::new().with("shape", vec![-1]);
    assert_eq!(first_element(&run(Operation::Reshape, flat)), start);
    let last = Attributes::new().with("axis", 0i64).with("index", -1i64);
    assert_eq!(
        first_element(&run(Operation::Index, last)),
        start.wrapping_add(8)
    );
}

/// Guards the strides and offset of arrays that numpy hands over.
#[test]
fn parts_are_placed_by_strides_and_offset() {
    let data: Vec<i64> = (0..12).collect();
    let place = |shape: &[usize], strides: &[isize], offset| {
        Tensor::from_parts(data.clone(), shape, strides, offset)
    };
    let columns = place(&[4, 3], &[1, 4], 0).unwrap();
    assert_eq!(columns.strides(), [1, 4]);
    assert_eq!(
        columns.to_vec::<i64>(),
        [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]
    );
    assert!(!columns.is_contiguous() && columns.bytes().is_none());
    assert_eq!(
        columns.to_contiguous().to_vec::<i64>(),
        columns.to_vec::<i64>()
    );
    let backwards = place(&[3], &[-2], 5).unwrap();
    assert_eq!(backwards.to_vec::<i64>(), [5, 3, 1]);
    // A broadcast array's elements share memory; here each gets its own.
    let repeated = place(&[2, 3], &[0, 1], 2).unwrap();
    assert_eq!(repeated.to_vec::<i64>(), [2, 3, 4, 2, 3, 4]);
    let windows = place(&[3, 2], &[1, 1], 0).unwrap();
    assert_eq!(windows.to_vec::<i64>(), [0, 1, 1, 2, 2, 3]);
    assert_eq!(place(&[0, 3], &[1, 1], 99).unwrap().shape(), [0, 3]);
    assert_eq!(place(&[], &[], 7).unwrap(), Tensor::scalar(7i64));
}

/// Guards that no element outside the data is reached, whatever the strides.
#[test]
fn parts_outside_the_data_are_refused() {
    let cases: [(&[usize], &[isize], usize); 7] = [
        (&[4], &[1], 1),
        (&[4], &[-1], 2),
        (&[], &[], 4),
        (&[2, 2], &[1], 0),
        (&[2], &[isize::MIN], 0),
        (&[usize::MAX], &[isize::MAX], 0),
        (&[usize::MAX, 0], &[1, 1], 0),
    ];
    for (shape, strides, offset) in cases {
        let error = Tensor::from_parts(vec![0.0f64; 4], shape, strides, offset).unwrap_err();
        assert!(
            matches!(
                error,
                TensorError::Layout { .. } | TensorError::OutOfMemory { .. }
            ),
            "{error}"
        );
    }
    let error = Tensor::from_parts(vec![0.0f64; 4], &[2, 3], &[3, 1], 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    assert_eq!(
        error.to_string(),
        "a tensor of shape (2, 3) with strides [3, 1] from element 0 does not fit 4 elements of data"
    );
    assert!(Tensor::from_vec(vec![0.0f64; 4], &[5]).is_err());
}

/// Guards reading arrays from bytes, of every element type.
#[test]
fn bytes_read_back() {
    for dtype in DType::ALL {
        let zeros = Tensor::zeros(dtype, &[2, 3]).unwrap();
        assert_eq!(zeros.nbytes(), 6 * dtype.size());
        let bytes = zeros.bytes().unwrap();
        assert_eq!(Tensor::from_bytes(dtype, &[2, 3], bytes).unwrap(), zeros);
        let error = Tensor::from_bytes(dtype, &[2, 4], bytes).unwrap_err();
        assert!(error.to_string().contains("(2, 4)"), "{error}");
    }
    let error = Tensor::from_bytes(DType::Bool, &[2], &[1, 2]).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("a truth value is 0 or 1, found 2"),
        "{error}"
    );
    let huge = Tensor::zeros(DType::F64, &[1 << 40, 1 << 40]).unwrap_err();
    assert_eq!(huge.kind(), ErrorKind::OutOfMemory);
}

/// Guards that a refusal names the operation and what it found.
#[test]
fn refusals_name_shapes() {
    let refusal = |operation, operands: &[&Tensor], attributes: Attributes| {
        evaluate(operation, operands, &attributes)
            .unwrap_err()
            .to_string()
    };
    let (x, y) = (counted(&[2, 3]), counted(&[4]));
    let message = refusal(Operation::Add, &[&x, &y], Attributes::new());
    assert!(message.starts_with("tensor.add: "), "{message}");
    assert!(
        message.contains("[2, 3]") && message.contains("[4]"),
        "{message}"
    );
    let message = refusal(Operation::Matmul, &[&x, &y], Attributes::new());
    assert!(
        message.contains("[2, 3]") && message.contains("[4]"),
        "{message}"
    );
    let message = refusal(
        Operation::Sum,
        &[&x],
        Attributes::new().with("axes", vec![2]),
    );
    assert!(message.contains("axis 2"), "{message}");
    let exponents = Tensor::from_vec(vec![2i64, -3], &[2]).unwrap();
    let message = refusal(Operation::Pow, &[&exponents, &exponents], Attributes::new());
    assert!(message.contains("negative integer -3"), "{message}");
}

/// Guards the constants that a Program holds, in every element type that fits.
#[test]
fn constants_take_their_element_type() {
    let constant = |value: Attribute, dtype: DType| {
        let attributes = Attributes::new().with("value", value).with("dtype", dtype);
        evaluate(Operation::Constant, &[], &attributes)
    };
    assert_eq!(
        constant(true.into(), DType::Bool).unwrap(),
        Tensor::scalar(true)
    );
    assert_eq!(
        constant((-3i64).into(), DType::I32).unwrap(),
        Tensor::scalar(-3i32)
    );
    assert_eq!(
        constant(7i64.into(), DType::F32).unwrap(),
        Tensor::scalar(7f32)
    );
    let complex = Attribute::Complex(Real::new(1.5), Real::new(-0.0));
    let found = constant(complex.clone(), DType::C128).unwrap();
    assert_eq!(found, Tensor::scalar(Complex::new(1.5, -0.0)));
    assert!(constant(complex, DType::F64).is_err());
    assert!(constant(0.5.into(), DType::I64).is_err());
}

fn tensors() -> impl Strategy<Value = Tensor> {
    let shape = prop::collection::vec(prop_oneof![4 => 1..=3usize, 1 => Just(0usize)], 0..=3);
    let dtype = prop::sample::select(DType::ALL.to_vec());
    // Whole bytes, so that NaNs, infinities and extreme integers occur; transposed sometimes.
    (
        shape,
        dtype,
        any::<bool>(),
        prop::collection::vec(any::<u8>(), 27 * 16),
    )
        .prop_map(|(shape, dtype, transposed, bytes)| {
            let count = shape.iter().product::<usize>() * dtype.size();
            let mut bytes = bytes[..count].to_vec();
            if dtype == DType::Bool {
                bytes.iter_mut().for_each(|byte| *byte &= 1);
            }
            let tensor = Tensor::from_bytes(dtype, &shape, &bytes).unwrap();
            match transposed {
                true => evaluate(Operation::Transpose, &[&tensor], &Attributes::new()).unwrap(),
                false => tensor,
            }
        })
}

/// Attributes that fit operands of a rank often, but not always.
fn attributes(operation: Operation, rank: usize) -> impl Strategy<Value = Attributes> {
    let each: Vec<_> = operation
        .def()
        .attributes
        .iter()
        .map(|spec| {
            let small = prop_oneof![16 => -1..=2i64, 1 => any::<i64>()];
            let ints = |length| prop::collection::vec(small.clone(), length);
            let value: BoxedStrategy<Attribute> = match spec.kind {
                AttributeKind::Bool => any::<bool>().prop_map(Attribute::from).boxed(),
                AttributeKind::Int => small.prop_map(Attribute::from).boxed(),
                AttributeKind::Ints => prop_oneof![
                    4 => ints(rank..=rank),
                    1 => ints(0..=3),
                    1 => Just((0..rank as i64).rev().collect()),
                ]
                .prop_map(Attribute::from)
                .boxed(),
                AttributeKind::DType => prop::sample::select(DType::ALL.to_vec())
                    .prop_map(Attribute::from)
                    .boxed(),
                _ => any::<f64>().prop_map(Attribute::from).boxed(),
            };
            let optional = spec.presence != Presence::Required;
            let weight = if optional { 0.6 } else { 0.99 };
            prop::option::weighted(weight, value.prop_map(|value| (spec.name, value)))
        })
        .collect();
    each.prop_map(|given| {
        let none = Attributes::new();
        given
            .into_iter()
            .flatten()
            .fold(none, |attributes, (name, value)| {
                attributes.with(name, value)
            })
    })
}

fn calls() -> impl Strategy<Value = (Operation, Vec<Tensor>, Attributes)> {
    prop::sample::select(Operation::ALL.to_vec())
        .prop_flat_map(|operation| {
            let specs = operation.def().operands;
            let least = specs.iter().filter(|spec| spec.count == Count::One).count();
            let most = if least == specs.len() {
                least
            } else {
                least + 2
            };
            let operands = prop_oneof![
                prop::collection::vec(tensors(), least..=most),
                // One array in every place, so that shapes fit more often.
                (tensors(), least..=most).prop_map(|(tensor, count)| vec![tensor; count]),
            ];
            (Just(operation), operands)
        })
        .prop_flat_map(|(operation, operands)| {
            let rank = operands.first().map_or(0, Tensor::ndim);
            (Just(operation), Just(operands), attributes(operation, rank))
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Guards against panics on any operands and attributes, and that results have the shape and
    /// element type that Programs are checked by.
    #[test]
    fn results_are_of_the_inferred_type((operation, operands, attributes) in calls()) {
        let operands: Vec<&Tensor> = operands.iter().collect();
        let types: Vec<Type> =
            operands.iter().map(|x| Type::tensor(x.dtype(), x.shape())).collect();
        let types: Vec<&Type> = types.iter().collect();
        let inferred = OpKind::from(operation)
            .infer(&InferContext::default(), &types, &attributes);
        match evaluate(operation, &operands, &attributes) {
            Ok(found) => {
                prop_assert_eq!(inferred, Ok(vec![Type::tensor(found.dtype(), found.shape())]));
            }
            Err(TensorError::NegativePower { .. }) => prop_assert_eq!(operation, Operation::Pow),
            Err(TensorError::OutOfMemory { .. }) => {}
            Err(error) => prop_assert!(inferred.is_err(), "{}", error),
        }
    }
}
