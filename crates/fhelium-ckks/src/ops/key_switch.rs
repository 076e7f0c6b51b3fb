//! Hybrid key switching (K. Han, D. Ki, "Better Bootstrapping for Approximate Homomorphic
//! Encryption", CT-RSA 2020).
//!
//! A polynomial d at level l is cut into digits: the residues modulo the primes of one digit, lifted
//! to the centred integer and reduced modulo all other primes and the special primes (decompose).
//! The sum of digits times key halves over the extended modulus stands for P d s', and is divided by
//! P, rounded (mod-down).

use crate::context::Context;
use crate::keys::KeySwitchKey;
use crate::scratch::Scratch;
use std::ops::Range;

/// The digits of a polynomial, in the transform domain, without the limbs that are the
/// polynomial's own.
pub(super) struct Digits<'a> {
    level: usize,
    digits: Vec<Digit>,
    data: Scratch<'a>,
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
    pub(super) fn decompose(&self, level: usize, polynomial: &[u64]) -> Digits<'_> {
        let n = self.n();
        let extended = level + 1 + self.special_count();
        let mut coefficients = self.scratch().take(polynomial.len());
        self.each_limb(&mut coefficients, |index, limb| {
            limb.copy_from_slice(&polynomial[index * n..][..n]);
            self.limbs()[index].inverse(limb);
        });
        let mut start = 0;
        let digits: Vec<Digit> = (0..self.parameters().digits(level))
            .map(|digit| {
                let own = self.parameters().digit_range(level, digit);
                let others = (extended - own.len()) * n;
                start += others;
                Digit {
                    own,
                    start: start - others,
                }
            })
            .collect();
        let mut data = self.scratch().take(start);
        // One task for each digit and each part of N, so that few digits still fill the threads.
        let block = n.min(CONVERSION_BLOCK);
        let mut tasks = Vec::with_capacity(digits.len() * n / block);
        let mut rest = &mut data[..];
        for (index, digit) in digits.iter().enumerate() {
            let (others, after) = rest.split_at_mut((extended - digit.own.len()) * n);
            rest = after;
            let mut blocks: Vec<Vec<&mut [u64]>> = (0..n / block).map(|_| Vec::new()).collect();
            for limb in others.chunks_exact_mut(n) {
                for (list, part) in blocks.iter_mut().zip(limb.chunks_exact_mut(block)) {
                    list.push(part);
                }
            }
            tasks.extend(
                blocks
                    .into_iter()
                    .enumerate()
                    .map(|(part, to)| (index, part, to)),
            );
        }
        self.each(
            tasks,
            |(index, part, mut to): (usize, usize, Vec<&mut [u64]>)| {
                let own = digits[index].own.clone();
                let from: Vec<&[u64]> = own
                    .map(|limb| &coefficients[limb * n + part * block..][..block])
                    .collect();
                self.mod_up(level, index).convert(&from, &mut to);
            },
        );
        let mut limbs = Vec::with_capacity(start / n);
        let mut rows = data.chunks_exact_mut(n);
        for digit in &digits {
            for index in (0..extended).filter(|index| !digit.own.contains(index)) {
                limbs.extend(
                    rows.next()
                        .map(|row| (self.extended_limb(level, index), row)),
                );
            }
        }
        self.each(limbs, |(limb, row): (usize, &mut [u64])| {
            self.limbs()[limb].forward(row)
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
        digits: &Digits<'_>,
        polynomial: &[u64],
        key: &KeySwitchKey,
        out: &mut [u64],
    ) {
        let n = self.n();
        let level = digits.level;
        let extended = level + 1 + self.special_count();
        let mut sums = self.scratch().take(2 * extended * n);
        self.inner_product(digits, polynomial, key, &mut sums);
        self.mod_down(level, &mut sums, out);
    }

    /// The sums of digits times key halves over the extended modulus: two parts of (limb, N).
    fn inner_product(
        &self,
        digits: &Digits<'_>,
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
                let rows: Vec<&[u64]> = digits.rows(polynomial, index, n);
                let b_rows = key_rows(&key.b, rows.len(), all, limb, n);
                let a_rows = key_rows(uniform, rows.len(), all, limb, n);
                self.limbs()[limb].inner_product_pair(b, a, &rows, &b_rows, &a_rows);
            },
        );
    }

    /// Divides two parts over the extended modulus by P, rounded to the nearest: `sums` is changed,
    /// `out` gets two parts of (limb, N) at the level.
    fn mod_down(&self, level: usize, sums: &mut [u64], out: &mut [u64]) {
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
        for (part, out) in out.chunks_exact_mut(limbs * n).enumerate() {
            let mut blocks: Vec<Vec<&mut [u64]>> = (0..n / block).map(|_| Vec::new()).collect();
            for limb in out.chunks_exact_mut(n) {
                for (list, piece) in blocks.iter_mut().zip(limb.chunks_exact_mut(block)) {
                    list.push(piece);
                }
            }
            tasks.extend(
                blocks
                    .into_iter()
                    .enumerate()
                    .map(|(piece, to)| (part, piece, to)),
            );
        }
        self.each(
            tasks,
            |(part, piece, mut to): (usize, usize, Vec<&mut [u64]>)| {
                let special = sums[part * half..][..half][limbs * n..].chunks_exact(n);
                let from: Vec<&[u64]> = special.map(|row| &row[piece * block..][..block]).collect();
                self.mod_down_converter(level).convert(&from, &mut to);
            },
        );
        self.each_limb(out, |index, out| {
            let (part, limb) = (index / limbs, index % limbs);
            let ring = &self.limbs()[limb];
            ring.forward(out);
            // (sum - remainder) / P, the sign turned twice so that the result is in place.
            let sum = &sums[part * half + limb * n..][..n];
            ring.sub_mul_scalar_assign(out, sum, self.minus_special_inverse(limb));
        });
    }
}

/// One limb of a key half for each of the first digits.
fn key_rows(half: &[u64], digits: usize, limbs: usize, limb: usize, n: usize) -> Vec<&[u64]> {
    half.chunks_exact(limbs * n)
        .take(digits)
        .map(|digit| &digit[limb * n..][..n])
        .collect()
}

/// Coefficients of one base conversion task.
const CONVERSION_BLOCK: usize = 4096;

impl Digits<'_> {
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
