//! Rescale: kernels/cuda/rescale.cu.

use super::{
    Core, Kernel, Kernels, LOG_HELD, LOG_MANY, PRIME_WORDS, arguments, pass_b_shape, split,
};
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
    pub ready: u64,
    pub source: u64,
    pub target: u64,
    pub source_stride: u64,
    pub target_stride: u64,
    pub log_n: u32,
    pub limbs: u32,
    pub cut: Cut,
}

arguments!(
    Rescale,
    96,
    [
        primes, scales, closing, dropped, moved, ready, source, target
    ]
);

/// Threads of a block of pass A, whose columns fill whole sectors of memory.
fn threads_a(log_n: u32) -> u32 {
    if split(log_n).0 == 5 { 64 } else { 128 }
}

/// Residues of a piece, those of a block.
fn piece(log_n: u32) -> u32 {
    threads_a(log_n) << LOG_MANY
}

/// Threads for each multiprocessor that pass A is cut for: each share transforms the dropped limb anew.
const FILLING_THREADS: u32 = 384;

/// Per cent of the shared memory that a multiprocessor can have, for all kernels of a rescale, so that blocks of the
/// last step begin where those of pass A still run. On Hopper, rounded up to what it can share out, it is enough
/// for as many blocks of the last step as have registers.
const SHARED_PERCENT: i32 = 80;

/// Limbs of a share, at most: their primes are in shared memory, of which every launch may have 48 KiB.
const MOST_LIMBS: u32 = 128;

/// Words of `Scale` in ntt.cuh.
const SCALE_WORDS: u32 = 4;

/// Bytes of shared memory of a block of pass A, for a share of so many limbs: a piece, the twiddles of two
/// transforms, the limbs' primes and the dropped one with its scale.
fn shared_a(log_n: u32, core: Core, limbs: u32) -> u32 {
    let twiddles = (2 * core.twiddle_words()) << split(log_n).0;
    (piece(log_n) + twiddles + (limbs + 1) * PRIME_WORDS + SCALE_WORDS) * 8
}

/// How a rescale's passes A are cut: the pieces of a polynomial, and the shares of its limbs.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Cut {
    pub pieces: u32,
    pub shares: u32,
}

pub(super) struct RescaleKernels {
    inverse_b: Kernel<Rescale>,
    pass_a: Kernel<Rescale>,
    pass_b: Kernel<Rescale>,
}

impl RescaleKernels {
    pub fn load(device: &Device, log_n: u32, core: Core) -> Result<Self> {
        let ((la, lb), suffix) = (split(log_n), core.suffix());
        let load = |pass, threads| Kernel::load(device, "rescale", pass, threads);
        let threads_b = pass_b_shape(log_n).1;
        let kernels = RescaleKernels {
            inverse_b: load(&format!("rescale_inverse_b_{lb}_{suffix}"), threads_b)?,
            pass_a: load(&format!("rescale_a_{la}_{suffix}"), threads_a(log_n))?.beside(),
            pass_b: load(&format!("rescale_b_{lb}_{suffix}"), threads_b)?.beside(),
        };
        for kernel in [&kernels.inverse_b, &kernels.pass_a, &kernels.pass_b] {
            kernel.prefer_shared(SHARED_PERCENT)?;
        }
        Ok(kernels)
    }
}

impl Kernels {
    /// How a rescale of so many polynomials to so many limbs is cut.
    pub fn rescale_cut(&self, limbs: u32, polynomials: u32) -> Cut {
        let pieces = (1 << self.log_n) / piece(self.log_n);
        let threads = FILLING_THREADS * self.multiprocessors;
        let filling = threads / (threads_a(self.log_n) * pieces * polynomials).max(1);
        Cut {
            pieces,
            shares: filling.clamp(limbs.div_ceil(MOST_LIMBS), limbs),
        }
    }

    /// A rescale, cut as [`rescale_cut`](Self::rescale_cut) says.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn rescale(
        &self,
        queue: &Queue,
        polynomials: u32,
        arguments: &Rescale,
    ) -> Result<()> {
        let (rows, threads, shared) = pass_b_shape(self.log_n);
        let grid_a = [arguments.cut.pieces, arguments.cut.shares, polynomials];
        let most = arguments.limbs.div_ceil(arguments.cut.shares);
        let shared_a = shared_a(self.log_n, self.core, most);
        // Beside its rows the last step has the operand's words.
        let shared_b = shared + (threads << LOG_HELD) * 8;
        let kernels = &self.rescale;
        // SAFETY: the caller's promise.
        unsafe {
            kernels
                .inverse_b
                .launch(queue, [rows, 1, polynomials], shared, arguments)?;
            kernels.pass_a.launch(queue, grid_a, shared_a, arguments)?;
            let grid_b = [rows, arguments.limbs, polynomials];
            kernels.pass_b.launch(queue, grid_b, shared_b, arguments)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces have no bound of their own, and no launch asks for more shared memory than it has.
    #[test]
    fn pieces_cover_a_limb_and_fit() {
        for log_n in 10..=17 {
            assert_eq!((1 << log_n) % piece(log_n), 0, "2^{log_n}");
            let columns = piece(log_n) >> split(log_n).0;
            assert!((4..=1 << split(log_n).1).contains(&columns), "2^{log_n}");
            for core in [Core::Fp64, Core::Integer] {
                assert!(shared_a(log_n, core, MOST_LIMBS) <= 48 << 10, "2^{log_n}");
            }
        }
    }
}
