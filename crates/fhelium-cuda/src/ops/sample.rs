//! Small polynomials moved to the device, and uniform ones expanded there.

use crate::context::Context;
use crate::error::Result;
use crate::kernels::{Basis, Lift, Uniform};
use crate::queue::Buffer;
use fhelium_ckks::draws::{Purpose, uniform_stream};

/// What a uniform polynomial is expanded for.
pub(super) struct Expansion<'a> {
    pub purpose: Purpose,
    /// One seed for all polynomials, which are then a key's digits, or one for each.
    pub seeds: &'a [[u8; 32]],
    pub basis: Basis,
    pub polynomials: usize,
    /// Where the first polynomial starts, and words from one to the next.
    pub target: u64,
    pub target_stride: usize,
}

impl Context {
    /// Transforms of small polynomials, (polynomial, N), over a basis: (polynomial, limb, N). They
    /// are secret.
    pub(super) fn small_polynomials(&self, small: &[i8], basis: Basis) -> Result<Buffer> {
        let polynomials = small.len() / self.n();
        let source = self
            .queue()
            .allocate_secret(small.len().div_ceil(size_of::<u64>()))?;
        self.queue().fill(&source, small)?;
        let stride = basis.limbs as usize * self.n();
        let target = self.queue().allocate_secret(polynomials * stride)?;
        let arguments = Lift {
            primes: self.tables().primes(),
            source: source.address(),
            target: target.address(),
            target_stride: stride as u64,
            basis,
            log_n: self.parameters().log_n(),
            unused: 0,
        };
        // SAFETY: source and target hold as many polynomials.
        unsafe { self.kernels().lift(self.queue(), polynomials, &arguments)? };
        self.forward_over(&target, basis, polynomials)?;
        Ok(target)
    }

    /// Expands uniform polynomials.
    ///
    /// # Safety
    /// The target is memory of this queue and holds them.
    pub(super) unsafe fn expand(&self, expansion: &Expansion<'_>) -> Result<()> {
        let words: Vec<u64> = expansion
            .seeds
            .iter()
            .flat_map(|seed| seed.as_chunks::<8>().0)
            .map(|&bytes| u64::from_le_bytes(bytes))
            .collect();
        let seeds = self.queue().upload(&words)?;
        let each = expansion.seeds.len() > 1;
        let number = |digit| uniform_stream(expansion.purpose, digit, 0);
        let arguments = Uniform {
            primes: self.tables().primes(),
            seeds: seeds.address(),
            target: expansion.target,
            seed_stride: if each { 4 } else { 0 },
            target_stride: expansion.target_stride as u64,
            stream: number(0),
            stream_step: if each { 0 } else { number(1) - number(0) },
            basis: expansion.basis,
            log_n: self.parameters().log_n(),
            unused: 0,
        };
        // SAFETY: the caller's promise.
        unsafe {
            self.kernels()
                .uniform(self.queue(), expansion.polynomials, &arguments)
        }
    }
}
