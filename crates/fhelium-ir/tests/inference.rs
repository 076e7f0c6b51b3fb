//! Result types: numpy's rules for tensors, the chain's for ciphertexts, bases for residues.

mod common;

use fhelium_ir::state::{CipherState, ErrorKind, PlainState, Scale};
use fhelium_ir::{
    Attribute, Attributes, Ckks, DType, He, InferContext, InferError, KeyKind, OpKind, Tensor, Type,
};

fn tensor(dtype: DType, shape: &[usize]) -> Type {
    Type::tensor(dtype, shape)
}

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

/// Guards shapes against numpy's (each checked with numpy 2).
#[test]
fn shapes_follow_numpy() {
    let f = |shape: &[usize]| tensor(DType::F64, shape);
    let none = Attributes::new;
    let cases: Vec<(OpKind, Vec<Type>, Attributes, &[usize])> = vec![
        (
            Tensor::Add.into(),
            vec![f(&[5, 1, 3]), f(&[4, 1])],
            none(),
            &[5, 4, 3],
        ),
        (
            Tensor::Add.into(),
            vec![f(&[]), f(&[0, 2])],
            none(),
            &[0, 2],
        ),
        (Tensor::Add.into(), vec![f(&[1]), f(&[0])], none(), &[0]),
        (Tensor::Matmul.into(), vec![f(&[3]), f(&[3])], none(), &[]),
        (
            Tensor::Matmul.into(),
            vec![f(&[2, 3]), f(&[3])],
            none(),
            &[2],
        ),
        (
            Tensor::Matmul.into(),
            vec![f(&[3]), f(&[7, 3, 2])],
            none(),
            &[7, 2],
        ),
        (
            Tensor::Matmul.into(),
            vec![f(&[5, 1, 2, 3]), f(&[4, 3, 6])],
            none(),
            &[5, 4, 2, 6],
        ),
        (
            Tensor::Reshape.into(),
            vec![f(&[6, 4])],
            ints("shape", &[-1, 8]),
            &[3, 8],
        ),
        (
            Tensor::Reshape.into(),
            vec![f(&[])],
            ints("shape", &[1, -1]),
            &[1, 1],
        ),
        (
            Tensor::Reshape.into(),
            vec![f(&[0, 4])],
            ints("shape", &[4, 0]),
            &[4, 0],
        ),
        (
            Tensor::Transpose.into(),
            vec![f(&[2, 3, 4])],
            none(),
            &[4, 3, 2],
        ),
        (
            Tensor::Transpose.into(),
            vec![f(&[2, 3, 4])],
            ints("axes", &[1, -1, 0]),
            &[3, 4, 2],
        ),
        (Tensor::Sum.into(), vec![f(&[2, 3, 4])], none(), &[]),
        (
            Tensor::Sum.into(),
            vec![f(&[2, 3, 4])],
            ints("axes", &[-1, 0]),
            &[3],
        ),
        (
            Tensor::Mean.into(),
            vec![f(&[2, 3, 4])],
            ints("axes", &[1]).with("keepdims", true),
            &[2, 1, 4],
        ),
        (
            Tensor::Stack.into(),
            vec![f(&[2, 3]), f(&[2, 3])],
            Attributes::new().with("axis", -1i64),
            &[2, 3, 2],
        ),
        (
            Tensor::Concatenate.into(),
            vec![f(&[2, 3]), f(&[2, 1]), f(&[2, 0])],
            Attributes::new().with("axis", -1i64),
            &[2, 4],
        ),
        (
            Tensor::Clip.into(),
            vec![f(&[4]), f(&[]), f(&[3, 1])],
            none(),
            &[3, 4],
        ),
        (
            Tensor::Where.into(),
            vec![tensor(DType::Bool, &[2, 1]), f(&[3]), f(&[])],
            none(),
            &[2, 3],
        ),
        (
            Tensor::Broadcast.into(),
            vec![f(&[3, 1])],
            ints("shape", &[2, 3, 4]),
            &[2, 3, 4],
        ),
        (
            Tensor::Slice.into(),
            vec![f(&[4, 9])],
            ints("starts", &[3, 8])
                .with("sizes", vec![1i64, 3])
                .with("steps", vec![1i64, -4])
                .with("dropped", vec![0i64]),
            &[3],
        ),
        (
            Tensor::Index.into(),
            vec![f(&[4, 9])],
            Attributes::new().with("axis", -2i64).with("index", -4i64),
            &[9],
        ),
    ];
    for (kind, operands, attributes, expected) in cases {
        let operands: Vec<&Type> = operands.iter().collect();
        let found = infer(kind, &operands, attributes).unwrap();
        assert_eq!(found, f(expected), "{kind} of {operands:?}");
    }
}

/// Guards element types where they are not the promoted one.
#[test]
fn element_types_follow_numpy() {
    use DType::*;
    let one = |dtype| tensor(dtype, &[3]);
    let cases: Vec<(Tensor, Vec<DType>, DType)> = vec![
        (Tensor::Div, vec![I32, I32], F64),
        (Tensor::Div, vec![Bool, Bool], F64),
        (Tensor::Div, vec![F32, F32], F32),
        (Tensor::Pow, vec![I64, I32], I64),
        (Tensor::Add, vec![Bool, Bool], Bool),
        (Tensor::Exp, vec![I32], F64),
        (Tensor::Exp, vec![F32], F32),
        (Tensor::Sqrt, vec![C64], C64),
        (Tensor::Abs, vec![C64], F32),
        (Tensor::Abs, vec![I32], I32),
        (Tensor::Real, vec![C128], F64),
        (Tensor::Imag, vec![I64], I64),
        (Tensor::Conj, vec![F32], F32),
        (Tensor::Sum, vec![Bool], I64),
        (Tensor::Sum, vec![I32], I64),
        (Tensor::Sum, vec![F32], F32),
        (Tensor::Mean, vec![I32], F64),
        (Tensor::Mean, vec![C64], C64),
        (Tensor::Matmul, vec![I64, F32], F64),
        (Tensor::Clip, vec![I32, F32, Bool], F64),
    ];
    for (kind, operands, expected) in cases {
        let operands: Vec<Type> = operands.into_iter().map(one).collect();
        let operands: Vec<&Type> = operands.iter().collect();
        let found = infer(kind, &operands, Attributes::new()).unwrap();
        let Type::Tensor { dtype, .. } = found else {
            panic!("{kind:?} gives {found}")
        };
        assert_eq!(dtype, expected, "{kind:?} of {operands:?}");
    }
}

/// Guards that what numpy refuses is refused, with the values in the message.
#[test]
fn what_numpy_refuses_is_refused() {
    let f = |shape: &[usize]| tensor(DType::F64, shape);
    let bools = tensor(DType::Bool, &[3]);
    let complex = tensor(DType::C64, &[3]);
    let axis = |axis: i64| Attributes::new().with("axis", axis);
    let cases: Vec<(Tensor, Vec<Type>, Attributes, &str)> = vec![
        (
            Tensor::Add,
            vec![f(&[2]), f(&[3])],
            Attributes::new(),
            "[2] and [3]",
        ),
        (
            Tensor::Sub,
            vec![bools.clone(), bools.clone()],
            Attributes::new(),
            "truth values",
        ),
        (
            Tensor::Neg,
            vec![bools.clone()],
            Attributes::new(),
            "truth values",
        ),
        (
            Tensor::Matmul,
            vec![f(&[]), f(&[3])],
            Attributes::new(),
            "scalars",
        ),
        (
            Tensor::Matmul,
            vec![f(&[2, 3]), f(&[2, 3])],
            Attributes::new(),
            "3 and 2",
        ),
        (
            Tensor::Reshape,
            vec![f(&[6])],
            ints("shape", &[4, -1]),
            "[6]",
        ),
        (
            Tensor::Reshape,
            vec![f(&[0])],
            ints("shape", &[0, -1]),
            "[0]",
        ),
        (
            Tensor::Reshape,
            vec![f(&[6])],
            ints("shape", &[-1, -1]),
            "more than one",
        ),
        (
            Tensor::Reshape,
            vec![f(&[6])],
            ints("shape", &[-2, -3]),
            "negative",
        ),
        (
            Tensor::Transpose,
            vec![f(&[2, 3])],
            ints("axes", &[0, 0]),
            "twice",
        ),
        (
            Tensor::Transpose,
            vec![f(&[2, 3])],
            ints("axes", &[0]),
            "axes",
        ),
        (
            Tensor::Sum,
            vec![f(&[2, 3])],
            ints("axes", &[0, -2]),
            "twice",
        ),
        (Tensor::Sum, vec![f(&[2, 3])], ints("axes", &[2]), "-2..=1"),
        (Tensor::Stack, vec![f(&[2]), f(&[3])], axis(0), "[3]"),
        (
            Tensor::Concatenate,
            vec![f(&[2, 3]), f(&[3, 3])],
            axis(1),
            "axis 1 only",
        ),
        (Tensor::Concatenate, vec![f(&[])], axis(0), "no axes"),
        (
            Tensor::Clip,
            vec![complex.clone(), f(&[]), f(&[])],
            Attributes::new(),
            "order",
        ),
        (
            Tensor::Where,
            vec![f(&[]), f(&[]), f(&[])],
            Attributes::new(),
            "f64",
        ),
        (
            Tensor::Cast,
            vec![complex],
            Attributes::new().with("dtype", DType::F64),
            "c64",
        ),
        (
            Tensor::Broadcast,
            vec![f(&[2, 3])],
            ints("shape", &[3]),
            "[2, 3]",
        ),
        (
            Tensor::Roll,
            vec![f(&[3])],
            axis(i64::MIN).with("shift", 1i64),
            "axis",
        ),
        (
            Tensor::Index,
            vec![f(&[3])],
            axis(0).with("index", 3i64),
            "index 3",
        ),
        (
            Tensor::Slice,
            vec![f(&[3])],
            ints("starts", &[0])
                .with("sizes", vec![3i64])
                .with("steps", vec![2i64]),
            "to 4",
        ),
        (
            Tensor::Slice,
            vec![f(&[3])],
            ints("starts", &[i64::MAX])
                .with("sizes", vec![2i64])
                .with("steps", vec![i64::MAX]),
            "outside",
        ),
        (
            Tensor::Slice,
            vec![f(&[3])],
            ints("starts", &[0])
                .with("sizes", vec![2i64])
                .with("steps", vec![0i64]),
            "step",
        ),
        (
            Tensor::Constant,
            vec![],
            Attributes::new()
                .with("value", 0.5)
                .with("dtype", DType::I64),
            "0.5",
        ),
        (
            Tensor::Constant,
            vec![],
            Attributes::new()
                .with("value", i64::MAX)
                .with("dtype", DType::I32),
            "9223372036854775807",
        ),
    ];
    for (kind, operands, attributes, expected) in cases {
        let operands: Vec<&Type> = operands.iter().collect();
        let error = infer(kind, &operands, attributes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value, "{kind:?}: {error}");
        assert!(error.to_string().contains(expected), "{kind:?}: {error}");
    }
}

/// Guards that attributes become canonical, so that equal operations compare equal.
#[test]
fn attributes_become_canonical() {
    let context = InferContext::default();
    let x = tensor(DType::F64, &[2, 3]);
    let resolve = |kind: Tensor, attributes: Attributes| {
        let kind = OpKind::from(kind);
        kind.resolve(&context, &[&x], &attributes, None)
            .unwrap()
            .attributes
    };
    let all = resolve(Tensor::Sum, Attributes::new());
    let named = Attributes::new()
        .with("keepdims", false)
        .with("axes", vec![-1i64, -2]);
    assert_eq!(resolve(Tensor::Sum, named), all);
    assert_eq!(all.ints("axes"), Some(&[0, 1][..]));
    let program = common::inputs();
    let context = InferContext::of_chain(program.chain().unwrap());
    let a = &program.inputs()[0].ty;
    let slots = program.chain().unwrap().slots() as i64;
    let steps = [3, 3 - slots, 3 + slots].map(|step| {
        let attributes = Attributes::new().with("step", step);
        let rotate = OpKind::from(He::Rotate);
        rotate
            .resolve(&context, &[a], &attributes, None)
            .unwrap()
            .attributes
    });
    assert_eq!(steps[0], steps[1]);
    assert_eq!(steps[0], steps[2]);
}

/// Guards that one operation on its own is checked as in a Program: what eager calls rely on.
#[test]
fn ciphertext_rules_come_from_the_chain() {
    let program = common::inputs();
    let chain = program.chain().unwrap();
    let context = InferContext::of_chain(chain);
    let scale = Scale::from_bits(40);
    let ct = |level, parts| {
        let scale = scale.clone();
        Type::ciphertext(
            [2],
            CipherState {
                level,
                scale,
                parts,
            },
        )
    };
    let pt = |level| {
        Type::plaintext(
            [1],
            PlainState {
                level,
                scale: scale.clone(),
            },
        )
    };
    let kind_of = |kind: OpKind, operands: &[&Type], attributes: &Attributes| {
        kind.infer(&context, operands, attributes)
            .map_err(|error| error.kind())
    };
    let none = Attributes::new();
    let two = |kind: He, left: &Type, right: &Type| kind_of(kind.into(), &[left, right], &none);
    assert_eq!(
        two(He::Add, &ct(3, 2), &ct(2, 2)),
        Err(ErrorKind::LevelMismatch)
    );
    assert_eq!(two(He::Mul, &ct(3, 3), &ct(3, 2)), Err(ErrorKind::Parts));
    assert_eq!(
        two(He::Mul, &ct(3, 2), &pt(2)),
        Err(ErrorKind::LevelMismatch)
    );
    assert_eq!(two(He::Mul, &pt(3), &pt(3)), Err(ErrorKind::Compile));
    assert_eq!(
        two(He::Mul, &ct(0, 2), &ct(0, 2)),
        Err(ErrorKind::LevelExhausted)
    );
    assert_eq!(two(He::Mul, &pt(3), &ct(1, 2)).unwrap()[0].batch(), [2]);
    assert_eq!(two(He::Add, &ct(9, 2), &ct(9, 2)), Err(ErrorKind::Value));
    let step = Attributes::new().with("step", 5i64);
    let key = |step| Type::Key(KeyKind::Rotation { step });
    let rotate = |x: &Type, key: &Type| kind_of(Ckks::Rotate.into(), &[x, key], &step);
    assert_eq!(rotate(&ct(0, 2), &key(5)).unwrap(), [ct(0, 2)]);
    assert_eq!(
        rotate(&ct(0, 2), &key(5 - chain.slots() as i64)).unwrap(),
        [ct(0, 2)]
    );
    assert_eq!(rotate(&ct(0, 2), &key(6)), Err(ErrorKind::MissingKey));
    assert_eq!(rotate(&ct(0, 3), &key(5)), Err(ErrorKind::Parts));
    let hoisted = Attributes::new().with("steps", vec![5i64, 0, 5]);
    let (x, k) = (ct(1, 2), key(5));
    let kind = OpKind::from(Ckks::RotateHoisted);
    assert_eq!(
        kind_of(kind, &[&x, &k, &k], &hoisted).unwrap(),
        [x.clone(), x.clone(), x.clone()]
    );
    assert_eq!(kind_of(kind, &[&x, &k], &hoisted), Err(ErrorKind::Compile));
    let unknown = Type::Ciphertext {
        batch: vec![3],
        state: None,
    };
    assert_eq!(two(He::Add, &unknown, &pt(3)).unwrap()[0], unknown);
    assert_eq!(two(He::Add, &unknown, &ct(3, 2)), Err(ErrorKind::Value));
    let encode = Attributes::new()
        .with("level", 3i64)
        .with("scale", scale.clone());
    let too_long = tensor(DType::F64, &[chain.slots() + 1]);
    assert_eq!(
        kind_of(He::Encode.into(), &[&too_long], &encode),
        Err(ErrorKind::Value)
    );
    let half = Attributes::new().with("level", 3i64);
    let message = tensor(DType::F64, &[4, 8]);
    assert_eq!(
        kind_of(He::Encode.into(), &[&message], &half),
        Err(ErrorKind::Compile)
    );
    let negative = encode.clone().with("level", -1i64);
    assert_eq!(
        kind_of(He::Encode.into(), &[&message], &negative),
        Err(ErrorKind::Value)
    );
    let wrong = encode.with("scale", Attribute::Int(1 << 40));
    assert_eq!(
        kind_of(He::Encode.into(), &[&message], &wrong),
        Err(ErrorKind::Compile)
    );
}
