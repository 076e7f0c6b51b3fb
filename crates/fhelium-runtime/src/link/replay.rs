//! A tape that runs again as recorded launches or as one CUDA graph.
//!
//! The first run of a tape loads kernels, encodes constants and measures nothing; the second one is
//! written down, with its arguments, kept values and keys as operands that each later run binds
//! anew. So a replay asks no rule and looks nothing up, whichever values it is given.

use super::executable::Executable;
use super::tape::{Bound, Frame, Outside, Source, Tape};
use crate::placed::Placed;
use crate::{Engine, RuntimeError, Value};
use fhelium_ckks::SecretId;
use fhelium_cuda::{
    Buffer, Ciphertext, CudaError, DeviceValue, Graph, KeySwitchKey, Plaintext, Replay, Tensor,
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
pub(super) enum Operand {
    Ciphertext(Arc<Ciphertext>),
    Plaintext(Arc<Plaintext>),
    Key(Arc<KeySwitchKey>),
    Tensor(Arc<Tensor>),
}

impl Operand {
    fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Ciphertext(Placed::Cuda(value)) => Operand::Ciphertext(value.clone()),
            Value::Plaintext(Placed::Cuda(value)) => Operand::Plaintext(value.clone()),
            Value::Key(Placed::Cuda(key)) => Operand::Key(key.clone()),
            Value::Tensor(Placed::Cuda(array)) => Operand::Tensor(array.clone()),
            _ => return None,
        })
    }

    /// As a recording is bound to it: of an array without what else its memory holds.
    pub fn bound(value: &Value) -> Option<Self> {
        Some(match Self::of(value)? {
            Operand::Tensor(array) => Operand::Tensor(Arc::new(array.trimmed())),
            other => other,
        })
    }
}

impl From<Operand> for Value {
    fn from(operand: Operand) -> Self {
        match operand {
            Operand::Ciphertext(value) => Value::Ciphertext(Placed::Cuda(value)),
            Operand::Plaintext(value) => Value::Plaintext(Placed::Cuda(value)),
            Operand::Key(key) => Value::Key(Placed::Cuda(key)),
            Operand::Tensor(array) => Value::Tensor(Placed::Cuda(array)),
        }
    }
}

impl DeviceValue for Operand {
    fn buffer(&self) -> &Arc<Buffer> {
        match self {
            Operand::Ciphertext(value) => DeviceValue::buffer(&**value),
            Operand::Plaintext(value) => DeviceValue::buffer(&**value),
            Operand::Key(key) => DeviceValue::buffer(&**key),
            Operand::Tensor(array) => DeviceValue::buffer(&**array),
        }
    }

    fn with_buffer(&self, buffer: Arc<Buffer>) -> Self {
        match self {
            Operand::Ciphertext(value) => Operand::Ciphertext(value.with_buffer(buffer).into()),
            Operand::Plaintext(value) => Operand::Plaintext(value.with_buffer(buffer).into()),
            Operand::Key(key) => Operand::Key(key.with_buffer(buffer).into()),
            Operand::Tensor(array) => Operand::Tensor(array.with_buffer(buffer).into()),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Operand::Ciphertext(x), Operand::Ciphertext(y)) => x.is_like(y),
            (Operand::Plaintext(x), Operand::Plaintext(y)) => x.is_like(y),
            (Operand::Key(x), Operand::Key(y)) => x.is_like(y),
            (Operand::Tensor(x), Operand::Tensor(y)) => x.is_like(y),
            _ => false,
        }
    }
}

impl Replayer {
    /// For a tape of an engine.
    pub fn new(engine: &Engine) -> Self {
        let state = match engine.cuda() {
            Some(_) => State::Warming(false),
            None => State::Never("it runs on the CPU".to_owned()),
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

    /// The recording for such operands of a secret, made now if the tape is warm; `None` where this
    /// run is done operation by operation.
    fn recording(
        &self,
        secret: Option<SecretId>,
        operands: &[Operand],
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
                let mut known = known.iter();
                if let Some((_, graph)) =
                    known.find(|(known, graph)| *known == secret && fits(graph, operands))
                {
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
                if let RuntimeError::Cuda(CudaError::Capture { .. }) = error.cause() {
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

/// Whether arrays lie in memory as those of a recording do; the rest is as the executable says.
fn fits(graph: &Graph<Operand>, operands: &[Operand]) -> bool {
    let pairs = operands.iter().zip(graph.inputs());
    let mut arrays = pairs.filter(|(operand, _)| matches!(operand, Operand::Tensor(_)));
    arrays.all(|(operand, known)| operand.is_like(known))
}

impl Executable {
    /// Runs the tape as recorded; `None` where it has to run operation by operation. The results
    /// are those of [`Executable`]'s result list.
    pub(super) fn replay(
        &self,
        engine: &Engine,
        secret: Option<SecretId>,
        bound: Bound<'_>,
    ) -> Result<Option<Vec<Value>>, RuntimeError> {
        // The recording is in the order of one engine's stream.
        let Some(context) = engine
            .cuda()
            .filter(|_| std::ptr::eq(engine, &**self.engine()))
        else {
            return Ok(None);
        };
        let lists = [
            bound.arguments,
            bound.kept,
            bound.keys,
            bound.live,
            bound.staged,
        ];
        let operands: Vec<Operand> = lists
            .iter()
            .flat_map(|values| values.iter().filter_map(Operand::bound))
            .collect();
        let record = || {
            context.capture(&operands, |placeholders| {
                let mut placeholders = placeholders.iter();
                let [arguments, kept, keys, live, staged] = lists.map(|values| {
                    let placed = values.iter().map(|value| match Operand::of(value) {
                        Some(_) => placeholders.next().map_or_else(
                            || value.clone(),
                            |placeholder| placeholder.clone().into(),
                        ),
                        None => value.clone(),
                    });
                    placed.collect::<Vec<Value>>()
                });
                let placed = Bound {
                    arguments: &arguments,
                    kept: &kept,
                    keys: &keys,
                    live: &live,
                    host: bound.host,
                    staged: &staged,
                };
                made(self.tape(), placed, engine)
            })
        };
        // Within somebody else's capture this run is part of that one.
        let may_record = !context.queue().is_capturing();
        let Some(graph) = self
            .replayer()
            .recording(secret, &operands, may_record, record)
        else {
            return Ok(None);
        };
        let mut made = graph.replay(&operands)?.into_iter();
        let mut frame = Frame::new(bound, 0);
        let results = self
            .tape()
            .results
            .iter()
            .map(|&source| match is_made(&source) {
                true => made.next().map(Value::from).ok_or_else(|| {
                    RuntimeError::Link("the recording gave too few results".to_owned())
                }),
                false => frame.take(source),
            });
        results.collect::<Result<_, _>>().map(Some)
    }
}

/// Whether a result is made by the tape's steps, and not handed through.
fn is_made(source: &Source) -> bool {
    matches!(source, Source::Frame(_) | Source::LastUse(_))
}

/// Runs a tape on the device: the results that its steps make.
pub(super) fn made(
    tape: &Tape,
    outside: impl Outside,
    engine: &Engine,
) -> Result<Vec<Operand>, RuntimeError> {
    let mut frame = tape.run(outside, engine)?;
    let made = tape.results.iter().filter(|source| is_made(source));
    made.map(|&source| {
        let value = frame.take(source)?;
        Operand::of(&value).ok_or_else(|| {
            RuntimeError::Link(format!(
                "a step on the device gave {} on the host",
                value.ty()
            ))
        })
    })
    .collect()
}
