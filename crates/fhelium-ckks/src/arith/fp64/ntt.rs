//! The negacyclic transform in double precision.
//!
//! The network is that of [`order`](crate::arith::order), two layers to a pass over memory, the
//! last layers of a block of four vectors in registers. A value x is lazy: an integer with
//! |x| <= B p. A butterfly adds 0.5 + 0.089 B to B in the forward direction and doubles B in the
//! inverse one, and a factor takes B up to 5.6 (see [`Fp64Field::mul_factor`]); the comments at
//! each pass say which bound enters and which leaves, in units of p.
//!
//! A long limb first takes passes over its whole length until blocks fit in a level-1 cache, then
//! each block takes all its other passes.

use super::butterfly::{
    forward_four, forward_inner, forward_outer, inverse_four, inverse_inner, inverse_outer,
    load_floats, load_integers, vector_factor,
};
use super::field::Fp64Field;
use super::lanes::Lanes;
use super::roots::{IN_STEP, Roots, TAIL};
use crate::arith::error::ArithError;
use crate::arith::modulus::Modulus;
use crate::arith::primes;

/// Residues in a block that stays in a level-1 cache with its roots.
const BLOCK: usize = 2048;

/// The transform of one prime and length.
#[derive(Debug, Clone)]
pub(crate) struct Fp64Transform<L, const W: usize> {
    field: Fp64Field<L>,
    forward: Roots<W>,
    inverse: Roots<W>,
    /// 1 / N and psi^-bitrev(1) / N, balanced.
    inverse_n: f64,
    inverse_n_root: f64,
}

impl<L: Lanes<W>, const W: usize> Fp64Transform<L, W> {
    /// Layers whose butterflies stand less than a vector apart.
    const WITHIN: usize = W.trailing_zeros() as usize;

    /// The transform of length `n`, a power of two from 256, modulo a prime below 2^49.5.
    pub fn new(field: Fp64Field<L>, n: usize, modulus: Modulus) -> Result<Self, ArithError> {
        let psi = primes::primitive_root(modulus, 2 * n as u64)?;
        let inverse_psi = modulus.inverse(psi)?;
        let inverse_n = modulus.inverse(modulus.reduce(n as u64))?;
        let inverse_root = modulus.pow(inverse_psi, n as u64 / 2);
        Ok(Self {
            field,
            forward: Roots::new(field, n, modulus, psi),
            inverse: Roots::new(field, n, modulus, inverse_psi),
            inverse_n: field.balanced(inverse_n),
            inverse_n_root: field.balanced(modulus.mul(inverse_n, inverse_root)),
        })
    }

    /// Into how many blocks the passes over the whole length divide `vectors` vectors.
    #[inline(always)]
    fn blocks(vectors: usize) -> usize {
        let mut blocks = if (vectors / TAIL).trailing_zeros() % 2 == 1 {
            2
        } else {
            4
        };
        while vectors / blocks > BLOCK / W {
            blocks *= 4;
        }
        blocks
    }

    /// Coefficients to values; canonical residues in and out.
    #[inline(always)]
    pub fn forward(&self, a: &mut [u64]) {
        let (vectors, _) = a.as_chunks_mut::<W>();
        let total = vectors.len();
        let blocks = Self::blocks(total);
        // B: 1 -> 1.6, or 1 -> 2.3.
        let mut groups = if (total / TAIL).trailing_zeros() % 2 == 1 {
            self.forward_first_layer(vectors);
            2
        } else {
            self.forward_two_layers::<true, false>(vectors, 1, 1);
            4
        };
        // Every other pass reduces. B: 2.3 -> 3.7 without, 3.7 -> 2.3 with reduction.
        let mut reduce = groups == 4;
        while groups < blocks {
            self.forward_pass(reduce, vectors, groups, groups);
            reduce = !reduce;
            groups *= 4;
        }
        for (index, block) in vectors.chunks_exact_mut(total / blocks).enumerate() {
            let (mut groups, mut reduce) = (1, reduce);
            while block.len() / groups > TAIL {
                self.forward_pass(reduce, block, (blocks + index) * groups, groups);
                reduce = !reduce;
                groups *= 4;
            }
            self.forward_tail(block, (blocks + index) * groups, total / TAIL);
        }
    }

    #[inline(always)]
    fn forward_pass(&self, reduce: bool, a: &mut [[u64; W]], first: usize, groups: usize) {
        if reduce {
            self.forward_two_layers::<false, true>(a, first, groups);
        } else {
            self.forward_two_layers::<false, false>(a, first, groups);
        }
    }

    /// The first layer of all, from integers.
    #[inline(always)]
    fn forward_first_layer(&self, a: &mut [[u64; W]]) {
        let (f, l) = (self.field, self.field.lanes);
        let root = f.factor(self.forward.whole[1]);
        let (upper, lower) = a.split_at_mut(a.len() / 2);
        for (a, b) in upper.iter_mut().zip(lower) {
            let x = l.to_float(l.load(a));
            let y = f.mul_factor(l.to_float(l.load(b)), root);
            l.store_float(l.add(x, y), a);
            l.store_float(l.sub(x, y), b);
        }
    }

    /// Two layers of `groups` groups; `first` is the index of the first group's root in the first
    /// of the layers.
    #[inline(always)]
    fn forward_two_layers<const INTEGERS: bool, const REDUCE: bool>(
        &self,
        a: &mut [[u64; W]],
        first: usize,
        groups: usize,
    ) {
        let (f, l) = (self.field, self.field.lanes);
        let size = a.len() / groups;
        let roots = self.forward.whole[first..first + groups].iter().zip(
            self.forward.whole[2 * first..2 * (first + groups)]
                .as_chunks::<2>()
                .0,
        );
        for (group, (&outer, &inner)) in a.chunks_exact_mut(size).zip(roots) {
            let roots = [f.factor(outer), f.factor(inner[0]), f.factor(inner[1])];
            let (upper, lower) = group.split_at_mut(size / 2);
            let (a, b) = upper.split_at_mut(size / 4);
            let (c, d) = lower.split_at_mut(size / 4);
            for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                let mut x = if INTEGERS {
                    load_integers(l, [a, b, c, d])
                } else {
                    load_floats(l, [a, b, c, d])
                };
                if REDUCE {
                    x[0] = f.reduce(x[0]);
                }
                let x = forward_four(f, x, roots);
                l.store_float(x[0], a);
                l.store_float(x[1], b);
                l.store_float(x[2], c);
                l.store_float(x[3], d);
            }
        }
    }

    /// The last layers, to integers. B: 3.7 -> 2.3 between vectors, 4.5 after those within.
    ///
    /// One block is a long chain of dependent operations; two of them in step fill the pipes.
    #[inline(always)]
    fn forward_tail(&self, a: &mut [[u64; W]], first: usize, all_groups: usize) {
        let (f, l) = (self.field, self.field.lanes);
        let tails = self.forward.tails(first, a.len() / TAIL, all_groups);
        for (vectors, (outer, inner, within)) in a
            .as_chunks_mut::<{ IN_STEP * TAIL }>()
            .0
            .iter_mut()
            .zip(tails)
        {
            let mut x = [[l.splat(0.0); TAIL]; IN_STEP];
            for (block, x) in x.iter_mut().enumerate() {
                for (index, x) in x.iter_mut().enumerate() {
                    *x = l.as_float(l.load(&vectors[block * TAIL + index]));
                }
                x[0] = f.reduce(x[0]);
            }
            for (x, &w) in x.iter_mut().zip(outer) {
                *x = forward_outer(f, *x, f.factor(w));
            }
            for (x, w) in x.iter_mut().zip(inner) {
                *x = forward_inner(f, *x, [f.factor(w[0]), f.factor(w[1])]);
            }
            let pairs = x.as_flattened_mut().as_chunks_mut::<2>().0;
            for layer in 0..Self::WITHIN {
                for (pair, x) in pairs.iter_mut().enumerate() {
                    let w = vector_factor(f, &within[pair * Self::WITHIN + layer]);
                    let (a, b) = l.split(layer as u32, x[0], x[1]);
                    let b = f.mul_factor(b, w);
                    *x = [l.add(a, b), l.sub(a, b)];
                }
            }
            for (x, out) in pairs.iter().zip(vectors.as_chunks_mut::<2>().0) {
                let (a, b) = l.join(x[0], x[1]);
                l.store(f.canonical(f.reduce(a)), &mut out[0]);
                l.store(f.canonical(f.reduce(b)), &mut out[1]);
            }
        }
    }

    /// Values to coefficients; canonical residues in and out.
    #[inline(always)]
    pub fn inverse(&self, a: &mut [u64]) {
        let (vectors, _) = a.as_chunks_mut::<W>();
        let total = vectors.len();
        let blocks = Self::blocks(total);
        // Every other pass reduces two of four. B: 1.4 -> 1 with, 1 -> 1.4 without.
        let mut reduce = true;
        for (index, block) in vectors.chunks_exact_mut(total / blocks).enumerate() {
            let mut groups = block.len() / TAIL;
            self.inverse_tail(block, (blocks + index) * groups, total / TAIL);
            reduce = true;
            while groups > 1 {
                groups /= 4;
                self.inverse_pass(reduce, block, (blocks + index) * groups, groups);
                reduce = !reduce;
            }
        }
        let mut groups = blocks;
        while groups > 4 {
            groups /= 4;
            self.inverse_pass(reduce, vectors, groups, groups);
            reduce = !reduce;
        }
        if groups == 4 {
            self.inverse_last_two_layers(vectors);
        } else {
            self.inverse_last_layer(vectors);
        }
    }

    #[inline(always)]
    fn inverse_pass(&self, reduce: bool, a: &mut [[u64; W]], first: usize, groups: usize) {
        if reduce {
            self.inverse_two_layers::<true>(a, first, groups);
        } else {
            self.inverse_two_layers::<false>(a, first, groups);
        }
    }

    /// The first layers, from integers. B: within vectors, sums 1 -> 8 and then reduced, products
    /// 0.9; between them 0.9 -> 1.4.
    #[inline(always)]
    fn inverse_tail(&self, a: &mut [[u64; W]], first: usize, all_groups: usize) {
        let (f, l) = (self.field, self.field.lanes);
        let tails = self.inverse.tails(first, a.len() / TAIL, all_groups);
        for (vectors, (outer, inner, within)) in a
            .as_chunks_mut::<{ IN_STEP * TAIL }>()
            .0
            .iter_mut()
            .zip(tails)
        {
            let mut x = [[l.splat(0.0); TAIL]; IN_STEP];
            let pairs = x.as_flattened_mut().as_chunks_mut::<2>().0;
            for (x, vectors) in pairs.iter_mut().zip(vectors.as_chunks::<2>().0) {
                let (a, b) = (
                    l.to_float(l.load(&vectors[0])),
                    l.to_float(l.load(&vectors[1])),
                );
                (x[0], x[1]) = l.unjoin(a, b);
            }
            for layer in (0..Self::WITHIN).rev() {
                for (pair, x) in pairs.iter_mut().enumerate() {
                    let w = vector_factor(f, &within[pair * Self::WITHIN + layer]);
                    let sum = l.add(x[0], x[1]);
                    let sum = if layer == 0 { f.reduce(sum) } else { sum };
                    let product = f.mul_factor(l.sub(x[0], x[1]), w);
                    (x[0], x[1]) = l.unsplit(layer as u32, sum, product);
                }
            }
            for (x, w) in x.iter_mut().zip(inner) {
                *x = inverse_inner(f, *x, [f.factor(w[0]), f.factor(w[1])]);
            }
            for (x, &w) in x.iter_mut().zip(outer) {
                *x = inverse_outer(f, *x, f.factor(w));
            }
            for (x, out) in x.iter_mut().zip(vectors.as_chunks_mut::<TAIL>().0) {
                x[0] = f.reduce(x[0]);
                for (x, out) in x.iter().zip(out) {
                    l.store_float(*x, out);
                }
            }
        }
    }

    /// Two layers of `groups` groups; `first` is the index of the first group's root in the second
    /// of the layers.
    #[inline(always)]
    fn inverse_two_layers<const REDUCE: bool>(
        &self,
        a: &mut [[u64; W]],
        first: usize,
        groups: usize,
    ) {
        let (f, l) = (self.field, self.field.lanes);
        let size = a.len() / groups;
        let roots = self.inverse.whole[first..first + groups].iter().zip(
            self.inverse.whole[2 * first..2 * (first + groups)]
                .as_chunks::<2>()
                .0,
        );
        for (group, (&outer, &inner)) in a.chunks_exact_mut(size).zip(roots) {
            let roots = [f.factor(outer), f.factor(inner[0]), f.factor(inner[1])];
            let (upper, lower) = group.split_at_mut(size / 2);
            let (a, b) = upper.split_at_mut(size / 4);
            let (c, d) = lower.split_at_mut(size / 4);
            for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                let x = load_floats(l, [a, b, c, d]);
                let mut x = inverse_four(f, x, roots);
                x[0] = f.reduce(x[0]);
                if REDUCE {
                    x[1] = f.reduce(x[1]);
                }
                l.store_float(x[0], a);
                l.store_float(x[1], b);
                l.store_float(x[2], c);
                l.store_float(x[3], d);
            }
        }
    }

    /// The last two layers of all, with the factor 1/N, to integers. B: 1.4 -> 5.4 -> below 1.
    #[inline(always)]
    fn inverse_last_two_layers(&self, a: &mut [[u64; W]]) {
        let (f, l) = (self.field, self.field.lanes);
        let roots = [
            f.factor(self.inverse_n_root),
            f.factor(self.inverse.whole[2]),
            f.factor(self.inverse.whole[3]),
        ];
        let inverse_n = f.factor(self.inverse_n);
        let size = a.len();
        let (upper, lower) = a.split_at_mut(size / 2);
        let (a, b) = upper.split_at_mut(size / 4);
        let (c, d) = lower.split_at_mut(size / 4);
        for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
            let x = load_floats(l, [a, b, c, d]);
            let x = inverse_four(f, x, roots);
            l.store(f.canonical(f.mul_factor(x[0], inverse_n)), a);
            l.store(f.canonical(f.mul_factor(x[1], inverse_n)), b);
            l.store(f.canonical(x[2]), c);
            l.store(f.canonical(x[3]), d);
        }
    }

    /// The last layer of all, with the factor 1/N, to integers. B: 1.4 -> 2.8 -> below 1.
    #[inline(always)]
    fn inverse_last_layer(&self, a: &mut [[u64; W]]) {
        let (f, l) = (self.field, self.field.lanes);
        let (inverse_n, root) = (f.factor(self.inverse_n), f.factor(self.inverse_n_root));
        let (upper, lower) = a.split_at_mut(a.len() / 2);
        for (a, b) in upper.iter_mut().zip(lower) {
            let (x, y) = (l.as_float(l.load(a)), l.as_float(l.load(b)));
            l.store(f.canonical(f.mul_factor(l.add(x, y), inverse_n)), a);
            l.store(f.canonical(f.mul_factor(l.sub(x, y), root)), b);
        }
    }
}
