//! Sums and means, adding in numpy's order.
//!
//! numpy walks an array in memory order, the longest strides outermost. Summed axes that are
//! innermost give runs, added pairwise (`Summand::pairwise`); what further summed axes bring is
//! added to that, one run or row after the other. Axes that memory does not join numpy copies to a
//! buffer of 8192 elements, which bounds their runs (numpy 2.3 and later).

use super::Tensor;
use super::arithmetic::{Ring, divide};
use super::cast::{cast, to_type};
use fhelium_ir::DType;
use fhelium_ir::layout::{inverse_order, memory_order};
use ndarray::{ArcArray, Array, ArrayViewD, ArrayViewMutD, Axis, IxDyn};
use num_complex::Complex;

/// Elements of numpy's buffer.
const BUFFER: usize = 8192;

/// Floats added by eight running sums before numpy's pairwise sum splits them in halves.
const BLOCK: usize = 128;

/// Sums over `axes`, in `dtype`, which holds every sum's terms.
pub(super) fn sum(operand: &Tensor, axes: &[usize], keep: bool, dtype: DType) -> Tensor {
    fn run<T: Summand>(operand: &Tensor, axes: &[usize], keep: bool) -> Tensor {
        reduce::<T>(&to_type::<T>(operand), axes, keep).into()
    }
    match dtype {
        DType::Bool | DType::I32 | DType::I64 => run::<i64>(operand, axes, keep),
        DType::F32 => run::<f32>(operand, axes, keep),
        DType::F64 => run::<f64>(operand, axes, keep),
        DType::C64 => run::<Complex<f32>>(operand, axes, keep),
        DType::C128 => run::<Complex<f64>>(operand, axes, keep),
    }
}

/// Means over `axes`, in `dtype`, which is fractional; NaN of no elements.
pub(super) fn mean(operand: &Tensor, axes: &[usize], keep: bool, dtype: DType) -> Tensor {
    let sums = sum(operand, axes, keep, dtype);
    let count: usize = axes.iter().map(|&axis| operand.shape()[axis]).product();
    // numpy divides by a 64-bit integer, hence in 64-bit floats.
    let wide = dtype.promote(DType::F64);
    cast(
        &divide(&sums, &Tensor::scalar(count as f64), wide, sums.shape()),
        dtype,
    )
}

fn reduce<T: Summand>(
    array: &ArcArray<T, IxDyn>,
    axes: &[usize],
    keep: bool,
) -> ArcArray<T, IxDyn> {
    let order = memory_order(array.shape(), &[array.strides()]);
    let reduced: Vec<bool> = order.iter().map(|axis| axes.contains(axis)).collect();
    let lengths: Vec<usize> = order
        .iter()
        .map(|&axis| {
            if axes.contains(&axis) {
                1
            } else {
                array.shape()[axis]
            }
        })
        .collect();
    let mut sums = Array::from_elem(IxDyn(&lengths), T::default());
    if !array.is_empty() {
        let view = array.view().permuted_axes(order.as_slice());
        let (view, target, reduced) = simplify(view, sums.view_mut(), reduced);
        accumulate(target, view, &reduced);
    }
    let mut sums = sums.permuted_axes(inverse_order(&order));
    if !keep {
        for axis in (0..array.ndim()).rev().filter(|axis| axes.contains(axis)) {
            sums = sums.index_axis_move(Axis(axis), 0);
        }
    }
    sums.into_shared()
}

/// The same sums without axes of length 1, and with neighbouring axes that are one run made one.
fn simplify<'a, 'b, T>(
    mut view: ArrayViewD<'a, T>,
    mut sums: ArrayViewMutD<'b, T>,
    mut reduced: Vec<bool>,
) -> (ArrayViewD<'a, T>, ArrayViewMutD<'b, T>, Vec<bool>) {
    (view, sums) = drop_single(view, sums, &mut reduced);
    for axis in 1..view.ndim() {
        let (outer, inner) = (Axis(axis - 1), Axis(axis));
        if reduced[axis - 1] == reduced[axis] && view.merge_axes(outer, inner) && !reduced[axis] {
            // New and row-major, hence one run too.
            sums.merge_axes(outer, inner);
        }
    }
    (view, sums) = drop_single(view, sums, &mut reduced);
    (view, sums, reduced)
}

/// Both without the axes along which `view` has length 1.
fn drop_single<'a, 'b, T>(
    mut view: ArrayViewD<'a, T>,
    mut sums: ArrayViewMutD<'b, T>,
    reduced: &mut Vec<bool>,
) -> (ArrayViewD<'a, T>, ArrayViewMutD<'b, T>) {
    for axis in (0..view.ndim()).rev() {
        if view.len_of(Axis(axis)) == 1 {
            view = view.index_axis_move(Axis(axis), 0);
            sums = sums.index_axis_move(Axis(axis), 0);
            reduced.remove(axis);
        }
    }
    (view, sums)
}

/// Adds `view` to `sums`, whose reduced axes have length 1, from the outermost axis inwards.
fn accumulate<T: Summand>(
    mut sums: ArrayViewMutD<'_, T>,
    view: ArrayViewD<'_, T>,
    reduced: &[bool],
) {
    match reduced {
        [] | [false] => sums.zip_mut_with(&view, |sum, &element| *sum = sum.plus(element)),
        _ if !reduced.contains(&false) => sums.mapv_inplace(|sum| add_runs(sum, &view)),
        [outer, inner @ ..] => {
            for (position, part) in view.outer_iter().enumerate() {
                let position = if *outer { 0 } else { position };
                accumulate(sums.index_axis_mut(Axis(0), position), part, inner);
            }
        }
    }
}

/// The sum and all elements of a view with one axis or more.
fn add_runs<T: Summand>(sum: T, view: &ArrayViewD<'_, T>) -> T {
    // Whole axes fill the buffer as far as they fit; of the next one, as many parts as fit.
    let mut filled = 1;
    let mut axes = view.ndim();
    while axes > 0 && (axes == view.ndim() || filled * view.len_of(Axis(axes - 1)) <= BUFFER) {
        axes -= 1;
        filled *= view.len_of(Axis(axes));
    }
    match axes {
        0 => sum.plus(run(view)),
        1 => {
            let parts = view.axis_chunks_iter(Axis(0), (BUFFER / filled).max(1));
            parts.fold(sum, |sum, part| sum.plus(run(&part)))
        }
        _ => view
            .outer_iter()
            .fold(sum, |sum, part| add_runs(sum, &part)),
    }
}

/// The pairwise sum of a view's elements in row-major order.
fn run<T: Summand>(view: &ArrayViewD<'_, T>) -> T {
    match view.as_slice() {
        Some(run) => T::pairwise(run),
        None => T::pairwise(&view.iter().copied().collect::<Vec<T>>()),
    }
}

/// A type with numpy's sum of a run.
trait Summand: Ring {
    fn pairwise(run: &[Self]) -> Self;
}

impl Summand for i64 {
    fn pairwise(run: &[i64]) -> i64 {
        // Wrapping sums are the same in any order.
        run.iter()
            .fold(0, |sum, &element| sum.wrapping_add(element))
    }
}

macro_rules! summand {
    ($($float:ty),*) => {$(
        impl Summand for $float {
            fn pairwise(run: &[$float]) -> $float {
                if run.len() > BLOCK {
                    // Halves of whole groups of eight, as far as there are such.
                    let half = run.len() / 2;
                    let (left, right) = run.split_at(half - half % 8);
                    return Self::pairwise(left) + Self::pairwise(right);
                }
                let (groups, rest) = run.as_chunks::<8>();
                let sum = match groups.split_first() {
                    None => 0.0,
                    Some((first, others)) => {
                        let mut sums = *first;
                        for group in others {
                            for (sum, element) in sums.iter_mut().zip(group) {
                                *sum += element;
                            }
                        }
                        let [a, b, c, d, e, f, g, h] = sums;
                        ((a + b) + (c + d)) + ((e + f) + (g + h))
                    }
                };
                rest.iter().fold(sum, |sum, element| sum + element)
            }
        }

        impl Summand for Complex<$float> {
            fn pairwise(run: &[Complex<$float>]) -> Complex<$float> {
                // numpy's block counts floats, two to a number.
                if 2 * run.len() > BLOCK {
                    let half = run.len();
                    let (left, right) = run.split_at((half - half % 8) / 2);
                    return Self::pairwise(left) + Self::pairwise(right);
                }
                let (groups, rest) = run.as_chunks::<4>();
                let sum = match groups.split_first() {
                    None => Complex::new(0.0, 0.0),
                    Some((first, others)) => {
                        let mut sums = *first;
                        for group in others {
                            for (sum, element) in sums.iter_mut().zip(group) {
                                *sum += element;
                            }
                        }
                        let [a, b, c, d] = sums;
                        (a + b) + (c + d)
                    }
                };
                rest.iter().fold(sum, |sum, element| sum + element)
            }
        }
    )*};
}

summand!(f32, f64);
