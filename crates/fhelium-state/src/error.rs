//! Why an operation is refused.

use crate::Scale;
use thiserror::Error;

/// The class of an error, the same in every crate and in Python.
///
/// Python's `fhelium.errors` has one exception class for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Parameters that cannot be made.
    Parameter,
    /// Parameters below the security that was asked for.
    Security,
    /// An argument of the wrong value, shape or type.
    Value,
    /// Operands whose scales differ.
    ScaleMismatch,
    /// Operands whose levels differ.
    LevelMismatch,
    /// An operand with the wrong number of parts.
    Parts,
    /// An operation that needs more levels than are left.
    LevelExhausted,
    /// An operation without the evaluation key that it needs.
    MissingKey,
    /// A key or value of another secret or of other parameters.
    KeyMismatch,
    /// A function that cannot be captured.
    Capture,
    /// A Program that is malformed, or a pass that failed.
    Compile,
    /// A Program that no backend can run.
    Link,
    /// No specialization for these arguments where none may be made.
    SpecializationMiss,
    /// A device that is missing or not the value's.
    Device,
    /// Memory that could not be had.
    OutOfMemory,
    /// A file or text that does not hold what it should.
    Serialization,
}

/// An operation that its operands' levels, scales or parts do not allow.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StateError {
    /// Two operands of a sum at different scales.
    #[error(
        "{operation}: the scales differ: {left} (level {left_level}) and {right} (level \
         {right_level}); a sum needs one scale: rescale the operand with the larger scale, or \
         encode the other at {left}"
    )]
    ScaleMismatch {
        /// The operation.
        operation: &'static str,
        /// The left operand's scale.
        left: Scale,
        /// The left operand's level.
        left_level: usize,
        /// The right operand's scale.
        right: Scale,
        /// The right operand's level.
        right_level: usize,
    },
    /// Two operands at different levels.
    #[error(
        "{operation}: the left operand is at level {left} and the right operand at level {right}; \
         lower the {higher} one with drop_levels({by})",
        higher = if left > right { "left" } else { "right" },
        by = left.abs_diff(*right)
    )]
    LevelMismatch {
        /// The operation.
        operation: &'static str,
        /// The left operand's level.
        left: usize,
        /// The right operand's level.
        right: usize,
    },
    /// An operand with three parts where two are needed, or two where three are.
    #[error("{operation}: the operand has {found} parts and must have {expected}; {remedy}")]
    Parts {
        /// The operation.
        operation: &'static str,
        /// The parts that the operand has.
        found: usize,
        /// The parts that it must have.
        expected: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// The operation needs a level that is not left.
    #[error(
        "{operation}: no level is left for it: the operand is at level {level} of {depth}, and {why}; \
         Parameters(depth={needed}) would fit this product"
    )]
    LevelExhausted {
        /// The operation.
        operation: &'static str,
        /// The operand's level.
        level: usize,
        /// The depth of the parameters.
        depth: usize,
        /// The smallest depth that would allow it.
        needed: usize,
        /// What does not fit.
        why: String,
    },
    /// A rescale that would leave no precision.
    #[error(
        "rescale: the scale {scale} divided by the prime of level {level} would leave {result}, below \
         the least useful scale {least}; it looks rescaled already: rescale once after each product"
    )]
    ScaleTooSmall {
        /// The operand's scale.
        scale: Scale,
        /// The operand's level.
        level: usize,
        /// What would be left.
        result: Scale,
        /// The least that is accepted.
        least: Scale,
    },
    /// A level outside the chain.
    #[error("{operation}: level {level} does not exist: levels run from 0 to {depth}")]
    NoSuchLevel {
        /// The operation.
        operation: &'static str,
        /// The level asked for.
        level: usize,
        /// The largest level.
        depth: usize,
    },
    /// More levels dropped than there are.
    #[error("drop_levels: {count} levels asked for, but the operand is at level {level}")]
    DropTooMany {
        /// The levels to drop.
        count: usize,
        /// The operand's level.
        level: usize,
    },
    /// A scale that the modulus at this level cannot hold.
    #[error(
        "{operation}: a scale of {scale} does not fit the modulus at level {level}, which has {bits:.1} \
         bits; use a smaller scale or a higher level"
    )]
    ScaleTooLarge {
        /// The operation.
        operation: &'static str,
        /// The scale.
        scale: Scale,
        /// The level.
        level: usize,
        /// Bits of the modulus at that level.
        bits: f64,
    },
    /// A number that is no scale.
    #[error("a scale must be a positive finite number of at least 1, found {found}")]
    NotAScale {
        /// What was given.
        found: String,
    },
}

impl StateError {
    /// The class of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            StateError::ScaleMismatch { .. } => ErrorKind::ScaleMismatch,
            StateError::LevelMismatch { .. } => ErrorKind::LevelMismatch,
            StateError::Parts { .. } => ErrorKind::Parts,
            StateError::LevelExhausted { .. } | StateError::DropTooMany { .. } => {
                ErrorKind::LevelExhausted
            }
            StateError::ScaleTooSmall { .. } => ErrorKind::ScaleMismatch,
            StateError::NoSuchLevel { .. }
            | StateError::ScaleTooLarge { .. }
            | StateError::NotAScale { .. } => ErrorKind::Value,
        }
    }
}
