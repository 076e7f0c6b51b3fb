//! Times the operations on a GPU: one row an operation, called, replayed launch by launch and replayed
//! as a graph, medians by CUDA events, beside the time that reading and writing each operand once would
//! take and the first target. The device is idle before each run, whose time therefore begins with that of
//! the host's first launch; "queued" is the chosen way behind other work, as in the midst of a program.
//!
//! `gpu_bench [--once] [--kernels] [--unfused] [--only TEXT] [LOG_N | LOG_N:DEPTH ...]`; `--kernels` adds
//! a table of the launches behind each row, `--unfused` has base conversions and transforms run as
//! kernels of their own, `--only` leaves the operations whose names hold a text, and `--once` runs each
//! operation a single time, for a profiler.

mod kernels;
mod operands;

use fhelium_ckks::{KeyKind, Parameters};
use fhelium_cuda::{Ciphertext, Context, ContextOptions, Device, Graph, Replay, Result};
use operands::{Operands, Values};

/// Bytes a second of a copy on an H200, counting reads and writes.
const COPY_BANDWIDTH: f64 = 3.94e12;
const REPETITIONS: usize = 60;
/// Operand sets that take turns, so that no run finds its operands in a cache.
const SETS: usize = 3;

/// Ring degrees and depths.
const SIZES: [(u32, usize); 6] = [(14, 7), (15, 15), (16, 25), (16, 27), (16, 34), (17, 60)];

/// What the command line asks for.
#[derive(Clone, Default)]
struct Options {
    once: bool,
    kernels: bool,
    unfused: bool,
    only: Option<String>,
    sizes: Vec<String>,
}

impl Options {
    fn parse(arguments: impl Iterator<Item = String>) -> std::result::Result<Self, String> {
        let mut options = Options::default();
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--once" => options.once = true,
                "--kernels" => options.kernels = true,
                "--unfused" => options.unfused = true,
                "--only" => {
                    let text = arguments.next();
                    options.only = Some(text.ok_or("--only takes a text of an operation's name")?);
                }
                size if SIZES.iter().any(|&of| names_of(of).contains(&argument)) => {
                    options.sizes.push(size.to_owned());
                }
                other => {
                    let known = SIZES.map(|of| names_of(of)[1].clone()).join(", ");
                    return Err(format!(
                        "{other} is no option and no size; options are --once, --kernels, \
                         --unfused and --only TEXT, sizes {known}, or LOG_N alone"
                    ));
                }
            }
        }
        Ok(options)
    }

    fn has(&self, size: (u32, usize)) -> bool {
        let names = names_of(size);
        self.sizes.is_empty() || self.sizes.iter().any(|chosen| names.contains(chosen))
    }
}

/// What a size is called on the command line.
fn names_of((log_n, depth): (u32, usize)) -> [String; 2] {
    [log_n.to_string(), format!("{log_n}:{depth}")]
}

struct Bench {
    device: Context,
    options: Options,
    limb_bytes: f64,
    log_n: u32,
}

/// An operation on a set of operands, or of its replay.
type Work<'a> = dyn Fn(&[Ciphertext]) -> Result<Values> + 'a;

/// What an operation is timed with.
struct Inputs<'a> {
    sets: &'a [Values],
    /// What is queued ahead of it.
    ahead: &'a Work<'a>,
}

/// First targets in microseconds, by operation and ring degree.
const TARGETS: [(&str, u32, f64); 8] = [
    (PRODUCT, 14, 60.0),
    (PRODUCT, 16, 200.0),
    ("rotate", 16, 192.0),
    ("8 hoisted rotations", 16, 860.0),
    ("NTT of a ciphertext", 16, 38.0),
    ("rescale", 16, 43.0),
    ("add", 16, 25.0),
    ("multiply by a plaintext", 16, 25.0),
];
const PRODUCT: &str = "multiply + relinearize + rescale";

fn main() {
    let result = Options::parse(std::env::args().skip(1)).and_then(|options| {
        SIZES
            .into_iter()
            .filter(|&of| options.has(of))
            .try_for_each(|of| size(of, &options).map_err(|error| error.to_string()))
    });
    if let Err(error) = result {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn size((log_n, depth): (u32, usize), options: &Options) -> Result<()> {
    let parameters = Parameters::builder(depth, 40).log_n(log_n).build()?;
    let host = fhelium_ckks::Context::new(&parameters, Default::default())?;
    let context_options = ContextOptions {
        unfused: options.unfused,
        ..ContextOptions::default()
    };
    let device = Context::new(&host, &Device::open(0)?, context_options)?;
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
        "{:<34}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>8}{:>8}{:>8}{:>8}",
        "microseconds",
        "eager",
        "launches",
        "graph",
        "chosen",
        "queued",
        "/eager",
        "floor",
        "/floor",
        "target",
        "/target"
    );
    let bench = Bench {
        device,
        options: options.clone(),
        limb_bytes: (parameters.n() * 8) as f64,
        log_n,
    };
    let mut operands = Operands::new(&bench.device);
    let key_limbs = 2 * digits * (limbs + specials);

    let level = depth;
    let sets = (0..SETS)
        .map(|_| {
            Ok(vec![
                operands.ciphertext(level)?,
                operands.ciphertext(level)?,
            ])
        })
        .collect::<Result<Vec<Values>>>()?;
    let plain = operands.plaintext(level)?;
    let key = operands.key(KeyKind::Relinearization)?;
    let steps: Vec<i64> = (1..=8).collect();
    let rotations = steps
        .iter()
        .map(|&step| operands.key(KeyKind::rotation(step, parameters.slots())))
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
    // Long enough for the host to queue any operation behind it.
    let ahead: &Work<'_> = &|_| device.rotate_hoisted(&sets[0][0], &hoisted);
    let pairs = Inputs { sets: &sets, ahead };
    let products = Inputs {
        sets: &products,
        ahead,
    };
    bench.row(
        PRODUCT,
        4 * limbs + key_limbs + 2 * (limbs - 1),
        &pairs,
        &|of| {
            Ok(vec![
                device.multiply_relinearize_rescale(&of[0], &of[1], &key)?,
            ])
        },
    )?;
    bench.row(
        "the same as three operations",
        4 * limbs + key_limbs + 2 * (limbs - 1),
        &pairs,
        &|of| {
            let product = device.multiply(&of[0], &of[1])?;
            Ok(vec![device.rescale(&device.relinearize(&product, &key)?)?])
        },
    )?;
    bench.row("rotate", 4 * limbs + key_limbs, &pairs, &|of| {
        Ok(vec![device.rotate(&of[0], 1, &rotations[0])?])
    })?;
    bench.row(
        "8 hoisted rotations",
        2 * limbs + 8 * (key_limbs + 2 * limbs),
        &pairs,
        &|of| device.rotate_hoisted(&of[0], &hoisted),
    )?;
    bench.row("NTT of a ciphertext", 4 * limbs, &pairs, &|of| {
        device.forward(of[0].buffer(), level, 2).map(|()| vec![])
    })?;
    bench.row("inverse NTT of a ciphertext", 4 * limbs, &pairs, &|of| {
        device.inverse(of[0].buffer(), level, 2).map(|()| vec![])
    })?;
    bench.row("rescale", 2 * limbs + 2 * (limbs - 1), &products, &|of| {
        Ok(vec![device.rescale(&of[0])?])
    })?;
    bench.row("add", 6 * limbs, &pairs, &|of| {
        Ok(vec![device.add(&of[0], &of[1])?])
    })?;
    bench.row("multiply by a plaintext", 5 * limbs, &pairs, &|of| {
        Ok(vec![device.multiply_plain(&of[0], &plain)?])
    })?;
    println!(
        "memory: {:?}, tables {} bytes",
        device.memory(),
        device.tables_nbytes()
    );
    Ok(())
}

impl Bench {
    /// One row of an operation that reads and writes so many limbs at least; with `--kernels` its
    /// launches, too.
    fn row(&self, name: &str, limbs: usize, inputs: &Inputs<'_>, work: &Work<'_>) -> Result<()> {
        let sets = inputs.sets;
        let options = &self.options;
        if options
            .only
            .as_ref()
            .is_some_and(|text| !name.contains(&**text))
        {
            return Ok(());
        }
        if options.once {
            println!("{name}");
            work(&sets[0])?;
            return self.device.synchronize();
        }
        let graph: Graph<_> = self.device.capture(&sets[0], |inputs| work(inputs))?;
        let by = |way: Replay| {
            let graph = &graph;
            move |of: &[Ciphertext]| graph.replay_by(way, of)
        };
        let ways: [&Work<'_>; 3] = [work, &by(Replay::Launches), &by(Replay::Graph)];
        let [eager, launches, replayed] = self.medians(sets, None, ways)?;
        let chosen_way = self.choose(&graph, sets)?;
        let chosen = match chosen_way {
            Replay::Launches => launches,
            Replay::Graph => replayed,
        };
        let [queued] = self.medians(sets, Some(inputs.ahead), [&by(chosen_way)])?;
        let floor = limbs as f64 * self.limb_bytes / COPY_BANDWIDTH * 1e6;
        print!(
            "{name:<34}{eager:>9.1}{launches:>9.1}{replayed:>9.1}{chosen:>9.1}{queued:>9.1}{:>9.2}{floor:>8.1}{:>8.2}",
            chosen / eager,
            chosen / floor
        );
        let is_this = |of: &&(&str, u32, f64)| (of.0, of.1) == (name, self.log_n);
        match TARGETS.iter().find(is_this) {
            Some((.., target)) => println!("{target:>8.0}{:>8.2}", chosen / target),
            None => println!("{:>8}{:>8}", "-", "-"),
        }
        if options.kernels {
            kernels::print(&graph.profile(&sets[0], kernels::RUNS)?);
        }
        Ok(())
    }

    /// Replays as a compiled program would, until it is known by which way.
    fn choose(&self, graph: &Graph<Ciphertext>, sets: &[Values]) -> Result<Replay> {
        for set in sets.iter().cycle() {
            if let Some(chosen) = graph.chosen() {
                return Ok(chosen);
            }
            graph.replay(set)?;
            self.device.synchronize()?;
        }
        unreachable!("there are sets")
    }

    /// Microseconds of a run by each of the ways, which take turns, the median over all; with other work
    /// ahead of each, which is on until the host has queued the run.
    fn medians<const WAYS: usize>(
        &self,
        sets: &[Values],
        ahead: Option<&Work<'_>>,
        ways: [&Work<'_>; WAYS],
    ) -> Result<[f64; WAYS]> {
        let mut times = ways.map(|_| Vec::with_capacity(REPETITIONS));
        for repetition in 0..REPETITIONS + 2 * SETS {
            for (turn, (way, times)) in ways.iter().zip(&mut times).enumerate() {
                let set = repetition * WAYS + turn;
                if let Some(ahead) = ahead {
                    ahead(&[])?;
                }
                let start = self.device.queue().record()?;
                way(&sets[set % SETS])?;
                let end = self.device.queue().record()?;
                self.device.synchronize()?;
                if repetition >= 2 * SETS {
                    times.push(self.device.queue().elapsed_us(&start, &end)?);
                }
            }
        }
        Ok(times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        }))
    }
}
