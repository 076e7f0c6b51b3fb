//! Words between the host and a queue's memory, and within it.

use super::{Action, Buffer, Queue};
use crate::error::{Result, driver};
use bytemuck::{AnyBitPattern, NoUninit};
use cudarc::driver::result;
use std::sync::Arc;

impl Queue {
    /// Memory of zeros.
    pub(crate) fn zeroed(self: &Arc<Self>, words: usize) -> Result<Buffer> {
        let _turn = self.lock()?;
        self.refuse_capture("a clearing of memory")?;
        let buffer = self.allocate(words)?;
        if !self.copies_nothing() {
            self.clear(buffer.address(), words * size_of::<u64>())?;
        }
        Ok(buffer)
    }

    /// New memory with these words.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], [`CudaError::Capture`], [`CudaError::Driver`].
    pub fn upload(self: &Arc<Self>, words: &[u64]) -> Result<Buffer> {
        let _turn = self.lock()?;
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
    pub(crate) fn fill<T: NoUninit>(&self, buffer: &Buffer, values: &[T]) -> Result<()> {
        assert!(size_of_val(values) <= buffer.words() * size_of::<u64>());
        let _turn = self.lock()?;
        self.refuse_capture("an upload")?;
        if values.is_empty() || self.copies_nothing() {
            return Ok(());
        }
        let stream = self.handle();
        // SAFETY: the buffer holds as many bytes, and the source lives until the stream has been
        // waited for.
        unsafe {
            result::memcpy_htod_async(buffer.address(), values, stream)
                .and_then(|()| result::stream::synchronize(stream))
        }
        .map_err(driver("copying to the device"))
    }

    /// The words of a buffer of this queue.
    ///
    /// # Errors
    /// [`CudaError::Capture`], [`CudaError::Driver`].
    pub fn download(&self, buffer: &Buffer) -> Result<Vec<u64>> {
        self.download_first(buffer, buffer.words())
    }

    /// The first words of a buffer of this queue.
    ///
    /// # Errors
    /// As [`download`](Self::download).
    ///
    /// # Panics
    /// When the buffer holds fewer.
    pub(crate) fn download_first(&self, buffer: &Buffer, count: usize) -> Result<Vec<u64>> {
        let mut words = vec![0; count];
        self.read(buffer, &mut words)?;
        Ok(words)
    }

    /// Reads values from the beginning of a buffer of this queue; they stay where only memory is
    /// followed.
    ///
    /// # Errors
    /// As [`download`](Self::download).
    ///
    /// # Panics
    /// When the buffer is smaller: the callers size it.
    pub(crate) fn read<T: AnyBitPattern>(&self, buffer: &Buffer, values: &mut [T]) -> Result<()> {
        assert!(size_of_val(values) <= buffer.words() * size_of::<u64>());
        let _turn = self.lock()?;
        self.refuse_capture("a download")?;
        self.refuse_placeholder(buffer)?;
        if values.is_empty() || self.copies_nothing() {
            return Ok(());
        }
        let stream = self.handle();
        // SAFETY: the slice is no larger than the buffer, any bytes are values of its type, and it
        // lives until the stream has been waited for.
        unsafe {
            self.wait_after(stream, "copying from the device", || {
                result::memcpy_dtoh_async(values, buffer.address(), stream)
            })
        }
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
        assert!(target_start + words <= target.words() && source_start + words <= source.words());
        if words == 0 {
            return Ok(());
        }
        let size = size_of::<u64>();
        let addresses = [
            target.address() + (target_start * size) as u64,
            source.address() + (source_start * size) as u64,
        ];
        let action = Action::Copy {
            bytes: words * size,
        };
        // SAFETY: both ranges were just checked to lie in live buffers of this queue.
        unsafe { self.submit(action, &addresses, 0..2) }
    }
}
