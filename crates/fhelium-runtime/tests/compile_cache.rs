//! The compile cache: what hits, what misses, and what becomes of entries that are no good.

mod common;

use common::{encrypt, engine, leaves, message, program, same_bits};
use fhelium_runtime::ckks::Parameters;
use fhelium_runtime::ir::{Location, Program};
use fhelium_runtime::passes::passes::RotationHoisting;
use fhelium_runtime::passes::{Compilation, FunctionPass, PassResult, Pipeline, default_pipeline};
use fhelium_runtime::persist::CacheOutcome::{Hit, Miss, Unused};
use fhelium_runtime::persist::{CacheUse, CompileCache};
use fhelium_runtime::{
    CallSignature, Engine, EngineOptions, MaterialBinding, OperationBackend, PrepareOptions,
    Specialization, prepare,
};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// (x v) rotated by 1 and by 2, summed; each line has a location.
fn source(weight: &str) -> Program {
    let (engine, _) = engine();
    let func = format!(
        "func (%x: !fresh) {{
    %v = core.material {{symbol = @v}} loc(\"a.py\":1 in f)
    %c = tensor.constant {{value = {weight}, dtype = f64}} loc(\"a.py\":1 in f)
    %w = tensor.mul %v, %c loc(\"a.py\":2 in f)
    %p = he.encode %w {{level = 3, scale = 2^40}} loc(\"a.py\":2 in f)
    %y = he.mul %x, %p loc(\"a.py\":3 in f)
    %a = he.rotate %y {{step = 1}} loc(\"a.py\":4 in f)
    %b = he.rotate %y {{step = 2}} loc(\"a.py\":5 in f)
    %s = he.add %a, %b loc(\"a.py\":6 in f)
    return %s
  }}"
    );
    let material = "material @v : !tensor<f64, [4]> \"captured at a.py:1 in f\"";
    program(engine, material, &func)
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn cache(&self) -> CompileCache {
        CompileCache::new(self.0.path().join("made/when/needed"))
    }

    fn entries(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.cache().directory());
        let mut paths: Vec<_> = entries
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        paths
    }
}

fn compiled(cache: &CompileCache, program: Program, pipeline: &Pipeline) -> Specialization {
    let (engine, _) = engine();
    compiled_on(
        cache,
        program,
        pipeline,
        &OperationBackend::standard(),
        engine,
    )
}

fn compiled_on(
    cache: &CompileCache,
    program: Program,
    pipeline: &Pipeline,
    backend: &OperationBackend,
    engine: &Arc<Engine>,
) -> Specialization {
    let mut source = Compilation::new(program);
    let weights = MaterialBinding::from(message(2, &[4]));
    source.material_bindings.insert("v", Arc::new(weights));
    let options = PrepareOptions {
        cache: Some(cache),
        ..PrepareOptions::default()
    };
    prepare(
        &source,
        pipeline,
        backend,
        CallSignature::default(),
        engine,
        options,
    )
    .unwrap()
}

fn hit() -> CacheUse {
    CacheUse {
        outcome: Hit,
        warning: None,
    }
}

/// A hit gives what the passes would: Program, plans, reports and results, to the bit.
#[test]
fn a_hit_is_what_the_passes_would_leave() {
    let folder = Folder::new();
    let (first, second) = (folder.cache(), folder.cache());
    let made = compiled(&first, source("2.0"), &default_pipeline());
    assert_eq!(made.cache_use().outcome, Miss);
    assert_eq!(made.cache_use().warning, None);
    assert_eq!((first.hits(), first.misses()), (0, 1));
    let found = compiled(&second, source("2.0"), &default_pipeline());
    assert_eq!(found.cache_use(), &hit());
    assert_eq!((second.hits(), second.misses()), (1, 0));
    assert_eq!(found.program(), made.program());
    let (left, right) = (made.compilation(), found.compilation());
    assert_eq!(left.reports(), right.reports());
    assert_eq!(left.plans().prologue, right.plans().prologue);
    assert_eq!(left.plans().buffers, right.plans().buffers);
    assert_eq!(left.plans().routes, right.plans().routes);
    assert_eq!(found.manifest(), made.manifest());
    assert!(found.explain().contains("read from the compile cache"));
    let (engine, keys) = engine();
    let x = encrypt(engine, keys, &message(1, &[8]));
    let run = |of: &Specialization| {
        leaves(&of.executable().run(std::slice::from_ref(&x)).unwrap()).remove(0)
    };
    assert!(same_bits(&run(&found), &run(&made)));
}

/// Moved lines and other file names hit, and the lines shown are today's. Lines that fall
/// together or apart miss, for then it is not known which operation is whose.
#[test]
fn source_lines_do_not_part_entries_and_are_todays() {
    let folder = Folder::new();
    let moved = |to: fn(&Location) -> u32| {
        source("2.0")
            .map_locations(&mut |line| Some(Location::new("b.py", to(line), "g")))
            .map_descriptions(&mut |_, _| "captured at b.py:9 in g".into())
    };
    let cache = folder.cache();
    compiled(&cache, source("2.0"), &default_pipeline());
    let found = compiled(&cache, moved(|line| line.line + 8), &default_pipeline());
    assert_eq!(found.cache_use(), &hit());
    let fresh = compiled(
        &Folder::new().cache(),
        moved(|line| line.line + 8),
        &default_pipeline(),
    );
    assert_eq!(found.program(), fresh.program());
    assert!(found.program().to_text().contains("\"b.py\":12"));
    assert!(!found.program().to_text().contains("a.py"));
    let together = compiled(&cache, moved(|_| 1), &default_pipeline());
    assert_eq!(together.cache_use().outcome, Miss);
}

/// Whatever decides what is computed, or how, parts entries: no stale result.
#[test]
fn what_decides_the_result_parts_entries() {
    let folder = Folder::new();
    let cache = folder.cache();
    let (engine, _) = engine();
    let standard = OperationBackend::standard();
    let default = default_pipeline();
    compiled(&cache, source("2.0"), &default);
    let changed = compiled(&cache, source("3.0"), &default);
    assert_eq!(changed.cache_use().outcome, Miss);
    assert!(changed.program().to_text().contains("3.0"));

    let small = RotationHoisting { max_group_size: 2 };
    let smaller = default.clone().replace("rotation-hoisting", small).unwrap();
    assert_eq!(
        compiled(&cache, source("2.0"), &smaller)
            .cache_use()
            .outcome,
        Miss
    );
    let fewer = default.clone().remove("reuse").unwrap();
    assert_eq!(
        compiled(&cache, source("2.0"), &fewer).cache_use().outcome,
        Miss
    );

    let add = common::Counting::new(fhelium_runtime::ir::Ckks::Add, "counting", 0.5);
    let backend = standard.with_implementations([add as _]).unwrap();
    let on = compiled_on(&cache, source("2.0"), &default, &backend, engine);
    assert_eq!(on.cache_use().outcome, Miss);
    assert_eq!(
        compiled(&cache, source("2.0"), &default).cache_use(),
        &hit()
    );
    assert_eq!(folder.entries().len(), 5);

    // Another parameter set, with a chain of its own in the Program.
    let other = Parameters::builder(3, 41)
        .log_n(10)
        .allow_insecure(true)
        .build()
        .unwrap();
    let other = Engine::new(&other, EngineOptions::default()).unwrap();
    let text = "program @f { func (%x: !tensor<f64, [4]>) { %y = tensor.neg %x return %y } }";
    let clear = Program::parse(text).unwrap();
    compiled(&cache, clear.clone(), &default);
    let there = compiled_on(&cache, clear, &default, &standard, &other);
    assert_eq!(there.cache_use().outcome, Miss);
}

/// A pass that cannot say what it does is run each time.
#[test]
fn a_pass_without_a_key_is_always_run() {
    let folder = Folder::new();
    let cache = folder.cache();
    let noop = || FunctionPass::new("mine", |_, _| Ok(PassResult::default()));
    let unknown = default_pipeline().then(noop()).unwrap();
    for _ in 0..2 {
        let outcome = compiled(&cache, source("2.0"), &unknown)
            .cache_use()
            .outcome;
        assert_eq!(outcome, Unused);
    }
    assert_eq!(folder.entries().len(), 0);
    let known = default_pipeline()
        .then(noop().with_cache_key("mine 1"))
        .unwrap();
    assert_eq!(
        compiled(&cache, source("2.0"), &known).cache_use().outcome,
        Miss
    );
    assert_eq!(compiled(&cache, source("2.0"), &known).cache_use(), &hit());
}

/// An entry that is cut off, damaged, of another Program or no entry at all is passed over with a
/// warning and written anew.
#[test]
fn bad_entries_are_passed_over_and_written_anew() {
    let folder = Folder::new();
    let cache = folder.cache();
    compiled(&cache, source("2.0"), &default_pipeline());
    let [path] = &folder.entries()[..] else {
        panic!("one entry")
    };
    let good = fs::read(path).unwrap();
    compiled(&cache, source("3.0"), &default_pipeline());
    let entries = folder.entries();
    let foreign = fs::read(entries.iter().find(|other| *other != path).unwrap()).unwrap();
    let parameters = fhelium_runtime::persist::Object::Parameters(common::parameters());
    let object = fhelium_runtime::persist::to_bytes(&parameters, Default::default()).unwrap();
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let bad = [
        vec![],
        good[..good.len() / 2].to_vec(),
        good[..good.len() - 1].to_vec(),
        flipped,
        foreign,
        object,
        b"not an entry".to_vec(),
    ];
    for bytes in bad {
        fs::write(path, &bytes).unwrap();
        let made = compiled(&cache, source("2.0"), &default_pipeline());
        assert_eq!(made.cache_use().outcome, Miss);
        let warning = made.cache_use().warning.clone().unwrap();
        assert!(warning.contains("written anew"), "{warning}");
        assert!(warning.contains(&path.display().to_string()), "{warning}");
        assert_eq!(
            compiled(&cache, source("2.0"), &default_pipeline()).cache_use(),
            &hit()
        );
    }
}

/// A directory that cannot be written is a warning, and compiling goes on.
#[test]
fn a_directory_that_cannot_be_made_is_a_warning() {
    let folder = Folder::new();
    let blocked = folder.0.path().join("a file");
    fs::write(&blocked, "").unwrap();
    let cache = CompileCache::new(blocked.join("below"));
    let made = compiled(&cache, source("2.0"), &default_pipeline());
    assert_eq!(made.cache_use().outcome, Miss);
    let warning = made.cache_use().warning.clone().unwrap();
    assert!(warning.contains("cannot be written"), "{warning}");
}

/// Threads that share a directory and meet in one entry never see half of it.
#[test]
fn threads_share_a_directory() {
    let folder = Folder::new();
    let weights: Vec<String> = (0..3).map(|weight| format!("{weight}.5")).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let cache = folder.cache();
                for weight in &weights {
                    let made = compiled(&cache, source(weight), &default_pipeline());
                    assert_eq!(made.cache_use().warning, None);
                    assert!(made.program().to_text().contains(weight.as_str()));
                }
            });
        }
    });
    assert_eq!(folder.entries().len(), 3);
}

/// The entries that were used longest ago go first, by a hit or by writing; the newest stays,
/// whatever the bound; other files are left alone.
#[test]
fn a_directory_is_kept_below_its_bound() {
    let folder = Folder::new();
    let weights = ["2.0", "3.0", "4.0"];
    let run = |cache: &CompileCache, weight: &str| {
        let made = compiled(cache, source(weight), &default_pipeline());
        // So that two uses never have one time.
        std::thread::sleep(std::time::Duration::from_millis(5));
        made.cache_use().outcome
    };
    let unbound = folder.cache();
    assert_eq!(run(&unbound, weights[0]), Miss);
    let one = folder.entries()[0].metadata().unwrap().len();
    let other = unbound.directory().join("notes.fhelium");
    fs::write(&other, vec![0; 1 << 16]).unwrap();

    let cache = folder.cache().with_max_bytes(2 * one + one / 2);
    assert_eq!(run(&cache, weights[1]), Miss);
    assert_eq!(run(&cache, weights[0]), Hit);
    assert_eq!(run(&cache, weights[2]), Miss);
    assert_eq!(run(&cache, weights[0]), Hit, "used last before the third");
    assert_eq!(run(&cache, weights[1]), Miss, "used longest ago");
    assert_eq!(folder.entries().len(), 3, "two entries and the other file");

    let tight = folder.cache().with_max_bytes(0);
    assert_eq!(run(&tight, "5.0"), Miss);
    assert_eq!(run(&tight, "5.0"), Hit);
    assert_eq!(folder.entries().len(), 2, "the newest and the other file");
    assert!(other.exists());
}

/// Threads that stand for processes write and shrink one directory: no warning, and every run is
/// right.
#[test]
fn several_may_shrink_one_directory_at_once() {
    let folder = Folder::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let folder = &folder;
            scope.spawn(move || {
                let cache = folder.cache().with_max_bytes(1);
                for round in 0..8 {
                    let weight = format!("{}.5", (thread + round) % 5);
                    let made = compiled(&cache, source(&weight), &default_pipeline());
                    assert_eq!(made.cache_use().warning, None);
                }
            });
        }
    });
}
