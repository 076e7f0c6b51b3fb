//! Products of ciphertexts and with plaintexts, and relinearization.

use super::switch::Switched;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::{Added, Combination};
use crate::keys::KeySwitchKey;
use crate::values::{Ciphertext, Plaintext};
use fhelium_ckks::KeyKind;

impl Context {
    /// left * right: three parts, the product of the scales.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn multiply(&self, left: &Ciphertext, right: &Ciphertext) -> Result<Ciphertext> {
        self.check_pair("multiply", left, right)?;
        let chain = self.parameters().chain();
        let state = left.state.multiply(chain, "multiply", &right.state)?;
        let _turn = self.queue().lock()?;
        let joined = self.join(
            "multiply",
            &[("left operand", &left.data), ("right operand", &right.data)],
        )?;
        let pair = self.pair(
            "multiply",
            (&left.data, &left.batch_shape, self.polynomials(left)),
            (&right.data, &right.batch_shape, self.polynomials(right)),
        )?;
        let result = self.combine(
            "multiply",
            Combination::Tensor,
            pair,
            (2, 2),
            left.secret,
            state,
        )?;
        joined.leave()?;
        Ok(result)
    }

    /// The square of a ciphertext: three parts.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn square(&self, ciphertext: &Ciphertext) -> Result<Ciphertext> {
        self.multiply(ciphertext, ciphertext)
    }

    /// ciphertext * plaintext, which may hold more levels; the product of the scales.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn multiply_plain(
        &self,
        ciphertext: &Ciphertext,
        plaintext: &Plaintext,
    ) -> Result<Ciphertext> {
        self.check_plain("multiply", ciphertext, plaintext)?;
        let chain = self.parameters().chain();
        let state = ciphertext
            .state
            .multiply_plain(chain, "multiply", &plaintext.state)?;
        let _turn = self.queue().lock()?;
        let joined = self.join(
            "multiply",
            &[
                ("ciphertext", &ciphertext.data),
                ("plaintext", &plaintext.data),
            ],
        )?;
        let pair = self.pair(
            "multiply",
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
        let parts = (state.parts, 1);
        let result = self.combine(
            "multiply",
            Combination::Product,
            pair,
            parts,
            ciphertext.secret,
            state,
        )?;
        joined.leave()?;
        Ok(result)
    }

    /// Three parts to two.
    ///
    /// # Errors
    /// The level and scale rules' for an operand of two parts, a key of another kind, secret,
    /// parameter set or device, and the device's.
    pub fn relinearize(&self, ciphertext: &Ciphertext, key: &KeySwitchKey) -> Result<Ciphertext> {
        self.relinearize_and("relinearize", ciphertext, key, false)
    }

    /// [`relinearize`](Self::relinearize) and [`rescale`](Self::rescale) in one, with the same
    /// residues.
    ///
    /// # Errors
    /// As for both.
    pub fn relinearize_rescale(
        &self,
        ciphertext: &Ciphertext,
        key: &KeySwitchKey,
    ) -> Result<Ciphertext> {
        self.relinearize_and("relinearize", ciphertext, key, true)
    }

    fn relinearize_and(
        &self,
        operation: &'static str,
        ciphertext: &Ciphertext,
        key: &KeySwitchKey,
        rescale: bool,
    ) -> Result<Ciphertext> {
        self.check_parameters(operation, "ciphertext", ciphertext.parameters)?;
        let mut state = ciphertext.state.relinearize()?;
        if rescale {
            state = state.rescale(self.parameters().chain())?;
        }
        self.check_key(operation, key, ciphertext.secret, KeyKind::Relinearization)?;
        let _turn = self.queue().lock()?;
        let joined = self.join(
            operation,
            &[("ciphertext", &ciphertext.data), ("key", &key.data)],
        )?;
        let parts = self.polynomials(ciphertext);
        let result = self.result(ciphertext.secret, state, ciphertext.batch_shape.clone())?;
        let switched = Switched {
            operation,
            level: ciphertext.state.level,
            batch: ciphertext.items(),
            own: parts.part(2),
            factor: None,
            added: Added {
                a: parts,
                parts: 2,
                ..Added::NONE
            },
            rescale,
        };
        self.switch(&switched, &[(key, KeyKind::Relinearization, &result)])?;
        joined.leave()?;
        Ok(result)
    }

    /// left * right in two parts: the residues of [`multiply`](Self::multiply) and
    /// [`relinearize`](Self::relinearize), without the three parts in between.
    ///
    /// # Errors
    /// As for both.
    pub fn multiply_relinearize(
        &self,
        left: &Ciphertext,
        right: &Ciphertext,
        key: &KeySwitchKey,
    ) -> Result<Ciphertext> {
        self.multiply_and(left, right, key, false)
    }

    /// [`multiply_relinearize`](Self::multiply_relinearize) and [`rescale`](Self::rescale) in one,
    /// with the same residues.
    ///
    /// # Errors
    /// As for both.
    pub fn multiply_relinearize_rescale(
        &self,
        left: &Ciphertext,
        right: &Ciphertext,
        key: &KeySwitchKey,
    ) -> Result<Ciphertext> {
        self.multiply_and(left, right, key, true)
    }

    fn multiply_and(
        &self,
        left: &Ciphertext,
        right: &Ciphertext,
        key: &KeySwitchKey,
        rescale: bool,
    ) -> Result<Ciphertext> {
        self.check_pair("multiply", left, right)?;
        let chain = self.parameters().chain();
        let mut state = left
            .state
            .multiply(chain, "multiply", &right.state)?
            .relinearize()?;
        if rescale {
            state = state.rescale(chain)?;
        }
        self.check_key("multiply", key, left.secret, KeyKind::Relinearization)?;
        let _turn = self.queue().lock()?;
        let joined = self.join(
            "multiply",
            &[
                ("left operand", &left.data),
                ("right operand", &right.data),
                ("key", &key.data),
            ],
        )?;
        let pair = self.pair(
            "multiply",
            (&left.data, &left.batch_shape, self.polynomials(left)),
            (&right.data, &right.batch_shape, self.polynomials(right)),
        )?;
        let result = self.result(left.secret, state, pair.shape.clone())?;
        let switched = Switched {
            operation: "multiply",
            level: left.state.level,
            batch: pair.items,
            own: pair.left.part(1),
            factor: Some(pair.right.part(1)),
            added: Added {
                a: pair.left,
                b: pair.right,
                parts: 2,
                tensor: 1,
            },
            rescale,
        };
        self.switch(&switched, &[(key, KeyKind::Relinearization, &result)])?;
        joined.leave()?;
        Ok(result)
    }
}
