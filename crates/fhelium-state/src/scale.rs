//! Exact scales.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The exact positive number by which a message is multiplied before it is rounded to integers.
///
/// A product multiplies scales and a rescale divides by a prime, so a scale is a power of two
/// times powers of odd factors: `2^80 * 1099511922689^-1`. It is kept in that form, exactly,
/// however deep the program; it is never a rounded float. `Display` shows it as `2^x` with at
/// most six decimals; [`Scale::exact`] and [`FromStr`] are the form without loss.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Scale {
    exponent_of_two: i128,
    /// Odd factors greater than one, ascending, with exponents that are not zero.
    factors: Vec<(u64, i128)>,
}

impl Scale {
    /// `2^bits`.
    pub fn from_bits(bits: u32) -> Self {
        Scale {
            exponent_of_two: i128::from(bits),
            factors: Vec::new(),
        }
    }

    /// The exact value of an integer.
    ///
    /// Returns `None` for zero.
    pub fn from_integer(value: u64) -> Option<Self> {
        if value == 0 {
            return None;
        }
        let twos = value.trailing_zeros();
        let odd = value >> twos;
        let factors = if odd == 1 { Vec::new() } else { vec![(odd, 1)] };
        Some(Scale {
            exponent_of_two: i128::from(twos),
            factors,
        })
    }

    /// The exact value of a positive finite float.
    ///
    /// Returns `None` for zero, negative numbers, infinities and NaN.
    pub fn from_f64(value: f64) -> Option<Self> {
        if !(value.is_finite() && value > 0.0) {
            return None;
        }
        let bits = value.to_bits();
        let biased = i128::from(bits >> 52);
        let fraction = bits & ((1 << 52) - 1);
        // A subnormal has no hidden bit and the exponent of the least normal number.
        let (mantissa, exponent) = if biased == 0 {
            (fraction, -1074)
        } else {
            (fraction | (1 << 52), biased - 1075)
        };
        let mut scale = Scale::from_integer(mantissa)?;
        scale.exponent_of_two += exponent;
        Some(scale)
    }

    /// The scale of a product.
    #[must_use]
    pub fn times(&self, other: &Scale) -> Scale {
        self.combine(other, 1)
    }

    /// This scale divided by another.
    #[must_use]
    pub fn over(&self, other: &Scale) -> Scale {
        self.combine(other, -1)
    }

    /// The scale after a rescale by `prime`.
    ///
    /// # Panics
    /// If `prime` is zero; a modulus never is.
    #[must_use]
    pub fn over_prime(&self, prime: u64) -> Scale {
        self.over(&Scale::from_integer(prime).expect("a modulus is not zero"))
    }

    fn combine(&self, other: &Scale, sign: i128) -> Scale {
        // Exponents only double with each unrescaled square; a chain has at most a few hundred
        // levels, and an exponent that left i128 would have left every modulus long before.
        let add = |a: i128, b: i128| a.saturating_add(b.saturating_mul(sign));
        let mut factors = Vec::with_capacity(self.factors.len() + other.factors.len());
        let (mut left, mut right) = (
            self.factors.iter().peekable(),
            other.factors.iter().peekable(),
        );
        loop {
            let (factor, exponent) = match (left.peek(), right.peek()) {
                (Some(&&(l, a)), Some(&&(r, b))) => match l.cmp(&r) {
                    Ordering::Less => {
                        left.next();
                        (l, a)
                    }
                    Ordering::Greater => {
                        right.next();
                        (r, add(0, b))
                    }
                    Ordering::Equal => {
                        left.next();
                        right.next();
                        (l, add(a, b))
                    }
                },
                (Some(&&(l, a)), None) => {
                    left.next();
                    (l, a)
                }
                (None, Some(&&(r, b))) => {
                    right.next();
                    (r, add(0, b))
                }
                (None, None) => break,
            };
            if exponent != 0 {
                factors.push((factor, exponent));
            }
        }
        Scale {
            exponent_of_two: add(self.exponent_of_two, other.exponent_of_two),
            factors,
        }
    }

    /// The binary logarithm as a whole part and a rest.
    ///
    /// A prime close to a power of two keeps its small distance from it exactly in the rest, so
    /// that exponents in the millions, which deep squarings make, do not drown it.
    fn log2_parts(&self) -> (i128, f64) {
        let mut whole = self.exponent_of_two;
        let mut rest = 0.0;
        for &(factor, exponent) in &self.factors {
            let bits = (factor as f64).log2().round() as u32;
            let power = 1u128 << bits;
            let distance = (i128::from(factor) - power as i128) as f64 / power as f64;
            whole = whole.saturating_add(exponent.saturating_mul(i128::from(bits)));
            rest += exponent as f64 * distance.ln_1p() / std::f64::consts::LN_2;
        }
        (whole, rest)
    }

    /// The binary logarithm.
    pub fn log2(&self) -> f64 {
        let (whole, rest) = self.log2_parts();
        whole as f64 + rest
    }

    /// The nearest float; infinite or zero where it leaves the range of floats.
    pub fn to_f64(&self) -> f64 {
        // An integer scale, the usual case, is exact.
        if self.factors.is_empty() {
            return exp2_int(1.0, self.exponent_of_two);
        }
        if let [(factor, 1)] = self.factors[..] {
            return exp2_int(factor as f64, self.exponent_of_two);
        }
        let (whole, rest) = self.log2_parts();
        let floor = rest.floor();
        exp2_int((rest - floor).exp2(), whole.saturating_add(floor as i128))
    }

    /// A power of two if the scale is one.
    pub fn as_power_of_two(&self) -> Option<i128> {
        self.factors.is_empty().then_some(self.exponent_of_two)
    }

    /// `log2(self / other)`, zero exactly when the two are the same.
    pub fn log2_ratio(&self, other: &Scale) -> f64 {
        self.over(other).log2()
    }

    /// Whether the two differ by at most the factor `1 + tolerance`.
    pub fn is_close(&self, other: &Scale, tolerance: f64) -> bool {
        self == other || self.log2_ratio(other).abs() <= tolerance.ln_1p() / std::f64::consts::LN_2
    }

    /// The larger of two; the left one where they are equal.
    #[must_use]
    pub fn max<'a>(&'a self, other: &'a Scale) -> &'a Scale {
        let ratio = other.log2_ratio(self);
        // Where the difference is below the logarithm's rounding, the text decides, so that the
        // choice does not depend on the order of the operands.
        if ratio > 0.0 || (ratio == 0.0 && other.exact() > self.exact()) {
            other
        } else {
            self
        }
    }

    /// The text without loss: `2^80*1099511922689^-1`.
    pub fn exact(&self) -> String {
        let mut text = format!("2^{}", self.exponent_of_two);
        for (factor, exponent) in &self.factors {
            text.push_str(&format!("*{factor}"));
            if *exponent != 1 {
                text.push_str(&format!("^{exponent}"));
            }
        }
        text
    }
}

/// `value * 2^exponent` without an intermediate overflow or a double rounding of normal results.
fn exp2_int(value: f64, exponent: i128) -> f64 {
    let mut exponent = exponent.clamp(-3000, 3000) as i32;
    let mut value = value;
    while exponent > 1000 {
        value *= 2f64.powi(1000);
        exponent -= 1000;
    }
    while exponent < -1000 {
        value *= 2f64.powi(-1000);
        exponent += 1000;
    }
    value * 2f64.powi(exponent)
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = self.log2_parts();
        if rest == 0.0 {
            return write!(f, "2^{whole}");
        }
        let log = whole as f64 + rest;
        let text = format!("{log:.6}");
        let short = text.trim_end_matches('0').trim_end_matches('.');
        // A scale that is not a power of two must not look like one.
        if short.contains('.') {
            write!(f, "2^{short}")
        } else {
            // The fraction may lie just below a whole number: both are told from the nearest.
            let nearest = rest.round();
            let whole = whole.saturating_add(nearest as i128);
            write!(f, "2^{whole}{:+.1e}", rest - nearest)
        }
    }
}

impl fmt::Debug for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.exact())
    }
}

/// Text that is no exact scale.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{found:?} is no scale: expected powers joined by '*', such as 2^80*1099511922689^-1")]
pub struct ParseScaleError {
    found: String,
}

impl FromStr for Scale {
    type Err = ParseScaleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || ParseScaleError {
            found: text.chars().take(80).collect(),
        };
        let mut scale = Scale::from_bits(0);
        for power in text.split('*') {
            let (base, exponent) = power.trim().split_once('^').unwrap_or((power.trim(), "1"));
            let base = base
                .trim()
                .parse()
                .ok()
                .and_then(Scale::from_integer)
                .ok_or_else(bad)?;
            let exponent: i128 = exponent.trim().parse().map_err(|_| bad())?;
            if exponent.unsigned_abs() > 1 << 100 {
                return Err(bad());
            }
            scale = scale.combine(&base, exponent);
        }
        Ok(scale)
    }
}
