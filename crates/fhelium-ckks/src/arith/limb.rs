//! One prime's ring Z_p\[X\]/(X^N + 1): transforms and pointwise arithmetic on slices of residues.

use std::sync::Arc;

#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2Kernels;
#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512Kernels;
use super::dispatch::{Core, MAX_FAST_PRIME};
use super::error::ArithError;
#[cfg(target_arch = "x86_64")]
use super::fp64;
use super::kernels::Kernels;
use super::modulus::Modulus;
use super::order;
use super::pointwise;
use super::scalar::{ScalarField, ScalarKernels};
use super::tier::Tier;

/// One prime p and ring degree N with the kernels that serve them.
///
/// Every slice holds canonical residues, in `[0, p)`, on entry and on return. Transforms take
/// slices of length N; pointwise methods take slices of any one length. Values in the transform
/// domain stand in the order of [`order`].
///
/// # Panics
/// Every method panics when its slices differ in length, and a transform when a length is not N:
/// lengths are the calling kernel's invariant and no input of a user reaches them unchecked.
/// Residues outside `[0, p)` give unspecified residues and nothing worse.
#[derive(Debug, Clone)]
pub struct Limb {
    modulus: Modulus,
    n: usize,
    tier: Tier,
    kernels: Arc<dyn Kernels>,
}

impl Limb {
    /// The smallest ring degree.
    pub const MIN_DEGREE: usize = 16;
    /// The largest ring degree.
    pub const MAX_DEGREE: usize = 1 << 17;

    /// The ring of degree `n`, a power of two from 16 to 2^17, over the prime `p`, with kernels of
    /// the given tier. Primes above 2^49.5 and degrees below 256 use the scalar core in every tier.
    ///
    /// # Errors
    /// What [`Modulus::new`] refuses, [`ArithError::RingDegree`], [`ArithError::NoPrimitiveRoot`]
    /// unless p = 1 (mod 2N), and [`ArithError::UnavailableTier`].
    pub fn new(n: usize, p: u64, tier: Tier) -> Result<Self, ArithError> {
        if !n.is_power_of_two() || !(Self::MIN_DEGREE..=Self::MAX_DEGREE).contains(&n) {
            let (min, max) = (Self::MIN_DEGREE, Self::MAX_DEGREE);
            return Err(ArithError::RingDegree { n, min, max });
        }
        let modulus = Modulus::new(p)?;
        let kernels: Arc<dyn Kernels> = match Core::new(tier, p)? {
            #[cfg(target_arch = "x86_64")]
            Core::Avx2(proof) if n >= fp64::MIN_DEGREE => {
                Arc::new(Avx2Kernels::new(proof, n, modulus)?)
            }
            #[cfg(target_arch = "x86_64")]
            Core::Avx512(proof) if n >= fp64::MIN_DEGREE => {
                Arc::new(Avx512Kernels::new(proof, n, modulus)?)
            }
            _ => Arc::new(ScalarKernels::new(n, modulus)?),
        };
        Ok(Self {
            modulus,
            n,
            tier,
            kernels,
        })
    }

    /// The prime p.
    #[inline]
    pub fn modulus(&self) -> Modulus {
        self.modulus
    }

    /// The ring degree N.
    #[inline]
    pub fn n(&self) -> usize {
        self.n
    }

    /// The tier whose kernels run.
    #[inline]
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Coefficients to values: the negacyclic number-theoretic transform.
    pub fn forward(&self, a: &mut [u64]) {
        assert_eq!(a.len(), self.n, "a transform takes N residues");
        self.kernels.forward(a);
    }

    /// Values to coefficients: the inverse of [`forward`](Self::forward), with its factor 1/N.
    pub fn inverse(&self, a: &mut [u64]) {
        assert_eq!(a.len(), self.n, "a transform takes N residues");
        self.kernels.inverse(a);
    }

    /// a = (forward(a) - b) w for values b and a residue w: the last step of a mod-down.
    pub fn forward_sub_mul_scalar_assign(&self, a: &mut [u64], b: &[u64], w: u64) {
        assert_eq!(a.len(), self.n, "a transform takes N residues");
        same_length(a, &[b]);
        self.kernels.forward_sub_mul(a, b, w);
    }

    /// out = (forward(src) - b) w, where src are coefficients modulo another prime q, taken in
    /// (-q/2, q/2), b values and w a residue: the last step of a rescale.
    pub fn rescale_into(&self, out: &mut [u64], src: &[u64], q: Modulus, b: &[u64], w: u64) {
        assert_eq!(out.len(), self.n, "a transform takes N residues");
        same_length(out, &[src, b]);
        if q.value() > MAX_FAST_PRIME {
            self.reduce_into(out, src, q);
            self.kernels.forward_sub_mul(out, b, w);
        } else {
            self.kernels.center_forward_sub_mul(out, src, q, b, w);
        }
    }

    /// out = a + b.
    pub fn add(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        same_length(out, &[a, b]);
        self.kernels.add(out, a, b);
    }

    /// a += b.
    pub fn add_assign(&self, a: &mut [u64], b: &[u64]) {
        same_length(a, &[b]);
        self.kernels.add_assign(a, b);
    }

    /// out = a - b.
    pub fn sub(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        same_length(out, &[a, b]);
        self.kernels.sub(out, a, b);
    }

    /// a -= b.
    pub fn sub_assign(&self, a: &mut [u64], b: &[u64]) {
        same_length(a, &[b]);
        self.kernels.sub_assign(a, b);
    }

    /// a = b - a.
    pub fn sub_from_assign(&self, a: &mut [u64], b: &[u64]) {
        same_length(a, &[b]);
        self.kernels.sub_from_assign(a, b);
    }

    /// a = -a.
    pub fn neg_assign(&self, a: &mut [u64]) {
        self.kernels.neg_assign(a);
    }

    /// out = a b, value by value.
    pub fn mul(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        same_length(out, &[a, b]);
        self.kernels.mul(out, a, b);
    }

    /// a *= b, value by value.
    pub fn mul_assign(&self, a: &mut [u64], b: &[u64]) {
        same_length(a, &[b]);
        self.kernels.mul_assign(a, b);
    }

    /// acc += a b, value by value.
    pub fn mul_add_assign(&self, acc: &mut [u64], a: &[u64], b: &[u64]) {
        same_length(acc, &[a, b]);
        self.kernels.mul_add_assign(acc, a, b);
    }

    /// out = w a for a residue w.
    pub fn mul_scalar(&self, out: &mut [u64], a: &[u64], w: u64) {
        same_length(out, &[a]);
        self.kernels.mul_scalar(out, a, w);
    }

    /// a *= w for a residue w.
    pub fn mul_scalar_assign(&self, a: &mut [u64], w: u64) {
        self.kernels.mul_scalar_assign(a, w);
    }

    /// acc += w a for a residue w.
    pub fn mul_scalar_add_assign(&self, acc: &mut [u64], a: &[u64], w: u64) {
        same_length(acc, &[a]);
        self.kernels.mul_scalar_add_assign(acc, a, w);
    }

    /// Adds the residue w to every value.
    pub fn add_scalar_assign(&self, a: &mut [u64], w: u64) {
        self.kernels.add_scalar_assign(a, w);
    }

    /// a = (a - b) w for a residue w: the last step of a rescale or mod-down.
    pub fn sub_mul_scalar_assign(&self, a: &mut [u64], b: &[u64], w: u64) {
        same_length(a, &[b]);
        self.kernels.sub_mul_scalar_assign(a, b, w);
    }

    /// The degree-2 product of two pairs: c0 = a0 b0, c1 = a0 b1 + a1 b0, c2 = a1 b1.
    #[allow(clippy::too_many_arguments)]
    pub fn tensor(
        &self,
        c0: &mut [u64],
        c1: &mut [u64],
        c2: &mut [u64],
        a0: &[u64],
        a1: &[u64],
        b0: &[u64],
        b1: &[u64],
    ) {
        same_length(c0, &[c1, c2, a0, a1, b0, b1]);
        self.kernels.tensor([c0, c1, c2], [a0, a1], [b0, b1]);
    }

    /// The degree-2 square of a pair: c0 = a0^2, c1 = 2 a0 a1, c2 = a1^2.
    pub fn square_tensor(
        &self,
        c0: &mut [u64],
        c1: &mut [u64],
        c2: &mut [u64],
        a0: &[u64],
        a1: &[u64],
    ) {
        same_length(c0, &[c1, c2, a0, a1]);
        self.kernels.square_tensor([c0, c1, c2], [a0, a1]);
    }

    /// The inner products over digits of a key switch, reduced once:
    /// `out_b = sum digits[d] keys_b[d]`, `out_a = sum digits[d] keys_a[d]`.
    ///
    /// Panics also when the number of digits differs from either number of keys.
    pub fn inner_product_pair(
        &self,
        out_b: &mut [u64],
        out_a: &mut [u64],
        digits: &[&[u64]],
        keys_b: &[&[u64]],
        keys_a: &[&[u64]],
    ) {
        check_inner_product(out_b, out_a, digits, keys_b, keys_a);
        self.kernels
            .inner_product_pair([out_b, out_a], digits, [keys_b, keys_a], false);
    }

    /// As [`inner_product_pair`](Self::inner_product_pair), added to what `out_b` and `out_a` hold.
    pub fn inner_product_pair_add_assign(
        &self,
        out_b: &mut [u64],
        out_a: &mut [u64],
        digits: &[&[u64]],
        keys_b: &[&[u64]],
        keys_a: &[&[u64]],
    ) {
        check_inner_product(out_b, out_a, digits, keys_b, keys_a);
        self.kernels
            .inner_product_pair([out_b, out_a], digits, [keys_b, keys_a], true);
    }

    /// Residues `src` modulo another prime q, taken in (-q/2, q/2), modulo p.
    pub fn reduce_into(&self, out: &mut [u64], src: &[u64], q: Modulus) {
        same_length(out, &[src]);
        if q.value() > MAX_FAST_PRIME {
            pointwise::reduce(
                ScalarField {
                    modulus: self.modulus,
                },
                out,
                src,
                q,
            );
        } else {
            self.kernels.reduce(out, src, q);
        }
    }

    /// The residues of the integers nearest to `factor * src`, ties to even. `factor` is a power of
    /// two; magnitudes of 2^62 and more, infinities and NaNs give unspecified residues.
    pub fn round_into(&self, out: &mut [u64], src: &[f64], factor: f64) {
        assert_eq!(out.len(), src.len(), "operands differ in length");
        self.kernels.round(out, src, factor);
    }

    /// `out[j] = src[permutation[j]]`, fast for the permutations of
    /// [`automorphism_permutation`](Self::automorphism_permutation).
    ///
    /// Panics also when an entry of `permutation` is not below the slices' length.
    pub fn permute(&self, out: &mut [u64], src: &[u64], permutation: &[u32]) {
        same_length(out, &[src]);
        assert_eq!(
            out.len(),
            permutation.len(),
            "output and permutation differ in length"
        );
        self.kernels.permute(out, src, permutation);
    }

    /// The exponent e of the point psi^e whose value index `j` of a transformed limb holds.
    #[inline]
    pub fn evaluation_exponent(&self, j: usize) -> usize {
        order::evaluation_exponent(j, self.n)
    }

    /// The permutation of a transformed limb under X -> X^g: see
    /// [`order::automorphism_permutation`].
    ///
    /// # Errors
    /// [`ArithError::EvenExponent`] for an even g.
    pub fn automorphism_permutation(&self, g: u64) -> Result<Vec<u32>, ArithError> {
        order::automorphism_permutation(g, self.n)
    }
}

#[track_caller]
fn same_length(first: &[u64], others: &[&[u64]]) {
    for other in others {
        assert_eq!(first.len(), other.len(), "operands differ in length");
    }
}

#[track_caller]
fn check_inner_product(
    out_b: &[u64],
    out_a: &[u64],
    digits: &[&[u64]],
    keys_b: &[&[u64]],
    keys_a: &[&[u64]],
) {
    assert_eq!(
        digits.len(),
        keys_b.len(),
        "digits and keys differ in number"
    );
    assert_eq!(
        digits.len(),
        keys_a.len(),
        "digits and keys differ in number"
    );
    same_length(out_b, &[out_a]);
    same_length(out_b, digits);
    same_length(out_b, keys_b);
    same_length(out_b, keys_a);
}
