//! Pointwise kernels, written once for every core.
//!
//! Lengths are the caller's promise: [`Limb`](super::limb::Limb) checks them.

use super::field::{Field, load, store};
use super::modulus::Modulus;
use super::order;
use super::prefetch::prefetch;

/// Evaluates a block of code for each vector of the named slices: the block sees each source's
/// vector under the source's name, its values are stored to the outputs. A macro and not a
/// higher-order function, because a closure would not take on its caller's vector instructions.
macro_rules! for_vectors {
    ($field:ident, $w:ident, [$($out:ident),+] = [$($src:ident),+] $body:block) => {{
        let len = [$($out.len()),+][0];
        $(let $out = &mut $out[..len];)+
        $(let $src = &$src[..len];)+
        for vector in 0..len / $w {
            for_vectors!(@step false, $field, $w, vector, [$($out),+] = [$($src),+] $body);
        }
        if len % $w != 0 {
            for_vectors!(@step true, $field, $w, 0, [$($out),+] = [$($src),+] $body);
        }
    }};
    ($field:ident, $w:ident, update $out:ident with [$($src:ident),*] $body:block) => {{
        let len = $out.len();
        $(let $src = &$src[..len];)*
        for vector in 0..len / $w {
            for_vectors!(@update false, $field, $w, vector, $out [$($src),*] $body);
        }
        if len % $w != 0 {
            for_vectors!(@update true, $field, $w, 0, $out [$($src),*] $body);
        }
    }};
    (@step $rest:literal, $field:ident, $w:ident, $vector:expr,
        [$($out:ident),+] = [$($src:ident),+] $body:block) => {
        let values = {
            $(let $src = load::<_, $w, $rest>($field, $src, $vector);)+
            $body
        };
        let mut values = values.into_iter();
        $(if let Some(value) = values.next() {
            store::<_, $w, $rest>($field, value, $out, $vector);
        })+
    };
    (@update $rest:literal, $field:ident, $w:ident, $vector:expr,
        $out:ident [$($src:ident),*] $body:block) => {
        let value = {
            let $out = load::<_, $w, $rest>($field, $out, $vector);
            $(let $src = load::<_, $w, $rest>($field, $src, $vector);)*
            $body
        };
        store::<_, $w, $rest>($field, value, $out, $vector);
    };
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

#[inline(always)]
pub(super) fn round<F: Field<W>, const W: usize>(f: F, out: &mut [u64], src: &[f64], factor: f64) {
    let (whole, rest) = src.as_chunks::<W>();
    for (vector, src) in whole.iter().enumerate() {
        store::<F, W, false>(f, f.round(src, factor), out, vector);
    }
    if !rest.is_empty() {
        let mut padded = [0.0; W];
        padded[..rest.len()].copy_from_slice(rest);
        store::<F, W, true>(f, f.round(&padded, factor), out, 0);
    }
}

/// `out[j] = src[permutation[j]]`. Automorphisms move aligned groups of `W` values as groups.
#[inline(always)]
pub(super) fn permute<F: Field<W>, const W: usize>(
    f: F,
    out: &mut [u64],
    src: &[u64],
    permutation: &[u32],
) {
    let (groups, rest) = permutation.as_chunks::<W>();
    for (vector, indices) in groups.iter().enumerate() {
        match f.gather(src, indices) {
            Some(values) => store::<F, W, false>(f, values, out, vector),
            None => order::permute(&mut out[vector * W..][..W], src, indices),
        }
    }
    let done = groups.len() * W;
    order::permute(&mut out[done..], src, rest);
}

/// Residues in a cache line.
const CACHE_LINE: usize = 8;

/// How many residues ahead the inner product asks for its operands: 1 KiB.
const PREFETCH_DISTANCE: usize = 128;

/// How many vectors of each half one step of the inner product keeps in registers.
const VECTORS: usize = 2;

/// How many digits one pass over a block takes. Rows of different digits and keys often lie a
/// multiple of 4 KiB apart and then share the sets of a level-1 cache: three rows for each of four
/// digits fit its ways.
const GROUP: usize = 4;

/// Residues of a block: the two halves stay in a level-1 cache from one group of digits to the next.
const BLOCK: usize = 1024;

/// The two halves of an inner product: `out[h] (+)= sum over d of digits[d] keys[h][d]`.
#[inline(always)]
pub(super) fn inner_product_pair<F: Field<W>, const W: usize>(
    f: F,
    [out_b, out_a]: [&mut [u64]; 2],
    digits: &[&[u64]],
    [keys_b, keys_a]: [&[&[u64]]; 2],
    accumulate: bool,
) {
    const { assert!(GROUP <= F::SUM_TERMS && BLOCK.is_multiple_of(W * VECTORS)) };
    if !accumulate && digits.is_empty() {
        out_b.fill(0);
        out_a.fill(0);
    }
    let len = out_b.len();
    let whole = len / W;
    let mut out = [out_b, out_a];
    for start in (0..len).step_by(BLOCK) {
        let (first, last) = (start / W, whole.min((start + BLOCK) / W));
        let groups = digits
            .chunks(GROUP)
            .zip(keys_b.chunks(GROUP))
            .zip(keys_a.chunks(GROUP));
        for (group, ((digits, keys_b), keys_a)) in groups.enumerate() {
            let (keys, add) = ([keys_b, keys_a], accumulate || group > 0);
            let blocked = first + (last - first) / VECTORS * VECTORS;
            for vector in (first..blocked).step_by(VECTORS) {
                inner_product_step::<F, W, VECTORS, false>(f, &mut out, digits, keys, add, vector);
            }
            for vector in blocked..last {
                inner_product_step::<F, W, 1, false>(f, &mut out, digits, keys, add, vector);
            }
            if start + BLOCK >= len && len % W != 0 {
                inner_product_step::<F, W, 1, true>(f, &mut out, digits, keys, add, 0);
            }
        }
    }
}

/// One vector, or a few, of at most [`GROUP`] products.
#[inline(always)]
fn inner_product_step<F: Field<W>, const W: usize, const COUNT: usize, const REST: bool>(
    f: F,
    out: &mut [&mut [u64]; 2],
    digits: &[&[u64]],
    [keys_b, keys_a]: [&[&[u64]]; 2],
    accumulate: bool,
    vector: usize,
) {
    let mut sums = [[f.sum(f.splat(0)); COUNT]; 2];
    if accumulate {
        for (sums, out) in sums.iter_mut().zip(out.iter()) {
            for (index, sum) in sums.iter_mut().enumerate() {
                *sum = f.sum(load::<F, W, REST>(f, out, vector + index));
            }
        }
    }
    for ((digit, key_b), key_a) in digits.iter().zip(keys_b).zip(keys_a) {
        for line in (0..COUNT * W).step_by(CACHE_LINE) {
            let ahead = vector * W + line + PREFETCH_DISTANCE;
            prefetch(digit, ahead);
            prefetch(key_b, ahead);
            prefetch(key_a, ahead);
        }
        let [sums_b, sums_a] = &mut sums;
        for (index, (b, a)) in sums_b.iter_mut().zip(sums_a).enumerate() {
            let value = f.term(load::<F, W, REST>(f, digit, vector + index));
            *b = f.accumulate(
                *b,
                value,
                f.term(load::<F, W, REST>(f, key_b, vector + index)),
            );
            *a = f.accumulate(
                *a,
                value,
                f.term(load::<F, W, REST>(f, key_a, vector + index)),
            );
        }
    }
    for (sums, out) in sums.into_iter().zip(out) {
        for (index, sum) in sums.into_iter().enumerate() {
            store::<F, W, REST>(f, f.finish(sum), out, vector + index);
        }
    }
}
