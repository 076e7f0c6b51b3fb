//! Values made of residues that are on the device already, such as another library's results.

use crate::context::Context;
use crate::error::Result;
use crate::queue::Buffer;
use crate::values::{Ciphertext, Plaintext};
use fhelium_ckks::{CipherState, CkksError, PlainState, SecretId};
use std::sync::Arc;

/// Bytes that the address of residues is divisible by: the kernels read them two at a time.
const ALIGNMENT: u64 = 16;

impl Plaintext {
    /// Takes residues in the layout (batch, limb, N) of the limbs of the state's level.
    ///
    /// They have to be below their primes, which is not looked at: others give wrong results.
    ///
    /// # Errors
    /// A state or size that does not fit the parameters, memory of another device
    /// ([`OtherDevice`](crate::CudaError::OtherDevice)) or at an odd address.
    pub fn from_buffer(
        context: &Context,
        state: PlainState,
        batch_shape: Vec<usize>,
        data: Buffer,
    ) -> Result<Self> {
        let chain = context.parameters().chain();
        chain.check_encoding("Plaintext", state.level, &state.scale)?;
        check(context, "Plaintext", &batch_shape, 1, state.level, &data)?;
        Ok(Plaintext {
            parameters: context.parameters().id(),
            state,
            batch_shape,
            data: Arc::new(data),
        })
    }
}

impl Ciphertext {
    /// Takes residues in the layout (batch, part, limb, N) of the limbs of the state's level.
    ///
    /// They have to be below their primes, which is not looked at: others give wrong results.
    ///
    /// # Errors
    /// As [`Plaintext::from_buffer`].
    pub fn from_buffer(
        context: &Context,
        secret: SecretId,
        state: CipherState,
        batch_shape: Vec<usize>,
        data: Buffer,
    ) -> Result<Self> {
        let chain = context.parameters().chain();
        chain.check_encoding("Ciphertext", state.level, &state.scale)?;
        if !(2..=3).contains(&state.parts) {
            return Err(CkksError::Shape {
                operation: "Ciphertext",
                found: format!("{} parts", state.parts),
                expected: "2 or 3 parts".to_owned(),
            }
            .into());
        }
        let (parts, level) = (state.parts, state.level);
        check(context, "Ciphertext", &batch_shape, parts, level, &data)?;
        Ok(Ciphertext {
            parameters: context.parameters().id(),
            secret,
            state,
            batch_shape,
            data: Arc::new(data),
        })
    }
}

fn check(
    context: &Context,
    operation: &'static str,
    batch_shape: &[usize],
    parts: usize,
    level: usize,
    data: &Buffer,
) -> Result<()> {
    context.join(operation, &[("memory", data)])?.leave()?;
    let n = context.n();
    let words = batch_shape
        .iter()
        .chain(&[parts, level + 1, n])
        .try_fold(1usize, |size, &axis| size.checked_mul(axis));
    let shape = |found: String, expected: String| CkksError::Shape {
        operation,
        found,
        expected,
    };
    if words != Some(data.words()) {
        let limbs = level + 1;
        return Err(shape(
            format!("{} residues", data.words()),
            format!("batch {batch_shape:?} x {parts} parts x {limbs} limbs x {n}"),
        )
        .into());
    }
    if !data.address().is_multiple_of(ALIGNMENT) {
        return Err(shape(
            format!("residues at {:#x}", data.address()),
            format!("an address divisible by {ALIGNMENT}; copy them to one"),
        )
        .into());
    }
    Ok(())
}
