//! Encryption and decryption.

use crate::context::Context;
use crate::error::Result;
use crate::keys::{EncryptionKey, SecretKey};
use crate::values::{Ciphertext, Plaintext};
use fhelium_ckks::{NoiseFlooding, Randomness};

impl Context {
    /// Encrypts each item of a plaintext's batch under its own masks.
    ///
    /// # Errors
    /// A plaintext or key of other parameters or of another device,
    /// [`CkksError::Randomness`](fhelium_ckks::CkksError::Randomness), and the device's.
    pub fn encrypt<'a>(
        &self,
        plaintext: &Plaintext,
        key: impl Into<EncryptionKey<'a>>,
        randomness: &Randomness,
    ) -> Result<Ciphertext> {
        let key = key.into();
        self.check_parameters("encrypt", "plaintext", plaintext.parameters)?;
        self.check_parameters("encrypt", "key", key.parameters_id())?;
        let plaintext = self.download_plaintext(plaintext)?;
        let ciphertext = match key {
            EncryptionKey::Public(key) => {
                let key = self.download_public(key)?;
                self.host().encrypt(&plaintext, &key, randomness)?
            }
            EncryptionKey::Secret(key) => {
                let key = self.download_secret(key)?;
                self.host().encrypt(&plaintext, &key, randomness)?
            }
        };
        self.upload(&ciphertext)
    }

    /// Decrypts a ciphertext of two or three parts: c_0 + c_1 s + c_2 s^2.
    ///
    /// # Errors
    /// A ciphertext or secret of other parameters or of another device,
    /// [`CkksError::SecretMismatch`](fhelium_ckks::CkksError::SecretMismatch), and the device's.
    pub fn decrypt(&self, ciphertext: &Ciphertext, secret: &SecretKey) -> Result<Plaintext> {
        self.check_parameters("decrypt", "ciphertext", ciphertext.parameters)?;
        self.check_parameters("decrypt", "secret key", secret.parameters)?;
        let ciphertext = self.download(ciphertext)?;
        let secret = self.download_secret(secret)?;
        self.upload_plaintext(&self.host().decrypt(&ciphertext, &secret)?)
    }

    /// Adds noise to each coefficient of a decrypted plaintext; see [`NoiseFlooding`].
    ///
    /// # Errors
    /// As [`fhelium_ckks::Context::flood`], and the device's.
    pub fn flood(
        &self,
        plaintext: Plaintext,
        flooding: NoiseFlooding,
        randomness: &Randomness,
    ) -> Result<Plaintext> {
        let plaintext = self.download_plaintext(&plaintext)?;
        let flooded = self.host().flood(plaintext, flooding, randomness)?;
        self.upload_plaintext(&flooded)
    }
}
