//! What parameters are chosen, and which are refused with what words.

use fhelium_ckks::*;
use std::collections::BTreeSet;

fn bits(primes: &[u64]) -> f64 {
    primes.iter().map(|&p| (p as f64).log2()).sum()
}

/// What every parameter set must keep, however it was asked for.
fn check(parameters: &Parameters) {
    let moduli = parameters.moduli();
    let special = parameters.special_moduli();
    let all: BTreeSet<u64> = moduli.iter().chain(special).copied().collect();
    assert_eq!(
        all.len(),
        moduli.len() + special.len(),
        "{parameters}: a prime twice"
    );
    for &prime in &all {
        assert_eq!(prime % (2 * parameters.n() as u64), 1);
        assert!(fhelium_ckks::arith::primes::is_prime(prime) && prime < 1 << 61);
    }
    let log_qp = bits(moduli) + bits(special);
    assert!((parameters.log_qp() - log_qp).abs() < 1e-6);
    let depth = parameters.depth();
    let mut covered = 0;
    for digit in 0..parameters.digits(depth) {
        let range = parameters.digit_range(depth, digit);
        assert_eq!(range.start, covered);
        covered = range.end;
        assert!(
            bits(&moduli[range]) <= bits(special) + 2.0,
            "{parameters}: digit {digit}"
        );
    }
    assert_eq!(covered, moduli.len());
    for level in 0..=depth {
        let last = parameters.digits(level) - 1;
        assert_eq!(parameters.digit_range(level, last).end, level + 1);
    }
}

/// log2 of each level's scale over the nominal one when a fresh ciphertext is squared and rescaled
/// down to level 0.
fn offsets(parameters: &Parameters) -> Vec<f64> {
    let mut scale = parameters.scale().clone();
    (1..=parameters.depth())
        .rev()
        .map(|level| {
            scale = scale.times(&scale).over_prime(parameters.moduli()[level]);
            scale.log2_ratio(parameters.scale())
        })
        .collect()
}

#[test]
fn presets_are_secure_and_keep_their_promises() {
    let mut names = BTreeSet::new();
    for &preset in Preset::ALL {
        let parameters = preset.parameters();
        check(&parameters);
        assert!(
            parameters.is_secure() && parameters.security_bits() >= 128,
            "{preset}"
        );
        let bound = security::max_log_qp(parameters.log_n(), security::SecurityLevel::Bits128);
        assert!(
            parameters.log_qp() <= f64::from(bound.unwrap()),
            "{preset}: {parameters}"
        );
        assert!(parameters.largest_message() > 256.0, "{preset}");
        assert_eq!(preset.name().parse(), Ok(preset));
        let name = format!(
            "N{}Depth{}Scale{}",
            parameters.log_n(),
            parameters.depth(),
            parameters.scale().log2()
        );
        assert_eq!(preset.to_string(), name);
        assert!(names.insert(name));
    }
}

/// Issue: every level's scale within 2^-20 of nominal where primes allow; and no drift that grows
/// from level to level.
#[test]
fn repeated_squaring_stays_at_the_nominal_scale() {
    for &preset in Preset::ALL {
        let parameters = preset.parameters();
        let worst = offsets(&parameters)
            .into_iter()
            .map(f64::abs)
            .fold(0.0, f64::max);
        let n = parameters.n() as f64;
        let scale = parameters.scale().to_f64();
        // Primes 1 modulo 2N near the scale lie about N ln(scale) apart, and the chain takes the
        // nearest unused ones.
        let spacing = n * scale.ln() / scale * parameters.depth() as f64;
        assert!(
            worst < (2.0 * spacing).max(2f64.powi(-20)),
            "{preset}: 2^{:.1}",
            worst.log2()
        );
    }
    // At 2^40 and N = 2^14 the seven nearest primes reach to 2^-17.5; the scales stay closer.
    let parameters = Preset::N14Depth7Scale40.parameters();
    let worst = offsets(&parameters)
        .into_iter()
        .map(f64::abs)
        .fold(0.0, f64::max);
    assert!(worst < 2f64.powi(-19), "2^{:.2}", worst.log2());
}

#[test]
fn the_usual_parameters() {
    let parameters = Parameters::builder(7, 40).build().unwrap();
    check(&parameters);
    assert_eq!((parameters.log_n(), parameters.depth()), (14, 7));
    assert_eq!(
        (parameters.special_moduli().len(), parameters.digit_size()),
        (2, 2)
    );
    let fast = 49.5f64.exp2() as u64;
    assert!(
        parameters
            .moduli()
            .iter()
            .chain(parameters.special_moduli())
            .all(|&p| p < fast)
    );
    assert_eq!(parameters.security_bits(), 128);
    let text = parameters.to_string();
    assert!(
        text.contains("128-bit security") && text.contains("of 430"),
        "{text}"
    );
    // The same choice everywhere, or values could not be exchanged.
    assert_eq!(
        parameters.id(),
        Parameters::builder(7, 40).build().unwrap().id()
    );
    assert_ne!(
        parameters.id(),
        Parameters::builder(6, 40).build().unwrap().id()
    );
}

#[test]
fn many_depths_and_scales_are_secure_by_default() {
    for scale_bits in [20, 28, 35, 40, 45, 51] {
        for depth in [0, 1, 2, 5, 11] {
            match Parameters::builder(depth, scale_bits).build() {
                Ok(parameters) => {
                    check(&parameters);
                    assert!(parameters.is_secure());
                    assert!(parameters.largest_message() > 256.0);
                    // The next smaller ring has no room, or it would have been taken.
                    let smaller = parameters.log_n() - 1;
                    if smaller >= 10 {
                        let tried = Parameters::builder(depth, scale_bits)
                            .log_n(smaller)
                            .build();
                        assert!(tried.is_err(), "{depth} {scale_bits}: {tried:?}");
                    }
                }
                // Too few primes near so small a scale.
                Err(error) => assert!(
                    scale_bits == 20 && depth > 2,
                    "{depth} {scale_bits}: {error}"
                ),
            }
        }
    }
}

#[test]
fn digits_follow_the_special_primes() {
    for count in 1..=4 {
        let parameters = Parameters::builder(7, 40)
            .log_n(15)
            .special_primes(count)
            .build()
            .unwrap();
        check(&parameters);
        assert_eq!(parameters.special_moduli().len(), count);
        assert!(parameters.digit_size() >= count);
    }
}

fn refusal(builder: ParametersBuilder) -> CkksError {
    builder.build().unwrap_err()
}

/// Case 339 of the reports: a wrong argument is named, with its value and its range.
#[test]
fn arguments_out_of_range_are_named() {
    let named = |builder, argument: &str, found: &str| {
        let error = refusal(builder);
        assert_eq!(error.kind(), ErrorKind::Parameter, "{error}");
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("{argument} = {found} is not allowed: expected ")),
            "{text}"
        );
    };
    for scale_bits in [0, 5, 10, 70] {
        named(
            Parameters::builder(3, scale_bits),
            "scale_bits",
            &scale_bits.to_string(),
        );
    }
    for log_n in [3, 40] {
        named(
            Parameters::builder(3, 40).log_n(log_n),
            "log_n",
            &log_n.to_string(),
        );
    }
    for first_bits in [20, 40, 61] {
        named(
            Parameters::builder(3, 40).first_bits(first_bits),
            "first_bits",
            &first_bits.to_string(),
        );
    }
    named(
        Parameters::builder(3, 40).special_primes(0),
        "special_primes",
        "0",
    );
    named(Parameters::builder(1000, 40), "depth", "1000");
    named(Parameters::builder(3, 55), "scale_bits", "55");
    assert!(Parameters::builder(3, 55).first_bits(60).build().is_ok());
}

/// Case 15: a ring too small for the product is refused, with what fits.
#[test]
fn too_small_a_ring_is_refused_with_what_fits() {
    let error = refusal(Parameters::builder(1, 40).log_n(11));
    assert_eq!(error.kind(), ErrorKind::Security);
    let text = error.to_string();
    assert!(
        text.contains("exceeds 53") && text.contains("log_n = 13 fits this depth"),
        "{text}"
    );
    assert!(Parameters::builder(1, 40).log_n(13).build().is_ok());

    let text = refusal(Parameters::builder(12, 40).log_n(14)).to_string();
    let depth: usize = text
        .split("depth = ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .and_then(|depth| depth.parse().ok())
        .unwrap();
    assert!(Parameters::builder(depth, 40).log_n(14).build().is_ok());
    assert!(
        Parameters::builder(depth + 1, 40)
            .log_n(14)
            .build()
            .is_err()
    );

    let error = refusal(Parameters::builder(150, 50));
    assert_eq!(error.kind(), ErrorKind::Security, "{error}");
}

/// Case 378: far over the bound, special primes counted; only `allow_insecure` passes and it says so.
#[test]
fn a_modulus_over_the_bound_is_refused_with_both_figures() {
    let wide: Vec<u64> = arith::primes::primes_below(1 << 50, 17).take(45).collect();
    let (special, moduli) = wide.split_at(5);
    let scale = Scale::from_bits(50);
    let first = arith::primes::primes_below(1 << 60, 17).next().unwrap();
    let moduli = [vec![first], moduli.to_vec()].concat();
    let build = |allow| {
        Parameters::from_primes(
            16,
            moduli.clone(),
            special.to_vec(),
            scale.clone(),
            security::SecurityLevel::Bits128,
            allow,
        )
    };
    let error = build(false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Security);
    let text = error.to_string();
    let log_qp = bits(&wide) + (first as f64).log2();
    assert!(
        text.contains(&format!("{log_qp:.2}")) && text.contains("1747"),
        "{text}"
    );
    assert!(text.contains("N = 2^17 fits"), "{text}");
    let parameters = build(true).unwrap();
    assert_eq!(parameters.security_bits(), 0);
    assert!(!parameters.is_secure());
    assert!(parameters.to_string().contains("INSECURE"), "{parameters}");

    let small = Parameters::builder(3, 40)
        .log_n(10)
        .allow_insecure(true)
        .build()
        .unwrap();
    check(&small);
    assert!(small.to_string().contains("INSECURE"));
}

#[test]
fn explicit_primes_are_checked() {
    let p = Preset::N13Depth2Scale45.parameters();
    let build = |moduli: Vec<u64>, special: Vec<u64>, scale: u32| {
        Parameters::from_primes(
            13,
            moduli,
            special,
            Scale::from_bits(scale),
            security::SecurityLevel::Bits128,
            false,
        )
    };
    let (moduli, special) = (p.moduli().to_vec(), p.special_moduli().to_vec());
    assert_eq!(
        build(moduli.clone(), special.clone(), 45).unwrap().id(),
        p.id()
    );
    let refused = |moduli: Vec<u64>, special: Vec<u64>, scale, words: &str| {
        let error = build(moduli, special, scale).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Parameter);
        assert!(error.to_string().contains(words), "{error}");
    };
    let change = |index: usize, prime: u64| {
        let mut changed = moduli.clone();
        changed[index] = prime;
        changed
    };
    refused(vec![], special.clone(), 45, "at least one prime");
    refused(moduli.clone(), vec![], 45, "at least one prime");
    refused(change(1, moduli[1] + 2), special.clone(), 45, "1 modulo 2N");
    refused(change(1, moduli[2]), special.clone(), 45, "twice");
    refused(moduli.clone(), vec![moduli[0]], 45, "twice");
    // SEAL 372: primes of another size than the scale.
    refused(
        moduli.clone(),
        special.clone(),
        40,
        "within 0.5 bits of the scale 2^40",
    );
    refused(
        vec![moduli[1]],
        special.clone(),
        45,
        "at least twice the scale",
    );
    let small = arith::primes::primes_below(1 << 30, 14).next().unwrap();
    refused(moduli.clone(), vec![small], 45, "special_moduli");
}
