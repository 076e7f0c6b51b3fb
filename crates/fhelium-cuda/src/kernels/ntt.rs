//! Transforms by themselves: kernels/cuda/ntt.cu.

use super::{
    Basis, Core, Kernel, Kernels, LOG_HELD, LOG_MANY, arguments, pass_a_shape, pass_a_threads,
    pass_b_shape, split,
};
use crate::device::Device;
use crate::error::Result;
use crate::queue::Queue;

/// `ForwardA` in ntt.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ForwardA {
    pub primes: u64,
    pub source: u64,
    pub target: u64,
    pub source_stride: u64,
    pub target_stride: u64,
    pub basis: Basis,
    pub log_n: u32,
    pub digit_size: u32,
    pub digits: u32,
    pub digit_limbs: u32,
}

/// `InverseA` in ntt.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct InverseA {
    pub primes: u64,
    pub scales: u64,
    pub source: u64,
    pub target: u64,
    pub source_stride: u64,
    pub target_stride: u64,
    pub basis: Basis,
    pub log_n: u32,
    pub log_b: u32,
}

/// `PassB` in ntt.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct PassB {
    pub primes: u64,
    pub source: u64,
    pub factor: u64,
    pub target: u64,
    pub source_stride: u64,
    pub factor_stride: u64,
    pub target_stride: u64,
    pub basis: Basis,
    pub log_n: u32,
    pub polynomials: u32,
}

arguments!(ForwardA, 72, [primes, source, target]);
arguments!(InverseA, 72, [primes, scales, source, target]);
arguments!(PassB, 80, [primes, source, factor, target]);

/// Residues that a thread of pass A holds, as a power of two: `LOG_A` in ntt.cu.
pub(super) fn log_held(log_n: u32, core: Core) -> u32 {
    match (split(log_n).0, core) {
        (8, Core::Fp64) => LOG_MANY,
        _ => LOG_HELD,
    }
}

pub(super) struct Ntt {
    forward_a_canonical: Kernel<ForwardA>,
    forward_a_internal: Kernel<ForwardA>,
    inverse_a: Kernel<InverseA>,
    inverse_a_sources: Kernel<InverseA>,
    forward_b: Kernel<PassB>,
    inverse_b: Kernel<PassB>,
    inverse_b_product: Kernel<PassB>,
    inverse_b_held: Kernel<PassB>,
}

impl Ntt {
    pub fn load(device: &Device, log_n: u32, core: Core) -> Result<Self> {
        let (la, lb) = split(log_n);
        let suffix = core.suffix();
        let threads_a = pass_a_threads(log_n, log_held(log_n, core));
        let (_, threads_b, _) = pass_b_shape(log_n);
        // Integers need no other form between kernels.
        let (internal, sources) = match core {
            Core::Fp64 => ("internal", "doubles"),
            Core::Integer => ("canonical", "integers"),
        };
        let forward_a = |source| {
            Kernel::load(
                device,
                "ntt",
                &format!("forward_a_{la}_{source}_{suffix}"),
                threads_a,
            )
        };
        let inverse_a = |result| {
            Kernel::load(
                device,
                "ntt",
                &format!("inverse_a_{la}_{result}_{suffix}"),
                threads_a,
            )
        };
        let pass_b = |name: String| Kernel::load(device, "ntt", &name, threads_b);
        Ok(Ntt {
            forward_a_canonical: forward_a("canonical")?,
            forward_a_internal: forward_a(internal)?,
            inverse_a: inverse_a("integers")?,
            inverse_a_sources: inverse_a(sources)?,
            forward_b: pass_b(format!("forward_b_{lb}_{suffix}"))?,
            inverse_b: pass_b(format!("inverse_b_{lb}_residues_{suffix}"))?,
            inverse_b_product: pass_b(format!("inverse_b_{lb}_products_{suffix}"))?,
            inverse_b_held: pass_b(format!("inverse_b_{lb}_held_{suffix}"))?,
        })
    }
}

/// What pass A of a forward transform reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
    /// Canonical residues.
    Canonical,
    /// What a base conversion left.
    Internal,
}

/// What pass A of an inverse transform writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// Canonical residues.
    Canonical,
    /// The sources of a base conversion.
    Sources,
}

impl Kernels {
    /// Pass A of the forward transform of `polynomials`.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn forward_a(
        &self,
        queue: &Queue,
        source: Source,
        polynomials: usize,
        arguments: &ForwardA,
    ) -> Result<()> {
        let (tiles, shared) = pass_a_shape(self.log_n, self.core);
        let kernel = match source {
            Source::Canonical => &self.ntt.forward_a_canonical,
            Source::Internal => &self.ntt.forward_a_internal,
        };
        let grid = [tiles, arguments.basis.limbs, polynomials as u32];
        // SAFETY: the caller's promise.
        unsafe { kernel.launch(queue, grid, shared, arguments) }
    }

    /// Pass A of the inverse transform, its last.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn inverse_a(
        &self,
        queue: &Queue,
        result: Outcome,
        polynomials: usize,
        arguments: &InverseA,
    ) -> Result<()> {
        let (tiles, shared) = pass_a_shape(self.log_n, self.core);
        let kernel = match result {
            Outcome::Canonical => &self.ntt.inverse_a,
            Outcome::Sources => &self.ntt.inverse_a_sources,
        };
        let grid = [tiles, arguments.basis.limbs, polynomials as u32];
        // SAFETY: the caller's promise.
        unsafe { kernel.launch(queue, grid, shared, arguments) }
    }

    /// Pass B of the forward transform, its last, to canonical residues.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn forward_b(&self, queue: &Queue, arguments: &PassB) -> Result<()> {
        let (grid, shared) = self.pass_b_grid(arguments.basis.limbs, arguments.polynomials);
        // SAFETY: the caller's promise.
        unsafe { self.ntt.forward_b.launch(queue, grid, shared, arguments) }
    }

    /// Pass B of the inverse transform of the source, times the factor unless that is null.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn inverse_b(&self, queue: &Queue, arguments: &PassB) -> Result<()> {
        let (grid, shared) = self.pass_b_grid(arguments.basis.limbs, arguments.polynomials);
        let kernel = match arguments.factor {
            0 => &self.ntt.inverse_b,
            _ => &self.ntt.inverse_b_product,
        };
        // SAFETY: the caller's promise.
        unsafe { kernel.launch(queue, grid, shared, arguments) }
    }

    /// Pass B of the inverse transform of what the flat inner product left, in place.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn inverse_b_held(&self, queue: &Queue, arguments: &PassB) -> Result<()> {
        let (grid, shared) = self.pass_b_grid(arguments.basis.limbs, arguments.polynomials);
        // SAFETY: the caller's promise.
        unsafe {
            self.ntt
                .inverse_b_held
                .launch(queue, grid, shared, arguments)
        }
    }

    /// The grid of a pass B whose blocks take several polynomials in turn, and so read the
    /// twiddles of their rows once for all, where enough blocks are left to fill the device.
    pub(super) fn pass_b_grid(&self, limbs: u32, polynomials: u32) -> ([u32; 3], u32) {
        let (tiles, _, shared) = pass_b_shape(self.log_n);
        let enough = FILLING_BLOCKS * self.multiprocessors;
        let shares = enough
            .div_ceil((tiles * limbs).max(1))
            .clamp(1, polynomials.max(1));
        ([tiles, limbs, shares.min(polynomials)], shared)
    }
}

/// Blocks of pass B for each multiprocessor that keep it busy to the end.
const FILLING_BLOCKS: u32 = 24;
