//! A program with cust kernels of its own computes on fhelium's ciphertexts, in place.
//!
//! Two messages are encrypted on the CPU and moved to the GPU; a kernel of this program adds the
//! ciphertexts on a cust stream, between two operations of fhelium; the sum is compared with
//! fhelium's own, moved back and decrypted.
//!
//!     cargo run --release -p fhelium-cust --example cust_interop

use cust::launch;
use cust::memory::{DeviceCopy, DevicePointer};
use cust::prelude::{CudaFlags, Module, Stream, StreamFlags};
use fhelium_ckks::{KeyGenerator, Message, Parameters, Randomness};
use fhelium_cuda::{Context, ContextOptions};
use std::error::Error;

/// `add_residues` of `add_residues.cu`.
const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/add_residues.ptx"));

const THREADS: u32 = 256;

/// The kernel's argument.
#[derive(Clone, Copy)]
#[repr(C)]
struct Add {
    x: DevicePointer<u64>,
    y: DevicePointer<u64>,
    sum: DevicePointer<u64>,
    p: u64,
    n: u32,
}

// SAFETY: plain numbers and device addresses.
unsafe impl DeviceCopy for Add {}

fn main() -> Result<(), Box<dyn Error>> {
    // The embedder's side.
    cust::init(CudaFlags::empty())?;
    let context = cust::context::Context::new(cust::device::Device::get_device(0)?)?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;

    // fhelium's side, on the CPU and in the same context on the GPU.
    let device = fhelium_cust::adopt(&context, 0)?;
    let parameters = Parameters::builder(1, 40).build()?;
    let cpu = fhelium_ckks::Context::new(&parameters, Default::default())?;
    let gpu = Context::new(&cpu, &device, ContextOptions::default())?;
    println!("{parameters} on {device}");

    let randomness = Randomness::from_os()?;
    let secret = KeyGenerator::new(&cpu, &randomness).secret()?;
    let encrypt = |message: &[f64]| {
        let plaintext = cpu.encode(
            Message::real(message, &[message.len()])?,
            parameters.depth(),
            parameters.scale(),
        )?;
        gpu.upload(&cpu.encrypt(&plaintext, &secret, &randomness)?)
    };
    let ramp: Vec<f64> = (0..parameters.slots()).map(|i| i as f64 * 1e-3).collect();
    let x = encrypt(&ramp)?;
    let y = gpu.negate(&encrypt(&vec![0.5; parameters.slots()])?)?;

    // The embedder's kernel, after the negation and before what comes next.
    let module = Module::from_ptx(PTX, &[])?;
    let add = module.get_function("add_residues")?;
    let mut sum = gpu.queue().allocate(x.buffer().words())?;
    fhelium_cust::on_stream(&gpu, &stream, || {
        let (x, y) = (
            fhelium_cust::view(x.buffer()),
            fhelium_cust::view(y.buffer()),
        );
        let sum = fhelium_cust::view_mut(&mut sum);
        let n = parameters.n();
        let primes = parameters.moduli();
        for (polynomial, &p) in primes.iter().chain(primes).enumerate() {
            let limb = polynomial * n..(polynomial + 1) * n;
            let argument = Add {
                x: x.index(limb.clone()).as_device_ptr(),
                y: y.index(limb.clone()).as_device_ptr(),
                sum: sum.index(limb).as_device_ptr(),
                p,
                n: n as u32,
            };
            // SAFETY: the three ranges lie in live memory, and the kernel stays within n words.
            unsafe {
                launch!(add<<<(n as u32).div_ceil(THREADS), THREADS, 0, stream>>>(argument))?
            };
        }
        Ok::<(), Box<dyn Error>>(())
    })?;
    let secret_id = x.secret_id();
    let sum = fhelium_cuda::Ciphertext::from_buffer(
        &gpu,
        secret_id,
        x.state().clone(),
        x.batch_shape().to_vec(),
        sum,
    )?;

    // Back on fhelium's side.
    let found = gpu.download(&sum)?;
    let expected = gpu.download(&gpu.add(&x, &y)?)?;
    if found.data() != expected.data() {
        return Err("the kernel's sum differs from fhelium's".into());
    }
    let decrypted = cpu.decode_real(&cpu.decrypt(&found, &secret)?)?;
    let largest = ramp
        .iter()
        .zip(&decrypted)
        .map(|(x, found)| (x - 0.5 - found).abs())
        .fold(0.0, f64::max);
    println!("residues equal fhelium's; largest error {largest:.1e}");
    if largest < 1e-6 {
        return Ok(());
    }
    Err(format!("the decrypted sum is off by {largest:e}").into())
}
