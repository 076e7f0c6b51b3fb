//! Why something cannot be saved or loaded.

use super::Kind;
use crate::RuntimeError;
use fhelium_state::ErrorKind;
use std::fmt::Display;
use std::io;
use thiserror::Error;

/// A file or bytes that cannot be written or read.
///
/// Every variant but [`Runtime`](PersistError::Runtime) names the file, or says that bytes were
/// given.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PersistError {
    /// The operating system refused.
    #[error("{file}: {action} failed: {error}")]
    Io {
        /// The file.
        file: String,
        /// What was tried.
        action: &'static str,
        /// What the system says.
        #[source]
        error: io::Error,
    },
    /// There is a file of that name.
    #[error("{file} exists already; pass overwrite=True to replace it, or give another path")]
    Exists {
        /// The file.
        file: String,
    },
    /// A secret that nobody said may be written.
    #[error(
        "{file}: the {kind} to be saved holds a secret key, and whoever reads it decrypts everything; \
         pass allow_secret=True to save it all the same, or save KeySet.evaluation(), which holds \
         none"
    )]
    Secret {
        /// The file.
        file: String,
        /// What was to be saved.
        kind: Kind,
    },
    /// Contents that are not what they should be.
    #[error("{file}: {field}: found {found}, expected {expected}")]
    Malformed {
        /// The file.
        file: String,
        /// The part of it.
        field: String,
        /// What is there.
        found: String,
        /// What should be there.
        expected: String,
    },
    /// Another kind of object than was asked for.
    #[error("{file} holds {}, expected {expected}", found.noun())]
    WrongKind {
        /// The file.
        file: String,
        /// What it holds.
        found: Kind,
        /// What was asked for.
        expected: String,
    },
    /// Contents larger than memory.
    #[error("{file}: {bytes} bytes could not be allocated")]
    OutOfMemory {
        /// The file.
        file: String,
        /// The bytes.
        bytes: usize,
    },
    /// An object that is at odds with itself, or tables that cannot be made for a secret key.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl PersistError {
    /// The class of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            PersistError::OutOfMemory { .. } => ErrorKind::OutOfMemory,
            PersistError::Runtime(error) => error.kind(),
            _ => ErrorKind::Serialization,
        }
    }

    /// A refusal of a part of `file`.
    pub(super) fn malformed(
        file: &str,
        field: impl Into<String>,
        found: impl Display,
        expected: impl Into<String>,
    ) -> Self {
        // What stands in a damaged file may be long.
        const LONGEST: usize = 300;
        let mut found = found.to_string();
        if let Some((end, _)) = found.char_indices().nth(LONGEST) {
            found.truncate(end);
            found.push_str("...");
        }
        PersistError::Malformed {
            file: file.to_owned(),
            field: field.into(),
            found,
            expected: expected.into(),
        }
    }
}

/// The result of saving and loading.
pub type Result<T> = std::result::Result<T, PersistError>;
