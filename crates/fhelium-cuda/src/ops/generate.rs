//! Key generation.

use crate::context::Context;
use crate::error::Result;
use crate::kernels::{Encrypt, MakeKey};
use crate::keys::{KeySwitchKey, PublicKey, SecretKey};
use fhelium_ckks::draws::{KeyDraw, SecretDraw};
use fhelium_ckks::{KeyKind, Randomness};
use std::sync::Arc;

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
        let context = self.context;
        let draw = SecretDraw::new(self.randomness)?;
        let _turn = context.queue().lock()?;
        let basis = context.basis(context.tables().moduli.len());
        Ok(SecretKey {
            parameters: context.parameters().id(),
            id: draw.id,
            data: Arc::new(context.small_polynomials(&draw.coefficients, basis)?),
        })
    }

    /// The public key of a secret.
    ///
    /// # Errors
    /// A secret of other parameters,
    /// [`CkksError::Randomness`](fhelium_ckks::CkksError::Randomness), and the device's.
    pub fn public(&self, secret: &SecretKey) -> Result<PublicKey> {
        let context = self.context;
        context.check_parameters("public key", "secret key", secret.parameters)?;
        let draw = KeyDraw::new(1, self.randomness)?;
        let _turn = context.queue().lock()?;
        let joined = context.join("public key", &[("secret key", &secret.data)])?;
        let limbs = context.parameters().moduli().len();
        let basis = context.basis(limbs);
        let error = context.small_polynomials(&draw.errors, basis)?;
        let data = context.queue().allocate(2 * limbs * context.n())?;
        context.expand_public(&data, &draw.seed)?;
        let arguments = Encrypt {
            primes: context.tables().primes(),
            small: error.address(),
            key: secret.data.address(),
            message: 0,
            target: data.address(),
            basis,
            log_n: context.parameters().log_n(),
            key_limbs: limbs as u32,
        };
        // SAFETY: the key is like a ciphertext at the highest level, and so is the error.
        unsafe {
            context
                .kernels()
                .encrypt_secret(context.queue(), 1, &arguments)?
        };
        joined.leave()?;
        Ok(PublicKey {
            parameters: secret.parameters,
            secret: secret.id,
            seed: draw.seed,
            data: Arc::new(data),
        })
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
        let context = self.context;
        let parameters = context.parameters();
        context.check_parameters("key generation", "secret key", secret.parameters)?;
        kind.check(parameters.slots())?;
        let digits = parameters.digits(parameters.depth());
        let draw = KeyDraw::new(digits, self.randomness)?;
        let _turn = context.queue().lock()?;
        let joined = context.join("key generation", &[("secret key", &secret.data)])?;
        let limbs = context.tables().moduli.len();
        let errors = context.small_polynomials(&draw.errors, context.basis(limbs))?;
        let uniform = context.uniform_halves(&draw.seed, digits)?;
        let data = context.queue().allocate(2 * uniform.words())?;
        let arguments = MakeKey {
            primes: context.tables().primes(),
            special: context.tables().scheme.special_products(),
            errors: errors.address(),
            uniform: uniform.address(),
            secret: secret.data.address(),
            target: data.address(),
            limbs: limbs as u32,
            level_primes: parameters.moduli().len() as u32,
            digit_size: parameters.digit_size() as u32,
            galois_inverse: match kind {
                KeyKind::Relinearization => 0,
                KeyKind::Rotation { .. } | KeyKind::Conjugation => {
                    kind.inverse_galois(parameters.n()) as u32
                }
            },
            log_n: parameters.log_n(),
            unused: 0,
        };
        // SAFETY: all have as many digits of all limbs, the secret one, the key two halves.
        unsafe {
            context
                .kernels()
                .make_key(context.queue(), digits, &arguments)?
        };
        joined.leave()?;
        Ok(KeySwitchKey {
            parameters: secret.parameters,
            secret: secret.id,
            kind,
            seed: draw.seed,
            data: Arc::new(data),
        })
    }
}
