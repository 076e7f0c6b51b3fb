//! Device memory in a queue's order.
//!
//! Freed memory is kept by size and handed out again at once: what used it runs before what will,
//! since both run in the queue's order. So a warm operation allocates nothing.

use super::Queue;
use super::foreign::{self, Arena};
use super::recorder::Recorder;
use crate::error::{CudaError, Result, driver};
use crate::fork::is_forked;
use cudarc::driver::sys::{self, CUdeviceptr, CUresult};
use cudarc::driver::{DriverError, result};
use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Bytes in use through a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Held by live values, tables and keys.
    pub used: usize,
    /// Freed and kept for the next operations.
    pub kept: usize,
    /// The most that was used at once, since the peak was last reset.
    pub peak: usize,
    /// The limit on both together, if one is set.
    pub limit: Option<usize>,
}

#[derive(Default)]
pub(super) struct Memory {
    /// Freed memory by its bytes.
    pub free: HashMap<usize, Vec<CUdeviceptr>>,
    pub free_bytes: usize,
    pub used_bytes: usize,
    pub peak_bytes: usize,
    pub limit: Option<usize>,
}

impl Memory {
    fn count_used(&mut self, bytes: usize) {
        self.used_bytes += bytes;
        self.peak_bytes = self.peak_bytes.max(self.used_bytes);
    }
}

/// Words of device memory, in the order of the queue that they came from.
pub struct Buffer {
    block: Arc<Block>,
    /// Bytes from the block's start.
    start: u64,
    words: usize,
}

/// What a buffer's memory is; it goes back to where it came from when the last to use it lets go.
pub(crate) struct Block {
    owner: Owner,
    pointer: CUdeviceptr,
    bytes: usize,
    /// Whether the contents are erased before the memory serves anything else.
    secret: bool,
}

/// Where memory came from.
pub(super) enum Owner {
    Queue(Arc<Queue>),
    /// For as long as a capture by somebody else can be replayed.
    Arena(Arc<Arena>),
    /// An address that stands for memory in a recording.
    Recorder(Arc<Recorder>),
    /// Somebody else's, who has it back when the second is dropped.
    Other(Arc<Queue>, Box<dyn Any + Send + Sync>),
}

impl Owner {
    pub fn queue(&self) -> &Arc<Queue> {
        match self {
            Owner::Queue(queue) | Owner::Other(queue, _) => queue,
            Owner::Arena(arena) => arena.queue(),
            Owner::Recorder(recorder) => recorder.queue(),
        }
    }
}

/// Bytes of so many words: the driver refuses empty allocations, and an empty batch still has an
/// address.
pub(super) fn bytes_of(words: usize) -> usize {
    words.max(1) * size_of::<u64>()
}

impl Buffer {
    pub(super) fn new(owner: Owner, pointer: CUdeviceptr, words: usize, secret: bool) -> Self {
        let block = Block {
            owner,
            pointer,
            bytes: bytes_of(words),
            secret,
        };
        Buffer {
            block: Arc::new(block),
            start: 0,
            words,
        }
    }

    /// The bytes from `start` on that so many words hold, of the same memory.
    ///
    /// # Panics
    /// When the memory ends before the last word begins: the callers derive both from checked shapes.
    pub(crate) fn part(&self, start: usize, words: usize) -> Buffer {
        assert!(
            start + words.saturating_sub(1) * size_of::<u64>() <= self.words * size_of::<u64>()
        );
        Buffer {
            block: self.block.clone(),
            start: self.start + start as u64,
            words,
        }
    }

    /// How many words it holds.
    pub fn words(&self) -> usize {
        self.words
    }

    /// How many bytes it takes: an empty one has an address, too.
    pub fn nbytes(&self) -> usize {
        bytes_of(self.words)
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.block.pointer + self.start
    }

    /// The queue in whose order it is used.
    pub fn queue(&self) -> &Arc<Queue> {
        self.block.owner.queue()
    }

    pub(super) fn block(&self) -> &Arc<Block> {
        &self.block
    }

    /// What keeps memory of somebody else.
    pub(crate) fn keeper(&self) -> Option<&(dyn Any + Send + Sync)> {
        match &self.block.owner {
            Owner::Other(_, keeper) => Some(&**keeper),
            Owner::Queue(_) | Owner::Arena(_) | Owner::Recorder(_) => None,
        }
    }

    /// The recording whose placeholder this is.
    pub(crate) fn recorder(&self) -> Option<&Arc<Recorder>> {
        match &self.block.owner {
            Owner::Recorder(recorder) => Some(recorder),
            Owner::Queue(_) | Owner::Arena(_) | Owner::Other(..) => None,
        }
    }
}

impl Block {
    pub(super) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Where it starts and how many bytes it has.
    pub(super) fn range(&self) -> (CUdeviceptr, usize) {
        (self.pointer, self.bytes)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if is_forked() {
            // It is the parent's.
            return;
        }
        match &self.owner {
            Owner::Queue(queue) if self.secret => queue.erase(self.pointer, self.bytes),
            Owner::Queue(queue) => queue.give_back(self.pointer, self.bytes),
            Owner::Arena(arena) => arena.give_back(self.pointer, self.bytes),
            Owner::Recorder(recorder) => recorder.give_back(self.pointer),
            Owner::Other(..) => {}
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} words on {})", self.words, self.queue().device)
    }
}

impl Queue {
    /// Memory of somebody else, in this queue's order; it does not count as used here.
    ///
    /// `keeper` is dropped when no buffer has the memory any more, which work in the queue may still:
    /// if that matters to its owner, the keeper has to wait for the queue.
    ///
    /// # Safety
    /// `address` is of as many words of this device, which stay there until `keeper` is dropped.
    pub unsafe fn borrow(
        self: &Arc<Self>,
        address: u64,
        words: usize,
        keeper: Box<dyn Any + Send + Sync>,
    ) -> Buffer {
        Buffer::new(Owner::Other(self.clone(), keeper), address, words, false)
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

    /// Has the peak of [`memory`](Self::memory) count from now on.
    pub fn reset_memory_peak(&self) {
        let memory = &mut *self.memory.lock();
        memory.peak_bytes = memory.used_bytes;
    }

    /// Sets the most bytes that may be in use; `None` for what the device has. Values in use stay.
    pub fn set_memory_limit(&self, limit: Option<usize>) {
        self.memory.lock().limit = limit;
    }

    /// Gives the memory that is kept for the next operations back to the device.
    pub fn release_kept_memory(&self) {
        if let Ok(_turn) = self.lock() {
            self.trim(&mut self.memory.lock());
        }
    }

    /// Memory from what is kept, else from the device. The caller has the queue's lock.
    pub(super) fn take(&self, bytes: usize) -> Result<CUdeviceptr> {
        let memory = &mut *self.memory.lock();
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
                let free = limit.saturating_sub(memory.used_bytes);
                return Err(self.out_of_memory(memory, bytes, free, true));
            }
        }
        let stream = self.memory_stream();
        // SAFETY: the stream is live; its context is current.
        let allocate = || unsafe { result::malloc_async(stream, bytes) };
        let pointer = allocate().or_else(|error| {
            if error.0 != CUresult::CUDA_ERROR_OUT_OF_MEMORY {
                return Err(error);
            }
            // What is kept may do in other sizes once it is given back and merged.
            self.trim(memory);
            // SAFETY: as above.
            unsafe { result::stream::synchronize(stream) }?;
            allocate()
        });
        match pointer {
            Ok(pointer) => {
                memory.count_used(bytes);
                Ok(pointer)
            }
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                let free = self.device.context().mem_get_info();
                let free = free.map_or(0, |(free, _)| free);
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

    /// Returns memory whose last use is already in the queue.
    pub(super) fn give_back(&self, pointer: CUdeviceptr, bytes: usize) {
        let mut memory = self.memory.lock();
        memory.used_bytes -= bytes;
        memory.free_bytes += bytes;
        memory.free.entry(bytes).or_default().push(pointer);
    }

    /// Zeroes memory of this queue that nobody else holds, in its order. The caller has the queue's
    /// lock.
    pub(super) fn clear(&self, pointer: CUdeviceptr, bytes: usize) -> Result<()> {
        let stream = self.memory_stream();
        // SAFETY: the memory is this queue's and has as many bytes, as the callers see to.
        unsafe { result::memset_d8_async(pointer, 0, bytes, stream) }
            .map_err(driver("erasing memory"))
    }

    /// Zeroes memory in the queue's order and returns it.
    pub(super) fn erase(&self, pointer: CUdeviceptr, bytes: usize) {
        let Ok(_turn) = self.lock() else {
            return;
        };
        let zero = || self.clear(pointer, bytes);
        // Nothing that a capture holds is dropped while it can run, and what was before has been
        // waited for: there the memory is erased beside it.
        let erased = if self.is_capturing_foreign() {
            foreign::uncaptured(|| {
                zero()?;
                self.side.synchronize().map_err(driver("erasing memory"))
            })
        } else {
            zero()
        };
        // What could not be erased serves nothing else.
        if erased.is_ok() {
            self.give_back(pointer, bytes);
        }
    }

    /// Gives kept memory back to the device, whose context is current.
    pub(super) fn trim(&self, memory: &mut Memory) {
        let stream = self.memory_stream();
        for (_, pointers) in memory.free.drain() {
            for pointer in pointers {
                // SAFETY: the memory is this queue's, and nobody holds it.
                let freed = unsafe { result::free_async(pointer, stream) };
                self.device.context().record_err(freed);
            }
        }
        memory.free_bytes = 0;
    }
}

/// Lets the driver's pool keep what is given back to it, instead of unmapping it at each wait.
pub(super) fn keep_freed_memory(device: &crate::device::Device) -> Result<()> {
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
