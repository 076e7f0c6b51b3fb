//! Residues to the real coefficients that they stand for.

use super::rounding::ExactScale;
use crate::arith::Modulus;
use crate::context::Context;
use crate::values::{Plaintext, batch_size};

/// Coefficients lifted as one task.
const CHUNK: usize = 1024;

impl Context {
    /// The coefficients of a plaintext's polynomials over its scale: (batch, N).
    pub(super) fn coefficients(&self, plaintext: &Plaintext) -> Vec<f64> {
        let (n, limbs) = (self.n(), plaintext.state.level + 1);
        let mut data = plaintext.data.clone();
        self.each_limb(&mut data, |index, limb| {
            self.limbs()[index % limbs].inverse(limb)
        });
        let moduli: Vec<Modulus> = self.limbs()[..limbs].iter().map(|l| l.modulus()).collect();
        let scale = ExactScale::new(&plaintext.state.scale);
        // A message within [-1, 1] and its noise stay below twice the scale.
        let lift = Lift::new(&moduli, plaintext.state.scale.log2() + 2.0);
        let mut coefficients = vec![0.0; batch_size(&plaintext.batch_shape) * n];
        let chunk = CHUNK.min(n);
        let tasks = coefficients.chunks_exact_mut(chunk).enumerate().collect();
        self.each(tasks, |(task, out): (usize, &mut [f64])| {
            let (item, start) = (task * chunk / n, task * chunk % n);
            let limb = |i: usize| &data[(item * limbs + i) * n + start..][..chunk];
            let residues: Vec<&[u64]> = (0..limbs).map(limb).collect();
            let mut small = [0; CHUNK];
            if lift.centred_small(&residues, &mut small[..chunk]) {
                scale.divide_integers(&small[..chunk], out);
                return;
            }
            for (k, value) in out.iter_mut().enumerate() {
                let (mantissa, exponent) = lift.centred(&residues, k);
                *value = scale.divide(mantissa, exponent);
            }
        });
        coefficients
    }
}

/// The centred lift modulo a product of primes, to floats.
pub(crate) struct Lift<'a> {
    moduli: &'a [Modulus],
    /// How many of the first primes hold the coefficients that are expected: the others only confirm
    /// them, which takes one reduction each instead of a multi-word reconstruction.
    expected: usize,
    /// (q_0 ... q_(i-1))^-1 modulo q_i.
    inverses: Vec<u64>,
    /// The product of all primes, little-endian.
    product: Vec<u64>,
}

impl<'a> Lift<'a> {
    /// Prepares lifts of coefficients that are mostly below 2^`expected_bits`.
    pub fn new(moduli: &'a [Modulus], expected_bits: f64) -> Self {
        let inverse = |(i, q): (usize, &Modulus)| {
            let product = moduli[..i]
                .iter()
                .fold(1, |product, p| q.mul(product, q.reduce(p.value())));
            q.inverse(product).expect("parameters hold distinct primes")
        };
        let mut product = vec![1];
        for modulus in moduli {
            multiply_add(&mut product, modulus.value(), 0);
        }
        let mut bits = -1.0;
        let expected = moduli.iter().take_while(|q| {
            let short = bits < expected_bits;
            bits += (q.value() as f64).log2();
            short
        });
        Lift {
            moduli,
            expected: expected.count().max(1),
            inverses: moduli.iter().enumerate().map(inverse).collect(),
            product,
        }
    }

    /// The integers with these residues if the first prime holds them all, as it usually does; false
    /// and nothing of use otherwise.
    pub fn centred_small(&self, residues: &[&[u64]], out: &mut [i64]) -> bool {
        if self.expected > 1 {
            return false;
        }
        for (value, &residue) in out.iter_mut().zip(residues[0]) {
            *value = self.moduli[0].centered(residue);
        }
        self.moduli
            .iter()
            .zip(residues)
            .skip(1)
            .all(|(q, residues)| {
                // Without a branch for each: all are compared.
                let compare = |differ, (&value, &residue)| differ | (q.from_i64(value) ^ residue);
                out.iter().zip(*residues).fold(0, compare) == 0
            })
    }

    /// The integer in (-Q/2, Q/2) with these residues, as m * 2^e rounded once to a float m.
    pub fn centred(&self, residues: &[&[u64]], k: usize) -> (f64, i32) {
        if self.expected == 2 {
            let small = self.centred_pair(residues[0][k], residues[1][k]);
            let confirmed = self
                .moduli
                .iter()
                .zip(residues)
                .skip(2)
                .all(|(q, residues)| {
                    let magnitude = q.reduce_u128(small.unsigned_abs());
                    let residue = if small < 0 {
                        q.neg(magnitude)
                    } else {
                        magnitude
                    };
                    residue == residues[k]
                });
            if confirmed {
                return (small as f64, 0);
            }
        }
        self.centred_words(residues, k)
    }

    fn centred_pair(&self, first: u64, second: u64) -> i128 {
        let q = self.moduli[1];
        let digit = q.mul(q.sub(second, q.reduce(first)), self.inverses[1]);
        let value = i128::from(first) + i128::from(digit) * i128::from(self.moduli[0].value());
        let product = i128::from(self.moduli[0].value()) * i128::from(q.value());
        if value > product / 2 {
            value - product
        } else {
            value
        }
    }

    /// Garner's mixed-radix reconstruction in words.
    fn centred_words(&self, residues: &[&[u64]], k: usize) -> (f64, i32) {
        // x = d_0 + q_0 (d_1 + q_1 (d_2 + ...)).
        let mut digits: Vec<u64> = Vec::with_capacity(self.moduli.len());
        for (i, q) in self.moduli.iter().enumerate() {
            let known = digits
                .iter()
                .zip(self.moduli)
                .rev()
                .fold(0, |sum, (&digit, radix)| {
                    q.add(q.mul(sum, q.reduce(radix.value())), q.reduce(digit))
                });
            digits.push(q.mul(q.sub(residues[i][k], known), self.inverses[i]));
        }
        let mut words = vec![0];
        for (&digit, radix) in digits.iter().zip(self.moduli).rev() {
            multiply_add(&mut words, radix.value(), digit);
        }
        words.resize(self.product.len(), 0);
        let negated = subtract(&self.product, &words);
        let negative = words.iter().rev().gt(negated.iter().rev());
        let (mantissa, exponent) = to_float(if negative { &negated } else { &words });
        (if negative { -mantissa } else { mantissa }, exponent)
    }
}

/// words = words * factor + addend.
fn multiply_add(words: &mut Vec<u64>, factor: u64, addend: u64) {
    let mut carry = addend;
    for word in words.iter_mut() {
        let wide = u128::from(*word) * u128::from(factor) + u128::from(carry);
        (*word, carry) = (wide as u64, (wide >> 64) as u64);
    }
    if carry > 0 {
        words.push(carry);
    }
}

/// a - b for a >= b of one length.
fn subtract(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut borrow = false;
    a.iter()
        .zip(b)
        .map(|(&a, &b)| {
            let (difference, first) = a.overflowing_sub(b);
            let (difference, second) = difference.overflowing_sub(u64::from(borrow));
            borrow = first || second;
            difference
        })
        .collect()
}

/// The value of little-endian words as m * 2^e, rounded once.
fn to_float(words: &[u64]) -> (f64, i32) {
    let Some(top) = words.iter().rposition(|&word| word != 0) else {
        return (0.0, 0);
    };
    let word = |below: usize| top.checked_sub(below).map_or(0, |index| words[index]);
    let shift = word(0).leading_zeros();
    let mut leading = ((u128::from(word(0)) << 64 | u128::from(word(1))) << shift >> 64) as u64;
    // What is cut off only matters for a tie.
    let cut = (word(1) << shift) != 0 || words[..top.saturating_sub(1)].iter().any(|&w| w != 0);
    leading |= u64::from(cut);
    (leading as f64, 64 * top as i32 - shift as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::{BigInt, BigUint};
    use num_traits::ToPrimitive;
    use proptest::prelude::*;

    const PRIMES: [u64; 4] = [1_048_583, (1 << 40) + 15, (1 << 49) + 69, (1 << 61) - 1];

    proptest! {
        /// Values near zero, near the ends of the range and anywhere; every count of expected primes.
        #[test]
        fn lifts_are_exact(
            words in prop::collection::vec(any::<u64>(), 4),
            shrink in 0u32..200,
            negative in any::<bool>(),
            expected_bits in 0.0f64..200.0,
            count in 1usize..=4,
        ) {
            let moduli: Vec<Modulus> =
                PRIMES[..count].iter().map(|&p| Modulus::new(p).unwrap()).collect();
            let product: BigInt = PRIMES[..count].iter().map(|&p| BigInt::from(p)).product();
            let magnitude = BigInt::from(BigUint::from_slice(
                &words.iter().flat_map(|&w| [w as u32, (w >> 32) as u32]).collect::<Vec<_>>(),
            ));
            let half: BigInt = (&product - 1) / 2;
            let magnitude: BigInt = (magnitude % (&half + 1)) >> shrink as usize;
            let value = if negative { -magnitude } else { magnitude };
            let residues: Vec<[u64; 1]> = PRIMES[..count]
                .iter()
                .map(|&p| {
                    let p = BigInt::from(p);
                    [u64::try_from(((&value % &p) + &p) % &p).unwrap()]
                })
                .collect();
            let limbs: Vec<&[u64]> = residues.iter().map(|limb| &limb[..]).collect();
            let lift = Lift::new(&moduli, expected_bits);
            let mut small = [0];
            if lift.centred_small(&limbs, &mut small) {
                prop_assert_eq!(BigInt::from(small[0]), value.clone());
            }
            let (mantissa, exponent) = lift.centred(&limbs, 0);
            let found = mantissa * 2f64.powi(exponent);
            prop_assert_eq!(found, value.to_f64().unwrap());
        }
    }
}
