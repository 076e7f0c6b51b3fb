//! Compiles C and C++ for the machine that runs the tests.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The kernels' folder.
pub fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/cuda")
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
