//! How large a modulus a ring degree carries at a security level.
//!
//! Source: J.-P. Bossuat et al., "Security Guidelines for Implementing Homomorphic Encryption",
//! IACR Communications in Cryptology 2024 (ePrint 2024/463), the table for uniform ternary secrets
//! and errors of standard deviation 3.19, classical attacks. Special primes count: an evaluation
//! key is a sample over the whole modulus QP.

use std::fmt;

/// The standard deviation of errors that the table is for, and that the sampler uses.
pub const ERROR_STANDARD_DEVIATION: f64 = 3.19;

/// The smallest ring degree of the table, as a power of two.
pub const MIN_LOG_N: u32 = 10;

/// The largest ring degree of the table, as a power of two.
pub const MAX_LOG_N: u32 = 17;

/// Largest log2(QP) for N = 2^10 ... 2^17; 0 where the guidelines give none.
const BOUNDS: [(SecurityLevel, [u32; 8]); 3] = [
    (
        SecurityLevel::Bits128,
        [26, 53, 106, 214, 430, 868, 1747, 3523],
    ),
    (
        SecurityLevel::Bits192,
        [0, 36, 73, 147, 297, 597, 1199, 2411],
    ),
    (
        SecurityLevel::Bits256,
        [0, 27, 56, 114, 230, 462, 929, 1866],
    ),
];

/// A security level of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecurityLevel {
    /// 128 bits, the default.
    #[default]
    Bits128,
    /// 192 bits.
    Bits192,
    /// 256 bits.
    Bits256,
}

impl SecurityLevel {
    /// The level with that many bits, if the table has it: 128, 192 or 256.
    pub const fn from_bits(bits: u32) -> Option<Self> {
        match bits {
            128 => Some(SecurityLevel::Bits128),
            192 => Some(SecurityLevel::Bits192),
            256 => Some(SecurityLevel::Bits256),
            _ => None,
        }
    }

    /// Its bits.
    pub const fn bits(self) -> u32 {
        match self {
            SecurityLevel::Bits128 => 128,
            SecurityLevel::Bits192 => 192,
            SecurityLevel::Bits256 => 256,
        }
    }
}

impl fmt::Display for SecurityLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-bit", self.bits())
    }
}

/// The largest log2(QP) at N = 2^`log_n`; `None` where the table has no entry.
pub fn max_log_qp(log_n: u32, security: SecurityLevel) -> Option<u32> {
    let index = log_n.checked_sub(MIN_LOG_N)? as usize;
    let (_, row) = BOUNDS.iter().find(|(level, _)| *level == security)?;
    row.get(index).copied().filter(|&bound| bound > 0)
}

/// The highest level of the table that N = 2^`log_n` gives with a modulus of `log_qp` bits; `None`
/// when it is below every row.
pub fn security_of(log_n: u32, log_qp: f64) -> Option<SecurityLevel> {
    BOUNDS
        .iter()
        .rev()
        .map(|&(level, _)| level)
        .find(|&level| max_log_qp(log_n, level).is_some_and(|bound| log_qp <= f64::from(bound)))
}

/// The smallest ring degree, as a power of two, that carries `log_qp` bits.
pub fn smallest_log_n(log_qp: f64, security: SecurityLevel) -> Option<u32> {
    (MIN_LOG_N..=MAX_LOG_N)
        .find(|&log_n| max_log_qp(log_n, security).is_some_and(|bound| log_qp <= f64::from(bound)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bound in force must not be looser than a stricter level's, or than a smaller ring's.
    #[test]
    fn bounds_fall_with_security_and_grow_with_the_ring() {
        for log_n in MIN_LOG_N..=MAX_LOG_N {
            let at = |level| max_log_qp(log_n, level).unwrap_or(0);
            assert!(at(SecurityLevel::Bits128) > at(SecurityLevel::Bits192));
            assert!(at(SecurityLevel::Bits192) >= at(SecurityLevel::Bits256));
            for (level, _) in BOUNDS {
                assert!(max_log_qp(log_n + 1, level).unwrap_or(u32::MAX) > at(level));
            }
        }
        assert_eq!(max_log_qp(14, SecurityLevel::Bits128), Some(430));
        assert_eq!(max_log_qp(9, SecurityLevel::Bits128), None);
        assert_eq!(max_log_qp(18, SecurityLevel::Bits128), None);
        assert_eq!(max_log_qp(10, SecurityLevel::Bits192), None);
    }

    #[test]
    fn security_changes_exactly_at_the_bounds() {
        assert_eq!(security_of(14, 230.0), Some(SecurityLevel::Bits256));
        assert_eq!(security_of(14, 230.01), Some(SecurityLevel::Bits192));
        assert_eq!(security_of(14, 430.0), Some(SecurityLevel::Bits128));
        assert_eq!(security_of(14, 430.01), None);
        assert_eq!(security_of(16, 2253.0), None);
        assert_eq!(smallest_log_n(2253.0, SecurityLevel::Bits128), Some(17));
        assert_eq!(smallest_log_n(4000.0, SecurityLevel::Bits128), None);
    }
}
