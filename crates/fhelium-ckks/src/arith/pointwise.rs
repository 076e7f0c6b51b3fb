//! Pointwise kernels, written once for every core.
//!
//! Lengths are the caller's promise: [`Limb`](super::limb::Limb) checks them.

use super::field::{Field, load, store};
use super::modulus::Modulus;

/// Evaluates a block of code for each vector of the named slices: the block sees each source's
/// vector under the source's name, its values are stored to the outputs. A macro and not a
/// higher-order function, because a closure would not take on its caller's vector instructions.
macro_rules! for_vectors {
    ($field:ident, $w:ident, [$($out:ident),+] = [$($src:ident),+] $body:block) => {{
        let len = [$($out.len()),+][0];
        $(let $out = &mut $out[..len];)+
        $(let $src = &$src[..len];)+
        for vector in 0..len.div_ceil($w) {
            let values = {
                $(let $src = load::<_, $w>($field, $src, vector);)+
                $body
            };
            let mut values = values.into_iter();
            $(if let Some(value) = values.next() {
                store::<_, $w>($field, value, $out, vector);
            })+
        }
    }};
    ($field:ident, $w:ident, update $out:ident with [$($src:ident),*] $body:block) => {{
        let len = $out.len();
        $(let $src = &$src[..len];)*
        for vector in 0..len.div_ceil($w) {
            let value = {
                let $out = load::<_, $w>($field, $out, vector);
                $(let $src = load::<_, $w>($field, $src, vector);)*
                $body
            };
            store::<_, $w>($field, value, $out, vector);
        }
    }};
}

#[inline(always)]
pub(super) fn add<F: Field<W>, const W: usize>(f: F, out: &mut [u64], a: &[u64], b: &[u64]) {
    for_vectors!(f, W, [out] = [a, b] { [f.add(a, b)] });
}

#[inline(always)]
pub(super) fn add_assign<F: Field<W>, const W: usize>(f: F, a: &mut [u64], b: &[u64]) {
    for_vectors!(f, W, update a with [b] { f.add(a, b) });
}

#[inline(always)]
pub(super) fn sub<F: Field<W>, const W: usize>(f: F, out: &mut [u64], a: &[u64], b: &[u64]) {
    for_vectors!(f, W, [out] = [a, b] { [f.sub(a, b)] });
}

#[inline(always)]
pub(super) fn sub_assign<F: Field<W>, const W: usize>(f: F, a: &mut [u64], b: &[u64]) {
    for_vectors!(f, W, update a with [b] { f.sub(a, b) });
}

#[inline(always)]
pub(super) fn sub_from_assign<F: Field<W>, const W: usize>(f: F, a: &mut [u64], b: &[u64]) {
    for_vectors!(f, W, update a with [b] { f.sub(b, a) });
}

#[inline(always)]
pub(super) fn neg_assign<F: Field<W>, const W: usize>(f: F, a: &mut [u64]) {
    let zero = f.splat(0);
    for_vectors!(f, W, update a with [] { f.sub(zero, a) });
}

#[inline(always)]
pub(super) fn mul<F: Field<W>, const W: usize>(f: F, out: &mut [u64], a: &[u64], b: &[u64]) {
    for_vectors!(f, W, [out] = [a, b] { [f.mul(a, b)] });
}

#[inline(always)]
pub(super) fn mul_assign<F: Field<W>, const W: usize>(f: F, a: &mut [u64], b: &[u64]) {
    for_vectors!(f, W, update a with [b] { f.mul(a, b) });
}

#[inline(always)]
pub(super) fn mul_add_assign<F: Field<W>, const W: usize>(
    f: F,
    acc: &mut [u64],
    a: &[u64],
    b: &[u64],
) {
    for_vectors!(f, W, update acc with [a, b] { f.add(acc, f.mul(a, b)) });
}

#[inline(always)]
pub(super) fn mul_scalar<F: Field<W>, const W: usize>(f: F, out: &mut [u64], a: &[u64], w: u64) {
    let w = f.constant(w);
    for_vectors!(f, W, [out] = [a] { [f.mul_constant(a, w)] });
}

#[inline(always)]
pub(super) fn mul_scalar_assign<F: Field<W>, const W: usize>(f: F, a: &mut [u64], w: u64) {
    let w = f.constant(w);
    for_vectors!(f, W, update a with [] { f.mul_constant(a, w) });
}

#[inline(always)]
pub(super) fn mul_scalar_add_assign<F: Field<W>, const W: usize>(
    f: F,
    acc: &mut [u64],
    a: &[u64],
    w: u64,
) {
    let w = f.constant(w);
    for_vectors!(f, W, update acc with [a] { f.add(acc, f.mul_constant(a, w)) });
}

#[inline(always)]
pub(super) fn add_scalar_assign<F: Field<W>, const W: usize>(f: F, a: &mut [u64], w: u64) {
    let w = f.splat(w);
    for_vectors!(f, W, update a with [] { f.add(a, w) });
}

#[inline(always)]
pub(super) fn sub_mul_scalar_assign<F: Field<W>, const W: usize>(
    f: F,
    a: &mut [u64],
    b: &[u64],
    w: u64,
) {
    let w = f.constant(w);
    for_vectors!(f, W, update a with [b] { f.mul_constant(f.sub(a, b), w) });
}

#[inline(always)]
pub(super) fn tensor<F: Field<W>, const W: usize>(
    f: F,
    [c0, c1, c2]: [&mut [u64]; 3],
    [a0, a1]: [&[u64]; 2],
    [b0, b1]: [&[u64]; 2],
) {
    for_vectors!(f, W, [c0, c1, c2] = [a0, a1, b0, b1] {
        let cross = f.accumulate(f.sum(f.splat(0)), f.term(a0), f.term(b1));
        let cross = f.accumulate(cross, f.term(a1), f.term(b0));
        [f.mul(a0, b0), f.finish(cross), f.mul(a1, b1)]
    });
}

#[inline(always)]
pub(super) fn square_tensor<F: Field<W>, const W: usize>(
    f: F,
    [c0, c1, c2]: [&mut [u64]; 3],
    [a0, a1]: [&[u64]; 2],
) {
    for_vectors!(f, W, [c0, c1, c2] = [a0, a1] {
        [f.mul(a0, a0), f.mul(f.add(a0, a0), a1), f.mul(a1, a1)]
    });
}

#[inline(always)]
pub(super) fn reduce<F: Field<W>, const W: usize>(f: F, out: &mut [u64], src: &[u64], q: Modulus) {
    let q = f.other(q);
    for_vectors!(f, W, [out] = [src] { [f.center(src, q)] });
}

/// How many vectors of each half one step of the inner product keeps in registers.
const INNER_VECTORS: usize = 2;

/// The two halves of an inner product: `out[h] (+)= sum over d of digits[d] keys[h][d]`.
#[inline(always)]
pub(super) fn inner_product_pair<F: Field<W>, const W: usize>(
    f: F,
    out: [&mut [u64]; 2],
    digits: &[&[u64]],
    keys: [&[&[u64]]; 2],
    accumulate: bool,
) {
    let [out_b, out_a] = out;
    let vectors = out_b.len().div_ceil(W);
    let blocked = out_b.len() / (W * INNER_VECTORS) * INNER_VECTORS;
    let mut vector = 0;
    while vector < vectors {
        let count = if vector < blocked { INNER_VECTORS } else { 1 };
        let zero = f.splat(0);
        let mut sums = [[f.sum(zero); INNER_VECTORS]; 2];
        if accumulate {
            for lane in 0..count {
                sums[0][lane] = f.sum(load::<F, W>(f, out_b, vector + lane));
                sums[1][lane] = f.sum(load::<F, W>(f, out_a, vector + lane));
            }
        }
        for (index, digit) in digits.iter().enumerate() {
            if index != 0 && index % F::SUM_TERMS == 0 {
                for sum in sums.as_flattened_mut() {
                    *sum = f.fold(*sum);
                }
            }
            for lane in 0..count {
                let value = f.term(load(f, digit, vector + lane));
                for (half, keys) in sums.iter_mut().zip(keys) {
                    let key = f.term(load(f, keys[index], vector + lane));
                    half[lane] = f.accumulate(half[lane], value, key);
                }
            }
        }
        for lane in 0..count {
            store::<F, W>(f, f.finish(sums[0][lane]), out_b, vector + lane);
            store::<F, W>(f, f.finish(sums[1][lane]), out_a, vector + lane);
        }
        vector += count;
    }
}
