//! Messages, real coefficients and residues: kernels/cuda/embed.cu and coefficients.cu.

use super::{Arguments, Basis, Kernel, Kernels, arguments};
use crate::device::Device;
use crate::error::Result;
use crate::queue::Queue;

/// `Embedding` in embed.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Embedding {
    pub twist: u64,
    pub roots: u64,
    pub slots: u64,
    pub log_m: u32,
    pub unused: u32,
}

/// `Check` in message.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Check {
    pub report: u64,
    pub bound: f64,
    pub log2_scale: f64,
    pub level: u32,
    pub unused: u32,
}

impl Check {
    /// None: the host has checked the values, or there are none.
    pub const NONE: Check = Check {
        report: 0,
        bound: f64::INFINITY,
        log2_scale: 0.0,
        level: 0,
        unused: 0,
    };
}

/// `Columns` in embed.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Columns {
    pub embedding: Embedding,
    pub source: u64,
    pub target: u64,
    pub check: Check,
    pub count: u32,
    pub complex: u32,
}

/// `Rows` in embed.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Rows {
    pub embedding: Embedding,
    pub source: u64,
    pub target: u64,
    pub factor: f64,
    pub complex: u32,
    pub unused: u32,
}

/// `Round` in coefficients.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Round {
    pub primes: u64,
    pub source: u64,
    pub target: u64,
    pub factor: f64,
    pub basis: Basis,
    pub exponent: i32,
    pub exact: u32,
    pub log_n: u32,
    pub unused: u32,
}

/// `ConstantResidues` in coefficients.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ConstantResidues {
    pub primes: u64,
    pub source: u64,
    pub roots: u64,
    pub target: u64,
    pub check: Check,
    pub mantissa: f64,
    pub exponent: i32,
    pub limbs: u32,
    pub complex: u32,
    pub unused: u32,
}

/// `Constant` in coefficients.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Constant {
    pub residues: u64,
    pub target: u64,
    pub log_n: u32,
    pub unused: u32,
}

/// `Centre` in coefficients.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Centre {
    pub primes: u64,
    pub residues: u64,
    pub target: u64,
    pub inverses: u64,
    pub product: u64,
    pub mantissa: f64,
    pub exponent: i32,
    pub limbs: u32,
    pub log_n: u32,
    pub unused: u32,
}

arguments!(
    Columns,
    88,
    [
        embedding.twist,
        embedding.roots,
        embedding.slots,
        source,
        target,
        check.report
    ]
);
arguments!(
    Rows,
    64,
    [
        embedding.twist,
        embedding.roots,
        embedding.slots,
        source,
        target
    ]
);
arguments!(Round, 64, [primes, source, target]);
arguments!(
    ConstantResidues,
    88,
    [primes, source, roots, target, check.report]
);
arguments!(Constant, 24, [residues, target]);
arguments!(Centre, 64, [primes, residues, target, inverses, product]);

const THREADS: u32 = 256;

/// Columns or rows of a block; `LANES` in embed.cu.
const LANES: u32 = 4;

/// Which way the transform goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Towards {
    Coefficients,
    Slots,
}

pub(super) struct Embed {
    columns_to_coefficients: Kernel<Columns>,
    columns_to_slots: Kernel<Columns>,
    rows_to_coefficients: Kernel<Rows>,
    rows_to_slots: Kernel<Rows>,
    round: Kernel<Round>,
    constant_residues: Kernel<ConstantResidues>,
    constant: Kernel<Constant>,
    centre: Kernel<Centre>,
}

impl Embed {
    pub fn load(device: &Device) -> Result<Self> {
        fn load<A: Arguments>(
            device: &Device,
            stem: &'static str,
            name: &str,
        ) -> Result<Kernel<A>> {
            Kernel::load(device, stem, name, THREADS)
        }
        Ok(Embed {
            columns_to_coefficients: load(device, "embed", "columns_to_coefficients")?,
            columns_to_slots: load(device, "embed", "columns_to_slots")?,
            rows_to_coefficients: load(device, "embed", "rows_to_coefficients")?,
            rows_to_slots: load(device, "embed", "rows_to_slots")?,
            round: load(device, "coefficients", "round_coefficients")?,
            constant_residues: load(device, "coefficients", "residues_of_constant")?,
            constant: load(device, "coefficients", "fill_constant")?,
            centre: load(device, "coefficients", "centre_coefficients")?,
        })
    }
}

impl Kernels {
    /// The first pass of the complex transform of so many items.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn columns(
        &self,
        queue: &Queue,
        towards: Towards,
        items: usize,
        arguments: &Columns,
    ) -> Result<()> {
        let kernel = match towards {
            Towards::Coefficients => &self.embed.columns_to_coefficients,
            Towards::Slots => &self.embed.columns_to_slots,
        };
        let log_m = arguments.embedding.log_m;
        let (points, columns) = (log_m.div_ceil(2), log_m / 2);
        let grid = [(1 << columns) / LANES, items as u32, 1];
        // SAFETY: the caller's promise.
        unsafe { kernel.launch(queue, grid, shared(points), arguments) }
    }

    /// The second pass.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn rows(
        &self,
        queue: &Queue,
        towards: Towards,
        items: usize,
        arguments: &Rows,
    ) -> Result<()> {
        let kernel = match towards {
            Towards::Coefficients => &self.embed.rows_to_coefficients,
            Towards::Slots => &self.embed.rows_to_slots,
        };
        let log_m = arguments.embedding.log_m;
        let (rows, points) = (log_m.div_ceil(2), log_m / 2);
        let grid = [(1 << rows) / LANES, items as u32, 1];
        // SAFETY: the caller's promise.
        unsafe { kernel.launch(queue, grid, shared(points), arguments) }
    }

    /// Real coefficients to residues.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn round(&self, queue: &Queue, items: usize, arguments: &Round) -> Result<()> {
        let tiles = (1 << self.log_n) / (2 * THREADS);
        let grid = [tiles, arguments.basis.limbs, items as u32];
        // SAFETY: the caller's promise.
        unsafe { self.embed.round.launch(queue, grid, 0, arguments) }
    }

    /// The residues of a constant that is on the device.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn constant_residues(
        &self,
        queue: &Queue,
        arguments: &ConstantResidues,
    ) -> Result<()> {
        let grid = [arguments.limbs.div_ceil(THREADS), 1, 1];
        // SAFETY: the caller's promise.
        unsafe {
            self.embed
                .constant_residues
                .launch(queue, grid, 0, arguments)
        }
    }

    /// The limbs of a constant.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn constant(&self, queue: &Queue, limbs: usize, arguments: &Constant) -> Result<()> {
        let grid = [(1 << self.log_n) / (2 * THREADS), limbs as u32, 1];
        // SAFETY: the caller's promise.
        unsafe { self.embed.constant.launch(queue, grid, 0, arguments) }
    }

    /// Residues of coefficients to real coefficients.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn centre(&self, queue: &Queue, items: usize, arguments: &Centre) -> Result<()> {
        let grid = [(1 << self.log_n) / THREADS, items as u32, 1];
        // SAFETY: the caller's promise.
        unsafe { self.embed.centre.launch(queue, grid, 0, arguments) }
    }
}

/// Bytes of shared memory for a block's points, each of 16 bytes.
fn shared(log_points: u32) -> u32 {
    (LANES << log_points) * 16
}
