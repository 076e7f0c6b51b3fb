//! What kernels found wrong with values that the host has not seen.
//!
//! The host refuses a message that is not finite or too large before it encodes it. Of an array on
//! the device it does not know the values, and waiting for them would undo the queue: the encoding
//! itself looks, and writes the first offence to a record of its queue. Whoever waits next, for that
//! queue or for one with work that came after it, reads the record and raises.

use crate::current::{Current, Held};
use crate::error::{CudaError, Result, driver};
use crate::queue::uncaptured;
use cudarc::driver::sys::{CUdeviceptr, CUstream};
use cudarc::driver::{CudaStream, DriverError, result};
use fhelium_ckks::CkksError;
use std::sync::Arc;

/// `Report` in message.cuh, in words; all 0 where nothing is reported.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Report([u64; 7]);

impl Report {
    /// The error that it stands for, if it does.
    pub fn error(&self) -> Option<CudaError> {
        let [claimed, index, re, im, bound, log2_scale, level] = self.0;
        if claimed == 0 {
            return None;
        }
        let [re, im, bound, log2_scale] = [re, im, bound, log2_scale].map(f64::from_bits);
        let operation = "encode of an array on a GPU, whose values are checked there";
        let (index, level) = (index as usize, level as usize);
        let found = match im {
            0.0 => format!("{re:?}"),
            im => format!("{re:?}{im:+?}i"),
        };
        let error = if re.is_finite() && im.is_finite() {
            let log2 = format!("{log2_scale:.6}");
            let log2 = log2.trim_end_matches('0').trim_end_matches('.');
            CkksError::DoesNotFit {
                operation,
                found,
                index,
                scale: format!("2^{log2}"),
                level,
                bound,
            }
        } else {
            CkksError::NotFinite {
                operation,
                index,
                found,
            }
        };
        Some(error.into())
    }
}

/// The records that work in a queue may have written to, or depends on.
#[derive(Clone, Default)]
pub(crate) struct Reports {
    own: Option<Arc<Record>>,
    /// Whether captured work writes to it, which may be replayed at any time.
    always: bool,
    unread: Vec<Arc<Record>>,
}

/// Memory for one report.
pub(crate) struct Record {
    /// The queue's, in whose order it comes and goes.
    stream: Held<Arc<CudaStream>>,
    pointer: CUdeviceptr,
}

impl Record {
    /// The stream's context is current.
    fn new(stream: &Arc<CudaStream>) -> Result<Self> {
        let failed = driver("making a record of reports");
        // SAFETY: the stream is live and its context current.
        let pointer = unsafe { result::malloc_async(stream.cu_stream(), size_of::<Report>()) };
        let record = Record {
            pointer: pointer.map_err(failed)?,
            stream: Held::new(stream.clone(), stream.context()),
        };
        // Waited for, since work on other streams may report too.
        record.clear()?;
        Ok(record)
    }

    /// Forgets what is reported. The device's context is current.
    pub fn clear(&self) -> Result<()> {
        let failed = driver("clearing what kernels reported");
        let stream = self.stream.cu_stream();
        // SAFETY: the record has as many bytes, the stream is live and its context current.
        unsafe {
            result::memset_d8_async(self.pointer, 0, size_of::<Report>(), stream)
                .and_then(|()| result::stream::synchronize(stream))
        }
        .map_err(failed)
    }

    /// Puts a copy of it into a stream.
    ///
    /// # Safety
    /// The stream is live and its context current; `report` lives until it has been waited for.
    pub unsafe fn copy(&self, report: &mut Report, stream: CUstream) -> Result<(), DriverError> {
        // SAFETY: the record has as many bytes; the rest is the caller's promise.
        unsafe { result::memcpy_dtoh_async(&mut report.0, self.pointer, stream) }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let context = self.stream.context();
        if let Ok(_current) = Current::of(context) {
            // SAFETY: allocated once, here freed once, after the queue's work.
            let freed = unsafe { result::free_async(self.pointer, self.stream.cu_stream()) };
            context.record_err(freed);
        }
    }
}

impl Reports {
    /// Where the queue's kernels report to. The caller has the queue's lock.
    pub fn address(&mut self, stream: &Arc<CudaStream>) -> Result<u64> {
        if let Some(record) = &self.own {
            return Ok(record.pointer);
        }
        let made = Arc::new(uncaptured(|| Record::new(stream))?);
        Ok(self.own.insert(made).pointer)
    }

    /// Work that may report is in the queue; captured, it may run again at any time.
    pub fn expect(&mut self, captured: bool) {
        self.always |= captured;
        let own = self.own.clone();
        self.unread(own);
    }

    /// What comes next in the queue depends on another's work.
    pub fn follow(&mut self, other: &Reports) {
        let own = other.own.clone().filter(|_| other.always);
        for record in other.unread.iter().cloned().chain(own) {
            self.unread(Some(record));
        }
    }

    /// The records to read by who waits for the queue now.
    pub fn take(&mut self) -> Vec<Arc<Record>> {
        let own = self.own.clone().filter(|_| self.always);
        self.unread(own);
        std::mem::take(&mut self.unread)
    }

    /// Has a record read by who waits next.
    pub fn unread(&mut self, record: Option<Arc<Record>>) {
        if let Some(record) = record
            && !self.unread.iter().any(|known| Arc::ptr_eq(known, &record))
        {
            self.unread.push(record);
        }
    }
}
