//! Sums, differences and multiples of several ciphertexts and plaintexts at once.

use crate::context::Context;
use crate::error::Result;
use crate::kernels::Fused;
use crate::queue::Buffer;
use crate::values::{Ciphertext, Plaintext};
use fhelium_ckks::{CkksError, LinearOperand, LinearProgram, LinearResult, linear_shape};

/// An operand of a [`LinearProgram`] on a device.
pub type Encoded<'a> = fhelium_ckks::Encoded<'a, Ciphertext, Plaintext>;

impl Context {
    /// Runs a program over every residue, in one launch: the residues of its operations one by one.
    ///
    /// # Errors
    /// [`linear_shape`]'s; values of different parameters, secrets or devices; no ciphertext among
    /// the operands; and the device's.
    pub fn fused(
        &self,
        program: &LinearProgram,
        operands: &[Encoded<'_>],
        results: &[LinearResult],
    ) -> Result<Vec<Ciphertext>> {
        let mut first: Option<&Ciphertext> = None;
        let mut shapes = Vec::with_capacity(operands.len());
        let mut buffers: Vec<(&'static str, &Buffer)> = Vec::with_capacity(operands.len());
        for operand in operands {
            match *operand {
                Encoded::Ciphertext(x) => {
                    self.check_pair("fused", first.unwrap_or(x), x)?;
                    first = first.or(Some(x));
                    buffers.push(("ciphertext", &x.data));
                    shapes.push(LinearOperand {
                        parts: x.state.parts,
                        level: x.state.level,
                        items: x.items(),
                    });
                }
                Encoded::Plaintext(p) => {
                    self.check_parameters("fused", "plaintext", p.parameters)?;
                    buffers.push(("plaintext", &p.data));
                    shapes.push(LinearOperand {
                        parts: 1,
                        level: p.state.level,
                        items: p.batch_shape.iter().product(),
                    });
                }
            }
        }
        let secret = first
            .map(|first| first.secret)
            .ok_or_else(|| CkksError::Shape {
                operation: "fused",
                found: "no ciphertext".to_owned(),
                expected: "one at least among the operands".to_owned(),
            })?;
        let (limbs, items) = linear_shape(program, &shapes, results)?;
        self.check_rows("fused", items)?;
        let _turn = self.queue().lock()?;
        let joined = self.join("fused", &buffers)?;
        let primes = self.tables().primes();
        let log_n = self.parameters().log_n();
        let mut arguments = Fused::new(program, primes, self.basis(limbs), log_n);
        for (place, (shape, (_, buffer))) in shapes.iter().zip(&buffers).enumerate() {
            arguments.operands[place] = buffer.address();
            arguments.shape(place, shape.level + 1, shape.parts, shape.items > 1);
        }
        let mut made = Vec::with_capacity(results.len());
        for (place, result) in results.iter().enumerate() {
            let state = result.state.clone();
            let ciphertext = self.result(secret, state, result.batch_shape.clone())?;
            arguments.results[place] = ciphertext.data.address();
            made.push(ciphertext);
        }
        // SAFETY: operands and results have the program's parts, the results' limbs or more, and as
        // many items or one, as was just checked; a value's buffer has the words of its shape.
        unsafe {
            self.kernels()
                .fused(self.queue(), program, items, &arguments)?
        };
        joined.leave()?;
        Ok(made)
    }
}
