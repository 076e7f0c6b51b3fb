//! Compiles handwritten CUDA kernels with NVRTC, at build time and with no installed toolkit.
//!
//! [`Compiler::find`] locates the NVRTC library (the PyPI package `nvidia-cuda-nvrtc-cu12` is
//! enough), [`Compiler::compile`] turns a folder of `.cu` files into images, one for each file
//! and [`Target`], on all cores and through a cache keyed by content: a file is compiled again
//! only when it, a header, the compiler's version or the options change. Warnings are errors.
//!
//! Images hold no paths and no times, so the same sources give the same bytes anywhere.

mod budget;
mod cache;
mod error;
mod locate;
mod nvrtc;
mod plan;
mod source;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub use budget::{Budgets, Usage};
pub use error::Error;
pub use locate::{PIP_LINE, SEARCH_VARIABLES, find_nvrtc};
pub use plan::{Plan, Platform};
pub use source::{Sources, Target};

use cache::Cache;
use nvrtc::Nvrtc;

/// One compiled kernel file.
#[derive(Clone, Debug)]
pub struct Image {
    /// The source file's name without its ending: `ntt` for `ntt.cu`.
    pub stem: String,
    /// What it was compiled for.
    pub target: Target,
    /// A cubin, or PTX text with a closing NUL.
    pub bytes: Vec<u8>,
    /// How long its compilation took; `None` if it came from the cache.
    pub compile_time: Option<Duration>,
}

/// How to compile.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Keep line numbers for profilers. They hold absolute paths, so such images are not
    /// reproducible.
    pub line_info: bool,
}

/// A found compiler and a cache.
pub struct Compiler {
    nvrtc: Nvrtc,
    cache: Cache,
}

impl Compiler {
    /// Loads the NVRTC that [`find_nvrtc`] finds.
    ///
    /// # Errors
    /// Those of [`find_nvrtc`] and [`with_library`](Self::with_library).
    pub fn find(cache: &Path) -> Result<Self, Error> {
        Self::with_library(&find_nvrtc()?, cache)
    }

    /// Loads the given NVRTC library.
    ///
    /// # Errors
    /// [`Error::Library`], [`Error::File`] for a cache that cannot be made.
    pub fn with_library(library: &Path, cache: &Path) -> Result<Self, Error> {
        Ok(Compiler {
            nvrtc: Nvrtc::load(library)?,
            cache: Cache::open(cache)?,
        })
    }

    /// NVRTC's version, such as `(12, 8)`.
    pub fn version(&self) -> (i32, i32) {
        self.nvrtc.version()
    }

    /// Compiles every `.cu` file for every target; the images are in the order of files, then
    /// targets.
    ///
    /// # Errors
    /// [`Error::Compile`] with the compiler's log for each file that fails or that it warns
    /// about; nothing of such a file is cached.
    pub fn compile(
        &self,
        sources: &Sources,
        targets: &[Target],
        options: &Options,
    ) -> Result<Vec<Image>, Error> {
        let jobs: Vec<(&Path, Target)> = sources
            .files()
            .iter()
            .flat_map(|file| targets.iter().map(move |&target| (file.as_path(), target)))
            .collect();
        let results: Vec<OnceLock<_>> = jobs.iter().map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let workers = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(jobs.len());
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(&(file, target)) = jobs.get(index) else {
                            break;
                        };
                        let result = self.image(sources, file, target, options);
                        // Each index is handed out once, so the cell is empty.
                        let _ = results[index].set(result);
                    }
                });
            }
        });
        let mut images = Vec::with_capacity(jobs.len());
        let mut log = String::new();
        for result in results {
            match result.into_inner().expect("the scope ran every job") {
                Ok(image) => images.push(image),
                Err(Error::Compile { log: one }) => log.push_str(&one),
                Err(other) => return Err(other),
            }
        }
        if log.is_empty() {
            Ok(images)
        } else {
            Err(Error::Compile { log })
        }
    }

    fn image(
        &self,
        sources: &Sources,
        file: &Path,
        target: Target,
        options: &Options,
    ) -> Result<Image, Error> {
        let image = |bytes, compile_time| Image {
            stem: Sources::stem(file),
            target,
            bytes,
            compile_time,
        };
        let key = sources.key(file, target, self.version(), options)?;
        if let Some(bytes) = self.cache.get(&key) {
            return Ok(image(bytes, None));
        }
        let begin = Instant::now();
        let bytes = self.nvrtc.compile(sources, file, target, options)?;
        self.cache.put(&key, &bytes)?;
        Ok(image(bytes, Some(begin.elapsed())))
    }
}

/// The folder of the workspace's kernels, for build scripts of its crates.
pub fn kernels_folder(manifest_dir: &Path) -> PathBuf {
    manifest_dir.join("../../kernels/cuda")
}
