//! The Program.

use crate::{Body, IrError, Level, OutputTree, Type, ValueId};
use fhelium_state::Chain;
use indexmap::IndexMap;
use std::convert::Infallible;
use std::sync::Arc;

/// A parameter of a Program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The parameter's name.
    pub name: Arc<str>,
    /// Its type.
    pub ty: Type,
}

/// Data that a Program names but does not hold: a captured array, a value or a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Material {
    /// What kind of data: the type of the values that refer to it.
    pub ty: Type,
    /// What it is, for people; may be empty.
    pub description: Arc<str>,
}

impl Material {
    /// A material.
    pub fn new(ty: Type, description: impl Into<Arc<str>>) -> Self {
        Material {
            ty,
            description: description.into(),
        }
    }
}

/// A Program's materials by symbol, in the order of their declaration.
pub type Materials = IndexMap<Arc<str>, Material>;

/// A function over encrypted and clear values, as typed operations.
///
/// A Program is always valid: every way of making one verifies it ([`Program::verify`] lists
/// what holds). It does not change; cloning it costs a few reference counts. To change one,
/// build another with [`Rewriter`](crate::Rewriter) or edit a copy with
/// [`Editor`](crate::Editor).
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    pub(crate) name: Arc<str>,
    pub(crate) chain: Option<Arc<Chain>>,
    pub(crate) inputs: Arc<[Input]>,
    pub(crate) materials: Arc<Materials>,
    pub(crate) body: Arc<Body>,
    pub(crate) outputs: Arc<OutputTree<usize>>,
}

impl Program {
    /// The function's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The modulus chain that levels and scales refer to.
    pub fn chain(&self) -> Option<&Arc<Chain>> {
        self.chain.as_ref()
    }

    /// The parameters; argument `i` of the body is input `i`.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// The declared materials.
    pub fn materials(&self) -> &Materials {
        &self.materials
    }

    /// The operations.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The returned values, in the order of the output tree's leaves.
    pub fn results(&self) -> &[ValueId] {
        &self.body.results
    }

    /// The structure of what is returned; leaf `i` is `results()[i]`.
    pub fn outputs(&self) -> &OutputTree<usize> {
        &self.outputs
    }

    /// The structure of what is returned, with values for leaves.
    pub fn output_values(&self) -> OutputTree<ValueId> {
        let tree = self
            .outputs
            .map(&mut |&place| Ok::<_, Infallible>(self.body.results[place]));
        match tree {
            Ok(tree) => tree,
            Err(never) => match never {},
        }
    }

    /// A value's type.
    ///
    /// # Panics
    /// If the value is another Program's and this one has no value of its number.
    pub fn type_of(&self, value: ValueId) -> &Type {
        self.body.type_of(value)
    }

    /// The level of the Program's operations: the lowest that any of them belongs to.
    ///
    /// A Program of tensor operations alone is at the `he` level.
    pub fn level(&self) -> Level {
        let levels = self.body.ops.iter().filter_map(|op| op.kind.level());
        levels.max().unwrap_or(Level::He)
    }

    /// Checks again what holds of every Program.
    pub fn verify(&self) -> Result<(), IrError> {
        crate::verify::verify(self)
    }
}
