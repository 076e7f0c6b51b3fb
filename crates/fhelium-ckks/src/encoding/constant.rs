//! One value for every slot, without a transform.

use super::Complex64;
use super::rounding::ExactScale;
use crate::arith::primes;
use crate::buffers::Buffer;
use crate::context::Context;
use crate::error::Result;
use fhelium_state::Scale;

impl Context {
    /// The residues of round(re scale) + round(im scale) X^(N/2), which every slot sees as re + i im.
    ///
    /// In the transform domain that polynomial takes two values: at psi^e it is A + B psi^(e N/2),
    /// and psi^(e N/2) is a square root of -1 whose sign depends on e modulo 4; the exponents of the
    /// first half of a limb are 1 modulo 4, those of the second half 3.
    pub(super) fn constant_residues(
        &self,
        value: Complex64,
        level: usize,
        scale: &Scale,
    ) -> Result<Buffer> {
        let n = self.n();
        let scale = ExactScale::new(scale);
        let mut data = self.buffer((level + 1) * n);
        for (limb, ring) in data.chunks_exact_mut(n).zip(self.limbs()) {
            let modulus = ring.modulus();
            let real = scale.residue(value.re, modulus);
            let root = modulus.pow(primes::primitive_root(modulus, 2 * n as u64)?, n as u64 / 2);
            let imaginary = modulus.mul(scale.residue(value.im, modulus), root);
            let (first, second) = limb.split_at_mut(n / 2);
            first.fill(modulus.add(real, imaginary));
            second.fill(modulus.sub(real, imaginary));
        }
        Ok(data)
    }
}
