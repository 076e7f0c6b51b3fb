//! What can be wrong with a modulus, a ring, a tier or a basis.

use thiserror::Error;

/// A refused modulus, ring degree, CPU tier or basis.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ArithError {
    /// The modulus is not an odd prime.
    #[error("modulus {value} is not an odd prime; choose one with primes::primes_near")]
    NotAnOddPrime {
        /// The refused modulus.
        value: u64,
    },
    /// The modulus does not leave the headroom that the 64-bit core needs.
    #[error("modulus {value} is too large: expected a prime below 2^61")]
    ModulusTooLarge {
        /// The refused modulus.
        value: u64,
    },
    /// The ring degree is not a power of two in the supported range.
    #[error("ring degree {n} is not supported: expected a power of two from {min} to {max}")]
    RingDegree {
        /// The refused degree N.
        n: usize,
        /// The smallest supported degree.
        min: usize,
        /// The largest supported degree.
        max: usize,
    },
    /// The prime has no primitive 2N-th root of unity.
    #[error(
        "prime {value} has no primitive {two_n}-th root of unity: expected a prime congruent to 1 \
         modulo {two_n}; choose one with primes::primes_near"
    )]
    NoPrimitiveRoot {
        /// The refused prime.
        value: u64,
        /// The order 2N that was asked for.
        two_n: u64,
    },
    /// Zero has no inverse.
    #[error(
        "{value} has no inverse modulo {modulus}: expected a value that is not a multiple of it"
    )]
    NotInvertible {
        /// The value to invert.
        value: u64,
        /// The modulus.
        modulus: u64,
    },
    /// A floating-point number that is not an integer has no residue.
    #[error("{value} has no residue modulo {modulus}: expected a finite integer; round it first")]
    NotAnInteger {
        /// The refused number, as text.
        value: String,
        /// The modulus.
        modulus: u64,
    },
    /// X -> X^g is an automorphism for odd g only.
    #[error("{exponent} is not the exponent of an automorphism X -> X^g: expected an odd number")]
    EvenExponent {
        /// The refused exponent.
        exponent: u64,
    },
    /// A tier's name that this build does not know.
    #[error(
        "CPU tier {name:?} is unknown: expected one of {available}; set FHELIUM_CPU_TIER to one of them or unset it"
    )]
    UnknownTier {
        /// The name that was found.
        name: String,
        /// The tiers that this CPU runs, comma-separated.
        available: String,
    },
    /// A tier that this CPU cannot run.
    #[error(
        "CPU tier {name} is not available on this CPU: expected one of {available}; set FHELIUM_CPU_TIER to one of them or unset it"
    )]
    UnavailableTier {
        /// The tier that was asked for.
        name: &'static str,
        /// The tiers that this CPU runs, comma-separated.
        available: String,
    },
    /// A basis without primes.
    #[error("the {role} basis of a base conversion is empty: expected at least one prime")]
    EmptyBasis {
        /// Which basis: `source` or `target`.
        role: &'static str,
    },
    /// The same prime twice in one source basis, so the Chinese remainder theorem does not apply.
    #[error(
        "prime {value} appears twice in the source basis of a base conversion: expected distinct primes"
    )]
    RepeatedPrime {
        /// The repeated prime.
        value: u64,
    },
    /// More source primes than the accumulators hold.
    #[error("the source basis of a base conversion has {count} primes: expected at most {max}")]
    BasisTooLarge {
        /// How many primes were given.
        count: usize,
        /// How many are supported.
        max: usize,
    },
}
