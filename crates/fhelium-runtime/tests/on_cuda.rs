//! The tests of eager and compiled calls on a CUDA device, and those of devices alone. Without a GPU
//! the kernels run on the CPU, by an emulated driver.

#![allow(
    clippy::duplicate_mod,
    reason = "each file of tests brings what they share"
)]

mod common;
#[path = "compiled_equals_eager.rs"]
mod compiled_equals_eager;
mod devices;
#[path = "executable.rs"]
mod executable;
#[path = "fusion.rs"]
mod fusion;
#[path = "materials.rs"]
mod materials;
#[path = "peak_bytes.rs"]
mod peak_bytes;
