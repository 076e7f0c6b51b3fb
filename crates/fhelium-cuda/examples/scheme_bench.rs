//! Times key generation, encoding, encryption, decryption and decoding on a GPU beside this
//! machine's CPU: medians of the wall clock, transfers included.
//!
//! `scheme_bench [LOG_N | LOG_N:DEPTH ...]`

use fhelium_ckks::{Complex64, KeyGenerator, KeySwitchKey, Message, Parameters, Randomness};
use fhelium_cuda::{Context, ContextOptions, Device, Result};
use std::hint::black_box;
use std::time::Instant;

const REPETITIONS: usize = 15;

/// Ring degrees and depths.
const SIZES: [(u32, usize); 4] = [(14, 7), (15, 15), (16, 25), (17, 60)];

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    let is_chosen = |log_n: u32, depth: usize| {
        let names = [log_n.to_string(), format!("{log_n}:{depth}")];
        chosen.is_empty() || chosen.iter().any(|chosen| names.contains(chosen))
    };
    let result = SIZES
        .iter()
        .filter(|&&(log_n, depth)| is_chosen(log_n, depth))
        .try_for_each(|&(log_n, depth)| size(log_n, depth));
    if let Err(error) = result {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn size(log_n: u32, depth: usize) -> Result<()> {
    let parameters = Parameters::builder(depth, 40).log_n(log_n).build()?;
    let host = fhelium_ckks::Context::new(&parameters, Default::default())?;
    let device = Context::new(&host, &Device::open(0)?, ContextOptions::default())?;
    println!(
        "\n{parameters}\n{}, {:?} core; {} CPU threads",
        device.device(),
        device.core(),
        host.threads()
    );
    println!(
        "{:<34}{:>10}{:>10}{:>8}",
        "microseconds", "GPU", "CPU", "ratio"
    );

    let randomness = Randomness::from_os()?;
    let keys = KeyGenerator::new(&host, &randomness);
    let secret = keys.secret()?;
    let public = keys.public(&secret)?;
    let device_keys = fhelium_cuda::KeyGenerator::new(&device, &randomness);
    let device_secret = device.upload_secret(&secret)?;
    let device_public = device.upload_public(&public)?;
    let (slots, scale) = (parameters.slots(), parameters.scale());
    let values: Vec<f64> = (0..slots).map(|slot| (slot as f64).sin()).collect();
    let pairs: Vec<Complex64> = values.iter().map(|&v| Complex64::new(v, -v)).collect();
    let shape = [slots];
    let real = Message::real(&values, &shape)?;
    let complex = Message::complex(&pairs, &shape)?;
    let plain = host.encode(real, depth, scale)?;
    let device_plain = device.encode(real, depth, scale)?;
    let ciphertext = host.encrypt(&plain, &public, &randomness)?;
    let device_ciphertext = device.upload(&ciphertext)?;
    let relinearization = keys.relinearization(&secret)?;

    row(
        &device,
        "encode, real",
        || device.encode(real, depth, scale),
        || host.encode(real, depth, scale),
    )?;
    row(
        &device,
        "encode, complex",
        || device.encode(complex, depth, scale),
        || host.encode(complex, depth, scale),
    )?;
    row(
        &device,
        "encrypt under a public key",
        || device.encrypt(&device_plain, &device_public, &randomness),
        || host.encrypt(&plain, &public, &randomness),
    )?;
    row(
        &device,
        "encrypt under a secret",
        || device.encrypt(&device_plain, &device_secret, &randomness),
        || host.encrypt(&plain, &secret, &randomness),
    )?;
    row(
        &device,
        "decrypt",
        || device.decrypt(&device_ciphertext, &device_secret),
        || host.decrypt(&ciphertext, &secret),
    )?;
    row(
        &device,
        "decrypt and decode, real",
        || device.decode_real(&device.decrypt(&device_ciphertext, &device_secret)?),
        || host.decode_real(&host.decrypt(&ciphertext, &secret)?),
    )?;
    row(
        &device,
        "relinearization key",
        || device_keys.relinearization(&device_secret),
        || keys.relinearization(&secret),
    )?;
    row(
        &device,
        "move a key to the GPU; expand it",
        || device.upload_key(&relinearization),
        || {
            let mut key = KeySwitchKey::from_raw(
                &parameters,
                relinearization.secret_id(),
                relinearization.key_kind(),
                *relinearization.seed(),
                relinearization.residues().to_vec(),
            )?;
            key.uniform(&host);
            key.release_expanded();
            Ok(key)
        },
    )
}

/// Prints the times of an operation on the device and on the CPU.
fn row<D, H>(
    device: &Context,
    name: &str,
    gpu: impl Fn() -> Result<D>,
    cpu: impl Fn() -> fhelium_ckks::Result<H>,
) -> Result<()> {
    let gpu = median(|| {
        let value = gpu()?;
        device.synchronize()?;
        Ok(value)
    })?;
    let cpu = median(|| Ok(cpu()?))?;
    println!("{name:<34}{gpu:>10.1}{cpu:>10.1}{:>8.1}", cpu / gpu);
    Ok(())
}

/// Microseconds of a run, the median, after one that warms up.
fn median<T>(work: impl Fn() -> Result<T>) -> Result<f64> {
    work()?;
    let mut times = Vec::with_capacity(REPETITIONS);
    for _ in 0..REPETITIONS {
        let start = Instant::now();
        black_box(work()?);
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
