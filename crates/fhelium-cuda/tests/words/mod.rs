//! Random words that are the same in every run, and what tests make of them.

// Each test program uses its part of this.
#![allow(dead_code)]

use num_complex::Complex64;

/// A stream of words (S. Vigna, "SplitMix64").
pub struct Words(pub u64);

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl Words {
    /// The next word.
    pub fn next(&mut self) -> u64 {
        let found = word(self.0, 0);
        self.0 = self.0.wrapping_add(STEP);
        found
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A number in [-1, 1].
    pub fn unit(&mut self) -> f64 {
        self.next() as f64 * 2f64.powi(-63) - 1.0
    }
}

/// The word at an index of the stream of a seed.
pub fn word(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add((index + 1).wrapping_mul(STEP));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Numbers in [-1, 1].
pub fn reals(count: usize, seed: u64) -> Vec<f64> {
    let mut words = Words(seed);
    (0..count).map(|_| words.unit()).collect()
}

/// Numbers with both parts in [-1, 1].
pub fn complex(count: usize, seed: u64) -> Vec<Complex64> {
    let mut words = Words(seed);
    (0..count)
        .map(|_| Complex64::new(words.unit(), words.unit()))
        .collect()
}
