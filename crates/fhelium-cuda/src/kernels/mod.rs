//! The kernels of one ring degree and core, with their launch shapes.
//!
//! Each kernel takes one structure by value; the modules here mirror those of kernels/cuda. What
//! is checked before a launch: the caller ([`ops`](crate::ops)) sizes every buffer from the
//! parameters and the operands' states, which were checked when the values were made.

mod batch;
mod convert;
mod elementwise;
mod embed;
mod encrypt;
mod fused;
mod keys;
mod ntt;
mod rescale;
mod sample;
mod strided;
mod switch;
mod tensor;

pub(crate) use batch::BatchSum;
pub(crate) use convert::{Conversion, ModDown, ModUp, STEP, quotient_place};
pub(crate) use elementwise::{Binary, Combination, Multiple};
pub(crate) use embed::{
    Centre, Check, Columns, Constant, ConstantResidues, Embedding, Round, Rows, Towards,
};
pub(crate) use encrypt::{Decrypt, Encrypt};
pub(crate) use fused::Fused;
pub(crate) use keys::{HoldKey, MakeKey};
pub(crate) use ntt::{ForwardA, InverseA, Outcome, PassB, Source};
pub(crate) use rescale::Rescale;
pub(crate) use sample::{Lift, Small, Uniform};
pub(crate) use strided::{Fill, Move, Strided, pieces, single};
pub(crate) use switch::{Added, Finish, Inner, KEYS, Route, Whole};
pub(crate) use tensor::{
    BLOCK, BLOCK_LEVELS, Elements, Matmul, Sums, TILE, TensorKernel, TensorKernels,
};

use crate::device::Device;
use crate::error::{Result, driver};
use crate::queue::{Action, Function, Queue, Shape};
use cudarc::driver::CudaFunction;
use cudarc::driver::sys::CUfunction_attribute_enum;
use std::marker::PhantomData;
use std::ops::Range;

/// Which arithmetic runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Core {
    /// Double precision with fused multiply-add, for primes below 2^49.5, fast on data-centre GPUs.
    Fp64,
    /// 64-bit integers, for primes below 2^61 and for GPUs with slow double precision.
    Integer,
}

impl Core {
    /// The core's name in kernels' names.
    fn suffix(self) -> &'static str {
        match self {
            Core::Fp64 => "fast",
            Core::Integer => "wide",
        }
    }

    /// Words of a twiddle.
    fn twiddle_words(self) -> u32 {
        match self {
            Core::Fp64 => 1,
            Core::Integer => 2,
        }
    }
}

/// A structure that a kernel takes; [`arguments`] states it.
///
/// # Safety
/// The layout is that of the kernel's structure, in whole words, without padding that matters, and
/// every address in it is named.
pub(crate) unsafe trait Arguments: Copy {
    /// The words that hold addresses of memory: a recording binds them anew.
    const ADDRESSES: &'static [Range<usize>];
}

/// States that a structure is its kernel's, with its bytes, the fields that are addresses, and
/// behind a semicolon those that are arrays of so many addresses.
macro_rules! arguments {
    (
        $type:ty, $bytes:literal,
        [$($($address:ident).+),* $(; $($array:ident $count:ident),*)?]
    ) => {
        // SAFETY: the layout is that of the file's structure, whose size is asserted there and here.
        unsafe impl $crate::kernels::Arguments for $type {
            const ADDRESSES: &'static [std::ops::Range<usize>] = &[
                $($crate::kernels::words(std::mem::offset_of!($type, $($address).+), 1),)*
                $($($crate::kernels::words(std::mem::offset_of!($type, $array), $count),)*)?
            ];
        }
        const _: () = assert!(size_of::<$type>() == $bytes && $bytes % 8 == 0);
    };
}
pub(crate) use arguments;

/// The words of so many addresses from a byte of a structure on.
pub(crate) const fn words(offset: usize, count: usize) -> Range<usize> {
    assert!(offset.is_multiple_of(size_of::<u64>()));
    offset / size_of::<u64>()..offset / size_of::<u64>() + count
}

/// Which prime limb i is of; `Basis` in core.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Basis {
    pub first: u32,
    pub split: u32,
    pub skip: u32,
    pub limbs: u32,
}

/// Polynomials of an operand; `Operand` in core.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Operand {
    pub data: u64,
    pub batch_stride: u64,
    pub part_stride: u64,
}

impl Operand {
    pub const NONE: Operand = Operand {
        data: 0,
        batch_stride: 0,
        part_stride: 0,
    };

    /// The operand from its part `part` on.
    pub fn part(self, part: u64) -> Self {
        self.words(part * self.part_stride)
    }

    /// The operand from so many words on.
    pub fn words(self, words: u64) -> Self {
        Operand {
            data: self.data + words * size_of::<u64>() as u64,
            ..self
        }
    }
}

/// A fixed factor; `Factor` in core.cuh.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub(crate) struct Factor {
    pub w: u64,
    pub shoup: u64,
}

/// A loaded kernel.
pub(crate) struct Kernel<A> {
    function: CudaFunction,
    threads: u32,
    beside: bool,
    arguments: PhantomData<fn(A)>,
}

impl<A: Arguments> Kernel<A> {
    fn load(device: &Device, stem: &'static str, name: &str, threads: u32) -> Result<Self> {
        let function = device.function(stem, name)?;
        Ok(Kernel {
            function,
            threads,
            beside: false,
            arguments: PhantomData,
        })
    }

    /// The kernel as one whose blocks have something to do before the launch before is over: they fetch tables,
    /// or wait for parts of it only.
    fn beside(self) -> Self {
        Kernel {
            beside: true,
            ..self
        }
    }

    /// Lets the kernel have more shared memory than the 48 KiB that every device gives.
    fn allow_shared(&self, bytes: u32) -> Result<()> {
        self.set(
            CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            bytes as i32,
        )
    }

    /// Asks for so many per cent of the shared memory that a multiprocessor can have; the rest is cache. Blocks
    /// of kernels that are given different shares are never side by side there.
    fn prefer_shared(&self, percent: i32) -> Result<()> {
        self.set(
            CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
            percent,
        )
    }

    fn set(&self, attribute: CUfunction_attribute_enum, value: i32) -> Result<()> {
        self.function
            .set_attribute(attribute, value)
            .map_err(driver("asking for shared memory"))
    }

    /// Puts the kernel into the queue with a grid of blocks and bytes of shared memory.
    ///
    /// # Safety
    /// Every address in the arguments is of a live buffer of this queue, large enough for what the
    /// kernel reads and writes with these strides, limbs and this grid.
    unsafe fn launch(
        &self,
        queue: &Queue,
        grid: [u32; 3],
        shared: u32,
        arguments: &A,
    ) -> Result<()> {
        if grid.contains(&0) {
            return Ok(());
        }
        let action = Action::Launch(Shape {
            function: Function(self.function.cu_function()),
            grid,
            threads: self.threads,
            shared,
            beside: self.beside,
        });
        // SAFETY: the structure is whole words of plain data, as `Arguments` promises.
        let words = unsafe {
            let words = size_of::<A>() / size_of::<u64>();
            std::slice::from_raw_parts(std::ptr::from_ref(arguments).cast::<u64>(), words)
        };
        // SAFETY: the caller's promise; the kernel is loaded as long as the device is open.
        unsafe { queue.submit(action, words, A::ADDRESSES.iter().cloned().flatten()) }
    }
}

/// All kernels of one ring degree and core.
pub(crate) struct Kernels {
    pub log_n: u32,
    core: Core,
    multiprocessors: u32,
    ntt: ntt::Ntt,
    convert: convert::Convert,
    rescale: rescale::RescaleKernels,
    switch: switch::Switch,
    elementwise: elementwise::Elementwise,
    fused: fused::FusedKernels,
    keys: keys::Keys,
    batch: batch::Batch,
    movers: strided::Movers,
    sample: sample::Sample,
    encryption: encrypt::Encryption,
    embed: embed::Embed,
}

impl Kernels {
    /// Loads them; `sources` are the numbers of primes that a mod-up and a mod-down convert from, and
    /// `conversions` says how.
    pub fn load(
        device: &Device,
        log_n: u32,
        core: Core,
        sources: (usize, usize),
        conversions: (Conversion, Conversion),
    ) -> Result<Self> {
        Ok(Kernels {
            log_n,
            core,
            multiprocessors: device.multiprocessors(),
            ntt: ntt::Ntt::load(device, log_n, core)?,
            convert: convert::Convert::load(device, log_n, core, sources, conversions)?,
            rescale: rescale::RescaleKernels::load(device, log_n, core)?,
            switch: switch::Switch::load(device, log_n, core)?,
            elementwise: elementwise::Elementwise::load(device, core)?,
            fused: fused::FusedKernels::load(device, core)?,
            keys: keys::Keys::load(device, log_n, core)?,
            batch: batch::Batch::load(device)?,
            movers: strided::Movers::load(device)?,
            sample: sample::Sample::load(device)?,
            encryption: encrypt::Encryption::load(device, core)?,
            embed: embed::Embed::load(device)?,
        })
    }

    pub fn core(&self) -> Core {
        self.core
    }
}

/// The layers of pass A and of pass B: about half each, with few kinds of pass B to compile.
pub(crate) fn split(log_n: u32) -> (u32, u32) {
    let log_b = match log_n {
        ..=11 => 5,
        12..=15 => 7,
        _ => 8,
    };
    (log_n - log_b, log_b)
}

/// Residues that a thread of a transform holds, as a power of two; `LOG_HELD` in ntt.cuh.
pub(crate) const LOG_HELD: u32 = 3;

/// The same where a thread holds more; `LOG_MANY` in ntt.cuh.
pub(crate) const LOG_MANY: u32 = 4;

/// Words of a prime's constants; `PRIME_WORDS` in core.cuh.
const PRIME_WORDS: u32 = 8;

/// The layers of pass B's last step, whose twiddles have a form of their own; `row_step` in ntt.cuh.
pub(crate) const LAST_STEP: u32 = 2;

/// Columns of a tile of pass A.
fn pass_a_columns(log_n: u32) -> u32 {
    match split(log_n).0 {
        5 => 32,
        6 => 16,
        _ => 8,
    }
}

/// Threads of a block of pass A that hold so many residues each, as a power of two.
fn pass_a_threads(log_n: u32, log_held: u32) -> u32 {
    pass_a_columns(log_n) << (split(log_n).0 - log_held)
}

/// Tiles of pass A and the bytes of shared memory of a block, twiddles counted.
fn pass_a_shape(log_n: u32, core: Core) -> (u32, u32) {
    let ((la, lb), columns) = (split(log_n), pass_a_columns(log_n));
    let words = (columns + core.twiddle_words()) << la;
    ((1 << lb) / columns, words * 8)
}

/// Tiles of pass B, whose rows are padded and followed by their twiddles (`ROW_WORDS` in rows.cuh), threads of
/// a block and its bytes of shared memory.
fn pass_b_shape(log_n: u32) -> (u32, u32, u32) {
    let (la, lb) = split(log_n);
    let threads = 128;
    let rows = threads >> (lb - LOG_HELD);
    let row_words = (1 << lb) + if lb < 7 { 6 } else { 32 } + (1 << (lb - 1));
    ((1 << la) / rows, threads, rows * row_words * 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernels index rows and columns by block without a bound: the grid must fit exactly.
    #[test]
    fn tiles_cover_a_limb_exactly() {
        for log_n in 10..=17 {
            let (la, lb) = split(log_n);
            for core in [Core::Fp64, Core::Integer] {
                let (tiles, shared) = pass_a_shape(log_n, core);
                for held in [LOG_HELD, ntt::log_held(log_n, core)] {
                    let threads = pass_a_threads(log_n, held);
                    assert_eq!((tiles * threads) << held, 1 << log_n, "pass A of 2^{log_n}");
                    assert!((5..=9).contains(&la) && threads <= 1024 && shared <= 48 << 10);
                }
            }
            let (tiles, threads, shared) = pass_b_shape(log_n);
            assert_eq!(
                (tiles * threads) << LOG_HELD,
                1 << log_n,
                "pass B of 2^{log_n}"
            );
            assert!((5..=8).contains(&lb) && shared <= 48 << 10);
        }
    }
}
