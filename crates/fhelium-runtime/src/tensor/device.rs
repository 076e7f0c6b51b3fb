//! Tensors between host memory and CUDA devices.

use super::{Tensor, evaluate};
use crate::placed::Movable;
use fhelium_cuda::{Context, Result};
use fhelium_ir::layout::{inverse_order, memory_order, row_major};
use fhelium_ir::{Attributes, Tensor as Operation};

/// The axes in another order, as attributes have it.
fn axes(order: &[usize]) -> Attributes {
    let axes: Vec<i64> = order.iter().map(|&axis| axis as i64).collect();
    Attributes::new().with("axes", axes)
}

impl Movable for Tensor {
    type Cuda = fhelium_cuda::Tensor;
    const NOUN: &'static str = "the array";

    /// Keeps the order in memory, which decides the order of sums.
    fn upload(&self, context: &Context) -> Result<Self::Cuda> {
        let order = memory_order(self.shape(), &[self.strides()]);
        let dense = evaluate(Operation::Transpose, &[self], &axes(&order))
            .expect("each axis is named once")
            .to_contiguous();
        let places = row_major(dense.shape());
        let back = inverse_order(&order);
        let strides: Vec<isize> = back.iter().map(|&place| places[place]).collect();
        let bytes = dense.bytes().unwrap_or_default();
        context.upload_tensor(self.dtype(), self.shape(), &strides, bytes)
    }

    fn download(there: &Self::Cuda, context: &Context) -> Result<Self> {
        let order = memory_order(there.shape(), &[there.strides()]);
        let dense = context.tensor(Operation::Transpose, &[there], &axes(&order))?;
        let bytes = context.download_tensor(&dense)?;
        let dense = Tensor::from_bytes(dense.dtype(), dense.shape(), &bytes)
            .expect("a device gives as many bytes as a tensor has");
        let back = axes(&inverse_order(&order));
        Ok(evaluate(Operation::Transpose, &[&dense], &back).expect("each axis is named once"))
    }

    fn ordinal(there: &Self::Cuda) -> usize {
        there.buffer().queue().device().index()
    }
}
