//! The kernels of clear tensors.

use super::{Implementation, Invocation, Operands, Results};
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
        let tensors: SmallVec<[&tensor::Tensor; 4]> = operands
            .iter()
            .map(|operand| match operand {
                Value::Tensor(tensor) => Ok(&**tensor),
                other => Err(RuntimeError::Implementation(format!(
                    "{}: an operand is {}, expected a tensor",
                    self.operation(),
                    other.ty()
                ))),
            })
            .collect::<Result<_, _>>()?;
        let result = tensor::evaluate(self.0, &tensors, invocation.attributes)?;
        Ok(smallvec![result.into()])
    }
}
