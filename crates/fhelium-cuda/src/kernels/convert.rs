//! Base conversion: kernels/cuda/convert.cu, convert_a.cu and convert_columns.cu.

use super::{
    Arguments, Basis, Core, Factor, ForwardA, InverseA, Kernel, Kernels, LOG_HELD, Outcome,
    PRIME_WORDS, Source, arguments, pass_a_shape, pass_a_threads, split,
};
use crate::device::Device;
use crate::error::Result;
use crate::queue::Queue;
use fhelium_ckks::Parameters;

/// `ModUp` in convert.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ModUp {
    pub primes: u64,
    pub source: u64,
    pub target: u64,
    pub factors: u64,
    pub scales: u64,
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

/// `ModDown` in convert.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ModDown {
    pub primes: u64,
    pub source: u64,
    pub target: u64,
    pub factors: u64,
    pub rest_factors: u64,
    pub scales: u64,
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

arguments!(ModUp, 96, [primes, source, target, factors, scales]);
arguments!(
    ModDown,
    120,
    [primes, source, target, factors, rest_factors, scales]
);

const THREADS: u32 = 128;

/// Blocks for each multiprocessor that a conversion is cut into, if it has as many targets.
const FILLING_BLOCKS: u32 = 6;

/// Shared memory that a block's rows of factors may take.
const ROWS_BYTES: u32 = 40 << 10;

/// Targets of a tile of a product of matrices, pieces of a step of it, and the most pieces whose sums are
/// exact.
const TILE_TARGETS: usize = 8;
pub(crate) const STEP: usize = 4;
const MOST_PIECES: usize = 32;

pub(super) struct Convert {
    mod_up: Kernel<ModUp>,
    up: Conversion,
    mod_down: Kernel<ModDown>,
    down: Conversion,
}

/// How a base conversion is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// Together with pass A of the transforms of what it gives, residue by residue.
    Fused,
    /// As a product of matrices with so many pieces, together with pass A of the inverse transforms of its
    /// sources and of the transforms of what it gives, in so many bytes of shared memory a block.
    Columns { pieces: usize, shared: u32 },
    /// As a product of matrices with so many pieces.
    Matrix(usize),
    /// Residue by residue.
    Rows,
}

impl Conversion {
    /// From so many sources, for `rows` polynomials or digits at once.
    ///
    /// A fused conversion reads its sources for every target anew: with more of them that takes longer than
    /// what it saves. One of columns has a block for a whole multiprocessor.
    pub fn of(
        device: &Device,
        parameters: &Parameters,
        core: Core,
        (sources, rows): (usize, usize),
        unfused: bool,
    ) -> Self {
        if core == Core::Fp64 && sources <= MOST_FUSED_SOURCES && !unfused {
            return Conversion::Fused;
        }
        let Some(pieces) = matrix_pieces(core, sources) else {
            return Conversion::Rows;
        };
        let primes = parameters.moduli().len() + parameters.special_moduli().len();
        let shared = columns_shared(pieces as u32, primes as u32);
        let fits = columns_shape(parameters.log_n()).is_some_and(|tiles| {
            let filled = 2 * tiles as usize * rows >= device.multiprocessors() as usize;
            filled && shared <= device.block_shared()
        });
        if fits && !unfused {
            Conversion::Columns { pieces, shared }
        } else {
            Conversion::Matrix(pieces)
        }
    }

    /// Pieces of a multiplier, of products of matrices.
    pub fn pieces(self) -> Option<usize> {
        match self {
            Conversion::Columns { pieces, .. } | Conversion::Matrix(pieces) => Some(pieces),
            Conversion::Fused | Conversion::Rows => None,
        }
    }

    /// Words in a row of factors, or pieces of a multiplier, for so many sources.
    pub fn row(self, core: Core, sources: usize) -> usize {
        self.pieces().unwrap_or_else(|| row_words(core, sources))
    }

    /// Whether its kernel transforms the sources back, and what it gives.
    fn transforms(self) -> (bool, bool) {
        match self {
            Conversion::Columns { .. } => (true, true),
            Conversion::Fused => (false, true),
            Conversion::Matrix(_) | Conversion::Rows => (false, false),
        }
    }
}

/// Coefficients of a limb in a block of whole columns, and its threads.
const COLUMN_THREADS: u32 = 1024;

/// Tiles of such columns, where a row of them fills whole sectors of memory.
fn columns_shape(log_n: u32) -> Option<u32> {
    let (la, lb) = split(log_n);
    (la <= 8).then(|| (1 << lb) / (COLUMN_THREADS >> la))
}

/// Bytes of shared memory of such a block, which keeps for each group of threads a row of a target and its
/// twiddles and multipliers, then all primes' constants, and a row of each source, of which two pieces are;
/// `Near` in convert_columns.cu.
fn columns_shared(pieces: u32, primes: u32) -> u32 {
    let group = COLUMN_THREADS + 8 + 256 + 2 * pieces + 8;
    (TILE_TARGETS as u32 * group + PRIME_WORDS * primes + pieces / 2 * (COLUMN_THREADS + 4)) * 8
}

/// The most primes that are converted from in one kernel with a transform.
const MOST_FUSED_SOURCES: usize = 3;

/// Pieces of a conversion as a product of matrices: two of each source and of one more, which the
/// quotient and a rescale's rest make together, filled up to two steps of the matrix unit.
/// `None` where they are too many, or where there are no such matrices.
fn matrix_pieces(core: Core, sources: usize) -> Option<usize> {
    let pieces = 2 * (sources + 1);
    (core == Core::Fp64 && pieces <= MOST_PIECES).then(|| pieces.next_multiple_of(2 * STEP))
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
fn row_words(core: Core, most: usize) -> usize {
    quotient_place(core, most, most) + 2
}

impl Convert {
    /// The kernels for conversions from so many primes at a ring degree.
    pub fn load(
        device: &Device,
        log_n: u32,
        core: Core,
        sources: (usize, usize),
        (up, down): (Conversion, Conversion),
    ) -> Result<Self> {
        fn load<A: Arguments>(
            device: &Device,
            log_n: u32,
            kind: &str,
            (core, sources): (Core, usize),
            conversion: Conversion,
        ) -> Result<Kernel<A>> {
            let suffix = core.suffix();
            match conversion {
                Conversion::Fused => {
                    let (la, _) = split(log_n);
                    let threads = pass_a_threads(log_n, LOG_HELD);
                    let name = format!("{kind}_a_{la}_{suffix}");
                    Kernel::load(device, "convert_a", &name, threads)
                }
                Conversion::Columns { .. } => {
                    let (la, _) = split(log_n);
                    let name = format!("{kind}_columns_{la}_{suffix}");
                    let kernel = Kernel::load(device, "convert_columns", &name, COLUMN_THREADS)?;
                    // The device's contexts share the kernel, and have different needs.
                    kernel.allow_shared(device.block_shared())?;
                    Ok(kernel)
                }
                Conversion::Matrix(_) => {
                    let name = format!("{kind}_matrix_{suffix}");
                    Kernel::load(device, "convert", &name, THREADS)
                }
                Conversion::Rows => {
                    let name = format!("{kind}_{}_{suffix}", compiled_for(core, sources));
                    Kernel::load(device, "convert", &name, THREADS)
                }
            }
        }
        Ok(Convert {
            mod_up: load(device, log_n, "mod_up", (core, sources.0), up)?,
            up,
            mod_down: load(device, log_n, "mod_down", (core, sources.1), down)?,
            down,
        })
    }
}

impl Kernels {
    /// Pass A of the inverse transforms of `polynomials`, every digit to the other primes, and pass A of the
    /// transforms there.
    ///
    /// # Safety
    /// As [`Kernel::launch`]; `inverse` is of what the conversion reads, `forward` of what it writes.
    pub unsafe fn mod_up(
        &self,
        queue: &Queue,
        polynomials: usize,
        inverse: &InverseA,
        arguments: &ModUp,
        forward: &ForwardA,
    ) -> Result<()> {
        let rows = polynomials * arguments.digits as usize;
        // The last digit may have the fewest primes, and so the most targets.
        let last = arguments.digit_limbs - (arguments.digits - 1) * arguments.digit_size;
        let targets = arguments.basis.limbs - last;
        let (limbs, row) = (arguments.basis.limbs, arguments.row);
        let shape = self.conversion(self.convert.up, rows as u32, limbs, targets, row);
        let arguments = ModUp {
            chunk: shape.chunk,
            ..*arguments
        };
        let transforms = ((polynomials, inverse), (rows, forward));
        let kernel = (self.convert.up, &self.convert.mod_up);
        // SAFETY: the caller's promise.
        unsafe { self.convert(queue, kernel, &shape, &arguments, transforms) }
    }

    /// Pass A of the inverse transforms of the special limbs of `polynomials`, what their mod-down
    /// subtracts, and pass A of its transforms.
    ///
    /// # Safety
    /// As [`Kernel::launch`]; `inverse` is of what the conversion reads, `forward` of what it writes.
    pub unsafe fn mod_down(
        &self,
        queue: &Queue,
        polynomials: usize,
        inverse: &InverseA,
        arguments: &ModDown,
        forward: &ForwardA,
    ) -> Result<()> {
        let (limbs, row) = (arguments.basis.limbs, arguments.row);
        let shape = self.conversion(self.convert.down, polynomials as u32, limbs, limbs, row);
        let arguments = ModDown {
            chunk: shape.chunk,
            ..*arguments
        };
        let transforms = ((polynomials, inverse), (polynomials, forward));
        let kernel = (self.convert.down, &self.convert.mod_down);
        // SAFETY: the caller's promise.
        unsafe { self.convert(queue, kernel, &shape, &arguments, transforms) }
    }

    /// A conversion, and those of the transforms before and behind it, of so many polynomials, that its
    /// kernel leaves out.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    unsafe fn convert<A: Arguments>(
        &self,
        queue: &Queue,
        (conversion, kernel): (Conversion, &Kernel<A>),
        shape: &Shape,
        arguments: &A,
        ((sources, inverse), (results, forward)): ((usize, &InverseA), (usize, &ForwardA)),
    ) -> Result<()> {
        let (back, forth) = conversion.transforms();
        // SAFETY: the caller's promise; the shared memory is what the kernel's form takes.
        unsafe {
            if !back {
                self.inverse_a(queue, Outcome::Sources, sources, inverse)?;
            }
            kernel.launch(queue, shape.grid, shape.shared, arguments)?;
            if !forth {
                self.forward_a(queue, Source::Internal, results, forward)?;
            }
        }
        Ok(())
    }

    /// The launch of a conversion of `rows` polynomials to `targets` of so many limbs.
    fn conversion(
        &self,
        conversion: Conversion,
        rows: u32,
        limbs: u32,
        targets: u32,
        row: u32,
    ) -> Shape {
        match conversion {
            Conversion::Fused => {
                let (tiles, shared) = pass_a_shape(self.log_n, self.core);
                Shape {
                    grid: [tiles, targets, rows],
                    chunk: 1,
                    shared,
                }
            }
            Conversion::Columns { shared, .. } => {
                let tiles = columns_shape(self.log_n).unwrap_or_default();
                let targets = targets.div_ceil(TILE_TARGETS as u32);
                // Each share transforms the sources anew: only for places that would be empty.
                let shares = self.multiprocessors / (tiles * rows).max(1);
                let chunk = targets.div_ceil(shares.clamp(1, targets.max(1)));
                Shape {
                    grid: [tiles, targets.div_ceil(chunk), rows],
                    chunk,
                    shared,
                }
            }
            Conversion::Matrix(_) => self.shape(true, rows, targets, row),
            Conversion::Rows => self.shape(false, rows, limbs, row),
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
        // A source, of which two pieces are, has a word for each coefficient of the block, and padding;
        // behind the rows is the dropped prime's.
        let shared = if matrix {
            row / 2 * (THREADS + 4) * 8
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
        assert_eq!(matrix_pieces(Core::Fp64, 7), Some(16));
        assert_eq!(matrix_pieces(Core::Fp64, 15), Some(32));
        assert_eq!(matrix_pieces(Core::Fp64, 16), None);
    }
}
