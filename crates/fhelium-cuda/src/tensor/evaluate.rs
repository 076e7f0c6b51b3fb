//! Running one operation.

use super::Tensor;
use super::elementwise::Choice;
use crate::context::Context;
use crate::error::{CudaError, Result};
use crate::kernels::TensorKernel;
use fhelium_ir::{Attribute, Attributes, DType, Tensor as TensorOp, TensorCall};

// The functions of kernels/cuda/tensor_arithmetic.cu and tensor_functions.cu.
const ADD: u32 = 0;
const SUBTRACT: u32 = 1;
const MULTIPLY: u32 = 2;
pub(super) const DIVIDE: u32 = 3;

const NEGATE: u32 = 0;
const ABSOLUTE: u32 = 1;
const CONJUGATE: u32 = 2;

const EXP: u32 = 0;
const LOG: u32 = 1;
const SQRT: u32 = 2;
const SIN: u32 = 3;
const COS: u32 = 4;
const TANH: u32 = 5;

impl Context {
    /// The result of an operation of the `tensor` dialect; attributes need not be canonical.
    ///
    /// Views (`transpose`, `slice`, `index`, `real`, `imag`, and `reshape` of row-major elements)
    /// share the operand's memory.
    ///
    /// # Errors
    /// [`CudaError::Tensor`] where the operation table refuses the operands or attributes, and for an
    /// integer raised to a negative one; tensors of another device, and the device's.
    pub fn tensor(
        &self,
        operation: TensorOp,
        operands: &[&Tensor],
        attributes: &Attributes,
    ) -> Result<Tensor> {
        let name = operation.def().name;
        let types: Vec<_> = operands
            .iter()
            .map(|operand| (operand.dtype(), operand.shape()))
            .collect();
        let call =
            TensorCall::new(operation, &types, attributes).map_err(|error| CudaError::Tensor {
                operation: name,
                error,
            })?;
        self.compute(operation, operands, &call)
    }

    fn compute(
        &self,
        operation: TensorOp,
        operands: &[&Tensor],
        call: &TensorCall,
    ) -> Result<Tensor> {
        use TensorOp as O;
        let name = operation.def().name;
        let (dtype, shape) = (call.dtype, &call.shape[..]);
        let axis = || call.axis().expect("the table holds this attribute");
        match (operation, operands) {
            (O::Constant, []) => self.constant(call.value(), dtype),
            (O::Add, [x, y]) => self.binary(name, ADD, x, y, call),
            (O::Sub, [x, y]) => self.binary(name, SUBTRACT, x, y, call),
            (O::Mul, [x, y]) => self.binary(name, MULTIPLY, x, y, call),
            (O::Div, [x, y]) => self.binary(name, DIVIDE, x, y, call),
            (O::Pow, [x, y]) => self.power(name, x, y, dtype, shape),
            (O::Neg, [x]) => self.unary(name, NEGATE, x),
            (O::Abs, [x]) => self.absolute(name, x),
            (O::Conj, [x]) if dtype.is_complex() => self.unary(name, CONJUGATE, x),
            (O::Exp, [x]) => self.function(name, EXP, x, dtype),
            (O::Log, [x]) => self.function(name, LOG, x, dtype),
            (O::Sqrt, [x]) => self.function(name, SQRT, x, dtype),
            (O::Sin, [x]) => self.function(name, SIN, x, dtype),
            (O::Cos, [x]) => self.function(name, COS, x, dtype),
            (O::Tanh, [x]) => self.function(name, TANH, x, dtype),
            (O::Real, [x]) if x.dtype().is_complex() => Ok(x.part(false)),
            (O::Imag, [x]) if x.dtype().is_complex() => Ok(x.part(true)),
            (O::Imag, [x]) => self.zeros_like(name, x),
            (O::Conj | O::Real, [x]) => Ok((*x).clone()),
            (O::Cast, [x]) => self.cast(name, x, dtype),
            (O::Clip, [x, low, high]) => self.clip(name, [x, low, high], call),
            (O::Where, [condition, x, y]) => self.choose(name, condition, x, y, call),
            (O::Broadcast, [x]) => self.broadcast(name, x, shape),
            (O::Roll, [x]) => self.roll(name, x, call.shift(), call.axis()),
            (O::Reshape, [x]) => self.reshape(x, shape),
            (O::Transpose, [x]) => Ok(x.transpose(&call.axes())),
            (O::Slice, [x]) => Ok(x.slice(&call.spans())),
            (O::Index, [x]) => Ok(x.index(axis(), call.index())),
            (O::Stack, arrays) => self.stack(name, arrays, axis(), dtype, shape),
            (O::Concatenate, arrays) => self.concatenate(name, arrays, axis(), dtype, shape),
            (O::Sum, [x]) => self.sum_over(name, x, &call.axes(), call.keepdims(), dtype),
            (O::Mean, [x]) => self.mean_over(name, x, &call.axes(), call.keepdims(), dtype),
            (O::Matmul, [x, y]) => self.matmul(name, x, y, dtype, shape),
            (operation, operands) => unreachable!(
                "{operation:?} of {} operands passed the table",
                operands.len()
            ),
        }
    }

    /// A number that the table found to fit the element type.
    fn constant(&self, value: Option<&Attribute>, dtype: DType) -> Result<Tensor> {
        let (re, im) = match value {
            Some(&Attribute::Bool(value)) => (f64::from(u8::from(value)), 0.0),
            Some(&Attribute::Int(value)) => (value as f64, 0.0),
            Some(Attribute::Float(value)) => (value.get(), 0.0),
            Some(Attribute::Complex(re, im)) => (re.get(), im.get()),
            other => unreachable!("a constant holds a number, the table let {other:?} pass"),
        };
        let whole = match value {
            Some(&Attribute::Bool(value)) => Some(i64::from(value)),
            Some(&Attribute::Int(value)) => Some(value),
            _ => None,
        };
        // An integer becomes a 32-bit float in one rounding.
        let single = whole.map_or(re as f32, |whole| whole as f32);
        let mut bits = [0; 16];
        let mut put = |bytes: &[u8], at: usize| bits[at..at + bytes.len()].copy_from_slice(bytes);
        match dtype {
            DType::Bool => put(&[u8::from(whole == Some(1))], 0),
            DType::I32 => put(&(whole.unwrap_or(0) as i32).to_ne_bytes(), 0),
            DType::I64 => put(&whole.unwrap_or(0).to_ne_bytes(), 0),
            DType::F32 => put(&single.to_ne_bytes(), 0),
            DType::F64 => put(&re.to_ne_bytes(), 0),
            DType::C64 => {
                put(&single.to_ne_bytes(), 0);
                put(&(im as f32).to_ne_bytes(), 4);
            }
            DType::C128 => {
                put(&re.to_ne_bytes(), 0);
                put(&im.to_ne_bytes(), 8);
            }
        }
        let mut constant = self.fill(dtype, &[], bits)?;
        constant.constant = whole.filter(|_| dtype.is_integer());
        Ok(constant)
    }

    fn binary(
        &self,
        name: &'static str,
        operation: u32,
        left: &Tensor,
        right: &Tensor,
        call: &TensorCall,
    ) -> Result<Tensor> {
        let dtype = call.dtype;
        let (left, right) = (
            self.cast(name, left, dtype)?,
            self.cast(name, right, dtype)?,
        );
        let (kernel, choice) = (TensorKernel::Binary(dtype), Choice::of(operation));
        let operands = [&left, &right];
        // SAFETY: both operands were cast to the kernel's type.
        unsafe { self.elementwise::<2, 3>(name, kernel, choice, operands, dtype, &call.shape) }
    }

    fn unary(&self, name: &'static str, operation: u32, operand: &Tensor) -> Result<Tensor> {
        let dtype = operand.dtype();
        // SAFETY: the kernel is of the operand's type and gives the same.
        unsafe { self.map(name, TensorKernel::Unary(dtype), operation, operand, dtype) }
    }

    /// Absolute values; of complex numbers, real ones.
    fn absolute(&self, name: &'static str, operand: &Tensor) -> Result<Tensor> {
        let dtype = operand.dtype();
        if dtype == DType::Bool {
            return Ok(operand.clone());
        }
        if !dtype.is_complex() {
            return self.unary(name, ABSOLUTE, operand);
        }
        let kernel = TensorKernel::Absolute(dtype);
        // SAFETY: the kernel is of the operand's type and gives its parts'.
        unsafe { self.map(name, kernel, 0, operand, dtype.to_real()) }
    }

    fn function(
        &self,
        name: &'static str,
        operation: u32,
        operand: &Tensor,
        dtype: DType,
    ) -> Result<Tensor> {
        let operand = self.cast(name, operand, dtype)?;
        // SAFETY: the operand was cast to the kernel's type, which it gives too.
        unsafe {
            self.map(
                name,
                TensorKernel::Function(dtype),
                operation,
                &operand,
                dtype,
            )
        }
    }

    /// Zeros that lie in memory as a function of the operand does.
    fn zeros_like(&self, name: &'static str, operand: &Tensor) -> Result<Tensor> {
        let _turn = self.queue().lock()?;
        let joined = self.join(name, &[("operand", &operand.data)])?;
        let dtype = operand.dtype();
        let mut zeros = self.fill(dtype, operand.shape(), [0; 16])?;
        let like = self.result_like(dtype, operand.shape(), &[operand.strides()])?;
        zeros.strides = like.strides;
        joined.leave()?;
        Ok(zeros)
    }

    fn clip(
        &self,
        name: &'static str,
        operands: [&Tensor; 3],
        call: &TensorCall,
    ) -> Result<Tensor> {
        let dtype = call.dtype;
        // Where an element equals a bound but for the sign of zero, numpy keeps the element if both
        // bounds are single numbers.
        let keep = operands[1..].iter().all(|bound| bound.len() == 1);
        let [x, low, high] = operands.map(|operand| self.cast(name, operand, dtype));
        let (x, low, high) = (x?, low?, high?);
        let choice = Choice {
            operation: 0,
            detail: u32::from(keep),
        };
        let (kernel, operands) = (TensorKernel::Clip(dtype), [&x, &low, &high]);
        // SAFETY: the operands were cast to the kernel's type.
        unsafe { self.elementwise::<3, 4>(name, kernel, choice, operands, dtype, &call.shape) }
    }

    fn choose(
        &self,
        name: &'static str,
        condition: &Tensor,
        chosen: &Tensor,
        other: &Tensor,
        call: &TensorCall,
    ) -> Result<Tensor> {
        let dtype = call.dtype;
        let (chosen, other) = (
            self.cast(name, chosen, dtype)?,
            self.cast(name, other, dtype)?,
        );
        let (kernel, choice) = (TensorKernel::Choose(dtype.size()), Choice::default());
        let operands = [condition, &chosen, &other];
        // SAFETY: the table holds the condition to be of truth values; the others have elements of
        // the kernel's size.
        unsafe { self.elementwise::<3, 4>(name, kernel, choice, operands, dtype, &call.shape) }
    }
}
