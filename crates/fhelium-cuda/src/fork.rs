//! Whether this process was forked from one that used the driver, which it then cannot.
//!
//! The driver's threads and locks are the parent's: calls in the child fail, or never come back. So
//! it is never called there, and what would be given back to it is left.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether it was.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Has processes that are forked from now on know it. The driver is used from here on.
pub(crate) fn watch() {
    extern "C" fn in_the_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // A process id would have to be asked of the system at each launch.
        #[cfg(unix)]
        // SAFETY: the handler only stores a flag, which a forked child may. It fails for want of
        // memory, and then the driver's own errors are what a child sees.
        unsafe {
            libc::pthread_atfork(None, None, Some(in_the_child))
        };
        #[cfg(not(unix))]
        let _ = in_the_child;
    });
}
