//! Files: written whole or not at all, and read only where they are files.

use super::error::{PersistError, Result};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// How the name of a file that is being written begins and ends.
pub(super) const TEMPORARY_BEGINNING: &str = ".fhelium-";
pub(super) const TEMPORARY_ENDING: &str = ".tmp";

/// How a file is put in place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placement {
    /// Whether a file of the name is replaced.
    pub overwrite: bool,
    /// Whether only the owner may read it.
    pub private: bool,
    /// Whether it is on the disk, and not only with the operating system, before this returns.
    pub durable: bool,
}

/// Writes a file beside its place and then moves it there, so that no reader and no crash finds
/// half of it.
pub(super) fn write_file(
    path: &Path,
    placement: Placement,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<()> {
    let failed = |action: &'static str| {
        move |error: io::Error| PersistError::Io {
            file: path.display().to_string(),
            action,
            error,
        }
    };
    // Told before the work; the move tells it again for a file that comes in between.
    if !placement.overwrite && path.symlink_metadata().is_ok() {
        return Err(exists(path));
    }
    let folder = folder_of(path);
    let mut temporary = new_temporary(&folder, placement.private).map_err(failed("creating it"))?;
    write(temporary.as_file_mut()).map_err(failed("writing"))?;
    if placement.durable {
        temporary.as_file().sync_all().map_err(failed("writing"))?;
    }
    if placement.overwrite {
        let moved = temporary.persist(path).map_err(|refused| refused.error);
        moved.map_err(failed("moving it into place"))?;
    } else if let Err(refused) = temporary.persist_noclobber(path) {
        return Err(match refused.error.kind() {
            io::ErrorKind::AlreadyExists => exists(path),
            _ => failed("moving it into place")(refused.error),
        });
    }
    // The name is in the folder, which some systems cannot sync.
    if placement.durable
        && let Ok(folder) = File::open(&folder)
    {
        let _ = folder.sync_all();
    }
    Ok(())
}

fn exists(path: &Path) -> PersistError {
    PersistError::Exists {
        file: path.display().to_string(),
    }
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn new_temporary(folder: &Path, private: bool) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY_BEGINNING).suffix(TEMPORARY_ENDING);
    // Temporary files are their owner's alone; others follow the process' umask, as files do.
    #[cfg(unix)]
    if !private {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    #[cfg(not(unix))]
    let _ = private;
    builder.tempfile_in(folder)
}

/// Opens a file to read, with its length.
pub(super) fn open_file(path: &Path) -> Result<(File, u64)> {
    let failed = |error: io::Error| PersistError::Io {
        file: path.display().to_string(),
        action: "opening",
        error,
    };
    // Before opening: a pipe would block.
    let metadata = path.metadata().map_err(failed)?;
    if !metadata.is_file() {
        let found = match metadata.is_dir() {
            true => "a directory",
            false => "a device or pipe",
        };
        let file = path.display().to_string();
        return Err(PersistError::malformed(&file, "the path", found, "a file"));
    }
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    Ok((file, length))
}
