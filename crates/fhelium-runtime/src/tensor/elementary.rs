//! exp, log, sqrt, sin, cos and tanh.
//!
//! Real functions come from `pxfm`, whose results are the true values correctly rounded: the same
//! on every machine, and within 1 ulp of any other good implementation.

use super::cast::cast;
use super::elementwise::map;
use super::{Tensor, complex};
use num_complex::Complex;

/// A function of each element, in `f32`, `f64` and complex numbers; other types become `f64`.
struct Function {
    f32: fn(f32) -> f32,
    f64: fn(f64) -> f64,
    complex: fn(Complex<f64>) -> Complex<f64>,
}

impl Function {
    fn of(&self, operand: &Tensor) -> Tensor {
        match &cast(operand, operand.dtype().to_inexact()) {
            Tensor::F32(array) => map(array, self.f32).into(),
            Tensor::F64(array) => map(array, self.f64).into(),
            Tensor::C128(array) => map(array, self.complex).into(),
            // Twice the digits, rounded once.
            Tensor::C64(array) => map(array, |z| narrow((self.complex)(widen(z)))).into(),
            other => other.clone(),
        }
    }
}

/// The number with parts of 64 bits.
pub(super) fn widen(z: Complex<f32>) -> Complex<f64> {
    Complex::new(z.re.into(), z.im.into())
}

/// The number with parts rounded to 32 bits.
pub(super) fn narrow(z: Complex<f64>) -> Complex<f32> {
    Complex::new(z.re as f32, z.im as f32)
}

/// `e^operand`.
pub(super) fn exp(operand: &Tensor) -> Tensor {
    Function {
        f32: pxfm::f_expf,
        f64: pxfm::f_exp,
        complex: complex::exp,
    }
    .of(operand)
}

/// Natural logarithms; NaN of negative reals, minus infinity of zeros.
pub(super) fn log(operand: &Tensor) -> Tensor {
    Function {
        f32: pxfm::f_logf,
        f64: pxfm::f_log,
        complex: complex::ln,
    }
    .of(operand)
}

/// Square roots; NaN of negative reals.
pub(super) fn sqrt(operand: &Tensor) -> Tensor {
    Function {
        f32: f32::sqrt,
        f64: f64::sqrt,
        complex: complex::sqrt,
    }
    .of(operand)
}

/// Sines.
pub(super) fn sin(operand: &Tensor) -> Tensor {
    Function {
        f32: pxfm::f_sinf,
        f64: pxfm::f_sin,
        complex: complex::sin,
    }
    .of(operand)
}

/// Cosines.
pub(super) fn cos(operand: &Tensor) -> Tensor {
    Function {
        f32: pxfm::f_cosf,
        f64: pxfm::f_cos,
        complex: complex::cos,
    }
    .of(operand)
}

/// Hyperbolic tangents.
pub(super) fn tanh(operand: &Tensor) -> Tensor {
    Function {
        f32: pxfm::f_tanhf,
        f64: pxfm::f_tanh,
        complex: complex::tanh,
    }
    .of(operand)
}
