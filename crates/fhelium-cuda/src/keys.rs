//! Secrets and keys on a device.

use crate::queue::Buffer;
use fhelium_ckks::{KeyKind, Parameters, ParametersId, SecretId};
use std::fmt;
use std::sync::Arc;

/// A secret on a device. Its memory is zeroed there before it serves anything else, and `Debug`
/// shows its ids only. Clones share the residues.
#[derive(Clone)]
pub struct SecretKey {
    pub(crate) parameters: ParametersId,
    pub(crate) id: SecretId,
    /// s in the transform domain, (limb, N), moduli then special moduli.
    pub(crate) data: Arc<Buffer>,
}

/// An encryption key on a device, both halves expanded. Clones share the residues.
#[derive(Clone)]
pub struct PublicKey {
    pub(crate) parameters: ParametersId,
    pub(crate) secret: SecretId,
    pub(crate) seed: [u8; 32],
    /// b, then a: (half, limb, N), moduli only.
    pub(crate) data: Arc<Buffer>,
}

/// An evaluation key on a device, both halves expanded, in the form that the kernels take. Clones
/// share the residues.
#[derive(Clone)]
pub struct KeySwitchKey {
    pub(crate) parameters: ParametersId,
    pub(crate) secret: SecretId,
    pub(crate) kind: KeyKind,
    pub(crate) seed: [u8; 32],
    /// (digit, half, limb, N).
    pub(crate) data: Arc<Buffer>,
}

/// What encrypts: a public key, or the secret itself, which gives less noise.
#[derive(Clone, Copy, Debug)]
pub enum EncryptionKey<'a> {
    /// A public key.
    Public(&'a PublicKey),
    /// A secret key.
    Secret(&'a SecretKey),
}

impl<'a> From<&'a PublicKey> for EncryptionKey<'a> {
    fn from(key: &'a PublicKey) -> Self {
        EncryptionKey::Public(key)
    }
}

impl<'a> From<&'a SecretKey> for EncryptionKey<'a> {
    fn from(key: &'a SecretKey) -> Self {
        EncryptionKey::Secret(key)
    }
}

impl EncryptionKey<'_> {
    pub(crate) fn parameters_id(self) -> ParametersId {
        match self {
            EncryptionKey::Public(key) => key.parameters,
            EncryptionKey::Secret(key) => key.parameters,
        }
    }

    pub(crate) fn secret_id(self) -> SecretId {
        match self {
            EncryptionKey::Public(key) => key.secret,
            EncryptionKey::Secret(key) => key.id,
        }
    }

    pub(crate) fn data(&self) -> &Buffer {
        match self {
            EncryptionKey::Public(key) => &key.data,
            EncryptionKey::Secret(key) => &key.data,
        }
    }
}

impl SecretKey {
    /// The parameters' id.
    pub fn parameters_id(&self) -> ParametersId {
        self.parameters
    }

    /// The secret's id.
    pub fn secret_id(&self) -> SecretId {
        self.id
    }

    /// Bytes on the device.
    pub fn nbytes(&self) -> usize {
        self.data.words() * size_of::<u64>()
    }

    /// The residues' memory: **whoever reads it decrypts everything**.
    pub fn buffer(&self) -> &Buffer {
        &self.data
    }
}

impl PublicKey {
    /// The parameters' id.
    pub fn parameters_id(&self) -> ParametersId {
        self.parameters
    }

    /// The id of the secret that decrypts what this key encrypts.
    pub fn secret_id(&self) -> SecretId {
        self.secret
    }

    /// Bytes on the device.
    pub fn nbytes(&self) -> usize {
        self.data.words() * size_of::<u64>()
    }

    /// The residues' memory.
    pub fn buffer(&self) -> &Buffer {
        &self.data
    }
}

impl KeySwitchKey {
    /// The parameters' id.
    pub fn parameters_id(&self) -> ParametersId {
        self.parameters
    }

    /// The secret's id.
    pub fn secret_id(&self) -> SecretId {
        self.secret
    }

    /// What it switches.
    pub fn key_kind(&self) -> KeyKind {
        self.kind
    }

    /// Bytes on the device of a key of these parameters, known before it is made.
    pub fn predicted_nbytes(parameters: &Parameters) -> usize {
        let limbs = parameters.moduli().len() + parameters.special_moduli().len();
        let polynomials = 2 * parameters.digits(parameters.depth()) * limbs;
        polynomials * parameters.n() * size_of::<u64>()
    }

    /// Bytes on the device.
    pub fn nbytes(&self) -> usize {
        self.data.words() * size_of::<u64>()
    }

    /// The key's memory.
    pub fn buffer(&self) -> &Buffer {
        &self.data
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.data.queue().device();
        let (id, parameters) = (self.id, self.parameters);
        write!(f, "SecretKey(secret {id}, {parameters} on {device})")
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.data.queue().device();
        let (secret, parameters) = (self.secret, self.parameters);
        write!(f, "PublicKey(secret {secret}, {parameters} on {device})")
    }
}

impl fmt::Debug for KeySwitchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "KeySwitchKey({}, secret {}, {} on {})",
            self.kind,
            self.secret,
            self.parameters,
            self.data.queue().device()
        )
    }
}
