//! Small and uniform polynomials: kernels/cuda/sample.cu.

use super::{Basis, Kernel, Kernels, arguments};
use crate::device::Device;
use crate::error::Result;
use crate::queue::Queue;

/// `Lift` in sample.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Lift {
    pub primes: u64,
    pub source: u64,
    pub target: u64,
    pub target_stride: u64,
    pub basis: Basis,
    pub log_n: u32,
    pub unused: u32,
}

/// `Uniform` in sample.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Uniform {
    pub primes: u64,
    pub seeds: u64,
    pub target: u64,
    pub seed_stride: u64,
    pub target_stride: u64,
    pub stream: u64,
    pub stream_step: u64,
    pub basis: Basis,
    pub log_n: u32,
    pub unused: u32,
}

arguments!(Lift, 56, [primes, source, target]);
arguments!(Uniform, 80, [primes, seeds, target]);

const THREADS: u32 = 256;

/// A round's words, eight a thread, and a sum for each warp.
const UNIFORM_SHARED: u32 = (8 * THREADS + THREADS / 32) * 8;

pub(super) struct Sample {
    lift: Kernel<Lift>,
    uniform: Kernel<Uniform>,
}

impl Sample {
    pub fn load(device: &Device) -> Result<Self> {
        Ok(Sample {
            lift: Kernel::load(device, "sample", "lift_small", THREADS)?,
            uniform: Kernel::load(device, "sample", "uniform_from_seed", THREADS)?,
        })
    }
}

impl Kernels {
    /// Small polynomials to residues of the basis.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn lift(&self, queue: &Queue, polynomials: usize, arguments: &Lift) -> Result<()> {
        let tiles = (1 << self.log_n) / (2 * THREADS);
        let grid = [tiles, arguments.basis.limbs, polynomials as u32];
        // SAFETY: the caller's promise.
        unsafe { self.sample.lift.launch(queue, grid, 0, arguments) }
    }

    /// Uniform polynomials over the basis.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn uniform(
        &self,
        queue: &Queue,
        polynomials: usize,
        arguments: &Uniform,
    ) -> Result<()> {
        let grid = [1, arguments.basis.limbs, polynomials as u32];
        // SAFETY: the caller's promise.
        unsafe {
            self.sample
                .uniform
                .launch(queue, grid, UNIFORM_SHARED, arguments)
        }
    }
}
