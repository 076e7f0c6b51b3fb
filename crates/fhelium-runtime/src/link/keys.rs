//! The evaluation keys of a tape, by the secret of a call's ciphertexts.

use crate::engine::KeyRegistry;
use crate::error::{MissingKey, MissingKeys};
use crate::{RuntimeError, Value};
use fhelium_ckks::SecretId;
use fhelium_ir::{KeyKind, Location};
use std::sync::{Arc, PoisonError, RwLock};

/// A key that a tape needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredKey {
    /// The key; a rotation's step is taken modulo the slots.
    pub kind: KeyKind,
    /// The source lines of the operations that need it, without repetition.
    pub locations: Vec<Location>,
}

/// Keys found before, by secret.
#[derive(Debug, Default)]
pub(super) struct KeyTable {
    pub required: Vec<RequiredKey>,
    found: RwLock<Vec<Found>>,
}

#[derive(Debug)]
struct Found {
    secret: SecretId,
    /// The registry and its version when the keys were looked up.
    version: (u64, u64),
    keys: Arc<[Value]>,
}

/// Secrets that are remembered; a server that sees more looks keys up again.
const REMEMBERED: usize = 16;

impl KeyTable {
    pub fn new(required: Vec<RequiredKey>) -> Self {
        KeyTable {
            required,
            found: RwLock::default(),
        }
    }

    /// The keys in the order of `required`.
    ///
    /// # Errors
    /// [`MissingKeys`] with every key that is missing.
    pub fn resolve(
        &self,
        secret: Option<SecretId>,
        registry: &KeyRegistry,
    ) -> Result<Arc<[Value]>, RuntimeError> {
        if self.required.is_empty() {
            return Ok(Arc::default());
        }
        let Some(secret) = secret else {
            return Err(RuntimeError::KeyMismatch(
                "the program needs evaluation keys, but no ciphertext among its arguments says of \
                 which secret"
                    .to_owned(),
            ));
        };
        let version = registry.version();
        let known = self.found.read().unwrap_or_else(PoisonError::into_inner);
        let hit = known
            .iter()
            .find(|found| found.secret == secret && found.version == version);
        if let Some(found) = hit {
            return Ok(found.keys.clone());
        }
        drop(known);
        let mut missing = Vec::new();
        let mut keys = Vec::with_capacity(self.required.len());
        for required in &self.required {
            match registry.find(secret, required.kind) {
                Some(key) => keys.push(Value::Key(key)),
                None => missing.push(MissingKey {
                    kind: required.kind,
                    locations: required.locations.clone(),
                }),
            }
        }
        if !missing.is_empty() {
            return Err(MissingKeys {
                missing,
                any_registered: registry.has_any(secret),
                rotations: registry.rotations(secret),
            }
            .into());
        }
        let keys: Arc<[Value]> = keys.into();
        let mut known = self.found.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|found| found.secret != secret);
        if known.len() == REMEMBERED {
            known.remove(0);
        }
        known.push(Found {
            secret,
            version,
            keys: keys.clone(),
        });
        Ok(keys)
    }
}
