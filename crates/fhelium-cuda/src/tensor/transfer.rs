//! Moving tensors to and from the device, and within it.

use super::Tensor;
use crate::context::Context;
use crate::error::{CudaError, Result};
use crate::kernels::{Move, pieces};
use fhelium_ir::DType;
use std::sync::Arc;

impl Context {
    /// Moves a tensor to the device: `bytes` holds its elements in the machine's order, the element
    /// at index `i` being the one number `sum(i[axis] * strides[axis])`. Strides are kept, since the
    /// order in memory decides the order of sums.
    ///
    /// # Errors
    /// [`CudaError::TensorLayout`] for elements outside the bytes, a negative stride or a truth value
    /// that is neither 0 nor 1; the device's.
    pub fn upload_tensor(
        &self,
        dtype: DType,
        shape: &[usize],
        strides: &[isize],
        bytes: &[u8],
    ) -> Result<Tensor> {
        let refused = |expected: String| CudaError::TensorLayout {
            dtype,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            found: bytes.len(),
            expected,
        };
        if shape.len() != strides.len() || strides.iter().any(|&stride| stride < 0) {
            return Err(refused("one stride of 0 or more for each axis".to_owned()));
        }
        let reach = shape.iter().zip(strides).try_fold(0usize, |reach, axis| {
            let (&extent, &stride) = axis;
            reach.checked_add(
                extent
                    .saturating_sub(1)
                    .checked_mul(stride.unsigned_abs())?,
            )
        });
        let needed = match shape.contains(&0) {
            true => Some(0),
            false => reach.and_then(|reach| reach.checked_add(1)?.checked_mul(dtype.size())),
        };
        if needed.is_none_or(|needed| needed > bytes.len()) {
            return Err(refused(match needed {
                Some(needed) => format!("{needed} bytes at least"),
                None => "fewer elements".to_owned(),
            }));
        }
        if dtype == DType::Bool
            && let Some(byte) = bytes.iter().find(|&&byte| byte > 1)
        {
            return Err(refused(format!("truth values of 0 or 1, found {byte}")));
        }
        let _turn = self.queue().lock()?;
        let data = self
            .queue()
            .allocate(bytes.len().div_ceil(size_of::<u64>()))?;
        self.queue().fill(&data, bytes)?;
        Ok(Tensor {
            dtype,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            offset: 0,
            data: Arc::new(data),
            constant: None,
        })
    }

    /// The bytes of a tensor's elements, row-major, in the machine's order.
    ///
    /// # Errors
    /// A tensor of another device, and the device's.
    pub fn download_tensor(&self, tensor: &Tensor) -> Result<Vec<u8>> {
        let _turn = self.queue().lock()?;
        let dense = match tensor.is_contiguous() && tensor.offset == 0 {
            true => tensor.clone(),
            false => self.copied("download", tensor, tensor.shape())?,
        };
        let joined = self.join("download", &[("tensor", &dense.data)])?;
        let mut bytes = vec![0; dense.nbytes()];
        self.queue().read(&dense.data, &mut bytes)?;
        joined.leave()?;
        Ok(bytes)
    }

    /// The tensor with row-major elements next to each other; shared where they are already.
    ///
    /// # Errors
    /// A tensor of another device, and the device's.
    pub fn contiguous(&self, tensor: &Tensor) -> Result<Tensor> {
        if tensor.is_contiguous() {
            return Ok(tensor.clone());
        }
        self.copied("contiguous", tensor, tensor.shape())
    }

    /// A row-major copy.
    ///
    /// # Errors
    /// A tensor of another device, and the device's.
    pub fn copy_tensor(&self, tensor: &Tensor) -> Result<Tensor> {
        self.copied("copy", tensor, tensor.shape())
    }

    /// A row-major copy of a tensor that broadcasts to a shape.
    pub(super) fn copied(
        &self,
        operation: &'static str,
        tensor: &Tensor,
        shape: &[usize],
    ) -> Result<Tensor> {
        let _turn = self.queue().lock()?;
        let joined = self.join(operation, &[("operand", &tensor.data)])?;
        let result = self.new_tensor(tensor.dtype, shape)?;
        self.move_tensor(
            shape,
            tensor,
            &tensor.spread(shape),
            &result,
            &result.strides,
        )?;
        joined.leave()?;
        Ok(result)
    }

    /// Undefined row-major elements.
    pub(crate) fn new_tensor(&self, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        let bytes = shape.iter().product::<usize>() * dtype.size();
        let data = self.queue().allocate(bytes.div_ceil(size_of::<u64>()))?;
        Ok(Tensor::row_major(dtype, shape, data))
    }

    /// Copies elements of a shape between tensors of one size of element, whose first elements are
    /// the first, by strides on both sides.
    pub(super) fn move_tensor(
        &self,
        shape: &[usize],
        source: &Tensor,
        read: &[isize],
        target: &Tensor,
        written: &[isize],
    ) -> Result<()> {
        let bytes = source.dtype.size();
        let at = |tensor: &Tensor, place: i64| {
            tensor.address().wrapping_add_signed(place * bytes as i64)
        };
        pieces(shape, [read, written], [0, 0], &mut |piece, [from, to]| {
            let arguments = Move {
                source: at(source, from),
                target: at(target, to),
                shape: *piece,
            };
            // SAFETY: the callers derive shape and strides from those of both tensors.
            unsafe {
                self.kernels()
                    .move_elements(self.queue(), bytes, &arguments)
            }
        })
    }
}
