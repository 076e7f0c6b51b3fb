//! Builds the emulated driver, which runs the kernels on the CPU, and prints its folder, so that
//! tests in other languages can load it where there is no GPU:
//!
//!     LD_LIBRARY_PATH=$(cargo run -q -p fhelium-cuda --example emulated_driver) python -m pytest

#[path = "../tests/host/mod.rs"]
mod host;

fn main() {
    let library = host::emulated_driver();
    let folder = library.parent().unwrap_or(&library);
    println!("{}", folder.display());
}
