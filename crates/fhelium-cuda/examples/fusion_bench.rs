//! Times sums on a GPU one operation after the other and fused, replayed as one CUDA graph, beside the
//! time that reading and writing each operand once would take: medians by CUDA events.
//!
//! `fusion_bench [LOG_N ...]`, by default 14 and 16.

#[path = "gpu_bench/operands.rs"]
#[allow(dead_code, reason = "it makes keys too, which a sum has none of")]
mod operands;

use fhelium_ckks::{
    LinearFactor, LinearProgram, LinearResult, LinearStep, LinearTerm, LinearValue, Parameters,
};
use fhelium_cuda::{
    Ciphertext, Context, ContextOptions, Device, Encoded, Graph, Plaintext, Replay, Result,
};
use operands::{Operands, Values};

/// Bytes a second of a copy on an H200, counting reads and writes.
const COPY_BANDWIDTH: f64 = 3.94e12;
const REPETITIONS: usize = 40;
const TERMS: usize = 16;
/// Sums over the same ciphertexts, as a matrix-vector product has them.
const ROWS: usize = 3;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut sizes = std::env::args()
        .skip(1)
        .map(|text| text.parse::<u32>())
        .collect::<std::result::Result<Vec<_>, _>>()?;
    if sizes.is_empty() {
        sizes = vec![14, 16];
    }
    for log_n in sizes {
        size(log_n)?;
    }
    Ok(())
}

fn size(log_n: u32) -> Result<()> {
    let depth = match log_n {
        ..=14 => 7,
        15 => 15,
        _ => 27,
    };
    let parameters = Parameters::builder(depth, 40).log_n(log_n).build()?;
    let host = fhelium_ckks::Context::new(&parameters, Default::default())?;
    let device = Context::new(&host, &Device::open(0)?, ContextOptions::default())?;
    println!(
        "\n{parameters}\n{}, {:?} core",
        device.device(),
        device.core()
    );
    println!(
        "{:<40}{:>10}{:>10}{:>8}{:>10}{:>8}",
        "microseconds", "separate", "fused", "ratio", "floor", "/floor"
    );
    let mut operands = Operands::new(&device);
    let x = (0..TERMS)
        .map(|_| operands.ciphertext(depth))
        .collect::<Result<Values>>()?;
    let p = (0..ROWS * TERMS)
        .map(|_| operands.plaintext(depth))
        .collect::<Result<Vec<_>>>()?;
    let bench = Bench {
        limb_bytes: ((depth + 1) * parameters.n() * 8) as f64,
        device,
        x,
        p,
    };
    bench.row("16 products with plaintexts, summed", 1, true, TERMS)?;
    bench.row("3 such sums of the same ciphertexts", ROWS, true, TERMS)?;
    bench.row("8 additions", 1, false, 9)
}

struct Bench {
    device: Context,
    x: Values,
    p: Vec<Plaintext>,
    /// Of a polynomial by all primes.
    limb_bytes: f64,
}

impl Bench {
    /// Sums of so many terms each, products with plaintexts or the ciphertexts themselves.
    fn row(&self, name: &str, rows: usize, products: bool, terms: usize) -> Result<()> {
        let separate = |x: &[Ciphertext]| {
            let term = |row: usize, i: usize| match products {
                true => self.device.multiply_plain(&x[i], &self.p[row * TERMS + i]),
                false => Ok(x[i].clone()),
            };
            let sum = |row: usize| {
                (1..terms).try_fold(term(row, 0)?, |sum, i| {
                    self.device.add(&sum, &term(row, i)?)
                })
            };
            (0..rows).map(sum).collect::<Result<Values>>()
        };
        let program = program(rows, products, terms);
        let results: Vec<LinearResult> = separate(&self.x)?
            .iter()
            .map(|sum| LinearResult {
                state: sum.state().clone(),
                batch_shape: vec![],
            })
            .collect();
        let fused = |x: &[Ciphertext]| {
            let plain = self.p.chunks(TERMS).take(if products { rows } else { 0 });
            let operands: Vec<Encoded<'_>> = (x[..terms].iter().map(Encoded::Ciphertext))
                .chain(plain.flat_map(|row| &row[..terms]).map(Encoded::Plaintext))
                .collect();
            self.device.fused(&program, &operands, &results)
        };
        for (one, other) in separate(&self.x)?.iter().zip(fused(&self.x)?) {
            let (one, other) = (self.device.download(one)?, self.device.download(&other)?);
            assert!(one.data() == other.data(), "{name}: the residues differ");
        }
        let separate = self.time(&separate)?;
        let fused = self.time(&fused)?;
        let polynomials = 2 * terms + 2 * rows + if products { rows * terms } else { 0 };
        let floor = polynomials as f64 * self.limb_bytes / COPY_BANDWIDTH * 1e6;
        let (ratio, of_floor) = (separate / fused, fused / floor);
        println!("{name:<40}{separate:>10.1}{fused:>10.1}{ratio:>8.2}{floor:>10.1}{of_floor:>8.2}");
        Ok(())
    }

    /// The median of replays in microseconds, by the faster way.
    fn time(&self, work: &dyn Fn(&[Ciphertext]) -> Result<Values>) -> Result<f64> {
        let graph: Graph<Ciphertext> = self.device.capture(&self.x, |x| work(x))?;
        let mut best = f64::INFINITY;
        for way in [Replay::Launches, Replay::Graph] {
            let mut times = Vec::with_capacity(REPETITIONS);
            for _ in 0..REPETITIONS {
                let queue = self.device.queue();
                let start = queue.record()?;
                let results = graph.replay_by(way, &self.x)?;
                let end = queue.record()?;
                times.push(queue.elapsed_us(&start, &end)?);
                drop(results);
            }
            times.sort_by(f64::total_cmp);
            best = best.min(times[REPETITIONS / 2]);
        }
        Ok(best)
    }
}

/// The sums, term by term for all of them, so that a ciphertext is read for all at once.
fn program(rows: usize, products: bool, terms: usize) -> LinearProgram {
    let mut steps = Vec::new();
    for i in 0..terms {
        for row in 0..rows {
            let factor = LinearFactor::Value(LinearValue::Operand((terms * (1 + row) + i) as u8));
            let term = LinearTerm {
                value: LinearValue::Operand(i as u8),
                factor: products.then_some(factor),
            };
            steps.push(match i {
                0 => LinearStep::Set(row as u8, term),
                _ => LinearStep::Add(row as u8, term),
            });
        }
    }
    steps.extend((0..rows as u8).map(|row| LinearStep::Give(row, row)));
    let plain = if products { rows * terms } else { 0 };
    LinearProgram::new([vec![2; terms], vec![1; plain]].concat(), steps).expect("within the limits")
}
