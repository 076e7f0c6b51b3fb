//! Captured data: live, frozen, and encoded no more often than needed.

mod common;

use common::{
    Counting, encrypt, engine, leaves, message, prepared, prepared_on, program, same_bits,
};
use fhelium_runtime::ir::{Ckks, Tensor as T};
use fhelium_runtime::tensor::Tensor;
use fhelium_runtime::{
    LiveTensor, MaterialBinding, OperationBackend, PrepareOptions, RuntimeError, Value,
};
use std::sync::Arc;

const WEIGHTS: &str = "material @v : !tensor<f64, [4]>\n  material @w : !tensor<f64, [4]>";

/// x v + (v + w), v encoded at two scales.
const AFFINE: &str = "func (%x: !fresh) {
    %v = core.material {symbol = @v}
    %w = core.material {symbol = @w}
    %p = he.encode %v {level = 3, scale = 2^40}
    %xv = he.mul %x, %p
    %sum = tensor.add %v, %w
    %q = he.encode %sum {level = 3, scale = 2^80}
    %y = he.add %xv, %q
    return (%y, %w)
}";

fn expected(x: &Value, v: &Tensor, w: &Tensor) -> Value {
    let (engine, _) = engine();
    let add = fhelium_runtime::tensor::evaluate(T::Add, &[v, w], &Default::default()).unwrap();
    let scale = engine.parameters().scale();
    let p = engine.encode(v, Some(3), None).unwrap().into();
    let q = engine
        .encode(&add, Some(3), Some(&scale.times(scale)))
        .unwrap()
        .into();
    let product = engine.multiply(x, &p).unwrap();
    engine.add(&product, &q).unwrap()
}

/// Guards that changed contents are seen by the next call, and that only what depends on them is
/// encoded again.
#[test]
fn live_materials_are_seen_and_encoded_once() {
    let (engine, keys) = engine();
    let x = encrypt(engine, keys, &message(1, &[4]));
    let (v, w) = (message(2, &[4]), message(3, &[4]));
    let (live_v, live_w) = (
        Arc::new(LiveTensor::new(v.clone())),
        Arc::new(LiveTensor::new(w.clone())),
    );
    let encode = Counting::new(Ckks::Encode, "counting", 0.5);
    let backend = OperationBackend::standard()
        .with_implementations([encode.clone() as _])
        .unwrap();
    let specialization = prepared_on(
        engine,
        program(engine, WEIGHTS, AFFINE),
        &[
            ("v", MaterialBinding::Live(live_v.clone())),
            ("w", MaterialBinding::Live(live_w.clone())),
        ],
        PrepareOptions::default(),
        &backend,
    )
    .unwrap();
    let run = || {
        leaves(
            &specialization
                .executable()
                .run(std::slice::from_ref(&x))
                .unwrap(),
        )
    };
    assert_eq!(encode.runs(), 0);
    assert!(same_bits(&run()[0], &expected(&x, &v, &w)));
    assert!(same_bits(&run()[0], &expected(&x, &v, &w)));
    assert_eq!(encode.runs(), 2);
    assert!(specialization.executable().resident_bytes() > 0);

    let changed = message(4, &[4]);
    live_w.set(changed.clone());
    let outputs = run();
    assert!(same_bits(&outputs[0], &expected(&x, &v, &changed)));
    assert!(same_bits(&outputs[1], &changed.into()));
    assert_eq!(encode.runs(), 3, "the encoding of v does not depend on w");

    live_v.set(message(5, &[4]));
    assert!(same_bits(
        &run()[0],
        &expected(&x, &live_v.get(), &live_w.get())
    ));
    assert_eq!(encode.runs(), 5);
}

/// Guards that frozen materials keep the contents that they had when the Program was linked.
#[test]
fn frozen_materials_stay() {
    let (engine, keys) = engine();
    let x = encrypt(engine, keys, &message(1, &[4]));
    let (v, w) = (message(2, &[4]), message(3, &[4]));
    let live = Arc::new(LiveTensor::new(v.clone()));
    let specialization = prepared(
        engine,
        program(engine, WEIGHTS, AFFINE),
        &[
            ("v", MaterialBinding::Live(live.clone())),
            ("w", Value::from(w.clone()).into()),
        ],
        PrepareOptions {
            frozen_materials: true,
            ..PrepareOptions::default()
        },
    )
    .unwrap();
    live.set(message(9, &[4]));
    let outputs = specialization
        .executable()
        .run(std::slice::from_ref(&x))
        .unwrap();
    assert!(same_bits(&leaves(&outputs)[0], &expected(&x, &v, &w)));
}

/// Guards that a material that is unbound, of another type, or changes its type is named.
#[test]
fn unfit_materials_are_named() {
    let (engine, keys) = engine();
    let prepare = |materials: &[(&str, MaterialBinding)]| {
        prepared(
            engine,
            program(engine, WEIGHTS, AFFINE),
            materials,
            PrepareOptions::default(),
        )
    };
    let v = ("v", MaterialBinding::from(Value::from(message(2, &[4]))));
    let text = prepare(std::slice::from_ref(&v)).unwrap_err().to_string();
    assert!(
        text.contains("@w (!tensor<f64, [4]>) is not bound; bound are: @v"),
        "{text}"
    );
    let text = prepare(&[v.clone(), ("w", Value::from(message(1, &[5])).into())])
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("@w is declared as !tensor<f64, [4]>, but bound to"),
        "{text}"
    );

    let live = Arc::new(LiveTensor::new(message(3, &[4])));
    let specialization = prepare(&[v, ("w", MaterialBinding::Live(live.clone()))]).unwrap();
    let x = encrypt(engine, keys, &message(1, &[4]));
    live.set(message(3, &[7]));
    let error = specialization
        .executable()
        .run(std::slice::from_ref(&x))
        .unwrap_err();
    assert!(matches!(error, RuntimeError::Value(_)));
    assert!(
        error.to_string().contains("@w is !tensor<f64, [7]> now"),
        "{error}"
    );
    live.set(message(3, &[4]));
    specialization.executable().run(&[x]).unwrap();
}

/// Guards that calls while a material changes give the result of one or the other contents.
#[test]
fn changes_during_calls_do_not_mix() {
    let (engine, keys) = engine();
    let x = encrypt(engine, keys, &message(1, &[4]));
    let (one, other) = (message(2, &[4]), message(3, &[4]));
    let live = Arc::new(LiveTensor::new(one.clone()));
    let binding = MaterialBinding::Live(live.clone());
    let specialization = prepared(
        engine,
        program(engine, WEIGHTS, AFFINE),
        &[("v", binding), ("w", Value::from(one.clone()).into())],
        PrepareOptions::default(),
    )
    .unwrap();
    let results = [expected(&x, &one, &one), expected(&x, &other, &one)];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..100 {
                live.set([&one, &other][round % 2].clone());
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let outputs = specialization
                        .executable()
                        .run(std::slice::from_ref(&x))
                        .unwrap();
                    let found = &leaves(&outputs)[0];
                    assert!(results.iter().any(|result| same_bits(result, found)));
                }
            });
        }
    });
}
