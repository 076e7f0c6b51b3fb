//! A compiled call beside the same operations called one by one, and what a hit costs beyond its
//! kernels.
//!
//!     cargo bench -p fhelium-runtime --bench call

use criterion::{Criterion, criterion_group, criterion_main};
use fhelium_runtime::ckks::Parameters;
use fhelium_runtime::ir::{Attributes, He, OutputTree, ProgramBuilder};
use fhelium_runtime::passes::{Compilation, default_pipeline};
use fhelium_runtime::tensor::Tensor;
use fhelium_runtime::{
    CallSignature, Condition, Engine, EngineOptions, OperationBackend, PrepareOptions,
    Specialization, SpecializationCache, Value, prepare,
};
use std::hint::black_box;
use std::sync::Arc;

/// An engine with keys, and one ciphertext.
fn setup(parameters: &Parameters) -> (Arc<Engine>, Value) {
    let engine = Engine::new(parameters, EngineOptions::default()).unwrap();
    let keys = engine.keygen(&[1, 2, 4], false).unwrap();
    engine.use_keys(&keys.evaluation()).unwrap();
    let message = Tensor::from_vec(vec![0.5f64; 8], &[8]).unwrap();
    let plaintext = engine.encode(&message, None, None).unwrap();
    let x = engine.encrypt(&plaintext, &keys.public).unwrap();
    (engine, x.into())
}

/// The sum of x^2's rotations by 1, 2 and 4, rescaled.
fn compile(engine: &Arc<Engine>, x: &Value) -> Specialization {
    let chain = Arc::new(engine.parameters().chain().clone());
    let none = Attributes::new();
    let mut builder = ProgramBuilder::new("bench", Some(chain));
    let input = builder.input("x", x.ty()).unwrap();
    let product = builder.one(He::Mul, &[input, input], &none, None).unwrap();
    let product = builder
        .one(He::Relinearize, &[product], &none, None)
        .unwrap();
    let square = builder.one(He::Rescale, &[product], &none, None).unwrap();
    let mut sum = square;
    for step in [1i64, 2, 4] {
        let rotation = Attributes::new().with("step", step);
        let rotated = builder.one(He::Rotate, &[square], &rotation, None).unwrap();
        sum = builder.one(He::Add, &[sum, rotated], &none, None).unwrap();
    }
    let program = builder.finish(&OutputTree::Value(sum)).unwrap();
    prepare(
        &Compilation::new(program),
        &default_pipeline(),
        &OperationBackend::standard(),
        signature(x),
        engine,
        PrepareOptions::default(),
    )
    .unwrap()
}

fn eager(engine: &Engine, x: &Value) -> Value {
    let product = engine.multiply(x, x).unwrap();
    let product = engine.relinearize(&product, None).unwrap();
    let square = engine.rescale(&product).unwrap();
    let mut sum = square.clone();
    for step in [1, 2, 4] {
        let rotated = engine.rotate(&square, step, None).unwrap();
        sum = engine.add(&sum, &rotated).unwrap();
    }
    sum
}

fn signature(x: &Value) -> CallSignature {
    ["x", "y", "z", "w"]
        .map(|name| (name.into(), Condition::from(x)))
        .into_iter()
        .collect()
}

fn calls(criterion: &mut Criterion) {
    let rings = [
        (
            "N=2^10 depth 2",
            Parameters::builder(2, 40)
                .log_n(10)
                .allow_insecure(true)
                .build(),
        ),
        ("N=2^14 depth 7", Parameters::builder(7, 40).build()),
    ];
    for (name, parameters) in rings {
        let (engine, x) = setup(&parameters.unwrap());
        let specialization = compile(&engine, &x);
        let arguments = [x.clone()];
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20);
        group.bench_function("compiled", |bencher| {
            bencher.iter(|| {
                specialization
                    .executable()
                    .run(black_box(&arguments))
                    .unwrap()
            });
        });
        group.bench_function("eager", |bencher| {
            bencher.iter(|| eager(&engine, black_box(&x)));
        });
        group.finish();
    }
}

/// What a hit does before its kernels run: the signature of four ciphertexts and the look-up.
fn hits(criterion: &mut Criterion) {
    let parameters = Parameters::builder(2, 40)
        .log_n(10)
        .allow_insecure(true)
        .build();
    let (engine, x) = setup(&parameters.unwrap());
    let cache = SpecializationCache::<Specialization>::new(None);
    cache.insert(&signature(&x), Arc::new(compile(&engine, &x)));
    let names: [Arc<str>; 4] = ["x", "y", "z", "w"].map(Into::into);
    criterion.bench_function("signature and look-up", |bencher| {
        bencher.iter(|| {
            let arguments = names.iter().map(|name| (name.clone(), Condition::from(&x)));
            cache.lookup(&arguments.collect()).unwrap()
        });
    });
    // A program whose only work is to hand its argument back.
    let mut builder = ProgramBuilder::new(
        "identity",
        Some(Arc::new(engine.parameters().chain().clone())),
    );
    let input = builder.input("x", x.ty()).unwrap();
    let program = builder.finish(&OutputTree::Value(input)).unwrap();
    let identity = prepare(
        &Compilation::new(program),
        &default_pipeline(),
        &OperationBackend::standard(),
        CallSignature::default(),
        &engine,
        PrepareOptions::default(),
    )
    .unwrap();
    let arguments = [x];
    criterion.bench_function("an empty run", |bencher| {
        bencher.iter(|| identity.executable().run(black_box(&arguments)).unwrap());
    });
}

criterion_group!(benches, hits, calls);
criterion_main!(benches);
