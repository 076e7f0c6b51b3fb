//! The order of a transformed limb's values, and automorphisms on it.
//!
//! The forward transform is a decimation-in-time Cooley-Tukey network with the powers of psi merged
//! (P. Longa, M. Naehrig, "Speeding up the Number Theoretic Transform for Faster Ideal
//! Lattice-Based Cryptography", 2016, algorithm 1). It leaves at index j the polynomial's value at
//! psi^(2 bitrev(j) + 1), psi being the primitive 2N-th root of
//! [`primitive_root`](super::primes::primitive_root).

use super::error::ArithError;

/// `index` with its lowest `bits` bits in reverse order.
#[inline]
pub fn bit_reverse(index: usize, bits: u32) -> usize {
    if bits == 0 {
        0
    } else {
        index.reverse_bits() >> (usize::BITS - bits)
    }
}

/// The exponent e = 2 bitrev(j) + 1 of the point psi^e whose value index j of a transformed limb of
/// length `n` (a power of two) holds.
#[inline]
pub fn evaluation_exponent(j: usize, n: usize) -> usize {
    2 * bit_reverse(j, n.trailing_zeros()) + 1
}

/// The permutation that the automorphism X -> X^g performs on a transformed limb of length `n` (a
/// power of two up to 2^31): the image has at index j what its argument has at the returned
/// vector's entry j. See [`permute`]. `g` is taken modulo 2n.
///
/// # Errors
/// [`ArithError::EvenExponent`] for an even g.
pub fn automorphism_permutation(g: u64, n: usize) -> Result<Vec<u32>, ArithError> {
    if g.is_multiple_of(2) {
        return Err(ArithError::EvenExponent { exponent: g });
    }
    let two_n = 2 * n as u64;
    let bits = n.trailing_zeros();
    // a(X^g) at psi^e is a at psi^(g e).
    let source = |j: usize| {
        let exponent = (g % two_n) * evaluation_exponent(j, n) as u64 % two_n;
        bit_reverse((exponent / 2) as usize, bits) as u32
    };
    Ok((0..n).map(source).collect())
}

/// `out[j] = src[permutation[j]]`; [`Limb::permute`](super::limb::Limb::permute) does it faster.
///
/// # Panics
/// When `out` and `permutation` differ in length or an entry of `permutation` is not below the
/// source's length.
pub fn permute(out: &mut [u64], src: &[u64], permutation: &[u32]) {
    assert_eq!(
        out.len(),
        permutation.len(),
        "output and permutation differ in length"
    );
    for (value, &index) in out.iter_mut().zip(permutation) {
        *value = src[index as usize];
    }
}
