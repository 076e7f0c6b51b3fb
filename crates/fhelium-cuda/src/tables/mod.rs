//! The constants of a parameter set on a device.

mod arithmetic;
mod scheme;

use crate::error::Result;
use crate::kernels::{Conversion, Core, Factor, LAST_STEP, LOG_HELD, quotient_place, split};
use crate::queue::{Buffer, Queue};
use arithmetic::{
    conversion_row, factor_word, factor_words, fixed_factor, matrix_words, scale_words,
};
use fhelium_ckks::arith::{Modulus, order::bit_reverse, primes::primitive_root};
use fhelium_ckks::{CkksError, Parameters};
use scheme::Scheme;
use std::sync::Arc;

/// Constants of all primes and levels, uploaded once.
pub(crate) struct Tables {
    /// The moduli, then the special ones.
    pub moduli: Vec<Modulus>,
    /// How many of them are moduli.
    pub level_primes: usize,
    /// Words in a row of factors, or pieces, for the mod-up and for the mod-down.
    pub up_row: u32,
    pub down_row: u32,
    primes: Buffer,
    constants: Buffer,
    /// What the primes' rows point to.
    twiddles: Buffer,
    places: Places,
    /// Those of encoding, decoding and key generation.
    pub scheme: Scheme,
}

/// Where each table starts in the constants, in words.
#[derive(Default)]
struct Places {
    plain_scales: usize,
    down_scales: usize,
    down_factors: usize,
    down_matrices: Option<usize>,
    closing: usize,
    special_products: usize,
    /// By level.
    up_scales: Vec<usize>,
    up_factors: Vec<usize>,
    closing_rescaled: Vec<usize>,
    rescale: Vec<usize>,
    /// 1/P modulo the level's prime.
    special_inverse: Vec<Factor>,
}

impl Tables {
    /// Computes and uploads them.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(
        parameters: &Parameters,
        core: Core,
        conversions: (Conversion, Conversion),
        queue: &Arc<Queue>,
    ) -> Result<Self> {
        let all = parameters
            .moduli()
            .iter()
            .chain(parameters.special_moduli());
        let moduli: Vec<Modulus> = all
            .map(|&p| Modulus::new(p))
            .collect::<std::result::Result<_, _>>()
            .map_err(CkksError::from)?;
        let (primes, twiddles, last_twiddles) = primes(parameters.n(), &moduli, core, queue)?;
        let level_primes = parameters.moduli().len();
        let digit_size = parameters.digit_size();
        let specials = parameters.special_moduli().len();
        let mut builder = Builder {
            parameters,
            core,
            conversions,
            moduli: &moduli,
            last_twiddles,
            words: Vec::new(),
        };
        let places = builder.build()?;
        let constants = queue.upload(&builder.words)?;
        Ok(Tables {
            level_primes,
            up_row: conversions.0.row(core, digit_size) as u32,
            down_row: conversions.1.row(core, specials) as u32,
            scheme: Scheme::new(parameters, &moduli, queue)?,
            moduli,
            primes,
            constants,
            twiddles,
            places,
        })
    }

    /// Bytes on the device.
    pub fn nbytes(&self) -> usize {
        let words = self.primes.words() + self.constants.words() + self.twiddles.words();
        words * size_of::<u64>() + self.scheme.nbytes()
    }

    /// Address of the primes' rows.
    pub fn primes(&self) -> u64 {
        self.primes.address()
    }

    fn at(&self, word: usize) -> u64 {
        self.constants.address() + (word * size_of::<u64>()) as u64
    }

    /// Scales of an inverse transform by itself, by prime.
    pub fn plain_scales(&self) -> u64 {
        self.at(self.places.plain_scales)
    }

    /// Scales of the inverse transform before a mod-up at a level, by prime.
    pub fn up_scales(&self, level: usize) -> u64 {
        self.at(self.places.up_scales[level])
    }

    /// Factors of the mod-up at a level: (digit, limb, row).
    pub fn up_factors(&self, level: usize) -> u64 {
        self.at(self.places.up_factors[level])
    }

    /// Scales of the inverse transform before a mod-down, by prime.
    pub fn down_scales(&self) -> u64 {
        self.at(self.places.down_scales)
    }

    /// Factors of a mod-down to all moduli: (modulus, row), or matrices.
    pub fn down_factors(&self) -> u64 {
        self.at(self
            .places
            .down_matrices
            .unwrap_or(self.places.down_factors))
    }

    /// Plain factors of a mod-down: (modulus, sources + 2).
    pub fn rest_factors(&self) -> u64 {
        self.at(self.places.down_factors)
    }

    /// The last factors of a mod-down at a level, with its rescale or without, by limb.
    pub fn closing(&self, level: usize, rescaled: bool) -> u64 {
        self.at(if rescaled {
            self.places.closing_rescaled[level]
        } else {
            self.places.closing
        })
    }

    /// The last factors of a rescale, by limb.
    pub fn rescale(&self, level: usize) -> u64 {
        self.at(self.places.rescale[level])
    }

    /// 1/P modulo the level's prime.
    pub fn special_inverse(&self, level: usize) -> Factor {
        self.places.special_inverse[level]
    }

    /// P modulo each prime of a level.
    pub fn special_products(&self) -> u64 {
        self.at(self.places.special_products)
    }
}

/// The primes' rows, the twiddles they point to, and each prime's last inverse twiddle.
fn primes(
    n: usize,
    moduli: &[Modulus],
    core: Core,
    queue: &Arc<Queue>,
) -> Result<(Buffer, Buffer, Vec<u64>)> {
    let order = twiddle_order(n.trailing_zeros(), core);
    let words_each = match core {
        Core::Fp64 => order.len(),
        // Each table is followed by its Shoup words.
        Core::Integer => 2 * order.len(),
    };
    let mut words = Vec::with_capacity(2 * moduli.len() * words_each);
    let mut last_twiddles = Vec::with_capacity(moduli.len());
    for &modulus in moduli {
        let psi = primitive_root(modulus, 2 * n as u64).map_err(CkksError::from)?;
        let inverse = modulus.inverse(psi).map_err(CkksError::from)?;
        for base in [psi, inverse] {
            let powers = bit_reversed_powers(modulus, base, n);
            let twiddles = order.iter().map(|&index| powers[index as usize]);
            words.extend(twiddles.clone().map(|w| factor_word(core, modulus, w)));
            if core == Core::Integer {
                words.extend(twiddles.map(|w| modulus.shoup(w)));
            }
            if base == inverse {
                last_twiddles.push(powers[1]);
            }
        }
    }
    let twiddles = queue.upload(&words)?;
    let row = |(index, modulus): (usize, &Modulus)| {
        let p = modulus.value();
        let ratio = u128::MAX / u128::from(p);
        let table = |which: usize| {
            twiddles.address() + ((2 * index + which) * words_each * size_of::<u64>()) as u64
        };
        // `Prime` in core.cuh.
        [
            (p as f64).to_bits(),
            (1.0 / p as f64).to_bits(),
            p,
            ratio as u64,
            (ratio >> 64) as u64,
            minus_inverse(p),
            table(0),
            table(1),
        ]
    };
    let rows: Vec<u64> = moduli.iter().enumerate().flat_map(row).collect();
    let rows = queue.upload(&rows)?;
    Ok((rows, twiddles, last_twiddles))
}

/// Which power of the bit-reversed order stands at each place of a table of twiddles, as ntt.cuh
/// says: the first layers' in natural order, then by row and thread what pass B's last step needs.
fn twiddle_order(log_n: u32, core: Core) -> Vec<u32> {
    let (la, lb) = split(log_n);
    let before = lb - LAST_STEP;
    let threads = 1u32 << (lb - LOG_HELD);
    let natural = 0..1 << (la + before);
    // Words of a group of residues: w(2 i); or nothing, w(i), w(2 i) and w(2 i + 1).
    let entries: &[Option<(u32, u32)>] = match core {
        Core::Fp64 => &[Some((1, 0))],
        Core::Integer => &[None, Some((0, 0)), Some((1, 0)), Some((1, 1))],
    };
    let groups = 1 << (LOG_HELD - LAST_STEP);
    let words: Vec<_> = (0..groups)
        .flat_map(|group| entries.iter().map(move |&entry| (group, entry)))
        .collect();
    let held = (0..1u32 << la).flat_map(|row| {
        let root = (1 << la) + row;
        let index = move |thread: u32, (group, entry): (u32, Option<(u32, u32)>)| {
            entry.map_or(0, |(layer, butterfly)| {
                let high = group * threads + thread;
                (root << (before + layer)) + ((high << layer) | butterfly)
            })
        };
        // Two words of each thread side by side.
        words.chunks(2).flat_map(move |pair| {
            (0..threads).flat_map(move |thread| pair.iter().map(move |&word| index(thread, word)))
        })
    });
    natural.chain(held).collect()
}

/// `base^bitrev(i)` for i below n.
fn bit_reversed_powers(modulus: Modulus, base: u64, n: usize) -> Vec<u64> {
    let shoup = modulus.shoup(base);
    let mut powers = vec![0; n];
    let mut power = 1;
    for exponent in 0..n {
        powers[bit_reverse(exponent, n.trailing_zeros())] = power;
        power = modulus.mul_shoup(power, base, shoup);
    }
    powers
}

/// -1/p modulo 2^64 of an odd p, by Newton's iteration: each step doubles the bits.
fn minus_inverse(p: u64) -> u64 {
    let mut inverse = p;
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(p.wrapping_mul(inverse)));
    }
    inverse.wrapping_neg()
}

struct Builder<'a> {
    parameters: &'a Parameters,
    core: Core,
    conversions: (Conversion, Conversion),
    moduli: &'a [Modulus],
    last_twiddles: Vec<u64>,
    words: Vec<u64>,
}

impl Builder<'_> {
    fn build(&mut self) -> Result<Places> {
        let (core, parameters) = (self.core, self.parameters);
        let moduli = self.moduli;
        let (level_moduli, special) = moduli.split_at(parameters.moduli().len());
        let mut places = Places {
            plain_scales: self.scales(|_| 1),
            ..Places::default()
        };

        let special_inverses = cofactor_inverses(special)?;
        places.down_scales = self.scales(|index| {
            index
                .checked_sub(level_moduli.len())
                .map_or(1, |index| special_inverses[index])
        });
        places.down_factors = self.words.len();
        let place = quotient_place(core, special.len(), special.len());
        let down_row = Conversion::Rows.row(core, special.len());
        for &target in level_moduli {
            let row = conversion_row(core, special, target, place, down_row);
            self.words.extend(row);
        }
        if let Some(pieces) = self.conversions.1.pieces() {
            let start = self.aligned();
            self.words
                .extend(matrix_words(special, level_moduli, pieces));
            places.down_matrices = Some(start);
        }
        let special_product = |q: Modulus| product(special, q);
        let inverse = |q: Modulus, value: u64| q.inverse(value).map_err(CkksError::from);

        places.closing = self.words.len();
        for &q in level_moduli {
            let moved = inverse(q, special_product(q))?;
            self.words.extend(factor_words(core, q, moved));
        }
        places.special_products = self.words.len();
        for &q in level_moduli {
            let product = special_product(q);
            self.words.extend(factor_words(core, q, product));
        }
        let up_row = Conversion::Rows.row(core, parameters.digit_size());
        for (level, &dropped) in level_moduli.iter().enumerate() {
            let special_inverse = inverse(dropped, special_product(dropped))?;
            places
                .special_inverse
                .push(fixed_factor(core, dropped, special_inverse));
            places.closing_rescaled.push(self.words.len());
            for &q in &level_moduli[..level] {
                let rescaled = inverse(q, q.reduce(dropped.value()))?;
                let moved = q.mul(rescaled, inverse(q, special_product(q))?);
                self.words.extend(factor_words(core, q, moved));
            }
            places.rescale.push(self.words.len());
            for &q in &level_moduli[..level] {
                let factor = inverse(q, q.reduce(dropped.value()))?;
                self.words.extend(factor_words(core, q, factor));
            }
            let mut cofactors = vec![1; moduli.len()];
            for digit in 0..parameters.digits(level) {
                let own = parameters.digit_range(level, digit);
                cofactors[own.clone()].copy_from_slice(&cofactor_inverses(&moduli[own])?);
            }
            let scales = self.scales(|index| cofactors[index]);
            places.up_scales.push(scales);
            let start = self.aligned();
            places.up_factors.push(start);
            let targets = [&level_moduli[..=level], special].concat();
            for digit in 0..parameters.digits(level) {
                let own = &moduli[parameters.digit_range(level, digit)];
                if let Some(pieces) = self.conversions.0.pieces() {
                    self.words.extend(matrix_words(own, &targets, pieces));
                    continue;
                }
                let place = quotient_place(core, parameters.digit_size(), own.len());
                for &target in &targets {
                    let row = conversion_row(core, own, target, place, up_row);
                    self.words.extend(row);
                }
            }
        }
        Ok(places)
    }

    /// Where the next table starts that is read 16 bytes at a time.
    fn aligned(&mut self) -> usize {
        self.words.resize(self.words.len().next_multiple_of(2), 0);
        self.words.len()
    }

    /// Appends a table of scales by prime: 1/N times the given factor.
    fn scales(&mut self, factor: impl Fn(usize) -> u64) -> usize {
        let start = self.aligned();
        let n = self.parameters.n() as u64;
        for (index, &modulus) in self.moduli.iter().enumerate() {
            // N is a power of two and p is odd.
            let n_inverse = modulus.inverse(modulus.reduce(n)).unwrap_or_default();
            let sum = modulus.mul(n_inverse, factor(index));
            let difference = modulus.mul(sum, self.last_twiddles[index]);
            self.words
                .extend(scale_words(self.core, modulus, sum, difference));
        }
        start
    }
}

/// (Q/q_i)^-1 modulo q_i for each prime of a basis with product Q.
fn cofactor_inverses(basis: &[Modulus]) -> Result<Vec<u64>> {
    let inverse = |(index, &q): (usize, &Modulus)| {
        let others = basis
            .iter()
            .enumerate()
            .filter(|&(other, _)| other != index);
        let cofactor = others.fold(1, |product, (_, other)| {
            q.mul(product, q.reduce(other.value()))
        });
        Ok(q.inverse(cofactor).map_err(CkksError::from)?)
    };
    basis.iter().enumerate().map(inverse).collect()
}

/// The product of a basis modulo another prime.
fn product(basis: &[Modulus], modulus: Modulus) -> u64 {
    basis.iter().fold(1, |product, q| {
        modulus.mul(product, modulus.reduce(q.value()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pass B's last layers use each of their twiddles once a group: all of them must be there, or
    /// what they are made from.
    #[test]
    fn the_last_step_finds_every_twiddle_of_its_layers() {
        for log_n in 10..=17 {
            let quarter = 1 << (log_n - LAST_STEP);
            let place = |core| {
                let order = twiddle_order(log_n, core);
                let mut found = vec![false; 1 << log_n];
                order.iter().for_each(|&index| found[index as usize] = true);
                (order.len(), found)
            };
            let (words, found) = place(Core::Integer);
            assert_eq!(words, (1 << log_n) + quarter);
            assert!(found.into_iter().all(|found| found), "N = 2^{log_n}");
            let (words, found) = place(Core::Fp64);
            assert_eq!(words, 2 * quarter);
            let even = (2 * quarter..1 << log_n).step_by(2);
            assert!(even.into_iter().all(|index| found[index]), "N = 2^{log_n}");
        }
    }

    #[test]
    fn minus_inverses_are_inverses() {
        for p in [
            3u64,
            786_433,
            796_131_457_761_281,
            2_305_843_009_211_596_801,
        ] {
            assert_eq!(p.wrapping_mul(minus_inverse(p)), u64::MAX, "{p}");
        }
    }
}
