//! Two layers of butterflies on four vectors.

use super::field::{Factor, Fp64Field};
use super::lanes::Lanes;

// Explicit arrays in place of `map`: a closure would not take on the vector instructions.

#[inline(always)]
pub(super) fn load_floats<L: Lanes<W>, const W: usize>(
    l: L,
    [a, b, c, d]: [&[u64; W]; 4],
) -> [L::Float; 4] {
    [
        l.as_float(l.load(a)),
        l.as_float(l.load(b)),
        l.as_float(l.load(c)),
        l.as_float(l.load(d)),
    ]
}

#[inline(always)]
pub(super) fn store_floats<L: Lanes<W>, const W: usize>(
    l: L,
    x: [L::Float; 4],
    [a, b, c, d]: [&mut [u64; W]; 4],
) {
    l.store_float(x[0], a);
    l.store_float(x[1], b);
    l.store_float(x[2], c);
    l.store_float(x[3], d);
}

/// The butterflies of two forward layers on a quarter's vector each.
#[inline(always)]
pub(super) fn forward_four<L: Lanes<W>, const W: usize>(
    f: Fp64Field<L>,
    x: [L::Float; 4],
    [outer, left, right]: [Factor<L::Float>; 3],
) -> [L::Float; 4] {
    forward_inner(f, forward_outer(f, x, outer), [left, right])
}

#[inline(always)]
pub(super) fn forward_outer<L: Lanes<W>, const W: usize>(
    f: Fp64Field<L>,
    [a, b, c, d]: [L::Float; 4],
    w: Factor<L::Float>,
) -> [L::Float; 4] {
    let l = f.lanes;
    let (c, d) = (f.mul_factor(c, w), f.mul_factor(d, w));
    [l.add(a, c), l.add(b, d), l.sub(a, c), l.sub(b, d)]
}

#[inline(always)]
pub(super) fn forward_inner<L: Lanes<W>, const W: usize>(
    f: Fp64Field<L>,
    [a, b, c, d]: [L::Float; 4],
    [left, right]: [Factor<L::Float>; 2],
) -> [L::Float; 4] {
    let l = f.lanes;
    let (b, d) = (f.mul_factor(b, left), f.mul_factor(d, right));
    [l.add(a, b), l.sub(a, b), l.add(c, d), l.sub(c, d)]
}

/// The butterflies of two inverse layers: sums of four and two, unreduced, and products.
#[inline(always)]
pub(super) fn inverse_four<L: Lanes<W>, const W: usize>(
    f: Fp64Field<L>,
    x: [L::Float; 4],
    [outer, left, right]: [Factor<L::Float>; 3],
) -> [L::Float; 4] {
    inverse_outer(f, inverse_inner(f, x, [left, right]), outer)
}

#[inline(always)]
pub(super) fn inverse_inner<L: Lanes<W>, const W: usize>(
    f: Fp64Field<L>,
    [a, b, c, d]: [L::Float; 4],
    [left, right]: [Factor<L::Float>; 2],
) -> [L::Float; 4] {
    let l = f.lanes;
    [
        l.add(a, b),
        f.mul_factor(l.sub(a, b), left),
        l.add(c, d),
        f.mul_factor(l.sub(c, d), right),
    ]
}

#[inline(always)]
pub(super) fn inverse_outer<L: Lanes<W>, const W: usize>(
    f: Fp64Field<L>,
    [a, b, c, d]: [L::Float; 4],
    w: Factor<L::Float>,
) -> [L::Float; 4] {
    let l = f.lanes;
    [
        l.add(a, c),
        l.add(b, d),
        f.mul_factor(l.sub(a, c), w),
        f.mul_factor(l.sub(b, d), w),
    ]
}

/// Factors that differ from lane to lane.
#[inline(always)]
pub(super) fn vector_factor<L: Lanes<W>, const W: usize>(
    f: Fp64Field<L>,
    w: &[f64; W],
) -> Factor<L::Float> {
    let w = f.lanes.load_float(w);
    Factor {
        w,
        quotient: f.lanes.mul(w, f.lanes.splat(f.reciprocal)),
    }
}
