//! One value for every slot, without a transform.

use super::Complex64;
use super::rounding::ExactScale;
use crate::arith::{Limb, primes};
use crate::buffers::Buffer;
use crate::context::Context;
use crate::error::Result;
use fhelium_state::Scale;

impl Context {
    /// For each limb of a level the two residues that the polynomial round(re scale) + round(im
    /// scale) X^(N/2), which every slot sees as re + i im, takes in the transform domain: one in the
    /// first half of the limb, the other in the second.
    ///
    /// At psi^e it is A + B psi^(e N/2), and psi^(e N/2) is a square root of -1 whose sign depends on
    /// e modulo 4; the exponents of the first half of a limb are 1 modulo 4, those of the second half
    /// 3.
    ///
    /// # Errors
    /// None for a level of these parameters.
    pub fn constant_residues(
        &self,
        value: Complex64,
        level: usize,
        scale: &Scale,
    ) -> Result<Vec<[u64; 2]>> {
        let n = self.n() as u64;
        let scale = ExactScale::new(scale);
        let residues = |ring: &Limb| {
            let modulus = ring.modulus();
            let real = scale.residue(value.re, modulus);
            let root = modulus.pow(primes::primitive_root(modulus, 2 * n)?, n / 2);
            let imaginary = modulus.mul(scale.residue(value.im, modulus), root);
            Ok([modulus.add(real, imaginary), modulus.sub(real, imaginary)])
        };
        self.limbs()[..=level].iter().map(residues).collect()
    }

    /// The limbs of that polynomial.
    pub(super) fn constant(&self, value: Complex64, level: usize, scale: &Scale) -> Result<Buffer> {
        let n = self.n();
        let mut data = self.buffer((level + 1) * n);
        let residues = self.constant_residues(value, level, scale)?;
        for (limb, [first, second]) in data.chunks_exact_mut(n).zip(residues) {
            limb[..n / 2].fill(first);
            limb[n / 2..].fill(second);
        }
        Ok(data)
    }
}
