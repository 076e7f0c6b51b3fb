//! A function of each element, in numpy's memory order.

use super::Tensor;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::{Elements, TensorKernel, pieces};
use crate::queue::Buffer;
use fhelium_ir::DType;
use fhelium_ir::layout::{inverse_order, memory_order, row_major};

/// What a kernel is told beside its operands: which of its functions, and what that needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Choice {
    pub operation: u32,
    pub detail: u32,
}

impl Choice {
    pub fn of(operation: u32) -> Self {
        Choice {
            operation,
            detail: 0,
        }
    }
}

impl Context {
    /// A tensor of undefined elements that lies in memory as an elementwise result of operands with
    /// these strides does.
    pub(super) fn result_like(
        &self,
        dtype: DType,
        shape: &[usize],
        strides: &[&[isize]],
    ) -> Result<Tensor> {
        let order = memory_order(shape, strides);
        let extents: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
        let mut result = self.new_tensor(dtype, shape)?;
        let dense = row_major(&extents);
        result.strides = inverse_order(&order)
            .into_iter()
            .map(|place| dense[place])
            .collect();
        Ok(result)
    }

    /// A kernel's function of operands, which have its element types and broadcast to `shape`.
    ///
    /// # Safety
    /// The kernel reads `OPERANDS` tensors of these element types and writes `dtype`; `PLACES` is
    /// one more than `OPERANDS`.
    pub(super) unsafe fn elementwise<const OPERANDS: usize, const PLACES: usize>(
        &self,
        name: &'static str,
        kernel: TensorKernel,
        choice: Choice,
        operands: [&Tensor; OPERANDS],
        dtype: DType,
        shape: &[usize],
    ) -> Result<Tensor> {
        let _turn = self.queue().lock()?;
        let buffers: [(&'static str, &Buffer); OPERANDS] =
            operands.map(|operand| ("operand", &**operand.buffer()));
        let joined = self.join(name, &buffers)?;
        let spread = operands.map(|operand| operand.spread(shape));
        let strides: Vec<&[isize]> = spread.iter().map(|strides| &strides[..]).collect();
        let result = self.result_like(dtype, shape, &strides)?;
        // Walked in memory order too.
        let order = memory_order(shape, &strides);
        let ordered =
            |strides: &[isize]| -> Vec<isize> { order.iter().map(|&axis| strides[axis]).collect() };
        let extents: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
        let all: Vec<Vec<isize>> = strides
            .iter()
            .copied()
            .chain([&result.strides[..]])
            .map(ordered)
            .collect();
        let at = |tensor: &Tensor, place: i64| {
            let bytes = tensor.dtype.size() as i64;
            tensor.address().wrapping_add_signed(place * bytes)
        };
        let all: [&[isize]; PLACES] = std::array::from_fn(|at| &all[at][..]);
        pieces(&extents, all, [0; PLACES], &mut |piece, places| {
            let arguments = Elements::<OPERANDS, PLACES> {
                operands: std::array::from_fn(|index| at(operands[index], places[index])),
                target: at(&result, places[OPERANDS]),
                operation: choice.operation,
                detail: choice.detail,
                shape: *piece,
            };
            // SAFETY: strides are those of the operands and the result under one shape; the element
            // types are the caller's promise.
            unsafe {
                self.tensor_kernels()
                    .launch(self.queue(), kernel, piece.grid(), 0, &arguments)
            }
        })?;
        joined.leave()?;
        Ok(result)
    }

    /// A function of one tensor.
    ///
    /// # Safety
    /// The kernel reads the tensor's element type and writes `dtype`.
    pub(super) unsafe fn map(
        &self,
        name: &'static str,
        kernel: TensorKernel,
        operation: u32,
        operand: &Tensor,
        dtype: DType,
    ) -> Result<Tensor> {
        let choice = Choice::of(operation);
        // SAFETY: the caller's promise.
        unsafe { self.elementwise::<1, 2>(name, kernel, choice, [operand], dtype, operand.shape()) }
    }

    /// The tensor in another element type; shared where it has that type already.
    pub(crate) fn cast(
        &self,
        name: &'static str,
        operand: &Tensor,
        dtype: DType,
    ) -> Result<Tensor> {
        if operand.dtype == dtype {
            return Ok(operand.clone());
        }
        let source = operand.dtype as u32;
        // SAFETY: the kernel is told the operand's type and writes the other.
        let mut result =
            unsafe { self.map(name, TensorKernel::Cast(dtype), source, operand, dtype)? };
        // An integer that the wider type holds.
        if operand.dtype == DType::I32 && dtype == DType::I64 {
            result.constant = operand.constant;
        }
        Ok(result)
    }
}
