//! An operation on clear tensors as a backend sees it: checked, its attributes in hand.

use super::{InferContext, OpKind, Tensor};
use crate::{Attribute, Attributes, DType, InferError, Type};

/// A checked operation of the `tensor` dialect: its result's type and its canonical attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorCall {
    /// The result's element type.
    pub dtype: DType,
    /// The result's shape.
    pub shape: Vec<usize>,
    attributes: Attributes,
}

/// Evenly spaced elements of one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The place of the first.
    pub start: usize,
    /// How many.
    pub size: usize,
    /// From each to the next; not 0.
    pub step: isize,
    /// Whether the result lacks the axis, which has size 1.
    pub dropped: bool,
}

impl TensorCall {
    /// Checks operands, each with element type and shape, and attributes, which need not be
    /// canonical.
    ///
    /// # Errors
    /// What the operation's entry in the table refuses.
    pub fn new(
        operation: Tensor,
        operands: &[(DType, &[usize])],
        attributes: &Attributes,
    ) -> Result<Self, InferError> {
        let types: Vec<Type> = operands
            .iter()
            .map(|&(dtype, shape)| Type::tensor(dtype, shape))
            .collect();
        let types: Vec<&Type> = types.iter().collect();
        let kind = OpKind::from(operation);
        let resolved = kind.resolve(&InferContext::default(), &types, attributes, None)?;
        match resolved.results.into_iter().next() {
            Some(Type::Tensor { dtype, shape }) => Ok(TensorCall {
                dtype,
                shape,
                attributes: resolved.attributes,
            }),
            result => unreachable!("{kind} gives one tensor, the table says {result:?}"),
        }
    }

    /// The number that a constant holds.
    pub fn value(&self) -> Option<&Attribute> {
        self.attributes.get("value")
    }

    /// The axis of an operation along one.
    pub fn axis(&self) -> Option<usize> {
        self.attributes.int("axis").map(|axis| axis as usize)
    }

    /// How far a roll moves elements.
    pub fn shift(&self) -> i64 {
        self.int("shift")
    }

    /// The place that an index takes.
    pub fn index(&self) -> usize {
        self.int("index") as usize
    }

    /// The axes of a reduction, ascending, or of a transposition.
    pub fn axes(&self) -> Vec<usize> {
        self.places("axes")
    }

    /// Whether reduced axes stay with extent 1.
    pub fn keepdims(&self) -> bool {
        self.attributes.bool("keepdims").unwrap_or(false)
    }

    /// What a slice takes of each axis.
    pub fn spans(&self) -> Vec<Span> {
        let dropped = self.places("dropped");
        let steps = self.ints("starts").iter().zip(self.ints("steps"));
        let each = steps.zip(self.ints("sizes")).enumerate();
        each.map(|(axis, ((&start, &step), &size))| Span {
            start: start as usize,
            size: size as usize,
            step: step as isize,
            dropped: dropped.contains(&axis),
        })
        .collect()
    }

    fn int(&self, name: &str) -> i64 {
        self.attributes
            .int(name)
            .expect("the table holds this attribute")
    }

    fn ints(&self, name: &str) -> &[i64] {
        self.attributes
            .ints(name)
            .expect("the table holds this attribute")
    }

    fn places(&self, name: &str) -> Vec<usize> {
        let places = self.ints(name).iter();
        places.map(|&place| place as usize).collect()
    }
}

/// Why an integer is not raised to a negative one, which only the data tells.
pub fn negative_power(exponent: i64) -> InferError {
    InferError::value(format!(
        "an integer cannot be raised to the negative integer {exponent}; cast the base to a float \
         first"
    ))
}
