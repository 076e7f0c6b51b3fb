//! Writing the Program after each pass.

use std::fs;
use std::io::ErrorKind as IoKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use fhelium_ir::Program;

use crate::error::PipelineError;

/// The environment variable that names the directory for dumps.
pub const DUMP_VARIABLE: &str = "FHELIUM_DUMP";

/// Where a pipeline writes the Program after each of its passes.
///
/// Each run of a pipeline makes a new directory `<program>-<number>` there, and in it `00-input.fhe`
/// and one `NN-<pass>.fhe` for every pass, so that runs never overwrite each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Dump {
    /// Nowhere.
    #[default]
    Off,
    /// Below this directory, which is made if it is missing.
    To(PathBuf),
}

impl Dump {
    /// What `FHELIUM_DUMP` asks for; [`Dump::Off`] where it is unset or empty.
    pub fn from_environment() -> Self {
        match std::env::var_os(DUMP_VARIABLE) {
            Some(directory) if !directory.is_empty() => Dump::To(directory.into()),
            _ => Dump::Off,
        }
    }

    pub(crate) fn start(&self, program: &Program) -> Result<Option<DumpRun>, PipelineError> {
        let Dump::To(parent) = self else {
            return Ok(None);
        };
        let run = DumpRun {
            directory: fresh_directory(parent, &file_name(program.name()))?,
        };
        run.write(0, "input", program)?;
        Ok(Some(run))
    }
}

/// The dump of one run.
pub(crate) struct DumpRun {
    directory: PathBuf,
}

impl DumpRun {
    pub(crate) fn write(
        &self,
        number: usize,
        name: &str,
        program: &Program,
    ) -> Result<(), PipelineError> {
        let path = self
            .directory
            .join(format!("{number:02}-{}.fhe", file_name(name)));
        fs::write(&path, program.to_text()).map_err(|error| PipelineError::Dump { path, error })
    }
}

/// Makes and returns a directory that was not there before.
fn fresh_directory(parent: &Path, name: &str) -> Result<PathBuf, PipelineError> {
    // Counting on from the last run of this process keeps many runs from probing the same names.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let failed = |path: PathBuf| move |error| PipelineError::Dump { path, error };
    fs::create_dir_all(parent).map_err(failed(parent.to_owned()))?;
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = parent.join(format!("{name}-{number}"));
        match fs::create_dir(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == IoKind::AlreadyExists => {}
            Err(error) => return Err(failed(directory)(error)),
        }
    }
}

/// A name with every character that a file name might not hold replaced.
fn file_name(name: &str) -> String {
    let name: String = name
        .chars()
        .take(80)
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
                c
            } else {
                '_'
            }
        })
        .collect();
    if name.is_empty() {
        "program".to_owned()
    } else {
        name
    }
}
