//! Sums along a batch axis: kernels/cuda/batch.cu.

use super::{Basis, Kernel, Kernels, arguments};
use crate::device::Device;
use crate::error::Result;
use crate::queue::Queue;

/// `BatchSum` in batch.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct BatchSum {
    pub primes: u64,
    pub source: u64,
    pub target: u64,
    pub polynomial: u64,
    pub extent: u32,
    pub inner: u32,
    pub log_n: u32,
    pub unused: u32,
    pub basis: Basis,
}

arguments!(BatchSum, 64, [primes, source, target]);

const THREADS: u32 = 256;

pub(super) struct Batch {
    sum: Kernel<BatchSum>,
}

impl Batch {
    pub fn load(device: &Device) -> Result<Self> {
        let sum = Kernel::load(device, "batch", "batch_sum", THREADS)?;
        Ok(Batch { sum })
    }
}

impl Kernels {
    /// Sums along a batch axis, giving so many polynomials.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn batch_sum(
        &self,
        queue: &Queue,
        polynomials: usize,
        arguments: &BatchSum,
    ) -> Result<()> {
        let grid = [
            (1 << self.log_n) / (2 * THREADS),
            arguments.basis.limbs,
            polynomials as u32,
        ];
        // SAFETY: the caller's promise.
        unsafe { self.batch.sum.launch(queue, grid, 0, arguments) }
    }
}
