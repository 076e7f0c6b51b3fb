//! Whether this machine has a usable driver, asked before anything that would panic without one.

use crate::error::{CudaError, Result};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::OnceLock;

/// CUDA 12.0: machine code of any 12.x toolkit runs on its drivers (the vendor's minor-version
/// compatibility).
const OLDEST_DRIVER: i32 = 12000;

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
/// [`CudaError::NoDriver`], [`CudaError::DriverTooOld`], [`CudaError::NoDevice`].
pub fn probe() -> Result<Driver> {
    static FOUND: OnceLock<Result<Driver>> = OnceLock::new();
    FOUND.get_or_init(ask).clone()
}

fn ask() -> Result<Driver> {
    // SAFETY: the driver's library has no precondition for being loaded.
    let library = unsafe { Library::new("libcuda.so.1") }.map_err(|error| CudaError::NoDriver {
        reason: with_source(&error),
    })?;
    type InitFn = unsafe extern "C" fn(c_uint) -> c_int;
    type NumberFn = unsafe extern "C" fn(*mut c_int) -> c_int;
    // SAFETY: the types of these functions have been the same since CUDA 2.0.
    let (init, version_of, count_of) = unsafe {
        (
            function::<InitFn>(&library, "cuInit")?,
            function::<NumberFn>(&library, "cuDriverGetVersion")?,
            function::<NumberFn>(&library, "cuDeviceGetCount")?,
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
    // SAFETY: no flag is defined but zero.
    let status = unsafe { init(0) };
    if status != 0 {
        return Err(refused(&library, "cuInit", status));
    }
    let mut count = 0;
    // SAFETY: the pointer is to a live integer.
    let status = unsafe { count_of(&mut count) };
    if status != 0 {
        return Err(refused(&library, "cuDeviceGetCount", status));
    }
    if count < 1 {
        return Err(CudaError::NoDevice {
            reason: "it counts 0 devices".to_owned(),
        });
    }
    // Kept for the process: the driver does not survive being unloaded.
    std::mem::forget(library);
    Ok(Driver {
        version,
        devices: count as usize,
    })
}

/// # Safety
/// `F` is the function's type.
unsafe fn function<F: Copy>(library: &Library, name: &str) -> Result<F> {
    // SAFETY: the caller's promise.
    unsafe { library.get::<F>(name) }
        .map(|function| *function)
        .map_err(|error| {
            let reason = format!(
                "libcuda.so.1 is not a whole driver: {name}: {}",
                with_source(&error)
            );
            CudaError::NoDriver { reason }
        })
}

/// The loader's words stand behind the error.
fn with_source(error: &libloading::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn refused(library: &Library, call: &str, status: c_int) -> CudaError {
    let mut name: *const c_char = std::ptr::null();
    // SAFETY: the function's type has been the same since CUDA 6.0; it is given a live pointer and
    // gives a string of its own.
    let name = unsafe {
        library
            .get::<unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int>(b"cuGetErrorName\0")
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
