//! Encryption and decryption.

use crate::context::Context;
use crate::draws::{FloodingDraw, SecretEncryptionDraw, public_encryption};
use crate::error::{CkksError, Result};
use crate::keys::{PublicKey, SecretId, SecretKey};
use crate::parameters::ParametersId;
use crate::random::Randomness;
use crate::sampler::{Purpose, lift, uniform_from_seed};
use crate::values::{Ciphertext, Plaintext, batch_size};
use fhelium_state::{CipherState, PlainState};
use zeroize::Zeroizing;

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
    fn ids(self) -> (ParametersId, SecretId) {
        match self {
            EncryptionKey::Public(key) => (key.parameters, key.secret),
            EncryptionKey::Secret(key) => (key.parameters, key.id),
        }
    }
}

/// Gaussian noise added at decryption.
///
/// Decrypted CKKS values carry the ciphertext's noise, from which someone who also sees the
/// ciphertext can learn the secret (B. Li, D. Micciancio, "On the Security of Homomorphic Encryption
/// on Approximate Numbers", EUROCRYPT 2021). Whoever shares decrypted values should drown that noise
/// in a larger one: B. Li, D. Micciancio, M. Schultz, J. Sorrell, "Securing Approximate Homomorphic
/// Encryption Using Differential Privacy", CRYPTO 2022, asks for a standard deviation of sqrt(12 t)
/// 2^(k/2) times the ciphertext's noise for t decryptions at k bits of statistical security.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseFlooding {
    /// The binary logarithm of the standard deviation of the noise in each coefficient, before the
    /// division by the scale.
    pub log2_standard_deviation: f64,
}

impl Context {
    /// Encrypts each item of a plaintext's batch under its own masks.
    ///
    /// Under a public key (b, a), with a ternary u and Gaussian errors: (b u + e_0 + m, a u + e_1).
    /// Under a secret: (-a s + e + m, a) with a fresh uniform a.
    ///
    /// # Errors
    /// [`CkksError::ParametersMismatch`] for a plaintext or key of other parameters,
    /// [`CkksError::Randomness`].
    pub fn encrypt<'a>(
        &self,
        plaintext: &Plaintext,
        key: impl Into<EncryptionKey<'a>>,
        randomness: &Randomness,
    ) -> Result<Ciphertext> {
        let key = key.into();
        let parameters = self.parameters();
        let (key_parameters, secret) = key.ids();
        parameters.check_id("encrypt", "plaintext", plaintext.parameters)?;
        parameters.check_id("encrypt", "key", key_parameters)?;
        let (level, batch) = (plaintext.state.level, batch_size(&plaintext.batch_shape));
        let words = (level + 1) * self.n();
        let mut data = self.result_buffer("encrypt", batch * 2 * words)?;
        let items = plaintext
            .data
            .chunks_exact(words)
            .zip(data.chunks_exact_mut(2 * words));
        match key {
            EncryptionKey::Public(key) => {
                let small = public_encryption(batch, randomness)?.sample(self);
                for ((message, parts), small) in items.zip(small.chunks_exact(3 * self.n())) {
                    self.encrypt_public(message, parts, key, small);
                }
            }
            EncryptionKey::Secret(key) => {
                let draw = SecretEncryptionDraw::new(batch, randomness)?;
                let errors = draw.errors.sample(self);
                let draws = errors.chunks_exact(self.n()).zip(&draw.seeds);
                for ((message, parts), (error, seed)) in items.zip(draws) {
                    self.encrypt_secret(message, parts, key, error, seed);
                }
            }
        }
        Ok(Ciphertext {
            parameters: parameters.id(),
            secret,
            state: CipherState::new(level, plaintext.state.scale.clone()),
            batch_shape: plaintext.batch_shape.clone(),
            data,
        })
    }

    fn encrypt_public(&self, message: &[u64], parts: &mut [u64], key: &PublicKey, small: &[i8]) {
        let n = self.n();
        let (mask, errors) = small.split_at(n);
        let (first, second) = errors.split_at(n);
        let uniform = key.uniform(self);
        let (c0, c1) = parts.split_at_mut(message.len());
        let limbs = c0
            .chunks_exact_mut(n)
            .zip(c1.chunks_exact_mut(n))
            .enumerate();
        self.each(limbs.collect(), |(index, (c0, c1))| {
            let ring = &self.limbs()[index];
            let at = index * n..(index + 1) * n;
            let mut u = Zeroizing::new(vec![0; n]);
            lift(mask, ring.modulus(), &mut u);
            ring.forward(&mut u);
            for (out, error, half) in [(&mut *c0, first, &key.b[..]), (&mut *c1, second, uniform)] {
                lift(error, ring.modulus(), out);
                ring.forward(out);
                ring.mul_add_assign(out, &u, &half[at.clone()]);
            }
            ring.add_assign(c0, &message[at]);
        });
    }

    fn encrypt_secret(
        &self,
        message: &[u64],
        parts: &mut [u64],
        key: &SecretKey,
        error: &[i8],
        seed: &[u8; 32],
    ) {
        let n = self.n();
        let (c0, c1) = parts.split_at_mut(message.len());
        let limbs = c0
            .chunks_exact_mut(n)
            .zip(c1.chunks_exact_mut(n))
            .enumerate();
        self.each(limbs.collect(), |(index, (c0, c1))| {
            let ring = &self.limbs()[index];
            let at = index * n..(index + 1) * n;
            lift(error, ring.modulus(), c0);
            ring.forward(c0);
            ring.add_assign(c0, &message[at.clone()]);
            uniform_from_seed(seed, Purpose::Ciphertext, 0, index, ring.modulus(), c1);
            // a s tells s, a being public.
            let mut product = Zeroizing::new(vec![0; n]);
            ring.mul(&mut product, c1, &key.residues[at]);
            ring.sub_assign(c0, &product);
        });
    }

    /// Decrypts a ciphertext of two or three parts: c_0 + c_1 s + c_2 s^2.
    ///
    /// # Errors
    /// [`CkksError::ParametersMismatch`] and [`CkksError::SecretMismatch`] for a ciphertext of other
    /// parameters or of another secret.
    pub fn decrypt(&self, ciphertext: &Ciphertext, secret: &SecretKey) -> Result<Plaintext> {
        let parameters = self.parameters();
        parameters.check_id("decrypt", "ciphertext", ciphertext.parameters)?;
        parameters.check_id("decrypt", "secret key", secret.parameters)?;
        if secret.id != ciphertext.secret {
            return Err(CkksError::SecretMismatch {
                operation: "decrypt",
                what: "secret key",
                found: secret.id,
                expected: ciphertext.secret,
            });
        }
        let n = self.n();
        let state = &ciphertext.state;
        let (limbs, parts) = (state.level + 1, state.parts);
        let batch = batch_size(&ciphertext.batch_shape);
        let mut data = self.result_buffer("decrypt", batch * limbs * n)?;
        self.each_limb(&mut data, |index, out| {
            let (item, limb) = (index / limbs, index % limbs);
            let ring = &self.limbs()[limb];
            let part =
                |part: usize| &ciphertext.data[((item * parts + part) * limbs + limb) * n..][..n];
            let s = &secret.residues[limb * n..][..n];
            // Horner: (c_2 s + c_1) s + c_0.
            out.copy_from_slice(part(parts - 1));
            for index in (0..parts - 1).rev() {
                ring.mul_assign(out, s);
                ring.add_assign(out, part(index));
            }
        });
        Ok(Plaintext {
            parameters: parameters.id(),
            state: PlainState {
                level: state.level,
                scale: state.scale.clone(),
            },
            batch_shape: ciphertext.batch_shape.clone(),
            data,
        })
    }

    /// Adds noise to each coefficient of a decrypted plaintext; see [`NoiseFlooding`].
    ///
    /// # Errors
    /// [`CkksError::Parameter`] for a standard deviation that is not finite, below one, or too large
    /// for the modulus at the plaintext's level; [`CkksError::ParametersMismatch`],
    /// [`CkksError::Randomness`].
    pub fn flood(
        &self,
        mut plaintext: Plaintext,
        flooding: NoiseFlooding,
        randomness: &Randomness,
    ) -> Result<Plaintext> {
        self.parameters()
            .check_id("decrypt", "plaintext", plaintext.parameters)?;
        let (level, items) = (plaintext.state.level, batch_size(&plaintext.batch_shape));
        let draw = FloodingDraw::new(self, level, items, flooding, randomness)?;
        let (n, limbs) = (self.n(), level + 1);
        self.each_limb(&mut plaintext.data, |index, out| {
            let ring = &self.limbs()[index % limbs];
            let mut noise = Zeroizing::new(vec![0; n]);
            let item = &draw.coefficients[index / limbs * n..][..n];
            draw.scale.round(item).residues(ring, &mut noise);
            ring.forward(&mut noise);
            ring.add_assign(out, &noise);
        });
        Ok(plaintext)
    }
}
