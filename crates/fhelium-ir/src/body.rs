//! A list of operations in static single assignment form.

use crate::{Attributes, Location, OpKind, Type};
use smallvec::SmallVec;
use std::sync::Arc;

/// A value of one [`Body`]: an argument or a result of an operation.
///
/// Values are numbered in the order of their definitions, arguments first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub(crate) u32);

impl ValueId {
    /// The value of that number, of whichever body it is used with.
    pub fn from_index(index: u32) -> Self {
        ValueId(index)
    }

    /// The value's number: its place in [`Body::values`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// An argument of the body, by its place.
    Argument(usize),
    /// A result of an operation.
    Result {
        /// The operation's place in [`Body::ops`].
        op: usize,
        /// Which of its results.
        index: usize,
    },
}

/// What is known of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Its type.
    pub ty: Type,
    /// What defines it.
    pub origin: Origin,
}

/// An operation: an entry of the table applied to values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    pub(crate) kind: OpKind,
    pub(crate) operands: SmallVec<[ValueId; 3]>,
    pub(crate) results: SmallVec<[ValueId; 1]>,
    pub(crate) attributes: Attributes,
    pub(crate) location: Option<Location>,
    pub(crate) region: Option<Arc<Body>>,
}

impl Op {
    /// Which entry of the operation table this applies.
    pub fn kind(&self) -> OpKind {
        self.kind
    }

    /// The values that it reads.
    pub fn operands(&self) -> &[ValueId] {
        &self.operands
    }

    /// The values that it defines.
    pub fn results(&self) -> &[ValueId] {
        &self.results
    }

    /// Its attributes: in the table's order, defaults filled in.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The source line that made it.
    pub fn location(&self) -> Option<&Location> {
        self.location.as_ref()
    }

    /// The operations inside it, of which `rns.fused` alone has some.
    ///
    /// The region sees only its own arguments, which stand for the operands.
    pub fn region(&self) -> Option<&Arc<Body>> {
        self.region.as_ref()
    }
}

/// Operations in order, each reading only values defined before it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Body {
    pub(crate) arguments: u32,
    pub(crate) values: Vec<Value>,
    pub(crate) ops: Vec<Op>,
    pub(crate) results: Vec<ValueId>,
}

impl Body {
    /// The values that come from outside.
    pub fn arguments(&self) -> impl ExactSizeIterator<Item = ValueId> + use<> {
        (0..self.arguments).map(ValueId)
    }

    /// Every value by its number.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The operations in order.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The values that leave the body.
    pub fn results(&self) -> &[ValueId] {
        &self.results
    }

    /// A value's type.
    ///
    /// # Panics
    /// If the value is another body's and this one has no value of its number.
    pub fn type_of(&self, value: ValueId) -> &Type {
        &self.values[value.index()].ty
    }

    /// The operation that defines a value; `None` for an argument.
    pub fn definition(&self, value: ValueId) -> Option<&Op> {
        match self.values.get(value.index())?.origin {
            Origin::Argument(_) => None,
            Origin::Result { op, .. } => self.ops.get(op),
        }
    }

    /// Who reads each value: the places of the reading operations, ascending, one for each operand
    /// that reads it. Results of the body are not among them.
    pub fn uses(&self) -> Uses {
        let mut starts = vec![0usize; self.values.len() + 1];
        let reads = || {
            self.ops
                .iter()
                .enumerate()
                .flat_map(|(place, op)| op.operands.iter().map(move |value| (value.index(), place)))
        };
        for (value, _) in reads() {
            starts[value + 1] += 1;
        }
        for value in 0..self.values.len() {
            starts[value + 1] += starts[value];
        }
        let mut next = starts.clone();
        let mut readers = vec![0; starts[self.values.len()]];
        for (value, place) in reads() {
            readers[next[value]] = place;
            next[value] += 1;
        }
        Uses { starts, readers }
    }
}

/// The readers of every value of a body, see [`Body::uses`].
#[derive(Clone, Debug)]
pub struct Uses {
    starts: Vec<usize>,
    readers: Vec<usize>,
}

impl Uses {
    /// Places of the operations that read a value, ascending.
    ///
    /// # Panics
    /// If the value is not of the body that this was made for.
    pub fn of(&self, value: ValueId) -> &[usize] {
        &self.readers[self.starts[value.index()]..self.starts[value.index() + 1]]
    }
}
