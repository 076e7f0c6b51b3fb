//! Why a pass or a pipeline failed.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use fhelium_ir::Location;
use fhelium_state::ErrorKind;
use thiserror::Error as ThisError;

/// A pass that could not do its work.
///
/// `Display` gives the source line, the pass and the operation before the message.
#[derive(Debug)]
pub struct PassError {
    /// The pass.
    pub pass: String,
    /// The operation's name, where the failure is about one.
    pub operation: Option<String>,
    /// The line that made the operation.
    pub location: Option<Location>,
    /// What was found, what was expected and what to do.
    pub message: String,
    /// The class of the error.
    pub kind: ErrorKind,
    /// The error beneath.
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl PassError {
    /// A failure of `pass`.
    pub fn new(pass: impl Into<String>, message: impl Into<String>) -> Self {
        PassError {
            pass: pass.into(),
            operation: None,
            location: None,
            message: message.into(),
            kind: ErrorKind::Compile,
            source: None,
        }
    }

    /// The same failure at an operation and the line that made it.
    #[must_use]
    pub fn at(mut self, operation: impl Into<String>, location: Option<Location>) -> Self {
        self.operation = Some(operation.into());
        self.location = location;
        self
    }

    /// The same failure as another class of error.
    #[must_use]
    pub fn of_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// The same failure with the error that caused it.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for PassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
        }
        write!(f, "pass {}", self.pass)?;
        if let Some(operation) = &self.operation {
            write!(f, ", {operation}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl Error for PassError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source
            .as_deref()
            .map(|error| error as &(dyn Error + 'static))
    }
}

/// A pipeline that cannot be edited as asked, or that failed.
#[derive(Debug, ThisError)]
pub enum PipelineError {
    /// A pass failed.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// A pass left a Program that does not verify.
    #[error("pass {pass} left a malformed Program: {error}")]
    Malformed {
        /// The pass.
        pass: String,
        /// What the verifier found.
        #[source]
        error: fhelium_ir::IrError,
    },
    /// The Program does not verify before the first pass.
    #[error("the Program given to the pipeline is malformed: {error}")]
    MalformedInput {
        /// What the verifier found.
        #[source]
        error: fhelium_ir::IrError,
    },
    /// Two passes of one name.
    #[error(
        "a pass named {name:?} is already at position {position} of the pipeline [{names}]; names \
         are unique: give one of the two another name"
    )]
    DuplicateName {
        /// The name.
        name: String,
        /// Where the first one stands, counted from 0.
        position: usize,
        /// All names of the pipeline.
        names: String,
    },
    /// A name that no pass has.
    #[error("no pass is named {name:?}; the pipeline holds [{names}]")]
    NoSuchPass {
        /// The name asked for.
        name: String,
        /// All names of the pipeline.
        names: String,
    },
    /// A position outside the pipeline.
    #[error("position {position} is outside the pipeline, which holds {length} passes [{names}]")]
    NoSuchPosition {
        /// The position asked for, counted from 0.
        position: usize,
        /// The passes there are.
        length: usize,
        /// All names of the pipeline.
        names: String,
    },
    /// A dump that could not be written.
    #[error(
        "the Program could not be dumped to {}: {error}; name a directory that can be written", path.display()
    )]
    Dump {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        #[source]
        error: std::io::Error,
    },
}

impl PipelineError {
    /// The class of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            PipelineError::Pass(error) => error.kind,
            PipelineError::Malformed { .. } | PipelineError::MalformedInput { .. } => {
                ErrorKind::Compile
            }
            PipelineError::DuplicateName { .. }
            | PipelineError::NoSuchPass { .. }
            | PipelineError::NoSuchPosition { .. }
            | PipelineError::Dump { .. } => ErrorKind::Value,
        }
    }
}
