//! What cannot be shared between cust and fhelium.

use fhelium_cuda::CudaError;
use thiserror::Error;

/// A context, stream or memory that the two sides cannot share, or an error of either.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CustError {
    /// A cust context that is not the one that fhelium works in.
    #[error(
        "the cust context {found:#x} is not the primary context of {device}, {expected:#x}; use \
         cust::context::Context::new for that device, not a context of cust::context::legacy or of \
         another device"
    )]
    NotPrimary {
        /// The device.
        device: String,
        /// The context's handle.
        found: usize,
        /// The primary context's handle.
        expected: usize,
    },
    /// A cust stream of another context.
    #[error(
        "the cust stream belongs to the context {found:#x}, and this work to {device}, whose primary \
         context is {expected:#x}; make the stream while that context is current"
    )]
    OtherStream {
        /// The device.
        device: String,
        /// The handle of the stream's context.
        found: usize,
        /// The primary context's handle.
        expected: usize,
    },
    /// A cust buffer that fhelium's work cannot read.
    #[error(
        "the memory at {address:#x} belongs to the context {found:#x} of device {ordinal}, and this work \
         to {device}; allocate it while that device's primary context is current"
    )]
    OtherMemory {
        /// The device.
        device: String,
        /// The memory's address.
        address: u64,
        /// The handle of its context, 0 if it has none.
        found: usize,
        /// Its device, -1 if the driver does not know it.
        ordinal: i32,
    },
    /// A cust call that failed.
    #[error("{call} failed: {reason}")]
    Cust {
        /// What was being done.
        call: &'static str,
        /// The driver's name for the failure.
        reason: String,
    },
    /// fhelium's side.
    #[error(transparent)]
    Cuda(#[from] CudaError),
}

/// The result of everything here.
pub type Result<T, E = CustError> = std::result::Result<T, E>;
