//! Guards the kernel build: images for every target, a cache that is right, errors with lines.
//!
//! Needs NVRTC, which `pyproject.toml` names among the build requirements.

use fhelium_kernelc::{Budgets, Compiler, Error, Options, Sources, Target, Usage};
use std::path::Path;
use tempfile::TempDir;

const GOOD: &str = "#include \"twice.cuh\"
extern \"C\" __global__ void good(double* x) { x[threadIdx.x] = twice(x[threadIdx.x]); }\n";

fn folder(kernel: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("twice.cuh"),
        "#pragma once\n__device__ inline double twice(double x) { return x + x; }\n",
    )
    .unwrap();
    std::fs::write(folder.path().join("good.cu"), kernel).unwrap();
    folder
}

fn compile(kernels: &Path, cache: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let compiler = Compiler::find(cache)?;
    let sources = Sources::open(kernels)?;
    let images = compiler.compile(&sources, &Target::SHIPPED, &Options::default())?;
    assert_eq!(images.len(), Target::SHIPPED.len());
    Ok(images.into_iter().map(|image| image.bytes).collect())
}

#[test]
fn every_target_has_an_image_and_another_folder_gives_the_same_bytes() {
    let (first, second, cache) = (folder(GOOD), folder(GOOD), tempfile::tempdir().unwrap());
    let images = compile(first.path(), cache.path()).unwrap();
    for (image, target) in images.iter().zip(Target::SHIPPED) {
        match target {
            Target::Cubin(_) => assert_eq!(&image[..4], b"\x7fELF", "{target}"),
            Target::Ptx(_) => assert!(image.ends_with(b"\0"), "{target}"),
        }
    }
    let elsewhere = tempfile::tempdir().unwrap();
    assert_eq!(images, compile(second.path(), elsewhere.path()).unwrap());
}

#[test]
fn a_damaged_cache_entry_is_compiled_again_and_a_changed_header_is_noticed() {
    let (kernels, cache) = (folder(GOOD), tempfile::tempdir().unwrap());
    let images = compile(kernels.path(), cache.path()).unwrap();
    for entry in std::fs::read_dir(cache.path()).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    assert_eq!(images, compile(kernels.path(), cache.path()).unwrap());

    std::fs::write(
        kernels.path().join("twice.cuh"),
        "#pragma once\n__device__ inline double twice(double x) { return 2.5 * x; }\n",
    )
    .unwrap();
    assert_ne!(images, compile(kernels.path(), cache.path()).unwrap());
}

#[test]
fn errors_and_warnings_stop_the_build_with_file_and_line() {
    let cache = tempfile::tempdir().unwrap();
    for (kernel, words) in [
        (
            "extern \"C\" __global__ void bad() { undeclared(); }\n",
            "undeclared",
        ),
        (
            "extern \"C\" __global__ void warned() { int unused = 1; }\n",
            "never referenced",
        ),
    ] {
        let error = compile(folder(kernel).path(), cache.path())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("good.cu(1)") && error.contains(words),
            "{error}"
        );
    }
    assert_eq!(
        std::fs::read_dir(cache.path()).unwrap().count(),
        0,
        "nothing of it is cached"
    );
}

#[test]
fn a_library_that_is_none_is_named() {
    let cache = tempfile::tempdir().unwrap();
    let file = cache.path().join("libnvrtc.so.12");
    std::fs::write(&file, "not a library").unwrap();
    let error = Compiler::with_library(&file, cache.path())
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("libnvrtc.so.12"), "{error}");
}

#[test]
fn a_kernel_outside_its_budget_is_named_with_what_it_takes() {
    let kernel = "#include \"twice.cuh\"
extern \"C\" __global__ void good(double* x) { x[threadIdx.x] = twice(x[threadIdx.x]); }
extern \"C\" __global__ void local(double* x, int i) {
    double values[64];
    for (int k = 0; k < 64; ++k) values[k] = x[k + i];
    x[threadIdx.x] = values[i];
}\n";
    let (kernels, cache) = (folder(kernel), tempfile::tempdir().unwrap());
    let targets = [Target::Cubin(90), Target::Ptx(80)];
    let images = Compiler::find(cache.path())
        .unwrap()
        .compile(
            &Sources::open(kernels.path()).unwrap(),
            &targets,
            &Options::default(),
        )
        .unwrap();
    let usages = Usage::of(&images[0].bytes).unwrap();
    let names: Vec<&str> = usages.iter().map(|usage| &*usage.kernel).collect();
    assert_eq!(names, ["good", "local"]);
    assert!((1..=32).contains(&usages[0].registers) && usages[0].local == 0);
    assert_eq!(usages[1].local, 64 * 8);

    let check = |budgets: &str| {
        std::fs::write(kernels.path().join(Budgets::FILE), budgets).unwrap();
        Budgets::open(kernels.path())
            .and_then(|budgets| budgets.check(&images))
            .map_err(|error| error.to_string())
    };
    let error = check("good sm_80 255\ngood * 1 # far too few\n* * 255\n").unwrap_err();
    let taken = usages[0].registers;
    assert!(
        error.contains(&format!(
            "good.cu for sm_90: good takes {taken} registers, 1 in"
        )),
        "{error}"
    );
    assert!(
        error.contains("local uses 512 bytes of local memory a thread, 0 in"),
        "{error}"
    );
    check("good * 64\nlocal sm_9* 255 512\n").unwrap();
    let error = check("good * 64\n").unwrap_err();
    assert!(error.contains("local has no line in"), "{error}");
    assert!(!error.contains("good takes"), "{error}");
    let error = check("good 64\n").unwrap_err();
    assert!(error.contains("budgets.txt:1: expected"), "{error}");
}
