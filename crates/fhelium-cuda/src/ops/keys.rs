//! Secrets and keys to the device and back.

use super::sample::Expansion;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::HoldKey;
use crate::keys::{KeySwitchKey, PublicKey, SecretKey};
use crate::queue::Buffer;
use fhelium_ckks::draws::Purpose;
use fhelium_ckks::{KeyGenerator, Randomness};
use std::sync::Arc;
use zeroize::Zeroizing;

impl Context {
    /// Moves a secret to the device.
    ///
    /// # Errors
    /// As [`upload`](Self::upload).
    pub fn upload_secret(&self, secret: &fhelium_ckks::SecretKey) -> Result<SecretKey> {
        self.check_parameters("upload", "secret key", secret.parameters_id())?;
        let small = secret.coefficients(self.host())?;
        let _turn = self.queue().lock()?;
        let words = self.n() / size_of::<u64>();
        let source = self.queue().allocate_secret(words)?;
        self.queue().fill(&source, &small[..])?;
        let basis = self.basis(self.tables().moduli.len());
        Ok(SecretKey {
            parameters: secret.parameters_id(),
            id: secret.secret_id(),
            data: Arc::new(self.lifted(&source, 1, basis)?),
        })
    }

    /// Moves a secret to the host.
    ///
    /// # Errors
    /// As [`download`](Self::download).
    pub fn download_secret(&self, secret: &SecretKey) -> Result<fhelium_ckks::SecretKey> {
        self.check_parameters("download", "secret key", secret.parameters)?;
        let _turn = self.queue().lock()?;
        let joined = self.join("download", &[("secret key", &secret.data)])?;
        // One limb tells the coefficients.
        let limb = self.queue().allocate_secret(self.n())?;
        self.queue().copy(&limb, 0, &secret.data, 0, self.n())?;
        joined.leave()?;
        self.inverse(&limb, 0, 1)?;
        let words = Zeroizing::new(self.queue().download(&limb)?);
        let modulus = self.tables().moduli[0];
        let small = words.iter().map(|&word| modulus.centered(word) as i8);
        let small = Zeroizing::new(small.collect::<Vec<_>>());
        // Nothing is drawn from it: the coefficients are known.
        let randomness = Randomness::from_os()?;
        let keys = KeyGenerator::new(self.host(), &randomness);
        Ok(keys.secret_from_coefficients(secret.id, &small)?)
    }

    /// Moves an encryption key to the device: one half and the seed, which is expanded there.
    ///
    /// # Errors
    /// As [`upload`](Self::upload).
    pub fn upload_public(&self, key: &fhelium_ckks::PublicKey) -> Result<PublicKey> {
        self.check_parameters("upload", "public key", key.parameters_id())?;
        let _turn = self.queue().lock()?;
        let data = self.queue().allocate(2 * key.residues().len())?;
        self.queue().fill(&data, key.residues())?;
        self.expand_public(&data, key.seed())?;
        Ok(PublicKey {
            parameters: key.parameters_id(),
            secret: key.secret_id(),
            seed: *key.seed(),
            data: Arc::new(data),
        })
    }

    /// Expands the second half of a public key.
    pub(super) fn expand_public(&self, data: &Buffer, seed: &[u8; 32]) -> Result<()> {
        let limbs = self.parameters().moduli().len();
        let half = limbs * self.n();
        let expansion = Expansion {
            purpose: Purpose::PublicKey,
            seeds: &[*seed],
            basis: self.basis(limbs),
            polynomials: 1,
            target: data.address() + (half * size_of::<u64>()) as u64,
            target_stride: half,
        };
        // SAFETY: the key holds two halves.
        unsafe { self.expand(&expansion) }
    }

    /// Moves an encryption key to the host: the very one that was uploaded.
    ///
    /// # Errors
    /// As [`download`](Self::download).
    pub fn download_public(&self, key: &PublicKey) -> Result<fhelium_ckks::PublicKey> {
        self.check_parameters("download", "public key", key.parameters)?;
        let joined = self.join("download", &[("public key", &key.data)])?;
        let half = key.data.words() / 2;
        let b = self.queue().download_first(&key.data, half)?;
        joined.leave()?;
        let key = fhelium_ckks::PublicKey::from_raw(self.parameters(), key.secret, key.seed, b);
        Ok(key?)
    }

    /// Moves an evaluation key to the device: one half and the seed, which is expanded there, in the
    /// kernels' form.
    ///
    /// # Errors
    /// As [`upload`](Self::upload).
    pub fn upload_key(&self, key: &fhelium_ckks::KeySwitchKey) -> Result<KeySwitchKey> {
        self.check_parameters("upload", "key", key.parameters_id())?;
        let _turn = self.queue().lock()?;
        let half = self.tables().moduli.len() * self.n();
        let digits = key.residues().len() / half;
        let data = self.queue().allocate(2 * digits * half)?;
        let b = self.queue().upload(key.residues())?;
        self.hold_half(&b, &data, 0)?;
        drop(b);
        let a = self.uniform_halves(key.seed(), digits)?;
        self.hold_half(&a, &data, 1)?;
        Ok(KeySwitchKey {
            parameters: key.parameters_id(),
            secret: key.secret_id(),
            kind: key.key_kind(),
            seed: *key.seed(),
            data: Arc::new(data),
        })
    }

    /// The uniform halves of an evaluation key, (digit, limb, N).
    pub(super) fn uniform_halves(&self, seed: &[u8; 32], digits: usize) -> Result<Buffer> {
        let limbs = self.tables().moduli.len();
        let halves = self.queue().allocate(digits * limbs * self.n())?;
        let expansion = Expansion {
            purpose: Purpose::KeySwitchKey,
            seeds: &[*seed],
            basis: self.basis(limbs),
            polynomials: digits,
            target: halves.address(),
            target_stride: limbs * self.n(),
        };
        // SAFETY: the buffer was just made for them.
        unsafe { self.expand(&expansion)? };
        Ok(halves)
    }

    /// Brings residues, (digit, limb, N), into one half of a key.
    fn hold_half(&self, residues: &Buffer, key: &Buffer, half: usize) -> Result<()> {
        let limbs = self.tables().moduli.len();
        let words = limbs * self.n();
        let digits = residues.words() / words;
        let arguments = HoldKey {
            primes: self.tables().primes(),
            source: residues.address(),
            target: key.address() + (half * words * size_of::<u64>()) as u64,
            source_stride: words as u64,
            target_stride: 2 * words as u64,
            log_n: self.parameters().log_n(),
            unused: 0,
        };
        // SAFETY: both buffers hold as many digits of all limbs, the key twice.
        unsafe {
            self.kernels()
                .hold_key(self.queue(), limbs, digits, &arguments)
        }
    }

    /// Moves an evaluation key to the host: the very one that was uploaded, its uniform halves as a
    /// seed.
    ///
    /// # Errors
    /// As [`download`](Self::download).
    pub fn download_key(&self, key: &KeySwitchKey) -> Result<fhelium_ckks::KeySwitchKey> {
        self.check_parameters("download", "key", key.parameters)?;
        let _turn = self.queue().lock()?;
        let joined = self.join("download", &[("key", &key.data)])?;
        let limbs = self.tables().moduli.len();
        let half = limbs * self.n();
        let digits = key.data.words() / (2 * half);
        let b = self.queue().allocate(digits * half)?;
        let arguments = HoldKey {
            primes: self.tables().primes(),
            source: key.data.address(),
            target: b.address(),
            source_stride: 2 * half as u64,
            target_stride: half as u64,
            log_n: self.parameters().log_n(),
            unused: 0,
        };
        // SAFETY: both buffers hold as many digits of all limbs.
        unsafe {
            self.kernels()
                .release_key(self.queue(), limbs, digits, &arguments)?
        };
        joined.leave()?;
        let b = self.queue().download(&b)?;
        Ok(fhelium_ckks::KeySwitchKey::from_raw(
            self.parameters(),
            key.secret,
            key.kind,
            key.seed,
            b,
        )?)
    }
}
