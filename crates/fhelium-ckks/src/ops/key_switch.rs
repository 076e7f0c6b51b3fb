//! Hybrid key switching (K. Han, D. Ki, "Better Bootstrapping for Approximate Homomorphic
//! Encryption", CT-RSA 2020).
//!
//! A polynomial d at level l is cut into digits: the residues modulo the primes of one digit, lifted
//! to the centred integer and reduced modulo all other primes and the special primes (decompose).
//! The sum of digits times key halves over the extended modulus stands for P d s', and is divided by
//! P, rounded (mod-down).

use crate::buffers::Buffer;
use crate::context::Context;
use crate::keys::KeySwitchKey;
use std::ops::Range;

/// Coefficients of one base conversion task: few digits still fill the threads.
const CONVERSION_BLOCK: usize = 4096;

/// The digits of a polynomial, in the transform domain, without the limbs that are the
/// polynomial's own.
pub(super) struct Digits {
    level: usize,
    digits: Vec<Digit>,
    data: Buffer,
}

/// One digit.
struct Digit {
    /// The limbs that are the polynomial's own.
    own: Range<usize>,
    /// Where its other limbs start in the data.
    start: usize,
}

impl Context {
    /// Cuts a polynomial in the transform domain, (limb, N), into digits.
    pub(super) fn decompose(&self, level: usize, polynomial: &[u64]) -> Digits {
        let n = self.n();
        let extended = level + 1 + self.special_count();
        let mut coefficients = self.buffer(polynomial.len());
        self.each_limb(&mut coefficients, |index, limb| {
            limb.copy_from_slice(&polynomial[index * n..][..n]);
            self.limbs()[index].inverse(limb);
        });
        let coefficients = &*coefficients;
        let mut digits = Vec::with_capacity(self.parameters().digits(level));
        let mut words = 0;
        for digit in 0..self.parameters().digits(level) {
            let own = self.parameters().digit_range(level, digit);
            let start = words;
            words += (extended - own.len()) * n;
            digits.push(Digit { own, start });
        }
        let mut data = self.buffer(words);
        let block = n.min(CONVERSION_BLOCK);
        let mut tasks = Vec::with_capacity(digits.len() * n / block);
        let mut rows = data.chunks_exact_mut(n);
        for (index, digit) in digits.iter().enumerate() {
            let others = rows.by_ref().take(extended - digit.own.len()).collect();
            let pieces = blocks(others, block).enumerate();
            tasks.extend(pieces.map(|(piece, to)| (index, piece, to)));
        }
        self.each(tasks, |task: (usize, usize, Vec<&mut [u64]>)| {
            let (index, piece, mut to) = task;
            let limbs = digits[index].own.clone();
            let from = limbs.map(|limb| &coefficients[limb * n + piece * block..][..block]);
            self.mod_up(level, index)
                .convert(&from.collect::<Vec<_>>(), &mut to);
        });
        let others = |digit: &Digit| {
            let own = digit.own.clone();
            (0..extended).filter(move |index| !own.contains(index))
        };
        let limbs = digits
            .iter()
            .flat_map(others)
            .zip(data.chunks_exact_mut(n))
            .collect();
        self.each(limbs, |(index, row): (usize, &mut [u64])| {
            self.limbs()[self.extended_limb(level, index)].forward(row);
        });
        Digits {
            level,
            digits,
            data,
        }
    }

    /// Writes to `out`, two parts of (limb, N), what the key makes of decomposed digits: (b, a) with
    /// b + a t = polynomial * s'.
    pub(super) fn switch(
        &self,
        digits: &Digits,
        polynomial: &[u64],
        key: &KeySwitchKey,
        out: &mut [u64],
    ) {
        let n = self.n();
        let limbs = digits.level + 1;
        let half = (limbs + self.special_count()) * n;
        let mut sums = self.buffer(2 * half);
        self.inner_product(digits, polynomial, key, &mut sums);
        let parts = out.chunks_exact_mut(limbs * n);
        let targets = parts
            .map(|part| part.chunks_exact_mut(n).collect())
            .collect();
        self.remainders(digits.level, &mut sums, targets);
        let sums = &*sums;
        self.each_limb(out, |index, out| {
            let (part, limb) = (index / limbs, index % limbs);
            let ring = &self.limbs()[limb];
            let sum = &sums[part * half + limb * n..][..n];
            // (sum - remainder) / P as (remainder - sum) (-1/P).
            ring.forward_sub_mul_scalar_assign(out, sum, self.minus_special_inverse(limb));
        });
    }

    /// [`switch`](Self::switch), the sum with a pair at the same level, and a rescale, in one: `out`
    /// gets two parts one level lower, with the residues that the three give one after the other.
    ///
    /// With x = P c + sum, r = x modulo P and y = (x - r) / P, the rescale takes t = y modulo q from
    /// y and divides by q: (x - (r + P t)) / (P q). So r and P t go through one transform.
    pub(super) fn switch_rescale(
        &self,
        digits: &Digits,
        polynomial: &[u64],
        key: &KeySwitchKey,
        pair: &[u64],
        out: &mut [u64],
    ) {
        let n = self.n();
        let level = digits.level;
        let half = (level + 1 + self.special_count()) * n;
        let mut sums = self.buffer(2 * half);
        self.inner_product(digits, polynomial, key, &mut sums);
        let terms = pair.chunks_exact(n);
        let rows = sums.chunks_exact_mut(half).flat_map(|part| {
            let rows = part.chunks_exact_mut(n).enumerate();
            rows.take(level + 1)
        });
        let rows = rows
            .zip(terms)
            .map(|((limb, row), term)| (limb, row, term))
            .collect();
        self.each(rows, |(limb, row, term): (usize, &mut [u64], &[u64])| {
            let ring = &self.limbs()[limb];
            ring.mul_scalar_add_assign(row, term, self.special_product(limb));
            if limb == level {
                ring.inverse(row);
            }
        });
        // The remainders modulo the top prime get a buffer, the others the result's place.
        let mut top = self.buffer(2 * n);
        let parts = out.chunks_exact_mut(level * n).zip(top.chunks_exact_mut(n));
        let targets = parts.map(|(part, top)| part.chunks_exact_mut(n).chain([top]).collect());
        self.remainders(level, &mut sums, targets.collect());
        let sums = &*sums;
        let prime = self.limbs()[level].modulus();
        self.each_limb(&mut top, |part, top| {
            let x = &sums[part * half + level * n..][..n];
            let inverse = self.minus_special_inverse(level);
            self.limbs()[level].sub_mul_scalar_assign(top, x, inverse);
        });
        let top = &*top;
        self.each_limb(out, |index, out| {
            let (part, limb) = (index / level, index % level);
            let ring = &self.limbs()[limb];
            let modulus = ring.modulus();
            let mut t = self.buffer(n);
            ring.reduce_into(&mut t, &top[part * n..][..n], prime);
            ring.mul_scalar_add_assign(out, &t, self.special_product(limb));
            ring.forward(out);
            let inverse = modulus.neg(self.minus_prime_inverse(level, limb));
            let factor = modulus.mul(self.minus_special_inverse(limb), inverse);
            ring.sub_mul_scalar_assign(out, &sums[part * half + limb * n..][..n], factor);
        });
    }

    /// The sums of digits times key halves over the extended modulus: two parts of (limb, N).
    fn inner_product(
        &self,
        digits: &Digits,
        polynomial: &[u64],
        key: &KeySwitchKey,
        sums: &mut [u64],
    ) {
        let n = self.n();
        let all = self.limbs().len();
        let uniform = key.uniform(self);
        let (b, a) = sums.split_at_mut(sums.len() / 2);
        let rows = b
            .chunks_exact_mut(n)
            .zip(a.chunks_exact_mut(n))
            .enumerate()
            .collect();
        self.each(
            rows,
            |(index, (b, a)): (usize, (&mut [u64], &mut [u64]))| {
                let limb = self.extended_limb(digits.level, index);
                let rows = digits.rows(polynomial, index, n);
                let [b_rows, a_rows] = [&key.b[..], uniform].map(|half| {
                    let digits = half.chunks_exact(all * n).take(rows.len());
                    digits
                        .map(|digit| &digit[limb * n..][..n])
                        .collect::<Vec<_>>()
                });
                self.limbs()[limb].inner_product_pair(b, a, &rows, &b_rows, &a_rows);
            },
        );
    }

    /// The remainders modulo P of two parts over the extended modulus, centred, in the coefficient
    /// domain: for each part its limbs at the level. The special limbs of `sums` are transformed
    /// back.
    fn remainders(&self, level: usize, sums: &mut [u64], targets: Vec<Vec<&mut [u64]>>) {
        let n = self.n();
        let limbs = level + 1;
        let half = sums.len() / 2;
        let special = sums
            .chunks_exact_mut(half)
            .flat_map(|part| part[limbs * n..].chunks_exact_mut(n).enumerate())
            .collect();
        self.each(special, |(index, row): (usize, &mut [u64])| {
            self.limbs()[self.extended_limb(level, limbs + index)].inverse(row);
        });
        let sums = &*sums;
        let block = n.min(CONVERSION_BLOCK);
        let mut tasks = Vec::with_capacity(2 * n / block);
        for (part, target) in targets.into_iter().enumerate() {
            let pieces = blocks(target, block).enumerate();
            tasks.extend(pieces.map(|(piece, to)| (part, piece, to)));
        }
        self.each(tasks, |task: (usize, usize, Vec<&mut [u64]>)| {
            let (part, piece, mut to) = task;
            let special = sums[part * half..][..half][limbs * n..].chunks_exact(n);
            let from: Vec<&[u64]> = special.map(|row| &row[piece * block..][..block]).collect();
            self.mod_down(level).convert(&from, &mut to);
        });
    }
}

/// Limbs cut into blocks: the first block of each limb, the second of each, and so on.
fn blocks(limbs: Vec<&mut [u64]>, block: usize) -> impl Iterator<Item = Vec<&mut [u64]>> {
    let count = limbs.first().map_or(0, |limb| limb.len() / block);
    let mut limbs: Vec<_> = limbs
        .into_iter()
        .map(|limb| limb.chunks_exact_mut(block))
        .collect();
    (0..count).map(move |_| limbs.iter_mut().filter_map(Iterator::next).collect())
}

impl Digits {
    /// The row of each digit for one limb of the extended modulus.
    fn rows<'b>(&'b self, polynomial: &'b [u64], index: usize, n: usize) -> Vec<&'b [u64]> {
        let row = |digit: &Digit| {
            if digit.own.contains(&index) {
                return &polynomial[index * n..][..n];
            }
            let skipped = if index < digit.own.start {
                0
            } else {
                digit.own.len()
            };
            &self.data[digit.start + (index - skipped) * n..][..n]
        };
        self.digits.iter().map(row).collect()
    }
}
