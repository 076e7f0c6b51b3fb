//! The Program: what fhelium compiles.
//!
//! A [`Program`] is a typed list of operations in static single assignment form. Every operation
//! is one entry of the [operation table](operations); its result types follow from its operands'
//! types by the entry's rule, which asks `fhelium-state` for levels, scales and parts. The text
//! form ([`Program::parse`], [`Program::to_text`]), the verifier, the builders and the reference
//! page derive from that table. Nothing here computes on data.
//!
//! Operations come at three [levels](Level): `he` is what a user wrote, `ckks` makes keys,
//! levels and scales explicit, `rns` is limb arithmetic, where fusion happens. `tensor`
//! operations on clear arrays and `core` serve all three.

mod annotations;
mod attribute;
mod body;
mod builder;
mod dtype;
mod edit;
mod error;
pub mod layout;
pub mod operations;
mod outputs;
mod program;
mod rewrite;
mod svg;
mod text;
mod types;
mod verify;

pub use attribute::{Attribute, AttributeKind, Attributes, Real};
pub use body::{Body, Op, Origin, Uses, Value, ValueId};
pub use builder::{BodyBuilder, ProgramBuilder};
pub use dtype::DType;
pub use edit::{Editor, OpId, Place};
pub use error::{InferError, IrError, Location, Position};
pub use operations::{
    AxisDependence, Ckks, Core, Dependence, Dialect, Effect, He, InferContext, Level, OpDef,
    OpKind, Rns, Span, Tensor, TensorCall, negative_power,
};
pub use outputs::{Literal, OutputTree};
pub use program::{Input, Material, Materials, Program};
pub use rewrite::Rewriter;
pub use text::PrintOptions;
pub use types::{Basis, Domain, KeyKind, Type};

pub use fhelium_state as state;
