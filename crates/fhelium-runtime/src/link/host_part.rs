//! What a program for a device does on the host in each call.
//!
//! Nothing on the host depends on what the device computes, so operations on arrays in host memory
//! come first; then the arrays among their results and the arguments that the device reads go up.
//! The rest is on the device alone, and can be replayed.

use super::tape::{Bound, Frame, Source, Step};
use crate::{Engine, RuntimeError, Value};
use fhelium_ir::{Location, OpKind};
use fhelium_state::Scale;
use std::fmt;

/// The steps on the host, in order, each slot of whose frame is written once.
#[derive(Debug, Default)]
pub(super) struct HostPart {
    pub steps: Vec<Step>,
    pub slots: usize,
    pub staged: Vec<Staged>,
}

/// An array in host memory that goes to the device.
#[derive(Debug)]
pub(super) struct Staged {
    pub source: Source,
    pub encodings: Vec<Encoding>,
}

/// An encoding of such an array. Its values are checked on the host, before anything runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Encoding {
    pub level: usize,
    pub scale: Scale,
    pub location: Option<Location>,
}

impl HostPart {
    /// Runs the steps: the values of the frame.
    pub fn run(
        &self,
        engine: &Engine,
        bound: Bound<'_>,
    ) -> Result<Vec<Option<Value>>, RuntimeError> {
        let mut frame = Frame::new(bound, self.slots);
        for step in &self.steps {
            frame.run(step, engine)?;
        }
        Ok(frame.into_slots())
    }

    /// The arrays that the device reads, there.
    pub fn stage(&self, engine: &Engine, bound: Bound<'_>) -> Result<Vec<Value>, RuntimeError> {
        let mut frame = Frame::new(bound, 0);
        let staged = self.staged.iter();
        let staged =
            staged.map(|staged| stage(engine, &frame.take(staged.source)?, &staged.encodings));
        staged.collect()
    }

    /// What it does, for people.
    pub fn work(&self) -> HostWork {
        let operations = self.steps.iter();
        HostWork {
            operations: operations
                .map(|step| (step.implementation.operation(), step.location.clone()))
                .collect(),
            uploads: self.staged.len(),
        }
    }
}

/// Copies an array to the engine's device, once its values are checked.
pub(super) fn stage(
    engine: &Engine,
    value: &Value,
    encodings: &[Encoding],
) -> Result<Value, RuntimeError> {
    let Value::Tensor(array) = value else {
        return Err(RuntimeError::Link(format!(
            "{} goes to the device, which only arrays do",
            value.ty()
        )));
    };
    for encoding in encodings {
        engine
            .check_message(array.host()?, encoding.level, &encoding.scale)
            .map_err(|error| error.at(encoding.location.as_ref()))?;
    }
    Ok(Value::Tensor(engine.place(array)?))
}

/// What each call of an executable for a device does on the host before it runs there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostWork {
    /// Operations on arrays in host memory, with their source lines.
    pub operations: Vec<(OpKind, Option<Location>)>,
    /// Arrays that are copied to the device.
    pub uploads: usize,
}

impl HostWork {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.uploads == 0
    }
}

impl fmt::Display for HostWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let (computed, uploads) = (self.operations.len(), self.uploads);
        if computed > 0 {
            let s = plural(computed);
            write!(f, "{computed} operation{s} on arrays in host memory: ")?;
        }
        for (position, (operation, location)) in self.operations.iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            write!(f, "{comma}{operation}")?;
            if let Some(location) = location {
                write!(f, " ({location})")?;
            }
        }
        if uploads > 0 {
            let and = if computed > 0 { "; " } else { "" };
            write!(
                f,
                "{and}{uploads} array{} copied to the device",
                plural(uploads)
            )?;
        }
        Ok(())
    }
}
