//! The size of a directory of entries.
//!
//! The time of an entry's last change stands for its last use: a reader sets it. Processes may
//! shrink one directory at once; what another removed first is gone all the same, and a reader
//! that has an entry open reads it to the end.

use std::fs::{DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The ending of an entry's name, before which stands its key.
pub(super) const ENDING: &str = ".fhelium";

/// Characters of a key.
const KEY_LENGTH: usize = 64;

/// A half-written file of this age is a crashed process'.
const ABANDONED: Duration = Duration::from_secs(3600);

struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// Notes that an entry is used now. Where the system does not allow it, the entry is only taken
/// for older than it is.
pub(super) fn touch(path: &Path) {
    let _ = File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
}

/// Removes the entries that were used longest ago until the others take at most `limit` bytes;
/// the one at `newest` stays. Files that are no entries are left alone, but for those that a
/// crashed process left half-written.
///
/// # Errors
/// A directory that cannot be read, or an entry that cannot be removed.
pub(super) fn shrink(directory: &Path, limit: u64, newest: &Path) -> io::Result<()> {
    let now = SystemTime::now();
    let mut entries = Vec::new();
    for found in directory.read_dir()? {
        let found = found?;
        let Some(entry) = gone_is_none(metadata(&found))? else {
            continue;
        };
        if is_entry(&found) {
            entries.push(entry);
        } else if is_temporary(&found)
            && now
                .duration_since(entry.used)
                .is_ok_and(|age| age > ABANDONED)
        {
            remove(&entry.path)?;
        }
    }
    let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    entries.sort_by_key(|entry| entry.used);
    for entry in entries.iter().filter(|entry| entry.path != newest) {
        if total <= limit {
            break;
        }
        remove(&entry.path)?;
        total -= entry.bytes;
    }
    Ok(())
}

fn metadata(found: &DirEntry) -> io::Result<Entry> {
    let metadata = found.metadata()?;
    Ok(Entry {
        path: found.path(),
        bytes: metadata.len(),
        used: metadata.modified()?,
    })
}

fn is_entry(found: &DirEntry) -> bool {
    let name = found.file_name();
    let key = name.to_str().and_then(|name| name.strip_suffix(ENDING));
    key.is_some_and(|key| {
        key.len() == KEY_LENGTH && key.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn is_temporary(found: &DirEntry) -> bool {
    let name = found.file_name();
    name.to_str().is_some_and(|name| {
        name.starts_with(super::file::TEMPORARY_BEGINNING)
            && name.ends_with(super::file::TEMPORARY_ENDING)
    })
}

fn remove(path: &Path) -> io::Result<()> {
    gone_is_none(std::fs::remove_file(path)).map(drop)
}

/// What another process removed meanwhile is no error.
fn gone_is_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
