//! Pipelines: order, editing, reports, failures and dumps.

use std::fs;
use std::sync::Arc;

use fhelium_ir::state::ErrorKind;
use fhelium_ir::{Location, Program};
use fhelium_passes::passes::{DeadValues, LowerToCkks, Reuse, RotationHoisting};
use fhelium_passes::plan::{Route, RoutePlan};
use fhelium_passes::{
    Compilation, Dump, FunctionPass, Named, Pass, PassResult, PassStats, Pipeline, PipelineError,
    default_pipeline,
};

const TEXT: &str = "\
program @f {
  func (%t: !tensor<f64, [8]>) {
    %a = tensor.add %t, %t
    %b = tensor.add %t, %t
    %c = tensor.neg %t
    %d = tensor.mul %a, %b
    return %d
  }
}";

fn program() -> Program {
    Program::parse(TEXT).unwrap()
}

fn noop(name: &str) -> impl Pass + use<> {
    FunctionPass::new(name, |_, _| Ok(PassResult::default()))
}

#[test]
fn the_default_pipeline_is_what_the_documentation_says() {
    assert_eq!(
        default_pipeline().names(),
        [
            "dead-values",
            "reuse",
            "lower-to-ckks",
            "rescale-joining",
            "rotation-hoisting",
            "linear-fusion",
            "constant-encodings",
            "route-selection",
            "buffer-planning"
        ]
    );
}

#[test]
fn a_pipeline_is_edited_by_name_and_by_position() {
    let pipeline = Pipeline::new()
        .then(noop("b"))
        .and_then(|p| p.before("b", noop("a")))
        .and_then(|p| p.after(1, noop("d")))
        .and_then(|p| p.after("b", noop("c")))
        .and_then(|p| p.then(Pipeline::from_passes(noop("e"))?))
        .unwrap();
    assert_eq!(pipeline.names(), ["a", "b", "c", "d", "e"]);
    let edited = pipeline.clone().replace("b", noop("x")).unwrap();
    assert_eq!(edited.names(), ["a", "x", "c", "d", "e"]);
    let several: Vec<Arc<dyn Pass>> = vec![Arc::new(noop("x")), Arc::new(noop("y"))];
    let edited = pipeline.clone().replace(4, several).unwrap();
    assert_eq!(edited.names(), ["a", "b", "c", "d", "x", "y"]);
    let edited = pipeline.clone().remove("c").and_then(|p| p.remove(0));
    assert_eq!(edited.unwrap().names(), ["b", "d", "e"]);
    // A pass may be replaced by one of the same name.
    assert!(pipeline.clone().replace("b", noop("b")).is_ok());
    // Editing gives another pipeline.
    assert_eq!(pipeline.len(), 5);
}

#[test]
fn edits_that_cannot_be_made_name_the_passes_there_are() {
    let text = |result: Result<Pipeline, PipelineError>| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value);
        error.to_string()
    };
    let pipeline = || Pipeline::from_passes(noop("a")).and_then(|p| p.then(noop("b")));
    let repeated = text(pipeline().unwrap().then(noop("a")));
    assert!(
        repeated.contains("\"a\" is already at position 0"),
        "{repeated}"
    );
    assert!(repeated.contains("[a, b, a]"), "{repeated}");
    let absent = text(pipeline().unwrap().before("c", noop("d")));
    assert!(
        absent.contains("\"c\"") && absent.contains("[a, b]"),
        "{absent}"
    );
    let outside = text(pipeline().unwrap().remove(2));
    assert!(
        outside.contains("position 2") && outside.contains("[a, b]"),
        "{outside}"
    );
}

#[test]
fn a_pass_may_stand_twice_under_two_names() {
    let pipeline = Pipeline::from_passes(DeadValues)
        .and_then(|p| p.then(Reuse))
        .and_then(|p| p.then(Named::new("dead-values-again", DeadValues)))
        .unwrap();
    let compiled = pipeline.run_with(program(), &Dump::Off).unwrap();
    let removed = compiled
        .reports()
        .iter()
        .map(|r| (&r.name[..], r.result.stats.removed));
    assert_eq!(
        removed.collect::<Vec<_>>(),
        [("dead-values", 1), ("reuse", 1), ("dead-values-again", 0)]
    );
}

#[test]
fn reports_count_operations_and_follow_each_other() {
    let once = Pipeline::from_passes(DeadValues).unwrap();
    let then = Pipeline::from_passes(Reuse).unwrap();
    let compiled = once.run_with(program(), &Dump::Off).unwrap();
    let compiled = then.run_with(compiled, &Dump::Off).unwrap();
    let operations: Vec<_> = compiled.reports().iter().map(|r| r.operations).collect();
    assert_eq!(operations, [(4, 3), (3, 2)]);
    assert!(
        compiled.reports()[0]
            .to_string()
            .contains("4 -> 3 operations")
    );
}

#[test]
fn a_foreign_pass_changes_the_program_and_voids_plans() {
    let pipeline = default_pipeline()
        .then(FunctionPass::new(
            "rename",
            |compilation: &mut Compilation, _: &_| {
                assert!(compilation.plans().buffers.is_some());
                let text = compilation.program().to_text().replace("@f", "@g");
                compilation.set_program(Program::parse(&text).unwrap());
                Ok(PassResult {
                    stats: PassStats {
                        transformed: 1,
                        ..PassStats::default()
                    },
                    ..PassResult::default()
                })
            },
        ))
        .unwrap();
    let compiled = pipeline.run_with(program(), &Dump::Off).unwrap();
    assert_eq!(compiled.program().name(), "g");
    // A plan speaks of places in the Program that it was made for.
    assert!(compiled.plans().buffers.is_none());
    assert!(compiled.plans().prologue.is_none());
}

#[test]
fn a_failing_pass_names_itself_the_operation_and_the_line() {
    let pipeline = Pipeline::from_passes(FunctionPass::new("strict", |_, context: &_| {
        let error: &fhelium_passes::PassContext<'_> = context;
        Err(error
            .error("it must not be")
            .at("tensor.neg", Some(Location::new("f.py", 3, "f"))))
    }))
    .unwrap();
    let error = pipeline.run_with(program(), &Dump::Off).unwrap_err();
    assert_eq!(
        error.to_string(),
        "f.py:3 in f: pass strict, tensor.neg: it must not be"
    );
    assert_eq!(error.kind(), ErrorKind::Compile);
}

#[test]
fn bindings_and_workspace_survive_a_pipeline() {
    let mut compilation = Compilation::new(program());
    compilation.material_bindings.insert("w", Arc::new(7u32));
    compilation
        .workspace
        .insert("note", Arc::new("text".to_owned()));
    let compiled = default_pipeline()
        .run_with(compilation, &Dump::Off)
        .unwrap();
    assert_eq!(*compiled.material_bindings.get::<u32>("w").unwrap(), 7);
    assert!(compiled.material_bindings.get::<String>("w").is_none());
    assert_eq!(compiled.workspace.names().collect::<Vec<_>>(), ["note"]);
}

#[test]
fn dumps_hold_the_program_after_each_pass_and_never_overwrite() {
    let directory = tempfile::tempdir().unwrap();
    let dump = Dump::To(directory.path().join("dumps"));
    let pipeline = Pipeline::from_passes(DeadValues)
        .and_then(|p| p.then(Reuse))
        .unwrap();
    pipeline.run_with(program(), &dump).unwrap();
    pipeline.run_with(program(), &dump).unwrap();
    let runs: Vec<_> = fs::read_dir(directory.path().join("dumps"))
        .unwrap()
        .collect();
    assert_eq!(runs.len(), 2);
    for run in runs {
        let run = run.unwrap().path();
        let read = |name: &str| {
            let text = fs::read_to_string(run.join(name)).unwrap();
            Program::parse(&text).unwrap().body().ops().len()
        };
        assert_eq!(read("00-input.fhe"), 4);
        assert_eq!(read("01-dead-values.fhe"), 3);
        assert_eq!(read("02-reuse.fhe"), 2);
    }
}

#[test]
fn a_dump_that_cannot_be_written_says_where() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below_a_file = Dump::To(file.path().join("dumps"));
    let pipeline = Pipeline::from_passes(LowerToCkks).unwrap();
    let error = pipeline.run_with(program(), &below_a_file).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    assert!(
        error.to_string().contains(file.path().to_str().unwrap()),
        "{error}"
    );
}

/// Started by the next test with the variable set; harmless without it.
#[test]
fn a_run_heeds_the_environment() {
    Pipeline::from_passes(Reuse)
        .unwrap()
        .run(program())
        .unwrap();
}

#[test]
fn the_environment_names_the_directory_for_dumps() {
    let directory = tempfile::tempdir().unwrap();
    let run = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_run_heeds_the_environment"])
        .env(fhelium_passes::DUMP_VARIABLE, directory.path())
        .output()
        .unwrap();
    assert!(run.status.success());
    assert!(directory.path().join("f-0/01-reuse.fhe").exists());
}

/// Passes that do different things must not share what is kept on disk, and a pass that cannot say
/// what it does must not be kept at all.
#[test]
fn a_pipeline_has_a_cache_key_where_every_pass_has_one() {
    let key = |pipeline: &Pipeline| pipeline.cache_key();
    let default = default_pipeline();
    assert_eq!(key(&default), key(&default_pipeline()));
    assert!(key(&default).is_some());
    let smaller = default
        .clone()
        .replace("rotation-hoisting", RotationHoisting { max_group_size: 2 })
        .unwrap();
    assert_ne!(key(&smaller), key(&default));
    assert_ne!(
        key(&default.clone().remove("reuse").unwrap()),
        key(&default)
    );
    assert_eq!(key(&default.clone().then(noop("mine")).unwrap()), None);
    let keyed = |version: &str| {
        let pass = FunctionPass::new("mine", |_, _| Ok(PassResult::default()));
        let pass = pass.with_cache_key(version);
        key(&default.clone().then(pass).unwrap())
    };
    assert!(keyed("1").is_some());
    assert_ne!(keyed("1"), keyed("2"));
    let renamed = Pipeline::from_passes(Named::new("again", Reuse)).unwrap();
    assert!(key(&renamed).is_some());
}

#[test]
fn a_route_plan_is_its_named_routes() {
    let program = program();
    let named = vec![(1, "fast".to_owned()), (99, "nowhere".to_owned())];
    let plan = RoutePlan::from_named(&program, named);
    assert_eq!(plan.named().collect::<Vec<_>>(), [(1, "fast")]);
    assert_eq!(plan.route(0), Some(&Route::Native));
    assert_eq!(plan.route(1), Some(&Route::Named("fast".to_owned())));
    assert_eq!(plan.route(99), None);
}
