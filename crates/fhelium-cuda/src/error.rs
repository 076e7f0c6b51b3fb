//! Why a device refuses something.

use fhelium_ckks::{CkksError, ErrorKind, StateError};
use fhelium_ir::{DType, InferError};
use thiserror::Error;

/// A device, driver or memory that is missing, or an operation that the scheme refuses.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum CudaError {
    /// No NVIDIA driver on this machine.
    #[error(
        "no NVIDIA driver: {reason}; install the driver (570 or newer is best, 525 the oldest), or use \
         device=\"cpu\""
    )]
    NoDriver {
        /// The loader's words.
        reason: String,
    },
    /// A toolkit's stub that hides the driver.
    #[error(
        "{library} is a CUDA toolkit's stub to link with and hides the NVIDIA driver; take its folder out of \
         LD_LIBRARY_PATH and of the loader's configuration, or use device=\"cpu\""
    )]
    StubDriver {
        /// The stub's path, or its name.
        library: String,
    },
    /// A driver that knows only an older CUDA.
    #[error(
        "the NVIDIA driver is too old: it supports CUDA {}.{}, and these kernels need {}.{}; update the \
         driver, or use device=\"cpu\"",
        found / 1000, found % 1000 / 10, needed / 1000, needed % 1000 / 10
    )]
    DriverTooOld {
        /// The driver's CUDA version, 1000 times the major plus 10 times the minor.
        found: i32,
        /// The oldest that serves.
        needed: i32,
    },
    /// A driver without a device.
    #[error(
        "the NVIDIA driver is there, but no CUDA device: {reason}; check nvidia-smi and \
         CUDA_VISIBLE_DEVICES, or use device=\"cpu\""
    )]
    NoDevice {
        /// What the driver said.
        reason: String,
    },
    /// A device index beyond those there are.
    #[error("no device cuda:{index}: this machine has {count}, cuda:0 to cuda:{}", count - 1)]
    NoSuchDevice {
        /// The index asked for.
        index: usize,
        /// The devices there are.
        count: usize,
    },
    /// A device that none of the built kernels runs on.
    #[error(
        "{device} has compute capability {}.{} and this build holds no kernels for it (only {built}); \
         use a build that names it, or device=\"cpu\"",
        capability / 10, capability % 10
    )]
    NoImage {
        /// The device's name.
        device: String,
        /// Ten times the major compute capability plus the minor.
        capability: u32,
        /// The targets that the build holds.
        built: String,
    },
    /// A process that was forked from one that used a GPU.
    #[error(
        "this process was forked from one that used a GPU, and cannot use it: what is on the GPU is the \
         parent's; start workers with multiprocessing.get_context(\"spawn\"), or fork before the first use"
    )]
    Forked,
    /// A build that was made without kernels.
    #[error(
        "this fhelium was built without CUDA kernels (with FHELIUM_CUDA=off, or where their compiler does \
         not exist); install a build that has them, or use device=\"cpu\""
    )]
    BuiltWithoutKernels,
    /// A driver call that failed.
    #[error("{call} failed: {reason}")]
    Driver {
        /// What was being done.
        call: &'static str,
        /// The driver's name for the failure.
        reason: String,
    },
    /// Memory that the device, or the limit set for it, does not have.
    #[error(
        "out of memory on {device}: {asked} bytes asked for, {used} in use here, {free} free{}",
        if *limited { " under the limit that was set" } else { "" }
    )]
    OutOfMemory {
        /// The device.
        device: String,
        /// Bytes asked for.
        asked: usize,
        /// Bytes in use through this context.
        used: usize,
        /// Bytes free.
        free: usize,
        /// Whether the limit is the user's.
        limited: bool,
    },
    /// A value of another device or context.
    #[error(
        "{operation}: the {what} is on {found}, the operation on {expected}; move it there first, with \
         .to(device)"
    )]
    OtherDevice {
        /// The operation.
        operation: &'static str,
        /// Which operand.
        what: &'static str,
        /// Where it is.
        found: String,
        /// Where it should be.
        expected: String,
    },
    /// A stream that no event orders with the operations.
    #[error(
        "on_stream: the stream is of another device or context than the engine's, {device}; give one that \
         was made while that device was the current one"
    )]
    OtherStream {
        /// The device of the operations.
        device: String,
    },
    /// Something that a graph cannot hold.
    #[error("{operation} cannot be part of a captured graph: {remedy}")]
    Capture {
        /// The operation.
        operation: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// Values that a graph was not captured with.
    #[error(
        "replay: the graph was captured with {what}: {expected}, and got {found}; capture again for \
         these"
    )]
    Binding {
        /// What differs.
        what: String,
        /// What was given.
        found: String,
        /// What it was captured with.
        expected: String,
    },
    /// A core that cannot serve the parameters.
    #[error(
        "the FP64 core serves primes below 2^49.5, and these parameters have one of {bits:.1} bits; leave \
         the core to be chosen, or ask for the 64-bit core"
    )]
    CoreTooNarrow {
        /// The largest prime's bits.
        bits: f64,
    },
    /// An operation on clear tensors that its operands or attributes do not allow.
    #[error("{operation}: {error}")]
    Tensor {
        /// The operation.
        operation: &'static str,
        /// What was found and what was expected.
        error: InferError,
    },
    /// A tensor that its memory does not hold.
    #[error(
        "a tensor of {dtype} with shape {shape:?} and strides {strides:?} of {found} bytes: expected \
         {expected}"
    )]
    TensorLayout {
        /// The element type.
        dtype: DType,
        /// The shape.
        shape: Vec<usize>,
        /// The strides, in elements.
        strides: Vec<isize>,
        /// The bytes there are.
        found: usize,
        /// What would do.
        expected: String,
    },
    /// Another library's array that is no tensor here.
    #[error("from_dlpack: found {found}, expected {expected}")]
    Dlpack {
        /// What the array is.
        found: String,
        /// What would do, and how to get there.
        expected: &'static str,
    },
    /// Operands that the scheme refuses.
    #[error(transparent)]
    Ckks(#[from] CkksError),
}

impl From<StateError> for CudaError {
    fn from(error: StateError) -> Self {
        CudaError::Ckks(error.into())
    }
}

impl CudaError {
    /// The class of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            CudaError::OutOfMemory { .. } => ErrorKind::OutOfMemory,
            CudaError::CoreTooNarrow { .. } => ErrorKind::Parameter,
            CudaError::Ckks(error) => error.kind(),
            CudaError::Tensor { error, .. } => error.kind(),
            CudaError::TensorLayout { .. } | CudaError::Dlpack { .. } => ErrorKind::Value,
            _ => ErrorKind::Device,
        }
    }
}

/// The result of everything that a device can refuse.
pub type Result<T, E = CudaError> = std::result::Result<T, E>;

/// Names the call that a driver's error came from.
pub(crate) fn driver(call: &'static str) -> impl Fn(cudarc::driver::DriverError) -> CudaError {
    move |error| CudaError::Driver {
        call,
        reason: format!("{:?}", error.0),
    }
}
