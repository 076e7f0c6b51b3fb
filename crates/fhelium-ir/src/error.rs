//! Errors, and the places in source that they point to.

use fhelium_state::{ErrorKind, StateError};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// A line of the user's Python.
///
/// `Display` writes `file.py:12 in function`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The file's name as Python gives it.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The function that the line is in; may be empty.
    pub function: Arc<str>,
}

impl Location {
    /// A location.
    pub fn new(file: impl Into<Arc<str>>, line: u32, function: impl Into<Arc<str>>) -> Self {
        Location {
            file: file.into(),
            line,
            function: function.into(),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if !self.function.is_empty() {
            write!(f, " in {}", self.function)?;
        }
        Ok(())
    }
}

/// A place in a Program's text: line and column, both from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why an operation's result types cannot be given.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum InferError {
    /// Levels, scales or parts that the operation does not allow.
    #[error(transparent)]
    State(Box<StateError>),
    /// Operands or attributes of the wrong kind, shape or value.
    #[error("{message}")]
    Invalid {
        /// The class of the error.
        kind: ErrorKind,
        /// What was found, what was expected and what to do.
        message: String,
    },
}

impl From<StateError> for InferError {
    fn from(error: StateError) -> Self {
        InferError::State(Box::new(error))
    }
}

impl InferError {
    /// An argument of the wrong value or shape.
    pub fn value(message: impl Into<String>) -> Self {
        InferError::Invalid {
            kind: ErrorKind::Value,
            message: message.into(),
        }
    }

    /// A malformed Program.
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        InferError::Invalid {
            kind: ErrorKind::Compile,
            message: message.into(),
        }
    }

    /// The class of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            InferError::State(error) => error.kind(),
            InferError::Invalid { kind, .. } => *kind,
        }
    }
}

/// An error of a Program: building, verifying or reading it.
///
/// `Display` leads with the user's source line where it is known, else with the place in the
/// text: `scores.py:12 in score: he.add: ...`.
#[derive(Clone, Debug, PartialEq)]
pub struct IrError {
    /// The class of the error.
    pub kind: ErrorKind,
    /// What was found, what was expected and what to do.
    pub message: String,
    /// The operation's name, where the error is about one.
    pub operation: Option<&'static str>,
    /// The user's source line, where it is known.
    pub location: Option<Location>,
    /// The place in the text, for an error of the reader.
    pub position: Option<Position>,
    /// Whether the message leads with the operation as a user calls it (`multiply`), so that its
    /// name in the table (`he.mul`) need not be shown.
    names_operation: bool,
}

impl IrError {
    /// An error about no particular operation.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        IrError {
            kind,
            message: message.into(),
            operation: None,
            location: None,
            position: None,
            names_operation: false,
        }
    }

    /// A malformed Program.
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        IrError::new(ErrorKind::Compile, message)
    }

    /// The same error, about an operation made at a source line.
    #[must_use]
    pub fn at(mut self, operation: &'static str, location: Option<&Location>) -> Self {
        self.operation = Some(operation);
        self.location = location.cloned();
        self
    }

    /// The same error, about an input or a material.
    pub(crate) fn about(mut self, subject: impl fmt::Display) -> Self {
        self.message = format!("{subject}: {}", self.message);
        self
    }

    /// The same error, at a place in a text.
    #[must_use]
    pub(crate) fn in_text(mut self, position: Position) -> Self {
        self.position.get_or_insert(position);
        self
    }
}

impl From<InferError> for IrError {
    fn from(error: InferError) -> Self {
        IrError {
            names_operation: matches!(error, InferError::State(_)),
            ..IrError::new(error.kind(), error.to_string())
        }
    }
}

impl fmt::Display for IrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
        }
        if let Some(position) = &self.position {
            write!(f, "{position}: ")?;
        }
        if let Some(operation) = self.operation
            && !self.names_operation
        {
            write!(f, "{operation}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for IrError {}
