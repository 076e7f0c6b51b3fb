//! Small and uniform polynomials: kernels/cuda/sample.cu.

use super::{Basis, Kernel, Kernels, arguments};
use crate::device::Device;
use crate::error::Result;
use crate::queue::Queue;
use fhelium_ckks::draws::GAUSSIAN_TAILS;

/// `Small` in sample.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Small {
    pub target: u64,
    pub key: [u64; 4],
    pub first_stream: u64,
    pub group_step: u64,
    pub members: u32,
    pub first_member: u32,
    pub log_n: u32,
    pub unused: u32,
    pub tails: [u64; GAUSSIAN_TAILS.len()],
}

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
    pub seed: [u64; 4],
    pub target_stride: u64,
    pub stream: u64,
    pub stream_step: u64,
    pub basis: Basis,
    pub log_n: u32,
    pub unused: u32,
}

arguments!(Small, 304, [target]);
arguments!(Lift, 56, [primes, source, target]);
arguments!(Uniform, 104, [primes, seeds, target]);

const THREADS: u32 = 256;
const TERNARY_THREADS: u32 = 128;

/// A round's values, 256 a thread at most, and a sum for each warp.
const TERNARY_SHARED: u32 = 256 * TERNARY_THREADS + TERNARY_THREADS / 32 * 8;

/// A round's words, eight a thread, and a sum for each warp.
const UNIFORM_SHARED: u32 = (8 * THREADS + THREADS / 32) * 8;

pub(super) struct Sample {
    gaussian: Kernel<Small>,
    ternary: Kernel<Small>,
    lift: Kernel<Lift>,
    uniform: Kernel<Uniform>,
}

impl Sample {
    pub fn load(device: &Device) -> Result<Self> {
        Ok(Sample {
            gaussian: Kernel::load(device, "sample", "sample_gaussian", THREADS)?,
            ternary: Kernel::load(device, "sample", "sample_ternary", TERNARY_THREADS)?,
            lift: Kernel::load(device, "sample", "lift_small", THREADS)?,
            uniform: Kernel::load(device, "sample", "uniform_from_seed", THREADS)?,
        })
    }
}

impl Kernels {
    /// Gaussian polynomials: so many members of each group.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn gaussian(
        &self,
        queue: &Queue,
        groups: usize,
        members: usize,
        arguments: &Small,
    ) -> Result<()> {
        // A thread makes eight coefficients.
        let tiles = (1u32 << (self.log_n - 3)).div_ceil(THREADS);
        let grid = [tiles, groups as u32, members as u32];
        // SAFETY: the caller's promise.
        unsafe { self.sample.gaussian.launch(queue, grid, 0, arguments) }
    }

    /// A ternary polynomial of each group.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn ternary(&self, queue: &Queue, groups: usize, arguments: &Small) -> Result<()> {
        let grid = [1, groups as u32, 1];
        // SAFETY: the caller's promise.
        unsafe {
            self.sample
                .ternary
                .launch(queue, grid, TERNARY_SHARED, arguments)
        }
    }

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
