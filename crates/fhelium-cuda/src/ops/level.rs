//! Rescale and level drop.

use super::Pair;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::{Basis, Combination, Operand, PassB, Rescale};
use crate::values::Ciphertext;

impl Context {
    /// Divides by the level's prime, rounded to the nearest: one level less, the scale divided
    /// exactly.
    ///
    /// # Errors
    /// The level and scale rules': no level left, or a scale that is rescaled already; a ciphertext
    /// of other parameters or another device, and the device's.
    pub fn rescale(&self, ciphertext: &Ciphertext) -> Result<Ciphertext> {
        self.check_parameters("rescale", "ciphertext", ciphertext.parameters)?;
        let state = ciphertext.state.rescale(self.parameters().chain())?;
        let (level, limbs, parts) = (ciphertext.state.level, state.level + 1, state.parts);
        let polynomials = ciphertext.items() * parts;
        self.check_rows("rescale", polynomials)?;
        let _turn = self.queue().lock()?;
        let joined = self.join("rescale", &[("ciphertext", &ciphertext.data)])?;
        let (n, log_n) = (self.n(), self.parameters().log_n());
        let result = self.result(ciphertext.secret, state, ciphertext.batch_shape.clone())?;
        let source = self.polynomials(ciphertext);
        let last = self.queue().allocate(polynomials * n)?;
        let moved = self.queue().allocate(polynomials * limbs * n)?;
        let basis = Basis {
            first: level as u32,
            split: 1,
            skip: 0,
            limbs: 1,
        };
        let primes = self.tables().primes();
        let pass_b = PassB {
            primes,
            source: source.words((level * n) as u64).data,
            factor: 0,
            target: last.address(),
            source_stride: source.part_stride,
            factor_stride: 0,
            target_stride: n as u64,
            basis,
            log_n,
            polynomials: polynomials as u32,
        };
        let target = self.polynomials(&result);
        let rescale = Rescale {
            primes,
            scales: self.tables().plain_scales(),
            closing: self.tables().rescale(level),
            dropped: last.address(),
            moved: moved.address(),
            operand: source,
            target: target.data,
            target_batch_stride: target.batch_stride,
            target_part_stride: target.part_stride,
            log_n,
            limbs: limbs as u32,
            parts: parts as u32,
            polynomials: polynomials as u32,
            chunk: 0,
            unused: 0,
        };
        let (queue, kernels) = (self.queue(), self.kernels());
        // SAFETY: `last` holds one limb of each polynomial, `moved` and the result all limbs but
        // that; the operand's strides are its own.
        unsafe {
            kernels.inverse_b(queue, &pass_b)?;
            kernels.rescale(queue, &rescale)?;
        }
        joined.leave()?;
        Ok(result)
    }

    /// `count` levels less at the same scale and message; exact.
    ///
    /// # Errors
    /// The level and scale rules': more levels than are left, or a scale that the smaller modulus
    /// does not hold; a ciphertext of other parameters or another device, and the device's.
    pub fn drop_levels(&self, ciphertext: &Ciphertext, count: usize) -> Result<Ciphertext> {
        self.check_parameters("drop_levels", "ciphertext", ciphertext.parameters)?;
        let state = ciphertext
            .state
            .drop_levels(self.parameters().chain(), count)?;
        let _turn = self.queue().lock()?;
        let joined = self.join("drop_levels", &[("ciphertext", &ciphertext.data)])?;
        let pair = Pair {
            shape: ciphertext.batch_shape.clone(),
            items: ciphertext.items(),
            left: self.polynomials(ciphertext),
            right: Operand::NONE,
            _copies: Vec::new(),
        };
        let parts = (state.parts, 0);
        let result = self.combine(
            "drop_levels",
            Combination::Add,
            pair,
            parts,
            ciphertext.secret,
            state,
        )?;
        joined.leave()?;
        Ok(result)
    }
}
