//! The negacyclic transform in double precision.
//!
//! The network is that of [`order`](crate::arith::order), two layers to a pass over memory, the
//! last layers of a block of four vectors in registers. A value x is lazy: an integer with
//! |x| <= B p. A butterfly adds 0.5 + 0.089 B to B in the forward direction and doubles B in the
//! inverse one, and a factor takes B up to 5.6 (see [`Fp64Field::mul_factor`]); the comments at
//! each pass say which bound enters and which leaves, in units of p.
//!
//! A long limb first takes passes over its whole length until blocks fit in a level-1 cache, then
//! each block takes all its other passes.

use super::field::Fp64Field;
use super::lanes::Lanes;
use super::roots::{Roots, TAIL};
use crate::arith::error::ArithError;
use crate::arith::modulus::Modulus;
use crate::arith::primes;

/// Residues in a block that stays in a level-1 cache with its roots.
const BLOCK: usize = 2048;

/// The transform of one prime and length.
#[derive(Debug, Clone)]
pub(crate) struct Fp64Transform<L, const W: usize> {
    pub(super) field: Fp64Field<L>,
    pub(super) forward: Roots<W>,
    pub(super) inverse: Roots<W>,
    /// 1 / N and psi^-bitrev(1) / N, balanced.
    pub(super) inverse_n: f64,
    pub(super) inverse_n_root: f64,
}

impl<L: Lanes<W>, const W: usize> Fp64Transform<L, W> {
    /// Layers whose butterflies stand less than a vector apart.
    pub(super) const WITHIN: usize = W.trailing_zeros() as usize;

    /// The transform of length `n`, a power of two from 256, modulo a prime below 2^49.5.
    pub fn new(field: Fp64Field<L>, n: usize, modulus: Modulus) -> Result<Self, ArithError> {
        let psi = primes::primitive_root(modulus, 2 * n as u64)?;
        let inverse_psi = modulus.inverse(psi)?;
        let inverse_n = modulus.inverse(modulus.reduce(n as u64))?;
        let inverse_root = modulus.pow(inverse_psi, n as u64 / 2);
        Ok(Self {
            field,
            forward: Roots::new(field, n, modulus, psi),
            inverse: Roots::new(field, n, modulus, inverse_psi),
            inverse_n: field.balanced(inverse_n),
            inverse_n_root: field.balanced(modulus.mul(inverse_n, inverse_root)),
        })
    }

    /// Into how many blocks the passes over the whole length divide `vectors` vectors.
    #[inline(always)]
    pub(super) fn blocks(vectors: usize) -> usize {
        let mut blocks = if (vectors / TAIL).trailing_zeros() % 2 == 1 {
            2
        } else {
            4
        };
        while vectors / blocks > BLOCK / W {
            blocks *= 4;
        }
        blocks
    }
}
