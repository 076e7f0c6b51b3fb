//! Guards that scales are exact, however they were reached, and survive their text.

use fhelium_state::Scale;
use num_bigint::BigUint;
use proptest::prelude::*;

const PRIMES: [u64; 4] = [
    1_099_511_922_689,
    1_099_512_004_609,
    562_949_951_979_521,
    65_537,
];

/// A scale and the same number as a fraction of big integers.
fn scale_and_fraction() -> impl Strategy<Value = (Scale, BigUint, BigUint)> {
    let powers = prop::collection::vec((0usize..4, -3i32..4), 0..6);
    (0u32..120, powers).prop_map(|(bits, powers)| {
        let mut scale = Scale::from_bits(bits);
        let mut numerator = BigUint::from(1u32) << bits;
        let mut denominator = BigUint::from(1u32);
        for (index, exponent) in powers {
            let prime = Scale::from_integer(PRIMES[index]).unwrap();
            for _ in 0..exponent.abs() {
                if exponent > 0 {
                    scale = scale.times(&prime);
                    numerator *= PRIMES[index];
                } else {
                    scale = scale.over_prime(PRIMES[index]);
                    denominator *= PRIMES[index];
                }
            }
        }
        (scale, numerator, denominator)
    })
}

proptest! {
    #[test]
    fn equality_is_that_of_exact_fractions(
        (a, an, ad) in scale_and_fraction(), (b, bn, bd) in scale_and_fraction()
    ) {
        prop_assert_eq!(a == b, &an * &bd == &bn * &ad);
        prop_assert_eq!(a.times(&b).over(&b), a.clone());
        prop_assert_eq!(a.times(&b), b.times(&a));
        prop_assert_eq!(a.max(&b).clone(), b.max(&a).clone());
    }

    #[test]
    fn text_without_loss_reads_back((a, _, _) in scale_and_fraction()) {
        prop_assert_eq!(a.exact().parse::<Scale>().unwrap(), a);
    }

    #[test]
    fn the_logarithm_is_that_of_the_fraction((a, numerator, denominator) in scale_and_fraction()) {
        // log2 of a big integer: its top 64 bits and the rest as a shift.
        let log2 = |x: &BigUint| {
            let shift = x.bits().saturating_sub(64);
            let top = (x >> shift).iter_u64_digits().next().unwrap();
            (top as f64).log2() + shift as f64
        };
        prop_assert!((a.log2() - (log2(&numerator) - log2(&denominator))).abs() < 1e-10);
    }

    #[test]
    fn a_float_is_kept_exactly(value in 1e-300f64..1e300) {
        prop_assert_eq!(Scale::from_f64(value).unwrap().to_f64(), value);
    }

    #[test]
    fn malformed_text_is_an_error_and_no_panic(text in "[0-9^*+ x-]{0,24}") {
        let _ = text.parse::<Scale>();
    }
}

#[test]
fn what_is_no_scale_is_refused() {
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(Scale::from_f64(value), None, "{value}");
    }
    assert_eq!(Scale::from_integer(0), None);
    for text in [
        "",
        "2^",
        "0^1",
        "-2",
        "2^x",
        "2^99999999999999999999999999999999999999999",
    ] {
        assert!(text.parse::<Scale>().is_err(), "{text:?}");
    }
}

#[test]
fn ninety_five_squarings_with_rescales_keep_the_distance_from_nominal() {
    // The deepest preset's chain squared at each level: exponents double each time, and the
    // relative distance of each prime still decides the logarithm's fraction.
    let nominal = Scale::from_bits(40);
    let mut scale = nominal.clone();
    for _ in 0..95 {
        scale = scale.times(&scale).over(&nominal);
    }
    assert_eq!(scale, nominal);
}

#[test]
fn a_scale_near_a_power_of_two_does_not_print_as_one() {
    let near = Scale::from_bits(80).over_prime(1_099_511_922_689);
    assert!(!near.is_close(&Scale::from_bits(40), 1e-9));
    assert_ne!(near.to_string(), "2^40");
    assert_eq!(Scale::from_bits(40).to_string(), "2^40");
    let huge = Scale::from_bits(200).over_prime((1 << 60) + 33);
    assert_ne!(huge.to_string(), "2^140");
}

#[test]
fn the_distance_from_a_power_of_two_is_printed_with_its_sign() {
    let prime = Scale::from_integer(1_099_511_922_689).unwrap();
    let nominal = Scale::from_bits(40);
    assert_eq!(nominal.over(&prime).to_string(), "2^0-3.9e-7");
    assert_eq!(prime.over(&nominal).to_string(), "2^0+3.9e-7");
    assert_eq!(nominal.times(&prime).to_string(), "2^80+3.9e-7");
}
