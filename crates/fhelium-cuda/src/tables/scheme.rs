//! Constants of encoding, decoding and key generation.

use super::product;
use crate::error::Result;
use crate::kernels::Embedding;
use crate::queue::{Buffer, Queue};
use fhelium_ckks::arith::{Modulus, primes::primitive_root};
use fhelium_ckks::{CkksError, Complex64, Parameters, slot_order, twist};
use std::f64::consts::TAU;
use std::sync::Arc;

pub(crate) struct Scheme {
    words: Buffer,
    slots: usize,
    /// Where each table starts, in words.
    roots: usize,
    order: usize,
    special_products: usize,
    lift_inverses: usize,
    imaginary_roots: usize,
    /// By level.
    level_products: Vec<usize>,
}

impl Scheme {
    /// Computes and uploads them; `moduli` are all primes.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(parameters: &Parameters, moduli: &[Modulus], queue: &Arc<Queue>) -> Result<Self> {
        let (level_moduli, special) = moduli.split_at(parameters.moduli().len());
        let slots = parameters.slots();
        // The twist first: complex numbers are read 16 bytes at a time.
        let mut words: Vec<u64> = twist(parameters.n())
            .iter()
            .flat_map(complex_words)
            .collect();
        let roots = words.len();
        let root = |k| Complex64::cis(TAU * k as f64 / slots as f64);
        words.extend((0..slots).flat_map(|k| complex_words(&root(k))));
        let order = words.len();
        words.extend(slots_by_index(parameters.n()));
        let special_products = words.len();
        words.extend(level_moduli.iter().map(|&q| product(special, q)));
        let lift_inverses = words.len();
        for (index, &q) in level_moduli.iter().enumerate() {
            let inverse = q.inverse(product(&level_moduli[..index], q));
            words.push(inverse.map_err(CkksError::from)?);
        }
        let imaginary_roots = words.len();
        for &q in level_moduli {
            let root = primitive_root(q, 2 * parameters.n() as u64).map_err(CkksError::from)?;
            words.push(q.pow(root, slots as u64));
        }
        let mut level_products = Vec::with_capacity(level_moduli.len());
        let mut whole = Vec::new();
        for modulus in level_moduli {
            multiply(&mut whole, modulus.value());
            level_products.push(words.len());
            words.extend(&whole);
        }
        Ok(Scheme {
            words: queue.upload(&words)?,
            slots,
            roots,
            order,
            special_products,
            lift_inverses,
            imaginary_roots,
            level_products,
        })
    }

    /// Bytes on the device.
    pub fn nbytes(&self) -> usize {
        self.words.words() * size_of::<u64>()
    }

    fn at(&self, word: usize) -> u64 {
        self.words.address() + (word * size_of::<u64>()) as u64
    }

    /// What the complex transforms need.
    pub fn embedding(&self) -> Embedding {
        Embedding {
            twist: self.at(0),
            roots: self.at(self.roots),
            slots: self.at(self.order),
            log_m: self.slots.trailing_zeros(),
            unused: 0,
        }
    }

    /// The product of the special primes modulo each modulus.
    pub fn special_products(&self) -> u64 {
        self.at(self.special_products)
    }

    /// 1 / (q_0 ... q_(i-1)) modulo each modulus q_i.
    pub fn lift_inverses(&self) -> u64 {
        self.at(self.lift_inverses)
    }

    /// The square root of -1 modulo each modulus that stands for i in the first half of a limb.
    pub fn imaginary_roots(&self) -> u64 {
        self.at(self.imaginary_roots)
    }

    /// The product of a level's primes, in as many words, from the least on.
    pub fn level_product(&self, level: usize) -> u64 {
        self.at(self.level_products[level])
    }
}

fn complex_words(value: &Complex64) -> [u64; 2] {
    [value.re.to_bits(), value.im.to_bits()]
}

/// The slot of each index of the transform, two to a word.
fn slots_by_index(n: usize) -> Vec<u64> {
    let mut slots = vec![0u64; n / 4];
    for (slot, index) in slot_order(n).into_iter().enumerate() {
        slots[index as usize / 2] |= (slot as u64) << (32 * (index % 2));
    }
    slots
}

/// Multiplies a number, in words from the least on, by a factor: it becomes one word longer, from
/// no words, which stand for one.
fn multiply(words: &mut Vec<u64>, factor: u64) {
    if words.is_empty() {
        words.push(factor);
        return;
    }
    let mut carry = 0;
    for word in words.iter_mut() {
        let wide = u128::from(*word) * u128::from(factor) + u128::from(carry);
        (*word, carry) = (wide as u64, (wide >> 64) as u64);
    }
    words.push(carry);
}
