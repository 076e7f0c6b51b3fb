//! What an entry of the table says.

use super::{Call, Dependence, Dialect, Effect};
use crate::{Attribute, AttributeKind, Attributes, InferError, Type};
use std::fmt;

/// What an operand may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandKind {
    /// A ciphertext.
    Ciphertext,
    /// A plaintext.
    Plaintext,
    /// A ciphertext or a plaintext.
    Encoded,
    /// A clear tensor.
    Tensor,
    /// An evaluation key.
    Key,
    /// Residues.
    Residues,
    /// Residues, a ciphertext, a plaintext or an evaluation key.
    RingValue,
}

impl OperandKind {
    pub(super) fn accepts(self, ty: &Type) -> bool {
        match self {
            OperandKind::Ciphertext => matches!(ty, Type::Ciphertext { .. }),
            OperandKind::Plaintext => matches!(ty, Type::Plaintext { .. }),
            OperandKind::Encoded => {
                matches!(ty, Type::Ciphertext { .. } | Type::Plaintext { .. })
            }
            OperandKind::Tensor => matches!(ty, Type::Tensor { .. }),
            OperandKind::Key => matches!(ty, Type::Key(_)),
            OperandKind::Residues => matches!(ty, Type::Residues { .. }),
            OperandKind::RingValue => !matches!(ty, Type::Tensor { .. }),
        }
    }
}

impl fmt::Display for OperandKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OperandKind::Ciphertext => "a ciphertext",
            OperandKind::Plaintext => "a plaintext",
            OperandKind::Encoded => "a ciphertext or a plaintext",
            OperandKind::Tensor => "a tensor",
            OperandKind::Key => "an evaluation key",
            OperandKind::Residues => "residues",
            OperandKind::RingValue => "residues, a ciphertext, a plaintext or an evaluation key",
        })
    }
}

/// How many values an operand stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Count {
    /// Exactly one.
    One,
    /// One or none; only as the last operand.
    Optional,
    /// Any number; only as the last operand.
    Many,
}

/// An operand of an entry.
#[derive(Clone, Copy, Debug)]
pub struct OperandSpec {
    /// Its name in the reference.
    pub name: &'static str,
    /// What it may be.
    pub kind: OperandKind,
    /// How many values it stands for.
    pub count: Count,
}

pub(super) const fn operand(name: &'static str, kind: OperandKind) -> OperandSpec {
    OperandSpec {
        name,
        kind,
        count: Count::One,
    }
}

pub(super) const fn optional(name: &'static str, kind: OperandKind) -> OperandSpec {
    OperandSpec {
        name,
        kind,
        count: Count::Optional,
    }
}

pub(super) const fn many(name: &'static str, kind: OperandKind) -> OperandSpec {
    OperandSpec {
        name,
        kind,
        count: Count::Many,
    }
}

/// Whether an attribute must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It must.
    Required,
    /// Without it, it stays absent, or follows from the operands.
    Optional,
    /// Without it, it is false.
    DefaultFalse,
    /// Without it, it is the empty list.
    DefaultEmpty,
}

/// An attribute of an entry.
#[derive(Clone, Copy, Debug)]
pub struct AttributeSpec {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: AttributeKind,
    /// Whether it must be given.
    pub presence: Presence,
    /// What it means.
    pub doc: &'static str,
}

impl AttributeSpec {
    /// The value of an attribute that was not given.
    pub fn default_value(&self) -> Option<Attribute> {
        match self.presence {
            Presence::Required | Presence::Optional => None,
            Presence::DefaultFalse => Some(Attribute::Bool(false)),
            Presence::DefaultEmpty => Some(Attribute::Ints(Vec::new())),
        }
    }
}

pub(super) const fn attribute(
    name: &'static str,
    kind: AttributeKind,
    doc: &'static str,
) -> AttributeSpec {
    AttributeSpec {
        name,
        kind,
        presence: Presence::Required,
        doc,
    }
}

impl AttributeSpec {
    pub(super) const fn or(self, presence: Presence) -> Self {
        AttributeSpec { presence, ..self }
    }
}

/// An entry of the table.
pub struct OpDef {
    /// The full name: `he.mul`.
    pub name: &'static str,
    /// What it does, in a line.
    pub doc: &'static str,
    /// The family that it belongs to.
    pub dialect: Dialect,
    /// The operands, in order.
    pub operands: &'static [OperandSpec],
    /// The attributes, in the order in which they print.
    pub attributes: &'static [AttributeSpec],
    /// What it gives, in words.
    pub results: &'static str,
    /// An operation line over the inputs that [`EXAMPLE_HEADER`](super::EXAMPLE_HEADER) declares.
    pub example: &'static str,
    /// What it does beside giving its results.
    pub effect: Effect,
    /// How its results' elements depend on its operands'.
    pub dependence: Dependence,
    /// Whether it holds a region.
    pub has_region: bool,
    pub(super) rule: Rule,
    pub(super) canonicalize: Option<Canonicalize>,
}

pub(super) type Rule = fn(&Call<'_>) -> Result<Vec<Type>, InferError>;
pub(super) type Canonicalize = fn(&Call<'_>, &mut Attributes) -> Result<(), InferError>;

impl OpDef {
    /// An entry before the dialect's list gives it name and doc: pure, element by element.
    pub(super) const fn new(
        operands: &'static [OperandSpec],
        attributes: &'static [AttributeSpec],
        results: &'static str,
        rule: Rule,
        example: &'static str,
    ) -> Self {
        OpDef {
            name: "",
            doc: "",
            dialect: Dialect::Core,
            operands,
            attributes,
            results,
            example,
            effect: Effect::Pure,
            dependence: Dependence::ELEMENT,
            has_region: false,
            rule,
            canonicalize: None,
        }
    }

    pub(super) const fn named(
        self,
        dialect: Dialect,
        name: &'static str,
        doc: &'static str,
    ) -> Self {
        OpDef {
            dialect,
            name,
            doc,
            ..self
        }
    }

    pub(super) const fn depending(self, dependence: Dependence) -> Self {
        OpDef { dependence, ..self }
    }

    pub(super) const fn reading(self) -> Self {
        OpDef {
            effect: Effect::Reads,
            ..self
        }
    }

    pub(super) const fn with_region(self) -> Self {
        OpDef {
            has_region: true,
            ..self
        }
    }

    pub(super) const fn canonical(self, canonicalize: Canonicalize) -> Self {
        OpDef {
            canonicalize: Some(canonicalize),
            ..self
        }
    }

    /// The attribute of that name.
    pub fn attribute(&self, name: &str) -> Option<&'static AttributeSpec> {
        self.attributes.iter().find(|spec| spec.name == name)
    }
}

impl fmt::Debug for OpDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
