//! How long units of work take here, so that the time of an operation can be told before it runs.

use super::key_switch::{CONVERSION_BLOCK, blocks};
use crate::context::Context;
use std::time::Instant;

/// Wall time of a unit of each kind of work in nanoseconds, with all threads of a context at work
/// on as many limbs as a ciphertext of the highest level has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UnitTimes {
    /// A transform of one limb, either direction.
    pub transform: f64,
    /// A product of one limb, value by value.
    pub product: f64,
    /// A sum of one limb.
    pub sum: f64,
    /// The conversion of one limb by one prime to one other prime.
    pub conversion: f64,
    /// The product of one limb of a digit with both halves of an evaluation key.
    pub key_product: f64,
    /// One message taken to its coefficients.
    pub encoding: f64,
    /// Handing a round of work to the threads and waiting for it.
    pub round: f64,
}

/// Runs of which the fastest counts: what else the machine does only ever adds time.
const RUNS: usize = 4;

/// Words of key halves that are read; a key of more is read at the same speed.
const KEY_WORDS: usize = 1 << 20;

impl Context {
    /// The times of units of work, measured by the first call and kept: it takes a few
    /// milliseconds at N = 2^14.
    pub fn unit_times(&self) -> &UnitTimes {
        self.unit_times_cell().get_or_init(|| self.measure())
    }

    fn measure(&self) -> UnitTimes {
        let n = self.n();
        let depth = self.parameters().depth();
        let rings = self.limbs();
        let limbs = 2 * rings.len();
        let ring = |index: usize| &rings[index % rings.len()];
        let filled = || {
            let mut buffer = self.buffer(limbs * n);
            // Canonical residues of every prime.
            self.each_limb(&mut buffer, |_, limb| limb.fill(1));
            buffer
        };
        let (a, b, mut out) = (filled(), filled(), filled());
        let transform = self.fastest(limbs, || {
            self.each_limb(&mut out, |index, limb| ring(index).forward(limb));
        });
        let product = self.fastest(limbs, || {
            self.each_limb(&mut out, |index, limb| {
                ring(index).mul(limb, &a[index * n..][..n], &b[index * n..][..n]);
            });
        });
        let sum = self.fastest(limbs, || {
            self.each_limb(&mut out, |index, limb| {
                ring(index).add(limb, &a[index * n..][..n], &b[index * n..][..n]);
            });
        });
        let round = self.fastest(1, || self.each_limb(&mut out, |_, _| {}));
        UnitTimes {
            transform,
            product,
            sum,
            conversion: self.conversion_time(depth, &a, &mut out),
            key_product: self.key_product_time(depth, &a, &mut out),
            encoding: self.encoding_time(),
            round,
        }
    }

    fn conversion_time(&self, level: usize, from: &[u64], out: &mut [u64]) -> f64 {
        let n = self.n();
        let own = self.parameters().digit_range(level, 0).len();
        let others = self.limbs().len() - own;
        let block = n.min(CONVERSION_BLOCK);
        let converter = self.mod_up(level, 0);
        self.fastest(own * others, || {
            let to = out.chunks_exact_mut(n).take(others).collect();
            self.each(
                blocks(to, block).enumerate().collect(),
                |(piece, mut to)| {
                    let rows = (0..own).map(|limb| &from[limb * n + piece * block..][..block]);
                    converter.convert(&rows.collect::<Vec<_>>(), &mut to);
                },
            );
        })
    }

    fn key_product_time(&self, level: usize, digits: &[u64], out: &mut [u64]) -> f64 {
        let n = self.n();
        let count = self.parameters().digits(level).min(digits.len() / n);
        let limbs = self.limbs().len().min((KEY_WORDS / (2 * count * n)).max(1));
        let mut halves = self.buffer(2 * count * limbs * n);
        self.each_limb(&mut halves, |_, limb| limb.fill(1));
        let rows = |start: usize| (0..count).map(move |digit| (start + digit) * n);
        self.fastest(count * limbs, || {
            let pairs = out
                .chunks_exact_mut(2 * n)
                .take(limbs)
                .enumerate()
                .collect();
            self.each(pairs, |(limb, pair): (usize, &mut [u64])| {
                let (out_b, out_a) = pair.split_at_mut(n);
                let digits: Vec<&[u64]> = rows(0).map(|at| &digits[at..][..n]).collect();
                let [b, a] = [0, 1].map(|half| {
                    let keys = rows((2 * limb + half) * count).map(|at| &halves[at..][..n]);
                    keys.collect::<Vec<_>>()
                });
                self.limbs()[limb].inner_product_pair(out_b, out_a, &digits, &b, &a);
            });
        })
    }

    fn encoding_time(&self) -> f64 {
        let mut coefficients = vec![0.0; self.n()];
        let slots = self.parameters().slots();
        self.fastest(1, || {
            self.embedding()
                .coefficients(|slot| (slot as f64).into(), slots, &mut coefficients);
        })
    }

    /// Nanoseconds for each of `units`, after a run that brings tables and memory in.
    fn fastest(&self, units: usize, mut work: impl FnMut()) -> f64 {
        work();
        let runs = (0..RUNS).map(|_| {
            let started = Instant::now();
            work();
            started.elapsed().as_nanos() as f64 / units as f64
        });
        runs.fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Context, ContextOptions, Parameters};

    #[test]
    fn every_unit_takes_time_and_is_measured_once() {
        let parameters = Parameters::builder(2, 30).build().unwrap();
        for threads in [1, 2] {
            let options = ContextOptions {
                threads: Some(threads),
                tier: None,
            };
            let context = Context::new(&parameters, options).unwrap();
            let times = *context.unit_times();
            let all = [
                times.transform,
                times.product,
                times.sum,
                times.conversion,
                times.key_product,
                times.encoding,
                times.round,
            ];
            assert!(
                all.iter().all(|&time| time > 0.0 && time < 1e9),
                "{times:?}"
            );
            assert_eq!(times, *context.unit_times());
        }
    }
}
