//! A tape that runs again as recorded launches or as one CUDA graph.
//!
//! The first run of a tape loads kernels, encodes constants and measures nothing; the second one is
//! written down, with its arguments, kept values and keys as operands that each later run binds
//! anew. So a replay asks no rule and looks nothing up, whichever values it is given.

use super::executable::Executable;
use super::tape::{Frame, Source, Step};
use crate::placed::Placed;
use crate::{DeviceKind, Engine, RuntimeError, Value};
use fhelium_ckks::SecretId;
use fhelium_cuda::{
    Buffer, Ciphertext, CudaError, DeviceValue, Graph, KeySwitchKey, Plaintext, Replay,
};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

/// How an executable's later runs are done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replays {
    /// Operation by operation, for the reason given.
    Never(String),
    /// The next run but one is recorded.
    NotYet,
    /// As so many recorded launches or as a CUDA graph of them, in turns: both are timed, and it is
    /// not known yet which is the faster.
    Undecided(usize),
    /// As recorded launches, so many of them, which was found to be the faster.
    Launches(usize),
    /// As one CUDA graph of so many launches, which was found to be the faster.
    Graph(usize),
}

impl fmt::Display for Replays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Replays::Never(reason) => write!(f, "operation by operation: {reason}"),
            Replays::NotYet => f.write_str("operation by operation until it is warm"),
            Replays::Undecided(count) => write!(
                f,
                "as {count} recorded launches and as a CUDA graph of them in turns, until it is known \
                 which is the faster"
            ),
            Replays::Launches(count) => write!(f, "as {count} recorded launches"),
            Replays::Graph(count) => write!(f, "as a CUDA graph of {count} launches"),
        }
    }
}

/// The recordings of an executable.
#[derive(Debug)]
pub(super) struct Replayer {
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Never(String),
    /// Whether it has run.
    Warming(bool),
    /// By secret, the least recently recorded first.
    Recorded(Vec<(Option<SecretId>, Arc<Graph<Operand>>)>),
}

/// Secrets whose recordings are kept; others are recorded again.
const RECORDED: usize = 4;

/// A value on the device.
#[derive(Clone, Debug)]
enum Operand {
    Ciphertext(Arc<Ciphertext>),
    Plaintext(Arc<Plaintext>),
    Key(Arc<KeySwitchKey>),
}

impl Operand {
    fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Ciphertext(Placed::Cuda(value)) => Operand::Ciphertext(value.clone()),
            Value::Plaintext(Placed::Cuda(value)) => Operand::Plaintext(value.clone()),
            Value::Key(Placed::Cuda(key)) => Operand::Key(key.clone()),
            _ => return None,
        })
    }
}

impl From<Operand> for Value {
    fn from(operand: Operand) -> Self {
        match operand {
            Operand::Ciphertext(value) => Value::Ciphertext(Placed::Cuda(value)),
            Operand::Plaintext(value) => Value::Plaintext(Placed::Cuda(value)),
            Operand::Key(key) => Value::Key(Placed::Cuda(key)),
        }
    }
}

impl DeviceValue for Operand {
    fn buffer(&self) -> &Arc<Buffer> {
        match self {
            Operand::Ciphertext(value) => DeviceValue::buffer(&**value),
            Operand::Plaintext(value) => DeviceValue::buffer(&**value),
            Operand::Key(key) => DeviceValue::buffer(&**key),
        }
    }

    fn with_buffer(&self, buffer: Arc<Buffer>) -> Self {
        match self {
            Operand::Ciphertext(value) => Operand::Ciphertext(value.with_buffer(buffer).into()),
            Operand::Plaintext(value) => Operand::Plaintext(value.with_buffer(buffer).into()),
            Operand::Key(key) => Operand::Key(key.with_buffer(buffer).into()),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Operand::Ciphertext(x), Operand::Ciphertext(y)) => x.is_like(y),
            (Operand::Plaintext(x), Operand::Plaintext(y)) => x.is_like(y),
            (Operand::Key(x), Operand::Key(y)) => x.is_like(y),
            _ => false,
        }
    }
}

impl Replayer {
    /// For a tape of an engine: nothing is recorded where a step runs or reads on the host.
    pub fn new(engine: &Engine, steps: &[Step]) -> Self {
        let state = if engine.cuda().is_none() {
            State::Never("it runs on the CPU".to_owned())
        } else if let Some(step) = steps.iter().find(|step| !step.is_on_device()) {
            let operation = step.implementation.operation();
            State::Never(format!(
                "{operation} reads or computes host memory in each call"
            ))
        } else {
            State::Warming(false)
        };
        Replayer {
            state: Mutex::new(state),
        }
    }

    /// How the next run is done.
    pub fn replays(&self) -> Replays {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Never(reason) => Replays::Never(reason.clone()),
            State::Warming(_) => Replays::NotYet,
            State::Recorded(known) => match known.last() {
                Some((_, graph)) => match graph.chosen() {
                    None => Replays::Undecided(graph.steps()),
                    Some(Replay::Launches) => Replays::Launches(graph.steps()),
                    Some(Replay::Graph) => Replays::Graph(graph.steps()),
                },
                None => Replays::NotYet,
            },
        }
    }

    /// The recording for values of a secret, made now if the tape is warm; `None` where this run
    /// is done operation by operation.
    fn recording(
        &self,
        secret: Option<SecretId>,
        may_record: bool,
        record: impl FnOnce() -> Result<Graph<Operand>, RuntimeError>,
    ) -> Option<Arc<Graph<Operand>>> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            // The state changes in single steps, so that it is whole after a panic too.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread records: this one need not wait for it.
            Err(TryLockError::WouldBlock) => return None,
        };
        match &mut *state {
            State::Never(_) => return None,
            State::Warming(has_run @ false) => {
                *has_run = true;
                return None;
            }
            State::Recorded(known) => {
                if let Some((_, graph)) = known.iter().find(|(known, _)| *known == secret) {
                    return Some(graph.clone());
                }
            }
            State::Warming(true) => {}
        }
        if !may_record {
            return None;
        }
        let graph = match record() {
            Ok(graph) => Arc::new(graph),
            // What is wrong with the values shows in the run itself.
            Err(error) => {
                if let RuntimeError::Cuda(CudaError::Capture { .. }) = &error {
                    *state = State::Never(error.to_string());
                }
                return None;
            }
        };
        let mut known = match std::mem::replace(&mut *state, State::Warming(true)) {
            State::Recorded(known) => known,
            State::Never(_) | State::Warming(_) => Vec::new(),
        };
        if known.len() == RECORDED {
            known.remove(0);
        }
        known.push((secret, graph.clone()));
        *state = State::Recorded(known);
        Some(graph)
    }
}

impl Executable {
    /// Runs the tape as recorded; `None` where it has to run operation by operation. The results
    /// are those of [`Executable`]'s result list.
    pub(super) fn replay(
        &self,
        engine: &Engine,
        secret: Option<SecretId>,
        values: [&[Value]; 3],
    ) -> Result<Option<Vec<Value>>, RuntimeError> {
        // The recording is in the order of one engine's stream.
        let Some(context) = engine
            .cuda()
            .filter(|_| std::ptr::eq(engine, &**self.engine()))
        else {
            return Ok(None);
        };
        let operands: Vec<Operand> = values
            .iter()
            .flat_map(|values| values.iter().filter_map(Operand::of))
            .collect();
        let record = || {
            context.capture(&operands, |placeholders| {
                let mut placeholders = placeholders.iter();
                let [arguments, kept, keys] = values.map(|values| {
                    let placed = values.iter().map(|value| match Operand::of(value) {
                        Some(_) => placeholders.next().map_or_else(
                            || value.clone(),
                            |placeholder| placeholder.clone().into(),
                        ),
                        None => value.clone(),
                    });
                    placed.collect::<Vec<Value>>()
                });
                let mut frame = Frame::new(&arguments, &kept, &keys, self.slots());
                for step in self.steps() {
                    frame.run(step, engine)?;
                }
                let made = self.results().iter().filter(|source| is_made(source));
                made.map(|&source| made_operand(frame.take(source)?))
                    .collect()
            })
        };
        // Within somebody else's capture this run is part of that one.
        let may_record = !context.queue().is_capturing();
        let Some(graph) = self.replayer().recording(secret, may_record, record) else {
            return Ok(None);
        };
        let mut made = graph.replay(&operands)?.into_iter();
        let [arguments, kept, keys] = values;
        let mut frame = Frame::new(arguments, kept, keys, 0);
        let results = self.results().iter().map(|&source| match is_made(&source) {
            true => made
                .next()
                .map(Value::from)
                .ok_or_else(|| RuntimeError::Link("the recording gave too few results".to_owned())),
            false => frame.take(source),
        });
        results.collect::<Result<_, _>>().map(Some)
    }
}

/// Whether a result is made by the tape's steps, and not handed through.
fn is_made(source: &Source) -> bool {
    matches!(source, Source::Frame(_) | Source::LastUse(_))
}

fn made_operand(value: Value) -> Result<Operand, RuntimeError> {
    Operand::of(&value).ok_or_else(|| {
        RuntimeError::Link(format!(
            "a step on the device gave {} on the host",
            value.ty()
        ))
    })
}

impl Step {
    /// Whether it runs on a device and reads and gives only what is there.
    fn is_on_device(&self) -> bool {
        self.implementation.device() == DeviceKind::Cuda && !self.takes_tensors
    }
}
