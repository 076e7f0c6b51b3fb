//! Powers.

use super::arithmetic::Ring;
use super::cast::to_type;
use super::complex;
use super::element::Element;
use super::elementary::{narrow, widen};
use super::elementwise::{map, zip};
use super::{Tensor, TensorError};
use fhelium_ir::DType;
use num_complex::Complex;

/// Complex numbers are raised to whole exponents below this magnitude by multiplication.
const MULTIPLIED: f64 = 100.0;

/// `base ** exponent`; wrapping of integers.
///
/// As with numpy's operator, an exponent without axes that is 2, -1 or 1/2 squares, inverts or
/// takes the root. The operation table refuses booleans.
pub(super) fn power(
    base: &Tensor,
    exponent: &Tensor,
    dtype: DType,
    shape: &[usize],
) -> Result<Tensor, TensorError> {
    match dtype {
        DType::Bool | DType::I32 => whole::<i32>(base, exponent, shape, wrapping_power_i32),
        DType::I64 => whole::<i64>(base, exponent, shape, wrapping_power),
        DType::F32 => Ok(inexact::<f32>(base, exponent, shape)),
        DType::F64 => Ok(inexact::<f64>(base, exponent, shape)),
        DType::C64 => Ok(inexact::<Complex<f32>>(base, exponent, shape)),
        DType::C128 => Ok(inexact::<Complex<f64>>(base, exponent, shape)),
    }
}

fn whole<T: Element + Into<i64>>(
    base: &Tensor,
    exponent: &Tensor,
    shape: &[usize],
    power: fn(T, T) -> T,
) -> Result<Tensor, TensorError> {
    let exponent = to_type::<T>(exponent);
    match exponent
        .iter()
        .map(|&exponent| exponent.into())
        .find(|&exponent: &i64| exponent < 0)
    {
        Some(exponent) => Err(TensorError::NegativePower { exponent }),
        None => Ok(zip(&to_type::<T>(base), &exponent, shape, power).into()),
    }
}

fn wrapping_power_i32(base: i32, exponent: i32) -> i32 {
    base.wrapping_pow(exponent as u32)
}

/// An integer to a non-negative exponent, which may be longer than `wrapping_pow` takes.
fn wrapping_power(mut base: i64, mut exponent: i64) -> i64 {
    let mut result = 1i64;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    result
}

fn inexact<T: Power>(base: &Tensor, exponent: &Tensor, shape: &[usize]) -> Tensor {
    let (base, exponent) = (to_type::<T>(base), to_type::<T>(exponent));
    let alone = exponent.first().filter(|_| exponent.ndim() == 0);
    match alone.and_then(|exponent| exponent.special()) {
        Some(special) => map(&base, special).into(),
        None => zip(&base, &exponent, shape, T::power).into(),
    }
}

/// A type with powers of fractional exponents.
trait Power: Element {
    /// The function that replaces this exponent.
    fn special(&self) -> Option<fn(Self) -> Self>;

    fn power(self, exponent: Self) -> Self;
}

macro_rules! real_power {
    ($float:ty, $power:expr) => {
        impl Power for $float {
            fn special(&self) -> Option<fn(Self) -> Self> {
                match *self {
                    2.0 => Some(|x| x * x),
                    -1.0 => Some(<$float>::recip),
                    0.5 => Some(<$float>::sqrt),
                    _ => None,
                }
            }

            fn power(self, exponent: Self) -> Self {
                $power(self, exponent)
            }
        }
    };
}

// The platform's function: correctly rounded ones cost ten times as much.
real_power!(f64, f64::powf);
// Twice the digits, rounded once.
real_power!(
    f32,
    |base: f32, exponent: f32| f64::from(base).powf(exponent.into()) as f32
);

macro_rules! complex_power {
    ($float:ty, $reciprocal:path, $divide:path, $root:expr, $general:expr) => {
        impl Power for Complex<$float> {
            fn special(&self) -> Option<fn(Self) -> Self> {
                match (self.re, self.im) {
                    (2.0, 0.0) => Some(|z| z.times(z)),
                    (-1.0, 0.0) => Some($reciprocal),
                    (0.5, 0.0) => Some($root),
                    _ => None,
                }
            }

            fn power(self, exponent: Self) -> Self {
                let one = Complex::new(1.0, 0.0);
                if exponent.re == 0.0 && exponent.im == 0.0 {
                    return one;
                }
                if self.re == 0.0 && self.im == 0.0 {
                    return if exponent.re > 0.0 {
                        Complex::new(0.0, 0.0)
                    } else {
                        Complex::new(<$float>::NAN, <$float>::NAN)
                    };
                }
                let few = f64::from(exponent.re).abs() < MULTIPLIED;
                if exponent.im != 0.0 || exponent.re.fract() != 0.0 || !few {
                    return $general(self, exponent);
                }
                // By repeated squaring without fused products, as numpy does it: from one, which
                // decides signs of zeros, unless two products suffice.
                let product = match exponent.re.abs() as u32 {
                    1 => self,
                    2 => self * self,
                    3 => self * (self * self),
                    mut left => {
                        let (mut product, mut square) = (one, self);
                        loop {
                            if left & 1 == 1 {
                                product *= square;
                            }
                            left >>= 1;
                            if left == 0 {
                                break product;
                            }
                            square *= square;
                        }
                    }
                };
                if exponent.re < 0.0 {
                    $divide(one, product)
                } else {
                    product
                }
            }
        }
    };
}

complex_power!(
    f64,
    complex::reciprocal,
    complex::divide,
    complex::sqrt,
    general_power
);
complex_power!(
    f32,
    complex::reciprocal_f32,
    complex::divide_f32,
    |z| narrow(complex::sqrt(widen(z))),
    |base, exponent| narrow(general_power(widen(base), widen(exponent)))
);

/// `e^(exponent ln base)`.
fn general_power(base: Complex<f64>, exponent: Complex<f64>) -> Complex<f64> {
    complex::exp(exponent * complex::ln(base))
}
