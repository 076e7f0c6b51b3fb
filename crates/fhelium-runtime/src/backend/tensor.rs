//! The kernels of clear tensors.

use super::kernels::Place;
use super::{Implementation, Invocation, Operands, Results};
use crate::placed::{Array, Placed};
use crate::{RuntimeError, Value, tensor};
use fhelium_ir::{OpKind, Tensor as TensorOp};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// A kernel for each `tensor` operation.
pub(super) fn implementations() -> impl Iterator<Item = Arc<dyn Implementation>> {
    TensorOp::ALL
        .iter()
        .map(|&operation| Arc::new(TensorKernel(operation)) as Arc<dyn Implementation>)
}

/// Runs where its operands are: types do not say where an array is.
struct TensorKernel(TensorOp);

impl Implementation for TensorKernel {
    fn name(&self) -> &str {
        "host"
    }

    fn operation(&self) -> OpKind {
        self.0.into()
    }

    fn execute(
        &self,
        invocation: &Invocation<'_>,
        operands: Operands,
    ) -> Result<Results, RuntimeError> {
        let arrays: SmallVec<[&Array; 4]> = operands
            .iter()
            .map(|operand| match operand {
                Value::Tensor(array) => Ok(array),
                other => Err(RuntimeError::Implementation(format!(
                    "{}: an operand is {}, expected a tensor",
                    self.operation(),
                    other.ty()
                ))),
            })
            .collect::<Result<_, _>>()?;
        let there = arrays
            .iter()
            .position(|array| matches!(array, Placed::Cuda(_)));
        if let Some(there) = there {
            return self.execute_on_device(invocation, &arrays, there);
        }
        let tensors: SmallVec<[&tensor::Tensor; 4]> = arrays
            .iter()
            .map(|array| array.host().map(|here| &**here))
            .collect::<Result<_, _>>()?;
        let result = tensor::evaluate(self.0, &tensors, invocation.attributes)?;
        Ok(smallvec![result.into()])
    }
}

impl TensorKernel {
    /// On the device of operand `there`. Single numbers in host memory go along; arrays do not move
    /// by themselves.
    fn execute_on_device(
        &self,
        invocation: &Invocation<'_>,
        arrays: &[&Array],
        there: usize,
    ) -> Result<Results, RuntimeError> {
        let context = fhelium_cuda::Context::of(invocation.engine)?;
        let placed = arrays.iter().enumerate().map(|(place, array)| match array {
            Placed::Cuda(array) => Ok(array.clone()),
            Placed::Host(array) if array.ndim() == 0 => {
                let bytes = array.to_contiguous();
                let number = context.number(array.dtype(), bytes.bytes().unwrap_or_default())?;
                Ok(Arc::new(number))
            }
            Placed::Host(_) => Err(RuntimeError::Device(format!(
                "{}: operand {place} is on cpu and operand {there} on {}; move one of them first",
                self.operation(),
                arrays[there].device()
            ))),
        });
        let placed: SmallVec<[Arc<fhelium_cuda::Tensor>; 4]> = placed.collect::<Result<_, _>>()?;
        let operands: SmallVec<[&fhelium_cuda::Tensor; 4]> =
            placed.iter().map(|array| &**array).collect();
        let result = context.tensor(self.0, &operands, invocation.attributes)?;
        Ok(smallvec![Value::Tensor(Placed::Cuda(Arc::new(result)))])
    }
}
