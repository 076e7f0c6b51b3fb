//! How long each step of recorded work takes.

use super::{DeviceValue, Graph, State};
use crate::context::Context;
use crate::error::Result;
use crate::queue::{Action, Buffer, Queue};

/// What a step of recorded work is and how long it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTime {
    /// The kernel's name, or `copy`.
    pub kernel: String,
    /// Blocks along each axis; none of a copy.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
    /// Bytes of the operands, results and keys that it is given, as far as they are known: what it
    /// reads and writes where it takes each of them whole. Tables are not among them.
    pub bytes: usize,
    /// Microseconds by which the work up to this step takes longer than that up to the one before:
    /// overlap and caches are as they are in the work itself.
    pub in_turn: f64,
    /// Microseconds of each of several runs of this step alone, one behind the other.
    pub repeated: f64,
}

/// Words of each half of the memory that is copied while what is timed is put into the queue: more
/// than a cache holds, so that each run finds it as the others do.
const BLOCKER_WORDS: usize = 8 << 20;
/// Launches that the host puts into the queue while such a copy runs, with some to spare.
const LAUNCHES_PER_BLOCKER: usize = 8;
/// Runs of one step that are timed together.
const TOGETHER: usize = 8;

impl<V: DeviceValue> Graph<V> {
    /// Times each step, replayed as a launch: the medians of so many runs, at least one.
    ///
    /// The host is ahead of the device all the time, so its own time counts nothing. What the
    /// recorded work writes into its inputs is of no use afterwards.
    ///
    /// # Errors
    /// As [`replay`](Self::replay), [`CudaError::Capture`](crate::CudaError::Capture) within a
    /// capture, and [`CudaError::OutOfMemory`](crate::CudaError::OutOfMemory) where 128 MiB are not
    /// free besides.
    pub fn profile(&self, inputs: &[V], runs: usize) -> Result<Vec<StepTime>> {
        let queue = self.context.queue();
        queue.refuse_capture("a profile")?;
        let blocker = queue.allocate(2 * BLOCKER_WORDS)?;
        let times = |state: &mut State| {
            let clock = Clock {
                context: &self.context,
                blocker: &blocker,
                state,
            };
            clock.all(runs.max(1))
        };
        Ok(self.with_bound("profile", inputs, times)?.0)
    }
}

struct Clock<'a> {
    context: &'a Context,
    blocker: &'a Buffer,
    state: &'a State,
}

impl Clock<'_> {
    fn all(&self, runs: usize) -> Result<Vec<StepTime>> {
        let count = self.state.recording.steps.len();
        // Taking turns, so that a change of the device's clock meets all of them.
        let mut up_to = vec![Vec::with_capacity(runs); count + 1];
        let mut repeated = vec![Vec::with_capacity(runs); count];
        for _ in 0..runs {
            for (end, times) in up_to.iter_mut().enumerate() {
                times.push(self.time(0..end)?);
            }
            for (step, times) in repeated.iter_mut().enumerate() {
                times.push(self.time(std::iter::repeat_n(step, TOGETHER))?);
            }
        }
        let up_to: Vec<f64> = up_to.into_iter().map(median).collect();
        let repeated = repeated.into_iter().map(median);
        let times = repeated.enumerate().map(|(index, repeated)| {
            let step = &self.state.recording.steps[index];
            let (kernel, grid, threads, shared) = match step.action {
                Action::Launch(shape) => {
                    let kernel = self.context.device().name_of(shape.function.0);
                    (kernel, shape.grid, shape.threads, shape.shared)
                }
                Action::Copy { .. } => ("copy".to_owned(), [0; 3], 0, 0),
            };
            StepTime {
                kernel,
                grid,
                threads,
                shared,
                bytes: self.state.recording.bytes[index],
                in_turn: up_to[index + 1] - up_to[index],
                // Without what two events take with nothing between them.
                repeated: (repeated - up_to[0]).max(0.0) / TOGETHER as f64,
            }
        });
        Ok(times.collect())
    }

    /// Microseconds of these steps.
    fn time(&self, steps: impl ExactSizeIterator<Item = usize>) -> Result<f64> {
        let queue: &Queue = self.context.queue();
        for _ in 0..=steps.len() / LAUNCHES_PER_BLOCKER {
            let blocker = self.blocker;
            queue.copy(blocker, BLOCKER_WORDS, blocker, 0, BLOCKER_WORDS)?;
        }
        let start = queue.record()?;
        for step in steps {
            // SAFETY: what is bound is live, with the sizes that were recorded, as long as the
            // closure of `with_bound` runs.
            unsafe { self.state.submit(queue, step)? };
        }
        let end = queue.record()?;
        // Waits for the end.
        queue.elapsed_us(&start, &end)
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
