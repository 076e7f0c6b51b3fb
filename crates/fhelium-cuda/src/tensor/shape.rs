//! Operations that only move elements or give them other axes.

use super::Tensor;
use crate::context::Context;
use crate::error::{CudaError, Result};
use crate::kernels::Fill;
use fhelium_ir::layout::row_major;
use fhelium_ir::{DType, Span};

impl Tensor {
    /// The axes in another order. Shares the elements.
    pub(super) fn transpose(&self, order: &[usize]) -> Tensor {
        let shape = order.iter().map(|&axis| self.shape[axis]).collect();
        let strides = order.iter().map(|&axis| self.strides[axis]).collect();
        self.view(self.dtype, shape, strides, self.offset)
    }

    /// The spans of all axes, which lie within them. Shares the elements.
    pub(super) fn slice(&self, spans: &[Span]) -> Tensor {
        let mut first = self.offset;
        let (mut shape, mut strides) = (Vec::new(), Vec::new());
        for (span, &stride) in spans.iter().zip(&self.strides) {
            // An empty span starts nowhere in particular.
            if span.size != 0 {
                let distance = span.start as isize * stride * self.dtype.size() as isize;
                first = first.wrapping_add_signed(distance);
            }
            if !span.dropped {
                shape.push(span.size);
                strides.push(stride * span.step);
            }
        }
        if shape.contains(&0) {
            first = self.offset;
        }
        self.view(self.dtype, shape, strides, first)
    }

    /// The part at one place of an axis. Shares the elements.
    pub(super) fn index(&self, axis: usize, place: usize) -> Tensor {
        let whole = |extent: &usize| Span {
            start: 0,
            size: *extent,
            step: 1,
            dropped: false,
        };
        let mut spans: Vec<Span> = self.shape.iter().map(whole).collect();
        spans[axis] = Span {
            start: place,
            size: 1,
            step: 1,
            dropped: true,
        };
        self.slice(&spans)
    }

    /// The real parts, or the imaginary ones, of complex numbers. Shares the elements.
    pub(super) fn part(&self, imaginary: bool) -> Tensor {
        let real = self.dtype.to_real();
        let strides = self.strides.iter().map(|stride| 2 * stride).collect();
        let offset = self.offset + usize::from(imaginary) * real.size();
        self.view(real, self.shape.clone(), strides, offset)
    }
}

impl Context {
    /// The elements in row-major order under another shape of as many.
    pub(super) fn reshape(&self, operand: &Tensor, shape: &[usize]) -> Result<Tensor> {
        let dense = self.contiguous(operand)?;
        Ok(dense.view(dense.dtype, shape.to_vec(), row_major(shape), dense.offset))
    }

    /// The operand repeated to a shape to which it broadcasts.
    pub(super) fn broadcast(
        &self,
        name: &'static str,
        operand: &Tensor,
        shape: &[usize],
    ) -> Result<Tensor> {
        if operand.shape == shape {
            return Ok(operand.clone());
        }
        self.copied(name, operand, shape)
    }

    /// Elements moved along an axis, from the end around to the start; without an axis, along the
    /// row-major elements.
    pub(super) fn roll(
        &self,
        name: &'static str,
        operand: &Tensor,
        shift: i64,
        axis: Option<usize>,
    ) -> Result<Tensor> {
        let Some(axis) = axis else {
            let flat = self.reshape(operand, &[operand.len()])?;
            let rolled = self.roll(name, &flat, shift, Some(0))?;
            return self.reshape(&rolled, operand.shape());
        };
        let length = operand.shape[axis];
        let distance = match length {
            0 => 0,
            _ => shift.rem_euclid(length as i64) as usize,
        };
        if distance == 0 {
            return Ok(operand.clone());
        }
        let _turn = self.queue().lock()?;
        let joined = self.join(name, &[("operand", &operand.data)])?;
        let result = self.result_like(operand.dtype, operand.shape(), &[operand.strides()])?;
        // The tail goes to the front, and the rest behind it.
        let tail = length - distance;
        for (from, to, size) in [(tail, 0, distance), (0, distance, tail)] {
            let part = |tensor: &Tensor, start: usize| {
                let mut spans: Vec<Span> = tensor
                    .shape
                    .iter()
                    .map(|&size| Span {
                        start: 0,
                        size,
                        step: 1,
                        dropped: false,
                    })
                    .collect();
                (spans[axis].start, spans[axis].size) = (start, size);
                tensor.slice(&spans)
            };
            let (source, target) = (part(operand, from), part(&result, to));
            self.move_tensor(
                &source.shape,
                &source,
                &source.strides,
                &target,
                &target.strides,
            )?;
        }
        joined.leave()?;
        Ok(result)
    }

    /// Tensors of one shape along a new axis.
    pub(super) fn stack(
        &self,
        name: &'static str,
        operands: &[&Tensor],
        axis: usize,
        dtype: DType,
        shape: &[usize],
    ) -> Result<Tensor> {
        let widened: Vec<Tensor> = operands
            .iter()
            .map(|operand| {
                let (mut extents, mut strides) = (operand.shape.clone(), operand.strides.clone());
                extents.insert(axis, 1);
                strides.insert(axis, 0);
                operand.view(operand.dtype, extents, strides, operand.offset)
            })
            .collect();
        let widened: Vec<&Tensor> = widened.iter().collect();
        self.concatenate(name, &widened, axis, dtype, shape)
    }

    /// Tensors one after the other along an axis.
    pub(super) fn concatenate(
        &self,
        name: &'static str,
        operands: &[&Tensor],
        axis: usize,
        dtype: DType,
        shape: &[usize],
    ) -> Result<Tensor> {
        let _turn = self.queue().lock()?;
        let operands = operands
            .iter()
            .map(|operand| self.cast(name, operand, dtype));
        let operands: Vec<Tensor> = operands.collect::<Result<_>>()?;
        let named: Vec<_> = operands
            .iter()
            .map(|operand| ("operand", &**operand.buffer()))
            .collect();
        let joined = self.join(name, &named)?;
        let result = self.new_tensor(dtype, shape)?;
        let mut target = result.clone();
        for operand in &operands {
            self.move_tensor(
                &operand.shape,
                operand,
                &operand.strides,
                &target,
                &target.strides,
            )?;
            let moved = operand.shape[axis] * target.strides[axis] as usize;
            target.offset += moved * dtype.size();
        }
        joined.leave()?;
        Ok(result)
    }

    /// A tensor without axes, of the element whose bytes are given. Unlike an upload it can be
    /// recorded.
    ///
    /// # Errors
    /// [`CudaError::TensorLayout`] for other than an element's bytes; the device's.
    pub fn number(&self, dtype: DType, bytes: &[u8]) -> Result<Tensor> {
        if bytes.len() != dtype.size() {
            return Err(CudaError::TensorLayout {
                dtype,
                shape: Vec::new(),
                strides: Vec::new(),
                found: bytes.len(),
                expected: format!("the {} of one element", dtype.size()),
            });
        }
        let mut bits = [0; 16];
        bits[..bytes.len()].copy_from_slice(bytes);
        self.fill(dtype, &[], bits)
    }

    /// One element, of which `bits` holds the bytes, in every place of a row-major tensor.
    pub(super) fn fill(&self, dtype: DType, shape: &[usize], bits: [u8; 16]) -> Result<Tensor> {
        /// The most elements of one launch.
        const MOST: usize = 1 << 30;
        let _turn = self.queue().lock()?;
        let result = self.new_tensor(dtype, shape)?;
        for start in (0..result.len()).step_by(MOST) {
            let arguments = Fill {
                bits,
                target: result.address() + (start * dtype.size()) as u64,
                count: (result.len() - start).min(MOST) as u32,
                unused: 0,
            };
            // SAFETY: the result holds as many elements from there on.
            unsafe {
                self.kernels()
                    .fill_elements(self.queue(), dtype.size(), &arguments)?
            };
        }
        Ok(result)
    }
}
