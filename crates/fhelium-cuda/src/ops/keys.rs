//! Secrets and keys to the device and back.

use crate::context::Context;
use crate::error::Result;
use crate::kernels::{HoldKey, ReleaseKey};
use crate::keys::{KeySwitchKey, PublicKey, SecretKey};
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
        let moduli = &self.tables().moduli;
        let residues = moduli
            .iter()
            .flat_map(|modulus| small.iter().map(|&s| modulus.from_i64(s.into())));
        let residues = Zeroizing::new(residues.collect::<Vec<_>>());
        let _order = self.queue().lock();
        let data = self.queue().allocate_secret(residues.len())?;
        self.queue().fill(&data, &residues)?;
        self.forward_over(&data, self.basis(moduli.len()), 1)?;
        Ok(SecretKey {
            parameters: secret.parameters_id(),
            id: secret.secret_id(),
            data: Arc::new(data),
        })
    }

    /// Moves a secret to the host.
    ///
    /// # Errors
    /// As [`download`](Self::download).
    pub fn download_secret(&self, secret: &SecretKey) -> Result<fhelium_ckks::SecretKey> {
        self.check_parameters("download", "secret key", secret.parameters)?;
        let _order = self.queue().lock();
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

    /// Moves an encryption key to the device.
    ///
    /// # Errors
    /// As [`upload`](Self::upload).
    pub fn upload_public(&self, key: &fhelium_ckks::PublicKey) -> Result<PublicKey> {
        self.check_parameters("upload", "public key", key.parameters_id())?;
        let halves = [key.residues(), key.uniform(self.host())].concat();
        Ok(PublicKey {
            parameters: key.parameters_id(),
            secret: key.secret_id(),
            seed: *key.seed(),
            data: Arc::new(self.queue().upload(&halves)?),
        })
    }

    /// Moves an encryption key to the host: the very one that was uploaded.
    ///
    /// # Errors
    /// As [`download`](Self::download).
    pub fn download_public(&self, key: &PublicKey) -> Result<fhelium_ckks::PublicKey> {
        self.check_parameters("download", "public key", key.parameters)?;
        let joined = self.join("download", &[("public key", &key.data)])?;
        let b = self
            .queue()
            .download_first(&key.data, key.data.words() / 2)?;
        joined.leave()?;
        let key = fhelium_ckks::PublicKey::from_raw(self.parameters(), key.secret, key.seed, b);
        Ok(key?)
    }

    /// Moves an evaluation key to the device, expanded and in the kernels' form.
    ///
    /// # Errors
    /// As [`upload`](Self::upload).
    pub fn upload_key(&self, key: &fhelium_ckks::KeySwitchKey) -> Result<KeySwitchKey> {
        self.check_parameters("upload", "key", key.parameters_id())?;
        let _order = self.queue().lock();
        let limbs = self.tables().moduli.len();
        let half = limbs * self.n();
        let digits = key.residues().len() / half;
        let data = self.queue().allocate(2 * digits * half)?;
        for (index, residues) in [key.residues(), key.uniform(self.host())]
            .into_iter()
            .enumerate()
        {
            let source = self.queue().upload(residues)?;
            let arguments = HoldKey {
                primes: self.tables().primes(),
                source: source.address(),
                target: data.address() + (index * half * size_of::<u64>()) as u64,
                source_stride: half as u64,
                target_stride: 2 * half as u64,
                log_n: self.parameters().log_n(),
                unused: 0,
            };
            // SAFETY: both buffers hold as many digits of all limbs.
            unsafe {
                self.kernels()
                    .hold_key(self.queue(), limbs, digits, &arguments)?
            };
        }
        Ok(KeySwitchKey {
            parameters: key.parameters_id(),
            secret: key.secret_id(),
            kind: key.key_kind(),
            seed: *key.seed(),
            data: Arc::new(data),
        })
    }

    /// Moves an evaluation key to the host: the very one that was uploaded, its uniform halves as a
    /// seed.
    ///
    /// # Errors
    /// As [`download`](Self::download).
    pub fn download_key(&self, key: &KeySwitchKey) -> Result<fhelium_ckks::KeySwitchKey> {
        self.check_parameters("download", "key", key.parameters)?;
        let _order = self.queue().lock();
        let joined = self.join("download", &[("key", &key.data)])?;
        let limbs = self.tables().moduli.len();
        let half = limbs * self.n();
        let digits = key.data.words() / (2 * half);
        let b = self.queue().allocate(digits * half)?;
        let arguments = ReleaseKey {
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
