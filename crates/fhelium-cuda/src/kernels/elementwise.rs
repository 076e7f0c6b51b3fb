//! Residue by residue: kernels/cuda/elementwise.cu.

use super::{Basis, Core, Kernel, Kernels, Operand, arguments};
use crate::device::Device;
use crate::error::Result;
use crate::queue::Queue;

/// `Binary` in elementwise.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Binary {
    pub primes: u64,
    pub a: Operand,
    pub b: Operand,
    pub target: u64,
    pub target_batch_stride: u64,
    pub target_part_stride: u64,
    pub basis: Basis,
    pub log_n: u32,
    pub parts: u32,
    pub a_parts: u32,
    pub b_parts: u32,
}

/// `Multiple` in elementwise.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Multiple {
    pub primes: u64,
    pub a: Operand,
    pub target: u64,
    pub target_batch_stride: u64,
    pub target_part_stride: u64,
    pub factor: i64,
    pub basis: Basis,
    pub log_n: u32,
    pub parts: u32,
}

arguments!(Binary, 112, [primes, a.data, b.data, target]);
arguments!(Multiple, 88, [primes, a.data, target]);

const THREADS: u32 = 256;
const RESIDUES: u32 = 2 * THREADS;

pub(super) struct Elementwise {
    add: Kernel<Binary>,
    subtract: Kernel<Binary>,
    product: Kernel<Binary>,
    tensor: Kernel<Binary>,
    multiple: Kernel<Multiple>,
}

impl Elementwise {
    pub fn load(device: &Device, core: Core) -> Result<Self> {
        let suffix = core.suffix();
        let load = |name: &str| Kernel::load(device, "elementwise", name, THREADS);
        Ok(Elementwise {
            add: load("add")?,
            subtract: load("subtract")?,
            product: load(&format!("product_{suffix}"))?,
            tensor: load(&format!("tensor_{suffix}"))?,
            multiple: Kernel::load(
                device,
                "elementwise",
                &format!("multiple_{suffix}"),
                THREADS,
            )?,
        })
    }
}

/// What becomes of two operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Combination {
    /// Parts are added; missing ones are zero.
    Add,
    /// Parts are subtracted; missing ones are zero.
    Subtract,
    /// Every part of the first by the one part of the second.
    Product,
    /// Two parts by two parts: three.
    Tensor,
}

impl Kernels {
    /// Two operands to one, for `batch` elements.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn combine(
        &self,
        queue: &Queue,
        combination: Combination,
        batch: usize,
        arguments: &Binary,
    ) -> Result<()> {
        let (kernel, rows) = match combination {
            Combination::Add => (&self.elementwise.add, arguments.parts),
            Combination::Subtract => (&self.elementwise.subtract, arguments.parts),
            Combination::Product => (&self.elementwise.product, arguments.parts),
            Combination::Tensor => (&self.elementwise.tensor, 1),
        };
        let grid = [
            self.pair_tiles(),
            arguments.basis.limbs,
            batch as u32 * rows,
        ];
        // SAFETY: the caller's promise.
        unsafe { kernel.launch(queue, grid, 0, arguments) }
    }

    /// An integer multiple, for `batch` elements.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn multiple(&self, queue: &Queue, batch: usize, arguments: &Multiple) -> Result<()> {
        let grid = [
            self.pair_tiles(),
            arguments.basis.limbs,
            batch as u32 * arguments.parts,
        ];
        // SAFETY: the caller's promise.
        unsafe { self.elementwise.multiple.launch(queue, grid, 0, arguments) }
    }

    fn pair_tiles(&self) -> u32 {
        (1 << self.log_n) / RESIDUES
    }
}
