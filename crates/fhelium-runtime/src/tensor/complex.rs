//! Functions of complex numbers, with the special values of C's annex G, which numpy follows.

use num_complex::Complex;
use std::f64::consts::LN_2;

type C128 = Complex<f64>;

/// Arguments beyond which the exponential may leave the range of `f64`, and from which on the
/// hyperbolic functions are half of it to the last bit.
const LARGE: f64 = 700.0;

macro_rules! basic {
    ($float:ty, $multiply:ident, $divide:ident, $absolute:ident, $reciprocal:ident) => {
        /// The product, each part with one rounding of its last product and sum together.
        pub(super) fn $multiply(a: Complex<$float>, b: Complex<$float>) -> Complex<$float> {
            Complex::new(
                a.re.mul_add(b.re, -(a.im * b.im)),
                a.re.mul_add(b.im, a.im * b.re),
            )
        }

        /// The quotient by Smith's method (R. L. Smith, "Algorithm 116", CACM 1962).
        pub(super) fn $divide(a: Complex<$float>, b: Complex<$float>) -> Complex<$float> {
            let (re, im) = (b.re.abs(), b.im.abs());
            if re >= im {
                if re == 0.0 && im == 0.0 {
                    return Complex::new(a.re / re, a.im / re);
                }
                let ratio = b.im / b.re;
                let scale = 1.0 / (b.re + b.im * ratio);
                Complex::new((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale)
            } else {
                let ratio = b.re / b.im;
                let scale = 1.0 / (b.im + b.re * ratio);
                Complex::new((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale)
            }
        }

        /// `1 / z` by Smith's method.
        pub(super) fn $reciprocal(z: Complex<$float>) -> Complex<$float> {
            if z.im.abs() <= z.re.abs() {
                let ratio = z.im / z.re;
                let scale = z.re + z.im * ratio;
                Complex::new(1.0 / scale, -ratio / scale)
            } else {
                let ratio = z.re / z.im;
                let scale = z.re * ratio + z.im;
                Complex::new(ratio / scale, -1.0 / scale)
            }
        }

        /// The magnitude, as numpy's vector loop computes it: larger part times the root of one
        /// plus the squared ratio.
        pub(super) fn $absolute(z: Complex<$float>) -> $float {
            let (re, im) = (z.re.abs(), z.im.abs());
            if re.is_infinite() || im.is_infinite() {
                return <$float>::INFINITY;
            }
            if re.is_nan() || im.is_nan() {
                return <$float>::NAN;
            }
            let (larger, smaller) = if re > im { (re, im) } else { (im, re) };
            if larger == 0.0 {
                return 0.0;
            }
            let ratio = smaller / larger;
            ratio.mul_add(ratio, 1.0).sqrt() * larger
        }
    };
}

basic!(f64, multiply, divide, absolute, reciprocal);
basic!(f32, multiply_f32, divide_f32, absolute_f32, reciprocal_f32);

/// `e^z`.
pub(super) fn exp(z: C128) -> C128 {
    if z.im == 0.0 {
        return C128::new(pxfm::f_exp(z.re), z.im);
    }
    if !z.im.is_finite() {
        return match z.re {
            re if re == f64::INFINITY => C128::new(re, f64::NAN),
            re if re == f64::NEG_INFINITY => C128::new(0.0, 0.0),
            _ => C128::new(f64::NAN, f64::NAN),
        };
    }
    let (sin, cos) = pxfm::f_sincos(z.im);
    if z.re.is_finite() && z.re > LARGE {
        return scaled_exp(z.re, C128::new(cos, sin));
    }
    let magnitude = pxfm::f_exp(z.re);
    C128::new(magnitude * cos, magnitude * sin)
}

/// `e^x w` for a large `x` whose exponential alone may overflow.
fn scaled_exp(x: f64, w: C128) -> C128 {
    // The part below is small enough not to overflow, and is multiplied first.
    let (first, rest) = (pxfm::f_exp(LARGE), pxfm::f_exp(x - LARGE));
    C128::new(first * (rest * w.re), first * (rest * w.im))
}

/// The principal natural logarithm.
pub(super) fn ln(z: C128) -> C128 {
    C128::new(
        ln_absolute(z.re.abs(), z.im.abs()),
        pxfm::f_atan2(z.im, z.re),
    )
}

/// `ln |z|` from the parts' magnitudes.
fn ln_absolute(re: f64, im: f64) -> f64 {
    if re.is_infinite() || im.is_infinite() {
        return f64::INFINITY;
    }
    if re.is_nan() || im.is_nan() {
        return f64::NAN;
    }
    let (larger, smaller) = if re > im { (re, im) } else { (im, re) };
    if smaller == 0.0 {
        return pxfm::f_log(larger);
    }
    if !(1e-140..1e140).contains(&larger) {
        // By powers of two, so that the squares stay in range and nothing is rounded.
        let shift = if larger < 1.0 { 512.0 } else { -512.0 };
        let scale = f64::exp2(shift);
        return ln_absolute(larger * scale, smaller * scale) - shift * LN_2;
    }
    let square = larger * larger;
    let lesser = smaller * smaller;
    let norm = square + lesser;
    if !(0.5..3.0).contains(&norm) {
        return 0.5 * pxfm::f_log(norm);
    }
    // Near the unit circle the logarithm is small: |z|^2 - 1 from exact squares and sums.
    let square_error = larger.mul_add(larger, -square);
    let lesser_error = smaller.mul_add(smaller, -lesser);
    let (sum, sum_error) = two_sum(square, lesser);
    let (excess, excess_error) = two_sum(sum, -1.0);
    let (tail, tail_error) = two_sum(square_error, lesser_error);
    let (low, low_error) = two_sum(sum_error, tail);
    let (high, high_error) = two_sum(excess, low);
    let rest = excess_error + high_error + low_error + tail_error;
    0.5 * pxfm::f_log1p(high + rest)
}

/// A sum and the error of its rounding, exactly (D. E. Knuth, TAOCP 4.2.2, theorem B).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// The principal square root.
pub(super) fn sqrt(z: C128) -> C128 {
    if z.im.is_infinite() {
        return C128::new(f64::INFINITY, z.im);
    }
    if z.re.is_infinite() {
        let other = if z.im.is_nan() {
            z.im
        } else {
            0f64.copysign(z.im)
        };
        return if z.re > 0.0 {
            C128::new(z.re, other)
        } else {
            C128::new(other.abs(), f64::INFINITY.copysign(z.im))
        };
    }
    if z.re.is_nan() || z.im.is_nan() {
        return C128::new(f64::NAN, f64::NAN);
    }
    if z.im == 0.0 {
        let root = z.re.abs().sqrt();
        return if z.re < 0.0 {
            C128::new(0.0, root.copysign(z.im))
        } else {
            C128::new(root, z.im)
        };
    }
    // The sum of magnitudes must neither overflow nor lose bits below the normal range.
    let larger = z.re.abs().max(z.im.abs());
    if larger > 1e300 {
        return sqrt(z * 0.0625) * 4.0;
    }
    if larger < 1e-290 {
        let up = f64::exp2(108.0);
        return sqrt(z * up) * f64::exp2(-54.0);
    }
    let half = 0.5 * pxfm::f_hypot(z.re, z.im) + 0.5 * z.re.abs();
    let root = half.sqrt();
    let other = 0.5 * (z.im.abs() / root);
    if z.re >= 0.0 {
        C128::new(root, other.copysign(z.im))
    } else {
        C128::new(other, root.copysign(z.im))
    }
}

/// The hyperbolic sine.
fn sinh(z: C128) -> C128 {
    if z.im == 0.0 {
        return C128::new(pxfm::f_sinh(z.re), z.im);
    }
    if !z.im.is_finite() {
        return if z.re == 0.0 || z.re.is_infinite() {
            C128::new(z.re, f64::NAN)
        } else {
            C128::new(f64::NAN, f64::NAN)
        };
    }
    let (sin, cos) = pxfm::f_sincos(z.im);
    if z.re.is_finite() && z.re.abs() > LARGE {
        let sign = 1f64.copysign(z.re);
        return scaled_exp(z.re.abs(), C128::new(0.5 * sign * cos, 0.5 * sin));
    }
    C128::new(pxfm::f_sinh(z.re) * cos, pxfm::f_cosh(z.re) * sin)
}

/// The hyperbolic cosine.
fn cosh(z: C128) -> C128 {
    if z.im == 0.0 {
        let im = if z.re.is_nan() {
            z.im
        } else {
            z.im * 1f64.copysign(z.re)
        };
        return C128::new(pxfm::f_cosh(z.re), im);
    }
    if !z.im.is_finite() {
        return match z.re {
            0.0 => C128::new(f64::NAN, z.re),
            re if re.is_infinite() => C128::new(f64::INFINITY, f64::NAN),
            _ => C128::new(f64::NAN, f64::NAN),
        };
    }
    let (sin, cos) = pxfm::f_sincos(z.im);
    if z.re.is_finite() && z.re.abs() > LARGE {
        let sign = 1f64.copysign(z.re);
        return scaled_exp(z.re.abs(), C128::new(0.5 * cos, 0.5 * sign * sin));
    }
    C128::new(pxfm::f_cosh(z.re) * cos, pxfm::f_sinh(z.re) * sin)
}

/// The sine.
pub(super) fn sin(z: C128) -> C128 {
    let turned = sinh(C128::new(-z.im, z.re));
    C128::new(turned.im, -turned.re)
}

/// The cosine.
pub(super) fn cos(z: C128) -> C128 {
    cosh(C128::new(-z.im, z.re))
}

/// The hyperbolic tangent.
pub(super) fn tanh(z: C128) -> C128 {
    if z.re.is_infinite() {
        let sign = if z.im.is_finite() {
            let (sin, cos) = pxfm::f_sincos(z.im);
            sin * cos
        } else {
            z.im
        };
        return C128::new(1f64.copysign(z.re), 0f64.copysign(sign));
    }
    if z.re.is_nan() {
        return C128::new(z.re, if z.im == 0.0 { z.im } else { f64::NAN });
    }
    if !z.im.is_finite() {
        return C128::new(if z.re == 0.0 { z.re } else { f64::NAN }, f64::NAN);
    }
    let (sin, cos) = pxfm::f_sincos(z.im);
    // From 22 on, tanh is 1 to the last bit, and the squares below could overflow.
    if z.re.abs() > 22.0 {
        let decay = pxfm::f_exp(-2.0 * z.re.abs());
        return C128::new(1f64.copysign(z.re), 4.0 * sin * cos * decay);
    }
    let (sinh, cosh) = (pxfm::f_sinh(z.re), pxfm::f_cosh(z.re));
    let norm = sinh.mul_add(sinh, cos * cos);
    C128::new(sinh * cosh / norm, sin * cos / norm)
}
