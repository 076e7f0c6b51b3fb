//! Operations on ciphertexts, mirroring those of [`fhelium_ckks::Context`].
//!
//! Each asks the level and scale rules of `fhelium-state` first and leaves its operands unchanged.
//! Batch axes broadcast as numpy's do.

mod batch;
mod encode;
mod encrypt;
mod fused;
mod generate;
mod keys;
mod level;
mod linear;
mod product;
mod rotate;
mod sample;
mod switch;
mod transform;

pub use fused::Encoded;
pub use generate::KeyGenerator;

use crate::context::Context;
use crate::error::Result;
use crate::kernels::Operand;
use crate::keys::KeySwitchKey;
use crate::queue::Buffer;
use crate::values::{Ciphertext, Plaintext};
use fhelium_ckks::{Broadcast, CipherState, CkksError, KeyKind, PlainState, SecretId};
use std::sync::Arc;

/// Two operands' polynomials under one batch.
pub(crate) struct Pair {
    pub shape: Vec<usize>,
    pub items: usize,
    pub left: Operand,
    pub right: Operand,
    /// Copies of operands that repeat in a way that strides cannot say; kept until the launch.
    _copies: Vec<Buffer>,
}

impl Context {
    pub(crate) fn check_pair(
        &self,
        operation: &'static str,
        left: &Ciphertext,
        right: &Ciphertext,
    ) -> Result<()> {
        self.check_parameters(operation, "ciphertext", left.parameters)?;
        self.check_parameters(operation, "ciphertext", right.parameters)?;
        if left.secret == right.secret {
            return Ok(());
        }
        Err(CkksError::SecretMismatch {
            operation,
            what: "right operand",
            found: right.secret,
            expected: left.secret,
        }
        .into())
    }

    pub(crate) fn check_plain(
        &self,
        operation: &'static str,
        ciphertext: &Ciphertext,
        plaintext: &Plaintext,
    ) -> Result<()> {
        self.check_parameters(operation, "ciphertext", ciphertext.parameters)?;
        self.check_parameters(operation, "plaintext", plaintext.parameters)
    }

    pub(crate) fn check_key(
        &self,
        operation: &'static str,
        key: &KeySwitchKey,
        secret: SecretId,
        kind: KeyKind,
    ) -> Result<()> {
        self.check_parameters(operation, "key", key.parameters)?;
        if key.kind != kind {
            let (found, expected) = (key.kind, kind);
            return Err(CkksError::WrongKey {
                operation,
                found,
                expected,
            }
            .into());
        }
        if key.secret != secret {
            let (found, expected) = (key.secret, secret);
            return Err(CkksError::SecretMismatch {
                operation,
                what: "key",
                found,
                expected,
            }
            .into());
        }
        Ok(())
    }

    /// Pairs operands whose items are the given numbers of words.
    pub(crate) fn pair(
        &self,
        operation: &'static str,
        (left, left_shape, left_operand): (&Buffer, &[usize], Operand),
        (right, right_shape, right_operand): (&Buffer, &[usize], Operand),
    ) -> Result<Pair> {
        let batch = Broadcast::new(operation, left_shape, right_shape)?;
        let items = batch.size();
        let mut copies = Vec::new();
        let mut fit = |buffer: &Buffer, operand: Operand, item: &dyn Fn(usize) -> usize| {
            if (0..items).all(|index| item(index) == index) {
                return Ok(operand);
            }
            if (0..items).all(|index| item(index) == 0) {
                return Ok(Operand {
                    batch_stride: 0,
                    ..operand
                });
            }
            let words = operand.batch_stride as usize;
            let copy = self.queue().allocate(items * words)?;
            for index in 0..items {
                self.queue()
                    .copy(&copy, index * words, buffer, item(index) * words, words)?;
            }
            let operand = Operand {
                data: copy.address(),
                ..operand
            };
            copies.push(copy);
            Ok::<_, crate::CudaError>(operand)
        };
        let left = fit(left, left_operand, &|index| batch.items(index).0)?;
        let right = fit(right, right_operand, &|index| batch.items(index).1)?;
        Ok(Pair {
            shape: batch.shape,
            items,
            left,
            right,
            _copies: copies,
        })
    }

    /// A ciphertext of this context with new memory.
    pub(crate) fn result(
        &self,
        secret: SecretId,
        state: CipherState,
        batch_shape: Vec<usize>,
    ) -> Result<Ciphertext> {
        let items: usize = batch_shape.iter().product();
        let words = items * state.parts * (state.level + 1) * self.n();
        Ok(Ciphertext {
            parameters: self.parameters().id(),
            secret,
            state,
            batch_shape,
            data: Arc::new(self.queue().allocate(words)?),
        })
    }

    /// A plaintext of this context with new memory.
    pub(crate) fn plain_result(
        &self,
        state: PlainState,
        batch_shape: Vec<usize>,
    ) -> Result<Plaintext> {
        let items: usize = batch_shape.iter().product();
        let words = items * (state.level + 1) * self.n();
        Ok(Plaintext {
            parameters: self.parameters().id(),
            state,
            batch_shape,
            data: Arc::new(self.queue().allocate(words)?),
        })
    }

    /// The polynomials of a ciphertext.
    pub(crate) fn polynomials(&self, ciphertext: &Ciphertext) -> Operand {
        self.operand(
            &ciphertext.data,
            ciphertext.state.parts,
            ciphertext.state.level + 1,
        )
    }

    /// The polynomials of a plaintext.
    pub(crate) fn plain_polynomials(&self, plaintext: &Plaintext) -> Operand {
        self.operand(&plaintext.data, 1, plaintext.state.level + 1)
    }
}
