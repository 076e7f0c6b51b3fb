//! The flat list of steps that an executable runs.

use crate::backend::{Implementation, Invocation, Operands, run_checked};
use crate::{Engine, RuntimeError, Value};
use fhelium_ir::state::LinearProgram;
use fhelium_ir::{Attributes, Location, Type};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// Where a step finds an operand, or the caller a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// An argument of the call.
    Argument(u32),
    /// A value of the frame that is read again later.
    Frame(u32),
    /// A value of the frame that is read here for the last time: it moves out.
    LastUse(u32),
    /// A value that stays between calls: a material or a result of the prologue.
    Kept(u32),
    /// An evaluation key of the call's secret.
    Key(u32),
    /// A material that is read at each call.
    Live(u32),
    /// A value that the call computed on the host.
    Host(u32),
    /// An array in host memory, as it went to the device for this call.
    Staged(u32),
}

/// One operation, with everything looked up.
#[derive(Clone)]
pub(super) struct Step {
    pub implementation: Arc<dyn Implementation>,
    pub operands: SmallVec<[Source; 4]>,
    pub attributes: Attributes,
    /// What the region of an `rns.fused` computes.
    pub region: Option<LinearProgram>,
    pub result_types: Vec<Type>,
    /// Frame slots of the results; `None` for one that nothing reads.
    pub results: SmallVec<[Option<u32>; 1]>,
    pub location: Option<Location>,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} <- {} [{}] {:?}",
            self.results,
            self.implementation.operation(),
            self.implementation.name(),
            self.operands
        )
    }
}

/// Steps in order, the slots of their frame, and where the results are found.
#[derive(Debug)]
pub(super) struct Tape {
    pub steps: Vec<Step>,
    pub slots: usize,
    pub results: Vec<Source>,
}

impl Tape {
    /// Runs the steps: the frame with the results.
    pub fn run<O: Outside>(&self, outside: O, engine: &Engine) -> Result<Frame<O>, RuntimeError> {
        let mut frame = Frame::new(outside, self.slots);
        for step in &self.steps {
            frame.run(step, engine)?;
        }
        Ok(frame)
    }
}

/// What a tape reads beside the values that it makes.
pub(super) trait Outside {
    /// The value at a source outside the tape.
    fn get(&self, source: Source) -> Option<Value>;
}

/// That of a call.
#[derive(Clone, Copy, Default)]
pub(super) struct Bound<'a> {
    pub arguments: &'a [Value],
    pub kept: &'a [Value],
    pub keys: &'a [Value],
    pub live: &'a [Value],
    pub host: &'a [Option<Value>],
    pub staged: &'a [Value],
}

impl Outside for Bound<'_> {
    fn get(&self, source: Source) -> Option<Value> {
        let at = |index: u32| index as usize;
        match source {
            Source::Argument(index) => self.arguments.get(at(index)).cloned(),
            Source::Kept(index) => self.kept.get(at(index)).cloned(),
            Source::Key(index) => self.keys.get(at(index)).cloned(),
            Source::Live(index) => self.live.get(at(index)).cloned(),
            Source::Host(index) => self.host.get(at(index)).cloned().flatten(),
            Source::Staged(index) => self.staged.get(at(index)).cloned(),
            Source::Frame(_) | Source::LastUse(_) => None,
        }
    }
}

/// The values of one run.
pub(super) struct Frame<O> {
    outside: O,
    slots: Vec<Option<Value>>,
}

impl<O: Outside> Frame<O> {
    pub fn new(outside: O, slots: usize) -> Self {
        Frame {
            outside,
            slots: vec![None; slots],
        }
    }

    /// The value at a source, moved out where this is its last use.
    pub fn take(&mut self, source: Source) -> Result<Value, RuntimeError> {
        let value = match source {
            Source::Frame(slot) => self.slots.get(slot as usize).cloned().flatten(),
            Source::LastUse(slot) => self.slots.get_mut(slot as usize).and_then(Option::take),
            outside => self.outside.get(outside),
        };
        value.ok_or_else(|| {
            RuntimeError::Link(format!("the tape reads {source:?} before it is written"))
        })
    }

    /// The values in its slots.
    pub fn into_slots(self) -> Vec<Option<Value>> {
        self.slots
    }

    pub fn put(&mut self, slot: u32, value: Value) {
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = Some(value);
        }
    }

    /// Runs one step; its error names the source line.
    pub fn run(&mut self, step: &Step, engine: &Engine) -> Result<(), RuntimeError> {
        let mut operands = Operands::new();
        for &source in &step.operands {
            operands.push(self.take(source)?);
        }
        let invocation = Invocation {
            engine,
            attributes: &step.attributes,
            region: step.region.as_ref(),
            results: &step.result_types,
        };
        let results = run_checked(step.implementation.as_ref(), &invocation, operands)
            .map_err(|error| error.at(step.location.as_ref()))?;
        for (slot, value) in step.results.iter().zip(results) {
            if let Some(slot) = *slot {
                self.put(slot, value);
            }
        }
        Ok(())
    }
}
