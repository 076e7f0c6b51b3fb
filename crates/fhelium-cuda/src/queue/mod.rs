//! A stream with its memory: launches, copies and recordings, all in one order.

mod foreign;
mod layout;
mod memory;
mod recorder;
mod transfer;
mod wait;

pub use foreign::captured_stream;
pub(crate) use foreign::uncaptured;
pub use memory::{Buffer, MemoryUse};
pub(crate) use recorder::{Action, Function, Patch, Recorder, Recording, Shape, Step};

use crate::current::{Current, Held};
use crate::device::Device;
use crate::error::{CudaError, Result, driver};
use crate::reports::Reports;
use cudarc::driver::sys::{self, CUstream};
use cudarc::driver::{CudaEvent, CudaStream, result};
use foreign::{Arena, Handle};
use memory::{Memory, Owner};
use parking_lot::{Mutex, ReentrantMutex, ReentrantMutexGuard};
use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

/// A stream of a device and the memory that its operations use.
pub struct Queue {
    device: Arc<Device>,
    stream: Held<Arc<CudaStream>>,
    /// Allocates while a stream is being captured, when its own allocations would be captured.
    side: Held<Arc<CudaStream>>,
    memory: Mutex<Memory>,
    /// Held by each operation, so that another thread's launches do not enter a recording.
    order: ReentrantMutex<()>,
    place: Mutex<Place>,
    reports: Mutex<Reports>,
}

/// A thread's turn to put operations into a queue.
#[must_use]
pub(crate) struct Turn<'a> {
    _order: ReentrantMutexGuard<'a, ()>,
    _current: Current,
}

/// A point of a queue's work.
#[derive(Debug)]
pub struct Moment(Held<CudaEvent>);

/// Where operations go.
enum Place {
    /// Into the queue's own stream.
    Own,
    /// Nowhere: they are written down.
    Recording(Arc<Recorder>),
    /// Nowhere: what memory they take is followed.
    Measuring(Arc<Recorder>),
    /// Into a stream that somebody else made; into a capture of it, with an arena.
    Foreign {
        stream: Handle,
        arena: Option<Arc<Arena>>,
    },
}

impl Queue {
    /// A new stream of the device.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn new(device: &Arc<Device>, limit: Option<usize>) -> Result<Arc<Self>> {
        let _current = device.enter()?;
        let stream = || {
            let made = device.context().new_stream();
            made.map(|stream| Held::new(stream, device.context()))
                .map_err(driver("making a stream"))
        };
        let (stream, side) = (stream()?, stream()?);
        memory::keep_freed_memory(device)?;
        Ok(Arc::new(Queue {
            device: device.clone(),
            stream,
            side,
            memory: Mutex::new(Memory {
                limit,
                ..Memory::default()
            }),
            order: ReentrantMutex::new(()),
            place: Mutex::new(Place::Own),
            reports: Mutex::default(),
        }))
    }

    /// The device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The stream's handle, for launches by others on it.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Keeps other threads' operations out of this thread's next ones, which are in the device's
    /// context.
    ///
    /// # Errors
    /// [`CudaError::Forked`], [`CudaError::Driver`].
    pub(crate) fn lock(&self) -> Result<Turn<'_>> {
        // First: a lock that a thread of the parent held is held in a forked process forever.
        let _current = self.device.enter()?;
        Ok(Turn {
            _order: self.order.lock(),
            _current,
        })
    }

    /// The stream that operations go into.
    pub(crate) fn handle(&self) -> CUstream {
        match &*self.place.lock() {
            Place::Foreign { stream, .. } => stream.0,
            Place::Own | Place::Recording(_) | Place::Measuring(_) => self.stream.cu_stream(),
        }
    }

    /// The stream in whose order memory comes and goes.
    fn memory_stream(&self) -> CUstream {
        match &*self.place.lock() {
            Place::Foreign { arena: Some(_), .. } => self.side.cu_stream(),
            Place::Foreign { stream, .. } => stream.0,
            Place::Own | Place::Recording(_) | Place::Measuring(_) => self.stream.cu_stream(),
        }
    }

    /// Runs `work` with operations going to a place, and to where they went before whatever happens.
    fn within<R>(&self, place: Place, work: impl FnOnce() -> R) -> R {
        struct Back<'a>(&'a Queue, Option<Place>);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                if let Some(before) = self.1.take() {
                    *self.0.place.lock() = before;
                }
            }
        }
        let before = std::mem::replace(&mut *self.place.lock(), place);
        let _back = Back(self, Some(before));
        work()
    }

    /// Writes down what `work` launches instead of running it.
    pub(crate) fn write_down<R, E: From<CudaError>>(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<Recorder>) -> Result<R, E>,
    ) -> Result<R, E> {
        let _turn = self.lock()?;
        self.refuse_capture("a capture within a capture")?;
        let recorder = Recorder::new(self);
        self.within(Place::Recording(recorder.clone()), || work(&recorder))
    }

    /// Follows what memory `work` takes, without running it.
    pub(crate) fn measure<R, E: From<CudaError>>(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<Recorder>) -> Result<R, E>,
    ) -> Result<R, E> {
        let _turn = self.lock()?;
        let recorder = Recorder::new(self);
        self.within(Place::Measuring(recorder.clone()), || work(&recorder))
    }

    /// Whether operations run in the queue's own stream.
    pub(crate) fn is_own(&self) -> bool {
        matches!(&*self.place.lock(), Place::Own)
    }

    /// Whether operations do not run now, but when what they are recorded into does.
    pub fn is_capturing(&self) -> bool {
        match &*self.place.lock() {
            Place::Own | Place::Measuring(_) => false,
            Place::Recording(_) => true,
            Place::Foreign { arena, .. } => arena.is_some(),
        }
    }

    /// Whether that is somebody else's capture.
    pub(crate) fn is_capturing_foreign(&self) -> bool {
        matches!(&*self.place.lock(), Place::Foreign { arena, .. } if arena.is_some())
    }

    /// Refuses what a recording or a capture cannot hold.
    pub(crate) fn refuse_capture(&self, operation: &'static str) -> Result<()> {
        if self.is_capturing() {
            let remedy = "move values before the capture or after the replay";
            return Err(CudaError::Capture { operation, remedy });
        }
        Ok(())
    }

    /// Whether nothing is copied between host and device, since only memory is followed.
    pub(crate) fn copies_nothing(&self) -> bool {
        match &*self.place.lock() {
            Place::Measuring(recorder) => {
                recorder.expect_copies();
                true
            }
            Place::Own | Place::Recording(_) | Place::Foreign { .. } => false,
        }
    }

    /// Refuses a value that stands for an input or a result of a recording which has ended.
    pub(crate) fn refuse_placeholder(&self, buffer: &Buffer) -> Result<()> {
        let Some(recorder) = buffer.recorder() else {
            return Ok(());
        };
        match &*self.place.lock() {
            Place::Recording(now) | Place::Measuring(now) if Arc::ptr_eq(now, recorder) => {
                return Ok(());
            }
            _ => {}
        }
        Err(CudaError::Capture {
            operation: "a use of a captured value after its capture",
            remedy: "use what the graph's replay returns",
        })
    }

    /// In a recording or a capture: keeps memory that is read from serving anything else.
    pub(crate) fn keep(&self, buffer: &Buffer) {
        match &*self.place.lock() {
            Place::Recording(recorder) if buffer.recorder().is_none() => {
                recorder.keep(buffer.block());
            }
            Place::Foreign {
                arena: Some(arena), ..
            } => arena.keep_block(buffer.block()),
            _ => {}
        }
    }

    /// In somebody else's capture: keeps what captured work depends on as long as that.
    pub(crate) fn keep_for_capture(&self, kept: impl FnOnce() -> Arc<dyn Any + Send + Sync>) {
        if let Place::Foreign {
            arena: Some(arena), ..
        } = &*self.place.lock()
        {
            arena.keep(kept());
        }
    }

    /// Memory of undefined contents.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`]; nothing was taken then.
    pub fn allocate(self: &Arc<Self>, words: usize) -> Result<Buffer> {
        self.allocate_as(words, false)
    }

    /// Memory for what must not be read once it is dropped: zeroed then, before it serves again.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    pub(crate) fn allocate_secret(self: &Arc<Self>, words: usize) -> Result<Buffer> {
        self.allocate_as(words, true)
    }

    pub(crate) fn allocate_as(self: &Arc<Self>, words: usize, secret: bool) -> Result<Buffer> {
        let _turn = self.lock()?;
        let arena = match &*self.place.lock() {
            Place::Recording(recorder) | Place::Measuring(recorder) => {
                return Ok(recorder.place(words, secret));
            }
            Place::Foreign { arena, .. } => arena.clone(),
            Place::Own => None,
        };
        if let Some(arena) = arena {
            return arena.allocate(words, secret);
        }
        let pointer = self.take(memory::bytes_of(words))?;
        let owner = Owner::Queue(self.clone());
        Ok(Buffer::new(owner, pointer, words, secret))
    }

    /// Puts a step into the stream, or writes it down; `addresses` are the words that hold some. The
    /// caller has the queue's [`lock`](Self::lock).
    ///
    /// # Safety
    /// The words are what the kernel takes, and every address in them is of a live buffer of this
    /// queue, large enough for what the step reads and writes.
    pub(crate) unsafe fn submit(
        &self,
        action: Action,
        words: &[u64],
        addresses: impl Iterator<Item = usize>,
    ) -> Result<()> {
        let (stream, captured) = match &*self.place.lock() {
            Place::Recording(recorder) => {
                recorder.push(action, words, addresses);
                return Ok(());
            }
            Place::Measuring(_) => return Ok(()),
            Place::Foreign { stream, arena } => (stream.0, arena.is_some()),
            Place::Own => (self.stream.cu_stream(), false),
        };
        match action {
            Action::Launch(shape) => {
                // A graph's own edges are faster for the others, as `Executable::new` has it.
                let overlaps = self.device.overlaps_launches() && (!captured || shape.beside);
                // SAFETY: the caller's promise; the stream is live.
                unsafe { launch(stream, &shape, words, overlaps) }
            }
            Action::Copy { bytes } => {
                // SAFETY: the caller's promise; the stream is live.
                unsafe { result::memcpy_dtod_async(words[0], words[1], bytes, stream) }
                    .map_err(driver("copying on the device"))
            }
        }
    }

    /// A point of the queue, timed.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn record(&self) -> Result<Moment> {
        let _current = self.device.enter()?;
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        let event = self
            .stream
            .record_event(flags)
            .map_err(driver("recording an event"))?;
        Ok(Moment(Held::new(event, self.device.context())))
    }

    /// Whether all that was in the queue before a point has run; nobody waits.
    pub(crate) fn has_passed(&self, point: &Moment) -> Result<bool> {
        let _current = self.device.enter()?;
        point.0.try_is_complete().map_err(driver("timing"))
    }

    /// Microseconds of the device between two points, which are waited for.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn elapsed_us(&self, start: &Moment, end: &Moment) -> Result<f64> {
        let _current = self.device.enter()?;
        let milliseconds = start.0.elapsed_ms(&end.0).map_err(driver("timing"))?;
        Ok(f64::from(milliseconds) * 1e3)
    }

    /// Makes what comes next here wait for all that is in the other queue.
    pub(crate) fn wait_for(&self, other: &Queue) -> Result<()> {
        let _current = self.device.enter()?;
        foreign::order_streams(other.handle(), self.handle())
    }
}

/// # Safety
/// As [`Queue::submit`]; the stream is live and its context current.
unsafe fn launch(stream: CUstream, shape: &Shape, words: &[u64], overlaps: bool) -> Result<()> {
    let mut parameters = [words.as_ptr().cast_mut().cast::<c_void>()];
    // Its blocks may be placed while the launch before still runs; launch.cuh says what they may do before
    // that is over.
    let mut overlap = sys::CUlaunchAttribute {
        id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value: sys::CUlaunchAttributeValue {
            programmaticStreamSerializationAllowed: 1,
        },
    };
    let config = sys::CUlaunchConfig {
        gridDimX: shape.grid[0],
        gridDimY: shape.grid[1],
        gridDimZ: shape.grid[2],
        blockDimX: shape.threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shape.shared,
        hStream: stream,
        attrs: &raw mut overlap,
        numAttrs: u32::from(overlaps),
    };
    // SAFETY: the driver copies the one argument and the attribute before it returns; the rest is
    // the caller's promise.
    unsafe {
        sys::cuLaunchKernelEx(
            &config,
            shape.function.0,
            parameters.as_mut_ptr(),
            std::ptr::null_mut(),
        )
    }
    .result()
    .map_err(driver("launching a kernel"))
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut memory = std::mem::take(self.memory.get_mut());
        // Without its context the memory is gone, or a parent's.
        if let Ok(_current) = self.device.enter() {
            self.trim(&mut memory);
        }
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({}, {:?})", self.device, self.memory())
    }
}
