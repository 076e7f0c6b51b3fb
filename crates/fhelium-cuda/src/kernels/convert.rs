//! Base conversion: kernels/cuda/convert.cu and matrix.cuh.

use super::{Basis, Core, Factor, Kernel, Kernels, arguments};
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
    pub rest_factors: u64,
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

arguments!(ModUp, 88, [primes, source, target, factors]);
arguments!(
    ModDown,
    112,
    [primes, source, target, factors, rest_factors]
);

const THREADS: u32 = 128;

/// Blocks for each multiprocessor that a conversion is cut into, if it has as many targets.
const FILLING_BLOCKS: u32 = 6;

/// Shared memory that a block's rows of factors may take.
const ROWS_BYTES: u32 = 40 << 10;

/// Targets of a tile of a product of matrices, pieces of a step of it, steps of the matrix unit, and
/// the most pieces whose sums are exact.
pub(crate) const TILE_TARGETS: usize = 8;
pub(crate) const STEP: usize = 4;
const GROUP: usize = 4;
const MOST_PIECES: usize = 32;

pub(super) struct Convert {
    mod_up: Kernel<ModUp>,
    mod_up_matrix: bool,
    mod_down: Kernel<ModDown>,
    mod_down_matrix: bool,
}

/// Pieces of a conversion as a product of matrices, filled up: two of each source,
/// the quotient, and for a mod-down two of the rescale's rest; four steps are one of the matrix unit. `None` where they are too many, or
/// where there are no such matrices.
pub(crate) fn matrix_pieces(core: Core, sources: usize, rest: bool) -> Option<usize> {
    let pieces = 2 * sources + 1 + 2 * usize::from(rest);
    (core == Core::Fp64 && pieces <= MOST_PIECES).then(|| pieces.next_multiple_of(GROUP * STEP))
}

/// The source primes that a kernel without matrices holds in registers: the least number that is
/// compiled for and suffices; 0, for any number, where none does.
fn compiled_for(core: Core, sources: usize) -> usize {
    let compiled: &[usize] = match core {
        Core::Fp64 => &[],
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
        let mod_up_matrix = matrix_pieces(core, digit_size, false).is_some();
        let mod_down_matrix = matrix_pieces(core, specials, true).is_some();
        let name = |kind: &str, matrix, sources| match matrix {
            true => format!("{kind}_matrix_{suffix}"),
            false => format!("{kind}_{}_{suffix}", compiled_for(core, sources)),
        };
        let mod_up = name("mod_up", mod_up_matrix, digit_size);
        let mod_down = name("mod_down", mod_down_matrix, specials);
        Ok(Convert {
            mod_up: Kernel::load(device, "convert", &mod_up, THREADS)?,
            mod_up_matrix,
            mod_down: Kernel::load(device, "convert", &mod_down, THREADS)?,
            mod_down_matrix,
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
        let shape = self.shape(
            self.convert.mod_up_matrix,
            rows,
            arguments.basis.limbs,
            arguments.row,
        );
        arguments.chunk = shape.chunk;
        // SAFETY: the caller's promise; the shared memory holds the chunk's rows or the pieces.
        unsafe {
            self.convert
                .mod_up
                .launch(queue, shape.grid, shape.shared, &arguments)
        }
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
        let shape = self.shape(
            self.convert.mod_down_matrix,
            polynomials as u32,
            arguments.basis.limbs,
            arguments.row,
        );
        arguments.chunk = shape.chunk;
        // SAFETY: the caller's promise; the shared memory holds the chunk's rows and one more, the
        // dropped prime's, or the pieces.
        unsafe {
            self.convert
                .mod_down
                .launch(queue, shape.grid, shape.shared, &arguments)
        }
    }

    /// How a conversion of `rows` polynomials is cut: into tiles of coefficients and chunks of
    /// targets, of as many as leave enough blocks to fill the device.
    fn shape(&self, matrix: bool, rows: u32, limbs: u32, row: u32) -> Shape {
        let (coefficients, targets, most) = if matrix {
            (THREADS, limbs.div_ceil(TILE_TARGETS as u32), u32::MAX)
        } else {
            (2 * THREADS, limbs, (ROWS_BYTES / (row * 8)).max(2) - 1)
        };
        let tiles = (1 << self.log_n) / coefficients;
        let enough = (FILLING_BLOCKS * self.multiprocessors).div_ceil((tiles * rows).max(1));
        let chunk = targets
            .div_ceil(enough.clamp(1, targets.max(1)))
            .clamp(1, most);
        // Pieces have a row for each coefficient of the block, and padding.
        let shared = if matrix {
            row * (THREADS + 4) * 8
        } else {
            (chunk + 1) * row * 8
        };
        Shape {
            grid: [tiles, targets.div_ceil(chunk), rows],
            chunk,
            shared,
        }
    }
}

struct Shape {
    grid: [u32; 3],
    chunk: u32,
    shared: u32,
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
        assert_eq!(quotient_place(Core::Integer, 5, 3), 8);
        assert_eq!(quotient_place(Core::Fp64, 17, 4), 4);
        assert_eq!(matrix_pieces(Core::Fp64, 15, false), Some(32));
        assert_eq!(matrix_pieces(Core::Fp64, 15, true), None);
    }
}
