//! Values on a device.

use crate::queue::Buffer;
use fhelium_ckks::{CipherState, ParametersId, PlainState, SecretId};
use std::fmt;
use std::sync::Arc;

/// Encoded messages on a device: the same residues in the same layout, (batch, limb, N), as
/// [`fhelium_ckks::Plaintext`]'s.
#[derive(Clone)]
pub struct Plaintext {
    pub(crate) parameters: ParametersId,
    pub(crate) state: PlainState,
    pub(crate) batch_shape: Vec<usize>,
    pub(crate) data: Arc<Buffer>,
}

/// Encrypted messages on a device: the same residues in the same layout, (batch, part, limb, N), as
/// [`fhelium_ckks::Ciphertext`]'s. Clones share the residues.
#[derive(Clone)]
pub struct Ciphertext {
    pub(crate) parameters: ParametersId,
    pub(crate) secret: SecretId,
    pub(crate) state: CipherState,
    pub(crate) batch_shape: Vec<usize>,
    pub(crate) data: Arc<Buffer>,
}

impl Plaintext {
    /// The parameters' id.
    pub fn parameters_id(&self) -> ParametersId {
        self.parameters
    }

    /// Level and scale.
    pub fn state(&self) -> &PlainState {
        &self.state
    }

    /// The batch axes.
    pub fn batch_shape(&self) -> &[usize] {
        &self.batch_shape
    }

    /// Bytes of the residues.
    pub fn nbytes(&self) -> usize {
        self.data.words() * size_of::<u64>()
    }

    /// The residues' memory.
    pub fn buffer(&self) -> &Buffer {
        &self.data
    }
}

impl Ciphertext {
    /// The parameters' id.
    pub fn parameters_id(&self) -> ParametersId {
        self.parameters
    }

    /// The id of the secret that decrypts it.
    pub fn secret_id(&self) -> SecretId {
        self.secret
    }

    /// Level, scale and parts.
    pub fn state(&self) -> &CipherState {
        &self.state
    }

    /// The batch axes.
    pub fn batch_shape(&self) -> &[usize] {
        &self.batch_shape
    }

    /// Bytes of the residues.
    pub fn nbytes(&self) -> usize {
        self.data.words() * size_of::<u64>()
    }

    /// The residues' memory.
    pub fn buffer(&self) -> &Buffer {
        &self.data
    }

    pub(crate) fn items(&self) -> usize {
        self.batch_shape.iter().product()
    }
}

impl fmt::Debug for Plaintext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Plaintext(level {}, scale {}, batch {:?}, {} on {})",
            self.state.level,
            self.state.scale,
            self.batch_shape,
            self.parameters,
            self.data.queue().device()
        )
    }
}

impl fmt::Debug for Ciphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Ciphertext(level {}, scale {}, {} parts, batch {:?}, secret {}, {} on {})",
            self.state.level,
            self.state.scale,
            self.state.parts,
            self.batch_shape,
            self.secret,
            self.parameters,
            self.data.queue().device()
        )
    }
}
