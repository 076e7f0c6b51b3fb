//! Memory for residues, kept between operations.
//!
//! Results and intermediate limbs take megabytes; memory fresh from the system costs an operation
//! more time than much of its arithmetic, so that what one frees the next one gets.

use crate::error::Result;
use crate::values::zeroed;
use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// Memory that is not in use, oldest first, up to a limit.
#[derive(Clone)]
pub(crate) struct BufferPool(Arc<Mutex<Kept>>);

struct Kept {
    buffers: VecDeque<Vec<u64>>,
    words: usize,
    limit: usize,
    /// Words that are in use, and the most that were since the peak was last reset.
    used: usize,
    peak: usize,
}

/// Bytes of the residues that a context's operations work with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Held by live values and running operations.
    pub used: usize,
    /// Freed and kept for the next operations.
    pub kept: usize,
    /// The most that was used at once, since [`Context::reset_peak`](crate::Context::reset_peak).
    pub peak: usize,
}

/// Some words that go back to their pool when dropped.
#[derive(Default)]
pub(crate) struct Buffer {
    words: Vec<u64>,
    len: usize,
    pool: Option<BufferPool>,
}

impl BufferPool {
    /// A pool that keeps at most `limit` words.
    pub fn new(limit: usize) -> Self {
        BufferPool(Arc::new(Mutex::new(Kept {
            buffers: VecDeque::new(),
            words: 0,
            limit,
            used: 0,
            peak: 0,
        })))
    }

    /// A buffer of `len` words with contents left from an earlier use: write before reading.
    pub fn take(&self, len: usize) -> Buffer {
        let words = self.find(len).unwrap_or_else(|| vec![0; len]);
        Buffer {
            words,
            len,
            pool: Some(self.clone()),
        }
    }

    /// As [`take`](Self::take), refused where memory lacks instead of ending the process.
    pub fn try_take(&self, operation: &'static str, len: usize) -> Result<Buffer> {
        let words = match self.find(len) {
            Some(words) => words,
            None => zeroed(operation, len).inspect_err(|_| self.lock().used -= len)?,
        };
        Ok(Buffer {
            words,
            len,
            pool: Some(self.clone()),
        })
    }

    /// Counts `len` words as used, and takes the smallest kept buffer that holds them and is at
    /// most twice as large.
    fn find(&self, len: usize) -> Option<Vec<u64>> {
        let mut kept = self.lock();
        kept.used += len;
        kept.peak = kept.peak.max(kept.used);
        let fitting = kept.buffers.iter().enumerate();
        let fitting = fitting.filter(|(_, words)| (len..=2 * len).contains(&words.len()));
        let (index, _) = fitting.min_by_key(|(_, words)| words.len())?;
        let words = kept.buffers.remove(index)?;
        kept.words -= words.len();
        Some(words)
    }

    /// What is in use and kept.
    pub fn memory(&self) -> MemoryUse {
        let kept = self.lock();
        let bytes = |words: usize| words * size_of::<u64>();
        MemoryUse {
            used: bytes(kept.used),
            kept: bytes(kept.words),
            peak: bytes(kept.peak),
        }
    }

    /// Has the peak count from now on.
    pub fn reset_peak(&self) {
        let mut kept = self.lock();
        kept.peak = kept.used;
    }

    /// Takes back a buffer of which `len` words were used.
    fn give_back(&self, words: Vec<u64>, len: usize) {
        let mut kept = self.lock();
        kept.used -= len;
        if words.is_empty() || words.len() > kept.limit {
            return;
        }
        kept.words += words.len();
        kept.buffers.push_back(words);
        while kept.words > kept.limit {
            let Some(oldest) = kept.buffers.pop_front() else {
                return;
            };
            kept.words -= oldest.len();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        // No code panics while it holds the lock halfway through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<Vec<u64>> for Buffer {
    fn from(words: Vec<u64>) -> Self {
        Buffer {
            len: words.len(),
            words,
            pool: None,
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.give_back(std::mem::take(&mut self.words), self.len);
        }
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        let Some(pool) = &self.pool else {
            return self[..].to_vec().into();
        };
        let mut copy = pool.take(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} residues", self.len)
    }
}

impl Deref for Buffer {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.words[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.words[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_counted_with_its_peak() {
        let pool = BufferPool::new(100);
        let first = pool.take(10);
        let copy = first.clone();
        drop(first);
        let memory = pool.memory();
        assert_eq!((memory.used, memory.kept, memory.peak), (80, 80, 160));
        // A kept buffer of another size counts what is used of it.
        let second = pool.take(6);
        assert_eq!(pool.memory().used, 128);
        pool.reset_peak();
        drop((copy, second));
        let memory = pool.memory();
        assert_eq!((memory.used, memory.peak), (0, 128));
        // What memory refuses is not used.
        assert!(pool.try_take("test", usize::MAX / 16).is_err());
        assert_eq!(pool.memory().used, 0);
    }

    #[test]
    fn what_is_dropped_is_taken_again_up_to_the_limit() {
        let pool = BufferPool::new(100);
        let kept = || pool.lock().words;
        let first = pool.take(40);
        let place = first.as_ptr();
        drop(first);
        assert_eq!(kept(), 40);
        // Too large a buffer is not wasted on a small need.
        assert_eq!(pool.take(10).len(), 10);
        assert_eq!(kept(), 50);
        let again = pool.take(30);
        assert_eq!((again.as_ptr(), again.len(), kept()), (place, 30, 10));
        drop((again.clone(), again));
        assert_eq!(kept(), 80);
        // The oldest goes first; what is larger than the limit is not kept.
        drop(pool.take(60));
        assert!(kept() <= 100 && pool.lock().buffers.back().is_some_and(|b| b.len() == 60));
        drop(pool.take(101));
        assert!(kept() <= 100);
    }
}
