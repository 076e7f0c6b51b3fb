//! What can go wrong while kernels are compiled.

use crate::locate::PIP_LINE;
use std::path::PathBuf;
use thiserror::Error;

/// A failure of the kernel build.
#[derive(Debug, Error)]
pub enum Error {
    /// No NVRTC on this machine.
    #[error(
        "the CUDA kernels need NVRTC and none was found (looked at: {looked_at}).\n  Install it: \
         {PIP_LINE}\n  or build without CUDA: set FHELIUM_CUDA=off"
    )]
    NotFound {
        /// The places that were looked at.
        looked_at: String,
    },
    /// A value of `FHELIUM_CUDA` that means nothing.
    #[error(
        "FHELIUM_CUDA is {found:?}; expected \"off\" (build without CUDA), \"on\" (stop where the \
         kernels cannot be built), or nothing"
    )]
    Request {
        /// The variable's value.
        found: String,
    },
    /// A target that no build knows.
    #[error("no target is named {found:?}; expected some of {known}")]
    UnknownTarget {
        /// The name.
        found: String,
        /// The names of [`Target::SHIPPED`](crate::Target::SHIPPED).
        known: String,
    },
    /// A library that cannot be loaded or lacks a function.
    #[error("{path}: not a usable NVRTC library: {reason}")]
    Library {
        /// The library.
        path: PathBuf,
        /// The loader's words.
        reason: String,
    },
    /// Sources with errors or warnings.
    #[error("the kernels do not compile cleanly:\n{log}")]
    Compile {
        /// The compiler's log, with files and lines.
        log: String,
    },
    /// Kernels that take more than they may.
    #[error("kernels outside their budgets:\n{log}")]
    Budget {
        /// A line for each.
        log: String,
    },
    /// A file that cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl Error {
    /// Names the file that the system refused.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::File { path, source }
    }
}
