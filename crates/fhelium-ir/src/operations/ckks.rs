//! `ckks`: operations with keys, levels and scales explicit.
//!
//! Levels and scales follow the rules of `he`; here every state is known and every key is an
//! operand.

use super::batch_rules;
use super::he::{self, COUNT, ITEMS, ITS_KIND, STEP, VALUE};
use super::tensor::{AXIS, SHAPE, SLICE};
use super::{
    AttributeKind as A, Call, Dependence, Dialect, OpDef, OpKind, OperandKind, OperandSpec,
    attribute, dialect, many, operand,
};
use crate::{Attributes, InferError, KeyKind, Type};

const X: OperandSpec = operand("x", OperandKind::Ciphertext);
const Y: OperandSpec = operand("y", OperandKind::Ciphertext);
const P: OperandSpec = operand("p", OperandKind::Plaintext);
const KEY: OperandSpec = operand("key", OperandKind::Key);
const CIPHERTEXT: &str = "a ciphertext";

dialect! {
    /// Operations with keys, levels and scales explicit.
    Ckks, "ckks":
    Add "add" "Sum of ciphertexts."
        => OpDef::new(&[X, Y], &[], CIPHERTEXT, add, "ckks.add %a, %b");
    Sub "sub" "Difference of ciphertexts."
        => OpDef::new(&[X, Y], &[], CIPHERTEXT, sub, "ckks.sub %a, %b");
    AddPlain "add_plain" "Sum of a ciphertext and a plaintext."
        => OpDef::new(&[X, P], &[], CIPHERTEXT, add, "ckks.add_plain %a, %p");
    SubPlain "sub_plain" "A ciphertext less a plaintext."
        => OpDef::new(&[X, P], &[], CIPHERTEXT, sub, "ckks.sub_plain %a, %p");
    PlainSub "plain_sub" "A plaintext less a ciphertext."
        => OpDef::new(&[P, X], &[], CIPHERTEXT, sub, "ckks.plain_sub %p, %a");
    Mul "mul" "Product of ciphertexts: 3 parts."
        => OpDef::new(&[X, Y], &[], CIPHERTEXT, mul, "ckks.mul %a, %b")
            .depending(Dependence::PARTS);
    Square "square" "A ciphertext times itself: 3 parts."
        => OpDef::new(&[X], &[], CIPHERTEXT, square, "ckks.square %a")
            .depending(Dependence::PARTS);
    MulPlain "mul_plain" "Product of a ciphertext and a plaintext."
        => OpDef::new(&[X, P], &[], CIPHERTEXT, mul, "ckks.mul_plain %a, %p");
    MulInteger "mul_integer" "Product with an integer; the scale stays."
        => OpDef::new(&[X], &[VALUE], CIPHERTEXT, unchanged, "ckks.mul_integer %a {value = 7}");
    Neg "neg" "Negative."
        => OpDef::new(&[X], &[], CIPHERTEXT, unchanged, "ckks.neg %a");
    Rotate "rotate" "Slots moved cyclically by a step that is not 0."
        => OpDef::new(&[X, KEY], &[STEP], CIPHERTEXT, rotate, "ckks.rotate %a, %rotation {step = 5}")
            .depending(Dependence::ALL)
            .canonical(he::canonical_step);
    RotateHoisted "rotate_hoisted" "Several rotations of one ciphertext, decomposed once."
        => OpDef::new(
            &[X, many("keys", OperandKind::Key)],
            &[attribute("steps", A::Ints, "one step for each result; a key follows for each that is not 0")],
            "a ciphertext for each step",
            rotate_hoisted,
            "ckks.rotate_hoisted %a, %rotation {steps = [0, 5]}",
        )
        .depending(Dependence::ALL)
        .canonical(canonical_steps);
    Conjugate "conjugate" "Complex conjugate of every slot."
        => OpDef::new(&[X, KEY], &[], CIPHERTEXT, conjugate, "ckks.conjugate %a, %conjugation")
            .depending(Dependence::ALL);
    Relinearize "relinearize" "Three parts to two."
        => OpDef::new(&[X, KEY], &[], CIPHERTEXT, relinearize, "ckks.relinearize %product, %relinearization")
            .depending(Dependence::ALL);
    MulRelin "mul_relin" "Product of ciphertexts, relinearized."
        => OpDef::new(&[X, Y, KEY], &[], CIPHERTEXT, mul_relin, "ckks.mul_relin %a, %b, %relinearization")
            .depending(Dependence::ALL);
    SquareRelin "square_relin" "A ciphertext times itself, relinearized."
        => OpDef::new(&[X, KEY], &[], CIPHERTEXT, square_relin, "ckks.square_relin %a, %relinearization")
            .depending(Dependence::ALL);
    RelinearizeRescale "relinearize_rescale" "Three parts to two, then rescaled: the residues of both, in less time."
        => OpDef::new(&[X, KEY], &[], CIPHERTEXT, relinearize_rescale, "ckks.relinearize_rescale %product, %relinearization")
            .depending(Dependence::ALL);
    MulRelinRescale "mul_relin_rescale" "Product of ciphertexts, relinearized and rescaled."
        => OpDef::new(&[X, Y, KEY], &[], CIPHERTEXT, mul_relin_rescale, "ckks.mul_relin_rescale %a, %b, %relinearization")
            .depending(Dependence::ALL);
    SquareRelinRescale "square_relin_rescale" "A ciphertext times itself, relinearized and rescaled."
        => OpDef::new(&[X, KEY], &[], CIPHERTEXT, square_relin_rescale, "ckks.square_relin_rescale %a, %relinearization")
            .depending(Dependence::ALL);
    Rescale "rescale" "One level less, the scale divided by that level's prime."
        => OpDef::new(&[X], &[], CIPHERTEXT, rescale, "ckks.rescale %product")
            .depending(Dependence::ALL);
    DropLevels "drop_levels" "Levels given up at the same scale."
        => OpDef::new(&[X], &[COUNT], CIPHERTEXT, drop_levels, "ckks.drop_levels %a {count = 2}");
    SumBatch "sum_batch" "Sum of a batch along one of its axes, which goes."
        => OpDef::new(&[X], &[AXIS], CIPHERTEXT, sum_batch, "ckks.sum_batch %a {axis = 0}")
            .depending(Dependence::BATCH_SUM)
            .canonical(batch_rules::canonical_axis);
    BatchSlice "batch_slice" "Evenly spaced items along each batch axis: start, start + step, ..."
        => OpDef::new(
            &[ITEMS],
            SLICE,
            ITS_KIND,
            batch_slice,
            "ckks.batch_slice %a {starts = [1], sizes = [1], steps = [1], dropped = [0]}",
        )
        .depending(Dependence::BATCH_MOVED)
        .canonical(batch_rules::canonical_slice);
    BatchReshape "batch_reshape" "The same items under other batch axes."
        => OpDef::new(&[ITEMS], &[SHAPE], ITS_KIND, batch_reshape, "ckks.batch_reshape %a {shape = [1, -1]}")
            .depending(Dependence::BATCH_MOVED)
            .canonical(batch_rules::canonical_reshape);
    StackBatch "stack_batch" "Ciphertexts, or plaintexts, of one type along a new batch axis."
        => OpDef::new(
            &[ITEMS, many("more of that type", OperandKind::Encoded)],
            &[AXIS],
            "a value of their kind with one more batch axis",
            stack_batch,
            "ckks.stack_batch %a, %a {axis = 0}",
        )
        .depending(Dependence::BATCH_MOVED)
        .canonical(batch_rules::canonical_stack);
    Encode "encode" "Messages of up to all slots, the last axis, as plaintexts; a scalar fills every slot."
        => OpDef::new(
            &[operand("message", OperandKind::Tensor)],
            &[
                attribute("level", A::Int, "the plaintext's level"),
                attribute("scale", A::Scale, "the plaintext's scale"),
            ],
            "a plaintext whose batch is the message's leading axes",
            he::encode,
            "ckks.encode %t {level = 3, scale = 2^40}",
        )
        .depending(Dependence::POSITIONS);
}

/// Refuses operands whose state a pass has still to decide.
fn placed(call: &Call<'_>) -> Result<(), InferError> {
    match call.operands.iter().position(|ty| ty.is_unplaced()) {
        None => Ok(()),
        Some(place) => Err(InferError::malformed(format!(
            "operand {place} has no level and scale; they must be decided before the ckks level"
        ))),
    }
}

fn add(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    placed(call)?;
    he::add(call)
}

fn sub(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    placed(call)?;
    he::sub(call)
}

fn mul(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    placed(call)?;
    he::mul(call)
}

fn square(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    placed(call)?;
    he::square(call)
}

fn unchanged(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    placed(call)?;
    he::unchanged(call)
}

fn rescale(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    placed(call)?;
    he::rescale(call)
}

fn drop_levels(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    placed(call)?;
    he::drop_levels(call)
}

fn sum_batch(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    placed(call)?;
    batch_rules::sum(call)
}

fn batch_slice(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    placed(call)?;
    batch_rules::slice(call)
}

fn batch_reshape(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    placed(call)?;
    batch_rules::reshape(call)
}

fn stack_batch(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    placed(call)?;
    batch_rules::stack(call)
}

fn rotate(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    placed(call)?;
    let step = call.int("step")?;
    if step == 0 {
        return Err(InferError::malformed(
            "a rotation by 0 changes nothing and has no key; leave it out",
        ));
    }
    let types = he::unary(call, |state| Ok(state.automorphism("rotate")?))?;
    call.check_key(1, KeyKind::Rotation { step })?;
    Ok(types)
}

fn canonical_steps(call: &Call<'_>, attributes: &mut Attributes) -> Result<(), InferError> {
    let steps = call.ints("steps")?.iter();
    let steps: Vec<i64> = steps.map(|&step| call.normalized_step(step)).collect();
    attributes.set("steps", steps);
    Ok(())
}

fn rotate_hoisted(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    placed(call)?;
    let steps = call.ints("steps")?;
    if steps.is_empty() {
        return Err(InferError::malformed(
            "steps is empty, expected one at least",
        ));
    }
    let rotated: Vec<i64> = steps.iter().copied().filter(|&step| step != 0).collect();
    let keys = call.operands.len() - 1;
    if keys != rotated.len() {
        return Err(InferError::malformed(format!(
            "{keys} keys were given for {} steps that are not 0; each needs one",
            rotated.len()
        )));
    }
    let types = he::unary(call, |state| Ok(state.automorphism("rotate")?))?;
    for (place, step) in rotated.into_iter().enumerate() {
        call.check_key(place + 1, KeyKind::Rotation { step })?;
    }
    Ok(types.into_iter().cycle().take(steps.len()).collect())
}

fn conjugate(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    placed(call)?;
    let types = he::unary(call, |state| Ok(state.automorphism("conjugate")?))?;
    call.check_key(1, KeyKind::Conjugation)?;
    Ok(types)
}

fn relinearize(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    placed(call)?;
    let types = he::unary(call, |state| Ok(state.relinearize()?))?;
    call.check_key(1, KeyKind::Relinearization)?;
    Ok(types)
}

/// The product's type after relinearization.
fn relinearized(product: Vec<Type>) -> Result<Vec<Type>, InferError> {
    product
        .into_iter()
        .map(|ty| match ty {
            Type::Ciphertext {
                batch,
                state: Some(state),
            } => Ok(Type::ciphertext(batch, state.relinearize()?)),
            other => Ok(other),
        })
        .collect()
}

fn mul_relin(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    let product = mul(call)?;
    call.check_key(2, KeyKind::Relinearization)?;
    relinearized(product)
}

fn square_relin(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    let product = square(call)?;
    call.check_key(1, KeyKind::Relinearization)?;
    relinearized(product)
}

/// The type after a rescale.
fn rescaled(call: &Call<'_>, types: Vec<Type>) -> Result<Vec<Type>, InferError> {
    types
        .into_iter()
        .map(|ty| match ty {
            Type::Ciphertext {
                batch,
                state: Some(state),
            } => Ok(Type::ciphertext(batch, state.rescale(call.chain()?)?)),
            other => Ok(other),
        })
        .collect()
}

fn relinearize_rescale(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    rescaled(call, relinearize(call)?)
}

fn mul_relin_rescale(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    rescaled(call, mul_relin(call)?)
}

fn square_relin_rescale(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    rescaled(call, square_relin(call)?)
}
