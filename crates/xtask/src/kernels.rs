//! `cargo xtask kernels`: every kernel file for every target, with what it costs.

use fhelium_kernelc::{Budgets, Compiler, Error, Image, Options, Sources, Target, kernels_folder};
use pico_args::Arguments;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) fn run(mut arguments: Arguments) -> Result<(), String> {
    let check = arguments.contains("--check");
    let text = |error: pico_args::Error| error.to_string();
    let targets: Option<String> = arguments.opt_value_from_str("--targets").map_err(text)?;
    let kernels: Option<PathBuf> = arguments.opt_value_from_str("--kernels").map_err(text)?;
    let output: Option<PathBuf> = arguments.opt_value_from_str("--output").map_err(text)?;
    crate::finish(arguments)?;

    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kernels = kernels.unwrap_or_else(|| kernels_folder(manifest));
    let output = output.unwrap_or_else(|| manifest.join("../../target/kernels"));
    let targets = match targets {
        Some(list) => Target::named(&list).map_err(|e| e.to_string())?,
        None => Target::SHIPPED.to_vec(),
    };
    let images = compile(&kernels, &targets, &output, check).map_err(|e| e.to_string())?;
    print!("{}", table(&images));
    Ok(())
}

fn compile(
    kernels: &Path,
    targets: &[Target],
    output: &Path,
    check: bool,
) -> Result<Vec<Image>, Error> {
    let cache = output.join("cache");
    if check && cache.exists() {
        std::fs::remove_dir_all(&cache).map_err(Error::file(&cache))?;
    }
    let compiler = Compiler::find(&cache)?;
    let images = compiler.compile(&Sources::open(kernels)?, targets, &Options::default())?;
    Budgets::open(kernels)?.check(&images)?;
    if !check {
        for image in &images {
            let ending = match image.target {
                Target::Cubin(_) => "cubin",
                Target::Ptx(_) => "ptx",
            };
            let file = output.join(format!("{}.{}.{ending}", image.stem, image.target));
            std::fs::write(&file, &image.bytes).map_err(Error::file(&file))?;
        }
    }
    Ok(images)
}

/// A line for each image, and the sums.
fn table(images: &[Image]) -> String {
    let mut lines = format!(
        "{:<14} {:<11} {:>10} {:>9}\n",
        "file", "target", "bytes", "seconds"
    );
    let mut line = |file: &str, target: &str, bytes: usize, time: Option<Duration>| {
        let seconds = time.map_or("cached".to_owned(), |t| format!("{:.2}", t.as_secs_f64()));
        lines += &format!("{file:<14} {target:<11} {bytes:>10} {seconds:>9}\n");
    };
    for image in images {
        let target = image.target.to_string();
        line(&image.stem, &target, image.bytes.len(), image.compile_time);
    }
    let bytes = images.iter().map(|image| image.bytes.len()).sum();
    let compiled: Vec<Duration> = images.iter().filter_map(|i| i.compile_time).collect();
    let time = (!compiled.is_empty()).then(|| compiled.iter().sum());
    line("all", "", bytes, time);
    lines
}
