//! The kernels on batch axes, of ciphertexts and of plaintexts.

use super::ckks::Typed;
use super::kernels::{Kernels, Place};
use super::{Invocation, Operands, Results};
use crate::{RuntimeError, Value};
use fhelium_ckks::BatchSpan;
use fhelium_ir::{Attributes, Ckks};
use smallvec::smallvec;

/// Runs one of them.
pub(super) fn execute<P: Kernels>(
    operation: Ckks,
    invocation: &Invocation<'_>,
    operands: Operands,
) -> Result<Results, RuntimeError> {
    let context = P::of(invocation.engine)?;
    let attributes = invocation.attributes;
    let typed = Typed::<P>::new(operation, &operands);
    let cipher = |result| Value::Ciphertext(P::placed(result));
    let plain = |result| Value::Plaintext(P::placed(result));
    let is_plain = matches!(operands.first(), Some(Value::Plaintext(_)));
    let axis = || {
        let axis = attributes
            .int("axis")
            .and_then(|axis| usize::try_from(axis).ok());
        axis.ok_or_else(|| typed.malformed("axis is missing or negative"))
    };
    let result = match operation {
        Ckks::SumBatch => cipher(context.sum_batch(typed.ciphertext(0)?, axis()?)?),
        Ckks::BatchSlice => {
            let spans = spans(attributes).ok_or_else(|| {
                typed.malformed("starts, sizes or steps are missing, negative or of unlike lengths")
            })?;
            match is_plain {
                true => plain(context.slice_plain_batch(typed.plaintext(0)?, &spans)?),
                false => cipher(context.slice_batch(typed.ciphertext(0)?, &spans)?),
            }
        }
        Ckks::BatchReshape => {
            let shape = attributes.ints("shape").unwrap_or_default();
            let shape = shape.iter().map(|&extent| usize::try_from(extent).ok());
            let shape: Option<Vec<usize>> = shape.collect();
            let shape = shape.ok_or_else(|| typed.malformed("an extent of shape is negative"))?;
            return reshape::<P>(operands, shape);
        }
        Ckks::StackBatch => {
            let places = 0..operands.len();
            match is_plain {
                true => {
                    let items = places.map(|place| typed.plaintext(place));
                    let items: Vec<_> = items.collect::<Result<_, _>>()?;
                    plain(context.stack_plain_batch(&items, axis()?)?)
                }
                false => {
                    let items = places.map(|place| typed.ciphertext(place));
                    let items: Vec<_> = items.collect::<Result<_, _>>()?;
                    cipher(context.stack_batch(&items, axis()?)?)
                }
            }
        }
        _ => return Err(typed.malformed("this is no operation on batch axes")),
    };
    Ok(smallvec![result])
}

/// The slice that the attributes describe.
fn spans(attributes: &Attributes) -> Option<Vec<BatchSpan>> {
    let list = |name: &str| attributes.ints(name);
    let (starts, sizes, steps) = (list("starts")?, list("sizes")?, list("steps")?);
    let dropped = list("dropped").unwrap_or_default();
    if sizes.len() != starts.len() || steps.len() != starts.len() {
        return None;
    }
    let span = |axis: usize| {
        let size = usize::try_from(sizes[axis]).ok()?;
        Some(BatchSpan {
            // Where nothing is taken, the start is nowhere in particular.
            start: if size == 0 {
                0
            } else {
                usize::try_from(starts[axis]).ok()?
            },
            size,
            step: isize::try_from(steps[axis]).ok()?,
            dropped: dropped.contains(&(axis as i64)),
        })
    };
    (0..starts.len()).map(span).collect()
}

/// The same residues under other batch axes.
fn reshape<P: Place>(operands: Operands, shape: Vec<usize>) -> Result<Results, RuntimeError> {
    let reshaped = match operands.into_iter().next() {
        Some(value) => P::reshape(value, shape)?,
        None => None,
    };
    let result = reshaped.ok_or_else(|| {
        RuntimeError::Implementation(format!(
            "ckks.batch_reshape: the operand is neither a ciphertext nor a plaintext for the \
             kernels named {}",
            P::NAME
        ))
    })?;
    Ok(smallvec![result])
}
