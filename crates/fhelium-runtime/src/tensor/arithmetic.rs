//! Sums, products, quotients, negation and absolute values.

use super::Tensor;
use super::cast::to_type;
use super::complex;
use super::element::{Element, for_any, with_type};
use super::elementwise::{map, zip};
use fhelium_ir::DType;
use num_complex::Complex;
use std::ops::{Add, Mul, Neg, Sub};

/// What every element type can do, wrapping where integers overflow.
pub(super) trait Ring: Element {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn negated(self) -> Self;
}

macro_rules! ring {
    ($($type:ty),*: $plus:ident, $minus:ident, $times:path, $negated:ident) => {$(
        impl Ring for $type {
            fn plus(self, other: Self) -> Self { self.$plus(other) }
            fn minus(self, other: Self) -> Self { self.$minus(other) }
            fn times(self, other: Self) -> Self { $times(self, other) }
            fn negated(self) -> Self { self.$negated() }
        }
    )*};
}

ring!(i32: wrapping_add, wrapping_sub, i32::wrapping_mul, wrapping_neg);
ring!(i64: wrapping_add, wrapping_sub, i64::wrapping_mul, wrapping_neg);
ring!(f32, f64: add, sub, Mul::mul, neg);
ring!(Complex<f32>: add, sub, complex::multiply_f32, neg);
ring!(Complex<f64>: add, sub, complex::multiply, neg);

/// numpy's sums and products of booleans; the operation table refuses differences and negatives.
impl Ring for bool {
    fn plus(self, other: Self) -> Self {
        self | other
    }

    fn minus(self, other: Self) -> Self {
        self ^ other
    }

    fn times(self, other: Self) -> Self {
        self & other
    }

    fn negated(self) -> Self {
        self
    }
}

/// What numpy's true division of two equal types does.
trait Field: Element {
    fn over(self, other: Self) -> Self;
}

impl Field for f32 {
    fn over(self, other: Self) -> Self {
        self / other
    }
}

impl Field for f64 {
    fn over(self, other: Self) -> Self {
        self / other
    }
}

impl Field for Complex<f32> {
    fn over(self, other: Self) -> Self {
        complex::divide_f32(self, other)
    }
}

impl Field for Complex<f64> {
    fn over(self, other: Self) -> Self {
        complex::divide(self, other)
    }
}

/// `left + right`; of booleans, whether either holds.
pub(super) fn add(left: &Tensor, right: &Tensor, dtype: DType, shape: &[usize]) -> Tensor {
    with_type!(dtype, T => {
        zip(&to_type::<T>(left), &to_type::<T>(right), shape, Ring::plus).into()
    })
}

/// `left - right`.
pub(super) fn subtract(left: &Tensor, right: &Tensor, dtype: DType, shape: &[usize]) -> Tensor {
    with_type!(dtype, T => {
        zip(&to_type::<T>(left), &to_type::<T>(right), shape, Ring::minus).into()
    })
}

/// `left * right`; of booleans, whether both hold.
pub(super) fn multiply(left: &Tensor, right: &Tensor, dtype: DType, shape: &[usize]) -> Tensor {
    with_type!(dtype, T => {
        zip(&to_type::<T>(left), &to_type::<T>(right), shape, Ring::times).into()
    })
}

/// `left / right`, never of integers: those become `f64` first.
pub(super) fn divide(left: &Tensor, right: &Tensor, dtype: DType, shape: &[usize]) -> Tensor {
    fn quotient<T: Field>(left: &Tensor, right: &Tensor, shape: &[usize]) -> Tensor {
        zip(&to_type::<T>(left), &to_type::<T>(right), shape, T::over).into()
    }
    match dtype {
        DType::F32 => quotient::<f32>(left, right, shape),
        DType::C64 => quotient::<Complex<f32>>(left, right, shape),
        DType::C128 => quotient::<Complex<f64>>(left, right, shape),
        DType::F64 | DType::Bool | DType::I32 | DType::I64 => quotient::<f64>(left, right, shape),
    }
}

/// `-operand`.
pub(super) fn negate(operand: &Tensor) -> Tensor {
    for_any!(operand, array => map(array, Ring::negated).into())
}

/// Absolute values; of complex numbers, real ones. That of the least integer is itself.
pub(super) fn absolute(operand: &Tensor) -> Tensor {
    match operand {
        Tensor::Bool(_) => operand.clone(),
        Tensor::I32(array) => map(array, i32::wrapping_abs).into(),
        Tensor::I64(array) => map(array, i64::wrapping_abs).into(),
        Tensor::F32(array) => map(array, f32::abs).into(),
        Tensor::F64(array) => map(array, f64::abs).into(),
        Tensor::C64(array) => map(array, complex::absolute_f32).into(),
        Tensor::C128(array) => map(array, complex::absolute).into(),
    }
}

/// Real parts; of real numbers, the operand.
pub(super) fn real(operand: &Tensor) -> Tensor {
    match operand {
        Tensor::C64(array) => map(array, |z| z.re).into(),
        Tensor::C128(array) => map(array, |z| z.re).into(),
        real => real.clone(),
    }
}

/// Imaginary parts; of real numbers, zeros of their type.
pub(super) fn imaginary(operand: &Tensor) -> Tensor {
    match operand {
        Tensor::C64(array) => map(array, |z| z.im).into(),
        Tensor::C128(array) => map(array, |z| z.im).into(),
        Tensor::Bool(array) => map(array, |_| false).into(),
        Tensor::I32(array) => map(array, |_| 0i32).into(),
        Tensor::I64(array) => map(array, |_| 0i64).into(),
        Tensor::F32(array) => map(array, |_| 0f32).into(),
        Tensor::F64(array) => map(array, |_| 0f64).into(),
    }
}

/// Complex conjugates; of real numbers, the operand.
pub(super) fn conjugate(operand: &Tensor) -> Tensor {
    match operand {
        Tensor::C64(array) => map(array, |z| z.conj()).into(),
        Tensor::C128(array) => map(array, |z| z.conj()).into(),
        real => real.clone(),
    }
}
