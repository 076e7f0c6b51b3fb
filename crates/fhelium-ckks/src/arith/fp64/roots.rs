//! The transforms' powers of psi, in the order in which the passes use them.

use super::field::Fp64Field;
use super::lanes::Lanes;
use crate::arith::modulus::Modulus;
use crate::arith::scalar::ntt::bit_reversed_powers;

/// Vectors in the blocks whose last layers run in registers.
pub(super) const TAIL: usize = 4;

/// How many of these blocks run in step.
pub(super) const IN_STEP: usize = 4;

/// The powers of psi, or of its inverse, balanced.
#[derive(Debug, Clone)]
pub(super) struct Roots<const W: usize> {
    /// Entry k is psi^bitrev(k), for the layers whose butterflies stand a vector or more apart.
    pub whole: Vec<f64>,
    /// For each block of four vectors, for each of its two pairs, for each layer within a vector:
    /// the factors in the order that [`Lanes::split`] brings the elements in.
    within: Vec<[f64; W]>,
}

/// The roots of a few blocks of four vectors: of the layers between vectors, outer and inner, and of
/// those within them.
pub(super) type TailRoots<'a, const W: usize> =
    (&'a [f64; IN_STEP], &'a [[f64; 2]], &'a [[f64; W]]);

impl<const W: usize> Roots<W> {
    /// The powers of `base`, a 2N-th root of unity, for degree `n`.
    pub fn new<L: Lanes<W>>(field: Fp64Field<L>, n: usize, modulus: Modulus, base: u64) -> Self {
        let powers = bit_reversed_powers(modulus, base, n);
        let powers: Vec<f64> = powers.into_iter().map(|w| field.balanced(w)).collect();
        let order = split_order(field.lanes);
        let mut within = Vec::with_capacity(n / (2 * W) * order.len());
        for pair in 0..n / (2 * W) {
            for (layer, elements) in order.iter().enumerate() {
                let span = 2 * (W >> (layer + 1));
                let first = (n + pair * 2 * W) / span;
                within.push(elements.map(|element| powers[first + element / span]));
            }
        }
        let whole = powers[..n / W].to_vec();
        Roots { whole, within }
    }

    /// The roots of `groups` blocks of four vectors, of which the first one's outer root has the
    /// index `first`; there are `all_groups` such blocks in all.
    #[inline(always)]
    pub fn tails(
        &self,
        first: usize,
        groups: usize,
        all_groups: usize,
    ) -> impl Iterator<Item = TailRoots<'_, W>> {
        let block = 2 * W.trailing_zeros() as usize;
        let within = self.within[(first - all_groups) * block..].chunks_exact(IN_STEP * block);
        let (outer, _) = self.whole[first..first + groups].as_chunks();
        let (inner, _) = self.whole[2 * first..2 * (first + groups)].as_chunks::<2>();
        let inner = inner.chunks_exact(IN_STEP);
        outer
            .iter()
            .zip(inner)
            .zip(within)
            .map(|((outer, inner), within)| (outer, inner, within))
    }
}

/// For each layer within a vector, which elements of a pair of vectors the lanes of the second
/// operand hold after [`Lanes::split`].
fn split_order<L: Lanes<W>, const W: usize>(lanes: L) -> Vec<[usize; W]> {
    let elements = |first: usize| std::array::from_fn(|lane| (first + lane) as f64);
    let (mut a, mut b) = (
        lanes.load_float(&elements(0)),
        lanes.load_float(&elements(W)),
    );
    (0..W.trailing_zeros())
        .map(|layer| {
            (a, b) = lanes.split(layer, a, b);
            let mut out = [0; W];
            lanes.store_float(b, &mut out);
            out.map(|bits| f64::from_bits(bits) as usize)
        })
        .collect()
}
