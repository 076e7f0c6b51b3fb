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
pub(super) const CONVERSION_BLOCK: usize = 4096;

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

/// Decomposed digits, the polynomial that they are of, and the key to multiply them with.
pub(super) struct KeyProduct<'a> {
    digits: &'a Digits,
    polynomial: &'a [u64],
    key: &'a KeySwitchKey,
    /// The key's uniform halves.
    uniform: &'a [u64],
}

impl<'a> KeyProduct<'a> {
    pub fn new(
        context: &Context,
        digits: &'a Digits,
        polynomial: &'a [u64],
        key: &'a KeySwitchKey,
    ) -> Self {
        KeyProduct {
            digits,
            polynomial,
            key,
            uniform: key.uniform(context),
        }
    }
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
    /// b + a t = polynomial * s'. Then gives each limb of both parts, still in the cache, to `finish`
    /// with one of `extras`.
    pub(super) fn switch<T: Send>(
        &self,
        product: &KeyProduct<'_>,
        out: &mut [u64],
        extras: impl IntoIterator<Item = T>,
        finish: impl Fn(usize, [&mut [u64]; 2], T) + Send + Sync,
    ) {
        let n = self.n();
        let half = out.len() / 2;
        let level = product.digits.level;
        let special = level + 1..level + 1 + self.special_count();
        let special = self.coefficient_sums(product, special, |_, _| {});
        let targets = out.chunks_exact_mut(half);
        let targets = targets
            .map(|part| part.chunks_exact_mut(n).collect())
            .collect();
        self.remainders(level, &special, targets);
        let (b, a) = out.split_at_mut(half);
        let rows = b.chunks_exact_mut(n).zip(a.chunks_exact_mut(n));
        let tasks = rows.zip(extras).enumerate();
        let tasks = tasks
            .map(|(limb, ((b, a), extra))| (limb, [b, a], extra))
            .collect();
        self.each(
            tasks,
            |(limb, [b, a], extra): (usize, [&mut [u64]; 2], T)| {
                let ring = &self.limbs()[limb];
                let sums = self.key_sums(product, limb);
                for (out, sum) in [&mut *b, &mut *a].into_iter().zip(sums.chunks_exact(n)) {
                    // (sum - remainder) / P, the sign turned twice so that the result is in place.
                    ring.forward_sub_mul_scalar_assign(out, sum, self.minus_special_inverse(limb));
                }
                finish(limb, [b, a], extra);
            },
        );
    }

    /// [`switch`](Self::switch), the sum with a pair at the same level, and a rescale, in one: `out`
    /// gets two parts one level lower, with the residues that the three give one after the other.
    ///
    /// With x = P c + sum, r = x modulo P and y = (x - r) / P, the rescale takes t = y modulo q from
    /// y and divides by q: (x - (r + P t)) / (P q). So r and P t go through one transform.
    pub(super) fn switch_rescale(&self, product: &KeyProduct<'_>, pair: &[u64], out: &mut [u64]) {
        let n = self.n();
        let level = product.digits.level;
        // P c + sum in one limb.
        let add_pair = |limb: usize, sums: &mut [u64]| {
            for (part, sum) in sums.chunks_exact_mut(n).enumerate() {
                let term = &pair[(part * (level + 1) + limb) * n..][..n];
                let ring = &self.limbs()[limb];
                ring.mul_scalar_add_assign(sum, term, self.special_product(limb));
            }
        };
        let limbs = level..level + 1 + self.special_count();
        let coefficients = self.coefficient_sums(product, limbs, |limb, sums| {
            if limb == level {
                add_pair(limb, sums);
            }
        });
        let (dividend, special) = coefficients.split_at(1);
        // The remainders modulo the top prime get a buffer, the others the result's place.
        let mut top = self.buffer(2 * n);
        let parts = out.chunks_exact_mut(level * n).zip(top.chunks_exact_mut(n));
        let targets = parts.map(|(part, top)| part.chunks_exact_mut(n).chain([top]).collect());
        self.remainders(level, special, targets.collect());
        let ring = &self.limbs()[level];
        ring.sub_mul_scalar_assign(&mut top, &dividend[0], self.minus_special_inverse(level));
        let (top, prime) = (&*top, ring.modulus());
        let (b, a) = out.split_at_mut(level * n);
        let rows = b
            .chunks_exact_mut(n)
            .zip(a.chunks_exact_mut(n))
            .enumerate()
            .collect();
        self.each(rows, |(limb, (b, a)): (usize, (&mut [u64], &mut [u64]))| {
            let ring = &self.limbs()[limb];
            let modulus = ring.modulus();
            let inverse = modulus.neg(self.minus_prime_inverse(level, limb));
            let factor = modulus.mul(self.minus_special_inverse(limb), inverse);
            let mut sums = self.key_sums(product, limb);
            add_pair(limb, &mut sums);
            let mut t = self.buffer(n);
            let parts = [b, a]
                .into_iter()
                .zip(top.chunks_exact(n))
                .zip(sums.chunks_exact(n));
            for ((out, top), sum) in parts {
                ring.reduce_into(&mut t, top, prime);
                ring.mul_scalar_add_assign(out, &t, self.special_product(limb));
                ring.forward_sub_mul_scalar_assign(out, sum, factor);
            }
        });
    }

    /// The sums of digits times key halves in one limb of the extended modulus: two parts.
    fn key_sums(&self, product: &KeyProduct<'_>, index: usize) -> Buffer {
        let n = self.n();
        let KeyProduct {
            digits,
            polynomial,
            key,
            uniform,
        } = *product;
        let limb = self.extended_limb(digits.level, index);
        let rows = digits.rows(polynomial, index, n);
        let [b, a] = [&key.b[..], uniform].map(|half| {
            let digits = half.chunks_exact(self.limbs().len() * n).take(rows.len());
            digits
                .map(|digit| &digit[limb * n..][..n])
                .collect::<Vec<_>>()
        });
        let mut sums = self.buffer(2 * n);
        let (out_b, out_a) = sums.split_at_mut(n);
        self.limbs()[limb].inner_product_pair(out_b, out_a, &rows, &b, &a);
        sums
    }

    /// The sums in some limbs of the extended modulus, in the coefficient domain: for each limb two
    /// parts. `adjust` sees them before they are transformed back.
    fn coefficient_sums(
        &self,
        product: &KeyProduct<'_>,
        limbs: Range<usize>,
        adjust: impl Fn(usize, &mut [u64]) + Send + Sync,
    ) -> Vec<Buffer> {
        let mut all: Vec<_> = limbs.map(|index| (index, Buffer::default())).collect();
        self.each(
            all.iter_mut().collect(),
            |(index, sums): &mut (usize, Buffer)| {
                *sums = self.key_sums(product, *index);
                adjust(*index, sums);
                let ring = &self.limbs()[self.extended_limb(product.digits.level, *index)];
                sums.chunks_exact_mut(self.n())
                    .for_each(|part| ring.inverse(part));
            },
        );
        all.into_iter().map(|(_, sums)| sums).collect()
    }

    /// The remainders modulo P of two parts given by their special limbs, centred, in the
    /// coefficient domain: for each part its limbs at the level.
    fn remainders(&self, level: usize, special: &[Buffer], targets: Vec<Vec<&mut [u64]>>) {
        let n = self.n();
        let block = n.min(CONVERSION_BLOCK);
        let mut tasks = Vec::with_capacity(2 * n / block);
        for (part, target) in targets.into_iter().enumerate() {
            let pieces = blocks(target, block).enumerate();
            tasks.extend(pieces.map(|(piece, to)| (part, piece, to)));
        }
        self.each(tasks, |task: (usize, usize, Vec<&mut [u64]>)| {
            let (part, piece, mut to) = task;
            let start = part * n + piece * block;
            let from: Vec<&[u64]> = special.iter().map(|sums| &sums[start..][..block]).collect();
            self.mod_down(level).convert(&from, &mut to);
        });
    }
}

/// Limbs cut into blocks: the first block of each limb, the second of each, and so on.
pub(super) fn blocks(
    limbs: Vec<&mut [u64]>,
    block: usize,
) -> impl Iterator<Item = Vec<&mut [u64]>> {
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
