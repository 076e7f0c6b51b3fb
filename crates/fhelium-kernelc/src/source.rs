//! The kernels' sources and what they are compiled for.

use crate::{Error, Options};
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::{Path, PathBuf};

/// An architecture to compile for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// Machine code for a compute capability, `Cubin(90)` for 9.0.
    Cubin(u32),
    /// PTX that a driver can compile for that capability and every later one.
    Ptx(u32),
}

impl Target {
    /// What the wheel ships: machine code for data-centre and consumer GPUs from Ampere to
    /// Blackwell, and PTX for whatever comes later.
    pub const SHIPPED: [Target; 7] = [
        Target::Cubin(80),
        Target::Cubin(86),
        Target::Cubin(89),
        Target::Cubin(90),
        Target::Cubin(100),
        Target::Cubin(120),
        Target::Ptx(80),
    ];

    /// The shipped targets that a list such as `sm_90,compute_80` names, in their usual order.
    ///
    /// # Errors
    /// [`Error::UnknownTarget`] for any other name.
    pub fn named(list: &str) -> Result<Vec<Target>, Error> {
        let names = Target::SHIPPED.map(|target| target.to_string());
        let wanted: Vec<&str> = list.split(',').map(str::trim).collect();
        if let Some(unknown) = wanted.iter().find(|name| !names.iter().any(|n| n == *name)) {
            return Err(Error::UnknownTarget {
                found: (*unknown).to_owned(),
                known: names.join(", "),
            });
        }
        let named = |target: &Target| wanted.contains(&target.to_string().as_str());
        Ok(Target::SHIPPED.into_iter().filter(named).collect())
    }

    /// The compute capability times ten.
    pub fn capability(self) -> u32 {
        match self {
            Target::Cubin(capability) | Target::Ptx(capability) => capability,
        }
    }
}

impl fmt::Display for Target {
    /// The compiler's name for it: `sm_90`, `compute_80`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Cubin(capability) => write!(f, "sm_{capability}"),
            Target::Ptx(capability) => write!(f, "compute_{capability}"),
        }
    }
}

/// A folder of kernels: `.cu` files and the `.cuh` headers beside them.
#[derive(Clone, Debug)]
pub struct Sources {
    folder: PathBuf,
    files: Vec<PathBuf>,
    headers: Vec<PathBuf>,
}

impl Sources {
    /// Lists the folder.
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be read.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let folder = folder.canonicalize().map_err(Error::file(folder))?;
        let mut files = Vec::new();
        let mut headers = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(Error::file(&folder))? {
            let path = entry.map_err(Error::file(&folder))?.path();
            match path.extension().and_then(|ending| ending.to_str()) {
                Some("cu") => files.push(path),
                Some("cuh") => headers.push(path),
                _ => {}
            }
        }
        files.sort();
        headers.sort();
        Ok(Sources {
            folder,
            files,
            headers,
        })
    }

    /// The folder, for `-I` and `rerun-if-changed`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The `.cu` files, sorted.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// A file's name without its ending.
    pub fn stem(file: &Path) -> String {
        file.file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
    }

    /// A name for the image that changes with all that it depends on.
    pub(crate) fn key(
        &self,
        file: &Path,
        target: Target,
        version: (i32, i32),
        options: &Options,
    ) -> Result<String, Error> {
        let mut hash = Sha256::new();
        hash.update(format!(
            "{target} {}.{} {options:?}\n",
            version.0, version.1
        ));
        // All headers, so that none has to be parsed for what it includes.
        for path in self.headers.iter().map(PathBuf::as_path).chain([file]) {
            let text = std::fs::read(path).map_err(Error::file(path))?;
            hash.update(format!("{} {}\n", Sources::stem(path), text.len()));
            hash.update(text);
        }
        Ok(hash
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }
}
