//! The engine: a parameter set with its tables, threads, randomness and keys.

mod eager;
mod keys;
mod shared;

pub(crate) use keys::KeyRegistry;
pub use keys::{EvaluationKeys, KeySet};

use crate::placed::{Ciphertext, EncryptionKey, KeySwitchKey, Plaintext, SecretKey};
use crate::tensor::Tensor;
use crate::{Device, OperationBackend, RuntimeError, Value};
use fhelium_ckks::arith::Tier;
use fhelium_ckks::{
    CkksError, Complex64, Context, ContextOptions, KeyGenerator, Message, NoiseFlooding,
    Parameters, Randomness, SecretId, normalize_step,
};
use fhelium_state::Scale;
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
    /// What runs operations that are called one by one.
    pub backend: OperationBackend,
}

/// Everything that computing with one parameter set needs. Threads may share one.
pub struct Engine {
    this: Weak<Engine>,
    context: Context,
    device: Device,
    backend: OperationBackend,
    randomness: Randomness,
    registry: KeyRegistry,
}

impl Engine {
    /// An engine for a parameter set.
    ///
    /// # Errors
    /// [`RuntimeError::Device`] for a device that this build cannot use; the context's for
    /// threads or vector instructions that the machine lacks.
    pub fn new(parameters: &Parameters, options: EngineOptions) -> Result<Arc<Self>, RuntimeError> {
        if options.device != Device::Cpu {
            return Err(RuntimeError::Device(format!(
                "device {} cannot be used: this build has no CUDA kernels; use device \"cpu\"",
                options.device
            )));
        }
        let context = Context::new(
            parameters,
            ContextOptions {
                threads: options.threads,
                tier: options.tier,
            },
        )?;
        let randomness = match options.seed {
            Some(seed) => Randomness::from_seed_for_tests(seed),
            None => Randomness::from_os()?,
        };
        let engine = Arc::new_cyclic(|this| Engine {
            this: this.clone(),
            context,
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
    /// [`CkksError::Randomness`], and [`CkksError::OutOfMemory`] with the bytes of all keys.
    pub fn keygen(&self, rotations: &[i64], conjugation: bool) -> Result<KeySet, RuntimeError> {
        check_memory(self.predicted_key_bytes(rotations, conjugation))?;
        let generator = KeyGenerator::new(&self.context, &self.randomness);
        let secret = generator.secret()?;
        let mut keys = BTreeMap::new();
        for step in self.key_steps(rotations) {
            keys.insert(step, generator.rotation(&secret, step as i64)?.into());
        }
        Ok(KeySet {
            public: generator.public(&secret)?.into(),
            relinearization: generator.relinearization(&secret)?.into(),
            rotations: keys,
            conjugation: match conjugation {
                true => Some(generator.conjugation(&secret)?.into()),
                false => None,
            },
            secret: secret.into(),
        })
    }

    /// More rotation keys for a secret, by step modulo the slots.
    ///
    /// # Errors
    /// As [`Engine::keygen`], and a secret of other parameters.
    pub fn rotation_keys(
        &self,
        secret: &SecretKey,
        rotations: &[i64],
    ) -> Result<BTreeMap<usize, KeySwitchKey>, RuntimeError> {
        let secret = secret.host()?;
        let generator = KeyGenerator::new(&self.context, &self.randomness);
        let steps = self.key_steps(rotations);
        check_memory(
            steps.len() * fhelium_ckks::KeySwitchKey::predicted_nbytes(self.parameters()),
        )?;
        steps
            .into_iter()
            .map(|step| Ok((step, generator.rotation(secret, step as i64)?.into())))
            .collect()
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
        keys * fhelium_ckks::KeySwitchKey::predicted_nbytes(self.parameters())
    }

    /// Registers keys for the operations that need one and are given none. A key replaces an
    /// earlier one of the same secret and kind.
    ///
    /// # Errors
    /// [`RuntimeError::KeyMismatch`] for a key of other parameters; then none is registered.
    pub fn use_keys(&self, keys: &EvaluationKeys) -> Result<(), RuntimeError> {
        self.registry.add(keys.keys(), self.parameters().id())
    }

    /// The rotation steps for which keys of a secret are registered, ascending.
    pub fn registered_rotations(&self, secret: SecretId) -> Vec<usize> {
        self.registry.rotations(secret)
    }

    /// Encodes messages: the last axis holds up to all slots, the others are batch axes; a scalar
    /// fills every slot. The level is the depth and the scale the parameters' by default.
    ///
    /// # Errors
    /// Those of [`Context::encode`].
    pub fn encode(
        &self,
        message: &Tensor,
        level: Option<usize>,
        scale: Option<&Scale>,
    ) -> Result<Plaintext, RuntimeError> {
        let parameters = self.parameters();
        self.encode_at(
            message,
            level.unwrap_or(parameters.depth()),
            scale.unwrap_or(parameters.scale()),
        )
    }

    pub(crate) fn encode_at(
        &self,
        message: &Tensor,
        level: usize,
        scale: &Scale,
    ) -> Result<Plaintext, RuntimeError> {
        let shape = message.shape();
        let plaintext = if message.dtype().is_complex() {
            let values = message.to_vec::<Complex64>();
            self.context
                .encode(Message::complex(&values, shape)?, level, scale)?
        } else {
            let values = message.to_vec::<f64>();
            self.context
                .encode(Message::real(&values, shape)?, level, scale)?
        };
        Ok(plaintext.into())
    }

    /// The messages of a plaintext: shape (batch..., slots), `f64` when `real`, else `c128`.
    ///
    /// # Errors
    /// A plaintext of other parameters.
    pub fn decode(&self, plaintext: &Plaintext, real: bool) -> Result<Tensor, RuntimeError> {
        let plaintext = plaintext.host()?;
        let mut shape = plaintext.batch_shape().to_vec();
        shape.push(self.slots());
        Ok(if real {
            Tensor::from_vec(self.context.decode_real(plaintext)?, &shape)?
        } else {
            Tensor::from_vec(self.context.decode(plaintext)?, &shape)?
        })
    }

    /// Encrypts a plaintext under a public or secret key. Each ciphertext has its own randomness,
    /// whatever threads do.
    ///
    /// # Errors
    /// Those of [`Context::encrypt`].
    pub fn encrypt<'a>(
        &self,
        plaintext: &Plaintext,
        key: impl Into<EncryptionKey<'a>>,
    ) -> Result<Ciphertext, RuntimeError> {
        let key = match key.into() {
            EncryptionKey::Public(key) => fhelium_ckks::EncryptionKey::Public(key.host()?),
            EncryptionKey::Secret(key) => fhelium_ckks::EncryptionKey::Secret(key.host()?),
        };
        let plaintext = plaintext.host()?;
        Ok(self
            .context
            .encrypt(plaintext, key, &self.randomness)?
            .into())
    }

    /// Decrypts a ciphertext, with added noise where given.
    ///
    /// # Errors
    /// Those of [`Context::decrypt`] and [`Context::flood`].
    pub fn decrypt(
        &self,
        ciphertext: &Ciphertext,
        secret: &SecretKey,
        flooding: Option<NoiseFlooding>,
    ) -> Result<Plaintext, RuntimeError> {
        let plaintext = self.context.decrypt(ciphertext.host()?, secret.host()?)?;
        let plaintext = match flooding {
            Some(flooding) => self.context.flood(plaintext, flooding, &self.randomness)?,
            None => plaintext,
        };
        Ok(plaintext.into())
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

/// Refuses keys that memory cannot hold before any is made: they are many small buffers, and the
/// first that the system refuses would end the process.
fn check_memory(bytes: usize) -> Result<(), CkksError> {
    let mut probe = Vec::<u8>::new();
    match std::hint::black_box(&mut probe).try_reserve_exact(bytes) {
        Ok(()) => Ok(()),
        Err(_) => Err(CkksError::OutOfMemory {
            operation: "key generation",
            bytes,
        }),
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
