//! Work on a stream that somebody else made, and inside a capture of theirs.

use super::memory::{Block, Buffer, Owner, bytes_of};
use super::{Place, Queue};
use crate::error::{CudaError, Result, driver};
use crate::fork::is_forked;
use cudarc::driver::result;
use cudarc::driver::sys::{self, CUdeviceptr, CUgraph, CUstream, CUstreamCaptureMode};
use parking_lot::Mutex;
use std::any::Any;
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;

/// Memory that somebody else's graph uses: it must not serve anything else while that can run.
pub(crate) struct Arena {
    queue: Arc<Queue>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    /// Whether there are secrets in it: it is erased then.
    secret: bool,
    all: Vec<(CUdeviceptr, usize)>,
    free: HashMap<usize, Vec<CUdeviceptr>>,
    /// What the captured work reads.
    kept: Vec<Arc<dyn Any + Send + Sync>>,
}

impl Arena {
    pub(super) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    pub(super) fn allocate(self: &Arc<Self>, words: usize, secret: bool) -> Result<Buffer> {
        let bytes = bytes_of(words);
        let mut state = self.state.lock();
        state.secret |= secret;
        let pointer = match state.free.get_mut(&bytes).and_then(Vec::pop) {
            Some(pointer) => pointer,
            None => {
                let side = &self.queue.side;
                let pointer = uncaptured(|| {
                    let pointer = self.queue.take(bytes)?;
                    // The graph will run on another stream: the memory must be there before it does.
                    side.synchronize()
                        .map_err(driver("allocating memory"))
                        .inspect_err(|_| self.queue.give_back(pointer, bytes))?;
                    Ok(pointer)
                })?;
                state.all.push((pointer, bytes));
                pointer
            }
        };
        drop(state);
        let owner = Owner::Arena(self.clone());
        Ok(Buffer::new(owner, pointer, words, secret))
    }

    pub(super) fn give_back(&self, pointer: CUdeviceptr, bytes: usize) {
        let mut state = self.state.lock();
        // Once captured, its contents belong to every later run of the graph.
        if !state.closed {
            state.free.entry(bytes).or_default().push(pointer);
        }
    }

    pub(super) fn keep_block(self: &Arc<Self>, block: &Arc<Block>) {
        if !matches!(block.owner(), Owner::Arena(owner) if Arc::ptr_eq(owner, self)) {
            self.keep(block.clone());
        }
    }

    pub(super) fn keep(&self, kept: Arc<dyn Any + Send + Sync>) {
        self.state.lock().kept.push(kept);
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if is_forked() {
            return;
        }
        let state = self.state.get_mut();
        for (pointer, bytes) in state.all.drain(..) {
            if state.secret {
                self.queue.erase(pointer, bytes);
            } else {
                self.queue.give_back(pointer, bytes);
            }
        }
    }
}

/// The legacy default stream and the thread's have the handles 0, 1 and 2.
const LAST_DEFAULT_STREAM: usize = 2;

/// A stream handle of the driver, as other libraries give it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Handle(pub CUstream);

// SAFETY: a handle that the driver takes from any thread.
unsafe impl Send for Handle {}

thread_local! {
    /// The capture that this thread's calls are part of: the device and the stream.
    static CAPTURE: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// The stream of a device that is captured while this thread runs on it by [`Queue::on_stream`]: what
/// other libraries give to the capture has to be in its order.
pub fn captured_stream(device: usize) -> Option<usize> {
    let (found, stream) = CAPTURE.get()?;
    (found == device).then_some(stream)
}

/// Says so until it is dropped.
struct InCapture(Option<(usize, usize)>);

impl InCapture {
    fn of(device: usize, stream: usize) -> Self {
        InCapture(CAPTURE.replace(Some((device, stream))))
    }
}

impl Drop for InCapture {
    fn drop(&mut self) {
        CAPTURE.set(self.0);
    }
}

impl Queue {
    /// Runs `work` with its operations on another stream instead of the queue's own: after all that
    /// is in either, and before what comes next in either.
    ///
    /// If that stream is being captured, the operations become part of the capture. They then read
    /// the memory of the very operands and write that of the very results at each run of the graph,
    /// which that memory outlives; what the queue holds so far is waited for.
    ///
    /// # Errors
    /// What `work` returns, [`CudaError::Capture`] within a recording or a call of this for another
    /// stream, [`CudaError::OtherStream`], [`CudaError::Driver`].
    ///
    /// # Safety
    /// `stream` is a live stream of this device's primary context, as `CUstream`, and stays so for
    /// the call; 0 is the legacy default stream.
    pub unsafe fn on_stream<R, E: From<CudaError>>(
        self: &Arc<Self>,
        stream: usize,
        work: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        let _turn = self.lock()?;
        let handle = Handle(stream as CUstream);
        let within = match &*self.place.lock() {
            Place::Own => None,
            Place::Foreign { stream, .. } => Some(*stream == handle),
            Place::Recording(_) | Place::Measuring(_) => Some(false),
        };
        match within {
            Some(true) => return work(),
            Some(false) => {
                return Err(CudaError::Capture {
                    operation: "a call on another stream",
                    remedy: "make it before or after",
                }
                .into());
            }
            None => {}
        }
        self.check_stream(handle.0)?;
        let own = self.stream.cu_stream();
        let Some(graph) = captured_graph(handle.0)? else {
            order_streams(own, handle.0)?;
            let result = self.within(
                Place::Foreign {
                    stream: handle,
                    arena: None,
                },
                work,
            );
            order_streams(handle.0, own)?;
            return result;
        };
        // A capture cannot wait for what is outside it.
        uncaptured(|| self.synchronize())?;
        let arena = Arc::new(Arena {
            queue: self.clone(),
            state: Mutex::default(),
        });
        retain(graph, arena.clone())?;
        let _captured = InCapture::of(self.device.index(), stream);
        let result = self.within(
            Place::Foreign {
                stream: handle,
                arena: Some(arena.clone()),
            },
            work,
        );
        let mut state = arena.state.lock();
        state.closed = true;
        state.free.clear();
        result
    }
}

impl Queue {
    /// Refuses a stream of another device or context, which no event orders with this one.
    fn check_stream(&self, stream: CUstream) -> Result<()> {
        // The default streams are the current context's.
        if stream as usize <= LAST_DEFAULT_STREAM {
            return Ok(());
        }
        let mut context = std::ptr::null_mut();
        // SAFETY: the stream is live, as the caller of `on_stream` promised.
        unsafe { sys::cuStreamGetCtx(stream, &mut context) }
            .result()
            .map_err(driver("asking for a stream's context"))?;
        if context == self.device().context().cu_ctx() {
            return Ok(());
        }
        Err(CudaError::OtherStream {
            device: self.device().to_string(),
        })
    }

    /// Waits until what was put into the queue, or in its place into another stream, has run. What a
    /// capture reads, it keeps.
    pub(crate) fn wait_for_uses(&self) {
        let Ok(_current) = self.device().enter() else {
            return;
        };
        let waited = uncaptured(|| {
            // What kernels report is for who asks for the results.
            self.stream
                .synchronize()
                .map_err(driver("waiting for the device"))?;
            if self.is_capturing_foreign() {
                return Ok(());
            }
            // SAFETY: the stream is live, as the caller of `on_stream` promised.
            unsafe { result::stream::synchronize(self.handle()) }
                .map_err(driver("waiting for a stream"))
        });
        // A device that cannot be waited for does not run either.
        drop(waited);
    }

    /// Waits until what is in the queue's own stream has run, for a capture by another queue, which
    /// cannot wait for what is outside it.
    pub(crate) fn wait_for_capture(&self) -> Result<()> {
        let _current = self.device().enter()?;
        uncaptured(|| {
            self.stream
                .synchronize()
                .map_err(driver("waiting for the device"))
        })
    }

    /// Makes what comes next in another stream wait for all that is in the queue.
    pub(crate) fn lead_stream(&self, stream: usize) -> Result<()> {
        if captured_stream(self.device.index()) == Some(stream) && !self.is_capturing_foreign() {
            return self.wait_for_capture();
        }
        let _current = self.device().enter()?;
        order_streams(self.handle(), stream as CUstream)
    }

    /// Makes what comes next in the queue, which may be in another stream for now, wait for what is in its
    /// own stream.
    pub(crate) fn lead_place(&self) -> Result<()> {
        let Place::Foreign {
            stream,
            arena: None,
        } = *self.place.lock()
        else {
            return Ok(());
        };
        let _current = self.device().enter()?;
        order_streams(self.stream.cu_stream(), stream.0)
    }

    /// Makes what comes next in the queue wait for all that is in another stream.
    pub(crate) fn follow_stream(&self, stream: usize) -> Result<()> {
        if self.is_capturing_foreign() {
            return self.wait_for_device();
        }
        let _current = self.device().enter()?;
        order_streams(stream as CUstream, self.handle())
    }

    /// Waits until all that is in any stream of the device has run.
    pub(crate) fn wait_for_device(&self) -> Result<()> {
        let _current = self.device().enter()?;
        uncaptured(|| result::ctx::synchronize().map_err(driver("waiting for the device")))
    }
}

/// The graph that a stream's work is being captured into.
fn captured_graph(stream: CUstream) -> Result<Option<CUgraph>> {
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let mut graph = std::ptr::null_mut();
    // SAFETY: the stream is live, as the caller of `on_stream` promised; unwanted results are null.
    let asked = unsafe {
        sys::cuStreamGetCaptureInfo_v2(
            stream,
            &mut status,
            std::ptr::null_mut(),
            &mut graph,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    asked
        .result()
        .map_err(driver("asking whether a stream is captured"))?;
    match status {
        sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE => Ok(None),
        sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE => Ok(Some(graph)),
        sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED => {
            Err(CudaError::Capture {
                operation: "a call on a stream whose capture has failed",
                remedy: "end that capture first",
            })
        }
    }
}

/// Makes what comes next in `after` wait for all that is in `before`.
pub(super) fn order_streams(before: CUstream, after: CUstream) -> Result<()> {
    let failed = driver("ordering two streams");
    let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING;
    let event = result::event::create(flags).map_err(&failed)?;
    // SAFETY: event and streams are live; the driver keeps the event as long as it is waited for.
    unsafe {
        let ordered = result::event::record(event, before).and_then(|()| {
            let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
            result::stream::wait_event(after, event, flags)
        });
        let destroyed = result::event::destroy(event);
        ordered.and(destroyed).map_err(failed)
    }
}

/// Lets this thread allocate, wait and destroy while another stream is captured, which does not see it.
pub(crate) fn uncaptured<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    if is_forked() {
        return Err(CudaError::Forked);
    }
    let failed = driver("allocating beside a capture");
    let exchange = |mode: &mut CUstreamCaptureMode| {
        // SAFETY: the mode is a live value of the driver's.
        unsafe { sys::cuThreadExchangeStreamCaptureMode(mode) }.result()
    };
    let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    exchange(&mut mode).map_err(&failed)?;
    let result = work();
    exchange(&mut mode).map_err(failed)?;
    result
}

/// Keeps an arena until a graph and all that is made from it are gone.
fn retain(graph: CUgraph, arena: Arc<Arena>) -> Result<()> {
    unsafe extern "C" fn release(arena: *mut c_void) {
        // SAFETY: made below from such an `Arc`, and called once.
        let arena = unsafe { Arc::from_raw(arena.cast::<Arena>().cast_const()) };
        // The driver's thread may not call the driver, as the last user of a queue does.
        std::thread::spawn(move || drop(arena));
    }
    let failed = driver("keeping memory for a graph");
    let raw = Arc::into_raw(arena);
    let mut object = std::ptr::null_mut();
    // SAFETY: `release` takes what it is given; the flag says that it may run at any time.
    let made = unsafe {
        sys::cuUserObjectCreate(
            &mut object,
            raw.cast_mut().cast(),
            Some(release),
            1,
            sys::CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC as u32,
        )
    };
    if let Err(error) = made.result() {
        // SAFETY: the driver did not take it.
        drop(unsafe { Arc::from_raw(raw) });
        return Err(failed(error));
    }
    let moved = sys::CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE as u32;
    // SAFETY: the graph is being captured and so live; the one reference goes to it, or is released.
    unsafe {
        let retained = sys::cuGraphRetainUserObject(graph, object, 1, moved).result();
        retained.map_err(|error| {
            let _ = sys::cuUserObjectRelease(object, 1);
            failed(error)
        })
    }
}
