//! Every operation against complex arithmetic, within the bounds of the noise model.

mod support;

use fhelium_ckks::*;
use proptest::prelude::*;
use std::sync::LazyLock;
use support::*;

/// Parameters of every digit layout: one to four primes in a digit, the last digit full or not, and
/// primes inside and outside the range of the fast cores.
static BENCHES: LazyLock<Vec<Bench>> = LazyLock::new(|| {
    let layouts = [
        (3, 40, 1),
        (4, 40, 2),
        (6, 36, 3),
        (3, 50, 2),
        (0, 40, 1),
        (7, 30, 4),
    ];
    layouts
        .iter()
        .map(|&(depth, scale_bits, special)| {
            let parameters = Parameters::builder(depth, scale_bits)
                .log_n(10)
                .special_primes(special)
                .allow_insecure(true);
            Bench::new(parameters, depth as u64)
        })
        .collect()
});

/// A message, its ciphertext and the bound on its error.
#[derive(Clone)]
struct Tracked {
    message: Vec<Complex64>,
    ciphertext: Ciphertext,
    noise: NoiseEstimate,
}

impl Tracked {
    fn new(bench: &Bench, seed: u64, shape: &[usize], level: usize) -> Self {
        let full = [shape, &[bench.parameters().slots()]].concat();
        let message = bench.random(seed, &full);
        let plain = bench
            .parameters()
            .noise()
            .encode(level, bench.parameters().scale(), 1.5);
        Tracked {
            ciphertext: bench.encrypt(&message, &full, level),
            message,
            noise: bench.parameters().noise().encrypt_public(&plain),
        }
    }

    fn assert_close(&self, bench: &Bench, what: &str) {
        let state = self.ciphertext.state();
        assert_eq!(
            (state.level, &state.scale, state.parts),
            (self.noise.level, &self.noise.scale, self.noise.parts),
            "{what}"
        );
        let found = distance(&bench.decrypt(&self.ciphertext), &self.message);
        let bound = bench.parameters().noise().decode(&self.noise);
        assert!(found <= bound, "{what}: error {found:e}, bound {bound:e}");
        // A bound that says nothing would hide a wrong result.
        assert!(bound < 1e-2, "{what}: bound {bound:e}");
    }
}

fn zip(
    l: &[Complex64],
    r: &[Complex64],
    f: fn(Complex64, Complex64) -> Complex64,
) -> Vec<Complex64> {
    l.iter().zip(r).map(|(&l, &r)| f(l, r)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn sums_and_products_match_complex_arithmetic(
        which in 0usize..6,
        seed in any::<u64>(),
        batch in prop::sample::select(vec![vec![], vec![2], vec![1, 3]]),
        drop in 0usize..4,
        factor in -9i64..=9,
    ) {
        let bench = &BENCHES[which];
        let context = &bench.context;
        let noise = bench.parameters().noise();
        let level = bench.parameters().depth().saturating_sub(drop);
        let x = Tracked::new(bench, seed, &batch, level);
        let y = Tracked::new(bench, seed ^ 1, &batch, level);
        let shape = [&batch[..], &[bench.parameters().slots()]].concat();
        // A plaintext may hold more levels than the ciphertext.
        let plain_message = bench.random(seed ^ 2, &shape);
        let plain = bench.encode(&plain_message, &shape, bench.parameters().depth());
        let plain_noise = noise.encode(level, bench.parameters().scale(), 1.5);
        let check = |what: &str, ciphertext: Ciphertext, message, noise| {
            Tracked { message, ciphertext, noise }.assert_close(bench, what);
        };
        check("add", context.add(&x.ciphertext, &y.ciphertext).unwrap(),
            zip(&x.message, &y.message, |a, b| a + b), noise.add(&x.noise, &y.noise));
        check("subtract", context.subtract(&x.ciphertext, &y.ciphertext).unwrap(),
            zip(&x.message, &y.message, |a, b| a - b), noise.add(&x.noise, &y.noise));
        check("negate", context.negate(&x.ciphertext).unwrap(),
            x.message.iter().map(|v| -v).collect(), x.noise.clone());
        check("add plain", context.add_plain(&x.ciphertext, &plain).unwrap(),
            zip(&x.message, &plain_message, |a, b| a + b), noise.add(&x.noise, &plain_noise));
        check("subtract plain", context.subtract_plain(&x.ciphertext, &plain).unwrap(),
            zip(&x.message, &plain_message, |a, b| a - b), noise.add(&x.noise, &plain_noise));
        check("plain subtract", context.plain_subtract(&plain, &x.ciphertext).unwrap(),
            zip(&x.message, &plain_message, |a, b| b - a), noise.add(&x.noise, &plain_noise));
        check("multiply integer", context.multiply_integer(&x.ciphertext, factor).unwrap(),
            x.message.iter().map(|v| v * factor as f64).collect(),
            noise.multiply_integer(&x.noise, factor));
        check("drop levels", context.drop_levels(&x.ciphertext, level).unwrap(),
            x.message.clone(), noise.drop_levels(&x.noise, level));
        if level == 0 {
            let exhausted = context.multiply(&x.ciphertext, &y.ciphertext).unwrap_err();
            prop_assert_eq!(exhausted.kind(), ErrorKind::LevelExhausted);
            return Ok(());
        }
        let product = context.multiply_plain(&x.ciphertext, &plain).unwrap();
        let product_noise = noise.multiply(&x.noise, &plain_noise);
        let message = zip(&x.message, &plain_message, |a, b| a * b);
        check("multiply plain", product.clone(), message.clone(), product_noise.clone());
        check("rescale", context.rescale(&product).unwrap(), message, noise.rescale(&product_noise));

        let relinearization = bench.keys().relinearization(&bench.secret).unwrap();
        let product = context.multiply(&x.ciphertext, &y.ciphertext).unwrap();
        let product_noise = noise.multiply(&x.noise, &y.noise);
        let message = zip(&x.message, &y.message, |a, b| a * b);
        check("multiply", product.clone(), message.clone(), product_noise.clone());
        // A three-part product takes part in sums, and rescales, before it is relinearized.
        let sum = context.add(&product, &product).unwrap();
        let doubled: Vec<_> = message.iter().map(|v| v * 2.0).collect();
        check("add three parts", sum, doubled, noise.add(&product_noise, &product_noise));
        let rescaled = context.rescale(&product).unwrap();
        check("rescale three parts", rescaled.clone(), message.clone(), noise.rescale(&product_noise));
        let late = context.relinearize(&rescaled, &relinearization).unwrap();
        check("late relinearize", late, message.clone(),
            noise.key_switch(&noise.rescale(&product_noise)));
        let two = context.relinearize(&product, &relinearization).unwrap();
        let two_noise = noise.key_switch(&product_noise);
        check("relinearize", two.clone(), message.clone(), two_noise.clone());
        let fused =
            context.multiply_relinearize(&x.ciphertext, &y.ciphertext, &relinearization).unwrap();
        prop_assert_eq!(fused.data(), two.data());
        check("rescale after", context.rescale(&two).unwrap(), message, noise.rescale(&two_noise));
        // In one step, the same residues.
        let apart = context.rescale(&two).unwrap();
        let joined = context.relinearize_rescale(&product, &relinearization).unwrap();
        prop_assert_eq!(joined.state(), apart.state());
        prop_assert_eq!(joined.data(), apart.data());
        let joined = context
            .multiply_relinearize_rescale(&x.ciphertext, &y.ciphertext, &relinearization)
            .unwrap();
        prop_assert_eq!(joined.batch_shape(), apart.batch_shape());
        prop_assert_eq!(joined.data(), apart.data());
        let square = context.square(&x.ciphertext).unwrap();
        let again = x.ciphertext.clone();
        let multiplied = context.multiply(&x.ciphertext, &again).unwrap();
        prop_assert_eq!(square.data(), multiplied.data());
    }

    #[test]
    fn rotations_turn_and_conjugation_mirrors(
        which in 0usize..6,
        seed in any::<u64>(),
        steps in prop::collection::vec(-2000i64..2000, 1..4),
        drop in 0usize..8,
    ) {
        let bench = &BENCHES[which];
        let context = &bench.context;
        let noise = bench.parameters().noise();
        let level = bench.parameters().depth().saturating_sub(drop);
        let x = Tracked::new(bench, seed, &[2], level);
        let slots = bench.parameters().slots();
        let steps: Vec<i64> =
            steps.into_iter().filter(|&step| normalize_step(step, slots) != 0).collect();
        let keys: Vec<_> =
            steps.iter().map(|&step| bench.keys().rotation(&bench.secret, step).unwrap()).collect();
        let pairs: Vec<_> = steps.iter().copied().zip(&keys).collect();
        let hoisted = context.rotate_hoisted(&x.ciphertext, &pairs).unwrap();
        for (&(step, key), hoisted) in pairs.iter().zip(hoisted) {
            let message = x.message.chunks(slots).flat_map(|item| {
                let turn = normalize_step(step, slots);
                item[turn..].iter().chain(&item[..turn]).copied()
            });
            let single = context.rotate(&x.ciphertext, step, key).unwrap();
            prop_assert_eq!(single.data(), hoisted.data());
            Tracked {
                message: message.collect(),
                ciphertext: hoisted,
                noise: noise.key_switch(&x.noise),
            }
            .assert_close(bench, &format!("rotate by {step} at level {level}"));
        }
        let key = bench.keys().conjugation(&bench.secret).unwrap();
        Tracked {
            message: x.message.iter().map(|v| v.conj()).collect(),
            ciphertext: context.conjugate(&x.ciphertext, &key).unwrap(),
            noise: noise.key_switch(&x.noise),
        }
        .assert_close(bench, "conjugate");
    }
}

/// Batches combine as numpy's do, for ciphertexts and plaintexts.
#[test]
fn batches_broadcast() {
    let bench = &BENCHES[0];
    let context = &bench.context;
    let slots = bench.parameters().slots();
    let shapes: [(&[usize], &[usize], &[usize]); 4] = [
        (&[], &[3], &[3]),
        (&[2, 1], &[3], &[2, 3]),
        (&[3], &[3], &[3]),
        (&[1, 2], &[2], &[1, 2]),
    ];
    for (left, right, expected) in shapes {
        let x = Tracked::new(bench, 1, left, 3);
        let y = Tracked::new(bench, 2, right, 3);
        let full = [right, &[slots]].concat();
        let plain = bench.encode(&y.message, &full, 3);
        let items = |shape: &[usize]| shape.iter().product::<usize>();
        let at = |value: &Tracked, shape: &[usize], item: usize, slot: usize| {
            // Every case here repeats an operand whole, or pairs its items in turn.
            let index = if shape == [2, 1] {
                item / 3
            } else {
                item % items(shape).max(1)
            };
            value.message[index * slots + slot]
        };
        for (result, f) in [
            (
                context.add(&x.ciphertext, &y.ciphertext).unwrap(),
                (|a, b| a + b) as fn(_, _) -> _,
            ),
            (context.add_plain(&x.ciphertext, &plain).unwrap(), |a, b| {
                a + b
            }),
            (
                context.multiply(&x.ciphertext, &y.ciphertext).unwrap(),
                |a, b| a * b,
            ),
            (
                context.multiply_plain(&x.ciphertext, &plain).unwrap(),
                |a, b| a * b,
            ),
        ] {
            assert_eq!(result.batch_shape(), expected);
            let message: Vec<Complex64> = (0..items(expected))
                .flat_map(|item| (0..slots).map(move |slot| (item, slot)))
                .map(|(item, slot)| f(at(&x, left, item, slot), at(&y, right, item, slot)))
                .collect();
            assert!(distance(&bench.decrypt(&result), &message) < 1e-6);
        }
    }
    let x = Tracked::new(bench, 1, &[2], 3);
    let y = Tracked::new(bench, 2, &[3], 3);
    let error = context.add(&x.ciphertext, &y.ciphertext).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    assert!(error.to_string().contains("[2] and [3]"), "{error}");
}

/// Cases 6 and 7 of the reports: every step in either direction, at the last level.
#[test]
fn every_rotation_is_right_at_level_zero() {
    let bench = &BENCHES[1];
    let slots = bench.parameters().slots();
    let x = Tracked::new(bench, 5, &[], 0);
    for step in 1..slots {
        let key = bench
            .keys()
            .rotation(&bench.secret, step as i64 - slots as i64)
            .unwrap();
        let found = bench.decrypt(
            &bench
                .context
                .rotate(&x.ciphertext, step as i64, &key)
                .unwrap(),
        );
        let message = [&x.message[step..], &x.message[..step]].concat();
        assert!(distance(&found, &message) < 1e-6, "step {step}");
    }
}

/// Case 1 of the reports: one level reached by different paths adds and multiplies, and the sum of
/// nominally equal scales carries no more than their relative difference.
#[test]
fn paths_to_one_level_meet() {
    let bench = &BENCHES[1];
    let (context, noise) = (&bench.context, bench.parameters().noise());
    let key = bench.keys().relinearization(&bench.secret).unwrap();
    let x = Tracked::new(bench, 3, &[], 4);
    let y = Tracked::new(bench, 4, &[], 4);
    let square = context
        .multiply_relinearize(&x.ciphertext, &x.ciphertext, &key)
        .unwrap();
    let x2 = Tracked {
        message: zip(&x.message, &x.message, |a, b| a * b),
        ciphertext: context.rescale(&square).unwrap(),
        noise: noise.rescale(&noise.key_switch(&noise.multiply(&x.noise, &x.noise))),
    };
    let lower = |value: &Tracked| Tracked {
        message: value.message.clone(),
        ciphertext: context.drop_levels(&value.ciphertext, 1).unwrap(),
        noise: noise.drop_levels(&value.noise, 1),
    };
    let (x1, y1) = (lower(&x), lower(&y));
    let sum = Tracked {
        message: zip(&x2.message, &y1.message, |a, b| a + b),
        ciphertext: context.add(&x2.ciphertext, &y1.ciphertext).unwrap(),
        noise: noise.add(&x2.noise, &y1.noise),
    };
    assert_ne!(sum.ciphertext.state().scale, Scale::from_bits(40));
    sum.assert_close(bench, "sum of two paths");
    let product = context
        .multiply_relinearize(&x2.ciphertext, &x1.ciphertext, &key)
        .unwrap();
    Tracked {
        message: zip(&x2.message, &x1.message, |a, b| a * b),
        ciphertext: context.rescale(&product).unwrap(),
        noise: noise.rescale(&noise.key_switch(&noise.multiply(&x2.noise, &x1.noise))),
    }
    .assert_close(bench, "product of two paths");
}

/// Case 8 of the reports: the identity takes no key of its own, alone or among others.
#[test]
fn a_rotation_by_zero_is_the_identity() {
    let bench = &BENCHES[0];
    let slots = bench.parameters().slots() as i64;
    let x = Tracked::new(bench, 9, &[2], 2).ciphertext;
    let key = bench.keys().rotation(&bench.secret, 1).unwrap();
    for step in [0, slots, -slots] {
        let same = bench.context.rotate(&x, step, &key).unwrap();
        assert!(same.data() == x.data() && same.state() == x.state());
    }
    let both = bench
        .context
        .rotate_hoisted(&x, &[(0, &key), (1, &key)])
        .unwrap();
    assert!(both[0].data() == x.data());
    assert!(both[1].data() == bench.context.rotate(&x, 1, &key).unwrap().data());
}

/// What an operation reads, it leaves alone.
#[test]
fn operands_stay_as_they_were() {
    let bench = &BENCHES[0];
    let context = &bench.context;
    let x = Tracked::new(bench, 7, &[2], 3).ciphertext;
    let before = x.data().to_vec();
    let key = bench.keys().relinearization(&bench.secret).unwrap();
    let rotation = bench.keys().rotation(&bench.secret, 1).unwrap();
    let y = context.multiply(&x, &x).unwrap();
    let product = y.data().to_vec();
    context.add(&x, &x).unwrap();
    context.negate(&x).unwrap();
    context.relinearize(&y, &key).unwrap();
    context.rescale(&y).unwrap();
    context.rotate(&x, 1, &rotation).unwrap();
    context.drop_levels(&x, 2).unwrap();
    assert!(x.data() == before && y.data() == product);
}

/// One context from several threads at once: every result right, no two masks the same.
#[test]
fn threads_share_a_context() {
    let bench = &BENCHES[0];
    let context = &bench.context;
    let slots = bench.parameters().slots();
    let key = bench.keys().relinearization(&bench.secret).unwrap();
    let rotation = bench.keys().rotation(&bench.secret, 1).unwrap();
    let masks: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let work = |thread: u64| {
            let mut masks = Vec::new();
            for round in 0..10 {
                let values = random(100 * thread + round, slots);
                let x = bench.encrypt(&values, &[slots], 3);
                masks.push(x.data()[x.data().len() / 2..][..8].to_vec());
                let y = context.multiply_relinearize_rescale(&x, &x, &key).unwrap();
                let y = context.rotate(&y, 1, &rotation).unwrap();
                let expected: Vec<_> = (0..slots)
                    .map(|i| values[(i + 1) % slots])
                    .map(|v| v * v)
                    .collect();
                assert!(distance(&bench.decrypt(&y), &expected) < 1e-6);
            }
            masks
        };
        let threads: Vec<_> = (0..8)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    let distinct: std::collections::HashSet<_> = masks.iter().collect();
    assert_eq!(distinct.len(), 80);
}

/// The largest ring: indices and tables hold 2^17.
#[test]
fn the_largest_ring_computes() {
    let parameters = Parameters::builder(1, 40).log_n(17).build().unwrap();
    let bench = Bench::with(&parameters, ContextOptions::default(), 1);
    let slots = parameters.slots();
    let values = random(1, slots);
    let x = bench.encrypt(&values, &[slots], 1);
    let key = bench.keys().relinearization(&bench.secret).unwrap();
    let rotation = bench.keys().rotation(&bench.secret, -5).unwrap();
    let y = bench
        .context
        .multiply_relinearize_rescale(&x, &x, &key)
        .unwrap();
    let y = bench.context.rotate(&y, -5, &rotation).unwrap();
    let expected: Vec<_> = (0..slots)
        .map(|i| values[(i + slots - 5) % slots])
        .map(|v| v * v)
        .collect();
    assert!(distance(&bench.decrypt(&y), &expected) < 1e-5);
}

#[test]
fn wrong_operands_are_refused_with_the_rules_words() {
    let bench = &BENCHES[0];
    let other = Bench::with(bench.parameters(), ContextOptions::default(), 99);
    let context = &bench.context;
    let x = Tracked::new(bench, 1, &[], 3).ciphertext;
    let foreign = Tracked::new(&other, 1, &[], 3).ciphertext;
    let refused = |result: Result<Ciphertext>, kind, words: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    };
    refused(context.add(&x, &foreign), ErrorKind::KeyMismatch, "secret");
    let lower = context.drop_levels(&x, 1).unwrap();
    refused(
        context.add(&x, &lower),
        ErrorKind::LevelMismatch,
        "drop_levels(1)",
    );
    let product = context.multiply(&x, &x).unwrap();
    refused(context.add(&x, &product), ErrorKind::ScaleMismatch, "2^80");
    refused(
        context.multiply(&product, &x),
        ErrorKind::Parts,
        "relinearize it first",
    );
    let key = bench.keys().rotation(&bench.secret, 1).unwrap();
    refused(
        context.rotate(&product, 1, &key),
        ErrorKind::Parts,
        "rotate",
    );
    refused(
        context.rotate(&x, 2, &key),
        ErrorKind::MissingKey,
        "rotation by 2",
    );
    refused(
        context.relinearize(&product, &key),
        ErrorKind::MissingKey,
        "relinearization",
    );
    let foreign_key = other.keys().rotation(&other.secret, 1).unwrap();
    refused(
        context.rotate(&x, 1, &foreign_key),
        ErrorKind::KeyMismatch,
        "secret",
    );
    refused(
        context.rescale(&x),
        ErrorKind::ScaleMismatch,
        "rescaled already",
    );
    let last = context.drop_levels(&x, 3).unwrap();
    refused(context.rescale(&last), ErrorKind::LevelExhausted, "rescale");
    refused(
        context.drop_levels(&x, 4),
        ErrorKind::LevelExhausted,
        "4 levels",
    );
    refused(
        BENCHES[1].context.negate(&x),
        ErrorKind::KeyMismatch,
        "parameters",
    );
    let step = bench.keys().rotation(&bench.secret, 512).unwrap_err();
    assert!(step.to_string().contains("needs no key"), "{step}");
}
