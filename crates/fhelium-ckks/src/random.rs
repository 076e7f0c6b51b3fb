//! Randomness: ChaCha20 keyed by the operating system.

use crate::error::{CkksError, Result};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use std::fmt;
use std::sync::Mutex;
use zeroize::{Zeroize, Zeroizing};

/// A source of independent random streams; threads share one.
///
/// The root key is replaced by its own output at every draw (D. J. Bernstein, "Fast-key-erasure
/// random-number generators", 2017), so that earlier draws cannot be recomputed from it. A forked
/// child process starts from a new key of the operating system: two processes never share a mask.
pub struct Randomness(Mutex<Root>);

struct Root {
    key: [u8; 32],
    process: u32,
    seeded: bool,
}

impl Drop for Root {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl Randomness {
    /// Randomness from the operating system.
    ///
    /// # Errors
    /// [`CkksError::Randomness`] when it has none.
    pub fn from_os() -> Result<Self> {
        Ok(Randomness(Mutex::new(Root {
            key: os_key()?,
            process: std::process::id(),
            seeded: false,
        })))
    }

    /// Randomness that repeats: **for tests only**. Whoever knows the seed knows every key and mask
    /// drawn from it, and two sources with one seed use the same masks.
    pub fn from_seed_for_tests(seed: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Randomness(Mutex::new(Root {
            key,
            process: std::process::id(),
            seeded: true,
        }))
    }

    /// Whether this source repeats; such keys and ciphertexts are not secret.
    pub fn is_seeded(&self) -> bool {
        self.lock().seeded
    }

    /// The key of one draw, from which any number of streams come.
    pub(crate) fn draw(&self) -> Result<Draw> {
        let mut root = self.lock();
        if root.process != std::process::id() && !root.seeded {
            root.key = os_key()?;
            root.process = std::process::id();
        }
        let mut stream = Stream::new(&root.key, 0);
        let mut key = [0; 32];
        stream.rng.fill_bytes(&mut key);
        stream.rng.fill_bytes(&mut root.key);
        Ok(Draw { key })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Root> {
        // No code panics while it holds the lock halfway through a change.
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl fmt::Debug for Randomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_seeded() {
            "Randomness(seeded)"
        } else {
            "Randomness"
        })
    }
}

fn os_key() -> Result<[u8; 32]> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| CkksError::Randomness {
        reason: error.to_string(),
    })?;
    Ok(key)
}

/// The key of one draw.
pub(crate) struct Draw {
    key: [u8; 32],
}

impl Draw {
    /// The key itself, for a device that makes the streams.
    pub fn key(&self) -> &[u8; 32] {
        &self.key
    }

    /// An independent stream for each number.
    pub fn stream(&self, number: u64) -> Stream {
        Stream::new(&self.key, number)
    }
}

impl Drop for Draw {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

/// A ChaCha20 key stream.
pub(crate) struct Stream {
    rng: ChaCha20Rng,
}

impl Stream {
    /// The stream with that number under a key; also for public seeds.
    pub fn new(key: &[u8; 32], number: u64) -> Self {
        let mut rng = ChaCha20Rng::from_seed(*key);
        rng.set_stream(number);
        Stream { rng }
    }

    /// `N` random bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.rng.fill_bytes(&mut bytes);
        bytes
    }

    /// Calls `take` with blocks of random words until it wants no more.
    pub fn words(&mut self, mut take: impl FnMut(&[u64; BLOCK_WORDS]) -> bool) {
        let mut bytes = Zeroizing::new([0u8; 8 * BLOCK_WORDS]);
        let mut words = Zeroizing::new([0u64; BLOCK_WORDS]);
        loop {
            self.rng.fill_bytes(&mut bytes[..]);
            for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            if !take(&words) {
                return;
            }
        }
    }
}

/// Words in one block of [`Stream::words`].
pub(crate) const BLOCK_WORDS: usize = 128;

impl Drop for Stream {
    fn drop(&mut self) {
        // The generator's type has no way to erase its key but to be replaced.
        self.rng = ChaCha20Rng::from_seed([0; 32]);
        std::hint::black_box(&self.rng);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equal streams in one draw, or equal draws, would be equal masks.
    #[test]
    fn draws_and_streams_differ_and_seeds_repeat() {
        let first = Randomness::from_seed_for_tests(7);
        let again = Randomness::from_seed_for_tests(7);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..4 {
            let (a, b) = (first.draw().unwrap(), again.draw().unwrap());
            for number in 0..4 {
                let bytes: [u8; 16] = a.stream(number).bytes();
                assert_eq!(bytes, b.stream(number).bytes());
                assert!(seen.insert(bytes));
            }
        }
        let other: [u8; 16] = Randomness::from_os()
            .unwrap()
            .draw()
            .unwrap()
            .stream(0)
            .bytes();
        assert!(seen.insert(other));
    }

    /// A forked process holds its parent's key; with it, both would encrypt under the same masks.
    #[test]
    fn another_process_takes_a_new_key() {
        let first_bytes = |process: u32| {
            let randomness = Randomness::from_os().unwrap();
            let mut root = randomness.lock();
            (root.key, root.process) = ([9; 32], process);
            drop(root);
            let bytes: [u8; 16] = randomness.draw().unwrap().stream(0).bytes();
            bytes
        };
        let own = std::process::id();
        assert_eq!(first_bytes(own), first_bytes(own));
        assert_ne!(first_bytes(own + 1), first_bytes(own));
        assert_ne!(first_bytes(own + 1), first_bytes(own + 1));
    }

    #[test]
    fn debug_shows_no_key() {
        assert_eq!(
            format!("{:?}", Randomness::from_seed_for_tests(1)),
            "Randomness(seeded)"
        );
    }
}
