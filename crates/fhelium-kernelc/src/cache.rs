//! Images kept by the hash of all that they depend on.

use crate::Error;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Bytes of the checksum in front of each cached image.
const CHECKSUM: usize = 32;

pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
        Ok(Cache {
            folder: folder.to_owned(),
        })
    }

    /// The image, if it is there and whole; a damaged one counts as absent.
    pub(crate) fn get(&self, key: &str) -> Option<Vec<u8>> {
        let mut bytes = std::fs::read(self.folder.join(key)).ok()?;
        if bytes.len() <= CHECKSUM {
            return None;
        }
        let image = bytes.split_off(CHECKSUM);
        (Sha256::digest(&image).as_slice() == bytes).then_some(image)
    }

    /// Writes beside and renames, so that a build that is killed leaves no half image.
    pub(crate) fn put(&self, key: &str, image: &[u8]) -> Result<(), Error> {
        let unfinished = self.folder.join(format!("{key}.{}", std::process::id()));
        let mut bytes = Sha256::digest(image).to_vec();
        bytes.extend_from_slice(image);
        std::fs::write(&unfinished, bytes).map_err(Error::file(&unfinished))?;
        std::fs::rename(&unfinished, self.folder.join(key)).map_err(Error::file(&unfinished))
    }
}
