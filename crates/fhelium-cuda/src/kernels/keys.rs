//! Evaluation keys: kernels/cuda/keys.cu.

use super::{Core, Kernel, Kernels, arguments, split};
use crate::device::Device;
use crate::error::Result;
use crate::queue::Queue;

/// `HoldKey` in keys.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct HoldKey {
    pub primes: u64,
    pub source: u64,
    pub target: u64,
    pub source_stride: u64,
    pub target_stride: u64,
    pub log_n: u32,
    pub unused: u32,
}

/// `MakeKey` in keys.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct MakeKey {
    pub primes: u64,
    pub special: u64,
    pub errors: u64,
    pub uniform: u64,
    pub secret: u64,
    pub target: u64,
    pub limbs: u32,
    pub level_primes: u32,
    pub digit_size: u32,
    pub galois_inverse: u32,
    pub log_n: u32,
    pub unused: u32,
}

arguments!(HoldKey, 48, [primes, source, target]);
arguments!(
    MakeKey,
    72,
    [primes, special, errors, uniform, secret, target]
);

const THREADS: u32 = 256;

pub(super) struct Keys {
    hold: Kernel<HoldKey>,
    release: Kernel<HoldKey>,
    make: Kernel<MakeKey>,
}

impl Keys {
    pub fn load(device: &Device, log_n: u32, core: Core) -> Result<Self> {
        let (_, lb) = split(log_n);
        let name = |kernel: &str| format!("{kernel}_key_{lb}_{}", core.suffix());
        Ok(Keys {
            hold: Kernel::load(device, "keys", &name("hold"), THREADS)?,
            release: Kernel::load(device, "keys", &name("release"), THREADS)?,
            make: Kernel::load(device, "keys", &name("make"), THREADS)?,
        })
    }
}

impl Kernels {
    /// One half of a key over `limbs` primes and so many digits, as the inner product takes it.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn hold_key(
        &self,
        queue: &Queue,
        limbs: usize,
        digits: usize,
        arguments: &HoldKey,
    ) -> Result<()> {
        let grid = self.key_grid(limbs, digits);
        // SAFETY: the caller's promise.
        unsafe { self.keys.hold.launch(queue, grid, 0, arguments) }
    }

    /// The residues of one half of a key.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn release_key(
        &self,
        queue: &Queue,
        limbs: usize,
        digits: usize,
        arguments: &HoldKey,
    ) -> Result<()> {
        let grid = self.key_grid(limbs, digits);
        // SAFETY: the caller's promise.
        unsafe { self.keys.release.launch(queue, grid, 0, arguments) }
    }

    /// A key of so many digits from its parts.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn make_key(&self, queue: &Queue, digits: usize, arguments: &MakeKey) -> Result<()> {
        let grid = self.key_grid(arguments.limbs as usize, digits);
        // SAFETY: the caller's promise.
        unsafe { self.keys.make.launch(queue, grid, 0, arguments) }
    }

    fn key_grid(&self, limbs: usize, digits: usize) -> [u32; 3] {
        let tiles = (1 << self.log_n) / (2 * THREADS);
        [tiles, limbs as u32, digits as u32]
    }
}
