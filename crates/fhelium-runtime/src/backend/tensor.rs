//! The kernels of clear tensors, on the host and on a device.

use super::kernels::Place;
use super::{Implementation, Invocation, Operands, Results};
use crate::placed::{Array, Placed};
use crate::{Device, DeviceKind, RuntimeError, Value, tensor};
use fhelium_ir::{OpKind, Tensor as TensorOp};
use smallvec::{SmallVec, smallvec};
use std::marker::PhantomData;
use std::sync::Arc;

/// A kernel of a place for each `tensor` operation.
pub(super) fn implementations<P: Tensors>() -> impl Iterator<Item = Arc<dyn Implementation>> {
    TensorOp::ALL.iter().map(|&operation| {
        let place = PhantomData::<P>;
        Arc::new(TensorKernel { operation, place }) as Arc<dyn Implementation>
    })
}

struct TensorKernel<P> {
    operation: TensorOp,
    place: PhantomData<P>,
}

impl<P: Tensors> Implementation for TensorKernel<P> {
    fn name(&self) -> &str {
        P::NAME
    }

    fn operation(&self) -> OpKind {
        self.operation.into()
    }

    fn device(&self) -> DeviceKind {
        P::DEVICE
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
        P::evaluate(self.operation, invocation, &arrays)
            .map(|result| smallvec![Value::Tensor(result)])
    }
}

/// A place that computes on clear tensors.
pub(super) trait Tensors: Place {
    /// The result of an operation on arrays, which are here.
    fn evaluate(
        operation: TensorOp,
        invocation: &Invocation<'_>,
        arrays: &[&Array],
    ) -> Result<Array, RuntimeError>;
}

impl Tensors for fhelium_ckks::Context {
    fn evaluate(
        operation: TensorOp,
        invocation: &Invocation<'_>,
        arrays: &[&Array],
    ) -> Result<Array, RuntimeError> {
        let tensors: SmallVec<[&tensor::Tensor; 4]> = arrays
            .iter()
            .map(|array| array.host().map(|here| &**here))
            .collect::<Result<_, _>>()?;
        let result = tensor::evaluate(operation, &tensors, invocation.attributes)?;
        Ok(result.into())
    }
}

impl Tensors for fhelium_cuda::Context {
    /// Single numbers in host memory go along; arrays do not move by themselves.
    fn evaluate(
        operation: TensorOp,
        invocation: &Invocation<'_>,
        arrays: &[&Array],
    ) -> Result<Array, RuntimeError> {
        let context = Self::of(invocation.engine)?;
        let placed = arrays.iter().enumerate().map(|(place, array)| match array {
            Placed::Cuda(array) => Ok(array.clone()),
            Placed::Host(array) if array.ndim() == 0 => {
                let bytes = array.to_contiguous();
                let number = context.number(array.dtype(), bytes.bytes().unwrap_or_default())?;
                Ok(Arc::new(number))
            }
            Placed::Host(_) => {
                let there = arrays
                    .iter()
                    .position(|array| array.device() != Device::Cpu);
                let there = there.unwrap_or_default();
                Err(apart(
                    operation.into(),
                    place,
                    there,
                    arrays[there].device(),
                ))
            }
        });
        let placed: SmallVec<[Arc<fhelium_cuda::Tensor>; 4]> = placed.collect::<Result<_, _>>()?;
        let operands: SmallVec<[&fhelium_cuda::Tensor; 4]> =
            placed.iter().map(|array| &**array).collect();
        let result = context.tensor(operation, &operands, invocation.attributes)?;
        Ok(Placed::Cuda(Arc::new(result)))
    }
}

/// The error of an operation whose operand `here` is an array in host memory and `there` one on a
/// device.
pub(crate) fn apart(operation: OpKind, here: usize, there: usize, device: Device) -> RuntimeError {
    RuntimeError::Device(format!(
        "{operation}: operand {here} is on cpu and operand {there} on {device}; move one of them \
         first"
    ))
}
