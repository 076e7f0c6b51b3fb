//! Guards that clear tensors on a device are the CPU's: the same elements, in the same order in
//! memory, with the same refusals, for every operation, element type, shape and view.

mod contexts;
mod tensors;

use contexts::any_context;
use fhelium_cuda::CudaError;
use fhelium_ir::{Attribute, Attributes, DType, Tensor as Operation};
use fhelium_runtime::tensor::{Tensor, evaluate};
use tensors::{Pair, Tolerance, Words, run, same, up};

const FUNCTIONS: [Operation; 6] = [
    Operation::Exp,
    Operation::Log,
    Operation::Sqrt,
    Operation::Sin,
    Operation::Cos,
    Operation::Tanh,
];

fn function_tolerance(dtype: DType) -> Tolerance {
    Tolerance::Ulps(match dtype {
        DType::F32 | DType::C64 => 1.0,
        DType::C128 => 8.0,
        _ => 3.0,
    })
}

#[test]
fn elementwise_operations_of_every_type_give_the_elements_of_the_cpu() {
    let Some(device) = any_context() else { return };
    let mut words = Words(1);
    let none = Attributes::new();
    for left in DType::ALL {
        let x = up(&device, words.tensor(left, &[3, 1, 40], true));
        for operation in FUNCTIONS {
            let result = run(&device, operation, &[&x], &none).unwrap();
            let tolerance = match (operation, left) {
                (Operation::Sqrt, DType::F32 | DType::F64) => Tolerance::Exact,
                _ => function_tolerance(result.host.dtype()),
            };
            same(&device, &(operation, &x.host), &result, tolerance);
        }
        for operation in [
            Operation::Neg,
            Operation::Abs,
            Operation::Real,
            Operation::Imag,
            Operation::Conj,
        ] {
            if let Some(result) = run(&device, operation, &[&x], &none) {
                same(&device, &operation, &result, Tolerance::Exact);
            }
        }
        for right in DType::ALL {
            let y = up(&device, words.tensor(right, &[5, 40], true));
            let alone = up(&device, words.tensor(right, &[], true));
            for operation in [
                Operation::Add,
                Operation::Sub,
                Operation::Mul,
                Operation::Div,
            ] {
                for other in [&y, &alone] {
                    if let Some(result) = run(&device, operation, &[&x, other], &none) {
                        same(
                            &device,
                            &(operation, left, right),
                            &result,
                            Tolerance::Exact,
                        );
                    }
                }
            }
            let to = Attributes::new().with("dtype", right);
            if let Some(result) = run(&device, Operation::Cast, &[&x], &to) {
                same(&device, &("cast", left, right), &result, Tolerance::Exact);
            }
            let mask = up(&device, words.tensor(DType::Bool, &[5, 1], true));
            let result = run(&device, Operation::Where, &[&mask, &x, &y], &none).unwrap();
            same(&device, &("where", left, right), &result, Tolerance::Exact);
            for bound in [&alone, &y] {
                if let Some(result) = run(&device, Operation::Clip, &[&x, bound, &y], &none) {
                    same(&device, &("clip", left, right), &result, Tolerance::Exact);
                }
            }
        }
    }
}

#[test]
fn powers_give_the_elements_of_the_cpu() {
    let Some(device) = any_context() else { return };
    let mut words = Words(2);
    let none = Attributes::new();
    let power = |x: &Pair, y: &Pair| run(&device, Operation::Pow, &[x, y], &none);
    for dtype in DType::ALL {
        let base = up(&device, words.tensor(dtype, &[7, 9], true));
        for exponent in [2.0, -1.0, 0.5, 3.0, 7.0, -2.0, 0.0] {
            let exponent = Attribute::from(exponent);
            let exponent = Attributes::from([("value", exponent), ("dtype", DType::F64.into())]);
            let exponent = run(&device, Operation::Constant, &[], &exponent).unwrap();
            let to = Attributes::new().with("dtype", dtype.to_inexact());
            let exponent = run(&device, Operation::Cast, &[&exponent], &to).unwrap();
            if let Some(result) = power(&base, &exponent) {
                let ulps = if dtype.is_complex() { 400.0 } else { 3.0 };
                same(
                    &device,
                    &(&base.host, &exponent.host),
                    &result,
                    Tolerance::Ulps(ulps),
                );
            }
        }
        let few = up(&device, words.tensor(dtype, &[9], false));
        if let Some(result) = power(&base, &few) {
            let ulps = if dtype.is_complex() { 400.0 } else { 3.0 };
            same(
                &device,
                &(&base.host, &few.host),
                &result,
                Tolerance::Ulps(ulps),
            );
        }
    }
    // Of integers, wrapping, and refused where an exponent is negative.
    for dtype in [DType::I32, DType::I64] {
        let base = up(&device, words.tensor(dtype, &[6], true));
        let whole = |values: Vec<i64>| {
            let shape = [values.len()];
            let to = Attributes::new().with("dtype", dtype);
            let wide = Tensor::from_vec(values, &shape).unwrap();
            up(&device, evaluate(Operation::Cast, &[&wide], &to).unwrap())
        };
        let result = power(&base, &whole(vec![0, 1, 2, 5, 63, 1000])).unwrap();
        same(&device, &dtype, &result, Tolerance::Exact);
        assert!(power(&base, &whole(vec![0, 1, -2, 5, -3, 2])).is_none());
        for value in [3, -1] {
            let attributes = Attributes::from([("value", value.into()), ("dtype", dtype.into())]);
            let constant = run(&device, Operation::Constant, &[], &attributes).unwrap();
            assert_eq!(power(&base, &constant).is_some(), value > 0);
        }
    }
}

#[test]
fn constants_are_those_of_the_cpu() {
    let Some(device) = any_context() else { return };
    let complex = Attribute::Complex(
        fhelium_ir::Real::new(0.1),
        fhelium_ir::Real::new(f64::NEG_INFINITY),
    );
    for value in [
        true.into(),
        i64::MAX.into(),
        (-7).into(),
        0.1.into(),
        complex,
    ] {
        for dtype in DType::ALL {
            let attributes = Attributes::from([("value", value.clone()), ("dtype", dtype.into())]);
            if let Some(result) = run(&device, Operation::Constant, &[], &attributes) {
                same(&device, &(&value, dtype), &result, Tolerance::Exact);
            }
        }
    }
}

/// An operation that moves elements, with attributes that mostly fit.
fn movement(words: &mut Words, shape: &[usize]) -> (Operation, Attributes) {
    let rank = shape.len();
    let axis = words.below(rank.max(1)) as i64;
    match words.below(8) {
        0 => {
            let mut axes: Vec<i64> = (0..rank as i64).collect();
            for place in (1..rank).rev() {
                axes.swap(place, words.below(place + 1));
            }
            (Operation::Transpose, Attributes::new().with("axes", axes))
        }
        1 => {
            let shift = words.below(11) as i64 - 5;
            (
                Operation::Roll,
                Attributes::new().with("shift", shift).with("axis", axis),
            )
        }
        2 => {
            let shift = words.below(11) as i64 - 5;
            (Operation::Roll, Attributes::new().with("shift", shift))
        }
        3 => {
            let (mut starts, mut sizes, mut steps) = (vec![], vec![], vec![]);
            for &extent in shape {
                let start = words.below(extent.max(1));
                let step = [1isize, 2, -1, -3][words.below(4)];
                let room = if step > 0 {
                    extent.saturating_sub(start + 1)
                } else {
                    start
                };
                let most = if extent == 0 {
                    0
                } else {
                    room / step.unsigned_abs() + 1
                };
                starts.push(start as i64);
                sizes.push(words.below(most + 1) as i64);
                steps.push(step as i64);
            }
            let dropped: Vec<i64> = (0..rank as i64)
                .filter(|&axis| sizes[axis as usize] == 1 && words.below(2) == 0)
                .collect();
            let attributes = Attributes::from([
                ("starts", starts.into()),
                ("sizes", sizes.into()),
                ("steps", steps.into()),
                ("dropped", dropped.into()),
            ]);
            (Operation::Slice, attributes)
        }
        4 => (
            Operation::Index,
            Attributes::new()
                .with("axis", axis)
                .with("index", words.below(3) as i64 - 1),
        ),
        5 => {
            let shape = [words.below(4) as i64 + 1, -1];
            (
                Operation::Reshape,
                Attributes::new().with("shape", shape.to_vec()),
            )
        }
        6 => {
            let mut to: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
            for extent in to.iter_mut().filter(|extent| **extent == 1) {
                *extent = words.below(4) as i64;
            }
            if words.below(2) == 0 {
                to.insert(0, 2);
            }
            (Operation::Broadcast, Attributes::new().with("shape", to))
        }
        _ => {
            let operation = [Operation::Stack, Operation::Concatenate][words.below(2)];
            (operation, Attributes::new().with("axis", axis))
        }
    }
}

#[test]
fn random_programs_give_the_elements_of_the_cpu() {
    let Some(device) = any_context() else { return };
    for seed in 0..40 {
        let mut words = Words(1000 + seed);
        let mut pool: Vec<Pair> = (0..5)
            .map(|_| {
                let dtype = DType::ALL[words.below(7)];
                let shape: Vec<usize> = (0..words.below(4))
                    .map(|_| [0, 1, 1, 2, 3, 4, 5][words.below(7)])
                    .collect();
                up(&device, words.tensor(dtype, &shape, true))
            })
            .collect();
        for _ in 0..30 {
            let x = pool[words.below(pool.len())].clone();
            let y = pool[words.below(pool.len())].clone();
            let (operation, attributes) = match words.below(3) {
                0 => {
                    let binary = [
                        Operation::Add,
                        Operation::Mul,
                        Operation::Sub,
                        Operation::Div,
                    ];
                    (binary[words.below(4)], Attributes::new())
                }
                1 => {
                    let axes: Vec<i64> = (0..x.host.ndim() as i64)
                        .filter(|_| words.below(2) == 0)
                        .collect();
                    (Operation::Sum, Attributes::new().with("axes", axes))
                }
                _ => movement(&mut words, x.host.shape()),
            };
            let operands: &[&Pair] = match operation {
                Operation::Add | Operation::Mul | Operation::Sub | Operation::Div => &[&x, &y],
                Operation::Stack | Operation::Concatenate => &[&x, &y, &x],
                _ => &[&x],
            };
            let Some(result) = run(&device, operation, operands, &attributes) else {
                continue;
            };
            let what = (seed, operation, &attributes, &x, &y);
            same(&device, &what, &result, Tolerance::Exact);
            if result.host.len() < 5000 {
                let place = words.below(pool.len());
                pool[place] = result;
            }
        }
    }
}

#[test]
fn tensors_outside_their_bytes_are_refused() {
    let Some(device) = any_context() else { return };
    let up = |dtype, shape: &[usize], strides: &[isize], bytes: &[u8]| {
        device.upload_tensor(dtype, shape, strides, bytes).map(drop)
    };
    assert!(up(DType::F32, &[2, 3], &[3, 1], &[0; 24]).is_ok());
    assert!(up(DType::F32, &[0, 3], &[3, 1], &[]).is_ok());
    for (shape, strides, bytes) in [
        (&[2, 3][..], &[3, 1][..], 23),
        (&[2, 3], &[4, 1], 24),
        (&[2, 3], &[-3, 1], 24),
        (&[2, 3], &[1], 24),
        (&[usize::MAX, 3], &[3, 1], 24),
    ] {
        let error = up(DType::F32, shape, strides, &vec![0; bytes]).unwrap_err();
        assert!(error.to_string().contains("expected"), "{error}");
    }
    let error = up(DType::Bool, &[2], &[1], &[1, 2]).unwrap_err();
    assert!(error.to_string().contains("found 2"), "{error}");
}

#[test]
fn a_captured_graph_computes_tensors_again_for_new_elements() {
    let Some(device) = any_context() else { return };
    let mut words = Words(6);
    let none = Attributes::new();
    let x = up(&device, words.tensor(DType::F64, &[4, 300], false));
    let other = up(&device, words.tensor(DType::F64, &[4, 300], false));
    let whole = up(&device, words.tensor(DType::I64, &[4, 1], false));
    let two = Attributes::from([("value", 2.into()), ("dtype", DType::I64.into())]);
    let axes = Attributes::new().with("axes", vec![1]);
    let flat = Attributes::new().with("shape", vec![-1]);
    let host = |x: &Tensor| {
        let two = evaluate(Operation::Constant, &[], &two).unwrap();
        let squares = evaluate(Operation::Pow, &[&whole.host, &two], &none).unwrap();
        let product = evaluate(Operation::Mul, &[x, &squares], &none).unwrap();
        let mean = evaluate(Operation::Mean, &[&product], &axes).unwrap();
        let flat = evaluate(Operation::Reshape, &[x], &flat).unwrap();
        [mean, flat]
    };
    let work = |inputs: &[fhelium_cuda::Tensor]| {
        let two = device.tensor(Operation::Constant, &[], &two)?;
        let squares = device.tensor(Operation::Pow, &[&whole.device, &two], &none)?;
        let product = device.tensor(Operation::Mul, &[&inputs[0], &squares], &none)?;
        let mean = device.tensor(Operation::Mean, &[&product], &axes)?;
        // A view of the input.
        let flat = device.tensor(Operation::Reshape, &[&inputs[0]], &flat)?;
        Ok::<_, CudaError>(vec![mean, flat])
    };
    let first = [x.device.clone()];
    work(&first).unwrap();
    let graph = device.capture(&first, work).unwrap();
    for input in [&x, &other] {
        let results = graph.replay(std::slice::from_ref(&input.device)).unwrap();
        for (host, device_result) in host(&input.host).into_iter().zip(results) {
            let pair = Pair {
                host,
                device: device_result,
            };
            same(&device, &"replayed", &pair, Tolerance::Exact);
        }
    }
    let refused = device.capture(std::slice::from_ref(&whole.device), |inputs| {
        let power = device.tensor(Operation::Pow, &[&inputs[0], &inputs[0]], &none)?;
        Ok::<_, CudaError>(vec![power])
    });
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("raise to a constant"), "{error}");
}
