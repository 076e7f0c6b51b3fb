//! Primality, the search for primes, roots of unity, and the choice of a tier.

use fhelium_ckks::arith::primes::{
    is_prime, primes_above, primes_below, primes_near, primitive_root,
};
use fhelium_ckks::arith::{ArithError, Modulus, Tier};

#[test]
fn primality_is_exact() {
    let sieve: Vec<u64> = (2..2000u64)
        .filter(|n| (2..*n).all(|d| n % d != 0))
        .collect();
    assert_eq!(
        (0..2000).filter(|&n| is_prime(n)).collect::<Vec<_>>(),
        sieve
    );
    // Strong pseudoprimes to the first bases, Carmichael numbers, squares, and the largest primes.
    for composite in [
        2047,
        1_373_653,
        25_326_001,
        3_215_031_751,
        3_825_123_056_546_413_051,
        561,
        1_729,
        4_294_967_291 * 4_294_967_279,
        u64::MAX,
        1 << 61,
    ] {
        assert!(!is_prime(composite), "{composite}");
    }
    for prime in [
        (1 << 61) - 1,
        18_446_744_073_709_551_557,
        4_294_967_291,
        1_152_921_504_606_830_593,
    ] {
        assert!(is_prime(prime), "{prime}");
    }
}

#[test]
fn the_search_takes_the_nearest_first() {
    let by_definition = |log: u32, range: std::ops::RangeInclusive<u64>| -> Vec<u64> {
        range
            .filter(|p| p % (1 << log) == 1 && is_prime(*p))
            .collect()
    };
    let mut all = by_definition(5, 2..=20_000);
    assert_eq!(primes_above(0, 5).take(all.len()).collect::<Vec<_>>(), all);
    assert_eq!(primes_above(97, 5).next(), Some(193)); // strictly above
    all.reverse();
    assert_eq!(primes_below(20_000, 5).collect::<Vec<_>>(), all);
    assert_eq!(primes_below(97, 5).collect::<Vec<_>>(), [97]); // up to and with
    let target = 10_000;
    all.sort_by_key(|p| (p.abs_diff(target), *p));
    assert_eq!(
        primes_near(target, 5).take(40).collect::<Vec<_>>(),
        all[..40]
    );
}

#[test]
fn the_search_ends_at_its_bounds() {
    assert_eq!(
        primes_above((1 << 61) - 2, 1).collect::<Vec<_>>(),
        [(1 << 61) - 1]
    );
    assert_eq!(primes_above(u64::MAX, 1).next(), None);
    assert_eq!(primes_below(u64::MAX, 1).next(), Some((1 << 61) - 1));
    assert_eq!(primes_below(1, 1).next(), None);
    assert_eq!(primes_near(100, 64).next(), None); // no such number
    assert_eq!(primes_near(0, 60).next(), None);
}

#[test]
fn roots_are_primitive() {
    for log in [5, 13, 18] {
        for p in primes_below(1 << 49, log)
            .take(3)
            .chain(primes_below((1 << 61) - 1, log).take(1))
        {
            let modulus = Modulus::new(p).unwrap();
            let psi = primitive_root(modulus, 1 << log).unwrap();
            assert_eq!(modulus.pow(psi, 1 << (log - 1)), p - 1);
        }
    }
    let modulus = Modulus::new(97).unwrap();
    for two_n in [0, 1, 3, 64] {
        let error = ArithError::NoPrimitiveRoot { value: 97, two_n };
        assert_eq!(primitive_root(modulus, two_n), Err(error));
    }
}

#[test]
fn tiers_have_names_and_unknown_ones_are_refused() {
    for tier in Tier::available() {
        assert_eq!(Tier::from_name(tier.name()), Ok(tier));
    }
    let error = Tier::from_name("sse9").unwrap_err();
    assert!(matches!(&error, ArithError::UnknownTier { name, .. } if name == "sse9"));
    let message = error.to_string();
    assert!(
        message.contains("scalar") && message.contains("FHELIUM_CPU_TIER"),
        "{message}"
    );
}

/// The variable is read at start-up, so each value gets a process of its own: this same test, which
/// then finds the variable and reports what it detects.
#[test]
fn the_environment_forces_a_tier() {
    if std::env::var_os("REPORT_TIER").is_some() {
        match Tier::detect() {
            Ok(tier) => println!("detected {tier}"),
            Err(error) => println!("refused: {error}"),
        }
        return;
    }
    let report = |name: &str| {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_environment_forces_a_tier", "--nocapture"])
            .env("REPORT_TIER", "1")
            .env("FHELIUM_CPU_TIER", name)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for tier in Tier::available() {
        assert!(report(tier.name()).contains(&format!("detected {tier}")));
    }
    let widest = Tier::available().pop().unwrap();
    assert!(report("").contains(&format!("detected {widest}")));
    let refusal = report("neon");
    assert!(
        refusal.contains("refused: CPU tier \"neon\" is unknown"),
        "{refusal}"
    );
}

#[test]
fn moduli_must_be_odd_primes_below_2_to_the_61() {
    for value in [0, 1, 2, 9, 1 << 40] {
        assert_eq!(
            Modulus::new(value),
            Err(ArithError::NotAnOddPrime { value })
        );
    }
    let value = 2_305_843_009_213_693_967; // a prime just above 2^61
    assert!(is_prime(value));
    assert_eq!(
        Modulus::new(value),
        Err(ArithError::ModulusTooLarge { value })
    );
    assert!(Modulus::new((1 << 61) - 1).is_ok());
}
