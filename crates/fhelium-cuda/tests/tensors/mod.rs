//! The same tensors on the host and a device, and how far they may differ.

// Each test program uses its part of this.
#![allow(dead_code)]

#[path = "../words/mod.rs"]
mod words;

pub use words::Words;

use fhelium_cuda::Context;
use fhelium_ir::layout::{inverse_order, memory_order, row_major};
use fhelium_ir::{Attributes, DType, Tensor as Operation};
use fhelium_runtime::tensor::{Tensor, evaluate};
use num_complex::Complex;

impl Words {
    /// Mostly moderate; where `special`, sometimes an end of the range or no number.
    pub fn float(&mut self, special: bool) -> f64 {
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

    pub fn integer(&mut self) -> i64 {
        match self.below(16) {
            0 => i64::MIN,
            1 => i64::MAX,
            2 => self.next() as i64,
            _ => self.below(9) as i64 - 3,
        }
    }

    pub fn tensor(&mut self, dtype: DType, shape: &[usize], special: bool) -> Tensor {
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
pub struct Pair {
    pub host: Tensor,
    pub device: fhelium_cuda::Tensor,
}

/// The host's tensor with its order in memory.
pub fn up(device: &Context, host: Tensor) -> Pair {
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

pub fn run(
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
pub enum Tolerance {
    Exact,
    /// Units in the last place of the type.
    Ulps(f64),
}

/// The real numbers in an element type's bytes, exactly.
pub fn parts(dtype: DType, bytes: &[u8]) -> Vec<f64> {
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
pub fn same(device: &Context, what: &dyn std::fmt::Debug, pair: &Pair, tolerance: Tolerance) {
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
