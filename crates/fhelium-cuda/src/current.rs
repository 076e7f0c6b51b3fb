//! The calling thread's driver context: taken for a call, and given back.
//!
//! Other libraries find theirs as they left it. Without this, an engine on cuda:1 would turn their
//! default device into that one.

use crate::error::{CudaError, Result, driver};
use crate::fork::is_forked;
use cudarc::driver::sys::CUcontext;
use cudarc::driver::{CudaContext, result};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

/// While it lives, this thread's context is the asked one; when it is dropped, it is again what it was.
#[must_use]
pub(crate) struct Current {
    before: Option<CUcontext>,
    changed: bool,
}

impl Current {
    /// Makes a context current.
    ///
    /// # Errors
    /// [`CudaError::Forked`], [`CudaError::Driver`].
    pub fn of(context: &CudaContext) -> Result<Self> {
        let mut kept = Self::kept()?;
        kept.changed = kept.before != Some(context.cu_ctx());
        context
            .bind_to_thread()
            .map_err(driver("using the device's context"))?;
        Ok(kept)
    }

    /// Has whatever becomes current meanwhile give way again.
    ///
    /// # Errors
    /// As [`Current::of`].
    pub fn kept() -> Result<Self> {
        if is_forked() {
            return Err(CudaError::Forked);
        }
        let before = result::ctx::get_current().map_err(driver("asking for the context"))?;
        Ok(Current {
            before,
            changed: true,
        })
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        if self.changed && !is_forked() {
            let before = self.before.unwrap_or(std::ptr::null_mut());
            // One that is gone by now cannot be had back.
            // SAFETY: null, or a context that was current; the driver refuses one that is gone.
            let _ = unsafe { result::ctx::set_current(before) };
        }
    }
}

/// Something of the driver's, which is let go in its context; in a forked process it is left.
pub(crate) struct Held<T> {
    value: ManuallyDrop<T>,
    context: ManuallyDrop<Arc<CudaContext>>,
}

impl<T> Held<T> {
    pub fn new(value: T, context: &Arc<CudaContext>) -> Self {
        Held {
            value: ManuallyDrop::new(value),
            context: ManuallyDrop::new(context.clone()),
        }
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        // Without its context it cannot be let go: the driver has done that, or never will.
        let Ok(_current) = Current::of(&self.context) else {
            return;
        };
        // SAFETY: each is dropped here alone, and not used again.
        unsafe {
            ManuallyDrop::drop(&mut self.value);
            ManuallyDrop::drop(&mut self.context);
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Held<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
