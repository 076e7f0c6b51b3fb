//! Waiting for a queue, and what its kernels report by then.

use super::{Place, Queue};
use crate::error::{Result, driver};
use crate::reports::Report;
use cudarc::driver::sys::CUstream;
use cudarc::driver::{DriverError, result};

impl Queue {
    /// Waits until all that was put into the queue has run.
    ///
    /// # Errors
    /// [`CudaError::Driver`], also for a fault of an earlier kernel; [`CudaError::Ckks`] for an array
    /// on the device that was encoded and that no plaintext holds.
    pub fn synchronize(&self) -> Result<()> {
        let _current = self.device.enter()?;
        // SAFETY: nothing is put into the stream.
        unsafe { self.wait_after(self.stream.cu_stream(), "waiting for the device", || Ok(())) }
    }

    /// Waits for a stream after what `put` puts into it, and raises what kernels reported.
    ///
    /// # Safety
    /// The stream is live and its context current; what `put` refers to lives on.
    pub(super) unsafe fn wait_after(
        &self,
        stream: CUstream,
        call: &'static str,
        put: impl FnOnce() -> Result<(), DriverError>,
    ) -> Result<()> {
        let records = self.reports.lock().take();
        let mut reports = vec![Report::default(); records.len()];
        // SAFETY: the reports live until the stream has been waited for; the rest is the caller's
        // promise.
        let waited = unsafe {
            let mut copies = || {
                let mut pairs = records.iter().zip(&mut reports);
                pairs.try_for_each(|(record, report)| record.copy(report, stream))
            };
            put()
                .and_then(|()| copies())
                .and_then(|()| result::stream::synchronize(stream))
        };
        waited.map_err(driver(call))?;
        let mut raised = Ok(());
        for (record, report) in records.into_iter().zip(reports) {
            let Some(error) = report.error() else {
                continue;
            };
            // One at a time.
            if raised.is_err() {
                self.reports.lock().unread(Some(record));
                continue;
            }
            record.clear()?;
            raised = Err(error);
        }
        raised
    }

    /// Where kernels report to what they find wrong with values that the host has not seen.
    pub(crate) fn report_address(&self) -> Result<u64> {
        self.reports.lock().address(&self.stream)
    }

    /// Says that what has just been put into the queue, or into a recording or capture, may report.
    pub(crate) fn expect_reports(&self) {
        let captured = match &*self.place.lock() {
            Place::Recording(recorder) => return recorder.expect_reports(),
            Place::Measuring(_) => return,
            Place::Foreign { arena, .. } => arena.is_some(),
            Place::Own => false,
        };
        self.reports.lock().expect(captured);
    }

    /// Has who waits for this queue read what the other's kernels report.
    pub(crate) fn follow_reports(&self, other: &Queue) {
        // Not while this one's are locked: queues follow each other in either order.
        let others = other.reports.lock().clone();
        self.reports.lock().follow(&others);
    }
}
