//! Matrix products.

use super::Tensor;
use super::cast::to_type;
use super::element::Element;
use fhelium_ir::DType;
use ndarray::linalg::general_mat_mul;
use ndarray::{Array, ArrayViewD, ArrayViewMutD, Axis, Ix2, IxDyn, LinalgScalar};
use num_complex::Complex;
use std::num::Wrapping;

/// numpy's `matmul`: an operand with one axis is a row on the left and a column on the right,
/// more than two axes are stacks of matrices that broadcast, and integers wrap.
pub(super) fn matmul(left: &Tensor, right: &Tensor, dtype: DType, shape: &[usize]) -> Tensor {
    fn run<T: Element, M: LinalgScalar>(
        left: &Tensor,
        right: &Tensor,
        shape: &[usize],
        into: impl Fn(T) -> M,
        back: impl Fn(M) -> T,
    ) -> Tensor {
        let [left, right] = [left, right].map(|side| to_type::<T>(side).mapv(&into));
        product(left.view(), right.view(), shape).mapv(back).into()
    }
    fn same<T: Element + LinalgScalar>(left: &Tensor, right: &Tensor, shape: &[usize]) -> Tensor {
        let [left, right] = [left, right].map(to_type::<T>);
        product(left.view(), right.view(), shape).into()
    }
    match dtype {
        DType::F32 => same::<f32>(left, right, shape),
        DType::F64 => same::<f64>(left, right, shape),
        DType::C64 => same::<Complex<f32>>(left, right, shape),
        DType::C128 => same::<Complex<f64>>(left, right, shape),
        DType::I32 => run::<i32, _>(left, right, shape, Wrapping, |Wrapping(element)| element),
        DType::I64 => run::<i64, _>(left, right, shape, Wrapping, |Wrapping(element)| element),
        // Whether any pair holds: counts, which no axis is long enough to wrap.
        DType::Bool => run::<bool, _>(left, right, shape, i64::from, |count| count != 0),
    }
}

/// The product of arrays whose shapes fit, of the `shape` that they give.
fn product<T: LinalgScalar>(
    mut left: ArrayViewD<'_, T>,
    mut right: ArrayViewD<'_, T>,
    shape: &[usize],
) -> Array<T, IxDyn> {
    if left.ndim() == 1 {
        left.insert_axis_inplace(Axis(0));
    }
    if right.ndim() == 1 {
        right.insert_axis_inplace(Axis(1));
    }
    let (stacks, [rows, inner]) = split(left.shape());
    let (other_stacks, [_, columns]) = split(right.shape());
    let depth = stacks.len().max(other_stacks.len());
    let with_stacks = |last: [usize; 2]| [&shape[..depth], &last].concat();
    let mut result = Array::from_elem(with_stacks([rows, columns]), T::zero());
    multiply_stacks(
        result.view_mut(),
        fit(&left, &with_stacks([rows, inner])),
        fit(&right, &with_stacks([inner, columns])),
    );
    result
        .into_shape_with_order(shape)
        .expect("a lone row or column only drops lengths of 1")
}

/// A shape's leading lengths and its last two.
fn split(shape: &[usize]) -> (&[usize], [usize; 2]) {
    let (stacks, last) = shape
        .split_last_chunk()
        .expect("both operands have two axes by now");
    (stacks, *last)
}

fn fit<'a, T>(view: &'a ArrayViewD<'_, T>, shape: &[usize]) -> ArrayViewD<'a, T> {
    view.broadcast(shape)
        .expect("the operation table found that the stacks broadcast")
}

/// Multiplies matrix by matrix along equal leading axes.
fn multiply_stacks<T: LinalgScalar>(
    mut result: ArrayViewMutD<'_, T>,
    left: ArrayViewD<'_, T>,
    right: ArrayViewD<'_, T>,
) {
    if result.ndim() > 2 {
        let pairs = left.outer_iter().zip(right.outer_iter());
        for (result, (left, right)) in result.outer_iter_mut().zip(pairs) {
            multiply_stacks(result, left, right);
        }
        return;
    }
    let matrix = "no axes but two are left";
    general_mat_mul(
        T::one(),
        &left.into_dimensionality::<Ix2>().expect(matrix),
        &right.into_dimensionality::<Ix2>().expect(matrix),
        T::zero(),
        &mut result.into_dimensionality::<Ix2>().expect(matrix),
    );
}
