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
            None => zeroed(operation, len)?,
        };
        Ok(Buffer {
            words,
            len,
            pool: Some(self.clone()),
        })
    }

    /// The smallest kept buffer that holds `len` words and is at most twice as large.
    fn find(&self, len: usize) -> Option<Vec<u64>> {
        let mut kept = self.lock();
        let fitting = kept.buffers.iter().enumerate();
        let fitting = fitting.filter(|(_, words)| (len..=2 * len).contains(&words.len()));
        let (index, _) = fitting.min_by_key(|(_, words)| words.len())?;
        let words = kept.buffers.remove(index)?;
        kept.words -= words.len();
        Some(words)
    }

    fn give_back(&self, words: Vec<u64>) {
        let mut kept = self.lock();
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
            pool.give_back(std::mem::take(&mut self.words));
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
