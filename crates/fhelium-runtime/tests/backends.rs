//! Which implementation runs an operation.

mod common;

use common::{Counting, encrypt, engine, leaves, message, prepared_on, program, same_bits};
use fhelium_runtime::ckks::ErrorKind;
use fhelium_runtime::ir::{Attributes, Ckks, OpKind, Rns, Type};
use fhelium_runtime::{
    Implementation, Invocation, Operands, OperationBackend, PrepareOptions, Results, RuntimeError,
    Value,
};
use std::sync::Arc;

const NEGATED: &str = "func (%x: !fresh) {\n %y = he.neg %x\n return %y\n }";

fn with(implementations: Vec<Arc<dyn Implementation>>) -> OperationBackend {
    OperationBackend::standard()
        .with_implementations(implementations)
        .unwrap()
}

/// Guards that the standard backend runs every operation of the tensor and ckks dialects, and fused
/// ones.
#[test]
fn the_standard_backend_is_complete() {
    let backend = OperationBackend::standard();
    for kind in OpKind::all() {
        let expected =
            matches!(kind, OpKind::Ckks(_) | OpKind::Tensor(_)) || kind == OpKind::from(Rns::Fused);
        assert_eq!(!backend.available(kind).is_empty(), expected, "{kind}");
    }
}

/// Guards the choice: the least cost wins, equal costs are an error that lists them, a name is
/// hard, an unknown name is an error that lists what there is.
#[test]
fn selection_rules() {
    let (engine, keys) = engine();
    let x = encrypt(engine, keys, &message(1, &[4]));
    let chosen = |backend: &OperationBackend| -> Result<String, RuntimeError> {
        let prepared = prepared_on(
            engine,
            program(engine, "", NEGATED),
            &[],
            PrepareOptions::default(),
            backend,
        )?;
        let outputs = prepared.executable().run(std::slice::from_ref(&x))?;
        assert!(same_bits(&leaves(&outputs)[0], &engine.negate(&x)?));
        Ok(prepared.manifest().operations[0].implementation.to_string())
    };
    let fast = Counting::new(Ckks::Neg, "fast", 0.5);
    let slow = Counting::new(Ckks::Neg, "slow", 2.0);
    let equal = Counting::new(Ckks::Neg, "equal", 1.0);
    assert_eq!(chosen(&OperationBackend::standard()).unwrap(), "host");
    assert_eq!(chosen(&with(vec![fast.clone()])).unwrap(), "fast");
    assert_eq!(fast.runs(), 1);
    assert_eq!(chosen(&with(vec![slow.clone()])).unwrap(), "host");

    let error = chosen(&with(vec![equal.clone()])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Link);
    assert!(error.to_string().contains(", equal; select one"), "{error}");

    let backend = with(vec![fast, slow, equal]);
    let selected = backend.with_selection(Ckks::Neg.into(), "slow").unwrap();
    assert_eq!(chosen(&selected).unwrap(), "slow");
    let error = backend.with_selection(Ckks::Neg.into(), "gpu").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("registered: host, cuda, fast, slow, equal"),
        "{error}"
    );

    let error = chosen(&OperationBackend::empty()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("no implementation on cpu supports"),
        "{error}"
    );
}

/// Guards that relinking keeps the names that were chosen, and that one which is gone is an error.
#[test]
fn relinking_keeps_the_choices() {
    let (engine, _) = engine();
    let slow = Counting::new(Ckks::Neg, "slow", 2.0);
    let both = with(vec![slow.clone()]);
    let selected = both.with_selection(Ckks::Neg.into(), "slow").unwrap();
    let prepared = prepared_on(
        engine,
        program(engine, "", NEGATED),
        &[],
        PrepareOptions::default(),
        &selected,
    )
    .unwrap();
    let relinked = prepared
        .relink(&both, engine, PrepareOptions::default())
        .unwrap();
    assert_eq!(&*relinked.manifest().operations[0].implementation, "slow");
    let error = prepared
        .relink(
            &OperationBackend::standard(),
            engine,
            PrepareOptions::default(),
        )
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("no implementation is named \"slow\""),
        "{error}"
    );
}

/// Gives its operand back, whatever the operation.
struct Identity;

impl Implementation for Identity {
    fn name(&self) -> &str {
        "identity"
    }

    fn operation(&self) -> OpKind {
        Ckks::Rescale.into()
    }

    fn supports(&self, operands: &[&Type], _: &Attributes) -> bool {
        operands[0].batch().is_empty()
    }

    fn cost(&self) -> f64 {
        0.1
    }

    fn execute(&self, _: &Invocation<'_>, operands: Operands) -> Result<Results, RuntimeError> {
        Ok(operands.into_iter().collect())
    }
}

/// Guards that an implementation is held to the types of its results and is passed over where it
/// does not support the operands.
#[test]
fn implementations_are_held_to_their_promise() {
    let (engine, keys) = engine();
    let backend = with(vec![Arc::new(Identity)]);
    let func = "func (%x: !fresh) {\n %y = he.square %x\n %z = he.rescale %y\n return %z\n }";
    let prepared = prepared_on(
        engine,
        program(engine, "", func),
        &[],
        PrepareOptions::default(),
        &backend,
    )
    .unwrap();
    let x: Value = encrypt(engine, keys, &message(1, &[4]));
    let error = prepared.executable().run(&[x]).unwrap_err().to_string();
    assert!(
        error.contains("\"identity\" of ckks.rescale gave !ciphertext"),
        "{error}"
    );

    let batched = func.replace("!fresh", "!ciphertext<[2], level=3, scale=2^40, parts=2>");
    let prepared = prepared_on(
        engine,
        program(engine, "", &batched),
        &[],
        PrepareOptions::default(),
        &backend,
    )
    .unwrap();
    assert_eq!(&*prepared.manifest().operations[1].implementation, "host");
}

/// Guards registration: a name once for each operation, a cost that can be compared.
#[test]
fn registrations_are_checked() {
    let standard = OperationBackend::standard();
    let register = |implementation: Arc<Counting>| {
        standard
            .with_implementations([implementation as _])
            .unwrap_err()
            .to_string()
    };
    let text = register(Counting::new(Ckks::Neg, "host", 1.0));
    assert!(
        text.contains("ckks.neg has an implementation named \"host\" already"),
        "{text}"
    );
    let text = register(Counting::new(Ckks::Neg, "mine", f64::NAN));
    assert!(text.contains("positive number"), "{text}");
}
