//! Result types of the `tensor` dialect.

use super::{Call, shape};
use crate::types::List;
use crate::{Attribute, Attributes, DType, InferError, Type};

type Types = Result<Vec<Type>, InferError>;
type Canonical = Result<(), InferError>;

fn one(dtype: DType, shape: impl Into<Vec<usize>>) -> Types {
    Ok(vec![Type::tensor(dtype, shape)])
}

pub(super) fn constant(call: &Call<'_>) -> Types {
    let dtype = call.dtype("dtype")?;
    let fits = match call.attributes.get("value") {
        Some(Attribute::Bool(_)) => true,
        Some(Attribute::Int(value)) => match dtype {
            DType::Bool => false,
            DType::I32 => i32::try_from(*value).is_ok(),
            _ => true,
        },
        Some(Attribute::Float(_)) => !matches!(dtype, DType::Bool | DType::I32 | DType::I64),
        _ => dtype.is_complex(),
    };
    if !fits {
        let value = call.attributes.get("value");
        let value = value.map(Attribute::to_string).unwrap_or_default();
        return Err(InferError::value(format!(
            "the number {value} is no {dtype}"
        )));
    }
    one(dtype, [])
}

fn elementwise(call: &Call<'_>) -> Result<(DType, Vec<usize>), InferError> {
    let (left, left_shape) = call.tensor(0)?;
    let (right, right_shape) = call.tensor(1)?;
    Ok((
        left.promote(right),
        shape::broadcast(left_shape, right_shape)?,
    ))
}

fn refuse_bool(dtype: DType, instead: &str) -> Canonical {
    if dtype == DType::Bool {
        return Err(InferError::value(format!(
            "truth values have no such operation; {instead}"
        )));
    }
    Ok(())
}

pub(super) fn arithmetic(call: &Call<'_>) -> Types {
    let (dtype, shape) = elementwise(call)?;
    one(dtype, shape)
}

pub(super) fn difference(call: &Call<'_>) -> Types {
    let (dtype, shape) = elementwise(call)?;
    refuse_bool(dtype, "cast one operand to a number")?;
    one(dtype, shape)
}

pub(super) fn power(call: &Call<'_>) -> Types {
    difference(call)
}

pub(super) fn division(call: &Call<'_>) -> Types {
    let (dtype, shape) = elementwise(call)?;
    one(dtype.to_inexact(), shape)
}

pub(super) fn negation(call: &Call<'_>) -> Types {
    let (dtype, shape) = call.tensor(0)?;
    refuse_bool(dtype, "cast the operand to a number")?;
    one(dtype, shape)
}

pub(super) fn absolute(call: &Call<'_>) -> Types {
    let (dtype, shape) = call.tensor(0)?;
    one(dtype.to_real(), shape)
}

pub(super) fn inexact(call: &Call<'_>) -> Types {
    let (dtype, shape) = call.tensor(0)?;
    one(dtype.to_inexact(), shape)
}

pub(super) fn real_part(call: &Call<'_>) -> Types {
    let (dtype, shape) = call.tensor(0)?;
    one(dtype.to_real(), shape)
}

pub(super) fn same(call: &Call<'_>) -> Types {
    let (dtype, shape) = call.tensor(0)?;
    one(dtype, shape)
}

pub(super) fn cast(call: &Call<'_>) -> Types {
    let (from, shape) = call.tensor(0)?;
    let to = call.dtype("dtype")?;
    if from.is_complex() && !to.is_complex() {
        return Err(InferError::value(format!(
            "a cast from {from} to {to} would drop the imaginary part; take the real part first"
        )));
    }
    one(to, shape)
}

pub(super) fn clip(call: &Call<'_>) -> Types {
    let (mut dtype, first) = call.tensor(0)?;
    let mut extents = first.to_vec();
    for bound in 1..3 {
        let (bound_dtype, bound_shape) = call.tensor(bound)?;
        dtype = dtype.promote(bound_dtype);
        extents = shape::broadcast(&extents, bound_shape)?;
    }
    if dtype.is_complex() {
        return Err(InferError::value(
            "complex numbers have no order to clip by",
        ));
    }
    one(dtype, extents)
}

pub(super) fn choice(call: &Call<'_>) -> Types {
    let (condition, condition_shape) = call.tensor(0)?;
    if condition != DType::Bool {
        return Err(InferError::value(format!(
            "the condition has elements of {condition}, expected bool"
        )));
    }
    let (left, left_shape) = call.tensor(1)?;
    let (right, right_shape) = call.tensor(2)?;
    let values = shape::broadcast(left_shape, right_shape)?;
    one(
        left.promote(right),
        shape::broadcast(condition_shape, &values)?,
    )
}

pub(super) fn broadcast_to(call: &Call<'_>) -> Types {
    let (dtype, from) = call.tensor(0)?;
    let to = shape::extents(call.ints("shape")?)?;
    if shape::broadcast(from, &to)? != to {
        return Err(InferError::value(format!(
            "an array of shape {} does not broadcast to {}",
            List(from),
            List(&to)
        )));
    }
    one(dtype, to)
}

pub(super) fn canonical_axis(call: &Call<'_>, attributes: &mut Attributes) -> Canonical {
    if let Some(axis) = attributes.int("axis") {
        let (_, shape) = call.tensor(0)?;
        attributes.set("axis", shape::axis(axis, shape.len())? as i64);
    }
    Ok(())
}

pub(super) fn canonical_axes(call: &Call<'_>, attributes: &mut Attributes) -> Canonical {
    let rank = call.tensor(0)?.1.len();
    let axes = match attributes.ints("axes") {
        Some(given) => shape::axes(given, rank)?,
        None => (0..rank).collect(),
    };
    attributes.set("axes", shape::to_ints(&axes));
    Ok(())
}

pub(super) fn canonical_reshape(call: &Call<'_>, attributes: &mut Attributes) -> Canonical {
    let shape = shape::reshape(call.tensor(0)?.1, call.ints("shape")?)?;
    attributes.set("shape", shape::to_ints(&shape));
    Ok(())
}

pub(super) fn reshape(call: &Call<'_>) -> Types {
    let (dtype, _) = call.tensor(0)?;
    one(dtype, shape::extents(call.ints("shape")?)?)
}

pub(super) fn canonical_transpose(call: &Call<'_>, attributes: &mut Attributes) -> Canonical {
    let rank = call.tensor(0)?.1.len();
    let order: Vec<usize> = match attributes.ints("axes") {
        Some(given) => {
            let order = given.iter().map(|&axis| shape::axis(axis, rank));
            order.collect::<Result<_, _>>()?
        }
        None => (0..rank).rev().collect(),
    };
    attributes.set("axes", shape::to_ints(&order));
    Ok(())
}

pub(super) fn transpose(call: &Call<'_>) -> Types {
    let (dtype, from) = call.tensor(0)?;
    let order = call.ints("axes")?;
    if shape::axes(order, from.len())?.len() != from.len() {
        return Err(InferError::value(format!(
            "axes {} do not name each of the {} axes once",
            List(order),
            from.len()
        )));
    }
    let extents: Vec<usize> = order.iter().map(|&axis| from[axis as usize]).collect();
    one(dtype, extents)
}

pub(super) fn canonical_slice(call: &Call<'_>, attributes: &mut Attributes) -> Canonical {
    let (_, from) = call.tensor(0)?;
    let dropped = shape::axes(call.ints("dropped")?, from.len())?;
    attributes.set("dropped", shape::to_ints(&dropped));
    Ok(())
}

pub(super) fn slice(call: &Call<'_>) -> Types {
    let (dtype, from) = call.tensor(0)?;
    one(dtype, sliced(call, from)?)
}

/// The shape that `starts`, `sizes`, `steps` and `dropped` leave of another.
pub(super) fn sliced(call: &Call<'_>, from: &[usize]) -> Result<Vec<usize>, InferError> {
    let (starts, steps) = (call.ints("starts")?, call.ints("steps")?);
    let sizes = shape::extents(call.ints("sizes")?)?;
    if [starts.len(), sizes.len(), steps.len()] != [from.len(); 3] {
        return Err(InferError::value(format!(
            "starts, sizes and steps have {}, {} and {} entries; each needs one for each of the {} \
             axes",
            starts.len(),
            sizes.len(),
            steps.len(),
            from.len()
        )));
    }
    for axis in 0..from.len() {
        let (start, size, step) = (starts[axis], sizes[axis], steps[axis]);
        if step == 0 {
            return Err(InferError::value(format!(
                "the step along axis {axis} is 0"
            )));
        }
        let last = i128::from(start) + (size as i128 - 1) * i128::from(step);
        let inside = |place: i128| (0..from[axis] as i128).contains(&place);
        if size > 0 && !(inside(start.into()) && inside(last)) {
            return Err(InferError::value(format!(
                "the slice of axis {axis} runs from {start} to {last}, outside its {} places",
                from[axis]
            )));
        }
    }
    let dropped = call.ints("dropped")?;
    let mut kept = Vec::with_capacity(sizes.len());
    for (axis, &size) in sizes.iter().enumerate() {
        if !dropped.contains(&(axis as i64)) {
            kept.push(size);
        } else if size != 1 {
            return Err(InferError::value(format!(
                "axis {axis} is dropped with size {size}; only size 1 can be"
            )));
        }
    }
    Ok(kept)
}

pub(super) fn canonical_index(call: &Call<'_>, attributes: &mut Attributes) -> Canonical {
    let (_, from) = call.tensor(0)?;
    let axis = shape::axis(call.int("axis")?, from.len())?;
    let (index, extent) = (call.int("index")?, from[axis] as i64);
    let normal = if index < 0 {
        index.saturating_add(extent)
    } else {
        index
    };
    if !(0..extent).contains(&normal) {
        return Err(InferError::value(format!(
            "index {index} is out of range for axis {axis} with {extent} places"
        )));
    }
    attributes.set("axis", axis as i64);
    attributes.set("index", normal);
    Ok(())
}

pub(super) fn index(call: &Call<'_>) -> Types {
    let (dtype, from) = call.tensor(0)?;
    let mut extents = from.to_vec();
    extents.remove(shape::axis(call.int("axis")?, from.len())?);
    one(dtype, extents)
}

pub(super) fn canonical_stack(call: &Call<'_>, attributes: &mut Attributes) -> Canonical {
    let rank = call.tensor(0)?.1.len() + 1;
    let axis = shape::axis(call.int("axis")?, rank)?;
    attributes.set("axis", axis as i64);
    Ok(())
}

pub(super) fn stack(call: &Call<'_>) -> Types {
    let (mut dtype, first) = call.tensor(0)?;
    for array in 1..call.operands.len() {
        let (other, other_shape) = call.tensor(array)?;
        dtype = dtype.promote(other);
        if other_shape != first {
            return Err(InferError::value(format!(
                "array {array} has shape {}, the first {}; stack needs one shape",
                List(other_shape),
                List(first)
            )));
        }
    }
    let mut extents = first.to_vec();
    let axis = shape::axis(call.int("axis")?, first.len() + 1)?;
    extents.insert(axis, call.operands.len());
    shape::check_size(&extents)?;
    one(dtype, extents)
}

pub(super) fn concatenate(call: &Call<'_>) -> Types {
    let (mut dtype, first) = call.tensor(0)?;
    let axis = shape::axis(call.int("axis")?, first.len())?;
    let mut extents = first.to_vec();
    for array in 1..call.operands.len() {
        let (other, other_shape) = call.tensor(array)?;
        dtype = dtype.promote(other);
        let agrees = other_shape.len() == first.len()
            && (0..first.len()).all(|place| place == axis || other_shape[place] == first[place]);
        if !agrees {
            return Err(InferError::value(format!(
                "array {array} has shape {}, the first {}; they may differ along axis {axis} only",
                List(other_shape),
                List(first)
            )));
        }
        extents[axis] += other_shape[axis];
    }
    shape::check_size(&extents)?;
    one(dtype, extents)
}

fn reduced(call: &Call<'_>) -> Result<Vec<usize>, InferError> {
    let (_, from) = call.tensor(0)?;
    let axes = shape::axes(call.ints("axes")?, from.len())?;
    let keep = call.bool("keepdims")?;
    let extents = from.iter().enumerate();
    Ok(extents
        .filter_map(|(axis, &extent)| match axes.contains(&axis) {
            true => keep.then_some(1),
            false => Some(extent),
        })
        .collect())
}

pub(super) fn sum(call: &Call<'_>) -> Types {
    let dtype = match call.tensor(0)?.0 {
        DType::Bool | DType::I32 => DType::I64,
        wide => wide,
    };
    one(dtype, reduced(call)?)
}

pub(super) fn mean(call: &Call<'_>) -> Types {
    one(call.tensor(0)?.0.to_inexact(), reduced(call)?)
}

pub(super) fn matmul(call: &Call<'_>) -> Types {
    let (left, left_shape) = call.tensor(0)?;
    let (right, right_shape) = call.tensor(1)?;
    one(left.promote(right), shape::matmul(left_shape, right_shape)?)
}
