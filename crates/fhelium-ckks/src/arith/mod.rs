//! Number-theoretic arithmetic: moduli, primes, transforms, pointwise kernels and base conversion.
//!
//! Everything here works on *limbs*: contiguous slices of canonical `u64` residues of one prime.
//! [`Limb`] holds one prime's ring Z_p\[X\]/(X^N + 1),
//! [`BaseConverter`] moves coefficients from one set of primes to
//! another. Both choose their kernels once, when they are made: a scalar 64-bit core that serves
//! every prime below 2^61, and vector cores for primes below 2^49.5. Every core returns canonical
//! residues, so all of them give the same bits.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod base_conversion;
mod dispatch;
mod error;
mod field;
#[cfg(target_arch = "x86_64")]
mod fp64;
mod kernels;
pub mod limb;
pub mod modulus;
pub mod order;
mod pointwise;
mod prefetch;
pub mod primes;
mod scalar;
pub mod tier;

pub use base_conversion::BaseConverter;
pub use dispatch::MAX_FAST_PRIME;
pub use error::ArithError;
pub use limb::Limb;
pub use modulus::Modulus;
pub use tier::Tier;
