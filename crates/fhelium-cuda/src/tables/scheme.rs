//! Constants of encoding, decoding and key generation.

use super::product;
use crate::error::Result;
use crate::queue::{Buffer, Queue};
use fhelium_ckks::Parameters;
use fhelium_ckks::arith::Modulus;
use std::sync::Arc;

pub(crate) struct Scheme {
    words: Buffer,
}

impl Scheme {
    /// Computes and uploads them; `moduli` are all primes.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(parameters: &Parameters, moduli: &[Modulus], queue: &Arc<Queue>) -> Result<Self> {
        let (level_moduli, special) = moduli.split_at(parameters.moduli().len());
        let words: Vec<u64> = level_moduli.iter().map(|&q| product(special, q)).collect();
        Ok(Scheme {
            words: queue.upload(&words)?,
        })
    }

    /// Bytes on the device.
    pub fn nbytes(&self) -> usize {
        self.words.words() * size_of::<u64>()
    }

    /// The product of the special primes modulo each modulus.
    pub fn special_products(&self) -> u64 {
        self.words.address()
    }
}
