//! Key switching: kernels/cuda/switch.cu.

use super::{Arguments, Basis, Core, Factor, Kernel, Kernels, Operand, pass_b_shape, split};
use crate::device::Device;
use crate::error::Result;
use crate::queue::Queue;

/// Keys that one launch serves; `KEYS` in switch.cu.
pub(crate) const KEYS: usize = 16;

/// What is added to a key switch's result; `Added` in switch.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Added {
    pub a: Operand,
    pub b: Operand,
    pub parts: u32,
    pub tensor: u32,
}

impl Added {
    pub const NONE: Added = Added {
        a: Operand::NONE,
        b: Operand::NONE,
        parts: 0,
        tensor: 0,
    };
}

/// `Inner` in switch.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Inner {
    pub primes: u64,
    pub extended: u64,
    pub extended_stride: u64,
    pub own: Operand,
    pub own_factor: Operand,
    pub kept: u64,
    pub special: u64,
    pub kept_stride: u64,
    pub special_stride: u64,
    pub added: Added,
    pub p_dropped: Factor,
    pub basis: Basis,
    pub log_n: u32,
    pub digits: u32,
    pub digit_size: u32,
    pub digit_limbs: u32,
    pub key_limbs: u32,
    pub dropped: u32,
    pub batch: u32,
    pub unused: u32,
    pub keys: [u64; KEYS],
}

/// `Whole` in switch.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Whole {
    pub primes: u64,
    pub extended: u64,
    pub extended_stride: u64,
    pub own: Operand,
    pub basis: Basis,
    pub log_n: u32,
    pub digits: u32,
    pub digit_size: u32,
    pub digit_limbs: u32,
}

/// `Finish` in switch.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Finish {
    pub primes: u64,
    pub closing: u64,
    pub moved: u64,
    pub kept: u64,
    pub moved_stride: u64,
    pub kept_stride: u64,
    pub added: Added,
    pub target_batch_stride: u64,
    pub target_part_stride: u64,
    pub basis: Basis,
    pub log_n: u32,
    pub batch: u32,
    pub parts: u32,
    pub polynomials: u32,
    pub scaled: u32,
    pub unused: u32,
    pub targets: [u64; KEYS],
    pub galois: [u32; KEYS],
    pub galois_inverse: [u32; KEYS],
}

// SAFETY: the layouts are those of switch.cu, whose sizes are asserted there and here.
unsafe impl Arguments for Inner {}
// SAFETY: as above.
unsafe impl Arguments for Whole {}
// SAFETY: as above.
unsafe impl Arguments for Finish {}
const _: () = assert!(size_of::<Inner>() == 352);
const _: () = assert!(size_of::<Whole>() == 80);
const _: () = assert!(size_of::<Finish>() == 416);

pub(super) struct Switch {
    inner_transform: Kernel<Inner>,
    inner_product: Kernel<Inner>,
    inner_whole: Kernel<Inner>,
    whole: Kernel<Whole>,
    finish: Kernel<Finish>,
}

/// In which form an inner product finds the digits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Digits {
    /// After pass A; the polynomial is an operand.
    Transform,
    /// After pass A; the polynomial is the product of two operands.
    Product,
    /// Transformed, in held order.
    Whole,
}

impl Switch {
    pub fn load(device: &Device, log_n: u32, core: Core) -> Result<Self> {
        let (_, lb) = split(log_n);
        let (_, threads, _) = pass_b_shape(log_n);
        let suffix = core.suffix();
        let inner = |digits| {
            Kernel::load(
                device,
                "switch",
                &format!("inner_{lb}_{digits}_{suffix}"),
                threads,
            )
        };
        Ok(Switch {
            inner_transform: inner("transform")?,
            inner_product: inner("product")?,
            inner_whole: inner("whole")?,
            whole: Kernel::load(device, "switch", &format!("whole_{lb}_{suffix}"), threads)?,
            finish: Kernel::load(device, "switch", &format!("finish_{lb}_{suffix}"), threads)?,
        })
    }
}

impl Kernels {
    /// The inner products of digits with keys; `items` are batch elements times keys.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn inner(
        &self,
        queue: &Queue,
        digits: Digits,
        items: usize,
        arguments: &Inner,
    ) -> Result<()> {
        let (tiles, _, shared) = pass_b_shape(self.log_n);
        let kernel = match digits {
            Digits::Transform => &self.switch.inner_transform,
            Digits::Product => &self.switch.inner_product,
            Digits::Whole => &self.switch.inner_whole,
        };
        let grid = [tiles, arguments.basis.limbs, items as u32];
        // SAFETY: the caller's promise.
        unsafe { kernel.launch(queue, grid, shared, arguments) }
    }

    /// Transforms the digits of `batch` polynomials, for several keys.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn whole(&self, queue: &Queue, batch: usize, arguments: &Whole) -> Result<()> {
        let (tiles, _, shared) = pass_b_shape(self.log_n);
        let grid = [
            tiles,
            arguments.basis.limbs,
            batch as u32 * arguments.digits,
        ];
        // SAFETY: the caller's promise.
        unsafe { self.switch.whole.launch(queue, grid, shared, arguments) }
    }

    /// The last step of mod-downs and rescales.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn finish(&self, queue: &Queue, arguments: &Finish) -> Result<()> {
        let (grid, shared) = self.pass_b_grid(arguments.basis.limbs, arguments.polynomials);
        // SAFETY: the caller's promise.
        unsafe { self.switch.finish.launch(queue, grid, shared, arguments) }
    }
}
