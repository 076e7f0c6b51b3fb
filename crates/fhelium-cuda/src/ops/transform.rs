//! The transforms by themselves.

use crate::context::Context;
use crate::error::Result;
use crate::kernels::{Basis, ForwardA, InverseA, Outcome, PassB, Source, split};
use crate::queue::Buffer;

impl Context {
    /// The number-theoretic transforms of `polynomials` polynomials over the primes of a level, each
    /// of (limb, N) coefficients, in place.
    ///
    /// # Errors
    /// The device's.
    ///
    /// # Panics
    /// When the buffer does not hold exactly that.
    pub fn forward(&self, buffer: &Buffer, level: usize, polynomials: usize) -> Result<()> {
        let limbs = self.transformed(buffer, level, polynomials);
        let _turn = self.queue().lock()?;
        let joined = self.join("forward", &[("buffer", buffer)])?;
        self.forward_over(buffer, self.basis(limbs), polynomials)?;
        joined.leave()
    }

    /// The transforms of `polynomials` polynomials over the primes of a basis, in place.
    pub(super) fn forward_over(
        &self,
        buffer: &Buffer,
        basis: Basis,
        polynomials: usize,
    ) -> Result<()> {
        let stride = basis.limbs as u64 * self.n() as u64;
        let log_n = self.parameters().log_n();
        let pass_a = ForwardA {
            primes: self.tables().primes(),
            source: buffer.address(),
            target: buffer.address(),
            source_stride: stride,
            target_stride: stride,
            basis,
            log_n,
            digit_size: 0,
            digits: 1,
            digit_limbs: 0,
        };
        let pass_b = self.pass_b(buffer, basis, polynomials);
        // SAFETY: the buffer holds all limbs of all polynomials; each block writes what it read.
        unsafe {
            self.kernels()
                .forward_a(self.queue(), Source::Canonical, polynomials, &pass_a)?;
            self.kernels().forward_b(self.queue(), &pass_b)
        }
    }

    /// The inverse of [`forward`](Self::forward).
    ///
    /// # Errors
    /// The device's.
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    pub fn inverse(&self, buffer: &Buffer, level: usize, polynomials: usize) -> Result<()> {
        let limbs = self.transformed(buffer, level, polynomials);
        let _turn = self.queue().lock()?;
        let joined = self.join("inverse", &[("buffer", buffer)])?;
        self.inverse_over(buffer, buffer, self.basis(limbs), polynomials)?;
        joined.leave()
    }

    /// The inverse of [`forward_over`](Self::forward_over), from one buffer to another or in place.
    pub(super) fn inverse_over(
        &self,
        source: &Buffer,
        target: &Buffer,
        basis: Basis,
        polynomials: usize,
    ) -> Result<()> {
        let stride = basis.limbs as u64 * self.n() as u64;
        let log_n = self.parameters().log_n();
        let pass_a = InverseA {
            primes: self.tables().primes(),
            scales: self.tables().plain_scales(),
            source: target.address(),
            target: target.address(),
            source_stride: stride,
            target_stride: stride,
            basis,
            log_n,
            log_b: split(log_n).1,
        };
        let pass_b = PassB {
            source: source.address(),
            ..self.pass_b(target, basis, polynomials)
        };
        // SAFETY: both buffers hold all limbs of all polynomials; each block writes what it read.
        unsafe {
            self.kernels().inverse_b(self.queue(), &pass_b)?;
            self.kernels()
                .inverse_a(self.queue(), Outcome::Canonical, polynomials, &pass_a)
        }
    }

    fn transformed(&self, buffer: &Buffer, level: usize, polynomials: usize) -> usize {
        let limbs = level + 1;
        assert!(
            level <= self.parameters().depth(),
            "level {level} is above the depth"
        );
        assert_eq!(
            buffer.words(),
            polynomials * limbs * self.n(),
            "words of the buffer"
        );
        limbs
    }

    fn pass_b(&self, buffer: &Buffer, basis: Basis, polynomials: usize) -> PassB {
        let stride = basis.limbs as u64 * self.n() as u64;
        PassB {
            primes: self.tables().primes(),
            source: buffer.address(),
            factor: 0,
            target: buffer.address(),
            source_stride: stride,
            factor_stride: 0,
            target_stride: stride,
            basis,
            log_n: self.parameters().log_n(),
            polynomials: polynomials as u32,
        }
    }
}
