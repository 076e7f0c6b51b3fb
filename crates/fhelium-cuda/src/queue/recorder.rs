//! What a piece of work launches, written down instead of run, on addresses that stand for memory.

use super::Queue;
use super::layout::{ALIGNMENT, Layout, Lifetime, lay_out};
use super::memory::{Block, Buffer, Owner, bytes_of};
use cudarc::driver::sys::{CUdeviceptr, CUfunction};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A kernel that is loaded as long as its device is open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Function(pub CUfunction);

// SAFETY: a handle that the driver takes from any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// A launch without what its kernel is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    pub function: Function,
    pub grid: [u32; 3],
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
    /// Whether its blocks have something to do before the launch before is over, so that they may be placed
    /// while that runs where launches otherwise follow each other.
    pub beside: bool,
}

/// What the device does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Action {
    /// Runs a kernel, which takes all words of the step as its one argument.
    Launch(Shape),
    /// Copies so many bytes to the first address of the step from the second.
    Copy { bytes: usize },
}

/// One thing that the device does in the queue's order, and the words that say with what.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub action: Action,
    pub words: Box<[u64]>,
}

/// Records one piece of work.
pub(crate) struct Recorder {
    queue: Arc<Queue>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    secret: bool,
    reports: bool,
    /// Whether the work copies between host and device, as no recording can.
    copies: bool,
    steps: Vec<Step>,
    /// Which words of which steps are addresses: step and word.
    addresses: Vec<(usize, usize)>,
    /// The placeholders handed out, by rising address: each has addresses of its own, so that an
    /// address says which it is of.
    places: Vec<Place>,
    /// How often one was taken or given back.
    moments: usize,
    /// What the recorded work reads besides its inputs.
    kept: Vec<Arc<Block>>,
}

struct Place {
    start: CUdeviceptr,
    bytes: usize,
    /// The moments at which it was taken and given back.
    taken: usize,
    given_back: Option<usize>,
}

/// What a placeholder stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stand {
    /// A buffer that each run binds: one of the inputs, or of the results.
    Bound(usize),
    /// Memory of the work itself, at so many bytes from its start.
    Workspace(u64),
}

/// A word of a step that depends on what is bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Patch {
    pub step: usize,
    pub word: usize,
    /// A bound buffer; the workspace is the last.
    pub buffer: usize,
    /// Bytes from the buffer's start.
    pub offset: u64,
}

/// A recorded piece of work.
pub(crate) struct Recording {
    pub steps: Vec<Step>,
    pub patches: Vec<Patch>,
    /// Bytes of the memory that each step is given, what a step takes twice counted twice; without
    /// the tables.
    pub bytes: Vec<usize>,
    /// Words of memory that it needs besides what is bound.
    pub workspace_words: usize,
    /// Whether secrets are in that memory for a while.
    pub secret: bool,
    /// Whether its kernels may report something.
    pub reports: bool,
    /// Never read: the recorded addresses are theirs.
    pub _kept: Vec<Arc<Block>>,
}

impl State {
    fn next_moment(&mut self) -> usize {
        self.moments += 1;
        self.moments
    }

    /// Which placeholder an address is of.
    fn place_of(&self, address: CUdeviceptr) -> Option<usize> {
        let after = self.places.partition_point(|place| place.start <= address);
        let index = after.checked_sub(1)?;
        let place = &self.places[index];
        (address - place.start < place.bytes as u64).then_some(index)
    }

    /// Whether nothing else may lie there yet.
    fn is_held(&self, address: CUdeviceptr) -> bool {
        let place = self.place_of(address).map(|index| &self.places[index]);
        place.is_none_or(|place| place.given_back.is_none())
    }

    /// Bytes of the placeholders that are out at once, at the most, of those taken from a moment on.
    fn most_at_once(&self, from: usize) -> usize {
        let places = self.places.iter().filter(|place| place.taken >= from);
        let mut changes: Vec<(usize, isize)> = places
            .flat_map(|place| {
                let bytes = place.bytes as isize;
                let given_back = place.given_back.map(|moment| (moment, -bytes));
                [Some((place.taken, bytes)), given_back]
            })
            .flatten()
            .collect();
        changes.sort_unstable();
        let (mut out, mut most) = (0, 0);
        for (_, change) in changes {
            out += change;
            most = most.max(out);
        }
        most as usize
    }

    /// Where those placeholders lie that are memory of the work itself.
    fn workspace(&self, is_own: impl Fn(&Place) -> bool) -> Layout {
        let end = self.moments + 1;
        let own = self.places.iter().filter(|place| is_own(place));
        let lifetimes: Vec<Lifetime> = own
            .map(|place| Lifetime {
                bytes: place.bytes as u64,
                from: place.taken,
                until: place.given_back.unwrap_or(end),
            })
            .collect();
        lay_out(&lifetimes)
    }

    /// What each placeholder stands for, some of which are the bound buffers, and the bytes of the
    /// others together.
    fn stands(&self, bound: &[Arc<Buffer>]) -> (Vec<Stand>, u64) {
        let addresses = bound.iter().map(|buffer| buffer.address());
        let bound: HashMap<CUdeviceptr, usize> = addresses.zip(0..).collect();
        let workspace = self.workspace(|place| !bound.contains_key(&place.start));
        let mut starts = workspace.starts.into_iter();
        let stands = self
            .places
            .iter()
            .map(|place| match bound.get(&place.start) {
                Some(&index) => Stand::Bound(index),
                None => Stand::Workspace(starts.next().unwrap_or_default()),
            });
        (stands.collect(), workspace.bytes)
    }

    /// Bytes of the memory behind each step's addresses, each up to the next one or to the end.
    fn bytes_given(&self) -> Vec<usize> {
        let places = self.places.iter().map(|place| (place.start, place.bytes));
        let kept = self.kept.iter().map(|block| block.range());
        let mut regions: Vec<(CUdeviceptr, usize)> = kept.chain(places).collect();
        regions.sort_unstable();
        let end_of = |address: CUdeviceptr| {
            let after = regions.partition_point(|&(start, _)| start <= address);
            let (start, bytes) = *regions.get(after.checked_sub(1)?)?;
            let end = start + bytes as u64;
            (address < end).then_some(end)
        };
        let mut given: Vec<usize> = vec![0; self.steps.len()];
        for of_step in self.addresses.chunk_by(|a, b| a.0 == b.0) {
            let Some(&(step, _)) = of_step.first() else {
                continue;
            };
            let words = &self.steps[step].words;
            let mut starts: Vec<_> = of_step.iter().map(|&(_, word)| words[word]).collect();
            starts.sort_unstable();
            let bytes = starts.iter().filter_map(|&start| {
                let end = end_of(start)?;
                let next = starts[starts.partition_point(|&other| other <= start)..].first();
                Some((next.map_or(end, |&next| next.min(end)) - start) as usize)
            });
            given[step] = match self.steps[step].action {
                Action::Launch(_) => bytes.sum(),
                Action::Copy { bytes } => 2 * bytes,
            };
        }
        given
    }
}

/// No device has memory there.
const FIRST_PLACE: CUdeviceptr = 1 << 60;

impl Recorder {
    pub(super) fn new(queue: &Arc<Queue>) -> Arc<Self> {
        Arc::new(Recorder {
            queue: queue.clone(),
            state: Mutex::default(),
        })
    }

    pub(super) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// A placeholder for so many words.
    pub(crate) fn place(self: &Arc<Self>, words: usize, secret: bool) -> Buffer {
        let bytes = bytes_of(words);
        let state = &mut *self.state.lock();
        state.secret |= secret;
        let start = state.places.last().map_or(FIRST_PLACE, |last| {
            (last.start + last.bytes as u64).next_multiple_of(ALIGNMENT)
        });
        let taken = state.next_moment();
        state.places.push(Place {
            start,
            bytes,
            taken,
            given_back: None,
        });
        Buffer::new(Owner::Recorder(self.clone()), start, words, secret)
    }

    pub(super) fn give_back(&self, pointer: CUdeviceptr) {
        let state = &mut *self.state.lock();
        if state.closed {
            return;
        }
        let moment = state.next_moment();
        if let Some(index) = state.place_of(pointer) {
            state.places[index].given_back = Some(moment);
        }
    }

    /// Writes down a step; `addresses` are the words that hold some.
    pub(super) fn push(
        &self,
        action: Action,
        words: &[u64],
        addresses: impl Iterator<Item = usize>,
    ) {
        let mut state = self.state.lock();
        let step = state.steps.len();
        let first = state.addresses.len();
        state.addresses.extend(addresses.map(|word| (step, word)));
        debug_assert!(
            (state.addresses[first..].iter()).all(|&(_, word)| state.is_held(words[word])),
            "{action:?} is given memory that has been given back"
        );
        state.steps.push(Step {
            action,
            words: words.into(),
        });
    }

    /// Says that a kernel of the work may report something.
    pub(super) fn expect_reports(&self) {
        self.state.lock().reports = true;
    }

    /// Says that the work copies between host and device.
    pub(super) fn expect_copies(&self) {
        self.state.lock().copies = true;
    }

    /// Ends what makes the operands that the work is about to be given.
    pub(crate) fn begin(&self) -> usize {
        let state = &mut *self.state.lock();
        state.copies = false;
        state.next_moment()
    }

    /// Bytes that the work since its beginning takes: with the results and the memory of its own that
    /// it has where it is recorded and replayed; as it goes where it cannot be recorded.
    pub(crate) fn bytes_taken(&self, begin: usize, results: &[Arc<Buffer>]) -> usize {
        let state = &*self.state.lock();
        if state.copies {
            return state.most_at_once(begin);
        }
        let results: HashSet<CUdeviceptr> = results.iter().map(|buffer| buffer.address()).collect();
        let is_taken = |place: &Place| place.taken >= begin;
        let is_result = |place: &Place| results.contains(&place.start);
        let made = state
            .places
            .iter()
            .filter(|place| is_taken(place) && is_result(place));
        let made: usize = made.map(|place| place.bytes).sum();
        let workspace = state.workspace(|place| is_taken(place) && !is_result(place));
        made + bytes_of(workspace.bytes as usize / size_of::<u64>())
    }

    /// Keeps memory that the work reads from being used for anything else.
    pub(super) fn keep(&self, block: &Arc<Block>) {
        let mut state = self.state.lock();
        if !state.kept.iter().any(|kept| Arc::ptr_eq(kept, block)) {
            state.kept.push(block.clone());
        }
    }

    /// Ends the recording; the bound buffers are the inputs, then the results, each a placeholder.
    pub(crate) fn close(&self, bound: &[Arc<Buffer>]) -> Recording {
        let state = &mut *self.state.lock();
        state.closed = true;
        let bytes = state.bytes_given();
        let (stands, workspace_bytes) = state.stands(bound);
        let patches = state.addresses.iter().filter_map(|&(step, word)| {
            let address = state.steps[step].words[word];
            let index = state.place_of(address)?;
            let offset = address - state.places[index].start;
            let (buffer, offset) = match stands[index] {
                Stand::Bound(buffer) => (buffer, offset),
                Stand::Workspace(start) => (bound.len(), start + offset),
            };
            Some(Patch {
                step,
                word,
                buffer,
                offset,
            })
        });
        let patches = patches.collect();
        Recording {
            steps: std::mem::take(&mut state.steps),
            patches,
            bytes,
            secret: state.secret,
            reports: state.reports,
            workspace_words: workspace_bytes as usize / size_of::<u64>(),
            _kept: std::mem::take(&mut state.kept),
        }
    }
}
