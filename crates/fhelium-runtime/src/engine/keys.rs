//! Evaluation keys, and the registry in which operations find them.

use crate::error::{MissingKey, MissingKeys};
use crate::placed::{KeySwitchKey, Placed, PublicKey, SecretKey};
use crate::value::key_kind;
use crate::{Device, RuntimeError};
use fhelium_ckks::{ParametersId, SecretId};
use fhelium_ir::KeyKind;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

/// The keys of one secret, as [`Engine::keygen`](crate::Engine::keygen) makes them.
#[derive(Clone, Debug)]
pub struct KeySet {
    /// Decrypts; keep it.
    pub secret: SecretKey,
    /// Encrypts.
    pub public: PublicKey,
    /// For products of ciphertexts.
    pub relinearization: KeySwitchKey,
    /// For rotations, by step modulo the slots.
    pub rotations: BTreeMap<usize, KeySwitchKey>,
    /// For conjugation, where it was asked for.
    pub conjugation: Option<KeySwitchKey>,
}

impl KeySet {
    /// The keys that a server needs: all but the secret one.
    pub fn evaluation(&self) -> EvaluationKeys {
        EvaluationKeys {
            public: Some(self.public.clone()),
            relinearization: Some(self.relinearization.clone()),
            rotations: self.rotations.clone(),
            conjugation: self.conjugation.clone(),
        }
    }

    /// Bytes of all keys as they are stored.
    pub fn nbytes(&self) -> usize {
        self.secret.nbytes() + self.evaluation().nbytes()
    }
}

/// Keys that compute on ciphertexts and cannot decrypt them.
#[derive(Clone, Debug, Default)]
pub struct EvaluationKeys {
    /// Encrypts.
    pub public: Option<PublicKey>,
    /// For products of ciphertexts.
    pub relinearization: Option<KeySwitchKey>,
    /// For rotations, by step modulo the slots.
    pub rotations: BTreeMap<usize, KeySwitchKey>,
    /// For conjugation.
    pub conjugation: Option<KeySwitchKey>,
}

impl EvaluationKeys {
    /// The key-switching keys.
    pub fn keys(&self) -> impl Iterator<Item = &KeySwitchKey> {
        self.relinearization
            .iter()
            .chain(self.rotations.values())
            .chain(&self.conjugation)
    }

    /// Where they are: an engine makes and moves all of them together. Host memory where there are
    /// none.
    pub fn device(&self) -> Device {
        let public = self.public.as_ref().map(Placed::device);
        let device = public.or_else(|| self.keys().next().map(Placed::device));
        device.unwrap_or(Device::Cpu)
    }

    /// Bytes of all keys as they are stored.
    pub fn nbytes(&self) -> usize {
        let public = self.public.as_ref().map_or(0, |key| key.nbytes());
        public + self.keys().map(|key| key.nbytes()).sum::<usize>()
    }
}

/// Keys by secret and kind; shared by all threads of an engine.
#[derive(Debug)]
pub(crate) struct KeyRegistry {
    /// Tells registries apart.
    id: u64,
    keys: RwLock<HashMap<SecretId, BTreeMap<KeyKind, KeySwitchKey>>>,
    version: AtomicU64,
}

impl Default for KeyRegistry {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        KeyRegistry {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            keys: RwLock::default(),
            version: AtomicU64::new(0),
        }
    }
}

impl KeyRegistry {
    /// Adds keys; a key of the same secret and kind is replaced.
    pub fn add<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a KeySwitchKey>,
        parameters: ParametersId,
    ) -> Result<(), RuntimeError> {
        let keys: Vec<_> = keys.into_iter().collect();
        // All are checked before any is added.
        for key in &keys {
            if key.parameters_id() != parameters {
                return Err(RuntimeError::KeyMismatch(format!(
                    "the {} key belongs to parameters {}, but the engine has {parameters}; \
                     generate keys with an engine of the same parameters",
                    key_kind(key),
                    key.parameters_id()
                )));
            }
        }
        let mut known = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            known
                .entry(key.secret_id())
                .or_default()
                .insert(key_kind(key), key.clone());
        }
        // Inside the lock, so that whoever sees the version sees the keys.
        self.version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Which registry this is, and a number that changes with every addition.
    pub fn version(&self) -> (u64, u64) {
        (self.id, self.version.load(Ordering::Acquire))
    }

    /// The key of this secret and kind; rotation steps are modulo the slots here.
    pub fn find(&self, secret: SecretId, kind: KeyKind) -> Option<KeySwitchKey> {
        let known = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&secret)?.get(&kind).cloned()
    }

    /// The key, or the error that names it and those there are.
    pub fn require(&self, secret: SecretId, kind: KeyKind) -> Result<KeySwitchKey, RuntimeError> {
        self.find(secret, kind).ok_or_else(|| {
            MissingKeys {
                missing: vec![MissingKey {
                    kind,
                    locations: Vec::new(),
                }],
                any_registered: self.has_any(secret),
                rotations: self.rotations(secret),
            }
            .into()
        })
    }

    /// Whether there is any key of this secret.
    pub fn has_any(&self, secret: SecretId) -> bool {
        let known = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        known.contains_key(&secret)
    }

    /// The steps for which there are rotation keys of this secret, ascending.
    pub fn rotations(&self, secret: SecretId) -> Vec<usize> {
        let known = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        known
            .get(&secret)
            .into_iter()
            .flat_map(BTreeMap::keys)
            .filter_map(|kind| match kind {
                KeyKind::Rotation { step } => usize::try_from(*step).ok(),
                KeyKind::Relinearization | KeyKind::Conjugation => None,
            })
            .collect()
    }
}
