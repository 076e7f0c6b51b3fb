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

/// Threads of a block, and the residues of its piece of a limb.
const THREADS: u32 = 128;
const PIECE: u32 = THREADS << LOG_HELD;

/// Blocks for each multiprocessor that pass A is cut into: each share transforms the dropped limb anew.
const FILLING_BLOCKS: u32 = 6;

pub(super) struct RescaleKernels {
    pass_a: Kernel<Rescale>,
    pass_b: Kernel<Rescale>,
}

impl RescaleKernels {
    pub fn load(device: &Device, log_n: u32, core: Core) -> Result<Self> {
        let ((la, lb), suffix) = (split(log_n), core.suffix());
        let load = |name: &str| Kernel::load(device, "rescale", name, THREADS);
        Ok(RescaleKernels {
            pass_a: load(&format!("rescale_a_{la}_{suffix}"))?,
            pass_b: load(&format!("rescale_b_{lb}_{suffix}"))?,
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
        let pieces = (1 << self.log_n) / PIECE;
        let shares = FILLING_BLOCKS * self.multiprocessors / (pieces * polynomials).max(1);
        let chunk = limbs.div_ceil(shares.clamp(1, limbs.max(1)));
        let arguments = Rescale {
            chunk,
            ..*arguments
        };
        let grid_a = [pieces, limbs.div_ceil(chunk), polynomials];
        let grid_b = [pieces, limbs, polynomials];
        // Beside its piece pass A has the twiddles of two transforms, pass B the operand's words.
        let shared_a = (PIECE + ((2 * self.core.twiddle_words()) << la)) * 8;
        let shared_b = pass_b_shape(self.log_n).2 + PIECE * 8;
        // SAFETY: the caller's promise.
        unsafe {
            let kernels = &self.rescale;
            kernels.pass_a.launch(queue, grid_a, shared_a, &arguments)?;
            kernels.pass_b.launch(queue, grid_b, shared_b, &arguments)
        }
    }
}
