//! Running one operation.

use super::cast::{Convert, cast};
use super::element::with_type;
use super::layout::check_size;
use super::{Element, Tensor, TensorError};
use super::{arithmetic, elementary, matmul, power, reduction, select, shape};
use fhelium_ir::{Attribute, Attributes, DType, Tensor as Operation, TensorCall};
use num_complex::Complex;

/// The result of an operation of the `tensor` dialect.
///
/// The operation table decides what is allowed and what shape and element type the result has;
/// attributes need not be canonical.
///
/// # Errors
/// [`TensorError::Rule`] where the table refuses the operands or attributes,
/// [`TensorError::NegativePower`] for an integer raised to a negative one, and
/// [`TensorError::OutOfMemory`] if memory cannot hold the result.
pub fn evaluate(
    operation: Operation,
    operands: &[&Tensor],
    attributes: &Attributes,
) -> Result<Tensor, TensorError> {
    let name = operation.def().name;
    let types: Vec<_> = operands
        .iter()
        .map(|operand| (operand.dtype(), operand.shape()))
        .collect();
    let call =
        TensorCall::new(operation, &types, attributes).map_err(|error| TensorError::Rule {
            operation: name,
            error,
        })?;
    check_size(name, &call.shape, call.dtype)?;
    compute(operation, operands, &call)
}

fn compute(
    operation: Operation,
    operands: &[&Tensor],
    call: &TensorCall,
) -> Result<Tensor, TensorError> {
    use Operation as O;
    let (dtype, shape) = (call.dtype, &call.shape[..]);
    let axis = || call.axis().expect("the table holds this attribute");
    Ok(match (operation, operands) {
        (O::Constant, []) => constant(call.value(), dtype),
        (O::Add, [x, y]) => arithmetic::add(x, y, dtype, shape),
        (O::Sub, [x, y]) => arithmetic::subtract(x, y, dtype, shape),
        (O::Mul, [x, y]) => arithmetic::multiply(x, y, dtype, shape),
        (O::Div, [x, y]) => arithmetic::divide(x, y, dtype, shape),
        (O::Pow, [x, y]) => power::power(x, y, dtype, shape)?,
        (O::Neg, [x]) => arithmetic::negate(x),
        (O::Abs, [x]) => arithmetic::absolute(x),
        (O::Exp, [x]) => elementary::exp(x),
        (O::Log, [x]) => elementary::log(x),
        (O::Sqrt, [x]) => elementary::sqrt(x),
        (O::Sin, [x]) => elementary::sin(x),
        (O::Cos, [x]) => elementary::cos(x),
        (O::Tanh, [x]) => elementary::tanh(x),
        (O::Real, [x]) => arithmetic::real(x),
        (O::Imag, [x]) => arithmetic::imaginary(x),
        (O::Conj, [x]) => arithmetic::conjugate(x),
        (O::Cast, [x]) => cast(x, dtype),
        (O::Clip, [x, low, high]) => select::clip(x, low, high, dtype, shape),
        (O::Where, [condition, x, y]) => select::choose(condition, x, y, dtype, shape),
        (O::Broadcast, [x]) => shape::broadcast(x, shape),
        (O::Roll, [x]) => shape::roll(x, call.shift(), call.axis()),
        (O::Reshape, [x]) => shape::reshape(x, shape),
        (O::Transpose, [x]) => shape::transpose(x, &call.axes()),
        (O::Slice, [x]) => shape::slice(x, &call.spans()),
        (O::Index, [x]) => shape::index(x, axis(), call.index()),
        (O::Stack, arrays) => shape::stack(arrays, axis(), dtype, shape),
        (O::Concatenate, arrays) => shape::concatenate(arrays, axis(), dtype, shape),
        (O::Sum, [x]) => reduction::sum(x, &call.axes(), call.keepdims(), dtype),
        (O::Mean, [x]) => reduction::mean(x, &call.axes(), call.keepdims(), dtype),
        (O::Matmul, [x, y]) => matmul::matmul(x, y, dtype, shape),
        (operation, operands) => {
            unreachable!(
                "{operation:?} of {} operands passed the table",
                operands.len()
            )
        }
    })
}

/// A number that the table found to fit the element type.
fn constant(value: Option<&Attribute>, dtype: DType) -> Tensor {
    fn scalar<S: Element>(value: S, dtype: DType) -> Tensor {
        with_type!(dtype, T => Tensor::scalar(T::from_element(value)))
    }
    match value {
        Some(Attribute::Bool(value)) => scalar(*value, dtype),
        Some(Attribute::Int(value)) => scalar(*value, dtype),
        Some(Attribute::Float(value)) => scalar(value.get(), dtype),
        Some(Attribute::Complex(re, im)) => scalar(Complex::new(re.get(), im.get()), dtype),
        other => unreachable!("a constant holds a number, the table let {other:?} pass"),
    }
}
