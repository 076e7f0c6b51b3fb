//! numpy's shape rules.

use crate::InferError;
use crate::types::List;

/// The most axes, as in numpy.
const MAX_RANK: usize = 64;
/// The most elements: what memory can number, with room for 16-byte elements and all slots.
const MAX_ELEMENTS: usize = 1 << 40;

/// Refuses shapes of too many axes or elements; the product of extents does not overflow after.
pub(super) fn check_size(shape: &[usize]) -> Result<(), InferError> {
    if shape.len() > MAX_RANK {
        return Err(InferError::value(format!(
            "a shape has {} axes; at most {MAX_RANK} are allowed",
            shape.len()
        )));
    }
    // Zero extents do not excuse the others: a reduction may drop the empty axis.
    let elements = shape.iter().try_fold(1usize, |product, &extent| {
        product.checked_mul(extent.max(1))
    });
    match elements {
        Some(elements) if elements <= MAX_ELEMENTS => Ok(()),
        _ => Err(InferError::value(format!(
            "the shape {} has more than 2^40 elements",
            List(shape)
        ))),
    }
}

/// The shape of an elementwise operation on both: equal extents, or one of them 1 or absent.
pub(super) fn broadcast(left: &[usize], right: &[usize]) -> Result<Vec<usize>, InferError> {
    let rank = left.len().max(right.len());
    let extent = |shape: &[usize], axis: usize| {
        let missing = rank - shape.len();
        if axis < missing {
            1
        } else {
            shape[axis - missing]
        }
    };
    let mut shape = Vec::with_capacity(rank);
    for axis in 0..rank {
        shape.push(match (extent(left, axis), extent(right, axis)) {
            (l, r) if l == r => l,
            (1, r) => r,
            (l, 1) => l,
            (l, r) => {
                return Err(InferError::value(format!(
                    "the shapes {} and {} do not broadcast: axis {axis} of the result has extents \
                     {l} and {r}, which must be equal or 1",
                    List(left),
                    List(right)
                )));
            }
        });
    }
    check_size(&shape)?;
    Ok(shape)
}

/// An axis in `0..rank`; negative ones count from the end.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize, InferError> {
    let signed = rank as i64;
    let normal = if axis < 0 {
        axis.saturating_add(signed)
    } else {
        axis
    };
    if (0..signed).contains(&normal) {
        return Ok(normal as usize);
    }
    Err(InferError::value(if rank == 0 {
        format!("axis {axis} was given, but a scalar has no axes")
    } else {
        format!(
            "axis {axis} is out of range: expected {}..={}",
            -signed,
            signed - 1
        )
    }))
}

/// Distinct axes, ascending.
pub(super) fn axes(given: &[i64], rank: usize) -> Result<Vec<usize>, InferError> {
    let mut axes = Vec::with_capacity(given.len());
    for &one in given {
        axes.push(axis(one, rank)?);
    }
    axes.sort_unstable();
    if let Some(twice) = axes.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(InferError::value(format!(
            "axis {} is given twice",
            twice[0]
        )));
    }
    Ok(axes)
}

/// A list of extents as attributes hold them.
pub(super) fn to_ints(extents: &[usize]) -> Vec<i64> {
    extents.iter().map(|&extent| extent as i64).collect()
}

/// Extents from an attribute that holds no negative ones.
pub(super) fn extents(given: &[i64]) -> Result<Vec<usize>, InferError> {
    let shape: Vec<usize> = given
        .iter()
        .map(|&extent| usize::try_from(extent))
        .collect::<Result<_, _>>()
        .map_err(|_| {
            InferError::value(format!("the shape {} has a negative extent", List(given)))
        })?;
    check_size(&shape)?;
    Ok(shape)
}

/// A reshape's target, its single -1 replaced by what the number of elements leaves for it.
pub(super) fn reshape(from: &[usize], target: &[i64]) -> Result<Vec<usize>, InferError> {
    let mismatch = || {
        InferError::value(format!(
            "an array of shape {} cannot take the shape {}: the numbers of elements differ",
            List(from),
            List(target)
        ))
    };
    let elements: usize = from.iter().product();
    let unknown: Vec<usize> = (0..target.len()).filter(|&i| target[i] == -1).collect();
    let mut known: Vec<i64> = target.to_vec();
    match unknown[..] {
        [] => {}
        [place] => {
            known[place] = 1;
            let rest: usize = extents(&known)?.iter().product();
            if rest == 0 || !elements.is_multiple_of(rest) {
                return Err(mismatch());
            }
            known[place] = (elements / rest) as i64;
        }
        _ => {
            return Err(InferError::value(format!(
                "the shape {} leaves more than one extent open",
                List(target)
            )));
        }
    }
    let shape = extents(&known)?;
    if shape.iter().product::<usize>() != elements {
        return Err(mismatch());
    }
    Ok(shape)
}

/// The shape of `numpy.matmul`: vectors take part as a row or a column, leading axes broadcast.
pub(super) fn matmul(left: &[usize], right: &[usize]) -> Result<Vec<usize>, InferError> {
    if left.is_empty() || right.is_empty() {
        return Err(InferError::value(
            "matmul takes no scalars; multiply by one with mul",
        ));
    }
    let (left_batch, rows, inner) = match *left {
        [inner] => (&[][..], None, inner),
        [ref batch @ .., rows, inner] => (batch, Some(rows), inner),
        [] => (&[][..], None, 0),
    };
    let (right_batch, outer, columns) = match *right {
        [outer] => (&[][..], outer, None),
        [ref batch @ .., outer, columns] => (batch, outer, Some(columns)),
        [] => (&[][..], 0, None),
    };
    if inner != outer {
        return Err(InferError::value(format!(
            "matmul of shapes {} and {}: the inner extents {inner} and {outer} differ",
            List(left),
            List(right)
        )));
    }
    let mut shape = broadcast(left_batch, right_batch)?;
    shape.extend(rows);
    shape.extend(columns);
    check_size(&shape)?;
    Ok(shape)
}
