//! Batch shapes of sums, slices, stacks and reshapes: what is allowed and what results.

use crate::error::{CkksError, Result};
use crate::values::{batch_size, checked_size};
use fhelium_state::{Chain, CipherState, PlainState};

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
///
/// # Errors
/// [`CkksError::Shape`] where the spans do not lie within the batch.
pub fn sliced(batch_shape: &[usize], spans: &[BatchSpan]) -> Result<(Vec<usize>, Vec<usize>)> {
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

/// The batch shape of as many values along a new axis as there are shapes.
///
/// # Errors
/// [`CkksError::Shape`] where the shapes differ, the axis is none of the result's or there are no
/// shapes.
pub fn stacked<'a>(
    shapes: impl ExactSizeIterator<Item = &'a [usize]>,
    axis: usize,
) -> Result<Vec<usize>> {
    let refused = |found: String, expected: String| CkksError::Shape {
        operation: "stack_batch",
        found,
        expected,
    };
    let count = shapes.len();
    let mut shapes = shapes;
    let first = shapes
        .next()
        .ok_or_else(|| refused("no operands".to_owned(), "one at least".to_owned()))?;
    if let Some(other) = shapes.find(|&other| other != first) {
        return Err(refused(
            format!("the batch shapes {first:?} and {other:?}"),
            "one shape".to_owned(),
        ));
    }
    if axis > first.len() {
        return Err(refused(
            format!("axis {axis}"),
            format!("a place in the batch shape {first:?}"),
        ));
    }
    let mut shape = first.to_vec();
    shape.insert(axis, count);
    Ok(shape)
}

/// The level, scale and parts of ciphertexts in one batch: equal levels and parts, scales equal or
/// nominally equal, of which the largest stays. `None` of none.
///
/// # Errors
/// The level and scale rules'; [`CkksError::Shape`] where parts differ.
pub fn stacked_state<'a>(
    chain: &Chain,
    mut states: impl Iterator<Item = &'a CipherState>,
) -> Result<Option<CipherState>> {
    let Some(first) = states.next() else {
        return Ok(None);
    };
    let mut state = first.clone();
    for other in states {
        if other.parts != first.parts {
            return Err(CkksError::Shape {
                operation: "stack_batch",
                found: format!("{} and {} parts", first.parts, other.parts),
                expected: "ciphertexts of as many parts".to_owned(),
            });
        }
        state = state.add(chain, "stack", other)?;
    }
    Ok(Some(state))
}

/// As [`stacked_state`], of plaintexts.
///
/// # Errors
/// As there.
pub fn stacked_plain_state<'a>(
    chain: &Chain,
    states: impl Iterator<Item = &'a PlainState>,
) -> Result<Option<PlainState>> {
    let states: Vec<_> = states
        .map(|state| CipherState::new(state.level, state.scale.clone()))
        .collect();
    let state = stacked_state(chain, states.iter())?;
    Ok(state.map(|state| PlainState {
        level: state.level,
        scale: state.scale,
    }))
}

/// The batch shape of a sum along an axis.
///
/// # Errors
/// [`CkksError::Shape`] for an axis that the batch lacks or that is empty.
pub fn summed(batch_shape: &[usize], axis: usize) -> Result<Vec<usize>> {
    if batch_shape.get(axis).is_none_or(|&extent| extent == 0) {
        return Err(CkksError::Shape {
            operation: "sum_batch",
            found: format!("axis {axis} of the batch shape {batch_shape:?}"),
            expected: "an axis with one item at least".to_owned(),
        });
    }
    let mut shape = batch_shape.to_vec();
    shape.remove(axis);
    Ok(shape)
}

/// Refuses a batch shape of more or fewer items than another has.
///
/// # Errors
/// [`CkksError::Shape`].
pub fn check_reshape(from: &[usize], to: &[usize]) -> Result<()> {
    if checked_size(to) == Some(batch_size(from)) {
        return Ok(());
    }
    Err(CkksError::Shape {
        operation: "reshape",
        found: format!("batch shape {to:?}"),
        expected: format!("as many items as {from:?} has"),
    })
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
