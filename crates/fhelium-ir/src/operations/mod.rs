//! The operation table: every operation, once.
//!
//! An entry says an operation's name, operands, attributes, the rule for its result types, what
//! it depends on, and shows an example. The text form, the verifier, the builders, the eager
//! engine's checks and the reference page derive from it. One file holds one dialect.

mod call;
mod ckks;
mod core;
mod he;
mod reference;
mod resolve;
mod rns;
mod shape;
mod tensor;
mod tensor_rules;

pub(crate) use call::Call;
pub use ckks::Ckks;
pub use core::Core;
pub use he::He;
pub use reference::{EXAMPLE_HEADER, reference_markdown};
pub use resolve::Resolved;
pub(crate) use resolve::check_type;
pub use rns::Rns;
pub use tensor::Tensor;

use crate::{Attribute, AttributeKind, Attributes, InferError, Materials, Type};
use fhelium_state::Chain;
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

/// A family of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// References to materials.
    Core,
    /// Clear arrays.
    Tensor,
    /// What the user wrote.
    He,
    /// Keys, levels and scales explicit.
    Ckks,
    /// Residue polynomials.
    Rns,
}

impl Dialect {
    /// The part of an operation's name before the dot.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Core => "core",
            Dialect::Tensor => "tensor",
            Dialect::He => "he",
            Dialect::Ckks => "ckks",
            Dialect::Rns => "rns",
        }
    }
}

/// How much of the execution a Program spells out, from the user's view down.
///
/// `he` operations never mix with the other two. A Program at the `rns` level may keep whole
/// `ckks` operations: those that run better natively than taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// What the user wrote.
    He,
    /// Keys, levels and scales explicit.
    Ckks,
    /// Limb arithmetic.
    Rns,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::He => "he",
            Level::Ckks => "ckks",
            Level::Rns => "rns",
        })
    }
}

/// What an operation does beside giving its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing: equal operands give equal results, at any time.
    Pure,
    /// Reads data that may change between calls, but not during one: safe to remove, merge and
    /// move within a Program, not to evaluate ahead of a call.
    Reads,
}

/// How the elements of the results along one axis depend on those of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AxisDependence {
    /// An element depends on the same place of each operand only.
    Element,
    /// An element depends on one, other, place.
    Reindexed,
    /// An element depends on several places.
    Mixing,
}

/// [`AxisDependence`] for each axis: what makes fusing legal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dependence {
    /// Along coefficients or NTT values; for a tensor, over its elements.
    pub position: AxisDependence,
    /// Along the primes.
    pub limb: AxisDependence,
    /// Along the parts.
    pub part: AxisDependence,
    /// Along the batch; broadcasting counts as [`AxisDependence::Element`].
    pub batch: AxisDependence,
}

use AxisDependence::{Element, Mixing, Reindexed};

impl Dependence {
    const fn new(position: AxisDependence, limb: AxisDependence, part: AxisDependence) -> Self {
        Dependence {
            position,
            limb,
            part,
            batch: Element,
        }
    }

    const ELEMENT: Self = Dependence::new(Element, Element, Element);
    const REINDEXED: Self = Dependence::new(Reindexed, Element, Element);
    const POSITIONS: Self = Dependence::new(Mixing, Element, Element);
    const LIMBS: Self = Dependence::new(Element, Mixing, Element);
    const PARTS: Self = Dependence::new(Element, Element, Mixing);
    const ALL: Self = Dependence::new(Mixing, Mixing, Mixing);

    /// Whether an element of the result depends on the same place of each operand only.
    pub fn is_elementwise(self) -> bool {
        [self.position, self.limb, self.part, self.batch]
            .iter()
            .all(|&axis| axis == Element)
    }
}

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
    /// Residues or an evaluation key.
    ResiduesOrKey,
}

impl OperandKind {
    fn accepts(self, ty: &Type) -> bool {
        match self {
            OperandKind::Ciphertext => matches!(ty, Type::Ciphertext { .. }),
            OperandKind::Plaintext => matches!(ty, Type::Plaintext { .. }),
            OperandKind::Encoded => {
                matches!(ty, Type::Ciphertext { .. } | Type::Plaintext { .. })
            }
            OperandKind::Tensor => matches!(ty, Type::Tensor { .. }),
            OperandKind::Key => matches!(ty, Type::Key(_)),
            OperandKind::Residues => matches!(ty, Type::Residues { .. }),
            OperandKind::ResiduesOrKey => matches!(ty, Type::Residues { .. } | Type::Key(_)),
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
            OperandKind::ResiduesOrKey => "residues or an evaluation key",
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

const fn operand(name: &'static str, kind: OperandKind) -> OperandSpec {
    OperandSpec {
        name,
        kind,
        count: Count::One,
    }
}

const fn optional(name: &'static str, kind: OperandKind) -> OperandSpec {
    OperandSpec {
        name,
        kind,
        count: Count::Optional,
    }
}

const fn many(name: &'static str, kind: OperandKind) -> OperandSpec {
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

const fn attribute(name: &'static str, kind: AttributeKind, doc: &'static str) -> AttributeSpec {
    AttributeSpec {
        name,
        kind,
        presence: Presence::Required,
        doc,
    }
}

impl AttributeSpec {
    const fn or(self, presence: Presence) -> Self {
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
    /// An operation line over the inputs that [`EXAMPLE_HEADER`] declares.
    pub example: &'static str,
    /// What it does beside giving its results.
    pub effect: Effect,
    /// How its results' elements depend on its operands'.
    pub dependence: Dependence,
    /// Whether it holds a region.
    pub has_region: bool,
    rule: Rule,
    canonicalize: Option<Canonicalize>,
}

type Rule = fn(&Call<'_>) -> Result<Vec<Type>, InferError>;
type Canonicalize = fn(&Call<'_>, &mut Attributes) -> Result<(), InferError>;

impl OpDef {
    /// An entry before the dialect's list gives it name and doc: pure, element by element.
    const fn new(
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

    const fn named(self, dialect: Dialect, name: &'static str, doc: &'static str) -> Self {
        OpDef {
            dialect,
            name,
            doc,
            ..self
        }
    }

    const fn depending(self, dependence: Dependence) -> Self {
        OpDef { dependence, ..self }
    }

    const fn reading(self) -> Self {
        OpDef {
            effect: Effect::Reads,
            ..self
        }
    }

    const fn with_region(self) -> Self {
        OpDef {
            has_region: true,
            ..self
        }
    }

    const fn canonical(self, canonicalize: Canonicalize) -> Self {
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

/// Lists a dialect: an enum of its operations and the table of their entries, in one place.
macro_rules! dialect {
    (
        $(#[$meta:meta])*
        $dialect:ident, $prefix:literal:
        $($variant:ident $name:literal $doc:literal => $def:expr;)*
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $dialect {
            $(#[doc = concat!("`", $prefix, ".", $name, "`: ", $doc)] $variant,)*
        }

        impl $dialect {
            /// Every operation of the dialect, in the table's order.
            pub const ALL: &'static [$dialect] = &[$($dialect::$variant),*];

            /// The operation's entry.
            pub fn def(self) -> &'static OpDef {
                static TABLE: &[OpDef] = &[
                    $($def.named(Dialect::$dialect, concat!($prefix, ".", $name), $doc)),*
                ];
                &TABLE[self as usize]
            }
        }

        impl From<$dialect> for OpKind {
            fn from(op: $dialect) -> OpKind {
                OpKind::$dialect(op)
            }
        }
    };
}
use dialect;

/// Which operation: a handle into the table.
///
/// Passes match on it: `OpKind::He(He::Mul)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpKind {
    /// A reference.
    Core(Core),
    /// On clear arrays.
    Tensor(Tensor),
    /// As the user wrote it.
    He(He),
    /// With keys, levels and scales explicit.
    Ckks(Ckks),
    /// On residues.
    Rns(Rns),
}

impl OpKind {
    /// The operation's entry.
    pub fn def(self) -> &'static OpDef {
        match self {
            OpKind::Core(op) => op.def(),
            OpKind::Tensor(op) => op.def(),
            OpKind::He(op) => op.def(),
            OpKind::Ckks(op) => op.def(),
            OpKind::Rns(op) => op.def(),
        }
    }

    /// The full name: `he.mul`.
    pub fn name(self) -> &'static str {
        self.def().name
    }

    /// The level that the operation belongs to; `None` for those that serve all levels.
    pub fn level(self) -> Option<Level> {
        match self {
            OpKind::Core(_) | OpKind::Tensor(_) => None,
            OpKind::He(_) => Some(Level::He),
            OpKind::Ckks(_) => Some(Level::Ckks),
            OpKind::Rns(_) => Some(Level::Rns),
        }
    }

    /// Every operation, in the table's order.
    pub fn all() -> impl Iterator<Item = OpKind> {
        let core = Core::ALL.iter().map(|&op| op.into());
        let tensor = Tensor::ALL.iter().map(|&op| op.into());
        let he = He::ALL.iter().map(|&op| op.into());
        let ckks = Ckks::ALL.iter().map(|&op| op.into());
        let rns = Rns::ALL.iter().map(|&op| op.into());
        core.chain(tensor).chain(he).chain(ckks).chain(rns)
    }

    /// The operation of a full name.
    pub fn find(name: &str) -> Option<OpKind> {
        static NAMES: OnceLock<HashMap<&'static str, OpKind>> = OnceLock::new();
        let names = NAMES.get_or_init(|| OpKind::all().map(|kind| (kind.name(), kind)).collect());
        names.get(name).copied()
    }
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the rules need to know beside operands and attributes.
#[derive(Clone, Copy, Debug, Default)]
pub struct InferContext<'a> {
    /// The modulus chain; needed wherever a level or scale is known.
    pub chain: Option<&'a Chain>,
    /// The declared materials; needed by `core.material`.
    pub materials: Option<&'a Materials>,
}

impl<'a> InferContext<'a> {
    /// A context with a chain and no materials: what an eager operation needs.
    pub fn of_chain(chain: &'a Chain) -> Self {
        InferContext {
            chain: Some(chain),
            materials: None,
        }
    }
}
