//! Values to coefficients: Gentleman-Sande butterflies.

use super::butterfly::{inverse_four, inverse_inner, inverse_outer, load_floats, vector_factor};
use super::lanes::Lanes;
use super::roots::{IN_STEP, TAIL};
use super::transform::Fp64Transform;

impl<L: Lanes<W>, const W: usize> Fp64Transform<L, W> {
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
