//! Guards that `cargo xtask kernels` fails where kernels do, writes images where asked, and writes
//! none for a check.
//!
//! Needs NVRTC, which `pyproject.toml` names among the build requirements.

use std::path::Path;
use std::process::{Command, Output};

fn xtask(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(arguments).output().unwrap()
}

fn kernels(folder: &Path, more: &[&str]) -> Output {
    let (sources, output) = (folder.to_str().unwrap(), folder.join("images"));
    let mut arguments = vec![
        "kernels",
        "--kernels",
        sources,
        "--targets",
        "sm_90,compute_80",
    ];
    arguments.extend(["--output", output.to_str().unwrap()]);
    arguments.extend(more);
    xtask(&arguments)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn images_are_written_and_listed_with_their_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = "extern \"C\" __global__ void set(int* x) { *x = 1; }\n";
    std::fs::write(folder.path().join("set.cu"), kernel).unwrap();
    std::fs::write(folder.path().join("budgets.txt"), "set * 32\n").unwrap();

    let checked = kernels(folder.path(), &["--check"]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let image = folder.path().join("images/set.sm_90.cubin");
    assert!(!image.exists(), "a check writes no images");

    let built = kernels(folder.path(), &[]);
    assert!(built.status.success(), "{}", text(&built.stderr));
    let bytes = std::fs::metadata(&image).unwrap().len().to_string();
    let table = text(&built.stdout);
    let line = table.lines().find(|line| line.contains("sm_90")).unwrap();
    assert!(line.contains(&bytes) && line.contains("cached"), "{table}");
    assert!(folder.path().join("images/set.compute_80.ptx").exists());
}

#[test]
fn a_warning_fails_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = "extern \"C\" __global__ void set(int* x) { int unused; *x = 1; }\n";
    std::fs::write(folder.path().join("set.cu"), kernel).unwrap();
    let checked = kernels(folder.path(), &["--check"]);
    let error = text(&checked.stderr);
    assert!(
        !checked.status.success() && error.contains("set.cu(1)"),
        "{error}"
    );
}

#[test]
fn a_kernel_beyond_its_budget_fails_a_check() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = "extern \"C\" __global__ void set(int* x) { *x = 1; }\n";
    std::fs::write(folder.path().join("set.cu"), kernel).unwrap();
    std::fs::write(folder.path().join("budgets.txt"), "set * 1\n").unwrap();
    let checked = kernels(folder.path(), &["--check"]);
    let error = text(&checked.stderr);
    assert!(
        !checked.status.success() && error.contains("set takes"),
        "{error}"
    );
}

#[test]
fn what_is_not_understood_is_named() {
    for (arguments, name) in [
        (vec!["kernel"], "\"kernel\""),
        (vec!["kernels", "--chekc"], "\"--chekc\""),
        (vec!["kernels", "--targets", "sm_91"], "\"sm_91\""),
        (vec![], "missing"),
    ] {
        let refused = xtask(&arguments);
        let error = text(&refused.stderr);
        assert!(!refused.status.success() && error.contains(name), "{error}");
    }
}
