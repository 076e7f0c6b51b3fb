//! One residue at a time: Barrett products, Shoup constants, 128-bit sums.

use crate::arith::field::{Field, ROUND};
use crate::arith::modulus::Modulus;

/// The scalar core's view of one prime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScalarField {
    pub modulus: Modulus,
}

impl Field<1> for ScalarField {
    type Vector = u64;
    type Constant = [u64; 2];
    type Term = u64;
    type Sum = u128;
    type Real = f64;
    type Other = [u64; 2];

    // One residue and 63 products below 2^122 stay below 2^128.
    const SUM_TERMS: usize = 63;

    #[inline(always)]
    fn load(self, residues: &[u64; 1]) -> u64 {
        residues[0]
    }

    #[inline(always)]
    fn store(self, a: u64, residues: &mut [u64; 1]) {
        residues[0] = a;
    }

    #[inline(always)]
    fn constant(self, w: u64) -> [u64; 2] {
        [w, self.modulus.shoup(w)]
    }

    #[inline(always)]
    fn splat(self, w: u64) -> u64 {
        w
    }

    #[inline(always)]
    fn add(self, a: u64, b: u64) -> u64 {
        self.modulus.add(a, b)
    }

    #[inline(always)]
    fn sub(self, a: u64, b: u64) -> u64 {
        self.modulus.sub(a, b)
    }

    #[inline(always)]
    fn mul(self, a: u64, b: u64) -> u64 {
        self.modulus.mul(a, b)
    }

    #[inline(always)]
    fn mul_constant(self, a: u64, [w, w_shoup]: [u64; 2]) -> u64 {
        self.modulus.mul_shoup(a, w, w_shoup)
    }

    #[inline(always)]
    fn term(self, a: u64) -> u64 {
        a
    }

    #[inline(always)]
    fn sum(self, first: u64) -> u128 {
        u128::from(first)
    }

    #[inline(always)]
    fn accumulate(self, sum: u128, a: u64, b: u64) -> u128 {
        sum + u128::from(a) * u128::from(b)
    }

    #[inline(always)]
    fn fold(self, sum: u128) -> u128 {
        u128::from(self.finish(sum))
    }

    #[inline(always)]
    fn finish(self, sum: u128) -> u64 {
        self.modulus.reduce_u128(sum)
    }

    #[inline(always)]
    fn term_bits(self, w: u64) -> u64 {
        w
    }

    #[inline(always)]
    fn splat_term(self, bits: u64) -> u64 {
        bits
    }

    #[inline(always)]
    fn load_term(self, bits: &[u64; 1]) -> u64 {
        bits[0]
    }

    #[inline(always)]
    fn store_term(self, a: u64, bits: &mut [u64; 1]) {
        bits[0] = a;
    }

    #[inline(always)]
    fn zero_real(self) -> f64 {
        0.0
    }

    #[inline(always)]
    fn load_real(self, bits: &[u64; 1]) -> f64 {
        f64::from_bits(bits[0])
    }

    #[inline(always)]
    fn store_real(self, a: f64, bits: &mut [u64; 1]) {
        bits[0] = a.to_bits();
    }

    #[inline(always)]
    fn add_quotient(self, sum: f64, a: u64, factor: f64) -> f64 {
        sum + a as f64 * factor
    }

    #[inline(always)]
    fn round_to_term(self, a: f64) -> u64 {
        ((a + ROUND) - ROUND) as u64
    }

    #[inline(always)]
    fn round(self, a: &[f64; 1], factor: f64) -> u64 {
        self.modulus
            .from_i64((a[0] * factor).round_ties_even() as i64)
    }

    #[inline(always)]
    fn gather(self, src: &[u64], &[index]: &[u32; 1]) -> Option<u64> {
        src.get(index as usize).copied()
    }

    #[inline(always)]
    fn other(self, q: Modulus) -> [u64; 2] {
        [q.value() / 2, self.modulus.reduce(q.value())]
    }

    #[inline(always)]
    fn center(self, a: u64, [half, q]: [u64; 2]) -> u64 {
        let residue = self.modulus.reduce(a);
        self.modulus.sub(residue, if a > half { q } else { 0 })
    }
}
