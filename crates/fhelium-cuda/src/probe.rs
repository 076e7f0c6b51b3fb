//! Whether this machine has a usable driver, asked before anything that would panic without one.

use crate::error::{CudaError, Result};
use crate::fork::{self, is_forked};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
#[cfg(unix)]
use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// CUDA 12.0: machine code of any 12.x toolkit runs on its drivers (the vendor's minor-version
/// compatibility).
const OLDEST_DRIVER: i32 = 12000;

/// The driver's library.
const DRIVER: &str = if cfg!(windows) {
    "nvcuda.dll"
} else {
    "libcuda.so.1"
};

/// CUDA_ERROR_STUB_LIBRARY, which every function of a toolkit's stub says.
const STUB_LIBRARY: c_int = 34;
/// CUDA_ERROR_NOT_INITIALIZED, of cuInit itself: it was called before this process was forked.
const NOT_INITIALIZED: c_int = 3;
/// CUDA_ERROR_NO_DEVICE.
const NO_DEVICE: c_int = 100;

/// What the driver says of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driver {
    /// The newest CUDA that it supports, 1000 times the major plus 10 times the minor.
    pub version: i32,
    /// Devices there are; at least one.
    pub devices: usize,
}

/// Finds the driver and a device.
///
/// Asked once; a process that had no device does not get one later.
///
/// # Errors
/// [`CudaError::NoDriver`], [`CudaError::StubDriver`], [`CudaError::DriverTooOld`],
/// [`CudaError::NoDevice`], [`CudaError::Forked`].
pub fn probe() -> Result<Driver> {
    static FOUND: OnceLock<Result<Driver>> = OnceLock::new();
    if is_forked() {
        return Err(CudaError::Forked);
    }
    FOUND.get_or_init(ask).clone()
}

fn ask() -> Result<Driver> {
    let Libraries { named, chosen } = Libraries::find()?;
    type InitFn = unsafe extern "C" fn(c_uint) -> c_int;
    type NumberFn = unsafe extern "C" fn(*mut c_int) -> c_int;
    // SAFETY: the types of these functions have been the same since CUDA 2.0.
    let (init, version_of, count_of) = unsafe {
        (
            chosen.function::<InitFn>("cuInit")?,
            chosen.function::<NumberFn>("cuDriverGetVersion")?,
            chosen.function::<NumberFn>("cuDeviceGetCount")?,
        )
    };
    let mut version = 0;
    // SAFETY: the pointer is to a live integer; this call is allowed before cuInit.
    let status = unsafe { version_of(&mut version) };
    if status == 0 && version < OLDEST_DRIVER {
        return Err(CudaError::DriverTooOld {
            found: version,
            needed: OLDEST_DRIVER,
        });
    }
    fork::watch();
    // SAFETY: no flag is defined but zero.
    let status = unsafe { init(0) };
    if status == NOT_INITIALIZED {
        // By another library: a process of its own begins without that.
        return Err(CudaError::Forked);
    }
    if status == STUB_LIBRARY {
        // A toolkit's stub where there is no driver hides none.
        named?;
        return Err(CudaError::StubDriver {
            library: path_of(init as *const c_void).unwrap_or(chosen.name),
        });
    }
    if status != 0 {
        return Err(chosen.refused("cuInit", status));
    }
    let mut count = 0;
    // SAFETY: the pointer is to a live integer.
    let status = unsafe { count_of(&mut count) };
    if status != 0 {
        return Err(chosen.refused("cuDeviceGetCount", status));
    }
    if count < 1 {
        return Err(CudaError::NoDevice {
            reason: "it counts 0 devices".to_owned(),
        });
    }
    // Kept for the process: the driver does not survive being unloaded.
    std::mem::forget((named, chosen));
    Ok(Driver {
        version,
        devices: count as usize,
    })
}

/// A library that was loaded by a name.
struct Loaded {
    name: String,
    library: Library,
}

struct Libraries {
    /// The driver by its own name, where the loader finds it.
    named: Result<Loaded>,
    /// What cudarc will call.
    chosen: Loaded,
}

impl Libraries {
    /// Takes the library that cudarc will take: it asks for libcuda.so first, and so finds the stub
    /// in a toolkit's folder, which is to link with, before the driver.
    fn find() -> Result<Self> {
        // Before a stub, which has the same name inside: the loader then goes on to give others, such
        // as PyTorch, the driver by it.
        let named = Loaded::new(DRIVER);
        let mut candidates = ["cuda", "nvcuda"]
            .into_iter()
            .flat_map(cudarc::get_lib_name_candidates);
        match (candidates.find_map(|name| Loaded::new(&name).ok()), named) {
            (Some(chosen), named) => Ok(Libraries { named, chosen }),
            (None, Err(error)) => Err(error),
            (None, Ok(named)) => Err(CudaError::NoDriver {
                reason: format!("{} is found, and its usual names are not", named.name),
            }),
        }
    }
}

impl Loaded {
    fn new(name: &str) -> Result<Self> {
        // SAFETY: the driver's library has no precondition for being loaded.
        let library = unsafe { Library::new(name) }.map_err(|error| CudaError::NoDriver {
            reason: with_source(&error),
        })?;
        let name = name.to_owned();
        Ok(Loaded { name, library })
    }

    /// # Safety
    /// `F` is the function's type.
    unsafe fn function<F: Copy>(&self, name: &str) -> Result<F> {
        // SAFETY: the caller's promise.
        unsafe { self.library.get::<F>(name) }
            .map(|function| *function)
            .map_err(|error| {
                let reason = format!(
                    "{} is not a whole driver: {name}: {}",
                    self.name,
                    with_source(&error)
                );
                CudaError::NoDriver { reason }
            })
    }

    fn refused(&self, call: &str, status: c_int) -> CudaError {
        let mut name: *const c_char = std::ptr::null();
        type NameFn = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;
        // SAFETY: the function's type has been the same since CUDA 6.0; it is given a live pointer
        // and gives a string of its own.
        let name = unsafe {
            self.function::<NameFn>("cuGetErrorName")
                .ok()
                .filter(|name_of| name_of(status, &mut name) == 0 && !name.is_null())
                .map(|_| CStr::from_ptr(name).to_string_lossy().into_owned())
        };
        let name = name.unwrap_or_else(|| format!("error {status}"));
        let reason = format!("{call} says {name}");
        if status == NO_DEVICE {
            CudaError::NoDevice { reason }
        } else {
            CudaError::NoDriver { reason }
        }
    }
}

/// The file that a function was loaded from.
#[cfg(unix)]
fn path_of(function: *const c_void) -> Option<String> {
    let mut place = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the place is live, and zero in each of its parts is a value; the path is the loader's,
    // which keeps it while the library is loaded.
    unsafe {
        let known = libc::dladdr(function, place.as_mut_ptr()) != 0;
        let path = place.assume_init().dli_fname;
        (known && !path.is_null()).then(|| CStr::from_ptr(path).to_string_lossy().into_owned())
    }
}

#[cfg(not(unix))]
fn path_of(_: *const c_void) -> Option<String> {
    None
}

/// The loader's words stand behind the error.
fn with_source(error: &libloading::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
