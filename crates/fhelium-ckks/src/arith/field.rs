//! What a core must know about one prime: arithmetic on `W` residues at once.
//!
//! The pointwise kernels and the base conversion are written once over this trait. The scalar core
//! has W = 1, the vector cores have W = 4 or 8.

use super::modulus::Modulus;

/// Arithmetic modulo one prime on vectors of `W` canonical residues. Every operation takes and
/// returns canonical residues unless it says otherwise.
pub(super) trait Field<const W: usize>: Copy {
    /// `W` canonical residues.
    type Vector: Copy;
    /// A fixed factor with what the core precomputes for it.
    type Constant: Copy;
    /// An operand of a sum of products.
    type Term: Copy;
    /// An unreduced sum of products.
    type Sum: Copy;
    /// `W` double-precision numbers.
    type Real: Copy;

    /// How many products a sum takes before [`fold`](Self::fold) must run.
    const SUM_TERMS: usize;

    fn load(self, residues: &[u64; W]) -> Self::Vector;
    fn store(self, a: Self::Vector, residues: &mut [u64; W]);
    fn constant(self, w: u64) -> Self::Constant;
    /// The same residue `W` times.
    fn splat(self, w: u64) -> Self::Vector;

    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn mul_constant(self, a: Self::Vector, w: Self::Constant) -> Self::Vector;

    /// A residue, of this prime or another one below the core's bound, as a term.
    fn term(self, a: Self::Vector) -> Self::Term;
    /// A sum that starts with one residue.
    fn sum(self, first: Self::Vector) -> Self::Sum;
    /// The sum plus a b.
    fn accumulate(self, sum: Self::Sum, a: Self::Term, b: Self::Term) -> Self::Sum;
    /// The same residue as a sum that takes [`SUM_TERMS`](Self::SUM_TERMS) more products.
    fn fold(self, sum: Self::Sum) -> Self::Sum;
    /// The sum's residue.
    fn finish(self, sum: Self::Sum) -> Self::Vector;

    /// A residue in the representation of a term in memory.
    fn term_bits(self, w: u64) -> u64;
    /// The term with this representation, `W` times.
    fn splat_term(self, bits: u64) -> Self::Term;
    fn load_term(self, bits: &[u64; W]) -> Self::Term;
    fn store_term(self, a: Self::Term, bits: &mut [u64; W]);

    fn zero_real(self) -> Self::Real;
    fn load_real(self, bits: &[u64; W]) -> Self::Real;
    fn store_real(self, a: Self::Real, bits: &mut [u64; W]);
    /// sum + round(a) factor, in double precision with each step rounded to nearest.
    fn add_quotient(self, sum: Self::Real, a: Self::Term, factor: f64) -> Self::Real;
    /// The nearest integers of numbers in [0, 2^51).
    fn round_to_term(self, a: Self::Real) -> Self::Term;

    /// The residues of the integers nearest to factor a, ties to even, for magnitudes below 2^62 and
    /// a factor that is a power of two.
    fn round(self, a: &[f64; W], factor: f64) -> Self::Vector;

    /// The residues at these indices of a slice, if all indices lie in one aligned group of `W`.
    fn gather(self, src: &[u64], indices: &[u32; W]) -> Option<Self::Vector>;

    /// What [`center`](Self::center) needs to know of the other prime.
    type Other: Copy;
    fn other(self, q: Modulus) -> Self::Other;
    /// Residues a modulo q, taken in (-q/2, q/2), modulo this field's prime.
    fn center(self, a: Self::Vector, q: Self::Other) -> Self::Vector;
}

/// Adding this to a double of magnitude up to 2^51 leaves its nearest integer in the lowest bits;
/// subtracting it again gives that integer: 2^52 + 2^51.
pub(super) const ROUND: f64 = 6_755_399_441_055_744.0;

/// Loads vector number `vector` of a slice, or with `REST` what the slice has beyond its whole
/// vectors, filled up with zeros. Two cases at compile time, so that no loop pays for the second.
#[inline(always)]
pub(super) fn load<F: Field<W>, const W: usize, const REST: bool>(
    f: F,
    slice: &[u64],
    vector: usize,
) -> F::Vector {
    let (whole, rest) = slice.as_chunks::<W>();
    if REST {
        let mut padded = [0; W];
        padded[..rest.len()].copy_from_slice(rest);
        f.load(&padded)
    } else {
        f.load(&whole[vector])
    }
}

/// Stores what [`load`] loads.
#[inline(always)]
pub(super) fn store<F: Field<W>, const W: usize, const REST: bool>(
    f: F,
    value: F::Vector,
    slice: &mut [u64],
    vector: usize,
) {
    let (whole, rest) = slice.as_chunks_mut::<W>();
    if REST {
        let mut padded = [0; W];
        f.store(value, &mut padded);
        rest.copy_from_slice(&padded[..rest.len()]);
    } else {
        f.store(value, &mut whole[vector]);
    }
}
