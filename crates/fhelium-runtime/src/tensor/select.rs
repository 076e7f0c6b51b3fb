//! clip and where.

use super::Tensor;
use super::cast::to_type;
use super::element::{Element, with_type};
use super::elementwise::zip3;
use fhelium_ir::DType;

/// Each element held between a low and a high bound; where the bounds cross, the high one.
///
/// A NaN among the three makes the result NaN. `dtype` is real.
pub(super) fn clip(
    operand: &Tensor,
    low: &Tensor,
    high: &Tensor,
    dtype: DType,
    shape: &[usize],
) -> Tensor {
    fn run<T: Element + PartialOrd>(
        operand: &Tensor,
        low: &Tensor,
        high: &Tensor,
        shape: &[usize],
    ) -> Tensor {
        // Equal numbers differ in the sign of zero only. There, numpy keeps the element if both
        // bounds are single numbers, and gives the bound otherwise.
        let keep = low.len() == 1 && high.len() == 1;
        let undefined = |x: T| x.partial_cmp(&x).is_none();
        let larger = |a: T, b: T| {
            if a > b || keep && a == b || undefined(a) {
                a
            } else {
                b
            }
        };
        let smaller = |a: T, b: T| {
            if a < b || keep && a == b || undefined(a) {
                a
            } else {
                b
            }
        };
        let [operand, low, high] = [operand, low, high].map(to_type::<T>);
        zip3(&operand, &low, &high, shape, |x, low, high| {
            smaller(larger(x, low), high)
        })
        .into()
    }
    match dtype {
        DType::Bool => run::<bool>(operand, low, high, shape),
        DType::I32 => run::<i32>(operand, low, high, shape),
        DType::I64 => run::<i64>(operand, low, high, shape),
        DType::F32 => run::<f32>(operand, low, high, shape),
        DType::F64 | DType::C64 | DType::C128 => run::<f64>(operand, low, high, shape),
    }
}

/// Elements of `chosen` where the condition holds, else of `other`.
pub(super) fn choose(
    condition: &Tensor,
    chosen: &Tensor,
    other: &Tensor,
    dtype: DType,
    shape: &[usize],
) -> Tensor {
    with_type!(dtype, T => zip3(
        &to_type::<bool>(condition),
        &to_type::<T>(chosen),
        &to_type::<T>(other),
        shape,
        |condition, chosen, other| if condition { chosen } else { other },
    ).into())
}
