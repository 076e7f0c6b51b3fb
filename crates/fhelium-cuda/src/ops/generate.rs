//! Key generation.

use crate::context::Context;
use crate::error::Result;
use crate::keys::{KeySwitchKey, PublicKey, SecretKey};
use fhelium_ckks::{KeyKind, Randomness};

/// Makes secrets and keys on a device: with one source of randomness those of
/// [`fhelium_ckks::KeyGenerator`], bit for bit.
pub struct KeyGenerator<'a> {
    context: &'a Context,
    randomness: &'a Randomness,
}

impl<'a> KeyGenerator<'a> {
    /// A generator for a context's parameters.
    pub fn new(context: &'a Context, randomness: &'a Randomness) -> Self {
        KeyGenerator {
            context,
            randomness,
        }
    }

    /// A new uniform ternary secret.
    ///
    /// # Errors
    /// [`CkksError::Randomness`](fhelium_ckks::CkksError::Randomness) and the device's.
    pub fn secret(&self) -> Result<SecretKey> {
        self.context.upload_secret(&self.host().secret()?)
    }

    /// The public key of a secret.
    ///
    /// # Errors
    /// A secret of other parameters,
    /// [`CkksError::Randomness`](fhelium_ckks::CkksError::Randomness), and the device's.
    pub fn public(&self, secret: &SecretKey) -> Result<PublicKey> {
        let secret = self.context.download_secret(secret)?;
        self.context.upload_public(&self.host().public(&secret)?)
    }

    /// The key that relinearizes products.
    ///
    /// # Errors
    /// As [`public`](Self::public).
    pub fn relinearization(&self, secret: &SecretKey) -> Result<KeySwitchKey> {
        self.key(secret, KeyKind::Relinearization)
    }

    /// The key of the rotation by `step` slots, in either direction.
    ///
    /// # Errors
    /// As [`public`](Self::public), and
    /// [`CkksError::Parameter`](fhelium_ckks::CkksError::Parameter) for a multiple of the slots,
    /// which needs no key.
    pub fn rotation(&self, secret: &SecretKey, step: i64) -> Result<KeySwitchKey> {
        let slots = self.context.parameters().slots();
        self.key(secret, KeyKind::rotation(step, slots))
    }

    /// The key of the conjugation.
    ///
    /// # Errors
    /// As [`public`](Self::public).
    pub fn conjugation(&self, secret: &SecretKey) -> Result<KeySwitchKey> {
        self.key(secret, KeyKind::Conjugation)
    }

    /// The key of any kind.
    ///
    /// # Errors
    /// As for the methods of each kind.
    pub fn key(&self, secret: &SecretKey, kind: KeyKind) -> Result<KeySwitchKey> {
        let secret = self.context.download_secret(secret)?;
        self.context.upload_key(&self.host().key(&secret, kind)?)
    }

    fn host(&self) -> fhelium_ckks::KeyGenerator<'_> {
        fhelium_ckks::KeyGenerator::new(self.context.host(), self.randomness)
    }
}
