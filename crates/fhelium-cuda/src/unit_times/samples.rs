//! The operations that are timed.

use super::fit::{Sample, fit};
use super::{KINDS, UnitTimes, Work};
use crate::context::Context;
use crate::error::{CudaError, Result};
use crate::graph::{Graph, Replay};
use crate::keys::KeySwitchKey;
use crate::queue::uncaptured;
use crate::values::{Ciphertext, Plaintext};
use fhelium_ckks::{CipherState, KeyKind, Message, PlainState, SecretId};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs of an operation, one after the other, that are timed together: beginning a run is then a small
/// part.
const TOGETHER: usize = 4;
/// Timed runs, of which the fastest counts: what else the device does only ever adds time.
const RUNS: usize = 3;
/// Work before the first of them: a device that had none runs slowly at first.
const WARM_UP: Duration = Duration::from_millis(5);
/// Keys of the sample of hoisted rotations.
const KEYS: usize = 2;

type Values = Vec<Ciphertext>;

/// Times the operations in a stream of its own, which frees what it took at the end.
pub(super) fn measure(context: &Context) -> Result<UnitTimes> {
    // Somebody may be capturing in this thread.
    uncaptured(|| {
        let aside = context.aside()?;
        if !context.queue().is_capturing() {
            aside.queue().wait_for(context.queue())?;
        }
        Sampler::new(&aside)?.times()
    })
}

struct Sampler<'a> {
    context: &'a Context,
    keys: Vec<KeySwitchKey>,
    relinearization: Option<KeySwitchKey>,
    samples: Vec<Sample>,
}

const SECRET: SecretId = SecretId::from_bytes([0; 16]);

impl<'a> Sampler<'a> {
    fn new(context: &'a Context) -> Result<Self> {
        let parameters = context.parameters();
        let limbs = parameters.moduli().len() + parameters.special_moduli().len();
        let digits = parameters.digits(parameters.depth());
        let key = |kind, data| KeySwitchKey {
            parameters: parameters.id(),
            secret: SECRET,
            kind,
            seed: [0; 32],
            data,
        };
        let steps = 1..=KEYS as i64;
        let keys = steps
            .map(|step| {
                let data = context.queue().zeroed(2 * digits * limbs * context.n())?;
                let kind = KeyKind::rotation(step, parameters.slots());
                Ok(key(kind, Arc::new(data)))
            })
            .collect::<Result<Vec<_>>>()?;
        let first = keys.first();
        Ok(Sampler {
            context,
            relinearization: first.map(|of| key(KeyKind::Relinearization, of.data.clone())),
            keys,
            samples: Vec::new(),
        })
    }

    fn times(mut self) -> Result<UnitTimes> {
        self.warm_up()?;
        let depth = self.context.parameters().depth();
        let mut levels = vec![depth, depth / 2, depth / 4, 0];
        levels.dedup();
        for level in levels {
            self.level(level)?;
        }
        let run = self.run_time()?;
        // A launch takes some time, however the times of the rest came out.
        let per_launch = self
            .samples
            .iter()
            .map(|sample| sample.nanos / sample.counts[0].max(1.0));
        let mut least = [0.0; KINDS];
        least[0] = per_launch.fold(f64::INFINITY, f64::min) / 4.0;
        Ok(UnitTimes {
            run,
            units: fit(&self.samples, least),
        })
    }

    fn warm_up(&self) -> Result<()> {
        let value = self.ciphertext(self.context.parameters().depth())?;
        let begin = Instant::now();
        while begin.elapsed() < WARM_UP {
            for _ in 0..TOGETHER {
                self.context.negate(&value)?;
            }
            self.context.synchronize()?;
        }
        Ok(())
    }

    /// The operations on values of one level.
    fn level(&mut self, level: usize) -> Result<()> {
        let context = self.context;
        let limbs = level as u64 + 1;
        let inputs = [self.ciphertext(level)?, self.ciphertext(level)?];
        let sums = Work {
            launches: 1,
            sums: 2 * limbs,
            ..Work::default()
        };
        self.sample(sums, &inputs, |of| Ok(vec![context.add(&of[0], &of[1])?]))?;
        let transforms = Work {
            launches: 1,
            transforms: 2 * limbs,
            ..Work::default()
        };
        self.sample(transforms, &inputs, |of| {
            context.forward(of[0].buffer(), level, 2)?;
            Ok(vec![])
        })?;
        self.encoding(level)?;
        // A product at level 0 has no room for its scale.
        if level > 0 {
            self.products(level, &inputs)?;
        }
        if !context.parameters().special_moduli().is_empty() {
            self.rotations(level, &inputs)?;
        }
        Ok(())
    }

    fn products(&mut self, level: usize, inputs: &[Ciphertext; 2]) -> Result<()> {
        let context = self.context;
        let limbs = level as u64 + 1;
        let plain = self.plaintext(level)?;
        let products = |products| Work {
            launches: 1,
            products,
            ..Work::default()
        };
        self.sample(products(2 * limbs), inputs, |of| {
            Ok(vec![context.multiply_plain(&of[0], &plain)?])
        })?;
        self.sample(products(4 * limbs), inputs, |of| {
            Ok(vec![context.multiply(&of[0], &of[1])?])
        })?;
        let product = [context.multiply_plain(&inputs[0], &plain)?];
        let rescale = Work {
            launches: 2,
            products: 2 * level as u64,
            transforms: 2 * limbs,
            ..Work::default()
        };
        self.sample(rescale, &product, |of| Ok(vec![context.rescale(&of[0])?]))?;
        let Some(key) = self.relinearization.clone() else {
            return Ok(());
        };
        let mut joined = self.switches(limbs, 1);
        joined.launches += 2;
        joined.products += 4 * limbs + 2 * level as u64;
        self.sample(joined, inputs, |of| {
            Ok(vec![
                context.multiply_relinearize_rescale(&of[0], &of[1], &key)?,
            ])
        })
    }

    fn rotations(&mut self, level: usize, inputs: &[Ciphertext; 2]) -> Result<()> {
        let context = self.context;
        let keys = self.keys.clone();
        let steps: Vec<(i64, &KeySwitchKey)> = (1..).zip(&keys).collect();
        for count in [1, KEYS] {
            let mut work = self.switches(level as u64 + 1, count as u64);
            work.launches += 1;
            work.sums += 3 * (level as u64 + 1) * count as u64;
            self.sample(work, inputs, |of| {
                context.rotate_hoisted(&of[0], &steps[..count])
            })?;
        }
        Ok(())
    }

    /// One decomposition with the inner products and divisions for so many keys, whose launches are
    /// the same ones, as they are counted before a Program runs.
    fn switches(&self, limbs: u64, keys: u64) -> Work {
        let parameters = self.context.parameters();
        let extended = limbs + parameters.special_moduli().len() as u64;
        let digits = parameters.digits(limbs as usize - 1) as u64;
        Work {
            launches: 6,
            products: 2 * limbs * keys,
            digit_limbs: digits * extended,
            key_products: digits * extended * keys,
            divisions: 2 * extended * keys,
            ..Work::default()
        }
    }

    /// Encodings, which copy from the host and so are in no graph.
    fn encoding(&mut self, level: usize) -> Result<()> {
        let parameters = self.context.parameters();
        let values = vec![0.5; parameters.slots()];
        let shape = [values.len()];
        let message = Message::real(&values, &shape)?;
        let work = Work {
            launches: 2,
            transforms: level as u64 + 1,
            encodings: 1,
            ..Work::default()
        };
        let nanos = self.fastest(|| {
            self.context
                .encode(message, level, parameters.scale())
                .map(drop)
        })?;
        self.samples.push(Sample {
            counts: work.counts(),
            nanos,
        });
        Ok(())
    }

    /// Times an operation in a graph of several.
    fn sample(
        &mut self,
        work: Work,
        inputs: &[Ciphertext],
        operation: impl Fn(&[Ciphertext]) -> Result<Values>,
    ) -> Result<()> {
        let nanos = self.replayed(inputs, TOGETHER, operation)? / TOGETHER as f64;
        self.samples.push(Sample {
            counts: work.counts(),
            nanos,
        });
        Ok(())
    }

    /// Nanoseconds that a replay of so many runs takes, none of which keeps its results.
    fn replayed(
        &self,
        inputs: &[Ciphertext],
        count: usize,
        operation: impl Fn(&[Ciphertext]) -> Result<Values>,
    ) -> Result<f64> {
        // Kernels are loaded by the first run.
        operation(inputs)?;
        let graph: Graph<Ciphertext> = self.context.capture(inputs, |inputs| {
            for _ in 0..count {
                operation(inputs)?;
            }
            Ok::<Values, CudaError>(vec![])
        })?;
        self.fastest(|| graph.replay_by(Replay::Graph, inputs).map(drop))
    }

    /// What a replay takes beyond its launches: that of one launch beside that of several.
    fn run_time(&self) -> Result<f64> {
        let inputs = [self.ciphertext(0)?];
        let negations =
            |count| self.replayed(&inputs, count, |of| Ok(vec![self.context.negate(&of[0])?]));
        let (one, several) = (negations(1)?, negations(1 + TOGETHER)?);
        Ok((one - (several - one) / TOGETHER as f64).max(0.0))
    }

    /// Nanoseconds of the device, after a run that brings everything in.
    fn fastest(&self, work: impl Fn() -> Result<()>) -> Result<f64> {
        let queue = self.context.queue();
        work()?;
        let mut fastest = f64::INFINITY;
        for _ in 0..RUNS {
            let start = queue.record()?;
            work()?;
            let end = queue.record()?;
            fastest = fastest.min(1e3 * queue.elapsed_us(&start, &end)?);
        }
        // The device's clock has steps, and no work takes less than one.
        Ok(fastest.max(1.0))
    }

    fn ciphertext(&self, level: usize) -> Result<Ciphertext> {
        let parameters = self.context.parameters();
        let words = 2 * (level + 1) * self.context.n();
        Ok(Ciphertext {
            parameters: parameters.id(),
            secret: SECRET,
            state: CipherState::new(level, parameters.scale().clone()),
            batch_shape: vec![],
            data: Arc::new(self.context.queue().zeroed(words)?),
        })
    }

    fn plaintext(&self, level: usize) -> Result<Plaintext> {
        let parameters = self.context.parameters();
        let words = (level + 1) * self.context.n();
        Ok(Plaintext {
            parameters: parameters.id(),
            state: PlainState {
                level,
                scale: parameters.scale().clone(),
            },
            batch_shape: vec![],
            data: Arc::new(self.context.queue().zeroed(words)?),
        })
    }
}
