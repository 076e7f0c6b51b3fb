//! The tensor itself.

use super::TensorError;
use super::element::{Element, for_any, with_type};
use super::layout::check_size;
use fhelium_ir::DType;
use fhelium_ir::layout::row_major;
use ndarray::{ArcArray, Array, ArrayViewMut, Axis, Dimension, IxDyn, ShapeBuilder};
use num_complex::Complex;

/// A clear array of any rank and of one element type.
///
/// Cloning shares the elements. Operations never change an operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Tensor {
    /// Truth values.
    Bool(ArcArray<bool, IxDyn>),
    /// 32-bit signed integers.
    I32(ArcArray<i32, IxDyn>),
    /// 64-bit signed integers.
    I64(ArcArray<i64, IxDyn>),
    /// 32-bit floats.
    F32(ArcArray<f32, IxDyn>),
    /// 64-bit floats.
    F64(ArcArray<f64, IxDyn>),
    /// Complex numbers of two 32-bit floats.
    C64(ArcArray<Complex<f32>, IxDyn>),
    /// Complex numbers of two 64-bit floats.
    C128(ArcArray<Complex<f64>, IxDyn>),
}

impl Tensor {
    /// A tensor without axes, of one element.
    pub fn scalar<T: Element>(value: T) -> Tensor {
        T::into_tensor(ArcArray::from_elem(IxDyn(&[]), value))
    }

    /// A tensor of row-major elements.
    ///
    /// # Errors
    /// [`TensorError::Layout`] if `data` does not hold exactly the elements of `shape`.
    pub fn from_vec<T: Element>(data: Vec<T>, shape: &[usize]) -> Result<Tensor, TensorError> {
        let len = data.len();
        match ArcArray::from_shape_vec(IxDyn(shape), data) {
            Ok(array) => Ok(T::into_tensor(array)),
            Err(_) => Err(TensorError::Layout {
                shape: shape.to_vec(),
                strides: row_major(shape),
                offset: 0,
                len,
            }),
        }
    }

    /// A tensor of elements anywhere in `data`: the element at index `i` is
    /// `data[offset + sum(i[axis] * strides[axis])]`.
    ///
    /// Strides count elements and may be negative or 0. The memory order is kept, as far as no two
    /// indices share an element.
    ///
    /// # Errors
    /// [`TensorError::Layout`] if an element lies outside `data` or there are not as many strides
    /// as axes.
    pub fn from_parts<T: Element>(
        mut data: Vec<T>,
        shape: &[usize],
        strides: &[isize],
        offset: usize,
    ) -> Result<Tensor, TensorError> {
        let refused = |len| TensorError::Layout {
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            offset,
            len,
        };
        if shape.len() != strides.len() {
            return Err(refused(data.len()));
        }
        if shape.contains(&0) {
            check_size("tensor.constant", shape, T::DTYPE)?;
            return Ok(T::into_tensor(ArcArray::from_elem(
                IxDyn(shape),
                T::default(),
            )));
        }
        let len = data.len();
        // From the lowest element upwards, so that every stride counts forwards.
        let mut lowest = offset as i128;
        let mut highest = offset as i128;
        for (&length, &stride) in shape.iter().zip(strides) {
            let reach = (length as i128 - 1).saturating_mul(stride as i128);
            lowest = lowest.saturating_add(reach.min(0));
            highest = highest.saturating_add(reach.max(0));
        }
        if lowest < 0 || highest >= len as i128 {
            return Err(refused(len));
        }
        let forwards: Vec<usize> = strides.iter().map(|stride| stride.unsigned_abs()).collect();
        let base = lowest as usize;
        let layout = || IxDyn(shape).strides(IxDyn(&forwards));
        // A mutable view is refused where two indices share an element.
        let separate = ArrayViewMut::from_shape(layout(), &mut data[base..]).is_ok();
        let mut array = match separate {
            true => {
                data.drain(..base);
                ArcArray::from_shape_vec(layout(), data).map_err(|_| refused(len))?
            }
            // Each index gets an element of its own.
            false => {
                check_size("tensor.constant", shape, T::DTYPE)?;
                Array::from_shape_fn(IxDyn(shape), |index| {
                    let steps = index.slice().iter().zip(&forwards);
                    let at: usize = steps.map(|(place, stride)| place * stride).sum();
                    data[base + at]
                })
                .into_shared()
            }
        };
        for (axis, &stride) in strides.iter().enumerate() {
            if stride < 0 {
                array.invert_axis(Axis(axis));
            }
        }
        Ok(T::into_tensor(array))
    }

    /// A tensor of row-major elements in the machine's byte order, as the buffer protocol and
    /// safetensors hold them.
    ///
    /// # Errors
    /// [`TensorError::Bytes`] if the bytes are too few or too many, or a truth value is neither 0
    /// nor 1.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Tensor, TensorError> {
        let refused = |expected: String| TensorError::Bytes {
            dtype,
            shape: shape.to_vec(),
            found: bytes.len(),
            expected,
        };
        check_size("tensor.constant", shape, dtype)?;
        let expected = shape.iter().product::<usize>() * dtype.size();
        if bytes.len() != expected {
            return Err(refused(format!("expected {expected} bytes")));
        }
        macro_rules! plain {
            ($type:ty) => {
                Tensor::from_vec(
                    bytes
                        .chunks_exact(dtype.size())
                        .map(bytemuck::pod_read_unaligned::<$type>)
                        .collect(),
                    shape,
                )
            };
        }
        match dtype {
            DType::Bool => match bytes.iter().find(|&&byte| byte > 1) {
                Some(byte) => Err(refused(format!("a truth value is 0 or 1, found {byte}"))),
                None => Tensor::from_vec(bytes.iter().map(|&byte| byte == 1).collect(), shape),
            },
            DType::I32 => plain!(i32),
            DType::I64 => plain!(i64),
            DType::F32 => plain!(f32),
            DType::F64 => plain!(f64),
            DType::C64 => plain!(Complex<f32>),
            DType::C128 => plain!(Complex<f64>),
        }
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// [`TensorError::OutOfMemory`] if memory cannot hold it.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Result<Tensor, TensorError> {
        check_size("tensor.constant", shape, dtype)?;
        Ok(with_type!(dtype, T => {
            T::into_tensor(ArcArray::from_elem(IxDyn(shape), T::default()))
        }))
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        fn of<T: Element>(_: &ArcArray<T, IxDyn>) -> DType {
            T::DTYPE
        }
        for_any!(self, array => of(array))
    }

    /// The lengths of the axes, outermost first.
    pub fn shape(&self) -> &[usize] {
        for_any!(self, array => array.shape())
    }

    /// The distance in elements from one index to the next along each axis; may be negative.
    pub fn strides(&self) -> &[isize] {
        for_any!(self, array => array.strides())
    }

    /// The number of axes.
    pub fn ndim(&self) -> usize {
        self.shape().len()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        for_any!(self, array => array.len())
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of all elements.
    pub fn nbytes(&self) -> usize {
        self.len() * self.dtype().size()
    }

    /// Whether the elements lie row-major and next to each other.
    pub fn is_contiguous(&self) -> bool {
        for_any!(self, array => array.is_standard_layout())
    }

    /// The tensor with row-major elements next to each other; shared where they are already.
    pub fn to_contiguous(&self) -> Tensor {
        fn copy<T: Element>(array: &ArcArray<T, IxDyn>) -> Tensor {
            if array.is_standard_layout() {
                return T::into_tensor(array.clone());
            }
            T::into_tensor(array.as_standard_layout().into_owned().into_shared())
        }
        for_any!(self, array => copy(array))
    }

    /// The elements' bytes in the machine's order, if they lie row-major and next to each other.
    pub fn bytes(&self) -> Option<&[u8]> {
        for_any!(self, array => array.as_slice().map(bytemuck::cast_slice))
    }

    /// The array, if it holds this type.
    pub fn array<T: Element>(&self) -> Option<&ArcArray<T, IxDyn>> {
        T::array_of(self)
    }

    /// The elements in row-major order, converted as by [`cast`](super::Operation::Cast).
    pub fn to_vec<T: Element>(&self) -> Vec<T> {
        for_any!(self, array => array.iter().map(|&element| T::from_element(element)).collect())
    }
}

impl<T: Element> From<ArcArray<T, IxDyn>> for Tensor {
    fn from(array: ArcArray<T, IxDyn>) -> Tensor {
        T::into_tensor(array)
    }
}

impl<T: Element> From<Array<T, IxDyn>> for Tensor {
    fn from(array: Array<T, IxDyn>) -> Tensor {
        T::into_tensor(array.into_shared())
    }
}
