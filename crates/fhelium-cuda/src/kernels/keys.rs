//! Evaluation keys: kernels/cuda/keys.cu.

use super::{Arguments, Core, Kernel, Kernels, split};
use crate::device::Device;
use crate::error::Result;
use crate::queue::Queue;

/// `ReleaseKey` in keys.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ReleaseKey {
    pub primes: u64,
    pub source: u64,
    pub target: u64,
    pub source_stride: u64,
    pub target_stride: u64,
    pub log_n: u32,
    pub unused: u32,
}

// SAFETY: the layout is that of keys.cu, whose size is asserted there and here.
unsafe impl Arguments for ReleaseKey {}
const _: () = assert!(size_of::<ReleaseKey>() == 48);

const THREADS: u32 = 256;

pub(super) struct Keys {
    release: Kernel<ReleaseKey>,
}

impl Keys {
    pub fn load(device: &Device, log_n: u32, core: Core) -> Result<Self> {
        let (_, lb) = split(log_n);
        let name = format!("release_key_{lb}_{}", core.suffix());
        Ok(Keys {
            release: Kernel::load(device, "keys", &name, THREADS)?,
        })
    }
}

impl Kernels {
    /// The residues of one half of a key over `limbs` primes and so many digits.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn release_key(
        &self,
        queue: &Queue,
        limbs: usize,
        digits: usize,
        arguments: &ReleaseKey,
    ) -> Result<()> {
        let tiles = (1 << self.log_n) / (2 * THREADS);
        let grid = [tiles, limbs as u32, digits as u32];
        // SAFETY: the caller's promise.
        unsafe { self.keys.release.launch(queue, grid, 0, arguments) }
    }
}
