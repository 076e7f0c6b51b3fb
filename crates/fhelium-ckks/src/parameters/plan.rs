//! Which primes and digits serve a depth and a scale best.

use super::{MAX_PRIME_DRIFT_BITS, bits_of};
use crate::arith::primes;
use crate::error::{CkksError, Result};
use fhelium_state::Scale;
use std::collections::BTreeSet;

pub(super) use fhelium_state::{DIGIT_SLACK_BITS, digit_size};

/// Primes below 2^49.5 run in the fast vector cores.
pub(super) const FAST_BITS: f64 = 49.5;

/// The largest special primes, where the level primes are outside the fast range anyway.
const WIDE_BITS: f64 = 60.0;

/// The smallest special primes that are considered: at every ring degree there are some.
const LEAST_SPECIAL_BITS: f64 = 24.0;

/// Cost of a transform by a prime outside the fast range, that of a fast one being 1.
const WIDE_COST: f64 = 4.0;

/// Cost of one multiply-accumulate over a limb beside its transform.
const MULTIPLY_COST: f64 = 0.1;

/// Special primes and the digits that they allow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Special {
    /// How many special primes.
    pub count: usize,
    /// They lie just below 2 to this power.
    pub bits: f64,
}

/// The primes of the levels, moduli[1..]: 1 modulo 2N, each the unused prime nearest to what keeps
/// the scale of repeated squaring nominal.
///
/// With S the scale at a level, a square rescaled by q has scale S^2 / q; q is chosen nearest to
/// S^2 / nominal, so that an offset at one level is undone at the next instead of doubling.
pub(super) fn level_primes(
    log_n: u32,
    depth: usize,
    scale_bits: u32,
    used: &mut BTreeSet<u64>,
) -> Result<Vec<u64>> {
    let nominal = Scale::from_bits(scale_bits);
    let mut found = Vec::with_capacity(depth);
    // log2(S / nominal).
    let mut offset = 0.0f64;
    for _ in 0..depth {
        let target = (f64::from(scale_bits) + 2.0 * offset).exp2().round() as u64;
        let prime = primes::primes_near(target, log_n + 1)
            .take_while(|&prime| drift(prime, &nominal) <= MAX_PRIME_DRIFT_BITS)
            .find(|prime| !used.contains(prime));
        let Some(prime) = prime else {
            return Err(CkksError::Parameter {
                argument: "scale_bits",
                found: scale_bits.to_string(),
                expected: format!(
                    "a larger one for depth {depth} at N = 2^{log_n}: only {} primes that are 1 modulo \
                     2N lie within {MAX_PRIME_DRIFT_BITS} bits of 2^{scale_bits}",
                    found.len()
                ),
            });
        };
        used.insert(prime);
        found.push(prime);
        offset = 2.0 * offset - log2_over(prime, &nominal);
    }
    // The first rescale divides by the last modulus.
    found.reverse();
    Ok(found)
}

/// The largest unused prime below 2^`bits` that is 1 modulo 2N.
pub(super) fn prime_below(log_n: u32, bits: f64, used: &mut BTreeSet<u64>) -> Option<u64> {
    let prime =
        primes::primes_below(bits.exp2() as u64, log_n + 1).find(|prime| !used.contains(prime))?;
    used.insert(prime);
    Some(prime)
}

/// The special primes with the cheapest key switch at full level that `room` bits hold.
pub(super) fn special(modulus_bits: &[f64], room: f64, count: Option<usize>) -> Option<Special> {
    let counts = match count {
        Some(count) => count..=count,
        None => 1..=modulus_bits.len().max(2),
    };
    let candidates = counts.flat_map(|count| {
        [FAST_BITS, WIDE_BITS].map(|cap| Special {
            count,
            bits: cap.min(room / count as f64),
        })
    });
    let mut best: Option<(f64, Special)> = None;
    for candidate in candidates.filter(|candidate| candidate.bits >= LEAST_SPECIAL_BITS) {
        let total = candidate.bits * candidate.count as f64;
        let Some(size) = digit_size(modulus_bits, total) else {
            continue;
        };
        let cost = key_switch_cost(modulus_bits, candidate, size);
        if best.is_none_or(|(least, _)| cost < least) {
            best = Some((cost, candidate));
        }
    }
    best.map(|(_, special)| special)
}

/// Cost of a key switch at full level, in transforms of one fast limb.
///
/// With l primes in digits of a, and k special primes: the input is transformed back (l), each digit
/// forward to the l + k - a other primes, and of the two sums k limbs back and l forward; every
/// digit multiplies two halves of the key over l + k limbs; base conversions take a multiplication
/// for each pair of source and target prime.
fn key_switch_cost(modulus_bits: &[f64], special: Special, digit_size: usize) -> f64 {
    let weight = |bits: f64| if bits > FAST_BITS { WIDE_COST } else { 1.0 };
    let level_weight: f64 = modulus_bits.iter().map(|&bits| weight(bits)).sum();
    let special_weight = special.count as f64 * weight(special.bits);
    let all = level_weight + special_weight;
    let mut cost = level_weight + 2.0 * (special_weight + level_weight);
    cost += MULTIPLY_COST * 2.0 * special.count as f64 * level_weight;
    for digit in modulus_bits.chunks(digit_size) {
        let others = all - digit.iter().map(|&bits| weight(bits)).sum::<f64>();
        cost += others + MULTIPLY_COST * (digit.len() as f64 * others + 2.0 * all);
    }
    cost
}

/// Refuses explicit primes that no parameter set can have.
pub(super) fn check_primes(
    log_n: u32,
    moduli: &[u64],
    special_moduli: &[u64],
    scale: &Scale,
) -> Result<()> {
    let refuse = |argument, found: String, expected: String| {
        Err(CkksError::Parameter {
            argument,
            found,
            expected,
        })
    };
    let mut seen = BTreeSet::new();
    for (argument, list) in [("moduli", moduli), ("special_moduli", special_moduli)] {
        if list.is_empty() {
            return refuse(argument, "[]".to_owned(), "at least one prime".to_owned());
        }
        for &prime in list {
            let is_ntt_prime = prime % (2 << log_n) == 1 && prime < 1 << 61;
            if !is_ntt_prime || !primes::is_prime(prime) {
                return refuse(
                    argument,
                    prime.to_string(),
                    format!("primes below 2^61 that are 1 modulo 2N = {}", 2u64 << log_n),
                );
            }
            if !seen.insert(prime) {
                return refuse(
                    argument,
                    format!("{prime} twice"),
                    "distinct primes, special ones too".to_owned(),
                );
            }
        }
    }
    for &prime in &moduli[1..] {
        if drift(prime, scale) > MAX_PRIME_DRIFT_BITS {
            return refuse(
                "moduli",
                format!("{prime}, of {:.2} bits", bits_of(&[prime])[0]),
                format!(
                    "after the first, primes within {MAX_PRIME_DRIFT_BITS} bits of the scale {scale}, or \
                     rescaled values would leave it"
                ),
            );
        }
    }
    if log2_over(moduli[0], scale) < 1.0 {
        return refuse(
            "moduli",
            format!(
                "a first prime {} of {:.2} bits",
                moduli[0],
                bits_of(moduli)[0]
            ),
            format!("at least twice the scale {scale}, or no message fits at level 0"),
        );
    }
    Ok(())
}

fn drift(prime: u64, scale: &Scale) -> f64 {
    log2_over(prime, scale).abs()
}

fn log2_over(prime: u64, scale: &Scale) -> f64 {
    Scale::from_integer(prime).map_or(f64::INFINITY, |prime| prime.log2_ratio(scale))
}
