//! Times the operations on a GPU: one row an operation, called, replayed launch by launch and replayed
//! as a graph, medians by CUDA events, beside the time that reading and writing each operand once would
//! take and the first target.
//!
//! `gpu_bench [--once] [LOG_N | LOG_N:DEPTH ...]`; `--once` runs each operation a single time, for a
//! profiler.

use fhelium_ckks::{
    CipherState, Ciphertext, KeyKind, KeySwitchKey, Parameters, PlainState, Plaintext, SecretId,
};
use fhelium_cuda::{Context, ContextOptions, Device, Graph, Replay, Result};

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
    limb_bytes: f64,
    /// Whether the targets are for this ring degree.
    targets: bool,
}

type Values = Vec<fhelium_cuda::Ciphertext>;

/// An operation on a set of operands, or of its replay.
type Work<'a> = dyn Fn(&[fhelium_cuda::Ciphertext]) -> Result<Values> + 'a;

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
        "{:<34}{:>9}{:>9}{:>9}{:>9}{:>8}{:>8}{:>8}",
        "microseconds", "eager", "launches", "graph", "chosen", "floor", "target", "ratio"
    );
    let mut bench = Bench {
        host,
        device,
        word: 1,
        once,
        limb_bytes: (parameters.n() * 8) as f64,
        targets: log_n == 16,
    };
    let key_limbs = 2 * digits * (limbs + specials);

    let level = depth;
    let sets = (0..SETS)
        .map(|_| Ok(vec![bench.ciphertext(level)?, bench.ciphertext(level)?]))
        .collect::<Result<Vec<Values>>>()?;
    let plain = bench.plaintext(level)?;
    let key = bench.key(KeyKind::Relinearization)?;
    let steps: Vec<i64> = (1..=8).collect();
    let rotations = steps
        .iter()
        .map(|&step| bench.key(KeyKind::rotation(step, parameters.slots())))
        .collect::<Result<Vec<_>>>()?;
    let hoisted: Vec<_> = steps.iter().copied().zip(&rotations).collect();
    let products = sets
        .iter()
        .map(|set| {
            Ok(vec![
                bench.device.multiply_relinearize(&set[0], &set[1], &key)?,
            ])
        })
        .collect::<Result<Vec<Values>>>()?;

    let device = &bench.device;
    let product = if log_n == 14 { 60.0 } else { 200.0 };
    bench.row(
        "multiply + relinearize + rescale",
        (4 * limbs + key_limbs + 2 * (limbs - 1), Some(product)),
        &sets,
        &|of| {
            Ok(vec![
                device.multiply_relinearize_rescale(&of[0], &of[1], &key)?,
            ])
        },
    )?;
    bench.row(
        "the same as three operations",
        (4 * limbs + key_limbs + 2 * (limbs - 1), None),
        &sets,
        &|of| {
            let product = device.multiply(&of[0], &of[1])?;
            Ok(vec![device.rescale(&device.relinearize(&product, &key)?)?])
        },
    )?;
    bench.row(
        "rotate",
        (4 * limbs + key_limbs, Some(192.0)),
        &sets,
        &|of| Ok(vec![device.rotate(&of[0], 1, &rotations[0])?]),
    )?;
    bench.row(
        "8 hoisted rotations",
        (2 * limbs + 8 * (key_limbs + 2 * limbs), Some(860.0)),
        &sets,
        &|of| device.rotate_hoisted(&of[0], &hoisted),
    )?;
    bench.row(
        "NTT of a ciphertext",
        (4 * limbs, Some(38.0)),
        &sets,
        &|of| device.forward(of[0].buffer(), level, 2).map(|()| vec![]),
    )?;
    bench.row(
        "inverse NTT of a ciphertext",
        (4 * limbs, None),
        &sets,
        &|of| device.inverse(of[0].buffer(), level, 2).map(|()| vec![]),
    )?;
    bench.row(
        "rescale",
        (2 * limbs + 2 * (limbs - 1), Some(43.0)),
        &products,
        &|of| Ok(vec![device.rescale(&of[0])?]),
    )?;
    bench.row("add", (6 * limbs, Some(25.0)), &sets, &|of| {
        Ok(vec![device.add(&of[0], &of[1])?])
    })?;
    bench.row(
        "multiply by a plaintext",
        (5 * limbs, Some(25.0)),
        &sets,
        &|of| Ok(vec![device.multiply_plain(&of[0], &plain)?]),
    )?;
    println!(
        "memory: {:?}, tables {} bytes",
        device.memory(),
        device.tables_nbytes()
    );
    Ok(())
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

    /// One row, given the limbs that are read and written at least, and the first target.
    fn row(
        &self,
        name: &str,
        (transfers, target): (usize, Option<f64>),
        sets: &[Values],
        work: &Work<'_>,
    ) -> Result<()> {
        if self.once {
            println!("{name}");
            work(&sets[0])?;
            return self.device.synchronize();
        }
        let eager = self.median(sets, work)?;
        let graph: Graph<_> = self.device.capture(&sets[0], |inputs| work(inputs))?;
        let [launches, replayed] = [Replay::Launches, Replay::Graph]
            .map(|way| self.median(sets, &|of| graph.replay_by(way, of)));
        let (launches, replayed) = (launches?, replayed?);
        let chosen = match graph.preferred() {
            Replay::Launches => launches,
            Replay::Graph => replayed,
        };
        let floor = transfers as f64 * self.limb_bytes / COPY_BANDWIDTH * 1e6;
        print!("{name:<34}{eager:>9.1}{launches:>9.1}{replayed:>9.1}{chosen:>9.1}{floor:>8.1}");
        match target
            .filter(|_| self.targets || (name.starts_with("multiply + r") && self.limb_bytes < 2e5))
        {
            Some(target) => println!("{target:>8.0}{:>8.2}", chosen / target),
            None => println!("{:>8}{:>8}", "-", "-"),
        }
        Ok(())
    }

    /// Microseconds of a run, the median over all.
    fn median(&self, sets: &[Values], work: &Work<'_>) -> Result<f64> {
        let mut times = Vec::with_capacity(REPETITIONS);
        for repetition in 0..REPETITIONS + 2 * SETS {
            let start = self.device.queue().record()?;
            work(&sets[repetition % SETS])?;
            let end = self.device.queue().record()?;
            self.device.synchronize()?;
            if repetition >= 2 * SETS {
                times.push(self.device.queue().elapsed_us(&start, &end)?);
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }
}

const SECRET: SecretId = SecretId::from_bytes([1; 16]);
