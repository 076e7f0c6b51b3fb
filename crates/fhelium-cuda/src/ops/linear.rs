//! Sums, differences, negation and integer multiples.

use super::Pair;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::{Binary, Combination, Multiple, Operand};
use crate::values::{Ciphertext, Plaintext};
use fhelium_ckks::{CipherState, SecretId};

impl Context {
    /// left + right: equal levels, and scales equal or nominally equal.
    ///
    /// # Errors
    /// The level and scale rules', values of different parameters, secrets or devices, batch shapes
    /// that do not broadcast, and the device's.
    pub fn add(&self, left: &Ciphertext, right: &Ciphertext) -> Result<Ciphertext> {
        self.sum("add", Combination::Add, left, right)
    }

    /// left - right.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn subtract(&self, left: &Ciphertext, right: &Ciphertext) -> Result<Ciphertext> {
        self.sum("subtract", Combination::Subtract, left, right)
    }

    /// ciphertext + plaintext, which may hold more levels.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_plain(&self, ciphertext: &Ciphertext, plaintext: &Plaintext) -> Result<Ciphertext> {
        self.plain_sum("add", Combination::Add, false, ciphertext, plaintext)
    }

    /// ciphertext - plaintext.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn subtract_plain(
        &self,
        ciphertext: &Ciphertext,
        plaintext: &Plaintext,
    ) -> Result<Ciphertext> {
        self.plain_sum(
            "subtract",
            Combination::Subtract,
            false,
            ciphertext,
            plaintext,
        )
    }

    /// plaintext - ciphertext.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn plain_subtract(
        &self,
        plaintext: &Plaintext,
        ciphertext: &Ciphertext,
    ) -> Result<Ciphertext> {
        self.plain_sum(
            "subtract",
            Combination::Subtract,
            true,
            ciphertext,
            plaintext,
        )
    }

    /// -ciphertext.
    ///
    /// # Errors
    /// A ciphertext of other parameters or another device, and the device's.
    pub fn negate(&self, ciphertext: &Ciphertext) -> Result<Ciphertext> {
        self.check_parameters("negate", "ciphertext", ciphertext.parameters)?;
        let _turn = self.queue().lock()?;
        let joined = self.join("negate", &[("ciphertext", &ciphertext.data)])?;
        let pair = Pair {
            shape: ciphertext.batch_shape.clone(),
            items: ciphertext.items(),
            left: Operand::NONE,
            right: self.polynomials(ciphertext),
            _copies: Vec::new(),
        };
        let parts = (0, ciphertext.state.parts);
        let state = ciphertext.state.clone();
        let result = self.combine(
            "negate",
            Combination::Subtract,
            pair,
            parts,
            ciphertext.secret,
            state,
        )?;
        joined.leave()?;
        Ok(result)
    }

    /// factor * ciphertext, exactly and at the same scale.
    ///
    /// # Errors
    /// As [`negate`](Self::negate).
    pub fn multiply_integer(&self, ciphertext: &Ciphertext, factor: i64) -> Result<Ciphertext> {
        self.check_parameters("multiply", "ciphertext", ciphertext.parameters)?;
        let _turn = self.queue().lock()?;
        let joined = self.join("multiply", &[("ciphertext", &ciphertext.data)])?;
        let state = ciphertext.state.clone();
        let (parts, limbs) = (state.parts, state.level + 1);
        self.check_rows("multiply", ciphertext.items() * parts)?;
        let result = self.result(ciphertext.secret, state, ciphertext.batch_shape.clone())?;
        let target = self.polynomials(&result);
        let arguments = Multiple {
            primes: self.tables().primes(),
            a: self.polynomials(ciphertext),
            target: target.data,
            target_batch_stride: target.batch_stride,
            target_part_stride: target.part_stride,
            factor,
            basis: self.basis(limbs),
            log_n: self.parameters().log_n(),
            parts: parts as u32,
        };
        // SAFETY: operand and result have the same shape.
        unsafe {
            self.kernels()
                .multiple(self.queue(), ciphertext.items(), &arguments)?
        };
        joined.leave()?;
        Ok(result)
    }

    fn sum(
        &self,
        operation: &'static str,
        combination: Combination,
        left: &Ciphertext,
        right: &Ciphertext,
    ) -> Result<Ciphertext> {
        self.check_pair(operation, left, right)?;
        let state = left
            .state
            .add(self.parameters().chain(), operation, &right.state)?;
        let _turn = self.queue().lock()?;
        let joined = self.join(
            operation,
            &[("left operand", &left.data), ("right operand", &right.data)],
        )?;
        let pair = self.pair(
            operation,
            (&left.data, &left.batch_shape, self.polynomials(left)),
            (&right.data, &right.batch_shape, self.polynomials(right)),
        )?;
        let parts = (left.state.parts, right.state.parts);
        let result = self.combine(operation, combination, pair, parts, left.secret, state)?;
        joined.leave()?;
        Ok(result)
    }

    fn plain_sum(
        &self,
        operation: &'static str,
        combination: Combination,
        plain_first: bool,
        ciphertext: &Ciphertext,
        plaintext: &Plaintext,
    ) -> Result<Ciphertext> {
        self.check_plain(operation, ciphertext, plaintext)?;
        let chain = self.parameters().chain();
        let state = ciphertext
            .state
            .add_plain(chain, operation, &plaintext.state)?;
        let _turn = self.queue().lock()?;
        let joined = self.join(
            operation,
            &[
                ("ciphertext", &ciphertext.data),
                ("plaintext", &plaintext.data),
            ],
        )?;
        let mut pair = self.pair(
            operation,
            (
                &ciphertext.data,
                &ciphertext.batch_shape,
                self.polynomials(ciphertext),
            ),
            (
                &plaintext.data,
                &plaintext.batch_shape,
                self.plain_polynomials(plaintext),
            ),
        )?;
        let mut parts = (state.parts, 1);
        if plain_first {
            std::mem::swap(&mut pair.left, &mut pair.right);
            parts = (1, state.parts);
        }
        let result = self.combine(
            operation,
            combination,
            pair,
            parts,
            ciphertext.secret,
            state,
        )?;
        joined.leave()?;
        Ok(result)
    }

    /// Two operands with so many parts each to a new ciphertext.
    pub(super) fn combine(
        &self,
        operation: &'static str,
        combination: Combination,
        pair: Pair,
        (a_parts, b_parts): (usize, usize),
        secret: SecretId,
        state: CipherState,
    ) -> Result<Ciphertext> {
        let (parts, limbs) = (state.parts, state.level + 1);
        self.check_rows(operation, pair.items * parts)?;
        let result = self.result(secret, state, pair.shape)?;
        let target = self.polynomials(&result);
        let arguments = Binary {
            primes: self.tables().primes(),
            a: pair.left,
            b: pair.right,
            target: target.data,
            target_batch_stride: target.batch_stride,
            target_part_stride: target.part_stride,
            basis: self.basis(limbs),
            log_n: self.parameters().log_n(),
            parts: parts as u32,
            a_parts: a_parts as u32,
            b_parts: b_parts as u32,
        };
        // SAFETY: the pair's strides are those of its buffers, which have the result's limbs or
        // more; parts beyond an operand's are not read.
        unsafe {
            self.kernels()
                .combine(self.queue(), combination, pair.items, &arguments)?
        };
        Ok(result)
    }
}
