//! The structure of what a Program returns.

use crate::Real;

/// A constant that a Program returns as it is, or the key of a dict.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Literal {
    /// Python's `None`.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// A float.
    Float(Real),
    /// A complex number: real part, imaginary part.
    Complex(Real, Real),
    /// A string.
    Str(String),
}

/// What a Program returns: values and constants in nested tuples, lists and dicts.
///
/// In a [`Program`](crate::Program) a leaf holds the place of its value in the list of results;
/// a builder takes a tree whose leaves are values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputTree<Leaf> {
    /// A computed value.
    Value(Leaf),
    /// A constant.
    Literal(Literal),
    /// A tuple.
    Tuple(Vec<OutputTree<Leaf>>),
    /// A list.
    List(Vec<OutputTree<Leaf>>),
    /// A dict in insertion order.
    Dict(Vec<(Literal, OutputTree<Leaf>)>),
}

/// The deepest nesting of an output tree, so that recursion over one is bounded.
pub(crate) const MAX_DEPTH: usize = 64;

impl<Leaf> OutputTree<Leaf> {
    /// The tree with every value leaf replaced, left to right.
    pub fn map<Other, Error>(
        &self,
        replace: &mut impl FnMut(&Leaf) -> Result<Other, Error>,
    ) -> Result<OutputTree<Other>, Error> {
        Ok(match self {
            OutputTree::Value(leaf) => OutputTree::Value(replace(leaf)?),
            OutputTree::Literal(literal) => OutputTree::Literal(literal.clone()),
            OutputTree::Tuple(items) => OutputTree::Tuple(map_all(items, replace)?),
            OutputTree::List(items) => OutputTree::List(map_all(items, replace)?),
            OutputTree::Dict(items) => {
                let items = items
                    .iter()
                    .map(|(key, item)| Ok((key.clone(), item.map(replace)?)));
                OutputTree::Dict(items.collect::<Result<_, Error>>()?)
            }
        })
    }

    /// Whether containers nest deeper than `depth`.
    pub(crate) fn is_deeper_than(&self, depth: usize) -> bool {
        let deeper = |item: &OutputTree<Leaf>| depth == 0 || item.is_deeper_than(depth - 1);
        match self {
            OutputTree::Value(_) | OutputTree::Literal(_) => false,
            OutputTree::Tuple(items) | OutputTree::List(items) => items.iter().any(deeper),
            OutputTree::Dict(items) => items.iter().any(|(_, item)| deeper(item)),
        }
    }
}

fn map_all<Leaf, Other, Error>(
    items: &[OutputTree<Leaf>],
    replace: &mut impl FnMut(&Leaf) -> Result<Other, Error>,
) -> Result<Vec<OutputTree<Other>>, Error> {
    items.iter().map(|item| item.map(replace)).collect()
}
