//! Makes the libcuda to link and start with where there is none, and the example's kernel.

use fhelium_kernelc::{Compiler, Options, Plan, Platform, SEARCH_VARIABLES, Sources, Target};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(variable("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let folder = PathBuf::from(variable("CARGO_MANIFEST_DIR").ok_or("cargo sets it")?);
    stub(&folder.join("stub"), &out)?;
    kernel(&folder.join("examples"), &out)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// This workspace's `.cargo/config.toml` names the stub's folder as the CUDA installation, for the
/// build scripts of cust, unless the builder has named one. Then the stub is what is linked with;
/// and where the system has no driver, it is what this crate's tests and examples start with.
fn stub(folder: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-env-changed=CUDA_LIBRARY_PATH");
    println!("cargo:rerun-if-changed={}", folder.display());
    if variable("CUDA_LIBRARY_PATH").map(PathBuf::from).as_deref() != Some(folder) {
        return Ok(());
    }
    let compiler = variable("CXX").unwrap_or_else(|| "c++".to_owned());
    let library = out.join("libcuda.so");
    run(Command::new(&compiler)
        .args(["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"])
        .arg(folder.join("lib64/libcuda.cpp"))
        .arg("-o")
        .arg(&library))?;
    // No search path: cargo would name its folder to every program that it runs, and a library of this
    // name goes before the driver's own, libcuda.so.1, where cudarc looks.
    println!("cargo:rustc-link-arg=-L{}", out.display());

    // A program that needs the library starts where there is one.
    let (source, program) = (out.join("starts.cpp"), out.join("starts"));
    std::fs::write(
        &source,
        "extern \"C\" int cuInit(unsigned);\nint main() { return cuInit(0) * 0; }\n",
    )?;
    run(Command::new(&compiler)
        .arg(&source)
        .args(["-L", &out.to_string_lossy(), "-lcuda", "-o"])
        .arg(&program))?;
    if !Command::new(&program).output()?.status.success() {
        // Beside the one to link with, it would be found under that one's name too.
        let run = out.join("run");
        std::fs::create_dir_all(&run)?;
        std::fs::copy(&library, run.join("libcuda.so.1"))?;
        for kind in ["tests", "examples"] {
            // LD_LIBRARY_PATH goes before a run path of the new kind.
            println!(
                "cargo:rustc-link-arg-{kind}=-Wl,--enable-new-dtags,-rpath,{}",
                run.display()
            );
        }
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?} does not run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?} fails: {said}").into())
}

/// Compiles the example's kernel to PTX, as an embedder compiles its own.
fn kernel(folder: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    const REQUEST: &str = "FHELIUM_CUDA";
    for name in SEARCH_VARIABLES.into_iter().chain([REQUEST]) {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-changed={}", folder.display());
    let os = variable("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let arch = variable("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let platform = Platform {
        os: &os,
        arch: &arch,
    };
    let request = variable(REQUEST);
    let ptx = match Plan::decide(request.as_deref(), platform, fhelium_kernelc::find_nvrtc)? {
        Plan::Compile { nvrtc } => {
            let compiler = Compiler::with_library(&nvrtc, &out.join("cache"))?;
            let sources = Sources::open(folder)?;
            let images = compiler.compile(&sources, &[Target::Ptx(80)], &Options::default())?;
            let ptx = images.first().ok_or("examples/ has no kernel")?;
            String::from_utf8(ptx.bytes.clone())?
        }
        // The example then ends where it opens the device, which takes kernels too.
        Plan::CpuOnly { .. } => String::new(),
    };
    std::fs::write(out.join("add_residues.ptx"), ptx.trim_end_matches('\0'))?;
    Ok(())
}
