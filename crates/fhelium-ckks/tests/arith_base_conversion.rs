//! Base conversion against the Chinese remainder theorem on big integers.

use fhelium_ckks::arith::primes::{primes_above, primes_below};
use fhelium_ckks::arith::{ArithError, BaseConverter, MAX_FAST_PRIME, Modulus, Tier};
use num_bigint::BigInt;
use proptest::prelude::*;

fn moduli(primes: impl Iterator<Item = u64>, count: usize) -> Vec<Modulus> {
    primes
        .take(count)
        .map(|p| Modulus::new(p).unwrap())
        .collect()
}

fn product(primes: &[Modulus]) -> BigInt {
    primes.iter().map(|q| BigInt::from(q.value())).product()
}

fn residue(x: &BigInt, p: Modulus) -> u64 {
    let p = BigInt::from(p.value());
    u64::try_from(((x % &p) + &p) % &p).unwrap()
}

/// Converts the integers `xs` in every tier and compares with their residues.
fn check(from: &[Modulus], to: &[Modulus], xs: &[BigInt]) {
    let limb = |p: &Modulus| xs.iter().map(|x| residue(x, *p)).collect::<Vec<_>>();
    let source: Vec<_> = from.iter().map(limb).collect();
    let source: Vec<_> = source.iter().map(|limb| &limb[..]).collect();
    let expected: Vec<_> = to.iter().map(limb).collect();
    for tier in Tier::available() {
        let converter = BaseConverter::new(from, to, tier).unwrap();
        let mut out = vec![vec![0; xs.len()]; to.len()];
        let mut limbs: Vec<_> = out.iter_mut().map(|limb| &mut limb[..]).collect();
        converter.convert(&source, &mut limbs);
        assert!(
            out == expected,
            "{} to {} primes, {tier}",
            from.len(),
            to.len()
        );
    }
}

/// Numbers in (-Q/2, Q/2): the ends (less a millionth, where the quotient is still exact), small
/// ones of both signs and evenly spread ones; as many as asked for.
fn numbers(q: &BigInt, count: usize) -> Vec<BigInt> {
    let end: BigInt = (q / 2) - (q / 1_000_000) - 1;
    let ends = [
        end.clone(),
        -&end,
        0.into(),
        1.into(),
        (-1).into(),
        &end / 2i32,
        &end / -3i32,
    ];
    let spread = (0..count).map(|i| &end * (2 * i + 1) / count - &end);
    ends.into_iter().chain(spread).take(count).collect()
}

#[test]
fn gives_the_centred_lift_at_every_core_s_edge() {
    // Just below the fast cores' bound, mixed with one prime above it, and near 2^61.
    let fast = moduli(primes_below(MAX_FAST_PRIME, 18), 60);
    let wide = moduli(primes_below((1 << 61) - 1, 18), 20);
    let small = moduli(primes_above(1 << 19, 5), 3);
    let mixed = [&fast[..2], &wide[..1], &small[..]].concat();
    let cases: [(&[Modulus], &[Modulus]); 8] = [
        (&fast[..1], &fast[1..4]),
        (&fast[..7], &fast[7..16]),
        (&fast[..8], &fast[3..12]), // primes of both bases
        (&fast[..40], &fast[40..]),
        (&fast[..5], &mixed), // each core serves some of the targets
        (&mixed, &fast[10..13]),
        (&wide[..10], &wide[10..]),
        (&small, &fast[..3]),
    ];
    for (from, to) in cases {
        for count in [1, 16, 61, 1000] {
            check(from, to, &numbers(&product(from), count));
        }
    }
}

#[test]
fn folds_sums_longer_than_an_accumulator_holds() {
    let wide = moduli(primes_below((1 << 61) - 1, 5), 132);
    check(
        &wide[..130],
        &wide[130..],
        &numbers(&product(&wide[..130]), 16),
    );
}

#[test]
fn every_tier_rounds_the_quotient_alike() {
    // At Q/2 itself either end of the range is right; all tiers must choose the same one.
    let fast = moduli(primes_below(MAX_FAST_PRIME, 18), 6);
    let q = product(&fast[..4]);
    let xs: Vec<BigInt> = (0..64).map(|i: i32| &q / 2 - 32 + i).collect();
    let source: Vec<Vec<_>> = fast[..4]
        .iter()
        .map(|p| xs.iter().map(|x| residue(x, *p)).collect())
        .collect();
    let source: Vec<_> = source.iter().map(|limb| &limb[..]).collect();
    let results = Tier::available().into_iter().map(|tier| {
        let mut out = vec![vec![0; xs.len()]; 2];
        let mut limbs: Vec<_> = out.iter_mut().map(|limb| &mut limb[..]).collect();
        BaseConverter::new(&fast[..4], &fast[4..], tier)
            .unwrap()
            .convert(&source, &mut limbs);
        out
    });
    let results: Vec<_> = results.collect();
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn refuses_bases_without_meaning() {
    let primes = moduli(primes_below(1 << 30, 5), 2);
    let new = |from: &[Modulus], to: &[Modulus]| BaseConverter::new(from, to, Tier::Scalar);
    let error = new(&[], &primes).unwrap_err();
    assert_eq!(error, ArithError::EmptyBasis { role: "source" });
    let error = new(&primes, &[]).unwrap_err();
    assert_eq!(error, ArithError::EmptyBasis { role: "target" });
    let error = new(&[primes[0], primes[0]], &primes).unwrap_err();
    assert_eq!(
        error,
        ArithError::RepeatedPrime {
            value: primes[0].value()
        }
    );
    let error = new(&vec![primes[0]; 257], &primes).unwrap_err();
    assert_eq!(
        error,
        ArithError::BasisTooLarge {
            count: 257,
            max: 256
        }
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Bases of any size and prime length.
    #[test]
    fn any_basis(
        from_bits in 20u32..61, to_bits in 20u32..61, sources in 1usize..20, targets in 1usize..6,
        count in 1usize..80,
    ) {
        let from = moduli(primes_above(1 << (from_bits - 1), 5), sources);
        let to = moduli(primes_above(1 << (to_bits - 1), 5), targets);
        check(&from, &to, &numbers(&product(&from), count));
    }
}
