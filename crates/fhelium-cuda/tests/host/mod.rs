//! Compiles C and C++ for the machine that runs the tests. Tests of other crates include this file
//! by its path.

// Each test program uses its part of this.
#![allow(dead_code)]

use libloading::Library;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The kernels' folder.
pub fn kernels() -> PathBuf {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/cuda");
    kernels.canonicalize().unwrap()
}

/// Builds a shared library in `folder` with the compiler that the environment variable names, or
/// the default. Products are never contracted, as on the device.
pub fn shared_library(
    variable: &str,
    default: &str,
    folder: &Path,
    name: &str,
    arguments: &[&str],
) -> PathBuf {
    let compiler = std::env::var(variable).unwrap_or_else(|_| default.to_owned());
    let library = folder.join(name);
    let output = Command::new(&compiler)
        .args(["-O2", "-ffp-contract=off", "-shared", "-fPIC"])
        .arg("-I")
        .arg(kernels())
        .args(arguments)
        .arg("-o")
        .arg(&library)
        .arg("-lm")
        .output()
        .unwrap_or_else(|error| {
            panic!("{compiler}, which these tests need, does not run: {error}")
        });
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    library
}

/// Puts a device into this process if it has none: a driver that runs the kernels on the host.
///
/// It has to be loaded by its path before anybody asks for `libcuda.so.1`; the loader then takes
/// the library of that name that is there.
pub fn device() {
    static LOADED: OnceLock<Option<Library>> = OnceLock::new();
    LOADED.get_or_init(|| {
        // SAFETY: the driver's library has no precondition for being loaded.
        if unsafe { Library::new("libcuda.so.1") }.is_ok() {
            return None;
        }
        // SAFETY: built from tests/host/emulator and the kernels.
        Some(unsafe { Library::new(emulated_driver()) }.unwrap())
    });
}

/// The emulated driver of the kernels: built once, for every test process.
pub fn emulated_driver() -> PathBuf {
    emulated_driver_with(&[])
}

/// The emulated driver of the kernels and of `more` sources, kernels or parts of a driver.
pub fn emulated_driver_with(more: &[PathBuf]) -> PathBuf {
    let own = "../fhelium-cuda/tests/host/emulator";
    // One name for every crate that builds it: what is built is kept by it.
    let emulator = Path::new(env!("CARGO_MANIFEST_DIR")).join(own);
    let emulator = emulator.canonicalize().unwrap();
    let mut hasher = std::hash::DefaultHasher::new();
    format!("{:?}", cpp(&emulator)).hash(&mut hasher);
    let sources: Vec<PathBuf> = [&emulator, &kernels()]
        .into_iter()
        .flat_map(|folder| files(folder))
        .chain(more.iter().cloned())
        .collect();
    for file in &sources {
        std::fs::read(file).unwrap().hash(&mut hasher);
    }
    let place = option_env!("CARGO_TARGET_TMPDIR").map_or_else(example_folder, PathBuf::from);
    let built = place.join(format!("emulator-{:x}", hasher.finish()));
    let library = built.join("libcuda.so.1");
    if !library.exists() {
        // One process at a time: the others then find it, or most of its objects.
        let lock = std::fs::File::create(place.join("emulator-lock")).unwrap();
        lock.lock().unwrap();
        if library.exists() {
            return library;
        }
        let folder = tempfile::tempdir_in(&place).unwrap();
        build_emulated_driver(&emulator, &sources, &place, folder.path());
        std::fs::rename(folder.keep(), &built).unwrap();
    }
    library
}

/// The folder of tests, which cargo names to them and not to examples: `tmp` in the target folder,
/// where the running example is `<profile>/examples/<name>`.
fn example_folder() -> PathBuf {
    let example = std::env::current_exe().unwrap();
    let folder = example.ancestors().nth(3).unwrap().join("tmp");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

fn build_emulated_driver(emulator: &Path, sources: &[PathBuf], place: &Path, folder: &Path) {
    let mut units = Vec::new();
    for source in sources {
        match source.extension().and_then(|ending| ending.to_str()) {
            Some("cpp") => units.push(source.clone()),
            Some("cu") => units.push(kernel_unit(emulator, source, folder)),
            _ => {}
        }
    }
    // Objects are kept by what went into them: a change of one file compiles that file.
    let objects: Vec<PathBuf> = units
        .iter()
        .map(|unit| {
            let mut hasher = std::hash::DefaultHasher::new();
            format!("{:?}", cpp(emulator)).hash(&mut hasher);
            preprocessed(emulator, unit).hash(&mut hasher);
            place.join(format!("emulator-object-{:x}.o", hasher.finish()))
        })
        .collect();
    let object = |unit: &PathBuf| folder.join(unit.file_stem().unwrap()).with_extension("o");
    // Side by side: they are the longest part of these tests.
    let compilers: Vec<_> = units
        .iter()
        .zip(&objects)
        .filter(|(_, kept)| !kept.exists())
        .map(|(unit, kept)| {
            let mut compiler = cpp(emulator);
            compiler.args(["-O2", "-c"]).arg(unit);
            let compiler = compiler.arg("-o").arg(object(unit)).spawn().unwrap();
            (compiler, object(unit), kept)
        })
        .collect();
    for (mut compiler, object, kept) in compilers {
        assert!(
            compiler.wait().unwrap().success(),
            "the kernels do not compile for the host"
        );
        std::fs::rename(object, kept).unwrap();
    }
    let status = cpp(emulator)
        .args(["-shared", "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic"])
        .args(&objects)
        .arg("-o")
        .arg(folder.join("libcuda.so.1"))
        .status()
        .unwrap();
    assert!(status.success());
}

/// A unit that registers each kernel of a file.
fn kernel_unit(emulator: &Path, source: &Path, folder: &Path) -> PathBuf {
    let stem = source.file_stem().unwrap().to_string_lossy();
    let unit = folder.join(format!("{stem}.cpp"));
    let include = format!("#include \"device.h\"\n#include \"{}\"\n", source.display());
    std::fs::write(&unit, &include).unwrap();
    let text = preprocessed(emulator, &unit);
    let names: BTreeSet<&str> = text
        .split("extern \"C\" void")
        .skip(1)
        .filter_map(|rest| rest.split_once('(')?.0.split_whitespace().last())
        .collect();
    let registry: String = names
        .iter()
        .map(|name| format!("FH_REGISTER({name})\n"))
        .collect();
    std::fs::write(&unit, include + &registry).unwrap();
    unit
}

fn cpp(emulator: &Path) -> Command {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let mut command = Command::new(compiler);
    // As the CPU of the tests does fused multiply-adds; without the instruction they are as exact.
    if cfg!(target_arch = "x86_64") && std::is_x86_feature_detected!("fma") {
        command.arg("-mfma");
    }
    command
        .args([
            "-std=c++17",
            "-fPIC",
            "-ffp-contract=off",
            // GCC's vectorizer fuses products and sums of pairs all the same.
            "-fno-tree-slp-vectorize",
            "-fno-strict-aliasing",
        ])
        .args(["-Wno-unknown-pragmas", "-Wno-attributes"])
        .arg("-I")
        .arg(emulator)
        .arg("-I")
        .arg(kernels());
    command
}

/// A unit's text after its includes, without the folders that they are in.
fn preprocessed(emulator: &Path, unit: &Path) -> String {
    let output = cpp(emulator).args(["-E", "-P"]).arg(unit).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
