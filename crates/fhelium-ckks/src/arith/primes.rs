//! Primality, primes p = 1 (mod 2N) around a value, and roots of unity.

use super::error::ArithError;
use super::modulus::Modulus;

/// Bases that make Miller-Rabin a proof for every 64-bit number (J. Sorenson, J. Webster, "Strong
/// pseudoprimes to twelve prime bases", 2015).
const WITNESSES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];

/// Whether `candidate` is prime; exact for every 64-bit number.
pub fn is_prime(candidate: u64) -> bool {
    if candidate < 2 {
        return false;
    }
    for small in WITNESSES {
        if candidate.is_multiple_of(small) {
            return candidate == small;
        }
    }
    let odd = (candidate - 1) >> (candidate - 1).trailing_zeros();
    WITNESSES.iter().all(|&base| {
        let mut power = pow_mod(base, odd, candidate);
        if power == 1 || power == candidate - 1 {
            return true;
        }
        let mut exponent = odd;
        while exponent != (candidate - 1) / 2 {
            power = mul_mod(power, power, candidate);
            exponent *= 2;
            if power == candidate - 1 {
                return true;
            }
        }
        false
    })
}

fn mul_mod(a: u64, b: u64, m: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(m)) as u64
}

fn pow_mod(base: u64, mut exponent: u64, m: u64) -> u64 {
    let (mut power, mut square) = (1, base % m);
    while exponent != 0 {
        if exponent & 1 == 1 {
            power = mul_mod(power, square, m);
        }
        square = mul_mod(square, square, m);
        exponent >>= 1;
    }
    power
}

/// The primes p <= `start` with p = 1 (mod 2^`log_two_n`), largest first.
pub fn primes_below(start: u64, log_two_n: u32) -> impl Iterator<Item = u64> + Clone {
    let step = 1u64.checked_shl(log_two_n).unwrap_or(0);
    let top = start.min((1 << Modulus::MAX_BITS) - 1);
    let first = match step {
        0 => None,
        _ => top.checked_sub(1).map(|below| below - below % step + 1),
    };
    std::iter::successors(first, move |&p| p.checked_sub(step)).filter(|&p| is_prime(p))
}

/// The primes p > `start` with p = 1 (mod 2^`log_two_n`) and p < 2^61, smallest first.
pub fn primes_above(start: u64, log_two_n: u32) -> impl Iterator<Item = u64> + Clone {
    let step = 1u64.checked_shl(log_two_n).unwrap_or(0);
    let first = match step {
        0 => None,
        _ => (start.saturating_sub(1) - start.saturating_sub(1) % step).checked_add(1),
    };
    std::iter::successors(first, move |&p| p.checked_add(step))
        .skip_while(move |&p| p <= start)
        .take_while(|&p| p >> Modulus::MAX_BITS == 0)
        .filter(|&p| is_prime(p))
}

/// The primes p < 2^61 with p = 1 (mod 2^`log_two_n`), nearest to `target` first; of two at the
/// same distance the smaller comes first.
pub fn primes_near(target: u64, log_two_n: u32) -> impl Iterator<Item = u64> + Clone {
    let mut below = primes_below(target, log_two_n).peekable();
    let mut above = primes_above(target, log_two_n).peekable();
    std::iter::from_fn(move || match (below.peek(), above.peek()) {
        (Some(&low), Some(&high)) if high - target < target.abs_diff(low) => above.next(),
        (Some(_), _) => below.next(),
        (None, _) => above.next(),
    })
}

/// A primitive 2N-th root of unity psi modulo p, the same for the same (p, 2N): the power
/// x^((p - 1) / 2N) of the smallest x >= 2 that gives psi^N = -1.
///
/// # Errors
/// [`ArithError::NoPrimitiveRoot`] unless 2N is a power of two, at least 2, that divides p - 1.
pub fn primitive_root(modulus: Modulus, two_n: u64) -> Result<u64, ArithError> {
    let p = modulus.value();
    if two_n < 2 || !two_n.is_power_of_two() || !(p - 1).is_multiple_of(two_n) {
        return Err(ArithError::NoPrimitiveRoot { value: p, two_n });
    }
    // Half of all x give a primitive root, so the search ends after a few steps.
    (2..p)
        .map(|x| modulus.pow(x, (p - 1) / two_n))
        .find(|&psi| modulus.pow(psi, two_n / 2) == p - 1)
        .ok_or(ArithError::NoPrimitiveRoot { value: p, two_n })
}
