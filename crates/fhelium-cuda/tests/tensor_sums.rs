//! Guards that sums of clear tensors on a device add in the CPU's order, bit for bit, and that matrix
//! products are within the bound that is stated.

mod contexts;
mod tensors;

use contexts::any_context;
use fhelium_cuda::Context;
use fhelium_ir::{Attributes, DType, Tensor as Operation};
use fhelium_runtime::tensor::{Tensor, evaluate};
use tensors::{Pair, Tolerance, Words, parts, run, same, up};

/// Lengths around those at which a leaf, a tree or a buffer ends.
#[test]
fn sums_add_in_the_order_of_the_cpu() {
    let Some(device) = any_context() else { return };
    let mut words = Words(3);
    let all = Attributes::new();
    let lengths = [
        1, 2, 7, 8, 9, 63, 65, 127, 128, 129, 143, 144, 145, 1000, 8192, 8193, 40_001,
    ];
    for length in lengths {
        for dtype in [DType::F32, DType::F64, DType::C64, DType::C128, DType::I64] {
            let x = up(&device, words.tensor(dtype, &[length], false));
            for operation in [Operation::Sum, Operation::Mean] {
                let result = run(&device, operation, &[&x], &all).unwrap();
                same(
                    &device,
                    &(operation, dtype, length),
                    &result,
                    Tolerance::Exact,
                );
            }
        }
    }
    // More leaves than a block's threads, so that blocks' sums are added too.
    let x = up(&device, words.tensor(DType::F64, &[100_003], false));
    let result = run(&device, Operation::Sum, &[&x], &all).unwrap();
    same(&device, &"two levels of blocks", &result, Tolerance::Exact);
}

#[test]
fn sums_over_any_axes_of_any_view_add_in_the_order_of_the_cpu() {
    let Some(device) = any_context() else { return };
    let mut words = Words(4);
    let shapes: [&[usize]; 6] = [
        &[300, 7],
        &[7, 300],
        &[3, 130, 5],
        &[2, 9, 200],
        &[2, 3, 4, 5],
        &[0, 3],
    ];
    for shape in shapes {
        for dtype in [DType::F32, DType::F64, DType::C128, DType::Bool, DType::I32] {
            let x = up(&device, words.tensor(dtype, shape, false));
            let views = [x.clone(), transposed(&device, &x), thinned(&device, &x)];
            for view in &views {
                let rank = shape.len();
                for mask in 0..1usize << rank {
                    let axes: Vec<i64> = (0..rank as i64)
                        .filter(|axis| mask >> axis & 1 == 1)
                        .collect();
                    let attributes = Attributes::new()
                        .with("axes", axes)
                        .with("keepdims", mask % 2 == 0);
                    let operation = [Operation::Sum, Operation::Mean][mask / 2 % 2];
                    let result = run(&device, operation, &[view], &attributes).unwrap();
                    let what = (operation, dtype, shape, &attributes);
                    same(&device, &what, &result, Tolerance::Exact);
                }
            }
        }
    }
    // Axes that memory does not join, of more elements than numpy's buffer: three to a run, the
    // last run short, and rows longer than the buffer.
    for (shape, kept) in [([100, 2, 2500], 2450), ([3, 2, 9000], 8500)] {
        let x = up(&device, words.tensor(DType::F64, &shape, false));
        let sizes: Vec<i64> = vec![shape[0] as i64, 2, kept];
        let attributes = Attributes::from([
            ("starts", vec![0, 0, 1].into()),
            ("sizes", sizes.into()),
            ("steps", vec![1, 1, 1].into()),
        ]);
        let view = run(&device, Operation::Slice, &[&x], &attributes).unwrap();
        for axes in [vec![0, 1, 2], vec![0, 2], vec![1, 2]] {
            let attributes = Attributes::new().with("axes", axes);
            let result = run(&device, Operation::Sum, &[&view], &attributes).unwrap();
            same(&device, &(shape, &attributes), &result, Tolerance::Exact);
        }
    }
}

fn transposed(device: &Context, x: &Pair) -> Pair {
    run(device, Operation::Transpose, &[x], &Attributes::new()).unwrap()
}

/// Every other element of each axis, backwards.
fn thinned(device: &Context, x: &Pair) -> Pair {
    let shape = x.host.shape();
    let sizes: Vec<i64> = shape
        .iter()
        .map(|&extent| extent.div_ceil(2) as i64)
        .collect();
    let starts: Vec<i64> = shape.iter().map(|&extent| extent as i64 - 1).collect();
    let attributes = Attributes::from([
        ("starts", starts.into()),
        ("sizes", sizes.into()),
        ("steps", vec![-2; shape.len()].into()),
    ]);
    run(device, Operation::Slice, &[x], &attributes).unwrap()
}

#[test]
fn products_of_matrices_are_within_the_bound_and_of_integers_equal() {
    let Some(device) = any_context() else { return };
    let mut words = Words(5);
    let none = Attributes::new();
    let shapes: [(&[usize], &[usize]); 9] = [
        (&[3], &[3]),
        (&[17, 5], &[5]),
        (&[5], &[5, 18]),
        (&[20, 33], &[33, 17]),
        (&[2, 1, 4, 3], &[5, 3, 2]),
        (&[3, 700], &[700, 2]),
        (&[2, 0], &[0, 3]),
        (&[0, 2], &[2, 3]),
        (&[2, 3], &[4, 2]),
    ];
    for (left, right) in shapes {
        for dtype in DType::ALL {
            let x = up(&device, words.tensor(dtype, left, false));
            let y = up(&device, words.tensor(dtype, right, false));
            let Some(result) = run(&device, Operation::Matmul, &[&x, &y], &none) else {
                continue;
            };
            if matches!(dtype, DType::Bool | DType::I32 | DType::I64) {
                same(&device, &(left, right, dtype), &result, Tolerance::Exact);
                continue;
            }
            let abs = |x: &Pair| evaluate(Operation::Abs, &[&x.host], &none).unwrap();
            let bound = evaluate(Operation::Matmul, &[&abs(&x), &abs(&y)], &none).unwrap();
            let to = Attributes::new().with("dtype", DType::F64);
            let bound = evaluate(Operation::Cast, &[&bound], &to)
                .unwrap()
                .to_vec::<f64>();
            let epsilon = match dtype {
                DType::F32 | DType::C64 => f64::from(f32::EPSILON),
                _ => f64::EPSILON,
            };
            let expected = result.host.to_contiguous();
            let found = device.download_tensor(&result.device).unwrap();
            let (expected, found) = (
                parts(dtype, expected.bytes().unwrap()),
                parts(dtype, &found),
            );
            let width = expected.len() / bound.len().max(1);
            let inner = left[left.len() - 1] as f64;
            for (at, (a, b)) in expected.iter().zip(&found).enumerate() {
                let allowed = 2.0 * inner * epsilon * bound[at / width];
                assert!(
                    (a - b).abs() <= allowed,
                    "{left:?} {right:?} {dtype}: {a} and {b}"
                );
            }
        }
    }
    // What is beyond the inner length is not multiplied: infinities stay what they are.
    let x = up(
        &device,
        Tensor::from_vec(vec![f64::INFINITY, 1.0], &[1, 2]).unwrap(),
    );
    let y = up(&device, Tensor::from_vec(vec![2.0, 3.0], &[2, 1]).unwrap());
    let result = run(&device, Operation::Matmul, &[&x, &y], &none).unwrap();
    same(&device, &"infinity", &result, Tolerance::Exact);
}
