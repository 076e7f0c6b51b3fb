//! Sums, slices and stacks of batches.

use crate::buffers::Buffer;
use crate::context::Context;
use crate::error::{CkksError, Result};
use crate::values::{Ciphertext, Plaintext, batch_size};
use fhelium_state::PlainState;

/// Evenly spaced items of one batch axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSpan {
    /// The place of the first.
    pub start: usize,
    /// How many.
    pub size: usize,
    /// From each to the next.
    pub step: isize,
    /// Whether the result lacks the axis, which then has size 1.
    pub dropped: bool,
}

impl BatchSpan {
    /// The places, where all lie within `extent` and the span may be what it says.
    fn places(self, extent: usize) -> Option<Vec<usize>> {
        let place = |index: usize| {
            let distance = isize::try_from(index).ok()?.checked_mul(self.step)?;
            let place = self.start.checked_add_signed(distance)?;
            (place < extent).then_some(place)
        };
        if self.dropped && self.size != 1 || self.step == 0 && self.size > 1 {
            return None;
        }
        // The ends first: a size that no axis has must not be counted through.
        if let Some(last) = self.size.checked_sub(1) {
            place(0)?;
            place(last)?;
        }
        (0..self.size).map(place).collect()
    }
}

/// The batch shape of a slice, and the operand's item for each of its items.
fn sliced(batch_shape: &[usize], spans: &[BatchSpan]) -> Result<(Vec<usize>, Vec<usize>)> {
    let refused = |found: String, expected: String| CkksError::Shape {
        operation: "batch_slice",
        found,
        expected,
    };
    if spans.len() != batch_shape.len() {
        return Err(refused(
            format!("{} spans", spans.len()),
            format!("one for each axis of the batch shape {batch_shape:?}"),
        ));
    }
    let (mut shape, mut items) = (Vec::new(), vec![0]);
    for (axis, (&extent, &span)) in batch_shape.iter().zip(spans).enumerate() {
        let places = span.places(extent).ok_or_else(|| {
            refused(
                format!("{span:?} of axis {axis}"),
                format!("places of the batch shape {batch_shape:?}"),
            )
        })?;
        if !span.dropped {
            shape.push(span.size);
        }
        let next = |&item: &usize| places.iter().map(move |place| item * extent + place);
        let next = items.iter().flat_map(next).collect();
        items = next;
    }
    Ok((shape, items))
}

/// The batch shape of `count` values along a new axis.
fn stacked(batch_shape: &[usize], count: usize, axis: usize) -> Result<Vec<usize>> {
    if axis > batch_shape.len() {
        return Err(CkksError::Shape {
            operation: "stack_batch",
            found: format!("axis {axis}"),
            expected: format!("a place in the batch shape {batch_shape:?}"),
        });
    }
    let mut shape = batch_shape.to_vec();
    shape.insert(axis, count);
    Ok(shape)
}

fn check_shapes<'a>(first: &[usize], mut others: impl Iterator<Item = &'a [usize]>) -> Result<()> {
    match others.find(|&other| other != first) {
        None => Ok(()),
        Some(other) => Err(CkksError::Shape {
            operation: "stack_batch",
            found: format!("the batch shapes {first:?} and {other:?}"),
            expected: "one shape".to_owned(),
        }),
    }
}

fn no_operands() -> CkksError {
    CkksError::Shape {
        operation: "stack_batch",
        found: "no operands".to_owned(),
        expected: "one at least".to_owned(),
    }
}

impl Context {
    /// The sum of a batch along one axis, which goes; level, scale and parts stay. No key is needed.
    ///
    /// # Errors
    /// [`CkksError::Shape`] for an axis that the batch lacks or that is empty;
    /// [`CkksError::ParametersMismatch`].
    pub fn sum_batch(&self, ciphertext: &Ciphertext, axis: usize) -> Result<Ciphertext> {
        self.check_ciphertext("sum_batch", ciphertext)?;
        let from = &ciphertext.batch_shape;
        let extent = match from.get(axis) {
            Some(&extent) if extent > 0 => extent,
            _ => {
                return Err(CkksError::Shape {
                    operation: "sum_batch",
                    found: format!("axis {axis} of the batch shape {from:?}"),
                    expected: "an axis with one item at least".to_owned(),
                });
            }
        };
        let mut batch_shape = from.clone();
        batch_shape.remove(axis);
        let inner = batch_size(&from[axis + 1..]);
        let n = self.n();
        let limbs = ciphertext.state.level + 1;
        let per_item = ciphertext.state.parts * limbs;
        let mut data = self.result_buffer("sum_batch", batch_size(&batch_shape) * per_item * n)?;
        self.each_limb(&mut data, |index, out| {
            let (item, limb) = (index / per_item, index % per_item);
            let first = item / inner * extent * inner + item % inner;
            let at = |place: usize| {
                &ciphertext.data[((first + place * inner) * per_item + limb) * n..][..n]
            };
            let ring = &self.limbs()[limb % limbs];
            if extent == 1 {
                out.copy_from_slice(at(0));
                return;
            }
            ring.add(out, at(0), at(1));
            for place in 2..extent {
                ring.add_assign(out, at(place));
            }
        });
        Ok(Ciphertext {
            batch_shape,
            data,
            ..ciphertext.without_data()
        })
    }

    /// Evenly spaced items along each batch axis, as numpy's basic indexing takes them.
    ///
    /// # Errors
    /// [`CkksError::Shape`] where the spans do not lie within the batch;
    /// [`CkksError::ParametersMismatch`].
    pub fn slice_batch(&self, ciphertext: &Ciphertext, spans: &[BatchSpan]) -> Result<Ciphertext> {
        self.check_ciphertext("batch_slice", ciphertext)?;
        let (batch_shape, items) = sliced(&ciphertext.batch_shape, spans)?;
        let limbs = ciphertext.state.parts * (ciphertext.state.level + 1);
        let data = self.gather("batch_slice", items.len(), limbs, |item| {
            (&ciphertext.data, items[item])
        })?;
        Ok(Ciphertext {
            batch_shape,
            data,
            ..ciphertext.without_data()
        })
    }

    /// As [`slice_batch`](Self::slice_batch), of a plaintext.
    ///
    /// # Errors
    /// As there.
    pub fn slice_plain_batch(
        &self,
        plaintext: &Plaintext,
        spans: &[BatchSpan],
    ) -> Result<Plaintext> {
        self.parameters()
            .check_id("batch_slice", "plaintext", plaintext.parameters)?;
        let (batch_shape, items) = sliced(&plaintext.batch_shape, spans)?;
        let limbs = plaintext.state.level + 1;
        let data = self.gather("batch_slice", items.len(), limbs, |item| {
            (&plaintext.data, items[item])
        })?;
        Ok(Plaintext {
            parameters: plaintext.parameters,
            state: plaintext.state.clone(),
            batch_shape,
            data,
        })
    }

    /// Ciphertexts of one batch shape along a new batch axis: equal levels and parts, scales equal or
    /// nominally equal, of which the largest is the result's.
    ///
    /// # Errors
    /// The level and scale rules'; [`CkksError::Shape`] where batch shapes or parts differ, where
    /// the axis is none of the result's or nothing is given; values of different parameters or
    /// secrets.
    pub fn stack_batch(&self, ciphertexts: &[&Ciphertext], axis: usize) -> Result<Ciphertext> {
        let first = *ciphertexts.first().ok_or_else(no_operands)?;
        let mut state = first.state.clone();
        for other in ciphertexts {
            self.check_pair("stack_batch", first, other)?;
            if other.state.parts != first.state.parts {
                return Err(CkksError::Shape {
                    operation: "stack_batch",
                    found: format!("{} and {} parts", first.state.parts, other.state.parts),
                    expected: "ciphertexts of as many parts".to_owned(),
                });
            }
            state = state.add(self.parameters().chain(), "stack", &other.state)?;
        }
        let shapes = ciphertexts.iter().map(|other| &other.batch_shape[..]);
        check_shapes(&first.batch_shape, shapes)?;
        let batch_shape = stacked(&first.batch_shape, ciphertexts.len(), axis)?;
        let inner = batch_size(&first.batch_shape[axis..]);
        let count = ciphertexts.len();
        let limbs = state.parts * (state.level + 1);
        let data = self.gather("stack_batch", batch_size(&batch_shape), limbs, |item| {
            let (outer, operand) = (item / inner / count, item / inner % count);
            (&ciphertexts[operand].data, outer * inner + item % inner)
        })?;
        Ok(Ciphertext {
            state,
            batch_shape,
            data,
            ..first.without_data()
        })
    }

    /// Plaintexts of one level and batch shape along a new batch axis.
    ///
    /// # Errors
    /// As [`stack_batch`](Self::stack_batch).
    pub fn stack_plain_batch(&self, plaintexts: &[&Plaintext], axis: usize) -> Result<Plaintext> {
        let first = *plaintexts.first().ok_or_else(no_operands)?;
        let as_cipher =
            |state: &PlainState| fhelium_state::CipherState::new(state.level, state.scale.clone());
        let mut state = as_cipher(&first.state);
        for other in plaintexts {
            self.parameters()
                .check_id("stack_batch", "plaintext", other.parameters)?;
            let chain = self.parameters().chain();
            state = state.add(chain, "stack", &as_cipher(&other.state))?;
        }
        let shapes = plaintexts.iter().map(|other| &other.batch_shape[..]);
        check_shapes(&first.batch_shape, shapes)?;
        let batch_shape = stacked(&first.batch_shape, plaintexts.len(), axis)?;
        let inner = batch_size(&first.batch_shape[axis..]);
        let count = plaintexts.len();
        let data = self.gather(
            "stack_batch",
            batch_size(&batch_shape),
            state.level + 1,
            |item| {
                let (outer, operand) = (item / inner / count, item / inner % count);
                (&plaintexts[operand].data, outer * inner + item % inner)
            },
        )?;
        Ok(Plaintext {
            parameters: first.parameters,
            state: PlainState {
                level: state.level,
                scale: state.scale,
            },
            batch_shape,
            data,
        })
    }

    /// Items of `limbs` limbs each, copied from where `source` says: a buffer and an item of it.
    fn gather<'a>(
        &self,
        operation: &'static str,
        items: usize,
        limbs: usize,
        source: impl Fn(usize) -> (&'a Buffer, usize) + Send + Sync,
    ) -> Result<Buffer> {
        let n = self.n();
        let mut data = self.result_buffer(operation, items * limbs * n)?;
        self.each_limb(&mut data, |index, out| {
            let (from, item) = source(index / limbs);
            out.copy_from_slice(&from[(item * limbs + index % limbs) * n..][..n]);
        });
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: usize, size: usize, step: isize, dropped: bool) -> BatchSpan {
        BatchSpan {
            start,
            size,
            step,
            dropped,
        }
    }

    #[test]
    fn slices_find_the_items_that_numpy_does() {
        let all = span(0, 3, 1, false);
        // numpy.arange(6).reshape(2, 3)[1], [:, ::-2] and [1, 2].
        assert_eq!(
            sliced(&[2, 3], &[span(1, 1, 1, true), all]),
            Ok((vec![3], vec![3, 4, 5]))
        );
        assert_eq!(
            sliced(&[2, 3], &[span(0, 2, 1, false), span(2, 2, -2, false)]),
            Ok((vec![2, 2], vec![2, 0, 5, 3]))
        );
        assert_eq!(
            sliced(&[2, 3], &[span(1, 1, 1, true), span(2, 1, 1, true)]),
            Ok((vec![], vec![5]))
        );
        assert_eq!(sliced(&[2], &[span(0, 0, 1, false)]), Ok((vec![0], vec![])));
        assert_eq!(sliced(&[], &[]), Ok((vec![], vec![0])));
    }

    #[test]
    fn slices_outside_the_batch_are_refused() {
        for bad in [
            span(2, 1, 1, true),
            span(1, 2, 1, false),
            span(0, 2, -1, false),
            span(0, 2, 1, true),
            span(0, 2, 0, false),
            span(0, usize::MAX, 1, false),
        ] {
            let error = sliced(&[2], &[bad]).unwrap_err().to_string();
            assert!(error.contains("batch shape [2]"), "{error}");
        }
        assert!(sliced(&[2], &[]).is_err());
    }
}
