//! Where the elements of clear tensors lie in memory.

/// The order of axes, outermost first, in which numpy walks arrays of one shape and so lays out
/// a new one (its iterator's "K" order).
///
/// `strides` holds each array's strides, all as long as `shape`. An axis moves outward past
/// another where some array has the larger stride along it and none says otherwise; arrays that do
/// not move along an axis have no say.
pub fn memory_order(shape: &[usize], strides: &[&[isize]]) -> Vec<usize> {
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
pub fn inverse_order(order: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; order.len()];
    for (position, &axis) in order.iter().enumerate() {
        inverse[axis] = position;
    }
    inverse
}

/// The strides, in elements, of row-major elements next to each other; of no elements, zeros.
pub fn row_major(shape: &[usize]) -> Vec<isize> {
    if shape.contains(&0) {
        return vec![0; shape.len()];
    }
    let mut strides = vec![1isize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis] as isize);
    }
    strides
}
