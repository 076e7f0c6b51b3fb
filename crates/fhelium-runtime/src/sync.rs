//! The synchronization that the cache is built on: the standard library's, or shuttle's where
//! the tests search through thread schedules.

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::{
    sync::atomic::{AtomicU64, Ordering},
    sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard},
    thread::ThreadId,
};
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::{
    sync::atomic::{AtomicU64, Ordering},
    sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard},
    thread::ThreadId,
};

/// The identity of the calling thread.
pub(crate) fn current_thread() -> ThreadId {
    #[cfg(feature = "shuttle")]
    return shuttle::thread::current().id();
    #[cfg(not(feature = "shuttle"))]
    return std::thread::current().id();
}
