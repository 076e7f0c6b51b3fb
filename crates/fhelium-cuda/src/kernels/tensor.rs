//! Clear tensors: kernels/cuda/tensor_*.cu. Loaded one by one when first asked for.

use super::strided::{Strided, THREADS};
use super::{Arguments, Kernel, arguments};
use crate::device::Device;
use crate::error::Result;
use crate::queue::Queue;
use fhelium_ir::DType;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// `Elements` in tensor.cuh; `PLACES` is one more than `OPERANDS`, the result's.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Elements<const OPERANDS: usize, const PLACES: usize> {
    pub operands: [u64; OPERANDS],
    pub target: u64,
    pub operation: u32,
    pub detail: u32,
    pub shape: Strided<PLACES>,
}

/// `Sums` in tensor_sum.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Sums {
    pub source: u64,
    pub target: u64,
    pub results: Strided<2>,
    pub sequence: Strided<1>,
    pub run: Strided<1>,
    pub chunks: u32,
    pub last: u32,
    pub depth: u32,
    pub leaves: u32,
}

/// `Matmul` in tensor_matmul.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Matmul {
    pub left: u64,
    pub right: u64,
    pub target: u64,
    pub left_row: i64,
    pub left_column: i64,
    pub right_row: i64,
    pub right_column: i64,
    pub rows: u32,
    pub inner: u32,
    pub columns: u32,
    pub first: u32,
    pub stack: Strided<3>,
}

// SAFETY: the layout is that of tensor.cuh, whose sizes are asserted there and here; the operands
// and the target come first.
unsafe impl<const OPERANDS: usize, const PLACES: usize> Arguments for Elements<OPERANDS, PLACES> {
    const ADDRESSES: &'static [Range<usize>] = &[0..OPERANDS, OPERANDS..OPERANDS + 1];
}
const _: () = assert!(size_of::<Elements<1, 2>>() == 232);
const _: () = assert!(size_of::<Elements<2, 3>>() == 320);
const _: () = assert!(size_of::<Elements<3, 4>>() == 408);
arguments!(Sums, 496, [source, target]);
arguments!(Matmul, 360, [left, right, target]);

/// The levels of a run's tree that a block adds; `BLOCK_LEVELS` in tensor_sum.cu.
pub(crate) const BLOCK_LEVELS: u32 = 8;
/// Results of a tile along each axis; `TILE` in tensor_matmul.cu.
pub(crate) const TILE: u32 = 16;
/// Threads of a block.
pub(crate) const BLOCK: u32 = THREADS;

/// A kernel of clear tensors: what it does and to which elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TensorKernel {
    /// `binary_*` of tensor_arithmetic.cu, and so on.
    Binary(DType),
    Unary(DType),
    Absolute(DType),
    AnyNegative(DType),
    Cast(DType),
    Clip(DType),
    /// By the bytes of an element.
    Choose(usize),
    Function(DType),
    Power(DType),
    Sum(DType),
    Runs(DType),
    Fold(DType),
    Tiles(DType),
    Dots(DType),
}

impl TensorKernel {
    /// The file and the name.
    fn place(self) -> (&'static str, String) {
        use TensorKernel as K;
        const ARITHMETIC: &str = "tensor_arithmetic";
        const FUNCTIONS: &str = "tensor_functions";
        const SUM: &str = "tensor_sum";
        const MATMUL: &str = "tensor_matmul";
        let (file, family, dtype) = match self {
            K::Choose(bytes) => return (ARITHMETIC, format!("choose_{bytes}")),
            K::Binary(dtype) => (ARITHMETIC, "binary", dtype),
            K::Unary(dtype) => (ARITHMETIC, "unary", dtype),
            K::Absolute(dtype) => (ARITHMETIC, "absolute", dtype),
            K::AnyNegative(dtype) => (ARITHMETIC, "any_negative", dtype),
            K::Cast(dtype) => (ARITHMETIC, "cast", dtype),
            K::Clip(dtype) => (ARITHMETIC, "clip", dtype),
            K::Power(dtype) if dtype.is_integer() => (ARITHMETIC, "power", dtype),
            K::Power(dtype) => (FUNCTIONS, "power", dtype),
            K::Function(dtype) => (FUNCTIONS, "function", dtype),
            K::Sum(dtype) => (SUM, "sum", dtype),
            K::Runs(dtype) => (SUM, "runs", dtype),
            K::Fold(dtype) => (SUM, "fold", dtype),
            K::Tiles(dtype) => (MATMUL, "tiles", dtype),
            K::Dots(dtype) => (MATMUL, "dots", dtype),
        };
        (file, format!("{family}_{dtype}"))
    }
}

/// The kernels that were asked for so far.
#[derive(Default)]
pub(crate) struct TensorKernels {
    loaded: Mutex<HashMap<TensorKernel, Arc<dyn Any + Send + Sync>>>,
}

impl TensorKernels {
    /// Puts a kernel into the queue.
    ///
    /// # Safety
    /// As [`Kernel::launch`]; the arguments are of the kernel's type.
    pub unsafe fn launch<A: Arguments + 'static>(
        &self,
        queue: &Queue,
        kernel: TensorKernel,
        grid: [u32; 3],
        shared: u32,
        arguments: &A,
    ) -> Result<()> {
        let kernel = self.kernel::<A>(queue.device(), kernel)?;
        // SAFETY: the caller's promise.
        unsafe { kernel.launch(queue, grid, shared, arguments) }
    }

    fn kernel<A: Arguments + 'static>(
        &self,
        device: &Device,
        kernel: TensorKernel,
    ) -> Result<Arc<Kernel<A>>> {
        let mut loaded = self.loaded.lock();
        let known = loaded.get(&kernel).cloned();
        if let Some(known) = known.and_then(|known| known.downcast::<Kernel<A>>().ok()) {
            return Ok(known);
        }
        let (file, name) = kernel.place();
        let new = Arc::new(Kernel::<A>::load(device, file, &name, THREADS)?);
        loaded.insert(kernel, new.clone());
        Ok(new)
    }
}
