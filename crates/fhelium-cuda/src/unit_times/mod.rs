//! How long units of work take on this device, so that the time of an operation can be told before it
//! runs.
//!
//! Kernels of little work wait for their launch and for memory to answer, those of much work for how
//! fast memory is, and an operation is several of both, some of which do the work of two. So no kernel
//! is timed for itself: a few operations are, on many limbs and on few, and the times of units are those
//! that explain them best.

mod fit;
mod samples;

use crate::context::Context;
use crate::error::Result;
use std::time::Duration;

/// Counts of work, each in a unit that takes the same time on one device and ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Rounds of launches, each of which waits for the one before.
    pub launches: u64,
    /// Sums, copies and permutations of one limb.
    pub sums: u64,
    /// Products of one limb.
    pub products: u64,
    /// Transforms of one limb, either direction, outside key switches.
    pub transforms: u64,
    /// Limbs of digits: converted to their prime and transformed.
    pub digit_limbs: u64,
    /// Products of one limb of a digit with both halves of an evaluation key.
    pub key_products: u64,
    /// Limbs of inner products that are divided by the special primes.
    pub divisions: u64,
    /// Messages taken to their coefficients, from host memory.
    pub encodings: u64,
}

/// Kinds of work.
const KINDS: usize = 8;

impl Work {
    fn counts(self) -> [f64; KINDS] {
        [
            self.launches,
            self.sums,
            self.products,
            self.transforms,
            self.digit_limbs,
            self.key_products,
            self.divisions,
            self.encodings,
        ]
        .map(|count| count as f64)
    }
}

/// The time of a unit of each kind of work on a device, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitTimes {
    /// Of beginning a run.
    run: f64,
    /// By the kinds of [`Work`], in their order.
    units: [f64; KINDS],
}

impl UnitTimes {
    /// The time of counted work, without that of beginning a run.
    pub fn of(&self, work: Work) -> Duration {
        let times = work.counts().into_iter().zip(self.units);
        let nanos: f64 = times.map(|(count, time)| count * time).sum();
        Duration::from_secs_f64(nanos / 1e9)
    }

    /// The time that a run takes beside its work, however many operations it has.
    pub fn run(&self) -> Duration {
        Duration::from_secs_f64(self.run / 1e9)
    }

    /// The time of a round of launches that have next to nothing to do.
    pub fn launch(&self) -> Duration {
        self.of(Work {
            launches: 1,
            ..Work::default()
        })
    }
}

impl Context {
    /// The times of units of work on this device, measured by the first call, in a stream of its own
    /// behind what is in this context's, and kept: that takes some milliseconds, more at large N,
    /// and for that long the memory of two evaluation keys.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`](crate::CudaError::OutOfMemory),
    /// [`CudaError::Driver`](crate::CudaError::Driver).
    pub fn unit_times(&self) -> Result<UnitTimes> {
        let mut known = self.unit_times_cell().lock();
        if let Some(times) = *known {
            return Ok(times);
        }
        let times = samples::measure(self)?;
        Ok(*known.insert(times))
    }
}
