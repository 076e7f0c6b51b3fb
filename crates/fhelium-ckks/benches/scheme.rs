//! The scheme's operations on one thread and on all: `cargo bench -p fhelium-ckks --bench scheme`.
//!
//! Every row is a full-level operation on an unbatched ciphertext. `FHELIUM_CPU_TIER` forces a tier.

use criterion::{Criterion, criterion_group, criterion_main};
use fhelium_ckks::{
    Ciphertext, Context, ContextOptions, Encoded, KeyGenerator, LinearFactor, LinearProgram,
    LinearResult, LinearStep, LinearTerm, LinearValue, Message, Plaintext, Preset, Randomness,
};
use std::cell::LazyCell;
use std::hint::black_box;

fn scheme(criterion: &mut Criterion) {
    for preset in [
        Preset::N13Depth3Scale38,
        Preset::N14Depth7Scale40,
        Preset::N15Depth16Scale40,
    ] {
        for threads in [1, 2] {
            operations(criterion, preset, threads);
        }
    }
}

fn operations(criterion: &mut Criterion, preset: Preset, threads: usize) {
    let parameters = preset.parameters();
    let options = ContextOptions {
        threads: Some(threads),
        tier: None,
    };
    let context = Context::new(&parameters, options).expect("this machine's own tier");
    let randomness = Randomness::from_seed_for_tests(1);
    let keys = KeyGenerator::new(&context, &randomness);
    let secret = keys.secret().expect("a secret");
    let public = keys.public(&secret).expect("a public key");
    let relinearization = keys
        .relinearization(&secret)
        .expect("a relinearization key");
    let rotations: LazyCell<Vec<_>, _> = LazyCell::new(|| {
        let key = |step| keys.rotation(&secret, step).expect("a rotation key");
        (1..=8).map(key).collect()
    });

    let slots = parameters.slots();
    let values: Vec<f64> = (0..slots).map(|i| (i as f64 * 0.37).sin()).collect();
    let shape = [slots];
    let (depth, scale) = (parameters.depth(), parameters.scale());
    let encode = || {
        let message = Message::real(&values, &shape).expect("a message");
        context.encode(message, depth, scale).expect("it fits")
    };
    let plaintext = encode();
    let x = context
        .encrypt(&plaintext, &public, &randomness)
        .expect("a ciphertext");
    let y = context.multiply(&x, &x).expect("a product");
    let z = LazyCell::new(|| {
        context
            .relinearize(&y, &relinearization)
            .expect("two parts")
    });

    let mut group = criterion.benchmark_group(format!("{preset}/{}/{threads}", context.tier()));
    group.sample_size(20);
    group.warm_up_time(std::time::Duration::from_millis(300));
    group.measurement_time(std::time::Duration::from_secs(1));
    group.bench_function("multiply+relinearize+rescale", |b| {
        b.iter(|| context.multiply_relinearize_rescale(black_box(&x), &x, &relinearization));
    });
    group.bench_function("multiply", |b| {
        b.iter(|| context.multiply(black_box(&x), &x))
    });
    group.bench_function("relinearize", |b| {
        b.iter(|| context.relinearize(black_box(&y), &relinearization));
    });
    group.bench_function("rescale", |b| b.iter(|| context.rescale(black_box(&z))));
    group.bench_function("rotate", |b| {
        b.iter(|| context.rotate(black_box(&x), 1, &rotations[0]));
    });
    group.bench_function("rotate 8 hoisted", |b| {
        let steps: Vec<_> = (1..).zip(rotations.iter()).collect();
        b.iter(|| context.rotate_hoisted(black_box(&x), &steps));
    });
    group.bench_function("add", |b| b.iter(|| context.add(black_box(&x), &x)));
    group.bench_function("multiply plain", |b| {
        b.iter(|| context.multiply_plain(black_box(&x), &plaintext));
    });
    let many: Vec<Ciphertext> = vec![x.clone(); TERMS];
    let plain: Vec<Plaintext> = vec![plaintext.clone(); TERMS];
    group.bench_function("16 products summed", |b| {
        let product = |i: usize| {
            context
                .multiply_plain(&many[i], &plain[i])
                .expect("a product")
        };
        let add = |sum, i| context.add(&sum, &product(i)).expect("a sum");
        b.iter(|| (1..TERMS).fold(product(0), add));
    });
    group.bench_function("16 products summed, fused", |b| {
        let (program, product) = (sum(true), &context.multiply_plain(&x, &plaintext));
        let product = product.as_ref().expect("a product");
        let operands: Vec<_> = (many.iter().map(Encoded::Ciphertext))
            .chain(plain.iter().map(Encoded::Plaintext))
            .collect();
        b.iter(|| context.fused(&program, black_box(&operands), &[like(product)]));
    });
    group.bench_function("16 summed", |b| {
        let add = |sum: Ciphertext, i: usize| context.add(&sum, &many[i]).expect("a sum");
        let first = || context.add(&many[0], &many[1]).expect("a sum");
        b.iter(|| (2..TERMS).fold(first(), add));
    });
    group.bench_function("16 summed, fused", |b| {
        let program = sum(false);
        let operands: Vec<_> = many.iter().map(Encoded::Ciphertext).collect();
        b.iter(|| context.fused(&program, black_box(&operands), &[like(&x)]));
    });
    group.bench_function("encode", |b| b.iter(encode));
    group.bench_function("encrypt", |b| {
        b.iter(|| context.encrypt(black_box(&plaintext), &public, &randomness));
    });
    group.bench_function("decrypt+decode", |b| {
        b.iter(|| {
            context.decode_real(&context.decrypt(black_box(&x), &secret).expect("its secret"))
        });
    });
    group.finish();
}

const TERMS: usize = 16;

/// A sum of ciphertexts, or of their products with plaintexts.
fn sum(products: bool) -> LinearProgram {
    let term = |i: usize| {
        let factor = LinearFactor::Value(LinearValue::Operand((TERMS + i) as u8));
        LinearTerm {
            value: LinearValue::Operand(i as u8),
            factor: products.then_some(factor),
        }
    };
    let mut steps = vec![LinearStep::Set(0, term(0))];
    steps.extend((1..TERMS).map(|i| LinearStep::Add(0, term(i))));
    steps.push(LinearStep::Give(0, 0));
    let plain = vec![1; if products { TERMS } else { 0 }];
    LinearProgram::new([vec![2; TERMS], plain].concat(), steps).expect("within the limits")
}

fn like(x: &Ciphertext) -> LinearResult {
    LinearResult {
        state: x.state().clone(),
        batch_shape: vec![],
    }
}

criterion_group!(benches, scheme);
criterion_main!(benches);
