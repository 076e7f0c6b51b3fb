//! Operations that only move elements or give them other axes.

use super::Tensor;
use super::cast::to_type;
use super::element::{Element, for_any, with_type};
use fhelium_ir::layout::{inverse_order, memory_order};
use fhelium_ir::{DType, Span};
use ndarray::{ArcArray, Array, ArrayViewD, Axis, IxDyn, Slice};

/// The elements in row-major order under another shape of as many.
pub(super) fn reshape(operand: &Tensor, shape: &[usize]) -> Tensor {
    fn reshaped<T: Element>(array: ArcArray<T, IxDyn>, shape: &[usize]) -> Tensor {
        array
            .into_shape_with_order(shape)
            .expect("the operation table found as many elements in both shapes")
            .into()
    }
    for_any!(operand.to_contiguous(), array => reshaped(array, shape))
}

/// The axes in another order. Shares the elements.
pub(super) fn transpose(operand: &Tensor, order: &[usize]) -> Tensor {
    for_any!(operand, array => array.clone().permuted_axes(order).into())
}

/// The operand repeated to a shape to which it broadcasts.
pub(super) fn broadcast(operand: &Tensor, shape: &[usize]) -> Tensor {
    if operand.shape() == shape {
        return operand.clone();
    }
    for_any!(operand, array => super::elementwise::spread(array, shape).to_owned().into())
}

/// Elements moved along an axis, from the end around to the start; without an axis, along the
/// row-major elements.
pub(super) fn roll(operand: &Tensor, shift: i64, axis: Option<usize>) -> Tensor {
    let Some(axis) = axis else {
        let flat = reshape(operand, &[operand.len()]);
        return reshape(&roll(&flat, shift, Some(0)), operand.shape());
    };
    let length = operand.shape()[axis];
    let distance = match length {
        0 => 0,
        _ => shift.rem_euclid(length as i64) as usize,
    };
    if distance == 0 {
        return operand.clone();
    }
    fn rolled<T: Element>(array: &ArcArray<T, IxDyn>, axis: usize, distance: usize) -> Tensor {
        let order = memory_order(array.shape(), &[array.strides()]);
        let source = array.view().permuted_axes(order.as_slice());
        let axis = Axis(inverse_order(&order)[axis]);
        let mut target = Array::from_elem(source.raw_dim(), T::default());
        let tail = source.len_of(axis) - distance;
        let (start, end) = source.split_at(axis, tail);
        target
            .slice_axis_mut(axis, Slice::from(..distance))
            .assign(&end);
        target
            .slice_axis_mut(axis, Slice::from(distance..))
            .assign(&start);
        target.permuted_axes(inverse_order(&order)).into()
    }
    for_any!(operand, array => rolled(array, axis, distance))
}

/// The spans of all axes, which lie within them. Shares the elements.
pub(super) fn slice(operand: &Tensor, spans: &[Span]) -> Tensor {
    fn sliced<T: Element>(mut array: ArcArray<T, IxDyn>, spans: &[Span]) -> Tensor {
        for (axis, span) in spans.iter().enumerate() {
            // ndarray takes the range in memory order and walks a negative step from its end.
            let reach = span.size.saturating_sub(1) * span.step.unsigned_abs();
            let (low, high) = match (span.size, span.step > 0) {
                (0, _) => (0, 0),
                (_, true) => (span.start, span.start + reach + 1),
                (_, false) => (span.start - reach, span.start + 1),
            };
            let range = Slice::new(low as isize, Some(high as isize), span.step);
            array.slice_axis_inplace(Axis(axis), range);
        }
        for axis in (0..spans.len()).rev().filter(|&axis| spans[axis].dropped) {
            array = array.index_axis_move(Axis(axis), 0);
        }
        array.into()
    }
    for_any!(operand, array => sliced(array.clone(), spans))
}

/// The part at one place of an axis. Shares the elements.
pub(super) fn index(operand: &Tensor, axis: usize, place: usize) -> Tensor {
    for_any!(operand, array => array.clone().index_axis_move(Axis(axis), place).into())
}

/// Tensors of one shape along a new axis.
pub(super) fn stack(operands: &[&Tensor], axis: usize, dtype: DType, shape: &[usize]) -> Tensor {
    with_type!(dtype, T => {
        let arrays = operands.iter().map(|operand| to_type::<T>(operand).insert_axis(Axis(axis)));
        joined(arrays.collect(), axis, shape)
    })
}

/// Tensors one after the other along an axis.
pub(super) fn concatenate(
    operands: &[&Tensor],
    axis: usize,
    dtype: DType,
    shape: &[usize],
) -> Tensor {
    with_type!(dtype, T => {
        joined(operands.iter().map(|operand| to_type::<T>(operand)).collect(), axis, shape)
    })
}

/// Arrays one after the other along an axis, filling `shape`.
fn joined<T: Element>(arrays: Vec<ArcArray<T, IxDyn>>, axis: usize, shape: &[usize]) -> Tensor {
    let views: Vec<ArrayViewD<'_, T>> = arrays.iter().map(|array| array.view()).collect();
    let mut result = Array::from_elem(shape, T::default());
    let mut start = 0;
    for view in views {
        let end = start + view.len_of(Axis(axis));
        result
            .slice_axis_mut(Axis(axis), Slice::from(start..end))
            .assign(&view);
        start = end;
    }
    result.into()
}
