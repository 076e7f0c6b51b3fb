//! The directory of compiled Programs.

use crate::errors::bad_argument;
use fhelium_runtime::persist::CompileCache;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

/// The environment variable that names the directory where nothing else does.
const VARIABLE: &str = "FHELIUM_CACHE_DIR";

static PROCESS: LazyLock<RwLock<Option<Arc<CompileCache>>>> = LazyLock::new(|| {
    let named = std::env::var_os(VARIABLE).filter(|directory| !directory.is_empty());
    RwLock::new(named.map(|directory| {
        // Where there is no current directory, a relative path names nothing anyway.
        let path = std::path::absolute(&directory).unwrap_or(directory.into());
        Arc::new(CompileCache::new(path))
    }))
});

/// The bytes that a directory named from here on may take.
static MAX_BYTES: AtomicU64 = AtomicU64::new(CompileCache::DEFAULT_MAX_BYTES);

fn cache_in(directory: PathBuf) -> Arc<CompileCache> {
    let max_bytes = MAX_BYTES.load(Ordering::Relaxed);
    Arc::new(CompileCache::new(directory).with_max_bytes(max_bytes))
}

/// Which cache a compiled function uses.
#[derive(Clone)]
pub enum CacheChoice {
    /// The process', if it has one.
    Process,
    /// One of its own.
    Own(Arc<CompileCache>),
    /// None.
    Off,
}

impl CacheChoice {
    /// The choice that `None`, `False` or a path stands for.
    pub fn from_python(value: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(value) = value else {
            return Ok(CacheChoice::Process);
        };
        if value.cast::<PyBool>().is_ok_and(|value| !value.is_true()) {
            return Ok(CacheChoice::Off);
        }
        let path: PathBuf = value.extract().map_err(|_| {
            PyTypeError::new_err(format!(
                "cache_directory must be a path, None for the process' directory, or False for \
                 none, found {}",
                crate::engine::class_name(value)
            ))
        })?;
        Ok(CacheChoice::Own(cache_in(absolute(path)?)))
    }

    /// The cache, if there is one.
    pub fn cache(&self) -> Option<Arc<CompileCache>> {
        match self {
            CacheChoice::Process => PROCESS
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            CacheChoice::Own(cache) => Some(cache.clone()),
            CacheChoice::Off => None,
        }
    }
}

/// The path as it is now, whatever directory the process goes to.
fn absolute(path: PathBuf) -> PyResult<PathBuf> {
    std::path::absolute(&path)
        .map_err(|error| bad_argument(format!("cache_directory {}: {error}", path.display())))
}

/// Sets the directory of every compiled function that names none itself.
#[pyfunction]
pub fn set_cache_directory(path: Option<PathBuf>) -> PyResult<()> {
    let cache = path.map(absolute).transpose()?.map(cache_in);
    *PROCESS.write().unwrap_or_else(PoisonError::into_inner) = cache;
    Ok(())
}

/// Sets the bytes that the directory in use, and those named from here on, may take.
#[pyfunction]
pub fn set_cache_max_bytes(max_bytes: u64) {
    MAX_BYTES.store(max_bytes, Ordering::Relaxed);
    let mut process = PROCESS.write().unwrap_or_else(PoisonError::into_inner);
    *process = process
        .take()
        .map(|cache| cache_in(cache.directory().to_owned()));
}

/// The directory in use, if there is one.
#[pyfunction]
pub fn get_cache_directory() -> Option<PathBuf> {
    let cache = CacheChoice::Process.cache()?;
    Some(cache.directory().to_owned())
}
