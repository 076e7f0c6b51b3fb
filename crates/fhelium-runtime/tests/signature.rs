//! Call signatures: what tells calls apart, and what a miss says.

use fhelium_runtime::ckks::ParametersId;
use fhelium_runtime::ir::{DType, KeyKind};
use fhelium_runtime::state::Scale;
use fhelium_runtime::{
    ArgumentSignature, CallSignature, Condition, Device, SpecializationMiss, StaticValue, nearest,
};
use std::collections::HashSet;

const PARAMETERS: ParametersId = ParametersId::from_bytes([7; 16]);

fn argument(name: &str, condition: Condition) -> ArgumentSignature {
    ArgumentSignature {
        name: name.into(),
        condition,
    }
}

fn ciphertext(level: usize, batch: &[usize]) -> Condition {
    Condition::Ciphertext {
        level,
        scale: Scale::from_bits(40),
        parts: 2,
        batch_shape: batch.to_vec(),
        parameters: PARAMETERS,
        device: Device::Cpu,
    }
}

fn call(conditions: &[Condition]) -> CallSignature {
    let names = ["x", "y", "z"];
    let arguments = names.iter().zip(conditions);
    CallSignature::new(
        arguments
            .map(|(name, condition)| argument(name, condition.clone()))
            .collect(),
    )
}

/// Guards that static scalars of different type or bits are different calls.
#[test]
fn scalars_are_told_apart_by_type_and_bits() {
    let values = [
        StaticValue::None,
        StaticValue::Bool(true),
        StaticValue::Int(1),
        StaticValue::float(1.0),
        StaticValue::complex(1.0, 0.0),
        StaticValue::Str("1".into()),
        StaticValue::float(0.0),
        StaticValue::float(-0.0),
        StaticValue::Bool(false),
        StaticValue::Int(0),
        StaticValue::BigInt("100000000000000000000".into()),
    ];
    let distinct: HashSet<_> = values
        .iter()
        .map(|value| call(&[Condition::Static(value.clone())]))
        .collect();
    assert_eq!(distinct.len(), values.len());
    assert_eq!(StaticValue::float(f64::NAN), StaticValue::float(-f64::NAN));
}

/// Guards that a difference names the argument and the condition with both values.
#[test]
fn differences_name_argument_and_condition() {
    let found = call(&[ciphertext(5, &[2]), Condition::Static(StaticValue::Int(3))]);
    let prepared = call(&[
        ciphertext(7, &[2]),
        Condition::Static(StaticValue::float(3.0)),
    ]);
    let text: Vec<String> = found
        .difference(&prepared)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        text,
        [
            "x: level is 5, prepared for 7",
            "y: type is int, prepared for float",
            "y: value is 3, prepared for 3.0",
        ]
    );
    assert!(found.difference(&found).is_empty());
}

/// Guards that scales that print alike but differ exactly are shown in full.
#[test]
fn close_scales_are_shown_exactly() {
    let with = |scale: Scale| {
        call(&[Condition::Plaintext {
            level: 1,
            scale,
            batch_shape: vec![],
            parameters: PARAMETERS,
            device: Device::Cpu,
        }])
    };
    let prime = 1_099_511_922_689u64;
    let one = Scale::from_bits(80).over_prime(prime);
    let other = one
        .times(&Scale::from_integer(prime).unwrap())
        .over_prime(prime + 2);
    let differences = with(one.clone()).difference(&with(other.clone()));
    assert_eq!(differences.len(), 1);
    assert_ne!(differences[0].found, differences[0].expected);
}

/// Guards the ranking: fewer and lesser differences come first.
#[test]
fn the_nearest_variant_comes_first() {
    let tensor = Condition::Tensor {
        dtype: DType::F64,
        shape: vec![4],
        strides: vec![1],
        device: Device::Cpu,
    };
    let key = Condition::Key {
        kind: KeyKind::Rotation { step: 3 },
        parameters: PARAMETERS,
        device: Device::Cpu,
    };
    let prepared = [
        call(&[tensor, key.clone()]),
        call(&[ciphertext(2, &[1, 4])]),
        call(&[ciphertext(2, &[6]), key.clone()]),
        call(&[ciphertext(3, &[6]), key.clone()]),
    ];
    let found = call(&[ciphertext(3, &[4]), key]);
    let ranked = nearest(&found, &prepared);
    let order: Vec<usize> = ranked.iter().map(|(position, _)| *position).collect();
    assert_eq!(order, [3, 2, 0, 1]);
    let miss = SpecializationMiss {
        callable: "score".to_owned(),
        prepared: prepared.len(),
        nearest: ranked,
    };
    let text = miss.to_string();
    assert!(
        text.starts_with("score: no specialization of the 4 prepared fits"),
        "{text}"
    );
    assert!(
        text.contains("x: batch_shape is (4,), prepared for (6,)"),
        "{text}"
    );
}

/// Guards the readable form.
#[test]
fn signatures_print_readably() {
    let text = call(&[
        ciphertext(3, &[6]),
        Condition::Static(StaticValue::Bool(true)),
    ])
    .to_string();
    assert_eq!(
        text,
        "(x: ciphertext(level=3, scale=2^40, parts=2, batch_shape=(6,), parameters=070707070707, \
         device=cpu), y: static bool True)"
    );
}
