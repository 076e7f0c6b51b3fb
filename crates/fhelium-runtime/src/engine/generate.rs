//! Making keys, where the engine computes.

use super::Engine;
use crate::RuntimeError;
use crate::placed::{KeySwitchKey, Placed, PublicKey, SecretKey};
use fhelium_ckks::KeyKind;
use std::sync::Arc;

/// The key generator of a place.
pub(super) enum Generator<'a> {
    Host(fhelium_ckks::KeyGenerator<'a>),
    Cuda(fhelium_cuda::KeyGenerator<'a>),
}

impl<'a> Generator<'a> {
    pub fn of(engine: &'a Engine) -> Self {
        let randomness = &engine.randomness;
        match engine.cuda() {
            Some(context) => Generator::Cuda(fhelium_cuda::KeyGenerator::new(context, randomness)),
            None => Generator::Host(fhelium_ckks::KeyGenerator::new(
                engine.context(),
                randomness,
            )),
        }
    }

    pub fn secret(&self) -> Result<SecretKey, RuntimeError> {
        Ok(match self {
            Generator::Host(keys) => keys.secret()?.into(),
            Generator::Cuda(keys) => Placed::Cuda(Arc::new(keys.secret()?)),
        })
    }

    pub fn public(&self, secret: &SecretKey) -> Result<PublicKey, RuntimeError> {
        Ok(match self {
            Generator::Host(keys) => keys.public(secret.host()?)?.into(),
            Generator::Cuda(keys) => Placed::Cuda(Arc::new(keys.public(secret.cuda()?)?)),
        })
    }

    pub fn key(&self, secret: &SecretKey, kind: KeyKind) -> Result<KeySwitchKey, RuntimeError> {
        Ok(match self {
            Generator::Host(keys) => keys.key(secret.host()?, kind)?.into(),
            Generator::Cuda(keys) => Placed::Cuda(Arc::new(keys.key(secret.cuda()?, kind)?)),
        })
    }
}
