//! Key switching: kernels/cuda/switch.cu and finish.cu.

use super::{
    Arguments, Basis, Core, Kernel, Kernels, LOG_HELD, Operand, arguments, pass_b_shape, split,
};
use crate::device::Device;
use crate::error::Result;
use crate::queue::Queue;

/// Keys that one launch serves; `KEYS` in switch.cuh.
pub(crate) const KEYS: usize = 16;

/// What is added to a key switch's result; `Added` in switch.cuh.
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
    pub special_products: u64,
    pub basis: Basis,
    pub log_n: u32,
    pub digits: u32,
    pub digit_size: u32,
    pub digit_limbs: u32,
    pub key_limbs: u32,
    pub dropped: u32,
    pub batch: u32,
    pub key_count: u32,
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
    pub own_factor: Operand,
    pub basis: Basis,
    pub log_n: u32,
    pub digits: u32,
    pub digit_size: u32,
    pub digit_limbs: u32,
}

/// `Finish` in finish.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Finish {
    pub primes: u64,
    pub closing: u64,
    pub moved: u64,
    pub kept: u64,
    pub moved_stride: u64,
    pub kept_stride: u64,
    pub target_batch_stride: u64,
    pub target_part_stride: u64,
    pub basis: Basis,
    pub log_n: u32,
    pub batch: u32,
    pub polynomials: u32,
    pub unused: u32,
    pub targets: [u64; KEYS],
    pub galois: [u32; KEYS],
    pub galois_inverse: [u32; KEYS],
}

arguments!(Inner, 344, [primes, extended, own.data, own_factor.data, kept, special, added.a.data, added.b.data, special_products; keys KEYS]);
arguments!(Whole, 104, [primes, extended, own.data, own_factor.data]);
arguments!(Finish, 352, [primes, closing, moved, kept; targets KEYS]);

pub(super) struct Switch {
    inner_fused: Kernel<Inner>,
    inner_flat: Kernel<Inner>,
    inner_whole: Kernel<Inner>,
    whole: Kernel<Whole>,
    finish: Kernel<Finish>,
    /// Shared memory of an inner product, which fetches ahead.
    ahead_shared: u32,
}

/// How an inner product is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Route {
    /// With the second pass of the digits' transforms and the first of the special limbs' inverse:
    /// the fewest words moved.
    Fused,
    /// On digits that are whole: the limbs that are transformed back by rows, with that transform's first
    /// pass, the others residue by residue: for several keys.
    Split,
    /// Residue by residue, on digits that are whole: where the blocks of the others would leave the device
    /// idle.
    Flat,
}

const FLAT_THREADS: u32 = 256;

/// Blocks for each multiprocessor from which on one block does what several could.
const ENOUGH_BLOCKS: u32 = 12;

impl Switch {
    pub fn load(device: &Device, log_n: u32, core: Core) -> Result<Self> {
        let (_, lb) = split(log_n);
        let (_, threads, shared) = pass_b_shape(log_n);
        let suffix = core.suffix();
        // The FP64 core's threads fetch their words of a digit and of both halves of a key ahead.
        let ahead_shared = match core {
            Core::Fp64 => shared + ((3 * threads) << LOG_HELD) * 8,
            Core::Integer => shared,
        };
        fn load<A: Arguments>(device: &Device, name: String, threads: u32) -> Result<Kernel<A>> {
            Kernel::load(device, "switch", &name, threads)
        }
        let finish = format!("finish_{lb}_{suffix}");
        let switch = Switch {
            inner_fused: load(device, format!("inner_{lb}_fused_{suffix}"), threads)?,
            inner_flat: load(device, format!("inner_{lb}_flat_{suffix}"), FLAT_THREADS)?,
            inner_whole: load(device, format!("inner_{lb}_whole_{suffix}"), threads)?,
            whole: load(device, format!("whole_{lb}_{suffix}"), threads)?,
            finish: Kernel::load(device, "finish", &finish, threads)?,
            ahead_shared,
        };
        switch.inner_fused.allow_shared(ahead_shared)?;
        switch.inner_whole.allow_shared(ahead_shared)?;
        Ok(switch)
    }
}

impl Kernels {
    /// The route for so many limbs, of which so many are transformed back, batch elements and keys.
    pub fn route(&self, limbs: usize, special: usize, batch: usize, keys: usize) -> Route {
        let (tiles, _, _) = pass_b_shape(self.log_n);
        let blocks = |limbs: usize| u64::from(tiles) * (limbs * batch * keys) as u64;
        let enough = |blocks, each: u32| blocks >= u64::from(each * self.multiprocessors);
        if keys == 1 && enough(blocks(limbs), ENOUGH_BLOCKS) {
            Route::Fused
        } else if keys > 1 && enough(blocks(special), ENOUGH_BLOCKS / 2) {
            Route::Split
        } else {
            Route::Flat
        }
    }

    /// The inner products of digits with keys, for a batch.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn inner(&self, queue: &Queue, route: Route, arguments: &Inner) -> Result<()> {
        let (row_tiles, _, _) = pass_b_shape(self.log_n);
        let switch = &self.switch;
        let (limbs, batch, keys) = (arguments.basis.limbs, arguments.batch, arguments.key_count);
        let kept = arguments.digit_limbs - arguments.dropped;
        // How many limbs are done by rows, from the last on, and how many residue by residue.
        let (kernel, rows, flat) = match route {
            Route::Fused => (&switch.inner_fused, limbs, 0),
            Route::Split => (&switch.inner_whole, limbs - kept, kept),
            Route::Flat => (&switch.inner_whole, 0, limbs),
        };
        let tiles = (1 << self.log_n) / (2 * FLAT_THREADS);
        let blocks = (tiles * flat * batch).max(1);
        let shares = (ENOUGH_BLOCKS * self.multiprocessors).div_ceil(blocks);
        let flat = [tiles, flat, batch * shares.clamp(1, keys.max(1))];
        let rows = [row_tiles, rows, batch * keys];
        // SAFETY: the caller's promise; a launch of no blocks is none.
        unsafe {
            kernel.launch(queue, rows, switch.ahead_shared, arguments)?;
            switch.inner_flat.launch(queue, flat, 0, arguments)
        }
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

    /// The last step of a mod-down, with its rescale or without.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn finish(&self, queue: &Queue, arguments: &Finish) -> Result<()> {
        let (grid, shared) = self.pass_b_grid(arguments.basis.limbs, arguments.polynomials);
        let (_, threads, _) = pass_b_shape(self.log_n);
        // A thread fetches its words of what was kept ahead.
        let shared = shared + (threads << LOG_HELD) * 8;
        // SAFETY: the caller's promise.
        unsafe { self.switch.finish.launch(queue, grid, shared, arguments) }
    }
}
