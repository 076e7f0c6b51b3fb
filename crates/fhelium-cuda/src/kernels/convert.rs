//! Base conversion: kernels/cuda/convert.cu.

use super::{Arguments, Basis, Core, Factor, Kernel, Kernels};
use crate::device::Device;
use crate::error::Result;
use crate::queue::Queue;

/// `ModUp` in convert.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ModUp {
    pub primes: u64,
    pub source: u64,
    pub target: u64,
    pub factors: u64,
    pub source_stride: u64,
    pub target_stride: u64,
    pub basis: Basis,
    pub log_n: u32,
    pub digits: u32,
    pub digit_size: u32,
    pub digit_limbs: u32,
    pub chunk: u32,
    pub row: u32,
}

/// `ModDown` in convert.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ModDown {
    pub primes: u64,
    pub source: u64,
    pub target: u64,
    pub factors: u64,
    pub source_stride: u64,
    pub target_stride: u64,
    pub p_inverse: Factor,
    pub basis: Basis,
    pub log_n: u32,
    pub special_first: u32,
    pub specials: u32,
    pub dropped: u32,
    pub chunk: u32,
    pub row: u32,
}

// SAFETY: the layouts are those of convert.cu, whose sizes are asserted there and here.
unsafe impl Arguments for ModUp {}
// SAFETY: as above.
unsafe impl Arguments for ModDown {}
const _: () = assert!(size_of::<ModUp>() == 88);
const _: () = assert!(size_of::<ModDown>() == 104);

const THREADS: u32 = 128;
const COEFFICIENTS: u32 = 2 * THREADS;

/// Blocks for each multiprocessor that a conversion is cut into, if it has as many targets.
const FILLING_BLOCKS: u32 = 6;

/// Shared memory that a block's rows of factors may take.
const ROWS_BYTES: u32 = 40 << 10;

pub(super) struct Convert {
    mod_up: Kernel<ModUp>,
    mod_down: Kernel<ModDown>,
}

/// The source primes that a kernel holds in registers: the least number that is compiled for and
/// suffices; 0, for any number, where none does.
fn compiled_for(core: Core, sources: usize) -> usize {
    let compiled: &[usize] = match core {
        Core::Fp64 => &[1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16],
        Core::Integer => &[2, 4, 8],
    };
    compiled
        .iter()
        .copied()
        .find(|&count| count >= sources)
        .unwrap_or(0)
}

/// Where a row of factors has that of the quotient v, for a digit of `sources` primes under a
/// kernel for digits of up to `most`; the row's words are two more than that of a whole digit.
pub(crate) fn quotient_place(core: Core, most: usize, sources: usize) -> usize {
    match compiled_for(core, most) {
        0 => sources,
        count => count,
    }
}

/// Words in a row of factors.
pub(crate) fn row_words(core: Core, most: usize) -> usize {
    quotient_place(core, most, most) + 2
}

impl Convert {
    pub fn load(device: &Device, core: Core, digit_size: usize, specials: usize) -> Result<Self> {
        let suffix = core.suffix();
        let name = |kind: &str, sources| format!("{kind}_{}_{suffix}", compiled_for(core, sources));
        Ok(Convert {
            mod_up: Kernel::load(device, "convert", &name("mod_up", digit_size), THREADS)?,
            mod_down: Kernel::load(device, "convert", &name("mod_down", specials), THREADS)?,
        })
    }
}

impl Kernels {
    /// Every digit of `polynomials` to the other primes.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn mod_up(
        &self,
        queue: &Queue,
        polynomials: usize,
        arguments: &ModUp,
    ) -> Result<()> {
        let mut arguments = *arguments;
        let rows = polynomials as u32 * arguments.digits;
        arguments.chunk = self.chunk(rows, arguments.basis.limbs, arguments.row);
        let grid = [
            self.tiles(),
            arguments.basis.limbs.div_ceil(arguments.chunk),
            rows,
        ];
        let shared = arguments.chunk * arguments.row * 8;
        // SAFETY: the caller's promise; the shared memory holds the chunk's rows.
        unsafe { self.convert.mod_up.launch(queue, grid, shared, &arguments) }
    }

    /// What the mod-down of `polynomials` subtracts.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn mod_down(
        &self,
        queue: &Queue,
        polynomials: usize,
        arguments: &ModDown,
    ) -> Result<()> {
        let mut arguments = *arguments;
        let rows = polynomials as u32;
        arguments.chunk = self.chunk(rows, arguments.basis.limbs, arguments.row);
        let grid = [
            self.tiles(),
            arguments.basis.limbs.div_ceil(arguments.chunk),
            rows,
        ];
        // The dropped prime's row lies behind the chunk's.
        let shared = (arguments.chunk + 1) * arguments.row * 8;
        // SAFETY: the caller's promise; the shared memory holds the chunk's rows and one more.
        unsafe {
            self.convert
                .mod_down
                .launch(queue, grid, shared, &arguments)
        }
    }

    fn tiles(&self) -> u32 {
        (1 << self.log_n) / COEFFICIENTS
    }

    /// Targets that a block serves: all, unless more blocks are needed to fill the device or the
    /// rows would not fit.
    fn chunk(&self, rows: u32, targets: u32, row: u32) -> u32 {
        let blocks = (self.tiles() * rows).max(1);
        let chunks = (FILLING_BLOCKS * self.multiprocessors)
            .div_ceil(blocks)
            .clamp(1, targets.max(1));
        targets
            .div_ceil(chunks)
            .clamp(1, (ROWS_BYTES / (row * 8)).max(2) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table laid out for another kernel than the one that reads it would give wrong residues.
    #[test]
    fn rows_fit_the_kernel_that_is_chosen() {
        for core in [Core::Fp64, Core::Integer] {
            for most in 1..=40 {
                for sources in 1..=most {
                    let place = quotient_place(core, most, sources);
                    assert!(place >= sources && place + 2 <= row_words(core, most));
                }
            }
        }
        assert_eq!(quotient_place(Core::Fp64, 9, 4), 10);
        assert_eq!(quotient_place(Core::Fp64, 17, 4), 4);
    }
}
