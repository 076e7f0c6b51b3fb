//! Times the operations on a GPU: one row an operation, eager and as a replayed graph, medians by
//! CUDA events, beside the time that reading and writing each operand once would take.
//!
//! `gpu_bench [--once] [LOG_N | LOG_N:DEPTH ...]`; `--once` runs each operation a single time, for a
//! profiler.

use fhelium_ckks::{
    CipherState, Ciphertext, KeyKind, KeySwitchKey, Parameters, PlainState, Plaintext, SecretId,
};
use fhelium_cuda::{Context, ContextOptions, Device, Graph, Result};

/// Bytes a second of a copy on an H200, counting reads and writes.
const COPY_BANDWIDTH: f64 = 3.94e12;
const REPETITIONS: usize = 60;
/// Operand sets that take turns, so that no run finds its operands in a cache.
const SETS: usize = 3;

struct Bench {
    host: fhelium_ckks::Context,
    device: Context,
    word: u64,
    once: bool,
}

type Work<'a> = Box<dyn Fn() -> Result<()> + 'a>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let once = arguments.iter().any(|argument| argument == "--once");
    let chosen: Vec<&String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let is_chosen = |log_n: u32, depth: usize| {
        let names = [log_n.to_string(), format!("{log_n}:{depth}")];
        chosen.is_empty() || chosen.iter().any(|chosen| names.contains(chosen))
    };
    let result = SIZES
        .iter()
        .filter(|&&(log_n, depth)| is_chosen(log_n, depth))
        .try_for_each(|&(log_n, depth)| size(log_n, depth, once));
    if let Err(error) = result {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// Ring degrees and depths.
const SIZES: [(u32, usize); 6] = [(14, 7), (15, 15), (16, 25), (16, 27), (16, 34), (17, 60)];

fn size(log_n: u32, depth: usize, once: bool) -> Result<()> {
    let parameters = Parameters::builder(depth, 40).log_n(log_n).build()?;
    let host = fhelium_ckks::Context::new(&parameters, Default::default())?;
    let device = Context::new(&host, &Device::open(0)?, ContextOptions::default())?;
    let limbs = parameters.moduli().len();
    let specials = parameters.special_moduli().len();
    let digits = parameters.digits(depth);
    println!(
        "\n{parameters}\n{}, {:?} core; {limbs} + {specials} primes, {digits} digits of {}",
        device.device(),
        device.core(),
        parameters.digit_size()
    );
    println!(
        "{:<34}{:>10}{:>10}{:>10}{:>8}",
        "microseconds", "eager", "graph", "floor", "ratio"
    );
    let mut bench = Bench {
        host,
        device,
        word: 1,
        once,
    };
    let limb_bytes = (parameters.n() * 8) as f64;
    let floor = |transfers: usize| transfers as f64 * limb_bytes / COPY_BANDWIDTH * 1e6;
    let key_limbs = 2 * digits * (limbs + specials);

    let level = depth;
    let pairs = (0..SETS)
        .map(|_| Ok((bench.ciphertext(level)?, bench.ciphertext(level)?)))
        .collect::<Result<Vec<_>>>()?;
    let plain = bench.plaintext(level)?;
    let relinearization = bench.key(KeyKind::Relinearization)?;
    let steps: Vec<i64> = (1..=8).collect();
    let rotations = steps
        .iter()
        .map(|&step| bench.key(KeyKind::rotation(step, parameters.slots())))
        .collect::<Result<Vec<_>>>()?;
    let hoisted: Vec<_> = steps.iter().copied().zip(&rotations).collect();
    let products = pairs
        .iter()
        .map(|(a, b)| bench.device.multiply_relinearize(a, b, &relinearization))
        .collect::<Result<Vec<_>>>()?;

    let device = &bench.device;
    bench.row(
        "multiply + relinearize + rescale",
        floor(4 * limbs + key_limbs + 2 * (limbs - 1)),
        sets(|set| {
            let (a, b) = &pairs[set];
            let key = &relinearization;
            Box::new(move || device.multiply_relinearize_rescale(a, b, key).map(drop))
        }),
    )?;
    bench.row(
        "the same as three operations",
        floor(4 * limbs + key_limbs + 2 * (limbs - 1)),
        sets(|set| {
            let (a, b) = &pairs[set];
            let key = &relinearization;
            Box::new(move || {
                let product = device.multiply(a, b)?;
                device
                    .rescale(&device.relinearize(&product, key)?)
                    .map(drop)
            })
        }),
    )?;
    bench.row(
        "rotate",
        floor(4 * limbs + key_limbs),
        sets(|set| {
            let (a, key) = (&pairs[set].0, &rotations[0]);
            Box::new(move || device.rotate(a, 1, key).map(drop))
        }),
    )?;
    bench.row(
        "8 hoisted rotations",
        floor(2 * limbs + 8 * (key_limbs + 2 * limbs)),
        sets(|set| {
            let (a, hoisted) = (&pairs[set].0, &hoisted);
            Box::new(move || device.rotate_hoisted(a, hoisted).map(drop))
        }),
    )?;
    bench.row(
        "NTT of a ciphertext",
        floor(4 * limbs),
        sets(|set| {
            let a = &pairs[set].0;
            Box::new(move || device.forward(a.buffer(), level, 2))
        }),
    )?;
    bench.row(
        "inverse NTT of a ciphertext",
        floor(4 * limbs),
        sets(|set| {
            let a = &pairs[set].0;
            Box::new(move || device.inverse(a.buffer(), level, 2))
        }),
    )?;
    bench.row(
        "rescale",
        floor(2 * limbs + 2 * (limbs - 1)),
        sets(|set| {
            let product = &products[set];
            Box::new(move || device.rescale(product).map(drop))
        }),
    )?;
    bench.row(
        "add",
        floor(6 * limbs),
        sets(|set| {
            let (a, b) = &pairs[set];
            Box::new(move || device.add(a, b).map(drop))
        }),
    )?;
    bench.row(
        "multiply by a plaintext",
        floor(5 * limbs),
        sets(|set| {
            let (a, plain) = (&pairs[set].0, &plain);
            Box::new(move || device.multiply_plain(a, plain).map(drop))
        }),
    )?;
    println!(
        "memory: {:?}, tables {} bytes",
        device.memory(),
        device.tables_nbytes()
    );
    Ok(())
}

fn sets<'a>(work: impl Fn(usize) -> Work<'a>) -> Vec<Work<'a>> {
    (0..SETS).map(work).collect()
}

impl Bench {
    fn next(&mut self) -> u64 {
        // Marsaglia's xorshift64.
        self.word ^= self.word << 13;
        self.word ^= self.word >> 7;
        self.word ^= self.word << 17;
        self.word
    }

    fn residues(&mut self, moduli: &[u64], polynomials: usize) -> Vec<u64> {
        let n = self.host.parameters().n();
        let mut data = Vec::with_capacity(polynomials * moduli.len() * n);
        for _ in 0..polynomials {
            for &p in moduli {
                data.extend((0..n).map(|_| self.next() % p));
            }
        }
        data
    }

    fn ciphertext(&mut self, level: usize) -> Result<fhelium_cuda::Ciphertext> {
        let parameters = self.host.parameters().clone();
        let data = self.residues(&parameters.moduli()[..=level], 2);
        let state = CipherState::new(level, parameters.scale().clone());
        let ciphertext = Ciphertext::from_raw(&parameters, SECRET, state, vec![], data)?;
        self.device.upload(&ciphertext)
    }

    fn plaintext(&mut self, level: usize) -> Result<fhelium_cuda::Plaintext> {
        let parameters = self.host.parameters().clone();
        let data = self.residues(&parameters.moduli()[..=level], 1);
        let state = PlainState {
            level,
            scale: parameters.scale().clone(),
        };
        let plaintext = Plaintext::from_raw(&parameters, state, vec![], data)?;
        self.device.upload_plaintext(&plaintext)
    }

    /// A key of random residues: it switches to nothing, in the same time.
    fn key(&mut self, kind: KeyKind) -> Result<fhelium_cuda::KeySwitchKey> {
        let parameters = self.host.parameters().clone();
        let moduli = [parameters.moduli(), parameters.special_moduli()].concat();
        let b = self.residues(&moduli, parameters.digits(parameters.depth()));
        let seed = [self.next() as u8; 32];
        let key = KeySwitchKey::from_raw(&parameters, SECRET, kind, seed, b)?;
        self.device.upload_key(&key)
    }

    fn row(&self, name: &str, floor: f64, sets: Vec<Work<'_>>) -> Result<()> {
        if self.once {
            println!("{name}");
            return sets[0]().and_then(|()| self.device.synchronize());
        }
        for work in &sets {
            work()?;
        }
        self.device.synchronize()?;
        let eager = self.median(&sets)?;
        let graphs = sets
            .iter()
            .map(|work| self.device.capture(work).map(|(graph, ())| graph))
            .collect::<Result<Vec<Graph>>>()?;
        let replays: Vec<Work<'_>> = graphs
            .iter()
            .map(|graph| Box::new(|| graph.replay()) as Work<'_>)
            .collect();
        let graph = self.median(&replays)?;
        println!(
            "{name:<34}{eager:>10.1}{graph:>10.1}{floor:>10.1}{:>8.2}",
            graph / floor
        );
        Ok(())
    }

    /// Microseconds of a run, the median over all.
    fn median(&self, sets: &[Work<'_>]) -> Result<f64> {
        let mut times = Vec::with_capacity(REPETITIONS);
        for repetition in 0..REPETITIONS + SETS {
            let start = self.device.queue().record()?;
            sets[repetition % SETS]()?;
            let end = self.device.queue().record()?;
            self.device.synchronize()?;
            if repetition >= SETS {
                times.push(self.device.queue().elapsed_us(&start, &end)?);
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }
}

const SECRET: SecretId = SecretId::from_bytes([1; 16]);
