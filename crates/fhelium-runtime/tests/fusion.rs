//! Fused sums and multiples run with the bits of their operations one by one.

mod common;

use common::{
    Counting, encrypt, engine, leaves, message, prepared, prepared_on, program, same_bits,
};
use fhelium_runtime::ir::{Ckks, OpKind, Program, Rns};
use fhelium_runtime::passes::{Compilation, default_pipeline};
use fhelium_runtime::{
    CallSignature, Device, OperationBackend, PrepareOptions, Specialization, Value, prepare,
};

const FUSED: OpKind = OpKind::Rns(Rns::Fused);

/// Chains, sums of products and several sums over the same operands, of one part more or less, with
/// batches, integers, plaintexts of higher levels and what is read elsewhere too.
const CHAINS: &str = "func (%x: !fresh, %y: !fresh, %b: !ciphertext<[3], level=3, scale=2^40, parts=2>, %p: !plaintext<[], level=3, scale=2^40>, %q: !plaintext<[3], level=3, scale=2^40>) {
    %0 = he.mul %x, %p loc(\"score.py\":1 in score)
    %1 = he.rotate %x {step = 1} loc(\"score.py\":2 in score)
    %2 = he.mul %1, %p loc(\"score.py\":2 in score)
    %3 = he.add %0, %2 loc(\"score.py\":3 in score)
    %4 = he.mul %y, %p loc(\"score.py\":4 in score)
    %5 = he.sub %3, %4 loc(\"score.py\":5 in score)
    %square = he.square %x
    %6 = he.add %square, %5
    %7 = he.neg %6
    %8 = he.sub %7, %square
    %sum = he.add %x, %y
    %difference = he.sub %x, %y
    %9 = he.mul_integer %difference {value = -5}
    %10 = he.add %9, %sum
    %11 = he.mul %b, %q
    %12 = he.mul %b, %p
    %13 = he.sub %12, %11
    %14 = he.add %13, %5
    %low = he.drop_levels %sum {count = 3}
    %15 = he.add %low, %p
    %16 = he.sub %p, %15
    %17 = he.add %16, %16
    %18 = he.add %8, %8
    return (%5, %8, %10, %difference, %14, %17, %18, %11)
}";

fn arguments() -> Vec<Value> {
    let (engine, keys) = engine();
    vec![
        encrypt(engine, keys, &message(1, &[512])),
        encrypt(engine, keys, &message(2, &[512])),
        encrypt(engine, keys, &message(3, &[3, 512])),
        engine
            .encode(&message(4, &[512]), None, None)
            .unwrap()
            .into(),
        engine
            .encode(&message(5, &[3, 512]), None, None)
            .unwrap()
            .into(),
    ]
}

fn unfused(program: &Program) -> Specialization {
    let pipeline = default_pipeline().remove("linear-fusion").unwrap();
    prepare(
        &Compilation::new(program.clone()),
        &pipeline,
        &OperationBackend::standard(),
        CallSignature::default(),
        &engine().0,
        PrepareOptions::default(),
    )
    .unwrap()
}

/// Guards that fusing changes no bit, at each of the first calls: on a device the second is recorded
/// and the third one bound anew.
#[test]
fn fused_programs_give_the_bits_of_their_operations() {
    let (engine, _) = engine();
    let (program, arguments) = (program(engine, "", CHAINS), arguments());
    let fused = prepared(engine, program.clone(), &[], PrepareOptions::default()).unwrap();
    assert!(fused.cost().count("rns.fused") >= 3, "{}", fused.explain());
    assert_eq!(
        fused.cost().count("ckks.mul_plain"),
        0,
        "{}",
        fused.explain()
    );
    let separate = unfused(&program);
    assert_eq!(separate.cost().count("rns.fused"), 0);
    assert!(separate.cost().count("ckks.mul_plain") > 4);
    let expected = leaves(&separate.executable().run(&arguments).unwrap());
    for call in 0..4 {
        let mut given = arguments.clone();
        let mut expected = expected.clone();
        if call == 3 {
            given.swap(0, 1);
            expected = leaves(&separate.executable().run(&given).unwrap());
        }
        let found = leaves(&fused.executable().run(&given).unwrap());
        for (place, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert!(same_bits(found, expected), "result {place} of call {call}");
        }
    }
}

/// Guards that the manifest and the explanation name what was fused, with its line and why.
#[test]
fn what_was_fused_is_told() {
    let (engine, _) = engine();
    let fused = prepared(
        engine,
        program(engine, "", CHAINS),
        &[],
        PrepareOptions::default(),
    )
    .unwrap();
    let expected = match common::device() {
        Device::Cpu => "host",
        Device::Cuda(_) => "cuda",
    };
    let operations = &fused.manifest().operations;
    let entry = operations
        .iter()
        .find(|entry| entry.operation == FUSED)
        .unwrap();
    assert_eq!(&*entry.implementation, expected);
    assert!(operations.iter().any(|entry| entry.operation == FUSED
        && entry.location.as_ref().is_some_and(|line| line.line == 5)));
    let text = fused.explain();
    assert!(
        text.contains(&format!("x rns.fused -> {expected}")),
        "{text}"
    );
    let mut reports = fused.compilation().reports().iter();
    let report = reports
        .find(|report| report.name == "linear-fusion")
        .unwrap();
    let decision = &report.result.decisions[0];
    assert_eq!(decision.candidates, ["fused", "separate"]);
    assert!(
        decision.details.contains("us separate"),
        "{}",
        decision.details
    );
}

/// Guards that an operation with an implementation of somebody else's runs by it.
#[test]
fn other_implementations_are_not_fused_away() {
    let (engine, _) = engine();
    if common::device() != Device::Cpu {
        return;
    }
    let program = program(engine, "", CHAINS);
    let counting = Counting::new(Ckks::Sub, "mine", 0.5);
    let backend = OperationBackend::standard()
        .with_implementations([counting.clone() as _])
        .unwrap();
    let options = PrepareOptions::default();
    let mine = prepared_on(engine, program.clone(), &[], options, &backend).unwrap();
    let runs = mine.cost().count("ckks.sub");
    assert_eq!(runs, unfused(&program).cost().count("ckks.sub"));
    mine.executable().run(&arguments()).unwrap();
    assert_eq!(counting.runs(), runs);
    let selected = OperationBackend::standard()
        .with_selection(Ckks::Add.into(), "host")
        .unwrap();
    let selected = prepared_on(engine, program.clone(), &[], options, &selected).unwrap();
    let adds = unfused(&program).cost().count("ckks.add");
    assert_eq!(selected.cost().count("ckks.add"), adds);
}

/// Guards that a region which no kernel runs is refused at the link, with its line.
#[test]
fn regions_that_do_not_run_are_refused_at_the_link() {
    let (engine, _) = engine();
    let func = "func (%x: !fresh) {
        %y = rns.fused(%x) { (%c): %r = rns.residues %c %s = rns.intt %r %t = rns.ntt %s
          %z = rns.ciphertext %t {scale = 2^40} yield %z } loc(\"score.py\":7 in score)
        return %y
    }";
    let error = prepared(
        engine,
        program(engine, "", func),
        &[],
        PrepareOptions::default(),
    );
    let text = error.unwrap_err().to_string();
    assert!(
        text.starts_with("score.py:7 in score: rns.fused: rns.intt does not fuse"),
        "{text}"
    );
}
