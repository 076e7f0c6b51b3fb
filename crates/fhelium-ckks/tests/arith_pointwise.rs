//! The pointwise kernels of every tier against 128-bit integers, at the ends of every core's range.

use fhelium_ckks::arith::primes::{primes_above, primes_below};
use fhelium_ckks::arith::{Limb, MAX_FAST_PRIME, Modulus, Tier};
use num_bigint::BigInt;

/// Degree of the rings: the smallest that the vector cores take. Slices may have other lengths.
const N: usize = 256;

/// Lengths that are whole vectors, less than one, and a few with a rest.
const LENGTHS: [usize; 5] = [1, 7, 16, 100, 256];

fn below(bound: u64) -> u64 {
    primes_below(bound, 9).next().unwrap()
}

fn edge_primes() -> Vec<u64> {
    let above = |bound| primes_above(bound, 9).next().unwrap();
    let around = [below(MAX_FAST_PRIME), above(MAX_FAST_PRIME), below(1 << 50)];
    [
        &around[..],
        &[
            below((1 << 61) - 1),
            below(1 << 40),
            above(1),
            above(1 << 19),
        ],
    ]
    .concat()
}

/// Residues with the ends of the range side by side, then mixed ones.
fn residues(len: usize, p: u64, seed: u64) -> Vec<u64> {
    let ends = [p - 1, p - 1, 0, 1, p / 2, p / 2 + 1, p - 2];
    let residue = |i: usize| match seed {
        0 => p - 1,
        _ if i < 49 => ends[(i / 7 * seed as usize + i) % 7],
        _ => (i as u64 * 8 + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) % p,
    };
    (0..len).map(residue).collect()
}

fn modulo(x: i128, p: u64) -> u64 {
    x.rem_euclid(i128::from(p)) as u64
}

/// Runs `check` for each tier, edge prime, length and pair of seeds.
fn everywhere(check: impl Fn(&Limb, [&[u64]; 4], u64)) {
    for tier in Tier::available() {
        for p in edge_primes() {
            let limb = Limb::new(N, p, tier).unwrap();
            for len in LENGTHS {
                for seeds in [[0, 0, 0, 0], [1, 2, 3, 4], [0, 1, 5, 0]] {
                    let data = seeds.map(|seed| residues(len, p, seed));
                    check(&limb, data.each_ref().map(|a| &a[..]), p);
                }
            }
        }
    }
}

/// Compares a limb with a formula over its operands.
fn expect(name: &str, limb: &Limb, found: &[u64], formula: impl Fn(usize) -> i128) {
    let p = limb.modulus().value();
    for (i, &found) in found.iter().enumerate() {
        assert_eq!(
            found,
            modulo(formula(i), p),
            "{name}[{i}], p = {p}, {}",
            limb.tier()
        );
    }
}

/// a b modulo p, so that sums of a few stay in 128 bits.
fn product(a: u64, b: u64, p: u64) -> i128 {
    i128::from(a) * i128::from(b) % i128::from(p)
}

#[test]
fn sums_and_differences() {
    everywhere(|limb, [a, b, ..], _| {
        let at = |a: &[u64], i: usize| i128::from(a[i]);
        let mut out = vec![7; a.len()];
        limb.add(&mut out, a, b);
        expect("add", limb, &out, |i| at(a, i) + at(b, i));
        limb.sub(&mut out, a, b);
        expect("sub", limb, &out, |i| at(a, i) - at(b, i));
        out.copy_from_slice(a);
        limb.add_assign(&mut out, b);
        expect("add_assign", limb, &out, |i| at(a, i) + at(b, i));
        out.copy_from_slice(a);
        limb.sub_assign(&mut out, b);
        expect("sub_assign", limb, &out, |i| at(a, i) - at(b, i));
        out.copy_from_slice(a);
        limb.sub_from_assign(&mut out, b);
        expect("sub_from_assign", limb, &out, |i| at(b, i) - at(a, i));
        out.copy_from_slice(a);
        limb.neg_assign(&mut out);
        expect("neg_assign", limb, &out, |i| -at(a, i));
    });
}

#[test]
fn products() {
    everywhere(|limb, [a, b, c, _], p| {
        let at = |a: &[u64], i: usize| i128::from(a[i]);
        let mut out = vec![7; a.len()];
        limb.mul(&mut out, a, b);
        expect("mul", limb, &out, |i| product(a[i], b[i], p));
        out.copy_from_slice(a);
        limb.mul_assign(&mut out, b);
        expect("mul_assign", limb, &out, |i| product(a[i], b[i], p));
        out.copy_from_slice(c);
        limb.mul_add_assign(&mut out, a, b);
        expect("mul_add_assign", limb, &out, |i| {
            at(c, i) + product(a[i], b[i], p)
        });
    });
}

#[test]
fn scalars() {
    everywhere(|limb, [a, b, ..], p| {
        let at = |a: &[u64], i: usize| i128::from(a[i]);
        let mut out = vec![7; a.len()];
        for w in [0, 1, p - 1, p / 2, p / 2 + 1, p / 3] {
            limb.mul_scalar(&mut out, a, w);
            expect("mul_scalar", limb, &out, |i| product(a[i], w, p));
            out.copy_from_slice(a);
            limb.mul_scalar_assign(&mut out, w);
            expect("mul_scalar_assign", limb, &out, |i| product(a[i], w, p));
            out.copy_from_slice(b);
            limb.mul_scalar_add_assign(&mut out, a, w);
            expect("mul_scalar_add_assign", limb, &out, |i| {
                at(b, i) + product(a[i], w, p)
            });
            out.copy_from_slice(a);
            limb.add_scalar_assign(&mut out, w);
            expect("add_scalar_assign", limb, &out, |i| {
                at(a, i) + i128::from(w)
            });
            out.copy_from_slice(a);
            limb.sub_mul_scalar_assign(&mut out, b, w);
            let terms = |i| product(a[i], w, p) - product(b[i], w, p);
            expect("sub_mul_scalar_assign", limb, &out, terms);
        }
    });
}

#[test]
fn tensor_products() {
    everywhere(|limb, [a0, a1, b0, b1], p| {
        let len = a0.len();
        let (mut c0, mut c1, mut c2) = (vec![7; len], vec![7; len], vec![7; len]);
        limb.tensor(&mut c0, &mut c1, &mut c2, a0, a1, b0, b1);
        expect("c0", limb, &c0, |i| product(a0[i], b0[i], p));
        expect("c1", limb, &c1, |i| {
            product(a0[i], b1[i], p) + product(a1[i], b0[i], p)
        });
        expect("c2", limb, &c2, |i| product(a1[i], b1[i], p));
        limb.square_tensor(&mut c0, &mut c1, &mut c2, a0, a1);
        expect("square c0", limb, &c0, |i| product(a0[i], a0[i], p));
        expect("square c1", limb, &c1, |i| 2 * product(a0[i], a1[i], p));
        expect("square c2", limb, &c2, |i| product(a1[i], a1[i], p));
    });
}

/// More digits than one accumulator takes, of the largest residues: a sum that overflowed or lost
/// bits would show.
#[test]
fn inner_products_of_any_length() {
    for tier in Tier::available() {
        for p in edge_primes() {
            let limb = Limb::new(N, p, tier).unwrap();
            for (digits, len, seed) in [
                (0, 16, 1),
                (1, 100, 0),
                (8, 37, 0),
                (9, 256, 1),
                (130, 17, 0),
            ] {
                let rows = |offset: u64| -> Vec<Vec<u64>> {
                    let seed_of = |d: u64| if seed == 0 { 0 } else { offset + d };
                    (0..digits).map(|d| residues(len, p, seed_of(d))).collect()
                };
                let (a, b, c) = (rows(1), rows(100), rows(200));
                let [x, y, z] =
                    [&a, &b, &c].map(|rows| rows.iter().map(|r| &r[..]).collect::<Vec<_>>());
                let sum = |rows: &[&[u64]], i: usize| -> i128 {
                    x.iter()
                        .zip(rows)
                        .map(|(a, b)| product(a[i], b[i], p))
                        .sum()
                };
                let (mut first, mut second) = (vec![p - 1; len], vec![p - 1; len]);
                limb.inner_product_pair_add_assign(&mut first, &mut second, &x, &y, &z);
                expect("added b", &limb, &first, |i| sum(&y, i) + i128::from(p - 1));
                expect("added a", &limb, &second, |i| {
                    sum(&z, i) + i128::from(p - 1)
                });
                limb.inner_product_pair(&mut first, &mut second, &x, &y, &z);
                expect("b", &limb, &first, |i| sum(&y, i));
                expect("a", &limb, &second, |i| sum(&z, i));
            }
        }
    }
}

#[test]
fn residues_of_another_prime_are_centred() {
    everywhere(|limb, [..], p| {
        for q in edge_primes() {
            let src = residues(100, q, 1);
            let mut out = vec![7; src.len()];
            limb.reduce_into(&mut out, &src, Modulus::new(q).unwrap());
            let centred = |i: usize| match src[i] > q / 2 {
                true => i128::from(src[i]) - i128::from(q),
                false => i128::from(src[i]),
            };
            expect(&format!("from {q}"), limb, &out, centred);
        }
        let _ = p;
    });
}

#[test]
fn reals_round_to_the_nearest_integer() {
    let mut reals = vec![
        0.0,
        -0.0,
        0.5,
        1.5,
        -0.5,
        -2.5,
        0.49999999999999994,
        1e-300,
        -1.0,
    ];
    let large = [
        (1u64 << 62) as f64 * 0.999,
        4503599627370497.0,
        4503599627370495.5,
        1.7e18,
    ];
    reals.extend(large.iter().flat_map(|x| [*x, -x]));
    reals.extend((0..60).map(|i| (i as f64 - 30.0) * 123_456.789e9));
    for tier in Tier::available() {
        for p in edge_primes() {
            let limb = Limb::new(N, p, tier).unwrap();
            for len in [1, 7, 8, reals.len()] {
                for shift in [0, 40] {
                    let factor = f64::exp2(-f64::from(shift));
                    let mut out = vec![7; len];
                    limb.round_into(&mut out, &reals[..len], factor);
                    let nearest = |i: usize| (reals[i] * factor).round_ties_even() as i128;
                    expect("round_into", &limb, &out, nearest);
                }
            }
        }
    }
}

/// Barrett, Shoup and float reductions against big integers, beyond what 128 bits check.
#[test]
fn moduli_reduce_everything() {
    for p in edge_primes().into_iter().chain([3, 5, 17, 65537]) {
        let m = Modulus::new(p).unwrap();
        let wide = [
            0,
            1,
            u128::from(p),
            u128::MAX,
            u128::MAX - 1,
            1 << 127,
            1 << 64,
            u128::from(u64::MAX),
        ];
        for x in wide
            .into_iter()
            .chain((0..64).map(|i| (u128::MAX / 7 * 3) >> i))
        {
            assert_eq!(
                u128::from(m.reduce_u128(x)),
                x % u128::from(p),
                "{x} mod {p}"
            );
            assert_eq!(m.reduce(x as u64), x as u64 % p);
            assert_eq!(
                i128::from(m.from_i64(x as i64)),
                i128::from(x as i64).rem_euclid(i128::from(p))
            );
        }
        for a in residues(64, p, 3).into_iter().chain([p - 1]) {
            for b in [p - 1, p / 2, a, 0] {
                assert_eq!(i128::from(m.mul(a, b)), product(a, b, p));
                assert_eq!(i128::from(m.mul_shoup(a, b, m.shoup(b))), product(a, b, p));
                assert_eq!(
                    m.mul_shoup(u64::MAX, b, m.shoup(b)),
                    m.mul(m.reduce(u64::MAX), b)
                );
                assert_eq!(m.add(a, b), modulo(i128::from(a) + i128::from(b), p));
                assert_eq!(m.sub(a, b), modulo(i128::from(a) - i128::from(b), p));
            }
            match m.inverse(a) {
                Ok(inverse) => assert_eq!(m.mul(a, inverse), 1),
                Err(_) => assert_eq!(a, 0),
            }
            assert_eq!(m.from_i64(m.centered(a)), a);
        }
        for exponent in [0, 10, 52, 53, 62, 63, 64, 100, 969] {
            for mantissa in [1i64, -1, 4_503_599_627_370_497, -9_007_199_254_740_991] {
                let x = mantissa as f64 * 2f64.powi(exponent);
                let exact = BigInt::from(mantissa) << exponent as usize;
                let residue = ((exact % p) + p) % p;
                assert_eq!(
                    BigInt::from(m.from_f64_integer(x).unwrap()),
                    residue,
                    "{x:e} mod {p}"
                );
            }
        }
        for x in [0.5, -1e-300, f64::NAN, f64::INFINITY, 4503599627370495.5] {
            assert!(m.from_f64_integer(x).is_err(), "{x}");
        }
    }
}
