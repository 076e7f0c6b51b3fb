//! `he`: operations on encrypted values as the user wrote them.
//!
//! States may be unknown here: then only batches are checked, and a later pass decides levels
//! and scales.

use super::batch_rules;
use super::tensor::{AXIS, SHAPE, SLICE};
use super::{
    AttributeKind as A, Call, Dependence, Dialect, OpDef, OpKind, OperandKind, OperandSpec,
    Presence, attribute, dialect, many, operand, optional, shape,
};
use crate::{Attributes, InferError, KeyKind, Type};
use fhelium_state::{Chain, CipherState, PlainState, StateError};

const X: OperandSpec = operand("x", OperandKind::Encoded);
const Y: OperandSpec = operand("y", OperandKind::Encoded);
const CT: OperandSpec = operand("x", OperandKind::Ciphertext);
const KEY: OperandSpec = optional("key", OperandKind::Key);

pub(super) const STEP: super::AttributeSpec =
    attribute("step", A::Int, "slot i receives slot i + step");
pub(super) const VALUE: super::AttributeSpec = attribute("value", A::Int, "the factor");
pub(super) const COUNT: super::AttributeSpec = attribute("count", A::Int, "how many");

const BINARY: &[OperandSpec] = &[X, Y];
const CIPHERTEXT: &str = "a ciphertext";

pub(super) const ITEMS: OperandSpec = operand("x", OperandKind::Encoded);
pub(super) const ITS_KIND: &str = "a value of the operand's kind";

dialect! {
    /// Operations on encrypted values as the user wrote them.
    He, "he":
    Add "add" "Sum of ciphertexts, or of a ciphertext and a plaintext in either order."
        => OpDef::new(BINARY, &[], CIPHERTEXT, add, "he.add %a, %p");
    Sub "sub" "Difference of ciphertexts, or of a ciphertext and a plaintext in either order."
        => OpDef::new(BINARY, &[], CIPHERTEXT, sub, "he.sub %p, %a");
    Mul "mul" "Product of ciphertexts (3 parts), or of a ciphertext and a plaintext in either order."
        => OpDef::new(BINARY, &[], CIPHERTEXT, mul, "he.mul %a, %b")
            .depending(Dependence::PARTS);
    Square "square" "A ciphertext times itself: 3 parts."
        => OpDef::new(&[CT], &[], CIPHERTEXT, square, "he.square %a")
            .depending(Dependence::PARTS);
    MulInteger "mul_integer" "Product with an integer; the scale stays."
        => OpDef::new(&[CT], &[VALUE], CIPHERTEXT, unchanged, "he.mul_integer %a {value = -3}");
    Neg "neg" "Negative."
        => OpDef::new(&[CT], &[], CIPHERTEXT, unchanged, "he.neg %a");
    Rotate "rotate" "Slots moved cyclically; the key is looked up where it is not given."
        => OpDef::new(&[CT, KEY], &[STEP], CIPHERTEXT, rotate, "he.rotate %a {step = 5}")
            .depending(Dependence::ALL)
            .canonical(canonical_step);
    Conjugate "conjugate" "Complex conjugate of every slot; the key is looked up where it is not given."
        => OpDef::new(&[CT, KEY], &[], CIPHERTEXT, conjugate, "he.conjugate %a, %conjugation")
            .depending(Dependence::ALL);
    Relinearize "relinearize" "Three parts to two; the key is looked up where it is not given."
        => OpDef::new(&[CT, KEY], &[], CIPHERTEXT, relinearize, "he.relinearize %product")
            .depending(Dependence::ALL);
    Rescale "rescale" "One level less, the scale divided by that level's prime."
        => OpDef::new(&[CT], &[], CIPHERTEXT, rescale, "he.rescale %product")
            .depending(Dependence::ALL);
    DropLevels "drop_levels" "Levels given up at the same scale."
        => OpDef::new(&[CT], &[COUNT], CIPHERTEXT, drop_levels, "he.drop_levels %a {count = 1}");
    SumBatch "sum_batch" "Sum of a batch along one of its axes, which goes."
        => OpDef::new(&[CT], &[AXIS], CIPHERTEXT, batch_rules::sum, "he.sum_batch %a {axis = 0}")
            .depending(Dependence::BATCH_SUM)
            .canonical(batch_rules::canonical_axis);
    BatchSlice "batch_slice" "Evenly spaced items along each batch axis: start, start + step, ..."
        => OpDef::new(
            &[ITEMS],
            SLICE,
            ITS_KIND,
            batch_rules::slice,
            "he.batch_slice %a {starts = [1], sizes = [1], steps = [1], dropped = [0]}",
        )
        .depending(Dependence::BATCH_MOVED)
        .canonical(batch_rules::canonical_slice);
    BatchReshape "batch_reshape" "The same items under other batch axes."
        => OpDef::new(&[ITEMS], &[SHAPE], ITS_KIND, batch_rules::reshape, "he.batch_reshape %a {shape = [1, -1]}")
            .depending(Dependence::BATCH_MOVED)
            .canonical(batch_rules::canonical_reshape);
    StackBatch "stack_batch" "Ciphertexts, or plaintexts, of one type along a new batch axis."
        => OpDef::new(
            &[ITEMS, many("more of that type", OperandKind::Encoded)],
            &[AXIS],
            "a value of their kind with one more batch axis",
            batch_rules::stack,
            "he.stack_batch %a, %a {axis = 0}",
        )
        .depending(Dependence::BATCH_MOVED)
        .canonical(batch_rules::canonical_stack);
    Encode "encode" "Messages of up to all slots, the last axis, as plaintexts; a scalar fills every slot."
        => OpDef::new(
            &[operand("message", OperandKind::Tensor)],
            &[
                attribute("level", A::Int, "the plaintext's level; with the scale, or left to a pass")
                    .or(Presence::Optional),
                attribute("scale", A::Scale, "the plaintext's scale; with the level, or left to a pass")
                    .or(Presence::Optional),
            ],
            "a plaintext whose batch is the message's leading axes",
            encode,
            "he.encode %t {level = 3, scale = 2^40}",
        )
        .depending(Dependence::POSITIONS);
}

type State = Result<CipherState, StateError>;
type WithCiphertext = fn(&CipherState, &Chain, &'static str, &CipherState) -> State;
type WithPlaintext = fn(&CipherState, &Chain, &'static str, &PlainState) -> State;

/// The result of an operation on two operands of which one at least is a ciphertext.
fn binary(
    call: &Call<'_>,
    verb: &'static str,
    with_ciphertext: WithCiphertext,
    with_plaintext: WithPlaintext,
) -> Result<Vec<Type>, InferError> {
    let (Some(left), Some(right)) = (call.operands.first(), call.operands.get(1)) else {
        return Err(InferError::malformed("an operand is missing"));
    };
    let batch = shape::broadcast(left.batch(), right.batch())?;
    let state = match (left, right) {
        (Type::Ciphertext { state: l, .. }, Type::Ciphertext { state: r, .. }) => match (l, r) {
            (Some(l), Some(r)) => Some(with_ciphertext(l, call.chain()?, verb, r)?),
            _ => None,
        },
        (Type::Ciphertext { state: c, .. }, Type::Plaintext { state: p, .. })
        | (Type::Plaintext { state: p, .. }, Type::Ciphertext { state: c, .. }) => match (c, p) {
            (Some(c), Some(p)) => Some(with_plaintext(c, call.chain()?, verb, p)?),
            _ => None,
        },
        _ => {
            return Err(InferError::malformed(
                "both operands are plaintexts; one at least must be a ciphertext",
            ));
        }
    };
    Ok(vec![Type::Ciphertext { batch, state }])
}

pub(super) fn add(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    binary(call, "add", CipherState::add, CipherState::add_plain)
}

pub(super) fn sub(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    binary(call, "subtract", CipherState::add, CipherState::add_plain)
}

pub(super) fn mul(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    binary(
        call,
        "multiply",
        CipherState::multiply,
        CipherState::multiply_plain,
    )
}

/// The result of an operation on one ciphertext that keeps its batch.
pub(super) fn unary(
    call: &Call<'_>,
    state: impl FnOnce(&CipherState) -> Result<CipherState, InferError>,
) -> Result<Vec<Type>, InferError> {
    let (batch, known) = call.ciphertext(0)?;
    Ok(vec![Type::Ciphertext {
        batch: batch.to_vec(),
        state: known.map(state).transpose()?,
    }])
}

pub(super) fn square(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    unary(call, |state| {
        Ok(state.multiply(call.chain()?, "square", state)?)
    })
}

pub(super) fn unchanged(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    unary(call, |state| Ok(state.clone()))
}

pub(super) fn canonical_step(
    call: &Call<'_>,
    attributes: &mut Attributes,
) -> Result<(), InferError> {
    attributes.set("step", call.normalized_step(call.int("step")?));
    Ok(())
}

/// Checks the key where one is given.
fn optional_key(call: &Call<'_>, kind: KeyKind) -> Result<(), InferError> {
    match call.operands.len() {
        1 => Ok(()),
        _ => call.check_key(1, kind),
    }
}

fn rotate(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    let step = call.int("step")?;
    optional_key(call, KeyKind::Rotation { step })?;
    unary(call, |state| Ok(state.automorphism("rotate")?))
}

fn conjugate(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    optional_key(call, KeyKind::Conjugation)?;
    unary(call, |state| Ok(state.automorphism("conjugate")?))
}

fn relinearize(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    optional_key(call, KeyKind::Relinearization)?;
    unary(call, |state| Ok(state.relinearize()?))
}

pub(super) fn rescale(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    unary(call, |state| Ok(state.rescale(call.chain()?)?))
}

pub(super) fn drop_levels(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    let count = call.count("count")?;
    unary(call, |state| Ok(state.drop_levels(call.chain()?, count)?))
}

pub(super) fn encode(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    let (_, message) = call.tensor(0)?;
    let (batch, values) = match message.split_last() {
        Some((&values, batch)) => (batch.to_vec(), values),
        None => (Vec::new(), 1),
    };
    if let Some(chain) = call.context.chain
        && values > chain.slots()
    {
        return Err(InferError::value(format!(
            "the message's last axis has {values} values; a plaintext holds {}",
            chain.slots()
        )));
    }
    let (level, scale) = (call.attributes.int("level"), call.attributes.scale("scale"));
    let state = match (level, scale) {
        (Some(_), Some(scale)) => {
            let level = call.count("level")?;
            call.chain()?.check_encoding("encode", level, scale)?;
            Some(PlainState {
                level,
                scale: scale.clone(),
            })
        }
        (None, None) => None,
        _ => {
            return Err(InferError::malformed(
                "level and scale go together: give both, or neither to leave them to a pass",
            ));
        }
    };
    Ok(vec![Type::Plaintext { batch, state }])
}
