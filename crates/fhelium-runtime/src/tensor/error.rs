//! Why an operation on clear tensors is refused.

use fhelium_ir::{DType, InferError, negative_power};
use fhelium_state::ErrorKind;
use std::fmt;
use thiserror::Error;

/// An operation on clear tensors that its operands or attributes do not allow.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum TensorError {
    /// Operands or attributes that the operation's entry in the table does not allow.
    #[error("{operation}: {error}")]
    Rule {
        /// The operation.
        operation: &'static str,
        /// What was found and what was expected.
        error: InferError,
    },
    /// An integer raised to a negative integer.
    #[error("tensor.pow: {}", negative_power(*exponent))]
    NegativePower {
        /// The first negative exponent.
        exponent: i64,
    },
    /// Data that does not hold the elements which shape, strides and offset describe.
    #[error(
        "a tensor of shape {} with strides {strides:?} from element {offset} does not fit {len} \
         elements of data",
        Shape(shape)
    )]
    Layout {
        /// The shape asked for.
        shape: Vec<usize>,
        /// The strides asked for, in elements.
        strides: Vec<isize>,
        /// The first element's position.
        offset: usize,
        /// The elements given.
        len: usize,
    },
    /// Bytes that do not hold a tensor.
    #[error(
        "{found} bytes do not hold a tensor of {dtype} and shape {}: {expected}",
        Shape(shape)
    )]
    Bytes {
        /// The element type asked for.
        dtype: DType,
        /// The shape asked for.
        shape: Vec<usize>,
        /// The bytes given.
        found: usize,
        /// What would fit.
        expected: String,
    },
    /// A tensor that memory cannot hold.
    #[error(
        "{operation}: a tensor of shape {} in {dtype} does not fit in memory",
        Shape(shape)
    )]
    OutOfMemory {
        /// The operation that would make it.
        operation: &'static str,
        /// Its shape.
        shape: Vec<usize>,
        /// Its element type.
        dtype: DType,
    },
}

impl TensorError {
    /// The class of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            TensorError::Rule { error, .. } => error.kind(),
            TensorError::OutOfMemory { .. } => ErrorKind::OutOfMemory,
            TensorError::NegativePower { .. }
            | TensorError::Layout { .. }
            | TensorError::Bytes { .. } => ErrorKind::Value,
        }
    }
}

/// A shape as Python writes it: `()`, `(3,)`, `(2, 3)`.
struct Shape<'a>(&'a [usize]);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [only] => write!(f, "({only},)"),
            lengths => {
                f.write_str("(")?;
                for (axis, length) in lengths.iter().enumerate() {
                    let comma = if axis == 0 { "" } else { ", " };
                    write!(f, "{comma}{length}")?;
                }
                f.write_str(")")
            }
        }
    }
}
