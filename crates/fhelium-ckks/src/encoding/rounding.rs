//! Real coefficients to the residues of the nearest integers, at scales of any size.

use crate::arith::{Limb, Modulus};
use fhelium_state::Scale;

/// A scale as a mantissa in [1, 2) and a power of two: a scale of thousands of bits, which deep
/// unrescaled products reach, fits no float.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExactScale {
    mantissa: f64,
    exponent: i32,
}

/// Coefficients times a scale's mantissa, to be rounded after its power of two.
pub(crate) struct Rounded<'a> {
    coefficients: &'a [f64],
    exponent: i32,
    /// The largest magnitude among the coefficients.
    largest: f64,
    as_floats: bool,
}

/// Integers below this are rounded as floats: the limit of [`Limb::round_into`].
const FLOAT_LIMIT: f64 = (1u64 << 62) as f64;

impl ExactScale {
    /// Splits a scale that the level rules allow.
    pub fn new(scale: &Scale) -> Self {
        // A checked scale is at least 1, and below a modulus of a few thousand bits.
        let exponent = scale.log2().floor().max(0.0) as u32;
        ExactScale {
            mantissa: scale.over(&Scale::from_bits(exponent)).to_f64(),
            exponent: exponent as i32,
        }
    }

    /// 2^`log2` for a number from 0 to a few thousand.
    pub(crate) fn from_log2(log2: f64) -> Self {
        ExactScale {
            mantissa: (log2 - log2.floor()).exp2(),
            exponent: log2.floor() as i32,
        }
    }

    /// The mantissa, in [1, 2).
    pub fn mantissa(&self) -> f64 {
        self.mantissa
    }

    /// The power of two.
    pub fn exponent(&self) -> i32 {
        self.exponent
    }

    /// Whether values up to this magnitude, once multiplied by the mantissa, are rounded as floats:
    /// their integers are below 2^62. Beyond, an integer is the 53-bit mantissa of its value times a
    /// power of two, which is as exact.
    pub fn rounds_as_floats(&self, largest: f64) -> bool {
        self.exponent <= 1000 && times_power_of_two(largest, self.exponent) < FLOAT_LIMIT
    }

    /// Multiplies by the mantissa, which [`round`](Self::round) expects.
    pub(crate) fn apply(&self, coefficients: &mut [f64]) {
        for coefficient in coefficients {
            *coefficient *= self.mantissa;
        }
    }

    pub(crate) fn round<'a>(&self, coefficients: &'a [f64]) -> Rounded<'a> {
        let largest = coefficients
            .iter()
            .fold(0.0f64, |max, value| max.max(value.abs()));
        Rounded {
            coefficients,
            exponent: self.exponent,
            largest,
            as_floats: self.rounds_as_floats(largest),
        }
    }

    /// The residue of the integer nearest to value * scale.
    pub(crate) fn residue(&self, value: f64, modulus: Modulus) -> u64 {
        let power = |shift: u32| modulus.pow(2, u64::from(shift));
        exact_residue(value * self.mantissa, self.exponent, modulus, power)
    }

    /// Each value over the scale.
    pub(crate) fn divide_integers(&self, values: &[i64], out: &mut [f64]) {
        if self.exponent > 1000 {
            for (out, &value) in out.iter_mut().zip(values) {
                *out = self.divide(value as f64, 0);
            }
            return;
        }
        let power = 2f64.powi(-self.exponent);
        for (out, &value) in out.iter_mut().zip(values) {
            *out = value as f64 / self.mantissa * power;
        }
    }

    /// value * 2^exponent / scale.
    pub(crate) fn divide(&self, value: f64, exponent: i32) -> f64 {
        times_power_of_two(value / self.mantissa, exponent - self.exponent)
    }
}

impl Rounded<'_> {
    /// The residues of the integers nearest to coefficient * 2^exponent; ties go to even.
    pub fn residues(&self, ring: &Limb, out: &mut [u64]) {
        if self.as_floats {
            ring.round_into(out, self.coefficients, 2f64.powi(self.exponent));
            return;
        }
        let modulus = ring.modulus();
        let shifts = Float::of(self.largest).exponent + self.exponent;
        let doubled = |&power: &u64| Some(modulus.add(power, power));
        let powers: Vec<u64> = std::iter::successors(Some(1), doubled)
            .take(shifts.max(0) as usize + 1)
            .collect();
        for (residue, &value) in out.iter_mut().zip(self.coefficients) {
            *residue = exact_residue(value, self.exponent, modulus, |shift| {
                powers[shift as usize]
            });
        }
    }
}

/// A float as an integer mantissa below 2^53, a power of two and a sign.
struct Float {
    mantissa: u64,
    exponent: i32,
    negative: bool,
}

impl Float {
    fn of(value: f64) -> Self {
        let bits = value.to_bits();
        let (biased, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        // A subnormal has no hidden bit and the exponent of the least normal number.
        let (mantissa, exponent) = if biased == 0 {
            (fraction, -1074)
        } else {
            (fraction | 1 << 52, biased - 1075)
        };
        Float {
            mantissa,
            exponent,
            negative: bits >> 63 == 1,
        }
    }
}

/// The residue of the integer nearest to value * 2^exponent; `power(s)` is 2^s modulo the prime.
fn exact_residue(value: f64, exponent: i32, modulus: Modulus, power: impl Fn(u32) -> u64) -> u64 {
    let float = Float::of(value);
    let shift = float.exponent + exponent;
    if shift < 0 {
        // Below 2^53: a float holds the fraction as well.
        return modulus.from_i64(times_power_of_two(value, exponent).round_ties_even() as i64);
    }
    let magnitude = modulus.mul(modulus.reduce(float.mantissa), power(shift as u32));
    if float.negative {
        modulus.neg(magnitude)
    } else {
        magnitude
    }
}

/// value * 2^exponent, rounded once unless the result is subnormal.
fn times_power_of_two(value: f64, exponent: i32) -> f64 {
    let (mut value, mut exponent) = (value, exponent);
    while exponent.abs() > 1000 && value != 0.0 && value.is_finite() {
        let step = exponent.clamp(-1000, 1000);
        value *= 2f64.powi(step);
        exponent -= step;
    }
    value * 2f64.powi(exponent.clamp(-1000, 1000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arith::{Tier, primes};
    use num_bigint::BigInt;
    use proptest::prelude::*;

    /// round(value * 2^exponent), ties to even, in integers only.
    fn nearest(value: f64, exponent: i32) -> BigInt {
        let float = Float::of(value);
        let shift = float.exponent + exponent;
        let mantissa = BigInt::from(float.mantissa);
        let magnitude = if shift >= 0 {
            mantissa << shift as usize
        } else {
            let unit = BigInt::from(1) << (-shift) as usize;
            let (quotient, rest) = (&mantissa / &unit, &mantissa % &unit);
            let twice = rest * 2;
            let up = twice > unit || (twice == unit && &quotient % 2 == BigInt::from(1));
            quotient + BigInt::from(u8::from(up))
        };
        if float.negative {
            -magnitude
        } else {
            magnitude
        }
    }

    fn modulo(value: &BigInt, p: u64) -> u64 {
        let p = BigInt::from(p);
        u64::try_from(((value % &p) + &p) % &p).unwrap()
    }

    proptest! {
        /// Past 2^63, where a cast would lose the constant, and below.
        #[test]
        fn residues_are_those_of_the_nearest_integers(
            values in prop::collection::vec(-1e6f64..1e6, 1..8),
            tiny in any::<f64>().prop_filter("subnormal or small", |v| v.abs() < 1.0),
            bits in 0u32..1200,
            tier in prop::sample::select(Tier::available()),
            near in prop::sample::select(vec![40_000u64, 1 << 40, (1 << 61) - 1]),
        ) {
            let p = primes::primes_below(near, 9).next().unwrap();
            let ring = Limb::new(256, p, tier).unwrap();
            let mut values = values;
            values.push(tiny);
            let scale = ExactScale::new(&Scale::from_bits(bits));
            let mut out = vec![0; values.len()];
            scale.round(&values).residues(&ring, &mut out);
            for (&residue, &value) in out.iter().zip(&values) {
                let expected = modulo(&nearest(value, bits as i32), p);
                prop_assert_eq!(residue, expected, "{} * 2^{}", value, bits);
                prop_assert_eq!(scale.residue(value, ring.modulus()), expected);
            }
        }
    }
}
