//! Clear tensors on a device, with the rules and results of the CPU's.
//!
//! What an operation allows, and its result's shape and element type, is what `fhelium-ir`'s table
//! says. Results lie in memory in the order in which the CPU's do, and are equal to them to the
//! last bit, with these exceptions:
//!
//! - `exp`, `log`, `sin`, `cos`, `tanh` and general powers of `f64`, which are CUDA's: within 3 ulp
//!   of the CPU's; of `f32` and `c64`, computed in twice the digits, within 1 ulp;
//! - functions of `c128`, by the CPU's steps from CUDA's functions: within 8 ulp of the result's
//!   magnitude; general complex powers, exponentials of a product, within that times one plus the
//!   product's magnitude;
//! - `matmul` of floats, within the usual bound of a dot product of length k, `k eps sum |a||b|`,
//!   as on the CPU;
//! - which NaN a NaN is.

mod elementwise;
mod evaluate;
mod matmul;
mod power;
mod shape;
mod sum;
mod transfer;

use crate::graph::DeviceValue;
use crate::queue::Buffer;
use fhelium_ir::DType;
use fhelium_ir::layout::row_major;
use std::fmt;
use std::sync::Arc;

/// A clear array on a device, of any rank and of one element type.
///
/// Cloning shares the elements. Operations never change an operand.
#[derive(Clone)]
pub struct Tensor {
    dtype: DType,
    shape: Vec<usize>,
    /// In elements.
    strides: Vec<isize>,
    /// Bytes from the buffer's start to the first element: a part of a complex number starts within
    /// one.
    offset: usize,
    data: Arc<Buffer>,
    /// The one element of a program's constant, which the host knows too.
    constant: Option<i64>,
}

impl Tensor {
    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The lengths of the axes, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The distance in elements from one index to the next along each axis; may be negative.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The number of axes.
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The bytes of all elements.
    pub fn nbytes(&self) -> usize {
        self.len() * self.dtype.size()
    }

    /// Whether the elements lie row-major and next to each other.
    pub fn is_contiguous(&self) -> bool {
        let places = self.shape.iter().zip(self.strides.iter());
        let mut expected = 1;
        self.is_empty()
            || places.rev().all(|(&extent, &stride)| {
                let fits = extent == 1 || stride == expected;
                expected *= extent as isize;
                fits
            })
    }

    /// The first element's address on the device.
    pub fn address(&self) -> u64 {
        self.data.address() + self.offset as u64
    }

    /// The memory that holds the elements, and perhaps others.
    pub fn buffer(&self) -> &Arc<Buffer> {
        &self.data
    }

    /// The same tensor, of a buffer that holds its elements and no others: so it is like every other
    /// of its layout, whatever memory either is a view of.
    pub fn trimmed(&self) -> Tensor {
        // In bytes, from the first element down to the lowest and up to the highest.
        let (mut below, mut above) = (0, 0);
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            let reach = extent.saturating_sub(1) * stride.unsigned_abs() * self.dtype.size();
            match stride < 0 {
                true => below += reach,
                false => above += reach,
            }
        }
        let bytes = below + above + self.dtype.size();
        let (start, below, bytes) = match self.is_empty() {
            true => (0, 0, 0),
            false => (self.offset - below, below, bytes),
        };
        let words = bytes.div_ceil(size_of::<u64>());
        if start == 0 && words == self.data.words() {
            return self.clone();
        }
        Tensor {
            offset: below,
            data: Arc::new(self.data.part(start, words)),
            ..self.clone()
        }
    }

    /// Elements of the buffer at a byte of it.
    fn view(&self, dtype: DType, shape: Vec<usize>, strides: Vec<isize>, offset: usize) -> Tensor {
        Tensor {
            dtype,
            shape,
            strides,
            offset,
            data: self.data.clone(),
            constant: None,
        }
    }

    /// Elements of memory from elsewhere, at a byte of it.
    pub(crate) fn shared(
        dtype: DType,
        shape: Vec<usize>,
        strides: Vec<isize>,
        offset: usize,
        data: Arc<Buffer>,
    ) -> Tensor {
        Tensor {
            dtype,
            shape,
            strides,
            offset,
            data,
            constant: None,
        }
    }

    /// Row-major elements that are a buffer's first.
    fn row_major(dtype: DType, shape: &[usize], data: Buffer) -> Tensor {
        Tensor {
            dtype,
            shape: shape.to_vec(),
            strides: row_major(shape),
            offset: 0,
            data: Arc::new(data),
            constant: None,
        }
    }

    /// The strides of this tensor repeated to a shape to which it broadcasts.
    fn spread(&self, shape: &[usize]) -> Vec<isize> {
        let missing = shape.len() - self.ndim();
        let stride = |axis: usize| match axis.checked_sub(missing) {
            Some(own) if self.shape[own] == shape[axis] => self.strides[own],
            _ => 0,
        };
        (0..shape.len()).map(stride).collect()
    }
}

impl DeviceValue for Tensor {
    fn buffer(&self) -> &Arc<Buffer> {
        &self.data
    }

    fn with_buffer(&self, buffer: Arc<Buffer>) -> Self {
        Tensor {
            data: buffer,
            ..self.clone()
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        self.dtype == other.dtype
            && self.shape == other.shape
            && self.strides == other.strides
            && self.offset == other.offset
            && self.constant == other.constant
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Tensor({} {:?} on {})",
            self.dtype,
            self.shape,
            self.data.queue().device()
        )
    }
}
