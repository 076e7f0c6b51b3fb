//! Compiles kernels/cuda and lists the images for `include_bytes!`.

use fhelium_kernelc::{
    Budgets, Compiler, Error, Image, Options, Plan, Platform, SEARCH_VARIABLES, Sources, Target,
    find_nvrtc,
};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Whether CUDA is wanted; see [`Plan::decide`].
const REQUEST: &str = "FHELIUM_CUDA";
/// The few targets, such as `sm_90`, to compile for while kernels are being worked on.
const TARGETS: &str = "FHELIUM_CUDA_TARGETS";
/// Whether profilers shall see line numbers.
const LINE_INFO: &str = "FHELIUM_KERNEL_LINEINFO";

fn main() {
    for name in SEARCH_VARIABLES
        .into_iter()
        .chain([REQUEST, TARGETS, LINE_INFO])
    {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let out = PathBuf::from(variable("OUT_DIR").expect("cargo sets OUT_DIR"));
    match images(&out) {
        Ok(images) => write_table(&out, &images).expect("OUT_DIR is writable"),
        Err(error) => {
            eprintln!("\n{error}\n");
            std::process::exit(1);
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn images(out: &Path) -> Result<Vec<Image>, Error> {
    let package = variable("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let folder = fhelium_kernelc::kernels_folder(Path::new(&package));
    println!("cargo:rerun-if-changed={}", folder.display());
    let (os, arch) = (
        variable("CARGO_CFG_TARGET_OS").expect("cargo sets it"),
        variable("CARGO_CFG_TARGET_ARCH").expect("cargo sets it"),
    );
    let platform = Platform {
        os: &os,
        arch: &arch,
    };
    let nvrtc = match Plan::decide(variable(REQUEST).as_deref(), platform, find_nvrtc)? {
        Plan::Compile { nvrtc } => nvrtc,
        Plan::CpuOnly { warning } => {
            if let Some(warning) = warning {
                println!("cargo:warning={warning}");
            }
            return Ok(Vec::new());
        }
    };
    let targets = match variable(TARGETS) {
        Some(list) => Target::named(&list)?,
        None => Target::SHIPPED.to_vec(),
    };
    let options = Options {
        line_info: variable(LINE_INFO).as_deref() == Some("1"),
    };
    // The profile's folder, OUT_DIR/../../.., is shared by all builds that share a target folder.
    let cache = out
        .ancestors()
        .nth(4)
        .unwrap_or(out)
        .join("fhelium-kernels");
    let images = Compiler::with_library(&nvrtc, &cache)?.compile(
        &Sources::open(&folder)?,
        &targets,
        &options,
    )?;
    Budgets::open(&folder)?.check(&images)?;
    Ok(images)
}

fn write_table(out: &Path, images: &[Image]) -> std::io::Result<()> {
    let mut table = String::from("static IMAGES: &[Image] = &[\n");
    for image in images {
        let file = format!("{}.{}", image.stem, image.target);
        std::fs::write(out.join(&file), &image.bytes)?;
        let ptx = matches!(image.target, Target::Ptx(_));
        let _ = writeln!(
            table,
            "    Image {{ stem: {:?}, capability: {}, ptx: {ptx}, bytes: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{file}\")) }},",
            image.stem,
            image.target.capability(),
        );
    }
    table.push_str("];\n");
    std::fs::write(out.join("images.rs"), table)
}
