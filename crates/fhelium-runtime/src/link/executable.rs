//! A linked Program.

use super::host_part::{HostPart, HostWork};
use super::kept::{LiveMaterial, Prologue};
use super::keys::KeyTable;
use super::manifest::Manifest;
use super::prediction::predicted_time;
use super::replay::{Replayer, Replays};
use super::tape::{Bound, Tape};
use crate::{DeviceKind, Engine, RuntimeError, Value};
use fhelium_ckks::SecretId;
use fhelium_ir::{Input, OutputTree};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A linked Program: a flat tape with its implementations, materials and buffers resolved.
///
/// It may run in several threads at once. Values that are kept between calls, such as encoded
/// constants, are made by the first run.
pub struct Executable {
    engine: Arc<Engine>,
    name: Arc<str>,
    inputs: Arc<[Input]>,
    /// Where each clear array among the arguments is.
    inputs_on: Vec<DeviceKind>,
    prologue: Prologue,
    live: Vec<LiveMaterial>,
    host_part: HostPart,
    tape: Tape,
    keys: KeyTable,
    outputs: OutputTree<usize>,
    /// Secrets of captured ciphertexts and keys.
    secrets: Vec<(String, SecretId)>,
    manifest: Manifest,
    replayer: Replayer,
    runs: AtomicU64,
    nanos: AtomicU64,
    fastest: AtomicU64,
}

/// Finished runs and the time that they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// How many.
    pub runs: u64,
    /// All of them together; the first one makes what is kept between calls.
    pub total: Duration,
    /// The fastest of them.
    pub fastest: Option<Duration>,
}

/// What the linker hands over.
pub(super) struct Parts {
    pub engine: Arc<Engine>,
    pub name: Arc<str>,
    pub inputs: Arc<[Input]>,
    pub inputs_on: Vec<DeviceKind>,
    pub prologue: Prologue,
    pub live: Vec<LiveMaterial>,
    pub host_part: HostPart,
    pub tape: Tape,
    pub keys: KeyTable,
    pub outputs: OutputTree<usize>,
    pub secrets: Vec<(String, SecretId)>,
    pub manifest: Manifest,
}

impl Executable {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts {
            engine,
            name,
            inputs,
            inputs_on,
            prologue,
            live,
            host_part,
            tape,
            keys,
            outputs,
            secrets,
            manifest,
        } = parts;
        Executable {
            replayer: Replayer::new(&engine),
            engine,
            name,
            inputs,
            inputs_on,
            prologue,
            live,
            host_part,
            tape,
            keys,
            outputs,
            secrets,
            manifest,
            runs: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
            fastest: AtomicU64::new(u64::MAX),
        }
    }

    /// The Program's inputs.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// The engine that it runs on.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The implementations, keys and bytes that it was linked with.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Bytes of the values kept between calls; 0 before the first one.
    pub fn resident_bytes(&self) -> usize {
        self.prologue.nbytes()
    }

    /// How its next run is done.
    pub fn replays(&self) -> Replays {
        self.replayer.replays()
    }

    /// What each run does on the host before it runs on the device; nothing for an executable on the
    /// CPU.
    pub fn host_work(&self) -> HostWork {
        self.host_part.work()
    }

    pub(super) fn replayer(&self) -> &Replayer {
        &self.replayer
    }

    pub(super) fn tape(&self) -> &Tape {
        &self.tape
    }

    /// Finished runs and the time that they took.
    pub fn measured(&self) -> Measured {
        let runs = self.runs.load(Ordering::Relaxed);
        let nanos = |of: &AtomicU64| Duration::from_nanos(of.load(Ordering::Relaxed));
        Measured {
            runs,
            total: nanos(&self.nanos),
            fastest: (runs > 0).then(|| nanos(&self.fastest)),
        }
    }

    /// The time that a run is expected to take on an engine; see [`predicted_time`].
    pub fn predicted(&self, engine: &Engine) -> Option<Duration> {
        predicted_time(&self.manifest, engine)
    }

    /// Runs the Program.
    ///
    /// # Errors
    /// [`RuntimeError::Value`] where an argument's type is not the input's;
    /// [`RuntimeError::KeyMismatch`] where arguments are of several secrets or other parameters;
    /// [`MissingKeys`](crate::MissingKeys); an operation's error with its source line.
    pub fn run(&self, arguments: &[Value]) -> Result<OutputTree<Value>, RuntimeError> {
        self.run_with(&self.engine, arguments)
    }

    /// Runs the Program on another engine of the same parameters: with its threads, and with the
    /// keys that are registered there.
    ///
    /// # Errors
    /// As [`Executable::run`], [`RuntimeError::KeyMismatch`] for an engine of other parameters and
    /// [`RuntimeError::Device`] for one on another device.
    pub fn run_with(
        &self,
        engine: &Engine,
        arguments: &[Value],
    ) -> Result<OutputTree<Value>, RuntimeError> {
        let started = Instant::now();
        check_places(&self.name, &self.inputs, engine, arguments)?;
        self.check_engine(engine)?;
        self.check_arguments(arguments)?;
        let secret = self.secret(arguments)?;
        let keys = self.keys.resolve(secret, engine.registry())?;
        let kept = self.prologue.values(engine)?;
        let live = self.live.iter().map(|material| material.read(engine));
        let live: Vec<Value> = live.collect::<Result<_, _>>()?;
        let mut bound = Bound {
            arguments,
            kept: &kept,
            keys: &keys,
            live: &live,
            ..Bound::default()
        };
        let host = self.host_part.run(engine, bound)?;
        bound.host = &host;
        let staged = self.host_part.stage(engine, bound)?;
        bound.staged = &staged;
        let results = match self.replay(engine, secret, bound)? {
            Some(results) => results,
            None => {
                let mut frame = self.tape.run(bound, engine)?;
                let results = self.tape.results.iter().map(|&source| frame.take(source));
                results.collect::<Result<_, _>>()?
            }
        };
        let outputs = self.outputs.map(&mut |&place| {
            results
                .get(place)
                .cloned()
                .ok_or_else(|| RuntimeError::Link(format!("the output tree has no result {place}")))
        })?;
        let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        self.fastest.fetch_min(nanos, Ordering::Relaxed);
        self.runs.fetch_add(1, Ordering::Relaxed);
        Ok(outputs)
    }

    /// Looks the keys of these arguments' secret up.
    ///
    /// # Errors
    /// [`MissingKeys`](crate::MissingKeys) with every key that is missing, and
    /// [`RuntimeError::KeyMismatch`].
    pub fn check_keys(&self, arguments: &[Value]) -> Result<(), RuntimeError> {
        let secret = self.secret(arguments)?;
        self.keys.resolve(secret, self.engine.registry()).map(drop)
    }

    fn check_engine(&self, engine: &Engine) -> Result<(), RuntimeError> {
        if engine.device() != self.engine.device() {
            return Err(RuntimeError::Device(format!(
                "{}: the engine computes on {}, but the program was compiled for {}; call the \
                 compiled function with values of that device, or prepare it for this one",
                self.name,
                engine.device(),
                self.engine.device()
            )));
        }
        if engine.parameters().id() == self.engine.parameters().id() {
            return Ok(());
        }
        Err(RuntimeError::KeyMismatch(format!(
            "{}: the engine has other parameters ({}) than those that the program was compiled for \
             ({})",
            self.name,
            engine.parameters(),
            self.engine.parameters()
        )))
    }

    fn check_arguments(&self, arguments: &[Value]) -> Result<(), RuntimeError> {
        if arguments.len() != self.inputs.len() {
            let names: Vec<&str> = self.inputs.iter().map(|input| &*input.name).collect();
            return Err(RuntimeError::Value(format!(
                "{} takes {} arguments ({}), found {}",
                self.name,
                self.inputs.len(),
                names.join(", "),
                arguments.len()
            )));
        }
        let inputs = self.inputs.iter().zip(&self.inputs_on);
        for (argument, (input, &place)) in arguments.iter().zip(inputs) {
            if !argument.has_type(&input.ty) {
                return Err(RuntimeError::Value(format!(
                    "{}: the argument {} is {}, but this executable was compiled for {}",
                    self.name,
                    input.name,
                    argument.ty(),
                    input.ty
                )));
            }
            if matches!(argument, Value::Tensor(_)) && argument.device().kind() != place {
                return Err(RuntimeError::Device(format!(
                    "{}: the argument {} is on {}, but this executable was linked for an array on \
                     {place}; link it with such an argument, or move the array",
                    self.name,
                    input.name,
                    argument.device(),
                )));
            }
            self.engine
                .check_parameters(argument, &format_args!("the argument {}", input.name))?;
        }
        Ok(())
    }

    /// The one secret of all ciphertexts and keys; `None` where there are none.
    fn secret(&self, arguments: &[Value]) -> Result<Option<SecretId>, RuntimeError> {
        let mut known: Option<SecretId> = None;
        let captured = self.secrets.iter().map(|(_, secret)| *secret);
        let given = arguments.iter().filter_map(Value::secret_id);
        for secret in captured.chain(given) {
            match known {
                None => known = Some(secret),
                Some(first) if first != secret => return Err(self.mixed_secrets(arguments)),
                Some(_) => {}
            }
        }
        Ok(known)
    }

    fn mixed_secrets(&self, arguments: &[Value]) -> RuntimeError {
        let given = arguments
            .iter()
            .zip(&*self.inputs)
            .filter_map(|(argument, input)| {
                let secret = argument.secret_id()?;
                Some(format!("the argument {} to secret {secret}", input.name))
            });
        let captured = self
            .secrets
            .iter()
            .map(|(what, secret)| format!("{what} to secret {secret}"));
        let all: Vec<String> = captured.chain(given).collect();
        RuntimeError::KeyMismatch(format!(
            "{}: values and keys of different secrets cannot be combined: {} belongs; use the \
             keys that were generated together with the ciphertexts'",
            self.name,
            all.join(", ")
        ))
    }
}

/// Refuses arguments that are not where the engine computes.
pub(crate) fn check_places(
    program: &str,
    inputs: &[Input],
    engine: &Engine,
    arguments: &[Value],
) -> Result<(), RuntimeError> {
    let name = |input: &Input| format!("the argument {}", input.name);
    // The names are made only for a message.
    if arguments
        .iter()
        .all(|argument| argument.device() == engine.device() || argument.is_host_array())
    {
        return Ok(());
    }
    let named = inputs.iter().map(name).zip(arguments);
    engine.check_places(&program, named)
}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executable")
            .field("name", &self.name)
            .field("inputs", &self.inputs)
            .field("tape", &self.tape)
            .finish_non_exhaustive()
    }
}
