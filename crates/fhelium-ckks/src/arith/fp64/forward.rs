//! Coefficients to values: Cooley-Tukey butterflies, and what is done to a value on its way in and
//! out while it is in a register anyway.

use super::butterfly::{
    forward_four, forward_inner, forward_outer, load_floats, store_floats, vector_factor,
};
use super::field::{Factor, Fp64Field};
use super::lanes::Lanes;
use super::roots::{IN_STEP, TAIL};
use super::transform::Fp64Transform;
use crate::arith::field::Field;
use crate::arith::modulus::Modulus;

/// Where the coefficients come from: integers with B at most 1.
trait Prologue<L: Lanes<W>, const W: usize>: Copy {
    /// Vector number `vector`; `own` is what the transformed limb holds there.
    fn load(self, f: Fp64Field<L>, own: &[u64; W], vector: usize) -> L::Float;
}

/// Canonical residues in the transformed limb.
#[derive(Clone, Copy)]
struct InPlace;

impl<L: Lanes<W>, const W: usize> Prologue<L, W> for InPlace {
    #[inline(always)]
    fn load(self, f: Fp64Field<L>, own: &[u64; W], _: usize) -> L::Float {
        f.lanes.to_float(f.lanes.load(own))
    }
}

/// Residues modulo another prime, centred.
#[derive(Clone, Copy)]
struct Centred<'a, V, const W: usize> {
    src: &'a [[u64; W]],
    half: V,
    q: V,
}

impl<L: Lanes<W>, const W: usize> Prologue<L, W> for Centred<'_, L::Float, W> {
    #[inline(always)]
    fn load(self, f: Fp64Field<L>, _: &[u64; W], vector: usize) -> L::Float {
        let x = f.lanes.to_float(f.lanes.load(&self.src[vector]));
        f.reduce(f.lanes.sub_if_above(x, self.half, self.q))
    }
}

/// Where the values go.
trait Epilogue<L: Lanes<W>, const W: usize>: Copy {
    /// The canonical residues to store as vector number `vector` for values with B at most 4.6.
    fn finish(self, f: Fp64Field<L>, x: L::Float, vector: usize) -> L::Int;
}

/// The values themselves.
#[derive(Clone, Copy)]
struct Canonical;

impl<L: Lanes<W>, const W: usize> Epilogue<L, W> for Canonical {
    #[inline(always)]
    fn finish(self, f: Fp64Field<L>, x: L::Float, _: usize) -> L::Int {
        f.canonical(f.reduce(x))
    }
}

/// (value - b) w for canonical residues b.
#[derive(Clone, Copy)]
struct SubMul<'a, V, const W: usize> {
    b: &'a [[u64; W]],
    w: Factor<V>,
}

impl<L: Lanes<W>, const W: usize> Epilogue<L, W> for SubMul<'_, L::Float, W> {
    /// B: 4.6 -> 5.6 -> below 1.
    #[inline(always)]
    fn finish(self, f: Fp64Field<L>, x: L::Float, vector: usize) -> L::Int {
        let b = f.lanes.to_float(f.lanes.load(&self.b[vector]));
        f.canonical(f.mul_factor(f.lanes.sub(x, b), self.w))
    }
}

impl<L: Lanes<W>, const W: usize> Fp64Transform<L, W> {
    /// Coefficients to values; canonical residues in and out.
    #[inline(always)]
    pub fn forward(&self, a: &mut [u64]) {
        self.transform(a, InPlace, Canonical);
    }

    /// a = (NTT(a) - b) w for residues a, b and w.
    #[inline(always)]
    pub fn forward_sub_mul(&self, a: &mut [u64], b: &[u64], w: u64) {
        let f = self.field;
        let w = f.factor(f.balanced(w));
        let (b, _) = b.as_chunks();
        self.transform(a, InPlace, SubMul { b, w });
    }

    /// out = (NTT(src) - b) w, where src are residues modulo another prime q below 2^49.5, taken in
    /// (-q/2, q/2).
    #[inline(always)]
    pub fn center_forward_sub_mul(
        &self,
        out: &mut [u64],
        src: &[u64],
        q: Modulus,
        b: &[u64],
        w: u64,
    ) {
        let f = self.field;
        let w = f.factor(f.balanced(w));
        let [half, q] = f.other(q);
        let ((src, _), (b, _)) = (src.as_chunks(), b.as_chunks());
        self.transform(out, Centred { src, half, q }, SubMul { b, w });
    }

    #[inline(always)]
    fn transform<P: Prologue<L, W>, E: Epilogue<L, W>>(
        &self,
        a: &mut [u64],
        prologue: P,
        epilogue: E,
    ) {
        let (vectors, _) = a.as_chunks_mut::<W>();
        let total = vectors.len();
        let blocks = Self::blocks(total);
        // B: 1 -> 1.6, or 1 -> 2.3.
        let mut groups = if (total / TAIL).trailing_zeros() % 2 == 1 {
            self.forward_first_layer(vectors, prologue);
            2
        } else {
            self.forward_first_two_layers(vectors, prologue);
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
            self.forward_tail(block, (blocks + index) * groups, total / TAIL, epilogue);
        }
    }

    #[inline(always)]
    fn forward_pass(&self, reduce: bool, a: &mut [[u64; W]], first: usize, groups: usize) {
        if reduce {
            self.forward_two_layers::<true>(a, first, groups);
        } else {
            self.forward_two_layers::<false>(a, first, groups);
        }
    }

    /// The first layer of all.
    #[inline(always)]
    fn forward_first_layer<P: Prologue<L, W>>(&self, a: &mut [[u64; W]], prologue: P) {
        let (f, l) = (self.field, self.field.lanes);
        let root = f.factor(self.forward.whole[1]);
        let half = a.len() / 2;
        let (upper, lower) = a.split_at_mut(half);
        for (vector, (a, b)) in upper.iter_mut().zip(lower).enumerate() {
            let x = prologue.load(f, a, vector);
            let y = f.mul_factor(prologue.load(f, b, vector + half), root);
            l.store_float(l.add(x, y), a);
            l.store_float(l.sub(x, y), b);
        }
    }

    /// The first two layers of all.
    #[inline(always)]
    fn forward_first_two_layers<P: Prologue<L, W>>(&self, a: &mut [[u64; W]], prologue: P) {
        let f = self.field;
        let roots = &self.forward.whole;
        let roots = [f.factor(roots[1]), f.factor(roots[2]), f.factor(roots[3])];
        let size = a.len() / 4;
        let (upper, lower) = a.split_at_mut(2 * size);
        let (a, b) = upper.split_at_mut(size);
        let (c, d) = lower.split_at_mut(size);
        for (vector, (((a, b), c), d)) in a.iter_mut().zip(b).zip(c).zip(d).enumerate() {
            let x = [
                prologue.load(f, a, vector),
                prologue.load(f, b, vector + size),
                prologue.load(f, c, vector + 2 * size),
                prologue.load(f, d, vector + 3 * size),
            ];
            store_floats(f.lanes, forward_four(f, x, roots), [a, b, c, d]);
        }
    }

    /// Two layers of `groups` groups; `first` is the index of the first group's root in the first
    /// of the layers.
    #[inline(always)]
    fn forward_two_layers<const REDUCE: bool>(
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
                let mut x = load_floats(l, [a, b, c, d]);
                if REDUCE {
                    x[0] = f.reduce(x[0]);
                }
                store_floats(l, forward_four(f, x, roots), [a, b, c, d]);
            }
        }
    }

    /// The last layers, to integers. B: 3.7 -> 2.3 between vectors, 4.5 after those within.
    ///
    /// One block is a long chain of dependent operations; a few of them in step fill the pipes.
    #[inline(always)]
    fn forward_tail<E: Epilogue<L, W>>(
        &self,
        a: &mut [[u64; W]],
        first: usize,
        all_groups: usize,
        epilogue: E,
    ) {
        let (f, l) = (self.field, self.field.lanes);
        let tails = self.forward.tails(first, a.len() / TAIL, all_groups);
        let (steps, _) = a.as_chunks_mut::<{ IN_STEP * TAIL }>();
        for (step, (vectors, (outer, inner, within))) in steps.iter_mut().zip(tails).enumerate() {
            let first_vector = (first - all_groups + step * IN_STEP) * TAIL;
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
            let out = vectors.as_chunks_mut::<2>().0;
            for (pair, (x, out)) in pairs.iter().zip(out).enumerate() {
                let vector = first_vector + 2 * pair;
                let (a, b) = l.join(x[0], x[1]);
                l.store(epilogue.finish(f, a, vector), &mut out[0]);
                l.store(epilogue.finish(f, b, vector + 1), &mut out[1]);
            }
        }
    }
}
