//! The flat list of steps that an executable runs.

use crate::backend::{Implementation, Invocation, Operands, run_checked};
use crate::{Engine, RuntimeError, Value};
use fhelium_ir::{Attributes, Location, Type};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// Where a step finds an operand, or the caller a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// One operation, with everything looked up.
#[derive(Clone)]
pub(super) struct Step {
    pub implementation: Arc<dyn Implementation>,
    pub operands: SmallVec<[Source; 4]>,
    pub attributes: Attributes,
    pub result_types: Vec<Type>,
    /// Whether an operand or a result is a clear tensor.
    pub takes_tensors: bool,
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

/// The values of one run.
pub(super) struct Frame<'a> {
    pub arguments: &'a [Value],
    pub kept: &'a [Value],
    pub keys: &'a [Value],
    slots: Vec<Option<Value>>,
}

impl<'a> Frame<'a> {
    pub fn new(arguments: &'a [Value], kept: &'a [Value], keys: &'a [Value], slots: usize) -> Self {
        Frame {
            arguments,
            kept,
            keys,
            slots: vec![None; slots],
        }
    }

    /// The value at a source, moved out where this is its last use.
    pub fn take(&mut self, source: Source) -> Result<Value, RuntimeError> {
        let at = |index: u32| index as usize;
        let value = match source {
            Source::Argument(index) => self.arguments.get(at(index)).cloned(),
            Source::Kept(index) => self.kept.get(at(index)).cloned(),
            Source::Key(index) => self.keys.get(at(index)).cloned(),
            Source::Frame(slot) => self.slots.get(at(slot)).cloned().flatten(),
            Source::LastUse(slot) => self.slots.get_mut(at(slot)).and_then(Option::take),
        };
        value.ok_or_else(|| {
            RuntimeError::Link(format!("the tape reads {source:?} before it is written"))
        })
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
