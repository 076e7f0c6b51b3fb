//! Result types of the operations on batch axes, those of `he` and of `ckks`.
//!
//! Axes and indices follow numpy's rules; levels, scales and parts stay.

use super::{Call, shape, tensor_rules};
use crate::types::List;
use crate::{Attributes, InferError, Type};
use fhelium_state::{CipherState, PlainState, StateError};

type Types = Result<Vec<Type>, InferError>;
type Canonical = Result<(), InferError>;

/// The first operand's type under another batch shape.
fn with_batch(call: &Call<'_>, batch: Vec<usize>) -> Types {
    shape::check_size(&batch)?;
    match call.operands.first() {
        Some(Type::Ciphertext { state, .. }) => Ok(vec![Type::Ciphertext {
            batch,
            state: state.clone(),
        }]),
        Some(Type::Plaintext { state, .. }) => Ok(vec![Type::Plaintext {
            batch,
            state: state.clone(),
        }]),
        _ => Err(InferError::malformed(
            "operand 0 must be a ciphertext or a plaintext",
        )),
    }
}

fn batch<'a>(call: &Call<'a>) -> &'a [usize] {
    call.operands.first().map_or(&[], |operand| operand.batch())
}

/// Adds the batch shape that an error is about.
fn of_batch<T>(batch: &[usize], result: Result<T, InferError>) -> Result<T, InferError> {
    result.map_err(|error| match error {
        InferError::Invalid { kind, message } => InferError::Invalid {
            kind,
            message: format!("{message}; the batch shape is {}", List(batch)),
        },
        other => other,
    })
}

/// An axis of the batch, or of one that has `more` axes.
fn axis(call: &Call<'_>, more: usize) -> Result<usize, InferError> {
    let (axis, batch) = (call.int("axis")?, batch(call));
    if batch.len() + more == 0 {
        return Err(InferError::value(format!(
            "axis {axis} was given, but the operand is a single one: its batch shape is []"
        )));
    }
    of_batch(batch, shape::axis(axis, batch.len() + more))
}

pub(super) fn canonical_axis(call: &Call<'_>, attributes: &mut Attributes) -> Canonical {
    attributes.set("axis", axis(call, 0)? as i64);
    Ok(())
}

pub(super) fn sum(call: &Call<'_>) -> Types {
    let mut batch = batch(call).to_vec();
    let axis = axis(call, 0)?;
    if batch[axis] == 0 {
        // A ciphertext of zeros without any noise would hide nothing.
        return Err(InferError::value(format!(
            "axis {axis} of the batch shape {} is empty; a sum needs one ciphertext at least",
            List(&batch)
        )));
    }
    batch.remove(axis);
    with_batch(call, batch)
}

pub(super) fn canonical_slice(call: &Call<'_>, attributes: &mut Attributes) -> Canonical {
    let batch = batch(call);
    let dropped = of_batch(batch, shape::axes(call.ints("dropped")?, batch.len()))?;
    attributes.set("dropped", shape::to_ints(&dropped));
    Ok(())
}

pub(super) fn slice(call: &Call<'_>) -> Types {
    let batch = batch(call);
    with_batch(call, of_batch(batch, tensor_rules::sliced(call, batch))?)
}

pub(super) fn canonical_reshape(call: &Call<'_>, attributes: &mut Attributes) -> Canonical {
    let target = reshaped(call)?;
    attributes.set("shape", shape::to_ints(&target));
    Ok(())
}

fn reshaped(call: &Call<'_>) -> Result<Vec<usize>, InferError> {
    let batch = batch(call);
    of_batch(batch, shape::reshape(batch, call.ints("shape")?))
}

pub(super) fn reshape(call: &Call<'_>) -> Types {
    with_batch(call, reshaped(call)?)
}

pub(super) fn canonical_stack(call: &Call<'_>, attributes: &mut Attributes) -> Canonical {
    attributes.set("axis", axis(call, 1)? as i64);
    Ok(())
}

pub(super) fn stack(call: &Call<'_>) -> Types {
    let axis = axis(call, 1)?;
    let mut stacked = batch(call).to_vec();
    stacked.insert(axis, call.operands.len());
    let mut types = with_batch(call, stacked)?;
    for (place, other) in call.operands.iter().enumerate().skip(1) {
        if other.batch() != batch(call) {
            return Err(InferError::value(format!(
                "operand {place} has the batch shape {}, the first {}; stack needs one shape",
                List(other.batch()),
                List(batch(call))
            )));
        }
        for ty in &mut types {
            *ty = joined(call, ty, other, place)?;
        }
    }
    Ok(types)
}

/// The stacked type with the state that another operand allows.
fn joined(call: &Call<'_>, stacked: &Type, other: &Type, place: usize) -> Result<Type, InferError> {
    match (stacked, other) {
        (Type::Ciphertext { batch, state }, Type::Ciphertext { state: other, .. }) => {
            let state = match (state, other) {
                (Some(state), Some(other)) => Some(one_state(call, state, other)?),
                _ => None,
            };
            Ok(Type::Ciphertext {
                batch: batch.clone(),
                state,
            })
        }
        (Type::Plaintext { batch, state }, Type::Plaintext { state: other, .. }) => {
            let state = match (state, other) {
                (Some(state), Some(other)) => {
                    let cipher =
                        |plain: &PlainState| CipherState::new(plain.level, plain.scale.clone());
                    let state = one_state(call, &cipher(state), &cipher(other))?;
                    Some(PlainState {
                        level: state.level,
                        scale: state.scale,
                    })
                }
                _ => None,
            };
            Ok(Type::Plaintext {
                batch: batch.clone(),
                state,
            })
        }
        _ => Err(InferError::value(format!(
            "operand {place} is {}, the first {}; stack needs one kind",
            other.noun(),
            stacked.noun()
        ))),
    }
}

/// Levels and parts must be equal, scales as for a sum.
fn one_state(
    call: &Call<'_>,
    left: &CipherState,
    right: &CipherState,
) -> Result<CipherState, InferError> {
    if left.parts != right.parts {
        return Err(StateError::Parts {
            operation: "stack",
            found: right.parts,
            expected: left.parts,
            remedy: "stacked ciphertexts have the same number: relinearize those of three parts",
        }
        .into());
    }
    Ok(left.add(call.chain()?, "stack", right)?)
}
