//! Operations on ciphertexts.
//!
//! Every operation is a method of [`Context`]; it asks the level and scale rules of `fhelium-state`
//! first and leaves its operands unchanged. Batch axes broadcast as numpy's do.

mod batch;
pub mod batch_shape;
mod broadcast;
#[cfg(test)]
mod exact_tests;
mod fused;
mod key_switch;
mod level;
mod linear;
mod product;
mod rotate;
mod unit_times;

pub use batch_shape::BatchSpan;
pub use broadcast::Broadcast;
pub use fused::{Encoded, LinearOperand, LinearResult, linear_shape};
pub use unit_times::UnitTimes;

use crate::context::Context;
use crate::error::{CkksError, Result};
use crate::values::{Ciphertext, Plaintext};

impl Context {
    fn check_ciphertext(&self, operation: &'static str, ciphertext: &Ciphertext) -> Result<()> {
        self.parameters()
            .check_id(operation, "ciphertext", ciphertext.parameters)
    }

    fn check_pair(
        &self,
        operation: &'static str,
        left: &Ciphertext,
        right: &Ciphertext,
    ) -> Result<()> {
        self.check_ciphertext(operation, left)?;
        self.check_ciphertext(operation, right)?;
        if left.secret != right.secret {
            return Err(CkksError::SecretMismatch {
                operation,
                what: "right operand",
                found: right.secret,
                expected: left.secret,
            });
        }
        Ok(())
    }

    fn check_plaintext(
        &self,
        operation: &'static str,
        ciphertext: &Ciphertext,
        plaintext: &Plaintext,
    ) -> Result<()> {
        self.check_ciphertext(operation, ciphertext)?;
        self.parameters()
            .check_id(operation, "plaintext", plaintext.parameters)
    }
}
