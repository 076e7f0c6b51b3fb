//! Why the scheme refuses something.

use crate::arith::ArithError;
use crate::keys::{KeyKind, SecretId};
use crate::parameters::ParametersId;
use fhelium_state::{ErrorKind, StateError};
use thiserror::Error;

/// A refused parameter, value, key or operation.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum CkksError {
    /// Operands whose levels, scales or parts do not allow the operation.
    #[error(transparent)]
    State(#[from] StateError),
    /// A modulus, ring degree or CPU tier that the arithmetic refuses.
    #[error(transparent)]
    Arith(#[from] ArithError),
    /// A parameter outside its range.
    #[error("{argument} = {found} is not allowed: expected {expected}")]
    Parameter {
        /// The argument's name.
        argument: &'static str,
        /// What was given.
        found: String,
        /// What is allowed, and what to do.
        expected: String,
    },
    /// Parameters whose modulus is too large for the security that was asked for.
    #[error(
        "log QP = {log_qp:.2} exceeds {bound}, the largest for {security}-bit security at N = 2^{log_n} \
         (special primes counted); {remedy}, or pass allow_insecure"
    )]
    Security {
        /// Binary logarithm of the whole modulus, special primes counted.
        log_qp: f64,
        /// The table's bound at this ring degree; 0 where it has none.
        bound: u32,
        /// The security asked for, in bits.
        security: u32,
        /// Binary logarithm of the ring degree.
        log_n: u32,
        /// The ring degree or depth that fits.
        remedy: String,
    },
    /// A message entry that is NaN or infinite.
    #[error(
        "{operation}: the value at index {index} is {found}; a message holds finite numbers only"
    )]
    NotFinite {
        /// The operation.
        operation: &'static str,
        /// Index into the message, flattened.
        index: usize,
        /// The value.
        found: String,
    },
    /// A message that the modulus at its level cannot hold.
    #[error(
        "{operation}: the value {found} at index {index} does not fit: at scale {scale} and level {level} \
         |values| must stay below {bound:.6e}; use a smaller scale, a higher level or smaller values"
    )]
    DoesNotFit {
        /// The operation.
        operation: &'static str,
        /// The largest value.
        found: String,
        /// Its index into the message, flattened.
        index: usize,
        /// The scale.
        scale: String,
        /// The level.
        level: usize,
        /// The bound: half the modulus over the scale.
        bound: f64,
    },
    /// A message or buffer of the wrong shape.
    #[error("{operation}: found {found}, expected {expected}")]
    Shape {
        /// The operation.
        operation: &'static str,
        /// What was given.
        found: String,
        /// What is accepted.
        expected: String,
    },
    /// Batch shapes that do not broadcast.
    #[error(
        "{operation}: the batch shapes {left:?} and {right:?} do not broadcast; aligned from the right, \
         axes must be equal or 1"
    )]
    Broadcast {
        /// The operation.
        operation: &'static str,
        /// The left operand's batch shape.
        left: Vec<usize>,
        /// The right operand's batch shape.
        right: Vec<usize>,
    },
    /// A value or key of other parameters.
    #[error(
        "{operation}: the {what} belongs to parameters {found}, but {expected} are in use here; values and \
         keys serve only the parameters that they were made for"
    )]
    ParametersMismatch {
        /// The operation.
        operation: &'static str,
        /// Which operand.
        what: &'static str,
        /// The operand's parameters.
        found: ParametersId,
        /// The parameters expected.
        expected: ParametersId,
    },
    /// A value or key of another secret.
    #[error(
        "{operation}: the {what} belongs to secret {found}, but the ciphertext to secret {expected}; use \
         the keys that were generated together with the ciphertext's"
    )]
    SecretMismatch {
        /// The operation.
        operation: &'static str,
        /// Which operand.
        what: &'static str,
        /// The operand's secret.
        found: SecretId,
        /// The secret expected.
        expected: SecretId,
    },
    /// A key of another kind or another rotation.
    #[error("{operation}: needs the {expected} key, found the {found} key")]
    WrongKey {
        /// The operation.
        operation: &'static str,
        /// The key given.
        found: KeyKind,
        /// The key needed.
        expected: KeyKind,
    },
    /// No randomness from the operating system.
    #[error("the operating system gave no randomness: {reason}")]
    Randomness {
        /// What it said.
        reason: String,
    },
    /// The threads of a context could not be started.
    #[error("{threads} threads could not be started: {reason}; ask for fewer")]
    Threads {
        /// The threads asked for.
        threads: usize,
        /// What the operating system said.
        reason: String,
    },
    /// A buffer larger than memory.
    #[error("{operation}: {bytes} bytes could not be allocated")]
    OutOfMemory {
        /// The operation.
        operation: &'static str,
        /// The bytes asked for.
        bytes: usize,
    },
}

impl CkksError {
    /// The class of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            CkksError::State(error) => error.kind(),
            CkksError::Arith(_) | CkksError::Parameter { .. } => ErrorKind::Parameter,
            CkksError::Security { .. } => ErrorKind::Security,
            CkksError::NotFinite { .. }
            | CkksError::DoesNotFit { .. }
            | CkksError::Shape { .. }
            | CkksError::Broadcast { .. } => ErrorKind::Value,
            CkksError::ParametersMismatch { .. } | CkksError::SecretMismatch { .. } => {
                ErrorKind::KeyMismatch
            }
            CkksError::WrongKey { .. } => ErrorKind::MissingKey,
            CkksError::Randomness { .. } | CkksError::Threads { .. } => ErrorKind::Device,
            CkksError::OutOfMemory { .. } => ErrorKind::OutOfMemory,
        }
    }
}

/// The result of everything that can be refused.
pub type Result<T> = std::result::Result<T, CkksError>;
