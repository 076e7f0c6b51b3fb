//! Exact modular arithmetic in double precision with fused multiply-add, for primes below 2^49.5.
//!
//! For h = a b rounded, l = fma(a, b, -h) is the exact rest. With q = round(h / p) the remainder is
//! a b - q p = fma(-q, p, h) + l, exact as long as it fits in 53 bits. (J. van der Hoeven,
//! G. Lecerf, G. Quintin, "Modular SIMD arithmetic in Mathemagix", 2016, section 3.3; the bounds
//! below are our own, for balanced residues and a factor with a precomputed quotient.)
//!
//! The kernels are written once over [`Lanes`], the few vector operations they need, and are
//! compiled for each width in the modules `avx2` and `avx512`.

mod butterfly;
mod field;
mod forward;
mod inverse;
mod lanes;
mod roots;
mod transform;

pub(super) use field::Fp64Field;
pub(super) use lanes::Lanes;
pub(super) use transform::Fp64Transform;

/// The smallest ring degree of the fast transforms.
pub(super) const MIN_DEGREE: usize = 256;
