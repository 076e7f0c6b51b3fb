//! Guards the device arithmetic: kernels/cuda/modular.cuh, compiled for this machine, against
//! exact integers at the edges of every range and at random.

mod host;

use libloading::Library;
use num_bigint::BigInt;
use proptest::prelude::*;
use std::path::Path;
use std::sync::OnceLock;

/// The largest primes below 2^49.5, 2^49, 2^42 and 2^40 that are 1 modulo 2^17, the next one to 2^42, and a
/// small one.
const FAST: [u64; 6] = [
    796_131_457_761_281,
    562_949_951_979_521,
    4_398_052_147_201,
    4_398_044_938_241,
    1_099_510_054_913,
    786_433,
];
/// Primes of the 64-bit core.
const WIDE: [u64; 4] = [
    2_305_843_009_211_596_801,
    1_152_921_504_606_584_833,
    796_131_457_761_281,
    786_433,
];

fn library() -> &'static Library {
    static LIBRARY: OnceLock<(Library, tempfile::TempDir)> = OnceLock::new();
    &LIBRARY
        .get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/host/modular.c");
            let path = host::shared_library(
                "CC",
                "cc",
                folder.path(),
                "libmodular.so",
                &[source.to_str().unwrap()],
            );
            // SAFETY: a library of plain functions, built from our own source just now.
            (unsafe { Library::new(path) }.unwrap(), folder)
        })
        .0
}

macro_rules! call {
    ($name:ident($($argument:expr => $type:ty),*) -> $result:ty) => {{
        // SAFETY: the type is that of the function in tests/host/modular.c.
        unsafe {
            let function = library()
                .get::<unsafe extern "C" fn($($type),*) -> $result>(stringify!($name).as_bytes())
                .unwrap();
            function($($argument),*)
        }
    }};
}

/// An integer-valued double, exactly.
fn exact(x: f64) -> i128 {
    assert_eq!(x, x.trunc());
    x as i128
}

fn ratio(p: u64) -> [u64; 2] {
    let ratio = u128::MAX / u128::from(p);
    [ratio as u64, (ratio >> 64) as u64]
}

fn shoup(w: u64, p: u64) -> u64 {
    ((u128::from(w) << 64) / u128::from(p)) as u64
}

fn is_residue(result: f64, expected: &BigInt, p: u64) -> bool {
    (expected - BigInt::from(exact(result))) % p == BigInt::ZERO
}

/// The largest integer-valued double of at most that magnitude.
fn at_most(bound: f64) -> f64 {
    bound.floor()
}

#[test]
fn primes_of_this_test_are_what_they_say() {
    for p in FAST.iter().chain(&WIDE) {
        assert!(fhelium_ckks::arith::primes::is_prime(*p), "{p}");
    }
    assert!(FAST.iter().all(|&p| (p as f64) < 49.5f64.exp2()));
    assert!(WIDE.iter().all(|&p| p < 1 << 61));
}

/// How many times p a forward transform and a sum leave at most: see core.cuh.
fn lazy(p: u64) -> f64 {
    if p >> 42 == 0 { 14.0 } else { 4.1 }
}

fn check_f64(x: f64, w: f64, p: u64) {
    let (pf, inv) = (p as f64, 1.0 / p as f64);
    let residue = |x: f64| exact(x).rem_euclid(i128::from(p)) as u64;
    if x.abs() / pf <= 51f64.exp2() {
        let reduced = call!(t_f64_reduce(x => f64, pf => f64, inv => f64) -> f64);
        assert_eq!(residue(reduced), residue(x), "reduce {x} mod {p}");
        let bound = pf * (0.5 + x.abs() / pf * (-53f64).exp2()) + 1.0;
        assert!(reduced.abs() <= bound, "reduce {x} mod {p} gave {reduced}");
        assert_eq!(
            call!(t_f64_store(x => f64, pf => f64, inv => f64) -> u64),
            residue(x)
        );
    }
    let store_near = |x: f64| call!(t_f64_store_near(x => f64, pf => f64) -> u64);
    if x.abs() < pf {
        assert_eq!(store_near(x), residue(x), "store {x} near {p}");
    }
    if (x * w).abs() <= pf * 51f64.exp2() {
        let product = call!(t_f64_mul(x => f64, w => f64, pf => f64, inv => f64) -> f64);
        let expected = exact(x) * exact(w);
        assert_eq!(
            (expected - exact(product)) % i128::from(p),
            0,
            "{x} * {w} mod {p}"
        );
        let bound = pf * (0.5 + (x * w).abs() / pf * (-52f64).exp2() + (-49f64).exp2()) + 1.0;
        assert!(product.abs() <= bound, "{x} * {w} mod {p} gave {product}");
        // What core.cuh's store_product takes: of what a transform leaves, by a centred factor, or of
        // canonical residues.
        let of_a_transform = x.abs() <= lazy(p) * pf && w.abs() <= pf / 2.0;
        if of_a_transform || x.abs().max(w.abs()) < pf {
            assert!(product.abs() < 0.9 * pf, "{x} * {w} mod {p} gave {product}");
            let expected = expected.rem_euclid(i128::from(p)) as u64;
            assert_eq!(store_near(product), expected, "store {x} * {w} mod {p}");
        }
    }
}

#[test]
fn f64_functions_are_exact_at_the_edges() {
    for p in FAST {
        let pf = p as f64;
        let lazy = at_most(lazy(p) * pf);
        let half = at_most(pf / 2.0);
        let edges = [
            0.0,
            1.0,
            half,
            half + 1.0,
            pf - 1.0,
            pf,
            pf + 1.0,
            2.0 * pf,
            lazy,
            52f64.exp2(),
        ];
        for x in edges {
            for w in [0.0, 1.0, half, half - 1.0, pf - 1.0] {
                for (x, w) in [(x, w), (-x, w), (x, -w), (-x, -w)] {
                    check_f64(x, w, p);
                }
            }
        }
        check_f64(53f64.exp2(), 0.0, p);
        check_f64(-53f64.exp2(), 0.0, p);
        for x in [0, 1, p / 2, p / 2 + 1, p - 1] {
            assert_eq!(call!(t_f64_load(x => u64) -> u64), (x as f64).to_bits());
            let centred = call!(t_f64_center(x as f64 => f64, pf => f64) -> f64);
            let expected = if x > p / 2 {
                x as i128 - i128::from(p)
            } else {
                x as i128
            };
            assert_eq!(exact(centred), expected);
        }
    }
}

fn check_f64_sum(x: &[f64], w: &[f64], first: f64, p: u64) {
    let (pf, inv) = (p as f64, 1.0 / p as f64);
    let sum = call!(t_f64_sum(
        x.as_ptr() => *const f64, w.as_ptr() => *const f64, x.len() as u64 => u64, first => f64,
        pf => f64, inv => f64) -> f64);
    let expected = x
        .iter()
        .zip(w)
        .map(|(&x, &w)| BigInt::from(exact(x)) * exact(w))
        .fold(BigInt::from(exact(first)), |sum, product| sum + product);
    assert!(
        is_residue(sum, &expected, p),
        "sum of {x:?} * {w:?} mod {p}"
    );
    assert!(sum.abs() <= pf * 0.50001 + 1.0, "{sum} mod {p}");
}

#[test]
fn f64_sums_are_exact_with_every_product_at_its_largest() {
    let terms = call!(t_f64_sum_terms() -> u64) as usize;
    for p in FAST {
        let half = at_most(p as f64 / 2.0);
        // Other primes' residues, centred; odd and even, so that every rounding bit is met.
        let largest = at_most(48.5f64.exp2());
        for other in [largest, largest - 1.0, 1.0, 0.0] {
            for factor in [half, half - 1.0, 1.0] {
                for (other, factor) in [(other, factor), (-other, factor)] {
                    for first in [half, -half] {
                        for count in [0, 1, terms] {
                            check_f64_sum(&vec![other; count], &vec![factor; count], first, p);
                        }
                    }
                }
            }
        }
    }
}

fn check_u64(a: u64, b: u64, p: u64) {
    let [lo, hi] = ratio(p);
    let wide = |x: u128| (x % u128::from(p)) as u64;
    assert_eq!(
        call!(t_u64_reduce(a => u64, p => u64, hi => u64) -> u64),
        a % p
    );
    let product = wide(u128::from(a) * u128::from(b));
    assert_eq!(
        call!(t_u64_mul(a => u64, b => u64, p => u64, lo => u64, hi => u64) -> u64),
        product,
        "{a} * {b} mod {p}"
    );
    let w = b % p;
    let expected = wide(u128::from(a) * u128::from(w));
    let lazy = call!(t_u64_mul_shoup_lazy(a => u64, w => u64, shoup(w, p) => u64, p => u64) -> u64);
    assert!(
        lazy < 2 * p && lazy % p == expected,
        "{a} * {w} mod {p} gave {lazy}"
    );
    assert_eq!(
        call!(t_u64_mul_shoup(a => u64, w => u64, shoup(w, p) => u64, p => u64) -> u64),
        expected
    );
    let (a, b) = (a % p, b % p);
    let sum = wide(u128::from(a) + u128::from(b));
    assert_eq!(call!(t_u64_add(a => u64, b => u64, p => u64) -> u64), sum);
    let difference = wide(u128::from(a) + u128::from(p - b));
    assert_eq!(
        call!(t_u64_sub(a => u64, b => u64, p => u64) -> u64),
        difference
    );
    for q in WIDE.into_iter().chain(FAST) {
        let x = a % q;
        let centred = if x > q / 2 {
            i128::from(x) - i128::from(q)
        } else {
            i128::from(x)
        };
        assert_eq!(
            i128::from(call!(t_u64_recenter(x => u64, q => u64, p => u64, hi => u64) -> u64)),
            centred.rem_euclid(i128::from(p))
        );
    }
}

#[test]
fn u64_functions_are_exact_at_the_edges() {
    for p in WIDE {
        let edges = [
            0,
            1,
            p / 2,
            p / 2 + 1,
            p - 1,
            p,
            2 * p - 1,
            4 * p - 1,
            u64::MAX,
        ];
        for a in edges {
            for b in edges {
                check_u64(a, b, p);
            }
        }
        // The widest sum: 64 products of the largest residues.
        let [lo, hi] = ratio(p);
        let largest = vec![WIDE[0] - 1; 64];
        let sum = call!(t_u64_sum(
            largest.as_ptr() => *const u64, largest.as_ptr() => *const u64,
            largest.len() as u64 => u64, p => u64, lo => u64, hi => u64) -> u64);
        let square = u128::from(WIDE[0] - 1) * u128::from(WIDE[0] - 1);
        assert_eq!(u128::from(sum), square % u128::from(p) * 64 % u128::from(p));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn f64_functions_are_exact(which in 0..FAST.len(), x in -1f64..1.0, w in -0.5f64..0.5) {
        let p = FAST[which];
        check_f64(at_most(x * lazy(p) * p as f64), at_most(w * p as f64), p);
    }

    #[test]
    fn f64_sums_are_exact(
        which in 0..FAST.len(),
        terms in prop::collection::vec((-1f64..1.0, -0.5f64..0.5), 0..14),
    ) {
        let p = FAST[which];
        let x: Vec<f64> = terms.iter().map(|(x, _)| at_most(x * 48.5f64.exp2())).collect();
        let w: Vec<f64> = terms.iter().map(|(_, w)| at_most(w * p as f64)).collect();
        check_f64_sum(&x, &w, 0.0, p);
    }

    #[test]
    fn u64_functions_are_exact(which in 0..WIDE.len(), a: u64, b: u64) {
        check_u64(a, b, WIDE[which]);
    }
}
