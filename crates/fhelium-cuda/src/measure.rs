//! What memory some work takes, found without running it.
//!
//! The operations themselves ask for their results and for what they work in, so that they are what
//! is asked: on operands that stand for others, with nothing launched and nothing copied.

use crate::context::Context;
use crate::error::{CudaError, Result};
use crate::graph::DeviceValue;
use crate::keys::KeySwitchKey;
use crate::tensor::Tensor;
use crate::values::{Ciphertext, Plaintext};
use fhelium_ckks::{CipherState, KeyKind, PlainState, SecretId};
use fhelium_ir::DType;
use std::sync::Arc;

/// Makes values that say what they are and have no contents, for [`Context::measure`].
#[derive(Clone, Copy, Debug)]
pub struct StandIns<'a>(&'a Context);

impl Context {
    /// Bytes of device memory that `work` takes beside its operands, at the most at one time: results
    /// and workspace of a replay of it, once [captured](Self::capture), which its operations one by one
    /// do not exceed. Where it cannot be captured, they are those of its operations one by one.
    ///
    /// `operands` makes values like those that the work is to be given, and may place arrays. What the
    /// work reads from the device is zeros.
    ///
    /// # Errors
    /// What the two return.
    pub fn measure<O, V: DeviceValue, E: From<CudaError>>(
        &self,
        operands: impl FnOnce(StandIns<'_>) -> Result<O, E>,
        work: impl FnOnce(&O) -> Result<Vec<V>, E>,
    ) -> Result<usize, E> {
        self.queue().measure(|recorder| {
            let operands = operands(StandIns(self))?;
            let begin = recorder.begin();
            let results = work(&operands)?;
            let results: Vec<_> = results
                .iter()
                .map(|result| result.buffer().clone())
                .collect();
            Ok(recorder.bytes_taken(begin, &results))
        })
    }
}

impl StandIns<'_> {
    /// A ciphertext.
    ///
    /// # Errors
    /// [`CudaError::Forked`], [`CudaError::Driver`]; so for the others.
    pub fn ciphertext(
        &self,
        secret: SecretId,
        state: CipherState,
        batch_shape: Vec<usize>,
    ) -> Result<Ciphertext> {
        self.0.result(secret, state, batch_shape)
    }

    /// A plaintext.
    pub fn plaintext(&self, state: PlainState, batch_shape: Vec<usize>) -> Result<Plaintext> {
        self.0.plain_result(state, batch_shape)
    }

    /// An evaluation key.
    pub fn key(&self, secret: SecretId, kind: KeyKind) -> Result<KeySwitchKey> {
        let parameters = self.0.parameters();
        let words = KeySwitchKey::predicted_nbytes(parameters) / size_of::<u64>();
        Ok(KeySwitchKey {
            parameters: parameters.id(),
            secret,
            kind,
            seed: [0; 32],
            data: Arc::new(self.0.queue().allocate(words)?),
        })
    }

    /// A row-major array.
    pub fn tensor(&self, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        self.0.new_tensor(dtype, shape)
    }

    /// A value like another one.
    pub fn like<V: DeviceValue>(&self, value: &V) -> Result<V> {
        let buffer = self.0.queue().allocate(value.buffer().words())?;
        Ok(value.with_buffer(Arc::new(buffer)))
    }
}
