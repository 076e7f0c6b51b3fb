//! Memory: how much, and in which order.

use super::TensorError;
use fhelium_ir::DType;

/// Results larger than this are refused with an error where the allocator would end the process.
const PROBE_BYTES: usize = 1 << 28;

/// Refuses a result that memory cannot hold, before anything is allocated for it.
pub(super) fn check_size(
    operation: &'static str,
    shape: &[usize],
    dtype: DType,
) -> Result<(), TensorError> {
    let refused = || TensorError::OutOfMemory {
        operation,
        shape: shape.to_vec(),
        dtype,
    };
    // ndarray wants the product of the non-zero lengths to be addressable even where another
    // length is 0.
    let bytes = shape
        .iter()
        .filter(|&&length| length != 0)
        .try_fold(dtype.size(), |bytes, &length| bytes.checked_mul(length))
        .filter(|&bytes| bytes <= isize::MAX as usize)
        .ok_or_else(refused)?;
    if bytes > PROBE_BYTES && !shape.contains(&0) {
        Vec::<u8>::new()
            .try_reserve_exact(bytes)
            .map_err(|_| refused())?;
    }
    Ok(())
}

/// The order of axes, outermost first, in which numpy walks arrays of one shape and so lays out
/// a new one (its iterator's "K" order).
///
/// `strides` holds each array's strides, all as long as `shape`. An axis moves outward past
/// another where some array has the larger stride along it and none says otherwise; arrays that do
/// not move along an axis have no say.
pub(super) fn memory_order(shape: &[usize], strides: &[&[isize]]) -> Vec<usize> {
    let moves = |array: &[isize], axis: usize| {
        if shape[axis] == 1 {
            0
        } else {
            array[axis].unsigned_abs()
        }
    };
    // Innermost first while sorting by insertion, starting from row-major order.
    let mut order: Vec<usize> = Vec::with_capacity(shape.len());
    for axis in (0..shape.len()).rev() {
        let mut place = order.len();
        for (position, &other) in order.iter().enumerate().rev() {
            let mut verdict = None;
            for array in strides {
                let (outer, inner) = (moves(array, axis), moves(array, other));
                if outer == 0 || inner == 0 {
                    continue;
                }
                if inner <= outer {
                    verdict = Some(false);
                } else {
                    verdict.get_or_insert(true);
                }
            }
            match verdict {
                Some(true) => place = position,
                Some(false) => break,
                None => {}
            }
        }
        order.insert(place, axis);
    }
    order.reverse();
    order
}

/// The order that undoes `order`.
pub(super) fn inverse(order: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; order.len()];
    for (position, &axis) in order.iter().enumerate() {
        inverse[axis] = position;
    }
    inverse
}
