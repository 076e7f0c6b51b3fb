//! The engines of this process, for values that come from outside and have none.

use super::{Engine, EngineOptions};
use crate::{Device, RuntimeError};
use fhelium_ckks::security::SecurityLevel;
use fhelium_ckks::{Chain, Parameters, ParametersId, Preset};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

/// Every engine that is alive, and those that this module made, which stay.
#[derive(Default)]
struct Engines {
    /// In the order in which they were made.
    alive: Vec<Known>,
    kept: HashMap<(u32, ParametersId, Device), Arc<Engine>>,
}

struct Known {
    engine: Weak<Engine>,
    parameters: ParametersId,
    device: Device,
    /// After a fork, the child's copies of the parent's engines have lost their threads.
    process: u32,
}

fn engines() -> MutexGuard<'static, Engines> {
    static ENGINES: LazyLock<Mutex<Engines>> = LazyLock::new(Mutex::default);
    // Lists that are only added to and thinned out are whole after a panic too.
    ENGINES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers an engine for as long as it lives.
pub(super) fn remember(engine: &Arc<Engine>) {
    let mut engines = engines();
    engines
        .alive
        .retain(|known| known.engine.strong_count() > 0);
    engines.alive.push(Known {
        engine: Arc::downgrade(engine),
        parameters: engine.parameters().id(),
        device: engine.device(),
        process: std::process::id(),
    });
}

impl Engines {
    /// The engine that was made last of these; on any device where none is named.
    fn find(&self, parameters: ParametersId, device: Option<Device>) -> Option<Arc<Engine>> {
        let process = std::process::id();
        let mut known = self.alive.iter().rev().filter(|known| {
            known.parameters == parameters
                && known.process == process
                && device.is_none_or(|device| known.device == device)
        });
        known.find_map(|known| known.engine.upgrade())
    }
}

impl Engine {
    /// As [`Engine::on`], for the parameters that a Program's chain is of. They were
    /// accepted before, at whatever security they have.
    ///
    /// # Errors
    /// A chain that no parameter set has; those of [`Engine::on`].
    pub fn for_chain(chain: &Chain, device: Device) -> Result<Arc<Engine>, RuntimeError> {
        let parameters = Parameters::from_primes(
            chain.log_n(),
            chain.moduli().to_vec(),
            chain.special_moduli().to_vec(),
            chain.scale().clone(),
            SecurityLevel::default(),
            true,
        )?;
        Engine::on(&parameters, device)
    }

    /// An engine for functions of clear arrays alone; its parameters are never used.
    ///
    /// # Errors
    /// Those of [`Engine::new`].
    pub fn for_arrays(device: Device) -> Result<Arc<Engine>, RuntimeError> {
        Engine::on(&Preset::N12Depth1Scale28.parameters(), device)
    }

    /// The engine of this process that was made last for these parameters and is still alive.
    pub(crate) fn alive(parameters: &Parameters) -> Option<Arc<Engine>> {
        engines().find(parameters.id(), None)
    }

    /// An engine for values that come from outside, which are in host memory: as [`Engine::on`]
    /// the CPU.
    ///
    /// # Errors
    /// Those of [`Engine::new`].
    pub fn for_parameters(parameters: &Parameters) -> Result<Arc<Engine>, RuntimeError> {
        Engine::on(parameters, Device::Cpu)
    }

    /// The engine of this process that was made last for these parameters on this device and is
    /// still alive. Where there is none, one is made with the default options, and stays for as
    /// long as the process.
    ///
    /// # Errors
    /// Those of [`Engine::new`].
    pub fn on(parameters: &Parameters, device: Device) -> Result<Arc<Engine>, RuntimeError> {
        let find = || engines().find(parameters.id(), Some(device));
        if let Some(engine) = find() {
            return Ok(engine);
        }
        // One at a time, and not under the lock that making an engine takes.
        static MAKING: Mutex<()> = Mutex::new(());
        let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = find() {
            return Ok(engine);
        }
        let options = EngineOptions {
            device,
            ..EngineOptions::default()
        };
        let engine = Engine::new(parameters, options)?;
        let key = (std::process::id(), parameters.id(), device);
        engines().kept.insert(key, engine.clone());
        Ok(engine)
    }
}
