//! What can go wrong between a function call and its result.

use crate::cache::RecursivePreparation;
use crate::signature::Difference;
use crate::tensor::TensorError;
use fhelium_ckks::CkksError;
use fhelium_cuda::CudaError;
use fhelium_ir::{IrError, KeyKind, Location};
use fhelium_passes::PipelineError;
use fhelium_state::{ErrorKind, StateError};
use std::fmt;
use thiserror::Error;

/// An error of the engine, the linker, an executable or a backend.
#[derive(Debug, Error)]
pub enum RuntimeError {
    /// An operation on encrypted values.
    #[error(transparent)]
    Ckks(#[from] CkksError),
    /// An operation whose operands' levels, scales or parts do not allow it.
    #[error(transparent)]
    State(#[from] StateError),
    /// A Program that is malformed, or an operation that its operands' types do not allow.
    #[error(transparent)]
    Ir(#[from] IrError),
    /// A pass that failed, or a pipeline that cannot be edited as asked.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// An operation on clear tensors.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// Evaluation keys that an operation or a Program needs and nobody gave.
    #[error(transparent)]
    MissingKeys(#[from] MissingKeys),
    /// A key or value of another secret or of other parameters.
    #[error("{0}")]
    KeyMismatch(String),
    /// A device that is missing or fails, or its memory.
    #[error(transparent)]
    Cuda(CudaError),
    /// A device that cannot be used, or not the value's.
    #[error("{0}")]
    Device(String),
    /// An argument of the wrong value, shape or type.
    #[error("{0}")]
    Value(String),
    /// A Program that the backend cannot run.
    #[error("{0}")]
    Link(String),
    /// No specialization for these arguments where none may be made.
    #[error(transparent)]
    SpecializationMiss(#[from] Box<SpecializationMiss>),
    /// A function that calls itself while it is compiled.
    #[error(transparent)]
    Recursive(#[from] RecursivePreparation),
    /// An implementation that did not keep its promise.
    #[error("{0}")]
    Implementation(String),
    /// An error with the source line of the operation that raised it.
    #[error("{location}: {error}")]
    At {
        /// Where the operation was written.
        location: Location,
        /// What went wrong.
        error: Box<RuntimeError>,
    },
}

impl RuntimeError {
    /// The class of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            RuntimeError::Ckks(error) => error.kind(),
            RuntimeError::State(error) => error.kind(),
            RuntimeError::Ir(error) => error.kind,
            RuntimeError::Pipeline(error) => error.kind(),
            RuntimeError::Tensor(error) => error.kind(),
            RuntimeError::Value(_) => ErrorKind::Value,
            RuntimeError::MissingKeys(_) => ErrorKind::MissingKey,
            RuntimeError::KeyMismatch(_) => ErrorKind::KeyMismatch,
            RuntimeError::Cuda(error) => error.kind(),
            RuntimeError::Device(_) => ErrorKind::Device,
            RuntimeError::Link(_) | RuntimeError::Implementation(_) => ErrorKind::Link,
            RuntimeError::SpecializationMiss(_) => ErrorKind::SpecializationMiss,
            RuntimeError::Recursive(_) => ErrorKind::Capture,
            RuntimeError::At { error, .. } => error.kind(),
        }
    }

    /// The source line of the operation that raised it, if it has one.
    pub fn location(&self) -> Option<&Location> {
        match self {
            RuntimeError::At { location, .. } => Some(location),
            _ => None,
        }
    }

    /// What went wrong, without the source line.
    pub fn cause(&self) -> &RuntimeError {
        match self {
            RuntimeError::At { error, .. } => error.cause(),
            error => error,
        }
    }

    /// This error with the operation's source line, unless it has one already.
    #[must_use]
    pub fn at(self, location: Option<&Location>) -> Self {
        match (self, location) {
            (error @ RuntimeError::At { .. }, _) | (error, None) => error,
            (error, Some(location)) => RuntimeError::At {
                location: location.clone(),
                error: Box::new(error),
            },
        }
    }
}

impl From<CudaError> for RuntimeError {
    /// What the scheme refuses is the same error wherever it is refused.
    fn from(error: CudaError) -> Self {
        match error {
            CudaError::Ckks(error) => RuntimeError::Ckks(error),
            error => RuntimeError::Cuda(error),
        }
    }
}

/// One key that is missing, with the operations that ask for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingKey {
    /// The key.
    pub kind: KeyKind,
    /// The operations' source lines, without repetition.
    pub locations: Vec<Location>,
}

/// Every key that a Program or an operation lacks, with the keys that there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingKeys {
    /// The missing ones.
    pub missing: Vec<MissingKey>,
    /// Whether any key of the ciphertext's secret is registered.
    pub any_registered: bool,
    /// The rotation steps for which there are keys of the ciphertext's secret, ascending.
    pub rotations: Vec<usize>,
}

impl std::error::Error for MissingKeys {}

impl fmt::Display for MissingKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.missing.len() == 1 { "" } else { "s" };
        write!(f, "missing key{plural}: ")?;
        for (position, key) in self.missing.iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            write!(f, "{comma}{}", key.kind)?;
            for (position, location) in key.locations.iter().enumerate() {
                let opening = if position == 0 { " (needed at " } else { ", " };
                write!(f, "{opening}{location}")?;
            }
            if !key.locations.is_empty() {
                f.write_str(")")?;
            }
        }
        if !self.any_registered {
            return f.write_str(
                "; no evaluation keys of this ciphertext's secret are registered: give them to \
                 Engine.use or with key=",
            );
        }
        let mut steps = Vec::new();
        let mut others = Vec::new();
        for key in &self.missing {
            match key.kind {
                KeyKind::Rotation { step } => steps.push(step.to_string()),
                KeyKind::Relinearization => others.push("a relinearization key"),
                KeyKind::Conjugation => others.push("conjugation=True"),
            }
        }
        if !steps.is_empty() {
            write!(
                f,
                "; the registered rotation steps are {:?}: add rotations=[{}] to keygen",
                self.rotations,
                steps.join(", ")
            )?;
        }
        if !others.is_empty() {
            write!(f, "; make the keys with {}", others.join(" and "))?;
        }
        f.write_str(" and give the keys to Engine.use or with key=")
    }
}

/// A call for which nothing is prepared, where nothing may be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct SpecializationMiss {
    /// The function's name.
    pub callable: String,
    /// How many variants are prepared.
    pub prepared: usize,
    /// The prepared variants nearest to the call: their position in the order of preparation and
    /// what the call does not meet.
    pub nearest: Vec<(usize, Vec<Difference>)>,
}

/// Variants that a message shows.
const SHOWN: usize = 3;

impl fmt::Display for SpecializationMiss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SpecializationMiss {
            callable, prepared, ..
        } = self;
        if *prepared == 0 {
            return write!(
                f,
                "{callable}: nothing is prepared and on_miss=\"error\"; call prepare(...) with \
                 such arguments first"
            );
        }
        write!(
            f,
            "{callable}: no specialization of the {prepared} prepared fits these arguments; \
             nearest:"
        )?;
        for (position, differences) in self.nearest.iter().take(SHOWN) {
            write!(f, "\n  variant {position}:")?;
            for difference in differences {
                write!(f, "\n    {difference}")?;
            }
        }
        f.write_str("\ncall prepare(...) with such arguments first")
    }
}
