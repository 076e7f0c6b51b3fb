//! Which core serves a prime.

#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512;
use super::error::ArithError;
use super::tier::Tier;

/// The largest modulus that the vector cores take, floor(2^49.5); greater primes use the scalar core
/// in every tier.
pub const MAX_FAST_PRIME: u64 = 796_131_459_065_721;

/// A core, with the proof that the CPU has its instructions.
#[derive(Debug, Clone, Copy)]
pub(super) enum Core {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl Core {
    /// The fastest core that serves primes up to `largest` in this tier.
    ///
    /// # Errors
    /// [`ArithError::UnavailableTier`].
    pub fn new(tier: Tier, largest: u64) -> Result<Self, ArithError> {
        let tier = tier.require()?;
        #[cfg(target_arch = "x86_64")]
        if largest <= MAX_FAST_PRIME {
            return Ok(match tier {
                Tier::Scalar => Core::Scalar,
                Tier::Avx2 => Avx2::new().map_or(Core::Scalar, Core::Avx2),
                Tier::Avx512 => Avx512::new().map_or(Core::Scalar, Core::Avx512),
            });
        }
        let _ = (tier, largest);
        Ok(Core::Scalar)
    }
}
