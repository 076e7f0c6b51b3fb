//! Encryption and decryption.

use super::sample::Expansion;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::{Binary, Combination, Decrypt, Encrypt};
use crate::keys::{EncryptionKey, SecretKey};
use crate::queue::Buffer;
use crate::values::{Ciphertext, Plaintext};
use fhelium_ckks::draws::{FloodingDraw, Purpose, SecretEncryptionDraw, public_encryption};
use fhelium_ckks::{CipherState, CkksError, NoiseFlooding, PlainState, Randomness};

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
        let items: usize = plaintext.batch_shape.iter().product();
        self.check_rows("encrypt", 3 * items)?;
        let level = plaintext.state.level;
        let basis = self.basis(level + 1);
        let _turn = self.queue().lock()?;
        let joined = self.join(
            "encrypt",
            &[("plaintext", &plaintext.data), ("key", key.data())],
        )?;
        let state = CipherState::new(level, plaintext.state.scale.clone());
        let result = self.result(key.secret_id(), state, plaintext.batch_shape.clone())?;
        let arguments = |small: &Buffer| Encrypt {
            primes: self.tables().primes(),
            small: small.address(),
            key: key.data().address(),
            message: plaintext.data.address(),
            target: result.data.address(),
            basis,
            log_n: self.parameters().log_n(),
            key_limbs: self.parameters().moduli().len() as u32,
        };
        match key {
            EncryptionKey::Public(_) => {
                let draw = public_encryption(items, randomness)?;
                let small = self.small_polynomials(&draw, basis)?;
                // SAFETY: all have the same limbs but the key, which has no fewer; three small
                // polynomials and two parts an item.
                unsafe {
                    self.kernels()
                        .encrypt_public(self.queue(), items, &arguments(&small))?
                };
            }
            EncryptionKey::Secret(_) => {
                let draw = SecretEncryptionDraw::new(items, randomness)?;
                let small = self.small_polynomials(&draw.errors, basis)?;
                let words = (level + 1) * self.n();
                let expansion = Expansion {
                    purpose: Purpose::Ciphertext,
                    seeds: &draw.seeds,
                    basis,
                    polynomials: items,
                    target: result.data.address() + (words * size_of::<u64>()) as u64,
                    target_stride: 2 * words,
                };
                // SAFETY: as above, with one small polynomial an item; the second parts are
                // expanded before they are read.
                unsafe {
                    self.expand(&expansion)?;
                    self.kernels()
                        .encrypt_secret(self.queue(), items, &arguments(&small))?;
                }
            }
        }
        joined.leave()?;
        Ok(result)
    }

    /// Decrypts a ciphertext of two or three parts: c_0 + c_1 s + c_2 s^2.
    ///
    /// # Errors
    /// A ciphertext or secret of other parameters or of another device,
    /// [`CkksError::SecretMismatch`](fhelium_ckks::CkksError::SecretMismatch), and the device's.
    pub fn decrypt(&self, ciphertext: &Ciphertext, secret: &SecretKey) -> Result<Plaintext> {
        self.check_parameters("decrypt", "ciphertext", ciphertext.parameters)?;
        self.check_parameters("decrypt", "secret key", secret.parameters)?;
        if secret.id != ciphertext.secret {
            return Err(CkksError::SecretMismatch {
                operation: "decrypt",
                what: "secret key",
                found: secret.id,
                expected: ciphertext.secret,
            }
            .into());
        }
        let (state, items) = (&ciphertext.state, ciphertext.items());
        self.check_rows("decrypt", items)?;
        let _turn = self.queue().lock()?;
        let joined = self.join(
            "decrypt",
            &[
                ("ciphertext", &ciphertext.data),
                ("secret key", &secret.data),
            ],
        )?;
        let plain = PlainState {
            level: state.level,
            scale: state.scale.clone(),
        };
        let result = self.plain_result(plain, ciphertext.batch_shape.clone())?;
        let arguments = Decrypt {
            primes: self.tables().primes(),
            source: ciphertext.data.address(),
            secret: secret.data.address(),
            target: result.data.address(),
            basis: self.basis(state.level + 1),
            log_n: self.parameters().log_n(),
            parts: state.parts as u32,
        };
        // SAFETY: ciphertext and result have the same items and limbs, the secret no fewer limbs.
        unsafe { self.kernels().decrypt(self.queue(), items, &arguments)? };
        joined.leave()?;
        Ok(result)
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
        self.check_parameters("decrypt", "plaintext", plaintext.parameters)?;
        let level = plaintext.state.level;
        let items: usize = plaintext.batch_shape.iter().product();
        self.check_rows("decrypt", items)?;
        let draw = FloodingDraw::new(self.host(), level, items, flooding, randomness)?;
        let largest = draw
            .coefficients
            .iter()
            .fold(0.0f64, |max, c| max.max(c.abs()));
        let _turn = self.queue().lock()?;
        let joined = self.join("decrypt", &[("plaintext", &plaintext.data)])?;
        let coefficients = self.queue().allocate_secret(draw.coefficients.len())?;
        self.queue().fill(&coefficients, &draw.coefficients)?;
        let noise = self.queue().allocate_secret(plaintext.data.words())?;
        self.round(&coefficients, &draw.scale, largest, &noise, level)?;
        let result = self.plain_result(plaintext.state.clone(), plaintext.batch_shape.clone())?;
        let target = self.plain_polynomials(&result);
        let arguments = Binary {
            primes: self.tables().primes(),
            a: self.plain_polynomials(&plaintext),
            b: self.operand(&noise, 1, level + 1),
            target: target.data,
            target_batch_stride: target.batch_stride,
            target_part_stride: target.part_stride,
            basis: self.basis(level + 1),
            log_n: self.parameters().log_n(),
            parts: 1,
            a_parts: 1,
            b_parts: 1,
        };
        // SAFETY: all three have the same items and limbs.
        unsafe {
            self.kernels()
                .combine(self.queue(), Combination::Add, items, &arguments)?
        };
        joined.leave()?;
        Ok(result)
    }
}
