//! Rescale: kernels/cuda/rescale.cu.

use super::{Core, Kernel, Kernels, LOG_HELD, Operand, arguments, pass_b_shape, split};
use crate::device::Device;
use crate::error::Result;
use crate::queue::Queue;

/// `Rescale` in rescale.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Rescale {
    pub primes: u64,
    pub scales: u64,
    pub closing: u64,
    pub dropped: u64,
    pub moved: u64,
    pub operand: Operand,
    pub target: u64,
    pub target_batch_stride: u64,
    pub target_part_stride: u64,
    pub log_n: u32,
    pub limbs: u32,
    pub parts: u32,
    pub polynomials: u32,
    pub chunk: u32,
    pub unused: u32,
}

arguments!(
    Rescale,
    112,
    [
        primes,
        scales,
        closing,
        dropped,
        moved,
        operand.data,
        target
    ]
);

/// Threads of a block of pass A, whose columns fill whole sectors of memory.
fn pass_a_threads(log_n: u32) -> u32 {
    if split(log_n).0 <= 8 { 128 } else { 256 }
}

/// Blocks for each multiprocessor that pass A is cut into: each share transforms the dropped limb anew.
const FILLING_BLOCKS: u32 = 6;

pub(super) struct RescaleKernels {
    pass_a: Kernel<Rescale>,
    pass_b: Kernel<Rescale>,
}

impl RescaleKernels {
    pub fn load(device: &Device, log_n: u32, core: Core) -> Result<Self> {
        let ((la, lb), suffix) = (split(log_n), core.suffix());
        let load = |pass, threads| Kernel::load(device, "rescale", pass, threads);
        let (pass_a, pass_b) = (
            format!("rescale_a_{la}_{suffix}"),
            format!("rescale_b_{lb}_{suffix}"),
        );
        Ok(RescaleKernels {
            pass_a: load(&pass_a, pass_a_threads(log_n))?,
            pass_b: load(&pass_b, pass_b_shape(log_n).1)?,
        })
    }
}

impl Kernels {
    /// All of a rescale behind pass B of the dropped limb's inverse transform.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn rescale(&self, queue: &Queue, arguments: &Rescale) -> Result<()> {
        let (la, _) = split(self.log_n);
        let (limbs, polynomials) = (arguments.limbs, arguments.polynomials);
        let piece = pass_a_threads(self.log_n) << LOG_HELD;
        let pieces = (1 << self.log_n) / piece;
        let shares = FILLING_BLOCKS * self.multiprocessors / (pieces * polynomials).max(1);
        let chunk = limbs.div_ceil(shares.clamp(1, limbs.max(1)));
        let arguments = Rescale {
            chunk,
            ..*arguments
        };
        // Beside its piece pass A has the twiddles of two transforms, pass B the operand's words.
        let grid_a = [pieces, limbs.div_ceil(chunk), polynomials];
        let shared_a = (piece + ((2 * self.core.twiddle_words()) << la)) * 8;
        let (rows, threads, shared_b) = pass_b_shape(self.log_n);
        let grid_b = [rows, limbs, polynomials];
        let shared_b = shared_b + (threads << LOG_HELD) * 8;
        // SAFETY: the caller's promise.
        unsafe {
            let kernels = &self.rescale;
            kernels.pass_a.launch(queue, grid_a, shared_a, &arguments)?;
            kernels.pass_b.launch(queue, grid_b, shared_b, &arguments)
        }
    }
}
