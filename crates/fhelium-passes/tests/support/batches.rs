//! What operations on batch axes mean, whatever the items of a batch are.

use fhelium_ir::{Ckks, He, Op, OpKind};
use ndarray::{ArrayD, Axis, IxDyn, Slice};

/// Moves or adds the items of arrays whose first `rank` axes are the batch; `None` for an
/// operation that is about something else.
pub fn apply<T: Clone>(
    op: &Op,
    operands: &[&ArrayD<T>],
    rank: usize,
    add: impl Fn(&T, &T) -> T,
) -> Option<ArrayD<T>> {
    let x = *operands.first()?;
    let ints = |name: &str| op.attributes().ints(name).unwrap();
    let axis = || Axis(op.attributes().int("axis").unwrap() as usize);
    Some(match op.kind() {
        OpKind::He(He::SumBatch) | OpKind::Ckks(Ckks::SumBatch) => {
            let mut items = x.axis_iter(axis());
            let first = items.next().unwrap().to_owned();
            items.fold(first, |mut sum, item| {
                sum.zip_mut_with(&item, |sum, item| *sum = add(sum, item));
                sum
            })
        }
        OpKind::He(He::BatchSlice) | OpKind::Ckks(Ckks::BatchSlice) => {
            let mut taken = x.clone();
            for axis in 0..rank {
                let place = |i: i64| (ints("starts")[axis] + i * ints("steps")[axis]) as usize;
                let places: Vec<usize> = (0..ints("sizes")[axis]).map(place).collect();
                taken = taken.select(Axis(axis), &places);
            }
            for &axis in ints("dropped").iter().rev() {
                taken = taken.index_axis_move(Axis(axis as usize), 0);
            }
            taken
        }
        OpKind::He(He::BatchReshape) | OpKind::Ckks(Ckks::BatchReshape) => {
            let mut shape: Vec<usize> = ints("shape").iter().map(|&e| e as usize).collect();
            shape.extend(&x.shape()[rank..]);
            let items = x.iter().cloned().collect();
            ArrayD::from_shape_vec(IxDyn(&shape), items).unwrap()
        }
        OpKind::He(He::StackBatch) | OpKind::Ckks(Ckks::StackBatch) => {
            let views: Vec<_> = operands.iter().map(|operand| operand.view()).collect();
            stack(&views, axis())
        }
        _ => return None,
    })
}

fn stack<T: Clone>(views: &[ndarray::ArrayViewD<'_, T>], axis: Axis) -> ArrayD<T> {
    let mut shape = views[0].shape().to_vec();
    shape.insert(axis.index(), views.len());
    let mut stacked = ArrayD::from_elem(IxDyn(&shape), views[0].first().unwrap().clone());
    for (place, view) in views.iter().enumerate() {
        let mut target = stacked.slice_axis_mut(axis, Slice::from(place..place + 1));
        target.assign(&view.clone().insert_axis(axis));
    }
    stacked
}
