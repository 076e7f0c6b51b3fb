//! Rescale and level drop.

use crate::context::Context;
use crate::error::Result;
use crate::values::Ciphertext;

impl Context {
    /// Divides by the level's prime, rounded to the nearest: one level less, the scale divided
    /// exactly.
    ///
    /// # Errors
    /// The level and scale rules': no level left, or a scale that is rescaled already.
    pub fn rescale(&self, ciphertext: &Ciphertext) -> Result<Ciphertext> {
        self.check_ciphertext("rescale", ciphertext)?;
        let state = ciphertext.state.rescale(self.parameters().chain())?;
        let n = self.n();
        let level = ciphertext.state.level;
        let top = &self.limbs()[level];
        let parts = ciphertext.data.len() / (level + 1) / n;
        let mut last = self.result_buffer("rescale", parts * n)?;
        self.each_limb(&mut last, |part, limb| {
            limb.copy_from_slice(&ciphertext.data[(part * (level + 1) + level) * n..][..n]);
            top.inverse(limb);
        });
        let last = &*last;
        let mut data = self.result_buffer("rescale", parts * level * n)?;
        self.each_limb(&mut data, |index, out| {
            let (part, limb) = (index / level, index % level);
            let ring = &self.limbs()[limb];
            let (last, part) = (
                &last[part * n..][..n],
                &ciphertext.data[(part * (level + 1) + limb) * n..][..n],
            );
            // (c - remainder) / q as (remainder - c) (-1/q).
            let factor = self.minus_prime_inverse(level, limb);
            ring.rescale_into(out, last, top.modulus(), part, factor);
        });
        Ok(Ciphertext {
            state,
            data,
            ..ciphertext.without_data()
        })
    }

    /// `count` levels less at the same scale and message; exact.
    ///
    /// # Errors
    /// The level and scale rules': more levels than are left, or a scale that the smaller modulus
    /// does not hold.
    pub fn drop_levels(&self, ciphertext: &Ciphertext, count: usize) -> Result<Ciphertext> {
        self.check_ciphertext("drop_levels", ciphertext)?;
        let state = ciphertext
            .state
            .drop_levels(self.parameters().chain(), count)?;
        let (kept, all) = (
            (state.level + 1) * self.n(),
            (ciphertext.state.level + 1) * self.n(),
        );
        let mut data = self.result_buffer("drop_levels", ciphertext.data.len() / all * kept)?;
        for (out, part) in data
            .chunks_exact_mut(kept)
            .zip(ciphertext.data.chunks_exact(all))
        {
            out.copy_from_slice(&part[..kept]);
        }
        Ok(Ciphertext {
            state,
            data,
            ..ciphertext.without_data()
        })
    }
}
