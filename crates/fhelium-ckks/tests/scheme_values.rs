//! Encoding, encryption and decryption: what comes back, and what is refused.

mod support;

use fhelium_ckks::*;
use proptest::prelude::*;
use std::collections::HashSet;
use std::sync::LazyLock;
use support::*;

static BENCH: LazyLock<Bench> =
    LazyLock::new(|| Bench::new(Parameters::builder(3, 40).log_n(10).allow_insecure(true), 1));

const SLOTS: usize = 512;

fn complex(values: &[f64]) -> Vec<Complex64> {
    values
        .iter()
        .map(|&value| Complex64::new(value, 0.0))
        .collect()
}

fn padded(values: &[Complex64]) -> Vec<Complex64> {
    let mut padded = values.to_vec();
    padded.resize(SLOTS, Complex64::default());
    padded
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every level, every legal scale up to the modulus, any number of slots, large and tiny values.
    #[test]
    fn messages_come_back_within_the_rounding(
        seed in any::<u64>(),
        count in 1usize..=SLOTS,
        level in 0usize..=3,
        scale_bits in 20u32..160,
        magnitude in -60i32..7,
    ) {
        let bench = &BENCH;
        let scale = Scale::from_bits(scale_bits);
        let size = 2f64.powi(magnitude);
        let values: Vec<_> = random(seed, 2 * count).iter().map(|v| v * size).collect();
        let shape = [2, count];
        let message = Message::complex(&values, &shape).unwrap();
        let bound = bench.context.message_bound(level, &scale);
        match bench.context.encode(message, level, &scale) {
            Ok(plaintext) => {
                prop_assert_eq!(plaintext.batch_shape(), &[2]);
                let found = bench.context.decode(&plaintext).unwrap();
                let expected: Vec<_> = values.chunks(count).flat_map(padded).collect();
                let noise = bench.parameters().noise();
                let mut limit = noise.decode(&noise.encode(level, &scale, 1.5 * size));
                if count < 32 {
                    // A few slots make smooth coefficients. Where those are only a few units, their
                    // roundings are not independent but add up, to half a unit each at most.
                    limit = limit.max(SLOTS as f64 / scale.to_f64());
                }
                prop_assert!(distance(&found, &expected) <= limit);
            }
            Err(error) => {
                prop_assert_eq!(error.kind(), ErrorKind::Value);
                let largest = values.iter().map(|v| v.norm()).fold(0.0, f64::max);
                prop_assert!(
                    largest >= bound || f64::from(scale_bits) + 1.0 >= bits(level), "{}", error
                );
            }
        }
    }

    /// A constant fills every slot, and its only error is the rounding to the scale, also past 2^63
    /// (case 16 of the reports).
    #[test]
    fn constants_are_exact_at_any_scale(
        re in -1.0f64..1.0,
        im in -1.0f64..1.0,
        scale_bits in 20u32..150,
    ) {
        let scale = Scale::from_bits(scale_bits).over_prime(BENCH.parameters().moduli()[3]).times(
            &Scale::from_integer(BENCH.parameters().moduli()[2]).unwrap());
        let value = [Complex64::new(re, im)];
        let message = Message::complex(&value, &[]).unwrap();
        let plaintext = BENCH.context.encode(message, 3, &scale).unwrap();
        prop_assert!(plaintext.batch_shape().is_empty());
        let unit = (-f64::from(scale_bits)).exp2();
        for slot in BENCH.context.decode(&plaintext).unwrap() {
            let error = (slot - value[0]).norm();
            prop_assert!(error <= unit + 2f64.powi(-48), "{slot} {} {error:e}", value[0]);
        }
    }
}

fn bits(level: usize) -> f64 {
    BENCH.parameters().chain().log_q(level)
}

/// Tiny entries, alone and beside ordinary ones, at ordinary and unrescaled scales.
#[test]
fn tiny_values_come_back_within_the_scale() {
    let tiny = [5e-324, 1e-300, 1e-30, 2f64.powi(-60), -0.0];
    for beside in [0.0, 1.0] {
        for scale_bits in [20, 30, 40, 60, 80] {
            for entry in tiny {
                let values = complex(&[entry, beside]);
                let scale = Scale::from_bits(scale_bits);
                let message = Message::complex(&values, &[2]).unwrap();
                let plaintext = BENCH.context.encode(message, 3, &scale).unwrap();
                let found = BENCH.context.decode(&plaintext).unwrap();
                let bound = 2f64.powi(-(scale_bits as i32)) * SLOTS as f64 + 1e-15 * beside;
                assert!(
                    distance(&found, &padded(&values)) <= bound,
                    "{entry:e} at 2^{scale_bits}"
                );
            }
        }
    }
}

#[test]
fn messages_that_do_not_fit_are_refused_by_name() {
    let context = &BENCH.context;
    let refused = |values: &[f64], shape: &[usize], level, scale: u32, words: &[&str]| {
        let error = Message::real(values, shape)
            .and_then(|message| context.encode(message, level, &Scale::from_bits(scale)))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value, "{error}");
        for word in words {
            assert!(error.to_string().contains(word), "{error} lacks {word}");
        }
    };
    refused(&[0.0, f64::NAN], &[2], 3, 40, &["index 1", "NaN"]);
    refused(&[f64::NEG_INFINITY], &[], 3, 40, &["index 0", "-inf"]);
    refused(
        &[1.0, -1e6],
        &[2],
        0,
        40,
        &["-1000000", "index 1", "level 0", "2^40"],
    );
    refused(&[1e6], &[], 0, 40, &["1000000", "index 0"]);
    refused(&[1.0; 3], &[2], 3, 40, &["3 values", "[2]"]);
    refused(&[0.0; 513], &[513], 3, 40, &["513", "1 to 512"]);
    refused(&[], &[0], 3, 40, &["1 to 512"]);
    refused(&[1.0], &[], 4, 40, &["level 4 does not exist"]);
    refused(&[1.0], &[], 0, 60, &["does not fit the modulus"]);
    // The head-room of level 0 holds what it promises.
    let largest = BENCH.parameters().largest_message();
    assert!(largest > 256.0);
    let values = vec![Complex64::new(256.0, 0.0); SLOTS];
    let x = BENCH.encrypt(&values, &[SLOTS], 0);
    assert!(distance(&BENCH.decrypt(&x), &values) < 1e-5);
}

#[test]
fn encryption_under_either_key_stays_within_its_bound() {
    let noise = BENCH.parameters().noise();
    let values = random(3, 2 * SLOTS);
    for level in [3, 0] {
        let plain = BENCH.encode(&values, &[2, SLOTS], level);
        let bound = noise.encode(level, BENCH.parameters().scale(), 1.5);
        let public = BENCH
            .context
            .encrypt(&plain, &BENCH.public, &BENCH.randomness)
            .unwrap();
        let secret = BENCH
            .context
            .encrypt(&plain, &BENCH.secret, &BENCH.randomness)
            .unwrap();
        for (x, bound) in [
            (public, noise.encrypt_public(&bound)),
            (secret, noise.encrypt_secret(&bound)),
        ] {
            assert_eq!(
                x.state(),
                &CipherState::new(level, BENCH.parameters().scale().clone())
            );
            let error = distance(&BENCH.decrypt(&x), &values);
            // The bound is met, and is not a loose constant: errors come near it.
            assert!(
                error < bound.error && error > bound.error / 100.0,
                "{error:e} {bound:?}"
            );
        }
    }
}

/// The error of a fresh ciphertext has the variance that ternary masks and secrets and errors of
/// standard deviation 3.19 give: sigma^2 (1 + 4N/3) in each coefficient, sigma^2 under the secret.
#[test]
fn fresh_noise_has_the_variance_of_its_distributions() {
    let zeros = vec![Complex64::default(); 8 * SLOTS];
    let plain = BENCH.encode(&zeros, &[8, SLOTS], 1);
    let n = 2.0 * SLOTS as f64;
    let sigma = security::ERROR_STANDARD_DEVIATION;
    for (key, variance) in [
        (
            EncryptionKey::from(&BENCH.public),
            sigma.powi(2) * (1.0 + 4.0 * n / 3.0),
        ),
        (EncryptionKey::from(&BENCH.secret), sigma.powi(2)),
    ] {
        let x = BENCH
            .context
            .encrypt(&plain, key, &BENCH.randomness)
            .unwrap();
        let errors = BENCH.decrypt(&x);
        let square = errors.iter().map(|e| e.norm_sqr()).sum::<f64>() / errors.len() as f64;
        let found = square.sqrt() * BENCH.parameters().scale().to_f64() / n.sqrt();
        assert!(
            (found / variance.sqrt() - 1.0).abs() < 0.08,
            "{found} {}",
            variance.sqrt()
        );
    }
}

#[test]
fn each_encryption_of_zero_is_another() {
    let zeros = vec![Complex64::default(); 2 * SLOTS];
    let plain = BENCH.encode(&zeros, &[2, SLOTS], 1);
    let mut seen = HashSet::new();
    for key in [
        EncryptionKey::from(&BENCH.public),
        EncryptionKey::from(&BENCH.secret),
    ] {
        for _ in 0..3 {
            let x = BENCH
                .context
                .encrypt(&plain, key, &BENCH.randomness)
                .unwrap();
            // Items of one batch differ too, and both parts, in every limb.
            for limb in x.data().chunks(2 * SLOTS) {
                assert!(seen.insert(limb.to_vec()));
            }
            assert!(distance(&BENCH.decrypt(&x), &zeros) < 1e-6);
        }
    }
}

/// The ids refuse another secret's key; with the ids forged, what it decrypts is noise as large as
/// the modulus, never the message.
#[test]
fn another_secret_never_decrypts() {
    let bench = &BENCH;
    let values = vec![Complex64::new(0.5, 0.0); SLOTS];
    let x = bench.encrypt(&values, &[SLOTS], 2);
    for _ in 0..4 {
        let other = bench.keys().secret().unwrap();
        let error = bench.context.decrypt(&x, &other).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::KeyMismatch);
        let (state, data) = (x.state().clone(), x.data().to_vec());
        let forged =
            Ciphertext::from_raw(bench.parameters(), other.secret_id(), state, vec![], data);
        let plain = bench.context.decrypt(&forged.unwrap(), &other).unwrap();
        let found = bench.context.decode(&plain).unwrap();
        let near = found
            .iter()
            .filter(|v| (*v - values[0]).norm() < 1e3)
            .count();
        assert_eq!(near, 0);
    }
}

#[test]
fn a_seed_repeats_everything_and_another_nothing() {
    let make = |seed| {
        let bench = Bench::with(BENCH.parameters(), ContextOptions::default(), seed);
        let x = bench.encrypt(&random(1, SLOTS), &[SLOTS], 3);
        let key = bench.keys().rotation(&bench.secret, 1).unwrap();
        (
            bench.secret.secret_id(),
            x.data().to_vec(),
            key.residues().to_vec(),
        )
    };
    let (first, again, other) = (make(5), make(5), make(6));
    assert!(first == again);
    assert!(first.0 != other.0 && first.1 != other.1 && first.2 != other.2);
}

#[test]
fn flooding_adds_the_noise_that_was_asked_for() {
    let bench = &BENCH;
    let x = bench.encrypt(&random(1, 4 * SLOTS), &[4, SLOTS], 3);
    let clear = bench.context.decrypt(&x, &bench.secret).unwrap();
    let before = bench.context.decode(&clear).unwrap();
    for bits in [20.0, 30.5, 70.0] {
        let flooding = NoiseFlooding {
            log2_standard_deviation: bits,
        };
        let flooded = bench
            .context
            .flood(clear.clone(), flooding, &bench.randomness)
            .unwrap();
        let after = bench.context.decode(&flooded).unwrap();
        let square: f64 = before
            .iter()
            .zip(&after)
            .map(|(b, a)| (a - b).norm_sqr())
            .sum();
        // A slot is the sum of N coefficients with unit weights.
        let slot = (square / before.len() as f64).sqrt() * bench.parameters().scale().to_f64();
        let expected = bits.exp2() * (2.0 * SLOTS as f64).sqrt();
        assert!((slot / expected - 1.0).abs() < 0.1, "{slot:e} {expected:e}");
    }
    for bits in [-1.0, f64::NAN, 1000.0] {
        let flooding = NoiseFlooding {
            log2_standard_deviation: bits,
        };
        let error = bench
            .context
            .flood(clear.clone(), flooding, &bench.randomness)
            .unwrap_err();
        assert!(error.to_string().starts_with("noise_flooding"), "{error}");
    }
}

/// Keys are seeded, and their size is known before they are made.
#[test]
fn key_sizes_are_predicted_and_half_of_two_halves() {
    let bench = &BENCH;
    let mut key = bench.keys().rotation(&bench.secret, -3).unwrap();
    assert_eq!(
        key.nbytes(),
        KeySwitchKey::predicted_nbytes(bench.parameters())
    );
    assert_eq!(key.key_kind(), KeyKind::Rotation { step: SLOTS - 3 });
    assert_eq!(key.expanded_nbytes(), 0);
    let x = bench.encrypt(&random(1, SLOTS), &[SLOTS], 3);
    let rotated = bench.context.rotate(&x, -3, &key).unwrap();
    let full = key.expanded_nbytes() + key.nbytes();
    assert!(key.nbytes() as f64 <= 0.55 * full as f64);
    key.release_expanded();
    assert_eq!(key.expanded_nbytes(), 0);
    assert_eq!(
        bench.context.rotate(&x, -3, &key).unwrap().data(),
        rotated.data()
    );
}

#[test]
fn stored_parts_make_the_same_values_and_keys() {
    let bench = &BENCH;
    let (parameters, context) = (bench.parameters(), &bench.context);
    let x = bench.encrypt(&random(1, SLOTS), &[SLOTS], 3);
    let raw = |state: CipherState, shape: Vec<usize>, data: Vec<u64>| {
        Ciphertext::from_raw(parameters, x.secret_id(), state, shape, data)
    };
    let same = raw(x.state().clone(), vec![], x.data().to_vec()).unwrap();
    assert_eq!(bench.decrypt(&same), bench.decrypt(&x));

    let coefficients = bench.secret.coefficients(context).unwrap();
    let id = SecretId::from_bytes(bench.secret.secret_id().bytes());
    let secret = bench
        .keys()
        .secret_from_coefficients(id, &coefficients)
        .unwrap();
    assert_eq!(
        bench.context.decrypt(&x, &secret).unwrap().data(),
        bench.context.decrypt(&x, &bench.secret).unwrap().data()
    );
    let public = PublicKey::from_raw(
        parameters,
        id,
        *bench.public.seed(),
        bench.public.residues().to_vec(),
    );
    let plain = bench.encode(&random(2, SLOTS), &[SLOTS], 1);
    let y = context
        .encrypt(&plain, &public.unwrap(), &bench.randomness)
        .unwrap();
    assert!(distance(&bench.decrypt(&y), &random(2, SLOTS)) < 1e-6);
    let key = bench.keys().rotation(&bench.secret, 1).unwrap();
    let again = KeySwitchKey::from_raw(
        parameters,
        id,
        key.key_kind(),
        *key.seed(),
        key.residues().to_vec(),
    )
    .unwrap();
    assert_eq!(
        context.rotate(&x, 1, &again).unwrap().data(),
        context.rotate(&x, 1, &key).unwrap().data()
    );

    let refused = |result: Result<Ciphertext>, words: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value);
        assert!(error.to_string().contains(words), "{error}");
    };
    refused(raw(x.state().clone(), vec![2], x.data().to_vec()), "[2]");
    let mut data = x.data().to_vec();
    data[0] = u64::MAX;
    refused(
        raw(x.state().clone(), vec![], data),
        "residues below its modulus",
    );
    let state = CipherState {
        parts: 5,
        ..x.state().clone()
    };
    refused(raw(state, vec![], vec![]), "2 or 3 parts");
    let state = CipherState {
        level: 9,
        ..x.state().clone()
    };
    refused(raw(state, vec![], vec![]), "level 9");
    refused(
        raw(x.state().clone(), vec![usize::MAX, 4], vec![]),
        "0 residues",
    );
    assert!(
        bench
            .keys()
            .secret_from_coefficients(id, &[2; 1024])
            .is_err()
    );
}

/// Nothing that is printed shows a secret.
#[test]
fn debug_forms_show_ids_only() {
    let bench = &BENCH;
    let key = bench.keys().relinearization(&bench.secret).unwrap();
    let x = bench.encrypt(&random(1, SLOTS), &[SLOTS], 1);
    for text in [
        format!("{:?}", bench.secret),
        format!("{:?}", bench.public),
        format!("{key:?}"),
        format!("{x:?}"),
        format!("{:?}", bench.context),
        format!("{:?}", bench.randomness),
    ] {
        assert!(text.len() < 400, "{text}");
        for residue in [x.data()[0], key.residues()[0], bench.public.residues()[0]] {
            assert!(!text.contains(&residue.to_string()), "{text}");
        }
    }
}
