//! Applying a function to every element, in numpy's memory order.
//!
//! Shapes are those that the operation table inferred; every operand broadcasts to them.

use super::element::Element;
use fhelium_ir::layout::{inverse_order, memory_order};
use ndarray::{ArcArray, ArrayViewD, IxDyn, Zip};

/// A function of each element of one array.
pub(super) fn map<A: Element, R: Element>(
    array: &ArcArray<A, IxDyn>,
    function: impl Fn(A) -> R,
) -> ArcArray<R, IxDyn> {
    let order = memory_order(array.shape(), &[array.strides()]);
    let result = array.view().permuted_axes(order.as_slice()).mapv(function);
    result.permuted_axes(inverse_order(&order)).into_shared()
}

/// A function of each pair of elements of two arrays, broadcast to `shape`.
pub(super) fn zip<A: Element, B: Element, R: Element>(
    left: &ArcArray<A, IxDyn>,
    right: &ArcArray<B, IxDyn>,
    shape: &[usize],
    function: impl Fn(A, B) -> R,
) -> ArcArray<R, IxDyn> {
    // One number beside an array is kept in a register rather than walked with stride 0.
    if let (Some(&number), true) = (right.first(), right.ndim() == 0) {
        return map(left, |element| function(element, number));
    }
    if let (Some(&number), true) = (left.first(), left.ndim() == 0) {
        return map(right, |element| function(number, element));
    }
    let (left, right) = (spread(left, shape), spread(right, shape));
    let order = memory_order(shape, &[left.strides(), right.strides()]);
    let result = Zip::from(left.permuted_axes(order.as_slice()))
        .and(right.permuted_axes(order.as_slice()))
        .map_collect(|&a, &b| function(a, b));
    result.permuted_axes(inverse_order(&order)).into_shared()
}

/// A function of each triple of elements of three arrays, broadcast to `shape`.
pub(super) fn zip3<A: Element, B: Element, C: Element, R: Element>(
    first: &ArcArray<A, IxDyn>,
    second: &ArcArray<B, IxDyn>,
    third: &ArcArray<C, IxDyn>,
    shape: &[usize],
    function: impl Fn(A, B, C) -> R,
) -> ArcArray<R, IxDyn> {
    let (first, second, third) = (
        spread(first, shape),
        spread(second, shape),
        spread(third, shape),
    );
    let order = memory_order(shape, &[first.strides(), second.strides(), third.strides()]);
    let result = Zip::from(first.permuted_axes(order.as_slice()))
        .and(second.permuted_axes(order.as_slice()))
        .and(third.permuted_axes(order.as_slice()))
        .map_collect(|&a, &b, &c| function(a, b, c));
    result.permuted_axes(inverse_order(&order)).into_shared()
}

/// The array as a view of a shape to which it broadcasts.
pub(super) fn spread<'a, T: Element>(
    array: &'a ArcArray<T, IxDyn>,
    shape: &[usize],
) -> ArrayViewD<'a, T> {
    array
        .broadcast(shape)
        .expect("the operation table found that the shapes broadcast")
}
