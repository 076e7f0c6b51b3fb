//! Key generation.

use super::switch::uniform_limb;
use super::{KeyKind, KeySwitchKey, PublicKey, SecretId, SecretKey, normalize_step};
use crate::arith::order;
use crate::context::Context;
use crate::draws::{KeyDraw, SecretDraw};
use crate::error::{CkksError, Result};
use crate::random::Randomness;
use crate::sampler::{Purpose, lift, uniform_from_seed};
use crate::values::zeroed;
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// Makes secrets and keys.
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
    /// [`CkksError::Randomness`].
    pub fn secret(&self) -> Result<SecretKey> {
        let draw = SecretDraw::new(self.randomness)?;
        self.secret_of(draw.id, &draw.coefficients.sample(self.context))
    }

    /// A secret from stored coefficients, as [`SecretKey::coefficients`] gave them, and its id.
    ///
    /// # Errors
    /// [`CkksError::Shape`] for another number of coefficients than N or one outside -1 ... 1; the
    /// message does not repeat it.
    pub fn secret_from_coefficients(&self, id: SecretId, coefficients: &[i8]) -> Result<SecretKey> {
        let n = self.context.n();
        if coefficients.len() != n || coefficients.iter().any(|c| !(-1..=1).contains(c)) {
            return Err(CkksError::Shape {
                operation: "SecretKey",
                found: format!(
                    "{} coefficients, or one that is not ternary",
                    coefficients.len()
                ),
                expected: format!("{n} coefficients in -1..=1"),
            });
        }
        self.secret_of(id, coefficients)
    }

    fn secret_of(&self, id: SecretId, small: &[i8]) -> Result<SecretKey> {
        let context = self.context;
        let words = context.limbs().len() * context.n();
        let mut residues = Zeroizing::new(zeroed("SecretKey", words)?);
        context.each_limb(&mut residues, |index, limb| {
            let ring = &context.limbs()[index];
            lift(small, ring.modulus(), limb);
            ring.forward(limb);
        });
        Ok(SecretKey {
            parameters: context.parameters().id(),
            id,
            residues,
        })
    }

    /// The public key of a secret.
    ///
    /// # Errors
    /// [`CkksError::ParametersMismatch`], [`CkksError::Randomness`].
    pub fn public(&self, secret: &SecretKey) -> Result<PublicKey> {
        let context = self.context;
        context
            .parameters()
            .check_id("public key", "secret key", secret.parameters)?;
        let KeyDraw { seed, errors } = KeyDraw::new(1, self.randomness)?;
        let errors = errors.sample(context);
        let mut b = zeroed(
            "public key",
            context.parameters().moduli().len() * context.n(),
        )?;
        context.each_limb(&mut b, |index, b| {
            let ring = &context.limbs()[index];
            lift(&errors, ring.modulus(), b);
            ring.forward(b);
            // a t tells t, a being public.
            let mut a = Zeroizing::new(vec![0; context.n()]);
            uniform_from_seed(&seed, Purpose::PublicKey, 0, index, ring.modulus(), &mut a);
            ring.mul_assign(&mut a, limb_of(&secret.residues, index, context.n()));
            ring.sub_assign(b, &a);
        });
        let parameters = context.parameters().id();
        Ok(PublicKey {
            parameters,
            secret: secret.id,
            seed,
            b,
            a: OnceLock::new(),
        })
    }

    /// The key that relinearizes products.
    ///
    /// # Errors
    /// [`CkksError::ParametersMismatch`], [`CkksError::Randomness`], [`CkksError::OutOfMemory`].
    pub fn relinearization(&self, secret: &SecretKey) -> Result<KeySwitchKey> {
        self.key(secret, KeyKind::Relinearization)
    }

    /// The key of the rotation by `step` slots, in either direction.
    ///
    /// # Errors
    /// As [`relinearization`](Self::relinearization), and [`CkksError::Parameter`] for a multiple of
    /// the slots, which needs no key.
    pub fn rotation(&self, secret: &SecretKey, step: i64) -> Result<KeySwitchKey> {
        let step = normalize_step(step, self.context.parameters().slots());
        self.key(secret, KeyKind::Rotation { step })
    }

    /// The key of the conjugation.
    ///
    /// # Errors
    /// As [`relinearization`](Self::relinearization).
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
        parameters.check_id("key generation", "secret key", secret.parameters)?;
        kind.check(parameters.slots())?;
        let n = context.n();
        let limbs = context.limbs().len();
        let [source, target] = self.source_and_target(secret, kind)?;
        let digits = parameters.digits(parameters.depth());
        let KeyDraw { seed, errors } = KeyDraw::new(digits, self.randomness)?;
        let errors = errors.sample(context);
        let mut b = zeroed("key generation", digits * limbs * n)?;
        context.each_limb(&mut b, |index, b| {
            let (digit, limb) = (index / limbs, index % limbs);
            let ring = &context.limbs()[limb];
            lift(&errors[digit * n..][..n], ring.modulus(), b);
            ring.forward(b);
            // a t tells t, a being public.
            let mut a = Zeroizing::new(vec![0; n]);
            uniform_limb(context, &seed, digit, limb, &mut a);
            ring.mul_assign(&mut a, limb_of(&target, limb, n));
            ring.sub_assign(b, &a);
            if parameters
                .digit_range(parameters.depth(), digit)
                .contains(&limb)
            {
                let special = context.special_product(limb);
                ring.mul_scalar_add_assign(b, limb_of(&source, limb, n), special);
            }
        });
        Ok(KeySwitchKey {
            parameters: parameters.id(),
            secret: secret.id,
            kind,
            seed,
            b,
            a: OnceLock::new(),
        })
    }

    /// s' and t of [`KeySwitchKey`].
    fn source_and_target(
        &self,
        secret: &SecretKey,
        kind: KeyKind,
    ) -> Result<[Zeroizing<Vec<u64>>; 2]> {
        let context = self.context;
        let mut changed = Zeroizing::new(zeroed("key generation", secret.residues.len())?);
        if kind == KeyKind::Relinearization {
            context.each_limb(&mut changed, |index, out| {
                let limb = limb_of(&secret.residues, index, context.n());
                context.limbs()[index].mul(out, limb, limb);
            });
            return Ok([changed, secret.residues.clone()]);
        }
        let inverse = context.permutation(kind.inverse_galois(context.n()));
        context.each_limb(&mut changed, |index, out| {
            order::permute(out, limb_of(&secret.residues, index, context.n()), &inverse);
        });
        Ok([secret.residues.clone(), changed])
    }
}

fn limb_of(residues: &[u64], index: usize, n: usize) -> &[u64] {
    &residues[index * n..][..n]
}
