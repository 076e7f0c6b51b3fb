//! The transforms: what they compute, at which points, and the same bits in every tier.

use fhelium_ckks::arith::order::permute;
use fhelium_ckks::arith::primes::{primes_above, primes_below, primitive_root};
use fhelium_ckks::arith::{ArithError, Limb, MAX_FAST_PRIME, Modulus, Tier};
use proptest::prelude::*;

/// Primes at the ends of every core's range, for degree `n`.
fn edge_primes(n: usize) -> Vec<u64> {
    let log_two_n = n.trailing_zeros() + 1;
    let below = |bound| primes_below(bound, log_two_n).next().unwrap();
    vec![
        below(MAX_FAST_PRIME),
        primes_above(MAX_FAST_PRIME, log_two_n).next().unwrap(),
        below(1 << 50),
        below(1 << 40),
        below((1 << 61) - 1),
        primes_above(1, log_two_n).next().unwrap(),
        primes_above(1 << 19, log_two_n).next().unwrap(),
    ]
}

/// Residues that press on the ends of the range, and mixed ones.
fn edge_inputs(n: usize, p: u64) -> Vec<Vec<u64>> {
    let mixed = |i: usize| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) % p;
    vec![
        vec![0; n],
        vec![1; n],
        vec![p - 1; n],
        (0..n).map(|i| if i % 2 == 0 { p - 1 } else { 0 }).collect(),
        (0..n).map(|i| if i == n - 1 { p - 1 } else { 0 }).collect(),
        (0..n)
            .map(|i| p / 2 + (i % 3) as u64 % (p - p / 2))
            .collect(),
        (0..n).map(mixed).collect(),
    ]
}

#[test]
fn every_tier_gives_the_scalar_bits_and_inverts() {
    for log_n in 4..=17 {
        let n = 1 << log_n;
        // The long ones cost time: the primes at the fast cores' bound, the largest residues.
        let long = log_n > 13;
        for p in edge_primes(n).into_iter().take(if long { 2 } else { 7 }) {
            let scalar = Limb::new(n, p, Tier::Scalar).unwrap();
            for input in edge_inputs(n, p).into_iter().skip(if long { 5 } else { 0 }) {
                let mut values = input.clone();
                scalar.forward(&mut values);
                assert!(
                    values.iter().all(|&v| v < p),
                    "N = {n}, p = {p}: not canonical"
                );
                let mut back = values.clone();
                scalar.inverse(&mut back);
                assert!(
                    back == input,
                    "N = {n}, p = {p}: the scalar inverse differs"
                );
                // An input is also a transform's value: the inverse sees the edges too.
                let mut coefficients = input.clone();
                scalar.inverse(&mut coefficients);
                for tier in Tier::available().into_iter().skip(1) {
                    let limb = Limb::new(n, p, tier).unwrap();
                    let mut other = input.clone();
                    limb.forward(&mut other);
                    assert!(other == values, "N = {n}, p = {p}, {tier}: forward differs");
                    limb.inverse(&mut other);
                    assert!(other == input, "N = {n}, p = {p}, {tier}: inverse differs");
                    let mut other = input.clone();
                    limb.inverse(&mut other);
                    assert!(
                        other == coefficients,
                        "N = {n}, p = {p}, {tier}: inverse differs"
                    );
                }
            }
        }
    }
}

#[test]
fn index_j_holds_the_value_at_its_documented_point() {
    for n in [16, 256, 512] {
        for p in edge_primes(n) {
            let modulus = Modulus::new(p).unwrap();
            let psi = primitive_root(modulus, 2 * n as u64).unwrap();
            let coefficients = edge_inputs(n, p).pop().unwrap();
            for tier in Tier::available() {
                let limb = Limb::new(n, p, tier).unwrap();
                let mut values = coefficients.clone();
                limb.forward(&mut values);
                for (j, &value) in values.iter().enumerate() {
                    let point = modulus.pow(psi, limb.evaluation_exponent(j) as u64);
                    let horner = |sum, &c| modulus.add(modulus.mul(sum, point), c);
                    assert_eq!(value, coefficients.iter().rev().fold(0, horner));
                }
            }
        }
    }
}

#[test]
fn fused_steps_equal_their_parts() {
    for n in [16, 256, 512] {
        for p in edge_primes(n) {
            let scalar = Limb::new(n, p, Tier::Scalar).unwrap();
            let inputs = edge_inputs(n, p);
            for tier in Tier::available() {
                let limb = Limb::new(n, p, tier).unwrap();
                for (a, b, w) in [
                    (2, 0, p - 1),
                    (0, 2, 1),
                    (6, 3, p / 2),
                    (3, 6, 0),
                    (5, 1, p / 3),
                ] {
                    let (a, b) = (&inputs[a], &inputs[b]);
                    let mut expected = a.clone();
                    scalar.forward(&mut expected);
                    scalar.sub_mul_scalar_assign(&mut expected, b, w);
                    let mut found = a.clone();
                    limb.forward_sub_mul_scalar_assign(&mut found, b, w);
                    assert!(found == expected, "mod-down: N = {n}, p = {p}, {tier}");
                    for q in edge_primes(n) {
                        for src in edge_inputs(n, q) {
                            let q = Modulus::new(q).unwrap();
                            let mut expected = vec![0; n];
                            scalar.reduce_into(&mut expected, &src, q);
                            scalar.forward(&mut expected);
                            scalar.sub_mul_scalar_assign(&mut expected, b, w);
                            limb.rescale_into(&mut found, &src, q, b, w);
                            assert!(found == expected, "rescale: N = {n}, {p} by {q:?}, {tier}");
                        }
                    }
                }
            }
        }
    }
}

/// a b modulo X^N + 1 by its definition.
fn schoolbook(modulus: Modulus, a: &[u64], b: &[u64]) -> Vec<u64> {
    let n = a.len();
    let mut product = vec![0; n];
    for (i, &x) in a.iter().enumerate() {
        for (j, &y) in b.iter().enumerate() {
            let (k, term) = ((i + j) % n, modulus.mul(x, y));
            product[k] = match i + j < n {
                true => modulus.add(product[k], term),
                false => modulus.sub(product[k], term),
            };
        }
    }
    product
}

#[test]
fn products_of_values_are_negacyclic_convolutions() {
    for n in [16, 256] {
        for p in edge_primes(n) {
            let modulus = Modulus::new(p).unwrap();
            let inputs = edge_inputs(n, p);
            let (a, b) = (&inputs[6], &inputs[5]);
            let expected = schoolbook(modulus, a, b);
            for tier in Tier::available() {
                let limb = Limb::new(n, p, tier).unwrap();
                let (mut x, mut y) = (a.clone(), b.clone());
                limb.forward(&mut x);
                limb.forward(&mut y);
                limb.mul_assign(&mut x, &y);
                limb.inverse(&mut x);
                assert_eq!(x, expected, "N = {n}, p = {p}, {tier}");
            }
        }
    }
}

#[test]
fn automorphisms_permute_values() {
    for (n, tier) in [16, 256]
        .into_iter()
        .flat_map(|n| Tier::available().into_iter().map(move |t| (n, t)))
    {
        let limb = Limb::new(n, edge_primes(n)[0], tier).unwrap();
        let a = edge_inputs(n, limb.modulus().value()).pop().unwrap();
        for g in [1, 3, 5, 25, 2 * n as u64 - 1, 2 * n as u64 + 5] {
            // X^i goes to X^(g i), and X^N is -1.
            let mut expected = vec![0; n];
            for (i, &c) in a.iter().enumerate() {
                let exponent = g as usize * i % (2 * n);
                expected[exponent % n] = if exponent < n {
                    c
                } else {
                    limb.modulus().neg(c)
                };
            }
            let permutation = limb.automorphism_permutation(g).unwrap();
            let (mut values, mut image, mut other) = (a.clone(), vec![0; n], vec![0; n]);
            limb.forward(&mut values);
            limb.permute(&mut image, &values, &permutation);
            permute(&mut other, &values, &permutation);
            assert_eq!(image, other, "g = {g}, {tier}");
            limb.inverse(&mut image);
            assert_eq!(image, expected, "g = {g}, {tier}");
        }
        assert_eq!(
            limb.automorphism_permutation(4),
            Err(ArithError::EvenExponent { exponent: 4 })
        );
    }
}

#[test]
fn any_permutation_and_length_is_permuted() {
    for tier in Tier::available() {
        let limb = Limb::new(256, edge_primes(256)[0], tier).unwrap();
        for len in [1, 5, 16, 61] {
            let src: Vec<u64> = (0..len as u64).map(|i| 1000 + i).collect();
            let reversed = (0..len as u32).rev().collect::<Vec<_>>();
            let scattered = (0..len as u32).map(|i| i * 7 % len as u32).collect();
            for permutation in [reversed, scattered, vec![len as u32 - 1; len]] {
                let mut out = vec![0; len];
                limb.permute(&mut out, &src, &permutation);
                let expected: Vec<_> = permutation.iter().map(|&i| src[i as usize]).collect();
                assert_eq!(out, expected, "{tier}");
            }
        }
    }
}

#[test]
fn refuses_what_no_ring_has() {
    let new = |n, p| Limb::new(n, p, Tier::Scalar).unwrap_err();
    assert!(matches!(new(8, 97), ArithError::RingDegree { n: 8, .. }));
    assert!(matches!(new(48, 97), ArithError::RingDegree { n: 48, .. }));
    assert!(matches!(new(1 << 18, 97), ArithError::RingDegree { .. }));
    assert_eq!(
        new(16, 101),
        ArithError::NoPrimitiveRoot {
            value: 101,
            two_n: 32
        }
    );
    assert_eq!(new(16, 33), ArithError::NotAnOddPrime { value: 33 });
    assert_eq!(
        new(16, 1 << 61),
        ArithError::ModulusTooLarge { value: 1 << 61 }
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Random primes of every size and random residues: all tiers agree, and the inverse inverts.
    #[test]
    fn tiers_agree(log_n in 4u32..12, bits in 14u32..61, seed: u64) {
        let n = 1usize << log_n;
        let start = (1u64 << bits) + seed % (1 << bits);
        let p = primes_above(start, log_n + 1).next().unwrap();
        let step = seed | 1;
        let input: Vec<_> = (0..n as u64).map(|i| i.wrapping_mul(step).rotate_left(29) % p).collect();
        let mut expected = input.clone();
        Limb::new(n, p, Tier::Scalar).unwrap().forward(&mut expected);
        for tier in Tier::available() {
            let limb = Limb::new(n, p, tier).unwrap();
            let mut values = input.clone();
            limb.forward(&mut values);
            prop_assert_eq!(&values, &expected);
            limb.inverse(&mut values);
            prop_assert_eq!(&values, &input);
        }
    }
}
