//! A stream with its memory: launches, buffers and captures, all in the stream's order.
//!
//! Freed memory is kept by size and handed out again at once: what used it runs before what will,
//! since both run on this stream. So a warm operation allocates nothing.

use crate::device::Device;
use crate::error::{CudaError, Result, driver};
use cudarc::driver::sys::{self, CUdeviceptr, CUresult};
use cudarc::driver::{CudaEvent, CudaGraph, CudaStream, DriverError, result};
use parking_lot::{Mutex, ReentrantMutex, ReentrantMutexGuard};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A stream of a device and the memory that its operations use.
pub struct Queue {
    device: Arc<Device>,
    stream: Arc<CudaStream>,
    /// Allocates while the stream is being captured, when its own allocations would be captured.
    side: Arc<CudaStream>,
    memory: Mutex<Memory>,
    /// Held by each operation, so that another thread's launches do not enter a capture.
    order: ReentrantMutex<()>,
}

#[derive(Default)]
struct Memory {
    /// Freed memory by its bytes.
    free: HashMap<usize, Vec<CUdeviceptr>>,
    free_bytes: usize,
    used_bytes: usize,
    peak_bytes: usize,
    limit: Option<usize>,
    /// The arena that serves while the stream is being captured.
    arena: Option<Arc<Arena>>,
    /// Secrets dropped while the stream was being captured: erased, then given back, at its end.
    unerased: Vec<(CUdeviceptr, usize)>,
}

/// Memory that a captured graph uses: it must not serve anything else while the graph can run.
struct Arena {
    queue: Arc<Queue>,
    state: Mutex<ArenaState>,
}

#[derive(Default)]
struct ArenaState {
    closed: bool,
    all: Vec<(CUdeviceptr, usize)>,
    free: HashMap<usize, Vec<CUdeviceptr>>,
}

/// Words of device memory, in the order of the queue that they came from.
pub struct Buffer {
    owner: Owner,
    pointer: CUdeviceptr,
    words: usize,
    /// Whether the contents are erased before the memory serves anything else.
    secret: bool,
}

enum Owner {
    Queue(Arc<Queue>),
    Arena(Arc<Arena>),
}

/// Bytes in use through a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Held by live values, tables and keys.
    pub used: usize,
    /// Freed and kept for the next operations.
    pub kept: usize,
    /// The most that was ever used at once.
    pub peak: usize,
    /// The limit on both together, if one is set.
    pub limit: Option<usize>,
}

impl Queue {
    /// A new stream of the device.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn new(device: &Arc<Device>, limit: Option<usize>) -> Result<Arc<Self>> {
        let stream = || {
            device
                .context()
                .new_stream()
                .map_err(driver("making a stream"))
        };
        let (stream, side) = (stream()?, stream()?);
        keep_freed_memory(device)?;
        Ok(Arc::new(Queue {
            device: device.clone(),
            stream,
            side,
            memory: Mutex::new(Memory {
                limit,
                ..Memory::default()
            }),
            order: ReentrantMutex::new(()),
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

    /// What memory is in use.
    pub fn memory(&self) -> MemoryUse {
        let memory = self.memory.lock();
        MemoryUse {
            used: memory.used_bytes,
            kept: memory.free_bytes,
            peak: memory.peak_bytes,
            limit: memory.limit,
        }
    }

    /// Sets the most bytes that may be in use; `None` for what the device has. Values in use stay.
    pub fn set_memory_limit(&self, limit: Option<usize>) {
        self.memory.lock().limit = limit;
    }

    /// Gives the memory that is kept for the next operations back to the device.
    pub fn release_kept_memory(&self) {
        let mut memory = self.memory.lock();
        self.trim(&mut memory);
    }

    /// Waits until all that was put into the queue has run.
    ///
    /// # Errors
    /// [`CudaError::Driver`], also for a fault of an earlier kernel.
    pub fn synchronize(&self) -> Result<()> {
        self.stream
            .synchronize()
            .map_err(driver("waiting for the device"))
    }

    /// Keeps other threads' operations out of this thread's next ones.
    pub(crate) fn lock(&self) -> ReentrantMutexGuard<'_, ()> {
        self.order.lock()
    }

    /// Memory of undefined contents.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`]; nothing was taken then.
    pub fn allocate(self: &Arc<Self>, words: usize) -> Result<Buffer> {
        // The driver refuses empty allocations; an empty batch still has an address.
        let bytes = words.max(1) * size_of::<u64>();
        let mut memory = self.memory.lock();
        if let Some(arena) = memory.arena.clone() {
            let pointer = self.allocate_in(&arena, &mut memory, bytes)?;
            return Ok(Buffer {
                owner: Owner::Arena(arena),
                pointer,
                words,
                secret: false,
            });
        }
        let pointer = self.take(&mut memory, bytes, &self.stream)?;
        Ok(Buffer {
            owner: Owner::Queue(self.clone()),
            pointer,
            words,
            secret: false,
        })
    }

    /// Memory for what must not be read once it is dropped: zeroed then, before it serves again.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    pub(crate) fn allocate_secret(self: &Arc<Self>, words: usize) -> Result<Buffer> {
        let mut buffer = self.allocate(words)?;
        buffer.secret = true;
        Ok(buffer)
    }

    /// Zeroes memory in the queue's order and returns it; in a capture at the capture's end, since
    /// the graph would zero it again at each replay.
    fn erase(&self, pointer: CUdeviceptr, bytes: usize) {
        let _order = self.lock();
        if self.is_capturing() {
            self.memory.lock().unerased.push((pointer, bytes));
            return;
        }
        if self.bind().is_ok() {
            // SAFETY: the memory is this queue's, has as many bytes, and nobody else holds it.
            let erased =
                unsafe { result::memset_d8_async(pointer, 0, bytes, self.stream.cu_stream()) };
            self.device.context().record_err(erased);
        }
        self.give_back(pointer, bytes);
    }

    /// Memory from what is kept, else from the device, in the order of `stream`.
    fn take(&self, memory: &mut Memory, bytes: usize, stream: &CudaStream) -> Result<CUdeviceptr> {
        if let Some(pointer) = memory.free.get_mut(&bytes).and_then(Vec::pop) {
            memory.free_bytes -= bytes;
            memory.count_used(bytes);
            return Ok(pointer);
        }
        if let Some(limit) = memory.limit {
            if memory.used_bytes + memory.free_bytes + bytes > limit {
                self.trim(memory);
            }
            if memory.used_bytes + bytes > limit {
                return Err(self.out_of_memory(
                    memory,
                    bytes,
                    limit.saturating_sub(memory.used_bytes),
                    true,
                ));
            }
        }
        self.bind()?;
        // SAFETY: the stream is live; its context is current.
        let allocate = || unsafe { result::malloc_async(stream.cu_stream(), bytes) };
        let pointer = allocate().or_else(|error| {
            if error.0 != CUresult::CUDA_ERROR_OUT_OF_MEMORY {
                return Err(error);
            }
            // What is kept may do in other sizes once it is given back and merged.
            self.trim(memory);
            self.stream.synchronize()?;
            allocate()
        });
        match pointer {
            Ok(pointer) => {
                memory.count_used(bytes);
                Ok(pointer)
            }
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                let free = self
                    .device
                    .context()
                    .mem_get_info()
                    .map_or(0, |(free, _)| free);
                Err(self.out_of_memory(memory, bytes, free, false))
            }
            Err(error) => Err(driver("allocating memory")(error)),
        }
    }

    fn out_of_memory(
        &self,
        memory: &Memory,
        asked: usize,
        free: usize,
        limited: bool,
    ) -> CudaError {
        CudaError::OutOfMemory {
            device: self.device.to_string(),
            asked,
            used: memory.used_bytes,
            free,
            limited,
        }
    }

    fn allocate_in(&self, arena: &Arena, memory: &mut Memory, bytes: usize) -> Result<CUdeviceptr> {
        let mut state = arena.state.lock();
        if let Some(pointer) = state.free.get_mut(&bytes).and_then(Vec::pop) {
            return Ok(pointer);
        }
        let pointer = self.take(memory, bytes, &self.side)?;
        // The graph runs on the other stream: the memory must be there before it does.
        self.side
            .synchronize()
            .map_err(driver("allocating memory"))?;
        state.all.push((pointer, bytes));
        Ok(pointer)
    }

    /// Returns memory whose last use is already in the queue.
    fn give_back(&self, pointer: CUdeviceptr, bytes: usize) {
        let mut memory = self.memory.lock();
        memory.used_bytes -= bytes;
        memory.free_bytes += bytes;
        memory.free.entry(bytes).or_default().push(pointer);
    }

    fn trim(&self, memory: &mut Memory) {
        if self.bind().is_err() {
            // The context is gone, and the memory with it.
            memory.free.clear();
        }
        for (_, pointers) in memory.free.drain() {
            for pointer in pointers {
                // SAFETY: the memory is this queue's, and nobody holds it.
                let freed = unsafe { result::free_async(pointer, self.stream.cu_stream()) };
                self.device.context().record_err(freed);
            }
        }
        memory.free_bytes = 0;
    }

    fn bind(&self) -> Result<()> {
        self.device
            .context()
            .bind_to_thread()
            .map_err(driver("using the device's context"))
    }

    /// Whether the stream is being captured.
    pub fn is_capturing(&self) -> bool {
        self.memory.lock().arena.is_some()
    }

    fn refuse_capture(&self, operation: &'static str) -> Result<()> {
        if self.is_capturing() {
            let remedy = "move values before the capture or after the replay";
            return Err(CudaError::Capture { operation, remedy });
        }
        Ok(())
    }

    /// New memory with these words.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], [`CudaError::Capture`], [`CudaError::Driver`].
    pub fn upload(self: &Arc<Self>, words: &[u64]) -> Result<Buffer> {
        let _order = self.lock();
        let buffer = self.allocate(words.len())?;
        self.fill(&buffer, words)?;
        Ok(buffer)
    }

    /// Writes values over the beginning of a buffer of this queue.
    ///
    /// # Errors
    /// [`CudaError::Capture`], [`CudaError::Driver`].
    ///
    /// # Panics
    /// When the buffer is smaller: the callers size it.
    pub(crate) fn fill<T: Copy>(&self, buffer: &Buffer, values: &[T]) -> Result<()> {
        assert!(size_of_val(values) <= buffer.words * size_of::<u64>());
        let _order = self.lock();
        self.refuse_capture("an upload")?;
        if values.is_empty() {
            return Ok(());
        }
        self.bind()?;
        // SAFETY: the buffer holds as many bytes, and the source lives until the stream has been
        // waited for.
        unsafe { result::memcpy_htod_async(buffer.pointer, values, self.stream.cu_stream()) }
            .map_err(driver("copying to the device"))?;
        self.synchronize()
    }

    /// The words of a buffer of this queue.
    ///
    /// # Errors
    /// [`CudaError::Capture`], [`CudaError::Driver`].
    pub fn download(&self, buffer: &Buffer) -> Result<Vec<u64>> {
        self.download_first(buffer, buffer.words)
    }

    /// The first words of a buffer of this queue.
    ///
    /// # Errors
    /// As [`download`](Self::download).
    ///
    /// # Panics
    /// When the buffer holds fewer.
    pub(crate) fn download_first(&self, buffer: &Buffer, count: usize) -> Result<Vec<u64>> {
        assert!(count <= buffer.words);
        let _order = self.lock();
        self.refuse_capture("a download")?;
        let mut words = vec![0; count];
        if !words.is_empty() {
            self.bind()?;
            // SAFETY: the vector holds as many words and lives until the stream has been waited for.
            unsafe {
                result::memcpy_dtoh_async(&mut words, buffer.pointer, self.stream.cu_stream())
            }
            .map_err(driver("copying from the device"))?;
            self.synchronize()?;
        }
        Ok(words)
    }

    /// Copies words from one buffer to another, starting at the given words.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    ///
    /// # Panics
    /// When a range is outside its buffer: the callers compute them from checked shapes.
    pub(crate) fn copy(
        &self,
        target: &Buffer,
        target_start: usize,
        source: &Buffer,
        source_start: usize,
        words: usize,
    ) -> Result<()> {
        assert!(target_start + words <= target.words && source_start + words <= source.words);
        if words == 0 {
            return Ok(());
        }
        self.bind()?;
        let size = size_of::<u64>();
        let (target, source) = (
            target.pointer + (target_start * size) as u64,
            source.pointer + (source_start * size) as u64,
        );
        // SAFETY: both ranges were just checked to lie in live buffers of this queue.
        unsafe { result::memcpy_dtod_async(target, source, words * size, self.stream.cu_stream()) }
            .map_err(driver("copying on the device"))
    }

    /// A point of the queue, timed.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn record(&self) -> Result<CudaEvent> {
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        self.stream
            .record_event(flags)
            .map_err(driver("recording an event"))
    }

    /// Microseconds of the device between two points, which are waited for.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn elapsed_us(&self, start: &CudaEvent, end: &CudaEvent) -> Result<f64> {
        let milliseconds = start.elapsed_ms(end).map_err(driver("timing"))?;
        Ok(f64::from(milliseconds) * 1e3)
    }

    /// Makes what comes next here wait for all that is in the other queue.
    pub(crate) fn wait_for(&self, other: &Queue) -> Result<()> {
        self.stream
            .join(&other.stream)
            .map_err(driver("ordering two streams"))
    }

    /// Records what `work` launches instead of running it.
    ///
    /// Run the same work once before, so that nothing is loaded or built within.
    ///
    /// # Errors
    /// What `work` returns, and [`CudaError::Driver`]; nothing is left captured then.
    pub fn capture<R>(self: &Arc<Self>, work: impl FnOnce() -> Result<R>) -> Result<(Graph, R)> {
        let _order = self.lock();
        self.refuse_capture("a capture within a capture")?;
        let arena = Arc::new(Arena {
            queue: self.clone(),
            state: Mutex::default(),
        });
        self.stream
            .begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)
            .map_err(driver("beginning a capture"))?;
        self.memory.lock().arena = Some(arena.clone());
        let result = work();
        self.memory.lock().arena = None;
        arena.state.lock().closed = true;
        let graph = self.stream.end_capture(sys::CUgraphInstantiate_flags(0));
        let unerased = std::mem::take(&mut self.memory.lock().unerased);
        for (pointer, bytes) in unerased {
            self.erase(pointer, bytes);
        }
        let result = result?;
        let graph = graph.map_err(driver("ending a capture"))?;
        if let Some(graph) = &graph {
            graph.upload().map_err(driver("uploading a graph"))?;
        }
        Ok((
            Graph {
                graph: Mutex::new(graph.map(Replay)),
                arena,
            },
            result,
        ))
    }
}

impl Memory {
    fn count_used(&mut self, bytes: usize) {
        self.used_bytes += bytes;
        self.peak_bytes = self.peak_bytes.max(self.used_bytes);
    }
}

/// Lets the driver's pool keep what is given back to it, instead of unmapping it at each wait.
fn keep_freed_memory(device: &Device) -> Result<()> {
    let failed = driver("asking for the memory pool");
    // SAFETY: the device is live, and the attribute is a 64-bit number.
    unsafe {
        let pool =
            result::device::get_default_mem_pool(device.context().cu_device()).map_err(&failed)?;
        let mut threshold = u64::MAX;
        sys::cuMemPoolSetAttribute(
            pool,
            sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
            (&raw mut threshold).cast(),
        )
        .result()
        .map_err(failed)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut memory = std::mem::take(self.memory.get_mut());
        self.trim(&mut memory);
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for (pointer, bytes) in self.state.get_mut().all.drain(..) {
            self.queue.give_back(pointer, bytes);
        }
    }
}

impl Buffer {
    /// How many words it holds.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.pointer
    }

    /// The queue in whose order it is used.
    pub fn queue(&self) -> &Arc<Queue> {
        match &self.owner {
            Owner::Queue(queue) => queue,
            Owner::Arena(arena) => &arena.queue,
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = self.words.max(1) * size_of::<u64>();
        match &self.owner {
            Owner::Queue(queue) if self.secret => queue.erase(self.pointer, bytes),
            Owner::Queue(queue) => queue.give_back(self.pointer, bytes),
            Owner::Arena(arena) => {
                let mut state = arena.state.lock();
                // Once captured, its contents belong to every later replay.
                if !state.closed {
                    state.free.entry(bytes).or_default().push(self.pointer);
                }
            }
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} words on {})", self.words, self.queue().device)
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({}, {:?})", self.device, self.memory())
    }
}

/// A captured sequence of launches. It reads the buffers that it was captured with and writes the
/// same results again at each replay: copy new inputs into those, and results out, in the queue's
/// order.
pub struct Graph {
    graph: Mutex<Option<Replay>>,
    arena: Arc<Arena>,
}

struct Replay(CudaGraph);

// SAFETY: a graph may be used from any thread as long as calls are serialized, and every use is
// under the `Graph`'s lock.
unsafe impl Send for Replay {}

impl Graph {
    /// Puts the sequence into the queue.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn replay(&self) -> Result<()> {
        let _order = self.arena.queue.lock();
        match &*self.graph.lock() {
            Some(Replay(graph)) => graph.launch().map_err(driver("replaying a graph")),
            None => Ok(()),
        }
    }

    /// Bytes of the memory that only this graph uses.
    pub fn nbytes(&self) -> usize {
        self.arena
            .state
            .lock()
            .all
            .iter()
            .map(|(_, bytes)| bytes)
            .sum()
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Graph({} bytes on {})",
            self.nbytes(),
            self.arena.queue.device
        )
    }
}
