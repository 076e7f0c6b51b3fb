//! Every pass keeps the meaning of random Programs and leaves ones that verify and read back.

mod support;

use std::sync::Arc;

use fhelium_ir::{Body, Origin, Program, ValueId};
use fhelium_passes::analysis::scratch_bytes;
use fhelium_passes::passes::{ConstantEncodings, LowerToCkks, RotationHoisting};
use fhelium_passes::plan::{BufferPlan, Lifetime, Prologue};
use fhelium_passes::{Compilation, Dump, Pipeline, default_pipeline};
use proptest::prelude::*;
use support::interpreter::{inputs, run};
use support::programs::programs;

/// What the passes of `pipeline` leave, one after the other.
fn stages(program: &Program, pipeline: &Pipeline) -> Vec<(String, Compilation)> {
    let mut compilation = Compilation::new(program.clone());
    let mut stages = Vec::new();
    for pass in pipeline.passes() {
        let alone = Pipeline::from_passes(Arc::clone(pass)).unwrap();
        compilation = alone.run_with(compilation, &Dump::Off).unwrap();
        stages.push((pass.name().to_owned(), compilation.clone()));
    }
    stages
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn passes_keep_the_numbers_and_the_text(program in programs(100)) {
        let arguments = inputs(&program, "");
        let expected = run(&program, &arguments).outputs;
        for (pass, compilation) in stages(&program, &default_pipeline()) {
            let changed = compilation.program();
            let text = changed.to_text();
            prop_assert_eq!(&Program::parse(&text).unwrap(), changed, "{} loses text", pass);
            let found = run(changed, &arguments).outputs;
            prop_assert_eq!(&found, &expected, "{} changes the numbers:\n{}", pass, text);
            let types = |program: &Program| -> Vec<_> {
                let ids = program.results().iter();
                ids.map(|&id| program.type_of(id).clone()).collect()
            };
            prop_assert_eq!(types(changed), types(&program), "{} changes a type", pass);
        }
    }

    #[test]
    fn small_groups_of_rotations_keep_the_numbers(program in programs(100)) {
        let arguments = inputs(&program, "");
        let pipeline = Pipeline::from_passes(LowerToCkks)
            .and_then(|p| p.then(RotationHoisting { max_group_size: 2 }))
            .unwrap();
        let compiled = pipeline.run_with(program.clone(), &Dump::Off).unwrap();
        prop_assert_eq!(
            run(compiled.program(), &arguments).outputs,
            run(&program, &arguments).outputs
        );
    }

    #[test]
    fn passes_have_nothing_left_to_do_the_second_time(program in programs(100)) {
        let once = default_pipeline().run_with(program, &Dump::Off).unwrap();
        let twice = default_pipeline().run_with(once.clone(), &Dump::Off).unwrap();
        prop_assert_eq!(twice.program().to_text(), once.program().to_text());
    }

    #[test]
    fn the_prologue_is_what_inputs_do_not_touch(program in programs(100), budget in 0u64..4096) {
        let pipeline = Pipeline::from_passes(ConstantEncodings { max_resident_bytes: budget });
        let compiled = pipeline.unwrap().run_with(program, &Dump::Off).unwrap();
        let (program, plans) = (compiled.program(), compiled.plans());
        let prologue = plans.prologue.as_ref().unwrap();
        let (one, two) = (inputs(program, ""), inputs(program, "other"));
        let (one, two) = (run(program, &one), run(program, &two));
        let body = program.body();
        for (place, op) in body.ops().iter().enumerate() {
            if prologue.contains(place) {
                for id in op.results() {
                    prop_assert_eq!(&one.values[id.index()], &two.values[id.index()]);
                }
                // What it needs comes before it and is part of it.
                for &id in op.operands() {
                    let Origin::Result { op, .. } = body.values()[id.index()].origin else {
                        panic!("an input in the prologue");
                    };
                    prop_assert!(prologue.contains(op));
                }
            } else {
                for &id in op.operands() {
                    check_handed_on(prologue, body, id);
                }
            }
        }
        body.results().iter().for_each(|&id| check_handed_on(prologue, body, id));
    }

    #[test]
    fn buffers_hold_what_is_still_read(program in programs(100)) {
        let compiled = default_pipeline().run_with(program, &Dump::Off).unwrap();
        let plans = compiled.plans();
        let plan = plans.buffers.as_ref().unwrap();
        check_buffers(compiled.program(), plans.prologue.as_deref().unwrap(), plan);
    }
}

/// A value that is read outside of the prologue but made in it is handed on.
fn check_handed_on(prologue: &Prologue, body: &Body, value: ValueId) {
    if let Origin::Result { op, .. } = body.values()[value.index()].origin {
        assert_eq!(prologue.contains(op), prologue.boundary.contains(&value));
    }
}

/// Runs a plan on tokens: every buffer holds the number of the value that was written last.
fn check_buffers(program: &Program, prologue: &Prologue, plan: &BufferPlan) {
    let body = program.body();
    let mut holds: Vec<Option<ValueId>> = vec![None; plan.slots.len()];
    let mut peak = 0;
    let (mut alive, mut released) = (0, vec![false; body.values().len()]);
    for (place, op) in body.ops().iter().enumerate() {
        if prologue.contains(place) {
            continue;
        }
        for &operand in op.operands() {
            assert!(!released[operand.index()], "read after its release");
            if let Some(slot) = plan.values[operand.index()].slot {
                assert_eq!(holds[slot], Some(operand), "overwritten before it is read");
            }
        }
        let taken = plan.in_place[place].map(|operand| op.operands()[operand]);
        if let Some(taken) = taken {
            assert_eq!(plan.last_use(taken), Some(place));
        }
        for &result in op.results() {
            let value = plan.values[result.index()];
            let Some(slot) = value.slot else {
                assert_eq!(value.lifetime, Lifetime::Resident);
                continue;
            };
            assert!(value.bytes <= plan.slots[slot]);
            assert!(
                holds[slot].is_none() || holds[slot] == taken,
                "a buffer in use"
            );
            holds[slot] = Some(result);
            alive += value.bytes;
        }
        peak = peak.max(alive + scratch_bytes(op, body, program.chain().map(AsRef::as_ref)));
        for &dead in &plan.releases[place] {
            released[dead.index()] = true;
            let value = plan.values[dead.index()];
            assert_eq!(value.lifetime, Lifetime::Until(place));
            if let Some(slot) = value.slot {
                alive -= value.bytes;
                if Some(dead) != taken {
                    assert_eq!(holds[slot].take(), Some(dead));
                }
            }
        }
    }
    for &result in body.results() {
        if let Some(slot) = plan.values[result.index()].slot {
            assert_eq!(
                holds[slot],
                Some(result),
                "overwritten before it is returned"
            );
        }
    }
    assert_eq!(plan.peak_bytes, peak);
}

/// Random Programs that exercise nothing would let every property pass.
#[test]
fn random_programs_reach_what_passes_do() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut totals = std::collections::BTreeMap::new();
    for _ in 0..150 {
        let program = programs(100).new_tree(&mut runner).unwrap().current();
        let compiled = default_pipeline().run_with(program, &Dump::Off).unwrap();
        for report in compiled.reports() {
            let total: &mut usize = totals.entry(report.name.clone()).or_default();
            *total += report.result.stats.transformed;
        }
        let plan = compiled.plans().buffers.clone().unwrap();
        *totals.entry("in place".to_owned()).or_default() += plan.in_place.iter().flatten().count();
    }
    for name in [
        "dead-values",
        "reuse",
        "lower-to-ckks",
        "rescale-joining",
        "rotation-hoisting",
        "linear-fusion",
        "in place",
    ] {
        assert!(totals[name] >= 20, "{name}: {totals:?}");
    }
}
