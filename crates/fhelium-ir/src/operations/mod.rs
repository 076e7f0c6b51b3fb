//! The operation table: every operation, once.
//!
//! An entry says an operation's name, operands, attributes, the rule for its result types, what
//! it depends on, and shows an example. The text form, the verifier, the builders, the eager
//! engine's checks and the reference page derive from it. One file holds one dialect.

mod batch_rules;
mod call;
mod ckks;
mod core;
mod definition;
mod he;
mod reference;
mod resolve;
mod rns;
mod shape;
mod tensor;
mod tensor_call;
mod tensor_rules;

pub(crate) use call::Call;
pub use ckks::Ckks;
pub use core::Core;
pub use definition::{AttributeSpec, Count, OpDef, OperandKind, OperandSpec, Presence};
use definition::{Rule, attribute, many, operand, optional};
pub use he::He;
pub use reference::{EXAMPLE_HEADER, reference_markdown};
pub use resolve::Resolved;
pub(crate) use resolve::check_type;
pub use rns::Rns;
pub use tensor::Tensor;
pub use tensor_call::{Span, TensorCall, negative_power};

use crate::{AttributeKind, Materials};
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
    const BATCH_SUM: Self = Dependence {
        batch: Mixing,
        ..Dependence::ELEMENT
    };
    const BATCH_MOVED: Self = Dependence {
        batch: Reindexed,
        ..Dependence::ELEMENT
    };

    /// Whether an element of the result depends on the same place of each operand only.
    pub fn is_elementwise(self) -> bool {
        [self.position, self.limb, self.part, self.batch]
            .iter()
            .all(|&axis| axis == Element)
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
