//! Running one operation.

use super::cast::{Convert, cast};
use super::element::with_type;
use super::layout::check_size;
use super::shape::Span;
use super::{Element, Tensor, TensorError};
use super::{arithmetic, elementary, matmul, power, reduction, select, shape};
use fhelium_ir::{Attribute, Attributes, DType, InferContext, OpKind, Tensor as Operation, Type};
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
    let types: Vec<Type> = operands
        .iter()
        .map(|operand| Type::tensor(operand.dtype(), operand.shape()))
        .collect();
    let types: Vec<&Type> = types.iter().collect();
    let resolved = OpKind::from(operation)
        .resolve(&InferContext::default(), &types, attributes, None)
        .map_err(|error| TensorError::Rule {
            operation: name,
            error,
        })?;
    match &resolved.results[..] {
        [Type::Tensor { dtype, shape }] => {
            check_size(name, shape, *dtype)?;
            compute(
                operation,
                operands,
                &Arguments(&resolved.attributes),
                *dtype,
                shape,
            )
        }
        results => unreachable!("{name} gives one tensor, the table says {results:?}"),
    }
}

/// The canonical attributes of an operation, which the table has checked.
struct Arguments<'a>(&'a Attributes);

impl Arguments<'_> {
    fn int(&self, name: &str) -> i64 {
        self.0.int(name).expect("the table holds this attribute")
    }

    fn place(&self, name: &str) -> usize {
        self.int(name) as usize
    }

    fn ints(&self, name: &str) -> &[i64] {
        self.0.ints(name).expect("the table holds this attribute")
    }

    fn places(&self, name: &str) -> Vec<usize> {
        self.ints(name)
            .iter()
            .map(|&place| place as usize)
            .collect()
    }

    fn keepdims(&self) -> bool {
        self.0.bool("keepdims").unwrap_or(false)
    }

    fn spans(&self) -> Vec<Span> {
        let dropped = self.places("dropped");
        let each = self
            .ints("starts")
            .iter()
            .zip(self.ints("sizes"))
            .zip(self.ints("steps"));
        each.enumerate()
            .map(|(axis, ((&start, &size), &step))| Span {
                start: start as usize,
                size: size as usize,
                step: step as isize,
                dropped: dropped.contains(&axis),
            })
            .collect()
    }
}

fn compute(
    operation: Operation,
    operands: &[&Tensor],
    arguments: &Arguments<'_>,
    dtype: DType,
    shape: &[usize],
) -> Result<Tensor, TensorError> {
    use Operation as O;
    Ok(match (operation, operands) {
        (O::Constant, []) => constant(arguments.0.get("value"), dtype),
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
        (O::Roll, [x]) => {
            let axis = arguments.0.int("axis").map(|axis| axis as usize);
            shape::roll(x, arguments.int("shift"), axis)
        }
        (O::Reshape, [x]) => shape::reshape(x, shape),
        (O::Transpose, [x]) => shape::transpose(x, &arguments.places("axes")),
        (O::Slice, [x]) => shape::slice(x, &arguments.spans()),
        (O::Index, [x]) => shape::index(x, arguments.place("axis"), arguments.place("index")),
        (O::Stack, arrays) => shape::stack(arrays, arguments.place("axis"), dtype, shape),
        (O::Concatenate, arrays) => {
            shape::concatenate(arrays, arguments.place("axis"), dtype, shape)
        }
        (O::Sum, [x]) => reduction::sum(x, &arguments.places("axes"), arguments.keepdims(), dtype),
        (O::Mean, [x]) => {
            reduction::mean(x, &arguments.places("axes"), arguments.keepdims(), dtype)
        }
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
