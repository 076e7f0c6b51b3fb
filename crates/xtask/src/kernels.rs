//! `cargo xtask kernels`: every kernel file for every target, with what it costs.

use fhelium_kernelc::{
    Budgets, Compiler, Error, Image, Options, Sources, Target, Usage, kernels_folder,
};
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
    print!("{}", table(&images).map_err(|e| e.to_string())?);
    let budgets = Budgets::open(&kernels).map_err(|e| e.to_string())?;
    budgets.check(&images).map_err(|e| e.to_string())
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

/// A line for each image, and the sums. The registers are the most of its kernels.
fn table(images: &[Image]) -> Result<String, Error> {
    let mut lines = String::new();
    let mut line = |cells: [&str; 6]| {
        let [file, target, kernels, registers, bytes, seconds] = cells;
        lines += &format!(
            "{file:<14} {target:<11} {kernels:>7} {registers:>9} {bytes:>10} {seconds:>8}\n"
        );
    };
    let seconds = |time: Option<Duration>| {
        time.map_or("cached".to_owned(), |t| format!("{:.2}", t.as_secs_f64()))
    };
    line(["file", "target", "kernels", "registers", "bytes", "seconds"]);
    for image in images {
        let usages = match image.target {
            Target::Cubin(_) => Usage::of(&image.bytes)?,
            // What a driver makes of it is not known here.
            Target::Ptx(_) => Vec::new(),
        };
        let most = usages.iter().map(|usage| usage.registers).max();
        line([
            &image.stem,
            &image.target.to_string(),
            &most.map_or(String::new(), |_| usages.len().to_string()),
            &most.map_or(String::new(), |most| most.to_string()),
            &image.bytes.len().to_string(),
            &seconds(image.compile_time),
        ]);
    }
    let bytes: usize = images.iter().map(|image| image.bytes.len()).sum();
    let compiled: Vec<Duration> = images.iter().filter_map(|i| i.compile_time).collect();
    let time = (!compiled.is_empty()).then(|| compiled.iter().sum());
    line(["all", "", "", "", &bytes.to_string(), &seconds(time)]);
    Ok(lines)
}
