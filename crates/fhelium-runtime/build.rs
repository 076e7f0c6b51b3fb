//! Tells the compile cache which compiler its entries come from: a hash of the sources of the
//! crates that decide what a Program becomes. So entries of a changed compiler are not taken for
//! this one's, also between two builds of one version.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

fn main() {
    let mut hash = DefaultHasher::new();
    for name in ["fhelium-state", "fhelium-ir", "fhelium-passes"] {
        let folder = Path::new("..").join(name).join("src");
        // A packaged crate has no neighbours; then the version alone tells.
        if folder.is_dir() {
            println!("cargo::rerun-if-changed={}", folder.display());
            add(&folder, &mut hash);
        }
    }
    println!(
        "cargo::rustc-env=FHELIUM_COMPILER_SOURCES={:016x}",
        hash.finish()
    );
}

fn add(folder: &Path, hash: &mut DefaultHasher) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            add(&path, hash);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            hash.write(path.to_string_lossy().as_bytes());
            hash.write(&fs::read(&path).unwrap_or_default());
        }
    }
}
