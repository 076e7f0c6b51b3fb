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
    /// An unreduced sum of products.
    type Sum: Copy;

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

    /// A sum that starts with one residue.
    fn sum(self, first: Self::Vector) -> Self::Sum;
    /// The sum plus a b.
    fn accumulate(self, sum: Self::Sum, a: Self::Vector, b: Self::Vector) -> Self::Sum;
    /// The same residue as a sum that takes [`SUM_TERMS`](Self::SUM_TERMS) more products.
    fn fold(self, sum: Self::Sum) -> Self::Sum;
    /// The sum's residue.
    fn finish(self, sum: Self::Sum) -> Self::Vector;

    /// What [`center`](Self::center) needs to know of the other prime.
    type Other: Copy;
    fn other(self, q: Modulus) -> Self::Other;
    /// Residues a modulo q, taken in (-q/2, q/2), modulo this field's prime.
    fn center(self, a: Self::Vector, q: Self::Other) -> Self::Vector;
}
