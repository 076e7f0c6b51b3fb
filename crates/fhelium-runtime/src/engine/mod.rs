//! The engine: a parameter set with its tables, threads, randomness and keys.

mod devices;
mod eager;
mod generate;
mod keys;
mod messages;
mod shared;

use generate::Generator;

pub(crate) use devices::{Carrier, ToHost};
pub(crate) use keys::KeyRegistry;
pub use keys::{EvaluationKeys, KeySet};

use crate::placed::{KeySwitchKey, SecretKey};
use crate::{Device, DeviceKind, OperationBackend, RuntimeError, Value};
use fhelium_ckks::arith::Tier;
use fhelium_ckks::{
    CkksError, Context, ContextOptions, KeyKind, Parameters, Randomness, SecretId, normalize_step,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Weak};

/// How an engine computes; results do not depend on it, but for the seed.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// Where it computes.
    pub device: Device,
    /// Threads; as many as the process may use by default.
    pub threads: Option<usize>,
    /// Vector instructions; the best of the machine by default.
    pub tier: Option<Tier>,
    /// A seed that makes keys and ciphertexts repeat, **for tests only**: whoever knows it knows
    /// every secret.
    pub seed: Option<u64>,
    /// The most bytes of the device's memory to use; all by default. For CUDA devices only.
    pub memory_limit: Option<usize>,
    /// What runs operations that are called one by one.
    pub backend: OperationBackend,
}

/// Everything that computing with one parameter set needs. Threads may share one.
pub struct Engine {
    this: Weak<Engine>,
    context: Context,
    cuda: Option<fhelium_cuda::Context>,
    device: Device,
    backend: OperationBackend,
    randomness: Randomness,
    registry: KeyRegistry,
}

impl Engine {
    /// An engine for a parameter set.
    ///
    /// # Errors
    /// [`RuntimeError::Cuda`] for a device that this machine or build lacks; the context's for
    /// threads or vector instructions that the machine lacks.
    pub fn new(parameters: &Parameters, options: EngineOptions) -> Result<Arc<Self>, RuntimeError> {
        let context = Context::new(
            parameters,
            ContextOptions {
                threads: options.threads,
                tier: options.tier,
            },
        )?;
        let cuda = devices::context_on(options.device, &context, options.memory_limit)?;
        let randomness = match options.seed {
            Some(seed) => Randomness::from_seed_for_tests(seed),
            None => Randomness::from_os()?,
        };
        let engine = Arc::new_cyclic(|this| Engine {
            this: this.clone(),
            context,
            cuda,
            device: options.device,
            backend: options.backend,
            randomness,
            registry: KeyRegistry::default(),
        });
        shared::remember(&engine);
        Ok(engine)
    }

    /// The shared handle of this engine, for implementations that keep it.
    pub fn handle(&self) -> Option<Arc<Engine>> {
        self.this.upgrade()
    }

    /// The parameters.
    pub fn parameters(&self) -> &Parameters {
        self.context.parameters()
    }

    /// Message slots of a ciphertext.
    pub fn slots(&self) -> usize {
        self.parameters().slots()
    }

    /// Where it computes.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The tables and threads of the host kernels.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// What runs operations that are called one by one.
    pub fn backend(&self) -> &OperationBackend {
        &self.backend
    }

    pub(crate) fn registry(&self) -> &KeyRegistry {
        &self.registry
    }

    /// A new secret with its keys, rotation keys for `rotations` (each modulo the slots, 0 needs
    /// none) and a conjugation key where asked for.
    ///
    /// # Errors
    /// [`CkksError::Randomness`], and [`CkksError::OutOfMemory`] with the bytes of all keys; on a
    /// device what it refuses.
    pub fn keygen(&self, rotations: &[i64], conjugation: bool) -> Result<KeySet, RuntimeError> {
        self.check_key_memory(self.predicted_key_bytes(rotations, conjugation))?;
        let generator = Generator::of(self);
        let secret = generator.secret()?;
        let mut keys = BTreeMap::new();
        for step in self.key_steps(rotations) {
            keys.insert(step, generator.key(&secret, KeyKind::Rotation { step })?);
        }
        Ok(KeySet {
            public: generator.public(&secret)?,
            relinearization: generator.key(&secret, KeyKind::Relinearization)?,
            rotations: keys,
            conjugation: match conjugation {
                true => Some(generator.key(&secret, KeyKind::Conjugation)?),
                false => None,
            },
            secret,
        })
    }

    /// More rotation keys for a secret, by step modulo the slots.
    ///
    /// # Errors
    /// As [`Engine::keygen`], and a secret of other parameters or on another device.
    pub fn rotation_keys(
        &self,
        secret: &SecretKey,
        rotations: &[i64],
    ) -> Result<BTreeMap<usize, KeySwitchKey>, RuntimeError> {
        self.check_devices(&"rotation_keys", [("the secret key", secret.device())])?;
        let generator = Generator::of(self);
        let steps = self.key_steps(rotations);
        self.check_key_memory(steps.len() * self.predicted_key_nbytes())?;
        steps
            .into_iter()
            .map(|step| Ok((step, generator.key(secret, KeyKind::Rotation { step })?)))
            .collect()
    }

    /// Refuses keys that memory cannot hold before any is made: they are many small buffers, and
    /// the first that the system refuses would end the process. A device refuses by itself.
    fn check_key_memory(&self, bytes: usize) -> Result<(), CkksError> {
        let mut probe = Vec::<u8>::new();
        if self.cuda.is_some()
            || std::hint::black_box(&mut probe)
                .try_reserve_exact(bytes)
                .is_ok()
        {
            return Ok(());
        }
        Err(CkksError::OutOfMemory {
            operation: "key generation",
            bytes,
        })
    }

    /// The steps that need keys: modulo the slots, each once, without 0.
    fn key_steps(&self, rotations: &[i64]) -> BTreeSet<usize> {
        let steps = rotations
            .iter()
            .map(|&step| normalize_step(step, self.slots()));
        steps.filter(|&step| step != 0).collect()
    }

    /// Bytes of the evaluation keys that [`Engine::keygen`] would make: relinearization, one for
    /// each rotation, and conjugation where asked for.
    pub fn predicted_key_bytes(&self, rotations: &[i64], conjugation: bool) -> usize {
        let keys = 1 + self.key_steps(rotations).len() + usize::from(conjugation);
        keys * self.predicted_key_nbytes()
    }

    /// Bytes of one evaluation key where the engine computes.
    fn predicted_key_nbytes(&self) -> usize {
        match self.device.kind() {
            DeviceKind::Cpu => fhelium_ckks::KeySwitchKey::predicted_nbytes(self.parameters()),
            DeviceKind::Cuda => fhelium_cuda::KeySwitchKey::predicted_nbytes(self.parameters()),
        }
    }

    /// Registers keys for the operations that need one and are given none. A key replaces an
    /// earlier one of the same secret and kind.
    ///
    /// # Errors
    /// [`RuntimeError::KeyMismatch`] for a key of other parameters, [`RuntimeError::Device`] for
    /// one on another device; then none is registered.
    pub fn use_keys(&self, keys: &EvaluationKeys) -> Result<(), RuntimeError> {
        let named = keys.keys().map(|key| (KeyName(key), key.device()));
        self.check_devices(&"use", named)?;
        self.registry.add(keys.keys(), self.parameters().id())
    }

    /// The rotation steps for which keys of a secret are registered, ascending.
    pub fn registered_rotations(&self, secret: SecretId) -> Vec<usize> {
        self.registry.rotations(secret)
    }

    /// Refuses a value of other parameters; `what` names it.
    pub(crate) fn check_parameters(
        &self,
        value: &Value,
        what: &dyn fmt::Display,
    ) -> Result<(), RuntimeError> {
        let expected = self.parameters().id();
        match value.parameters_id() {
            Some(found) if found != expected => Err(RuntimeError::KeyMismatch(format!(
                "{what} belongs to parameters {found}, but the engine has {expected}; use values \
                 and keys made with the engine's own parameters"
            ))),
            _ => Ok(()),
        }
    }
}

/// A key's name in messages.
struct KeyName<'a>(&'a KeySwitchKey);

impl fmt::Display for KeyName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} key", self.0.key_kind())
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("parameters", self.parameters())
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}
