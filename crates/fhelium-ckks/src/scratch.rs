//! Buffers for intermediate limbs, kept between operations.
//!
//! A key switch works on several megabytes; memory fresh from the system would cost it more time
//! than its arithmetic.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// More buffers than the operations of a few threads use at once are given back to the system.
const KEPT: usize = 8;

/// Buffers that are not in use.
#[derive(Default)]
pub(crate) struct ScratchPool(Mutex<Vec<Vec<u64>>>);

/// A buffer whose contents are left from an earlier use: write before reading. It never holds
/// secrets.
pub(crate) struct Scratch<'a> {
    pool: &'a ScratchPool,
    buffer: Vec<u64>,
    len: usize,
}

impl ScratchPool {
    /// A buffer of `len` words.
    pub fn take(&self, len: usize) -> Scratch<'_> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The smallest that is large enough, else the largest, which then grows.
        let fitting = |(_, buffer): &(usize, &Vec<u64>)| (buffer.len() < len, buffer.len());
        let best = kept
            .iter()
            .enumerate()
            .min_by_key(fitting)
            .map(|(index, _)| index);
        let mut buffer = best
            .map(|index| kept.swap_remove(index))
            .unwrap_or_default();
        drop(kept);
        if buffer.len() < len {
            // A new allocation comes zeroed from the system; growing the old one would copy it.
            buffer = vec![0; len];
        }
        Scratch {
            pool: self,
            buffer,
            len,
        }
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        let mut kept = self.pool.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(std::mem::take(&mut self.buffer));
        }
    }
}

impl Deref for Scratch<'_> {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.buffer[..self.len]
    }
}

impl DerefMut for Scratch<'_> {
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.buffer[..self.len]
    }
}
