//! Recorded work that runs again on other operands.
//!
//! [`Context::capture`] writes down what some work launches, on placeholders for its inputs; a
//! [`Graph`] binds real values to them at each replay. Results are new values, and intermediate
//! ones take memory from the queue as the work itself would: a graph holds none between replays.

mod choice;
mod profile;
mod values;

pub use profile::StepTime;
pub use values::DeviceValue;

use crate::context::Context;
use crate::error::{CudaError, Result};
use crate::executable::Executable;
use crate::queue::{Buffer, Patch, Queue, Recorder, Recording};
use choice::Choice;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// How a graph is put into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Replay {
    /// Launch by launch, each being set up while the one before runs.
    Launches,
    /// As one CUDA graph, whose launches follow each other with less delay.
    Graph,
}

/// Recorded work. Its replays are in the queue's order, also those from several threads.
pub struct Graph<V> {
    context: Context,
    inputs: Vec<V>,
    results: Vec<(V, Origin)>,
    /// Words of each result that a replay makes.
    made: Vec<usize>,
    workspace_words: usize,
    secret: bool,
    reports: bool,
    state: Mutex<State>,
}

/// Where a result comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Origin {
    /// It is an input.
    Input(usize),
    /// A replay makes it.
    Made(usize),
    /// The recorded work returned what it had from elsewhere.
    Constant,
}

struct State {
    recording: Recording,
    /// The addresses that the steps hold now: inputs, made results, workspace.
    bound: Vec<u64>,
    executable: Option<Executable>,
    /// Which of the bound addresses are not those that the executable holds.
    stale: Vec<bool>,
    choice: Choice,
}

impl Context {
    /// Records the operations of `work` on values like the inputs, without running them.
    ///
    /// `work` gets placeholders: values of the same state whose residues do not exist. It may use
    /// other values too, which the graph then keeps and reads at each replay. Run the same work once
    /// before, so that nothing is loaded or encoded within.
    ///
    /// # Errors
    /// What `work` returns; [`CudaError::Capture`] for what a recording cannot hold: uploads,
    /// downloads, operands of other queues that are no inputs, and a recording within another.
    pub fn capture<V: DeviceValue, E: From<CudaError>>(
        &self,
        inputs: &[V],
        work: impl FnOnce(&[V]) -> Result<Vec<V>, E>,
    ) -> Result<Graph<V>, E> {
        let (inputs, results, recorder) = self.queue().write_down(|recorder| {
            let place = |value: &V| {
                value.with_buffer(Arc::new(recorder.place(value.buffer().words(), false)))
            };
            let inputs: Vec<V> = inputs.iter().map(place).collect();
            let results = work(&inputs)?;
            Ok::<_, E>((inputs, results, recorder.clone()))
        })?;
        Ok(Graph::new(self, inputs, results, &recorder))
    }
}

impl<V: DeviceValue> Graph<V> {
    fn new(context: &Context, inputs: Vec<V>, results: Vec<V>, recorder: &Arc<Recorder>) -> Self {
        let mut bound: Vec<Arc<Buffer>> =
            inputs.iter().map(|input| input.buffer().clone()).collect();
        let results = results
            .into_iter()
            .map(|value| {
                let buffer = value.buffer();
                let known = bound
                    .iter()
                    .position(|known| known.address() == buffer.address());
                let origin = match known {
                    Some(index) if index < inputs.len() => Origin::Input(index),
                    Some(index) => Origin::Made(index - inputs.len()),
                    None if buffer.recorder().is_none() => Origin::Constant,
                    None => {
                        bound.push(buffer.clone());
                        Origin::Made(bound.len() - 1 - inputs.len())
                    }
                };
                (value, origin)
            })
            .collect();
        let recording = recorder.close(&bound);
        let steps = recording.steps.len();
        let made = bound[inputs.len()..].iter().map(|buffer| buffer.words());
        Graph {
            context: context.clone(),
            made: made.collect(),
            workspace_words: recording.workspace_words,
            secret: recording.secret,
            reports: recording.reports,
            state: Mutex::new(State {
                bound: vec![0; bound.len() + 1],
                recording,
                executable: None,
                stale: vec![false; bound.len() + 1],
                choice: Choice::between(steps),
            }),
            inputs,
            results,
        }
    }

    /// Runs the recorded work on these inputs and returns new results. The first replays take turns in
    /// how, until the faster way is known; in the work of another stream none of them does.
    ///
    /// A result that is one of the inputs is that input.
    ///
    /// # Errors
    /// [`CudaError::Binding`] for inputs unlike those it was captured with, [`CudaError::OtherDevice`],
    /// [`CudaError::OutOfMemory`], [`CudaError::Driver`].
    pub fn replay(&self, inputs: &[V]) -> Result<Vec<V>> {
        self.replayed(inputs, |state| {
            // SAFETY: what is bound is live, with the sizes that were recorded.
            unsafe { state.run_faster(&self.context) }
        })
    }

    /// [`replay`](Self::replay), by the given way.
    ///
    /// # Errors
    /// As [`replay`](Self::replay).
    pub fn replay_by(&self, replay: Replay, inputs: &[V]) -> Result<Vec<V>> {
        self.replayed(inputs, |state| {
            // SAFETY: as above.
            unsafe { state.run(&self.context, replay) }
        })
    }

    fn replayed(&self, inputs: &[V], run: impl FnOnce(&mut State) -> Result<()>) -> Result<Vec<V>> {
        let ((), made) = self.with_bound("replay", inputs, run)?;
        Ok(self
            .results
            .iter()
            .map(|(value, origin)| match *origin {
                // A view of it, perhaps.
                Origin::Input(index) => value.with_buffer(inputs[index].buffer().clone()),
                Origin::Made(index) => value.with_buffer(made[index].clone()),
                Origin::Constant => value.clone(),
            })
            .collect())
    }

    /// Calls `work` with the steps bound to these inputs, to new results, which it returns, and to
    /// a workspace, which lives as long as the call.
    fn with_bound<R>(
        &self,
        operation: &'static str,
        inputs: &[V],
        work: impl FnOnce(&mut State) -> Result<R>,
    ) -> Result<(R, Vec<Arc<Buffer>>)> {
        self.check(inputs)?;
        let queue = self.context.queue();
        let _turn = queue.lock()?;
        let operands: Vec<_> = inputs
            .iter()
            .map(|input| ("input", &**input.buffer()))
            .collect();
        let joined = self.context.join(operation, &operands)?;
        let workspace = queue.allocate_as(self.workspace_words, self.secret)?;
        let made = self
            .made
            .iter()
            .map(|&words| queue.allocate(words).map(Arc::new))
            .collect::<Result<Vec<_>>>()?;
        let addresses = inputs
            .iter()
            .map(|input| input.buffer().address())
            .chain(made.iter().map(|buffer| buffer.address()))
            .chain([workspace.address()]);
        let state = &mut *self.state.lock();
        // The inputs have the words that those of the recording had, and were joined; the rest has
        // just been made with as many as were recorded.
        state.bind(addresses);
        let result = work(state)?;
        if self.reports {
            queue.expect_reports();
        }
        joined.leave()?;
        Ok((result, made))
    }

    fn check(&self, inputs: &[V]) -> Result<()> {
        if inputs.len() != self.inputs.len() {
            return Err(CudaError::Binding {
                what: "inputs".to_owned(),
                found: inputs.len().to_string(),
                expected: self.inputs.len().to_string(),
            });
        }
        for (index, (found, expected)) in inputs.iter().zip(&self.inputs).enumerate() {
            let words = found.buffer().words() == expected.buffer().words();
            if !(words && found.is_like(expected)) {
                return Err(CudaError::Binding {
                    what: format!("input {index}"),
                    found: format!("{found:?}"),
                    expected: format!("{expected:?}"),
                });
            }
        }
        Ok(())
    }

    /// The placeholders that it was captured with: values like those that a replay takes.
    pub fn inputs(&self) -> &[V] {
        &self.inputs
    }

    /// The way by which it is replayed, once it is known which is the faster.
    pub fn chosen(&self) -> Option<Replay> {
        let state = &mut *self.state.lock();
        state.choice.settle(self.context.queue());
        state.choice.chosen()
    }

    /// Launches and copies of one replay.
    pub fn steps(&self) -> usize {
        self.state.lock().recording.steps.len()
    }

    /// Bytes that a replay takes besides inputs and results, while it runs.
    pub fn workspace_nbytes(&self) -> usize {
        self.workspace_words * size_of::<u64>()
    }
}

impl State {
    /// Puts the addresses into the steps.
    fn bind(&mut self, addresses: impl Iterator<Item = u64>) {
        let changed: Vec<bool> = self
            .bound
            .iter_mut()
            .zip(addresses)
            .map(|(bound, address)| std::mem::replace(bound, address) != address)
            .collect();
        let Recording { steps, patches, .. } = &mut self.recording;
        for patch in patches.iter().filter(|patch| changed[patch.buffer]) {
            steps[patch.step].words[patch.word] = self.bound[patch.buffer] + patch.offset;
        }
        for (stale, changed) in self.stale.iter_mut().zip(changed) {
            *stale |= changed;
        }
    }

    /// Runs by the faster way, or as the trials go on.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn run_faster(&mut self, context: &Context) -> Result<()> {
        let queue = context.queue();
        if !queue.is_own() {
            // SAFETY: the caller's promise.
            return unsafe { self.run(context, self.choice.provisional()) };
        }
        let mut choice = std::mem::take(&mut self.choice);
        // SAFETY: the caller's promise.
        let ran = choice.run(queue, |way| unsafe { self.run(context, way) });
        self.choice = choice;
        ran
    }

    /// # Safety
    /// The bound addresses are those of live buffers of the recorded sizes.
    unsafe fn run(&mut self, context: &Context, replay: Replay) -> Result<()> {
        let queue = context.queue();
        // A graph can be no part of what is being recorded or captured: its steps can.
        if replay == Replay::Launches || queue.is_capturing() {
            for index in 0..self.recording.steps.len() {
                // SAFETY: the caller's promise.
                unsafe { self.submit(queue, index)? };
            }
            return Ok(());
        }
        let Recording { steps, patches, .. } = &self.recording;
        // Taken out, so that one that is only half updated does not stay.
        let executable = match self.executable.take() {
            Some(executable) => {
                let mut last = None;
                for patch in patches.iter().filter(|patch| self.stale[patch.buffer]) {
                    if last.replace(patch.step) != Some(patch.step) {
                        executable.update(patch.step, &steps[patch.step])?;
                    }
                }
                executable
            }
            None => Executable::new(context.device(), steps)?,
        };
        self.stale.fill(false);
        let executable = self.executable.insert(executable);
        // SAFETY: the caller's promise, as above.
        unsafe { queue.launch_graph(executable) }
    }

    /// Puts one step into the queue.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn submit(&self, queue: &Queue, index: usize) -> Result<()> {
        let Recording { steps, patches, .. } = &self.recording;
        let step = &steps[index];
        // SAFETY: the caller's promise for what is bound; the recording keeps the rest.
        unsafe { queue.submit(step.action, &step.words, addresses_of(patches, index)) }
    }
}

/// The words of a step that hold bound addresses; patches are in the order of steps.
fn addresses_of(patches: &[Patch], step: usize) -> impl Iterator<Item = usize> + '_ {
    let start = patches.partition_point(|patch| patch.step < step);
    patches[start..]
        .iter()
        .take_while(move |patch| patch.step == step)
        .map(|patch| patch.word)
}

impl<V> fmt::Debug for Graph<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        write!(f, "Graph({} steps, ", state.recording.steps.len())?;
        match state.choice.chosen() {
            Some(way) => write!(f, "{way:?}")?,
            None => f.write_str("not decided")?,
        }
        write!(f, ", on {})", self.context.device())
    }
}
