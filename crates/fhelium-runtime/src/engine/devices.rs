//! The CUDA devices of this process, and moves between places.

use super::{Engine, EvaluationKeys, KeySet};
use crate::placed::{KeySwitchKey, Movable, Placed};
use crate::{Device, RuntimeError, Value};
use fhelium_ckks::Parameters;
use fhelium_cuda::{Context, ContextOptions, MemoryUse};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Opens a device, which then stays open: its kernels are loaded once for the process.
fn open(ordinal: u32) -> Result<Arc<fhelium_cuda::Device>, RuntimeError> {
    static OPEN: Mutex<BTreeMap<u32, Arc<fhelium_cuda::Device>>> = Mutex::new(BTreeMap::new());
    let device = fhelium_cuda::Device::open(ordinal as usize)?;
    // A map that is only added to is whole after a panic too.
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.entry(ordinal).or_insert_with(|| device.clone());
    Ok(device)
}

/// The parameters' tables on a device; `None` for the host.
pub(super) fn context_on(
    device: Device,
    host: &fhelium_ckks::Context,
    memory_limit: Option<usize>,
) -> Result<Option<Context>, RuntimeError> {
    match (device, memory_limit) {
        (Device::Cpu, None) => Ok(None),
        (Device::Cpu, Some(limit)) => Err(RuntimeError::Value(format!(
            "memory_limit={limit} limits a device's memory, and the engine is on cpu; leave it \
             out, or give device=\"cuda\""
        ))),
        (Device::Cuda(ordinal), memory_limit) => {
            let options = ContextOptions {
                memory_limit,
                ..ContextOptions::default()
            };
            Ok(Some(Context::new(host, &open(ordinal)?, options)?))
        }
    }
}

impl Engine {
    /// The tables and kernels on the engine's device; `None` on the CPU.
    pub fn cuda(&self) -> Option<&Context> {
        self.cuda.as_ref()
    }

    /// What of its device's memory the engine uses; on the CPU, what its values and operations do.
    pub fn memory(&self) -> MemoryUse {
        let Some(device) = self.cuda() else {
            let fhelium_ckks::MemoryUse { used, kept, peak } = self.context().memory();
            return MemoryUse {
                used,
                kept,
                peak,
                limit: None,
            };
        };
        device.memory()
    }

    /// Has the peak of [`memory`](Self::memory) count from now on.
    pub fn reset_memory_peak(&self) {
        match self.cuda() {
            Some(device) => device.queue().reset_memory_peak(),
            None => self.context().reset_peak(),
        }
    }

    /// Waits until everything that was asked of the engine is done. On the CPU it always is.
    ///
    /// # Errors
    /// [`RuntimeError::Cuda`], also for a fault of an earlier operation.
    pub fn synchronize(&self) -> Result<(), RuntimeError> {
        match self.cuda() {
            Some(context) => Ok(context.synchronize()?),
            None => Ok(()),
        }
    }

    /// A value or key on this engine's device: the same one if it is there already.
    ///
    /// # Errors
    /// A value of other parameters; a device or memory that is missing.
    pub fn place<H: Movable>(&self, value: &Placed<H>) -> Result<Placed<H>, RuntimeError> {
        if value.device() == self.device {
            return Ok(value.clone());
        }
        let here = value.to_host(self.parameters())?;
        match self.cuda() {
            Some(context) => Ok(Placed::Cuda(Arc::new(here.upload(context)?))),
            None => Ok(Placed::Host(here)),
        }
    }

    /// As [`Engine::place`], for any value; a clear tensor in host memory stays there.
    ///
    /// # Errors
    /// As there.
    pub fn place_value(&self, value: &Value) -> Result<Value, RuntimeError> {
        self.carry_value(value)
    }

    /// As [`Engine::place`], for all of the keys.
    ///
    /// # Errors
    /// As there.
    pub fn place_keys(&self, keys: &EvaluationKeys) -> Result<EvaluationKeys, RuntimeError> {
        self.carry_keys(keys)
    }

    /// As [`Engine::place`], for all of the keys, the secret one among them.
    ///
    /// # Errors
    /// As there.
    pub fn place_key_set(&self, keys: &KeySet) -> Result<KeySet, RuntimeError> {
        self.carry_key_set(keys)
    }

    /// Refuses operands that are not where the engine computes. Nothing moves by itself: a copy
    /// between host and device costs more than most operations.
    pub(crate) fn check_places<'a, N: Display>(
        &self,
        operation: &dyn Display,
        operands: impl IntoIterator<Item = (N, &'a Value)>,
    ) -> Result<(), RuntimeError> {
        let placed = operands
            .into_iter()
            .filter(|(_, value)| !value.is_host_array())
            .map(|(name, value)| (name, value.device()));
        self.check_devices(operation, placed)
    }

    /// As [`Engine::check_places`], by the operands' devices.
    pub(crate) fn check_devices<N: Display>(
        &self,
        operation: &dyn Display,
        operands: impl IntoIterator<Item = (N, Device)>,
    ) -> Result<(), RuntimeError> {
        let mut here: Option<N> = None;
        let mut elsewhere: Option<(N, Device)> = None;
        for (name, device) in operands {
            match device == self.device {
                true => here = here.or(Some(name)),
                false => elsewhere = elsewhere.or(Some((name, device))),
            }
        }
        match elsewhere {
            None => Ok(()),
            Some((name, device)) => Err(self.misplaced(operation, here, &name, device)),
        }
    }

    fn misplaced<N: Display>(
        &self,
        operation: &dyn Display,
        here: Option<N>,
        name: &N,
        device: Device,
    ) -> RuntimeError {
        let own = self.device;
        let mut text = format!("{operation}: {name} is on {device}");
        // Writing to a String does not fail.
        let _ = match here {
            Some(here) => write!(
                text,
                " and {here} on {own}; move one of them with .to(\"{own}\") or .to(\"{device}\")"
            ),
            None => write!(
                text,
                ", but the engine computes on {own}; move it with .to(\"{own}\"), or use an engine \
                 with device=\"{device}\""
            ),
        };
        RuntimeError::Device(text)
    }
}

impl<H: Movable> Placed<H> {
    /// The value or key in host memory: itself if it is there, else a copy of what is on the
    /// device. `parameters` are its own.
    ///
    /// # Errors
    /// Other parameters; a device or memory that fails.
    pub fn to_host(&self, parameters: &Parameters) -> Result<Arc<H>, RuntimeError> {
        match self {
            Placed::Host(here) => Ok(here.clone()),
            Placed::Cuda(there) => {
                let holder = Engine::on(parameters, self.device())?;
                let context = holder.cuda().ok_or_else(|| {
                    RuntimeError::Device(format!("{holder:?} has lost its device"))
                })?;
                Ok(Arc::new(H::download(there, context)?))
            }
        }
    }
}

/// Moves values and keys to one place.
pub(crate) trait Carrier {
    /// The value or key there.
    fn carry<H: Movable>(&self, value: &Placed<H>) -> Result<Placed<H>, RuntimeError>;

    fn carry_value(&self, value: &Value) -> Result<Value, RuntimeError> {
        Ok(match value {
            Value::Ciphertext(value) => Value::Ciphertext(self.carry(value)?),
            Value::Plaintext(value) => Value::Plaintext(self.carry(value)?),
            Value::Key(key) => Value::Key(self.carry(key)?),
            Value::Tensor(Placed::Host(tensor)) => Value::from(tensor.clone()),
            Value::Tensor(tensor) => Value::Tensor(self.carry(tensor)?),
        })
    }

    fn carry_keys(&self, keys: &EvaluationKeys) -> Result<EvaluationKeys, RuntimeError> {
        let some = |key: &KeySwitchKey| self.carry(key);
        Ok(EvaluationKeys {
            public: keys
                .public
                .as_ref()
                .map(|key| self.carry(key))
                .transpose()?,
            relinearization: keys.relinearization.as_ref().map(some).transpose()?,
            rotations: self.carry_rotations(&keys.rotations)?,
            conjugation: keys.conjugation.as_ref().map(some).transpose()?,
        })
    }

    fn carry_key_set(&self, keys: &KeySet) -> Result<KeySet, RuntimeError> {
        let conjugation = keys.conjugation.as_ref();
        Ok(KeySet {
            secret: self.carry(&keys.secret)?,
            public: self.carry(&keys.public)?,
            relinearization: self.carry(&keys.relinearization)?,
            rotations: self.carry_rotations(&keys.rotations)?,
            conjugation: conjugation.map(|key| self.carry(key)).transpose()?,
        })
    }

    fn carry_rotations(
        &self,
        keys: &BTreeMap<usize, KeySwitchKey>,
    ) -> Result<BTreeMap<usize, KeySwitchKey>, RuntimeError> {
        keys.iter()
            .map(|(&step, key)| Ok((step, self.carry(key)?)))
            .collect()
    }
}

impl Carrier for Engine {
    fn carry<H: Movable>(&self, value: &Placed<H>) -> Result<Placed<H>, RuntimeError> {
        self.place(value)
    }
}

/// Moves what has these parameters to host memory, as files hold it.
pub(crate) struct ToHost<'a>(pub &'a Parameters);

impl Carrier for ToHost<'_> {
    fn carry<H: Movable>(&self, value: &Placed<H>) -> Result<Placed<H>, RuntimeError> {
        Ok(Placed::Host(value.to_host(self.0)?))
    }
}

/// An operand's name in messages: `operand 0`.
pub(crate) struct Operand(pub usize);

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operand {}", self.0)
    }
}
