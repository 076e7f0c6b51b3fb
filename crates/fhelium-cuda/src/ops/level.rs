//! Rescale and level drop.

use super::Pair;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::{Combination, Operand, Rescale};
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
        let cut = self.kernels().rescale_cut(limbs as u32, polynomials as u32);
        let dropped = self.queue().allocate(polynomials * n)?;
        let moved = self.queue().allocate(polynomials * limbs * n)?;
        let counts = polynomials * cut.shares as usize;
        let ready = self.queue().allocate(counts.div_ceil(2))?;
        let target = self.polynomials(&result);
        let rescale = Rescale {
            primes: self.tables().primes(),
            scales: self.tables().plain_scales(),
            closing: self.tables().rescale(level),
            dropped: dropped.address(),
            moved: moved.address(),
            ready: ready.address(),
            source: source.data,
            target: target.data,
            source_stride: source.part_stride,
            target_stride: target.part_stride,
            log_n,
            limbs: limbs as u32,
            cut,
        };
        // SAFETY: `dropped` holds one limb of each polynomial, `moved` and the result all limbs but that,
        // `ready` a 32-bit count for each share; batch elements of both lie behind each other.
        unsafe {
            self.kernels()
                .rescale(self.queue(), polynomials as u32, &rescale)?;
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
