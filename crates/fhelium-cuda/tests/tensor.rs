//! Guards that clear tensors on a device are the CPU's: the same elements, in the same order in
//! memory, with the same refusals, for every operation, element type, shape and view.

mod host;

use fhelium_cuda::{Context, ContextOptions, CudaError, Device};
use fhelium_ir::layout::{inverse_order, memory_order, row_major};
use fhelium_ir::{Attribute, Attributes, DType, Tensor as Operation};
use fhelium_runtime::tensor::{Tensor, evaluate};
use num_complex::Complex;

/// A stream of words (S. Vigna, "SplitMix64").
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Mostly moderate; where `special`, sometimes an end of the range or no number.
    fn float(&mut self, special: bool) -> f64 {
        const SPECIAL: [f64; 12] = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            2.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            1e300,
            -1e-300,
            750.0,
        ];
        match self.below(12) {
            0 if special => SPECIAL[self.below(SPECIAL.len())],
            1 => self.below(7) as f64 - 3.0,
            _ => (self.next() >> 11) as f64 / (1u64 << 53) as f64 * 6.0 - 3.0,
        }
    }

    fn integer(&mut self) -> i64 {
        match self.below(16) {
            0 => i64::MIN,
            1 => i64::MAX,
            2 => self.next() as i64,
            _ => self.below(9) as i64 - 3,
        }
    }

    fn tensor(&mut self, dtype: DType, shape: &[usize], special: bool) -> Tensor {
        let count: usize = shape.iter().product();
        macro_rules! filled {
            ($make:expr) => {
                Tensor::from_vec((0..count).map(|_| $make).collect(), shape).unwrap()
            };
        }
        match dtype {
            DType::Bool => filled!(self.below(2) == 1),
            DType::I32 => filled!(self.integer() as i32),
            DType::I64 => filled!(self.integer()),
            DType::F32 => filled!(self.float(special) as f32),
            DType::F64 => filled!(self.float(special)),
            DType::C64 => {
                filled!(Complex::new(
                    self.float(special) as f32,
                    self.float(special) as f32
                ))
            }
            DType::C128 => filled!(Complex::new(self.float(special), self.float(special))),
        }
    }
}

/// The same tensor on the host and a device.
#[derive(Clone, Debug)]
struct Pair {
    host: Tensor,
    device: fhelium_cuda::Tensor,
}

/// `None` in a build without kernels.
fn device() -> Option<Context> {
    if fhelium_cuda::built_targets().is_empty() {
        eprintln!("skipped: built without kernels (FHELIUM_CUDA=off)");
        return None;
    }
    host::device();
    let parameters = fhelium_ckks::Parameters::builder(1, 40)
        .log_n(10)
        .allow_insecure(true)
        .build()
        .unwrap();
    let host = fhelium_ckks::Context::new(&parameters, Default::default()).unwrap();
    let device = Device::open(0).unwrap();
    Some(Context::new(&host, &device, ContextOptions::default()).unwrap())
}

/// The host's tensor with its order in memory.
fn up(device: &Context, host: Tensor) -> Pair {
    let order = memory_order(host.shape(), &[host.strides()]);
    let axes = order.iter().map(|&axis| axis as i64).collect::<Vec<_>>();
    let axes = Attributes::new().with("axes", axes);
    let dense = evaluate(Operation::Transpose, &[&host], &axes).unwrap();
    let dense = dense.to_contiguous();
    let places = row_major(dense.shape());
    let strides: Vec<isize> = inverse_order(&order).iter().map(|&at| places[at]).collect();
    let device = device
        .upload_tensor(host.dtype(), host.shape(), &strides, dense.bytes().unwrap())
        .unwrap();
    Pair { host, device }
}

fn run(
    device: &Context,
    operation: Operation,
    operands: &[&Pair],
    attributes: &Attributes,
) -> Option<Pair> {
    let host: Vec<&Tensor> = operands.iter().map(|pair| &pair.host).collect();
    let on_device: Vec<_> = operands.iter().map(|pair| &pair.device).collect();
    let host = evaluate(operation, &host, attributes);
    let on_device = device.tensor(operation, &on_device, attributes);
    match (host, on_device) {
        (Ok(host), Ok(device)) => Some(Pair { host, device }),
        (Err(host), Err(device)) => {
            assert_eq!(host.to_string(), device.to_string());
            assert_eq!(host.kind(), device.kind());
            None
        }
        (host, device) => panic!("{operation:?} {attributes:?}: {host:?} and {device:?}"),
    }
}

/// How far an element may be from the host's.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tolerance {
    Exact,
    /// Units in the last place of the type.
    Ulps(f64),
}

/// The real numbers in an element type's bytes, exactly.
fn parts(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    let singles = |bytes: &[u8]| -> Vec<f64> {
        let words = bytes.as_chunks::<4>().0.iter();
        words.map(|&word| f32::from_ne_bytes(word).into()).collect()
    };
    let doubles = |bytes: &[u8]| -> Vec<f64> {
        let words = bytes.as_chunks::<8>().0.iter();
        words.map(|&word| f64::from_ne_bytes(word)).collect()
    };
    match dtype {
        DType::F32 | DType::C64 => singles(bytes),
        DType::F64 | DType::C128 => doubles(bytes),
        _ => unreachable!("integers are exact"),
    }
}

#[track_caller]
fn same(device: &Context, what: &dyn std::fmt::Debug, pair: &Pair, tolerance: Tolerance) {
    let (host, on_device) = (&pair.host, &pair.device);
    assert_eq!(host.dtype(), on_device.dtype(), "{what:?}");
    assert_eq!(host.shape(), on_device.shape(), "{what:?}");
    let order = |strides: &[isize]| memory_order(host.shape(), &[strides]);
    assert_eq!(
        order(host.strides()),
        order(on_device.strides()),
        "{what:?}"
    );
    let expected = host.to_contiguous();
    let expected = expected.bytes().unwrap();
    let found = device.download_tensor(on_device).unwrap();
    let dtype = host.dtype();
    if matches!(dtype, DType::Bool | DType::I32 | DType::I64) {
        assert!(expected == found, "{what:?}: {host:?}");
        return;
    }
    let (expected, found) = (parts(dtype, expected), parts(dtype, &found));
    let width = if dtype.is_complex() { 2 } else { 1 };
    let epsilon = match dtype {
        DType::F32 | DType::C64 => f64::from(f32::EPSILON),
        _ => f64::EPSILON,
    };
    let tiny = match dtype {
        DType::F32 | DType::C64 => f64::from(f32::from_bits(1)),
        _ => f64::from_bits(1),
    };
    for (at, (a, b)) in expected
        .chunks_exact(width)
        .zip(found.chunks_exact(width))
        .enumerate()
    {
        let magnitude = a.iter().fold(0f64, |m, x| m.max(x.abs()));
        for (x, y) in a.iter().zip(b) {
            let fits = x.to_bits() == y.to_bits()
                || x.is_nan() && y.is_nan()
                || matches!(tolerance, Tolerance::Ulps(ulps)
                    if (x - y).abs() <= ulps * epsilon * magnitude + ulps * tiny);
            assert!(fits, "{what:?}, element {at}: {a:?} and {b:?}");
        }
    }
}

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
    let Some(device) = device() else { return };
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
    let Some(device) = device() else { return };
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
    let Some(device) = device() else { return };
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

/// Lengths around those at which a leaf, a tree or a buffer ends.
#[test]
fn sums_add_in_the_order_of_the_cpu() {
    let Some(device) = device() else { return };
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
    let Some(device) = device() else { return };
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
    let Some(device) = device() else { return };
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
    let Some(device) = device() else { return };
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
    let Some(device) = device() else { return };
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
    let Some(device) = device() else { return };
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
