//! One odd prime p < 2^61 and arithmetic modulo it.

use super::error::ArithError;
use super::primes;

/// An odd prime below 2^61 with its Barrett constants.
///
/// Operands called *residues* are canonical: in `[0, p)`. Debug builds check that; release builds
/// return an unspecified residue for operands outside the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Modulus {
    value: u64,
    /// Bit length of `value`.
    bits: u32,
    /// floor(2^(2 bits) / p): products of two residues (Handbook of Applied Cryptography, 14.42).
    product_factor: u64,
    /// floor((2^128 - 1) / p), high word first: any 128-bit number.
    wide_factor: [u64; 2],
}

impl Modulus {
    /// Moduli are below 2 to this power: lazy butterflies keep values below 4p, sums of residues
    /// fit in 62 bits.
    pub const MAX_BITS: u32 = 61;

    /// Takes an odd prime below 2^61.
    ///
    /// # Errors
    /// [`ArithError::ModulusTooLarge`] or [`ArithError::NotAnOddPrime`].
    pub fn new(value: u64) -> Result<Self, ArithError> {
        if value >> Self::MAX_BITS != 0 {
            return Err(ArithError::ModulusTooLarge { value });
        }
        if value < 3 || !primes::is_prime(value) {
            return Err(ArithError::NotAnOddPrime { value });
        }
        let bits = 64 - value.leading_zeros();
        let wide = u128::MAX / u128::from(value);
        Ok(Self {
            value,
            bits,
            product_factor: ((1u128 << (2 * bits)) / u128::from(value)) as u64,
            wide_factor: [(wide >> 64) as u64, wide as u64],
        })
    }

    /// The prime p.
    #[inline]
    pub const fn value(self) -> u64 {
        self.value
    }

    /// The bit length of p.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// a + b of two residues.
    #[inline]
    pub fn add(self, a: u64, b: u64) -> u64 {
        debug_assert!(a < self.value && b < self.value);
        let sum = a + b;
        sum.min(sum.wrapping_sub(self.value))
    }

    /// a - b of two residues.
    #[inline]
    pub fn sub(self, a: u64, b: u64) -> u64 {
        debug_assert!(a < self.value && b < self.value);
        let difference = a.wrapping_sub(b);
        difference.min(difference.wrapping_add(self.value))
    }

    /// -a of a residue.
    #[inline]
    pub fn neg(self, a: u64) -> u64 {
        self.sub(0, a)
    }

    /// a b of two residues.
    #[inline]
    pub fn mul(self, a: u64, b: u64) -> u64 {
        debug_assert!(a < self.value && b < self.value);
        let product = u128::from(a) * u128::from(b);
        let high = (product >> (self.bits - 1)) as u64;
        let quotient =
            ((u128::from(high) * u128::from(self.product_factor)) >> (self.bits + 1)) as u64;
        // The quotient is at most 2 too small.
        let r = (product as u64).wrapping_sub(quotient.wrapping_mul(self.value));
        let r = r.min(r.wrapping_sub(2 * self.value));
        r.min(r.wrapping_sub(self.value))
    }

    /// base^exponent of a residue; 0^0 is 1.
    pub fn pow(self, base: u64, mut exponent: u64) -> u64 {
        let (mut power, mut square) = (1, base);
        while exponent != 0 {
            if exponent & 1 == 1 {
                power = self.mul(power, square);
            }
            square = self.mul(square, square);
            exponent >>= 1;
        }
        power
    }

    /// 1 / a of a residue.
    ///
    /// # Errors
    /// [`ArithError::NotInvertible`] when a is 0.
    pub fn inverse(self, a: u64) -> Result<u64, ArithError> {
        match self.reduce(a) {
            0 => Err(ArithError::NotInvertible {
                value: a,
                modulus: self.value,
            }),
            residue => Ok(self.pow(residue, self.value - 2)),
        }
    }

    /// The residue of any 64-bit number.
    #[inline]
    pub fn reduce(self, a: u64) -> u64 {
        let quotient = ((u128::from(a) * u128::from(self.wide_factor[0])) >> 64) as u64;
        // The quotient is at most 1 too small.
        let r = a.wrapping_sub(quotient.wrapping_mul(self.value));
        r.min(r.wrapping_sub(self.value))
    }

    /// The residue of any 128-bit number.
    #[inline]
    pub fn reduce_u128(self, a: u128) -> u64 {
        let (high, low) = ((a >> 64) as u64, a as u64);
        let [factor_high, factor_low] = self.wide_factor.map(u128::from);
        let low_low = (u128::from(low) * factor_low) >> 64;
        let low_high = u128::from(low) * factor_high;
        let high_low = u128::from(high) * factor_low;
        let carry = (low_low + u128::from(low_high as u64) + u128::from(high_low as u64)) >> 64;
        // Only the low word of the quotient matters: the remainder is below 3p < 2^63.
        let quotient = (u128::from(high) * factor_high)
            .wrapping_add(low_high >> 64)
            .wrapping_add(high_low >> 64)
            .wrapping_add(carry) as u64;
        let r = low.wrapping_sub(quotient.wrapping_mul(self.value));
        let r = r.min(r.wrapping_sub(2 * self.value));
        r.min(r.wrapping_sub(self.value))
    }

    /// The residue of a signed number.
    #[inline]
    pub fn from_i64(self, a: i64) -> u64 {
        let magnitude = self.reduce(a.unsigned_abs());
        if a < 0 {
            self.neg(magnitude)
        } else {
            magnitude
        }
    }

    /// The exact residue of an integer-valued floating-point number of any magnitude.
    ///
    /// # Errors
    /// [`ArithError::NotAnInteger`] for a fraction, an infinity or a NaN.
    pub fn from_f64_integer(self, a: f64) -> Result<u64, ArithError> {
        if !a.is_finite() || a.trunc() != a {
            return Err(ArithError::NotAnInteger {
                value: a.to_string(),
                modulus: self.value,
            });
        }
        if a.abs() < 9.0e18 {
            return Ok(self.from_i64(a as i64));
        }
        // Beyond 2^62 the number is normal: a 53-bit mantissa times a power of two.
        let bits = a.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) - 1075;
        let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
        let magnitude = self.mul(self.reduce(mantissa), self.pow(self.reduce(2), exponent));
        Ok(if a < 0.0 {
            self.neg(magnitude)
        } else {
            magnitude
        })
    }

    /// The residue `a` as a signed number in (-p/2, p/2).
    #[inline]
    pub fn centered(self, a: u64) -> i64 {
        if a > self.value / 2 {
            a as i64 - self.value as i64
        } else {
            a as i64
        }
    }

    /// Shoup's constant floor(2^64 w / p) of a residue w, for [`mul_shoup`](Self::mul_shoup).
    #[inline]
    pub fn shoup(self, w: u64) -> u64 {
        debug_assert!(w < self.value);
        ((u128::from(w) << 64) / u128::from(self.value)) as u64
    }

    /// a w modulo p for any 64-bit a, where `w_shoup` is [`shoup(w)`](Self::shoup).
    #[inline]
    pub fn mul_shoup(self, a: u64, w: u64, w_shoup: u64) -> u64 {
        let r = self.mul_shoup_lazy(a, w, w_shoup);
        r.min(r.wrapping_sub(self.value))
    }

    /// As [`mul_shoup`](Self::mul_shoup), but in `[0, 2p)`.
    #[inline]
    pub(crate) fn mul_shoup_lazy(self, a: u64, w: u64, w_shoup: u64) -> u64 {
        let quotient = ((u128::from(a) * u128::from(w_shoup)) >> 64) as u64;
        a.wrapping_mul(w)
            .wrapping_sub(quotient.wrapping_mul(self.value))
    }
}
