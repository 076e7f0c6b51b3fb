//! Compiles kernels/cuda and lists the images for `include_bytes!`.

use fhelium_kernelc::{Compiler, Error, Image, Options, SEARCH_VARIABLES, Sources, Target};
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    for variable in
        SEARCH_VARIABLES
            .into_iter()
            .chain(["FHELIUM_CUDA", "FHELIUM_CUDA_TARGETS", LINE_INFO])
    {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let images = if std::env::var("FHELIUM_CUDA").as_deref() == Ok("off") {
        Vec::new()
    } else {
        match compile(&out) {
            Ok(images) => images,
            Err(error) => {
                // A wheel that silently lacks CUDA would be found out only on the user's machine.
                eprintln!("\n{error}\n");
                std::process::exit(1);
            }
        }
    };
    write_table(&out, &images).expect("OUT_DIR is writable");
}

const LINE_INFO: &str = "FHELIUM_KERNEL_LINEINFO";

fn compile(out: &Path) -> Result<Vec<Image>, Error> {
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let folder = fhelium_kernelc::kernels_folder(&manifest);
    println!("cargo:rerun-if-changed={}", folder.display());
    let options = Options {
        line_info: std::env::var(LINE_INFO).as_deref() == Ok("1"),
    };
    // The profile's folder, OUT_DIR/../../.., is shared by all builds that share a target folder.
    let cache = out
        .ancestors()
        .nth(4)
        .unwrap_or(out)
        .join("fhelium-kernels");
    Compiler::find(&cache)?.compile(&Sources::open(&folder)?, &targets(), &options)
}

/// What the wheel ships, or the few that `FHELIUM_CUDA_TARGETS` names, such as `sm_90`, while
/// kernels are being worked on.
fn targets() -> Vec<Target> {
    let Ok(names) = std::env::var("FHELIUM_CUDA_TARGETS") else {
        return Target::SHIPPED.to_vec();
    };
    let wanted: Vec<&str> = names.split(',').map(str::trim).collect();
    let known = |name: &&str| {
        Target::SHIPPED
            .iter()
            .any(|target| target.to_string() == **name)
    };
    if let Some(unknown) = wanted.iter().find(|name| !known(name)) {
        let names: Vec<String> = Target::SHIPPED.iter().map(Target::to_string).collect();
        eprintln!(
            "FHELIUM_CUDA_TARGETS names {unknown}; expected some of {}",
            names.join(", ")
        );
        std::process::exit(1);
    }
    Target::SHIPPED
        .into_iter()
        .filter(|target| wanted.contains(&target.to_string().as_str()))
        .collect()
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
