//! `tensor`: clear arrays, by numpy's rules for shapes and element types.

use super::tensor_rules as rules;
use super::{
    AttributeKind as A, Dependence, Dialect, OpDef, OpKind, OperandKind, OperandSpec, Presence,
    attribute, dialect, many, operand,
};

const X: OperandSpec = operand("x", OperandKind::Tensor);
const Y: OperandSpec = operand("y", OperandKind::Tensor);
const ARRAYS: OperandSpec = many("more arrays", OperandKind::Tensor);

const fn binary(rule: super::Rule, example: &'static str) -> OpDef {
    OpDef::new(
        &[X, Y],
        &[],
        "a tensor of the broadcast shape",
        rule,
        example,
    )
}

const fn unary(rule: super::Rule, example: &'static str) -> OpDef {
    OpDef::new(&[X], &[], "a tensor of the operand's shape", rule, example)
}

const REDUCTION: &[super::AttributeSpec] = &[
    attribute(
        "axes",
        A::Ints,
        "the axes to reduce; all of them if not given",
    )
    .or(Presence::Optional),
    attribute(
        "keepdims",
        A::Bool,
        "whether a reduced axis stays with extent 1",
    )
    .or(Presence::DefaultFalse),
];

const fn reduction(example: &'static str, rule: super::Rule) -> OpDef {
    OpDef::new(
        &[X],
        REDUCTION,
        "a tensor without the reduced axes",
        rule,
        example,
    )
    .depending(Dependence::POSITIONS)
    .canonical(rules::canonical_axes)
}

pub(super) const AXIS: super::AttributeSpec =
    attribute("axis", A::Int, "the axis; negative from the end");
pub(super) const SHAPE: super::AttributeSpec =
    attribute("shape", A::Ints, "the shape; one extent may be -1");
pub(super) const SLICE: &[super::AttributeSpec] = &[
    attribute("starts", A::Ints, "the first place along each axis"),
    attribute("sizes", A::Ints, "how many elements along each axis"),
    attribute(
        "steps",
        A::Ints,
        "the distance along each axis; may be negative",
    ),
    attribute("dropped", A::Ints, "axes of size 1 that the result lacks")
        .or(Presence::DefaultEmpty),
];

dialect! {
    /// Clear arrays, by numpy's rules.
    Tensor, "tensor":
    Constant "constant" "A scalar that the Program holds."
        => OpDef::new(
            &[],
            &[
                attribute("value", A::Number, "the number"),
                attribute("dtype", A::DType, "its element type"),
            ],
            "a tensor without axes",
            rules::constant,
            "tensor.constant {value = 0.5, dtype = f64}",
        );
    Add "add" "Sum."
        => binary(rules::arithmetic, "tensor.add %t, %row");
    Sub "sub" "Difference."
        => binary(rules::difference, "tensor.sub %t, %row");
    Mul "mul" "Product."
        => binary(rules::arithmetic, "tensor.mul %t, %row");
    Div "div" "Quotient; of integers it is a float."
        => binary(rules::division, "tensor.div %t, %row");
    Pow "pow" "Power."
        => binary(rules::power, "tensor.pow %t, %row");
    Neg "neg" "Negative."
        => unary(rules::negation, "tensor.neg %t");
    Abs "abs" "Absolute value; of complex numbers it is real."
        => unary(rules::absolute, "tensor.abs %z");
    Exp "exp" "Exponential."
        => unary(rules::inexact, "tensor.exp %t");
    Log "log" "Natural logarithm."
        => unary(rules::inexact, "tensor.log %t");
    Sqrt "sqrt" "Square root."
        => unary(rules::inexact, "tensor.sqrt %t");
    Sin "sin" "Sine."
        => unary(rules::inexact, "tensor.sin %t");
    Cos "cos" "Cosine."
        => unary(rules::inexact, "tensor.cos %t");
    Tanh "tanh" "Hyperbolic tangent."
        => unary(rules::inexact, "tensor.tanh %t");
    Real "real" "Real part."
        => unary(rules::real_part, "tensor.real %z");
    Imag "imag" "Imaginary part; zero for real numbers."
        => unary(rules::real_part, "tensor.imag %z");
    Conj "conj" "Complex conjugate."
        => unary(rules::same, "tensor.conj %z");
    Cast "cast" "The same numbers in another element type."
        => OpDef::new(
            &[X],
            &[attribute("dtype", A::DType, "the element type")],
            "a tensor of the operand's shape",
            rules::cast,
            "tensor.cast %t {dtype = c128}",
        );
    Clip "clip" "Numbers limited to an interval."
        => OpDef::new(
            &[
                X,
                operand("low", OperandKind::Tensor),
                operand("high", OperandKind::Tensor),
            ],
            &[],
            "a tensor of the broadcast shape",
            rules::clip,
            "tensor.clip %t, %row, %row",
        );
    Where "where" "Elements of x where the condition holds, else of y."
        => OpDef::new(
            &[operand("condition", OperandKind::Tensor), X, Y],
            &[],
            "a tensor of the broadcast shape",
            rules::choice,
            "tensor.where %mask, %t, %row",
        );
    Broadcast "broadcast" "The array repeated to a larger shape."
        => OpDef::new(
            &[X],
            &[attribute("shape", A::Ints, "the shape")],
            "a tensor of that shape",
            rules::broadcast_to,
            "tensor.broadcast %row {shape = [2, 4, 8]}",
        );
    Roll "roll" "Elements moved along an axis, those that leave one end entering at the other."
        => OpDef::new(
            &[X],
            &[
                attribute("shift", A::Int, "how far towards higher places"),
                attribute("axis", A::Int, "the axis; without it, over the flattened array")
                    .or(Presence::Optional),
            ],
            "a tensor of the operand's type",
            rules::same,
            "tensor.roll %t {shift = -1, axis = -1}",
        )
        .depending(Dependence::REINDEXED)
        .canonical(rules::canonical_axis);
    Reshape "reshape" "The same elements in another shape."
        => OpDef::new(
            &[X],
            &[SHAPE],
            "a tensor of that shape",
            rules::reshape,
            "tensor.reshape %t {shape = [2, -1]}",
        )
        .depending(Dependence::REINDEXED)
        .canonical(rules::canonical_reshape);
    Transpose "transpose" "Axes in another order."
        => OpDef::new(
            &[X],
            &[attribute("axes", A::Ints, "axis i of the result is axis axes[i]; reversed if not given")
                .or(Presence::Optional)],
            "a tensor of the permuted shape",
            rules::transpose,
            "tensor.transpose %t {axes = [1, 0]}",
        )
        .depending(Dependence::REINDEXED)
        .canonical(rules::canonical_transpose);
    Slice "slice" "Evenly spaced elements along each axis: start, start + step, ..."
        => OpDef::new(
            &[X],
            SLICE,
            "a tensor of those sizes",
            rules::slice,
            "tensor.slice %t {starts = [1, 7], sizes = [1, 4], steps = [1, -2], dropped = [0]}",
        )
        .depending(Dependence::REINDEXED)
        .canonical(rules::canonical_slice);
    Index "index" "The part of an array at one place of an axis, without that axis."
        => OpDef::new(
            &[X],
            &[AXIS, attribute("index", A::Int, "the place; negative from the end")],
            "a tensor without the axis",
            rules::index,
            "tensor.index %t {axis = 0, index = -1}",
        )
        .depending(Dependence::REINDEXED)
        .canonical(rules::canonical_index);
    Stack "stack" "Arrays of one shape along a new axis."
        => OpDef::new(
            &[X, ARRAYS],
            &[AXIS],
            "a tensor with one more axis",
            rules::stack,
            "tensor.stack %t, %t {axis = 0}",
        )
        .depending(Dependence::REINDEXED)
        .canonical(rules::canonical_stack);
    Concatenate "concatenate" "Arrays one after another along an axis."
        => OpDef::new(
            &[X, ARRAYS],
            &[AXIS],
            "a tensor whose extent on the axis is the sum of theirs",
            rules::concatenate,
            "tensor.concatenate %t, %t {axis = 1}",
        )
        .depending(Dependence::REINDEXED)
        .canonical(rules::canonical_axis);
    Sum "sum" "Sum over axes; integers and booleans are summed in 64 bits."
        => reduction("tensor.sum %t {axes = [-1]}", rules::sum);
    Mean "mean" "Mean over axes."
        => reduction("tensor.mean %t {axes = [0], keepdims = true}", rules::mean);
    Matmul "matmul" "Matrix product; leading axes broadcast."
        => binary(rules::matmul, "tensor.matmul %t, %vector").depending(Dependence::POSITIONS);
}
