//! DLPack: arrays shared with other libraries of the process, without a copy.
//!
//! The structures are those of DLPack 1.0 (github.com/dmlc/dlpack, include/dlpack/dlpack.h), both
//! with a version and from before there was one. What the array API standard leaves to producer and
//! consumer is kept here: who waits for which stream, and until when memory stays.

use crate::context::Context;
use crate::error::{CudaError, Result};
use crate::queue::{Queue, captured_stream};
use crate::tensor::Tensor;
use fhelium_ir::DType;
use fhelium_ir::layout::row_major;
use std::any::Any;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

/// The version written here; a reader takes every one with the same major number.
const VERSION: Version = Version { major: 1, minor: 0 };
/// `kDLCUDA`.
pub const CUDA: i32 = 2;
const COPIED: u64 = 2;
/// The legacy default stream, as the standard numbers streams.
const LEGACY_STREAM: usize = 1;

#[derive(Clone, Copy)]
#[repr(C)]
struct Version {
    major: u32,
    minor: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct DeviceRef {
    kind: i32,
    index: i32,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct Array {
    data: *mut c_void,
    device: DeviceRef,
    ndim: i32,
    dtype: DataType,
    shape: *mut i64,
    /// Null for row-major elements.
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Unversioned {
    array: Array,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Unversioned)>,
}

#[repr(C)]
struct Versioned {
    version: Version,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    array: Array,
}

/// Codes and bits of the element types.
const DTYPES: [(u8, u8, DType); 7] = [
    (0, 32, DType::I32),
    (0, 64, DType::I64),
    (2, 32, DType::F32),
    (2, 64, DType::F64),
    (5, 64, DType::C64),
    (5, 128, DType::C128),
    (6, 8, DType::Bool),
];

impl DataType {
    fn of(dtype: DType) -> Self {
        let known = DTYPES.iter().find(|(_, _, known)| *known == dtype);
        let &(code, bits, _) = known.expect("every element type is listed");
        DataType {
            code,
            bits,
            lanes: 1,
        }
    }

    fn dtype(self) -> Option<DType> {
        let known = DTYPES
            .iter()
            .find(|(code, bits, _)| (*code, *bits) == (self.code, self.bits));
        known.filter(|_| self.lanes == 1).map(|known| known.2)
    }

    /// As numpy names it.
    fn name(self) -> String {
        let kind = match self.code {
            0 => "int",
            1 => "uint",
            2 => "float",
            4 => "bfloat",
            5 => "complex",
            6 => "bool",
            _ => "opaque",
        };
        format!("{kind}{} x {}", self.bits, self.lanes)
    }
}

/// Another library's array, which is given back when this is dropped.
#[derive(Debug)]
pub struct Shared {
    managed: Kind,
    lender: Option<Arc<dyn Any + Send + Sync>>,
}

#[derive(Debug)]
enum Kind {
    Unversioned(NonNull<Unversioned>),
    Versioned(NonNull<Versioned>),
}

// SAFETY: the structures are only read here, and DLPack's deleters may be called from any thread.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// Takes over a `DLManagedTensor`.
    ///
    /// # Safety
    /// The pointer is to a live one, which nobody else takes over.
    pub unsafe fn from_unversioned(managed: NonNull<c_void>) -> Self {
        Kind::Unversioned(managed.cast()).into()
    }

    /// Takes over a `DLManagedTensorVersioned`.
    ///
    /// # Safety
    /// As [`from_unversioned`](Self::from_unversioned).
    pub unsafe fn from_versioned(managed: NonNull<c_void>) -> Self {
        Kind::Versioned(managed.cast()).into()
    }

    /// Has [`Tensor::lender`] tell this of every tensor that shares the memory.
    pub fn lent_by(mut self, lender: Arc<dyn Any + Send + Sync>) -> Self {
        self.lender = Some(lender);
        self
    }

    fn array(&self) -> Result<&Array> {
        match &self.managed {
            // SAFETY: live until dropped.
            Kind::Unversioned(managed) => Ok(unsafe { &managed.as_ref().array }),
            Kind::Versioned(managed) => {
                // SAFETY: live until dropped; every version starts with its number and deleter.
                let version = unsafe { (*managed.as_ptr()).version };
                if version.major != VERSION.major {
                    return Err(refused(
                        format!("DLPack {}.{}", version.major, version.minor),
                        "version 1; pass max_version=(1, 0) to __dlpack__",
                    ));
                }
                // SAFETY: live until dropped, and of a version with this layout.
                Ok(unsafe { &managed.as_ref().array })
            }
        }
    }
}

impl From<Kind> for Shared {
    fn from(managed: Kind) -> Self {
        Shared {
            managed,
            lender: None,
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        match self.managed {
            Kind::Unversioned(managed) => {
                // SAFETY: taken over, and given back once.
                unsafe {
                    if let Some(deleter) = managed.as_ref().deleter {
                        deleter(managed.as_ptr());
                    }
                }
            }
            Kind::Versioned(managed) => {
                // SAFETY: as above; the deleter's place is the same in every version.
                unsafe {
                    if let Some(deleter) = (*managed.as_ptr()).deleter {
                        deleter(managed.as_ptr());
                    }
                }
            }
        }
    }
}

fn refused(found: String, expected: &'static str) -> CudaError {
    CudaError::Dlpack { found, expected }
}

/// Gives an array back once the queue's work on it has run.
struct Keeper {
    queue: Arc<Queue>,
    shared: Shared,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.queue.wait_for_uses();
    }
}

impl Context {
    /// Another library's array on this device as a tensor that shares its memory.
    ///
    /// The producer must have been told to order this context's work behind its own:
    /// `__dlpack__(stream=...)` with [`Queue::after_lender`]. The array is given back when the last
    /// view of the tensor is dropped, which waits for this context's work.
    ///
    /// # Errors
    /// [`CudaError::OtherDevice`], and [`CudaError::Dlpack`] for what no tensor can be.
    pub fn import_dlpack(&self, shared: Shared) -> Result<Tensor> {
        let array = shared.array()?;
        let device = array.device;
        if (device.kind, device.index) != (CUDA, self.device().index() as i32) {
            let found = match device.kind {
                1 => "the CPU".to_owned(),
                CUDA => format!("cuda:{}", device.index),
                kind => format!("DLPack's device type {kind}"),
            };
            return Err(CudaError::OtherDevice {
                operation: "from_dlpack",
                what: "array",
                found,
                expected: self.device().to_string(),
            });
        }
        let dtype = array.dtype.dtype().ok_or_else(|| {
            refused(
                format!("elements of {}", array.dtype.name()),
                "bool, int32, int64, float32, float64, complex64 or complex128; cast it first",
            )
        })?;
        // SAFETY: the producer's lists have an entry for each axis; the one for strides may lack.
        let list = |start: *mut i64| unsafe {
            (array.ndim > 0 && !start.is_null())
                .then(|| std::slice::from_raw_parts(start.cast_const(), array.ndim as usize))
        };
        let malformed = || refused(format!("{} axes", array.ndim), "a shape of 0 or more each");
        let given = list(array.shape).unwrap_or_default();
        if given.len() != usize::try_from(array.ndim).map_err(|_| malformed())? {
            return Err(malformed());
        }
        let extents = given.iter().map(|&extent| usize::try_from(extent));
        let shape: Vec<usize> = extents
            .collect::<std::result::Result<_, _>>()
            .map_err(|_| malformed())?;
        let strides = match list(array.strides) {
            Some(strides) => strides.iter().map(|&stride| stride as isize).collect(),
            None => row_major(&shape),
        };
        let first = (array.data as u64).wrapping_add(array.byte_offset);
        if first % dtype.size() as u64 != 0 {
            return Err(refused(
                format!("{dtype} elements at address {first:#x}"),
                "an address that is a multiple of an element's bytes; copy the array first",
            ));
        }
        // From the lowest element to the highest.
        let (mut lowest, mut highest) = (0i128, 0i128);
        for (&extent, &stride) in shape.iter().zip(&strides) {
            let reach = (extent as i128 - 1).max(0) * stride as i128;
            lowest += reach.min(0);
            highest += reach.max(0);
        }
        let size = dtype.size() as i128;
        let bytes = match shape.contains(&0) {
            true => Some(0),
            false => usize::try_from((highest - lowest + 1) * size).ok(),
        };
        let (bytes, before) = bytes
            .zip(usize::try_from(-lowest * size).ok())
            .ok_or_else(malformed)?;
        let before = if bytes == 0 { 0 } else { before };
        let start = first - before as u64;
        let words = bytes.div_ceil(size_of::<u64>());
        let keeper = Keeper {
            queue: self.queue().clone(),
            shared,
        };
        // SAFETY: the producer's array lies there until it is given back.
        let data = unsafe { self.queue().borrow(start, words, Box::new(keeper)) };
        Ok(Tensor::shared(
            dtype,
            shape,
            strides,
            before,
            Arc::new(data),
        ))
    }
}

impl Queue {
    /// Has `ask` ask another library to put the next work of the stream that it is given behind its
    /// own, by `__dlpack__(stream=...)`: then its memory can be used in this queue's order. This
    /// queue's device is the current one meanwhile, as some libraries want.
    ///
    /// # Errors
    /// [`CudaError::Forked`], [`CudaError::Driver`].
    pub fn after_lender<R>(&self, ask: impl FnOnce(usize) -> R) -> Result<R> {
        let _current = self.device().enter()?;
        // A capture must not be left for another stream.
        if let Some(stream) = captured_stream(self.device().index()) {
            return Ok(ask(stream));
        }
        let answer = ask(self.stream().cu_stream() as usize);
        self.lead_place()?;
        Ok(answer)
    }
}

impl Tensor {
    /// What the memory was [lent by](Shared::lent_by), if it is another library's.
    pub fn lender(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        let keeper = self.buffer().keeper()?.downcast_ref::<Keeper>()?;
        keeper.shared.lender.as_ref()
    }
}

/// A tensor that another library holds.
struct Exported {
    tensor: Tensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
    /// The stream on which it is used, if it was told.
    stream: Option<usize>,
}

impl Exported {
    fn array(&mut self) -> Array {
        Array {
            data: self.tensor.address() as *mut c_void,
            device: DeviceRef {
                kind: CUDA,
                index: self.tensor.buffer().queue().device().index() as i32,
            },
            ndim: self.shape.len() as i32,
            dtype: DataType::of(self.tensor.dtype()),
            shape: self.shape.as_mut_ptr(),
            strides: self.strides.as_mut_ptr(),
            byte_offset: 0,
        }
    }

    /// Gives the memory back once the other library's work on it has run.
    fn release(self) {
        let queue = self.tensor.buffer().queue();
        let ordered = match self.stream {
            Some(LEGACY_STREAM) => queue.follow_stream(LEGACY_STREAM),
            // Another stream may be gone by now, or never was told.
            _ => queue.wait_for_device(),
        };
        if ordered.is_err() {
            // Better lost than written while it is read.
            std::mem::forget(self);
        }
    }
}

impl Tensor {
    /// This tensor as a `DLManagedTensorVersioned`, or a `DLManagedTensor`, that shares its memory
    /// with another library, whose work on `stream` comes after what is in the queue.
    ///
    /// Streams are numbered as by the array API standard: 1 is the legacy default stream, 2 the
    /// thread's, larger ones are handles. Without one nothing is ordered. `copied` says to the other
    /// library that nobody else sees the memory.
    ///
    /// # Errors
    /// [`CudaError::Capture`] for a value of a recording, [`CudaError::Driver`].
    ///
    /// # Safety
    /// `stream` is a live stream of the device.
    pub unsafe fn export_dlpack(
        &self,
        versioned: bool,
        stream: Option<usize>,
        copied: bool,
    ) -> Result<NonNull<c_void>> {
        let queue = self.buffer().queue();
        queue.refuse_placeholder(self.buffer())?;
        if let Some(stream) = stream {
            queue.lead_stream(stream)?;
        }
        let mut exported = Box::new(Exported {
            tensor: self.clone(),
            shape: self.shape().iter().map(|&extent| extent as i64).collect(),
            strides: self.strides().iter().map(|&stride| stride as i64).collect(),
            stream,
        });
        let array = exported.array();
        let manager = Box::into_raw(exported).cast::<c_void>();
        let managed = if versioned {
            // Marked read-only, PyTorch and CuPy would warn at each result.
            let flags = if copied { COPIED } else { 0 };
            let managed = Versioned {
                version: VERSION,
                manager,
                deleter: Some(delete_versioned),
                flags,
                array,
            };
            Box::into_raw(Box::new(managed)).cast()
        } else {
            let managed = Unversioned {
                array,
                manager,
                deleter: Some(delete_unversioned),
            };
            Box::into_raw(Box::new(managed)).cast()
        };
        NonNull::new(managed).ok_or_else(|| refused("no memory".to_owned(), "some"))
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut Versioned) {
    // SAFETY: made by `export_dlpack`, and called once.
    unsafe { Box::from_raw(Box::from_raw(managed).manager.cast::<Exported>()) }.release();
}

unsafe extern "C" fn delete_unversioned(managed: *mut Unversioned) {
    // SAFETY: as above.
    unsafe { Box::from_raw(Box::from_raw(managed).manager.cast::<Exported>()) }.release();
}
