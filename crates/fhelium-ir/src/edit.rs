//! Changing a Program in place.

use crate::{
    Attributes, Core, InferContext, IrError, Location, Material, Materials, Op, OpKind, Program,
    ProgramBuilder, Type, ValueId,
};
use indexmap::IndexSet;
use std::sync::Arc;

/// An operation of an [`Editor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpId(u32);

impl OpId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where operations are put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before every operation.
    Start,
    /// Right before an operation.
    Before(OpId),
    /// Right after an operation.
    After(OpId),
    /// After every operation.
    End,
}

struct Node {
    op: Op,
    previous: Option<OpId>,
    next: Option<OpId>,
    /// Ascends along the list.
    order: u64,
}

struct EditedValue {
    ty: Type,
    definition: Option<OpId>,
    /// Reading operations with the place of the operand.
    uses: IndexSet<(OpId, u32)>,
    /// The places among the results at which it is returned.
    returned: Vec<usize>,
}

/// Distance of the order numbers of neighbours before operations are put between them.
const GAP: u64 = 1 << 32;

/// A copy of a Program that changes in place: operations are put in, moved, given other operands
/// and taken out, with lists of uses at hand.
///
/// Values of the source keep their numbers. Every step takes constant time on average. Types are
/// those at the time of insertion; [`Editor::finish`] infers all of them anew and verifies.
pub struct Editor {
    source: Program,
    materials: Arc<Materials>,
    nodes: Vec<Option<Node>>,
    values: Vec<EditedValue>,
    results: Vec<ValueId>,
    first: Option<OpId>,
    last: Option<OpId>,
}

impl Editor {
    /// A copy of a Program.
    pub fn new(source: &Program) -> Self {
        let body = source.body();
        let mut editor = Editor {
            materials: source.materials.clone(),
            nodes: Vec::with_capacity(body.ops().len()),
            values: Vec::with_capacity(body.values().len()),
            results: source.results().to_vec(),
            first: None,
            last: None,
            source: source.clone(),
        };
        for value in body.values() {
            editor.values.push(EditedValue {
                ty: value.ty.clone(),
                definition: None,
                uses: IndexSet::new(),
                returned: Vec::new(),
            });
        }
        for op in body.ops() {
            editor.link(op.clone(), Place::End);
        }
        for (place, &result) in body.results().iter().enumerate() {
            editor.values[result.index()].returned.push(place);
        }
        editor
    }

    fn node(&self, op: OpId) -> Result<&Node, IrError> {
        self.nodes
            .get(op.index())
            .and_then(Option::as_ref)
            .ok_or_else(|| IrError::malformed(format!("operation {} was taken out", op.0)))
    }

    fn value(&self, value: ValueId) -> Result<&EditedValue, IrError> {
        self.values
            .get(value.index())
            .ok_or_else(|| IrError::malformed(format!("value {} is not defined", value.index())))
    }

    /// The operations in order.
    pub fn ops(&self) -> Vec<OpId> {
        let next = |&op: &OpId| self.nodes[op.index()].as_ref().and_then(|node| node.next);
        std::iter::successors(self.first, next).collect()
    }

    /// An operation.
    pub fn op(&self, op: OpId) -> Result<&Op, IrError> {
        Ok(&self.node(op)?.op)
    }

    /// A value's type.
    pub fn type_of(&self, value: ValueId) -> Result<&Type, IrError> {
        Ok(&self.value(value)?.ty)
    }

    /// The operation that defines a value; `None` for an input.
    pub fn definition(&self, value: ValueId) -> Result<Option<OpId>, IrError> {
        Ok(self.value(value)?.definition)
    }

    /// The operations that read a value with the operand's place, in no particular order.
    pub fn uses(&self, value: ValueId) -> Result<Vec<(OpId, usize)>, IrError> {
        let uses = self.value(value)?.uses.iter();
        Ok(uses.map(|&(op, place)| (op, place as usize)).collect())
    }

    /// Whether nothing reads or returns a value.
    pub fn is_unused(&self, value: ValueId) -> Result<bool, IrError> {
        let value = self.value(value)?;
        Ok(value.uses.is_empty() && value.returned.is_empty())
    }

    /// Whether an operation stands before another.
    pub fn precedes(&self, earlier: OpId, later: OpId) -> Result<bool, IrError> {
        Ok(self.node(earlier)?.order < self.node(later)?.order)
    }

    /// Whether a value is defined when an operation runs.
    pub fn is_defined_before(&self, value: ValueId, op: OpId) -> Result<bool, IrError> {
        match self.value(value)?.definition {
            Some(definition) => self.precedes(definition, op),
            None => Ok(true),
        }
    }

    /// Declares a material.
    pub fn material(
        &mut self,
        symbol: impl Into<Arc<str>>,
        material: Material,
    ) -> Result<(), IrError> {
        let symbol = symbol.into();
        if self.materials.contains_key(&symbol) {
            return Err(IrError::malformed(format!(
                "material {}: the symbol is taken",
                crate::text::Symbol(&symbol)
            )));
        }
        Arc::make_mut(&mut self.materials).insert(symbol, material);
        Ok(())
    }

    /// Puts in a reference to a material.
    pub fn reference(
        &mut self,
        place: Place,
        symbol: impl Into<Arc<str>>,
    ) -> Result<ValueId, IrError> {
        let mut attributes = Attributes::new();
        attributes.set("symbol", crate::Attribute::Symbol(symbol.into()));
        let results = self.insert(place, Core::Material, &[], &attributes, None)?;
        Ok(results[0])
    }

    /// Puts in an operation and gives its results.
    pub fn insert(
        &mut self,
        place: Place,
        kind: impl Into<OpKind>,
        operands: &[ValueId],
        attributes: &Attributes,
        location: Option<Location>,
    ) -> Result<Vec<ValueId>, IrError> {
        let kind = kind.into();
        if let Place::Before(anchor) | Place::After(anchor) = place {
            self.node(anchor)?;
        }
        let types: Vec<&Type> = operands
            .iter()
            .map(|&operand| self.type_of(operand))
            .collect::<Result<_, _>>()?;
        let context = InferContext {
            chain: self.source.chain.as_deref(),
            materials: Some(&self.materials),
        };
        let resolved = kind
            .resolve(&context, &types, attributes, None)
            .map_err(|error| IrError::from(error).at(kind.name(), location.as_ref()))?;
        let mut results = Vec::with_capacity(resolved.results.len());
        for ty in resolved.results {
            results.push(ValueId(self.values.len() as u32));
            self.values.push(EditedValue {
                ty,
                definition: None,
                uses: IndexSet::new(),
                returned: Vec::new(),
            });
        }
        let op = Op {
            kind,
            operands: operands.into(),
            results: results.as_slice().into(),
            attributes: resolved.attributes,
            location,
            region: None,
        };
        self.link(op, place);
        Ok(results)
    }

    /// Adds a node whose operands and results are known to exist.
    fn link(&mut self, op: Op, place: Place) -> OpId {
        let id = OpId(self.nodes.len() as u32);
        for (index, operand) in op.operands.iter().enumerate() {
            self.values[operand.index()].uses.insert((id, index as u32));
        }
        for result in &op.results {
            self.values[result.index()].definition = Some(id);
        }
        self.nodes.push(Some(Node {
            op,
            previous: None,
            next: None,
            order: 0,
        }));
        self.attach(id, place);
        id
    }

    fn live(&mut self, id: OpId) -> Option<&mut Node> {
        self.nodes.get_mut(id.index()).and_then(Option::as_mut)
    }

    /// Puts a node that is in no list at its place.
    fn attach(&mut self, id: OpId, place: Place) {
        let of = |editor: &Editor, id: OpId| {
            editor.nodes[id.index()]
                .as_ref()
                .map(|node| (node.previous, node.next))
        };
        let (previous, next) = match place {
            Place::Start => (None, self.first),
            Place::End => (self.last, None),
            Place::Before(anchor) => (of(self, anchor).and_then(|links| links.0), Some(anchor)),
            Place::After(anchor) => (Some(anchor), of(self, anchor).and_then(|links| links.1)),
        };
        let order = |editor: &mut Editor, id: OpId| editor.live(id).map_or(0, |node| node.order);
        let low = previous.map_or(0, |id| order(self, id));
        let high = next.map(|id| order(self, id));
        if let Some(node) = self.live(id) {
            node.previous = previous;
            node.next = next;
            node.order = match high {
                None => low + GAP,
                Some(high) => low + (high - low) / 2,
            };
        }
        match previous.and_then(|id| self.live(id)) {
            Some(node) => node.next = Some(id),
            None => self.first = Some(id),
        }
        match next.and_then(|id| self.live(id)) {
            Some(node) => node.previous = Some(id),
            None => self.last = Some(id),
        }
        if high.is_some_and(|high| high - low < 2) {
            self.renumber();
        }
    }

    fn renumber(&mut self) {
        let mut order = 0;
        for id in self.ops() {
            order += GAP;
            if let Some(node) = self.live(id) {
                node.order = order;
            }
        }
    }

    fn detach(&mut self, id: OpId) {
        let Some((previous, next)) = self.live(id).map(|node| (node.previous, node.next)) else {
            return;
        };
        match previous.and_then(|id| self.live(id)) {
            Some(node) => node.next = next,
            None => self.first = next,
        }
        match next.and_then(|id| self.live(id)) {
            Some(node) => node.previous = previous,
            None => self.last = previous,
        }
    }

    /// Moves an operation. That it stays after its operands and before its uses is checked by
    /// [`Editor::finish`].
    pub fn shift(&mut self, op: OpId, place: Place) -> Result<(), IrError> {
        self.node(op)?;
        if let Place::Before(anchor) | Place::After(anchor) = place {
            self.node(anchor)?;
            if anchor == op {
                return Ok(());
            }
        }
        self.detach(op);
        self.attach(op, place);
        Ok(())
    }

    /// Gives an operation another operand.
    pub fn set_operand(&mut self, op: OpId, place: usize, new: ValueId) -> Result<(), IrError> {
        self.value(new)?;
        let node = self.node(op)?;
        let Some(&old) = node.op.operands.get(place) else {
            return Err(
                IrError::malformed(format!("operand {place} does not exist"))
                    .at(node.op.kind.name(), node.op.location()),
            );
        };
        self.values[old.index()]
            .uses
            .swap_remove(&(op, place as u32));
        self.values[new.index()].uses.insert((op, place as u32));
        if let Some(node) = self.live(op) {
            node.op.operands[place] = new;
        }
        Ok(())
    }

    /// Lets every operation that reads one value, and the outputs, read another.
    pub fn replace_uses(&mut self, old: ValueId, new: ValueId) -> Result<(), IrError> {
        self.value(new)?;
        for (op, place) in self.uses(old)? {
            self.set_operand(op, place, new)?;
        }
        let returned = std::mem::take(&mut self.values[old.index()].returned);
        for &place in &returned {
            self.results[place] = new;
        }
        self.values[new.index()].returned.extend(returned);
        Ok(())
    }

    /// Takes out an operation whose results nothing uses.
    pub fn erase(&mut self, op: OpId) -> Result<(), IrError> {
        let node = self.node(op)?;
        for &result in &node.op.results {
            if !self.is_unused(result)? {
                return Err(IrError::malformed(
                    "the operation cannot be taken out: a result is still used",
                )
                .at(node.op.kind.name(), node.op.location()));
            }
        }
        self.detach(op);
        if let Some(node) = self.nodes[op.index()].take() {
            for (place, operand) in node.op.operands.iter().enumerate() {
                self.values[operand.index()]
                    .uses
                    .swap_remove(&(op, place as u32));
            }
        }
        Ok(())
    }

    /// The changed Program: types inferred anew, verified, values renumbered in order.
    pub fn finish(self) -> Result<Program, IrError> {
        let mut builder = ProgramBuilder::without_inputs_of(&self.source);
        let declared = builder.materials().len();
        for (symbol, material) in self.materials.iter().skip(declared) {
            builder.material(symbol.clone(), material.clone())?;
        }
        let mut map = vec![None; self.values.len()];
        for (place, input) in self.source.inputs().iter().enumerate() {
            map[place] = Some(builder.input(input.name.clone(), input.ty.clone())?);
        }
        let find = |map: &[Option<ValueId>], old: ValueId, op: Option<&Op>| {
            map[old.index()].ok_or_else(|| {
                let error = IrError::malformed(format!(
                    "value {} is used before it is defined",
                    old.index()
                ));
                match op {
                    Some(op) => error.at(op.kind.name(), op.location()),
                    None => error,
                }
            })
        };
        for id in self.ops() {
            let op = &self.node(id)?.op;
            let operands = op.operands.iter().map(|&old| find(&map, old, Some(op)));
            let operands: Vec<ValueId> = operands.collect::<Result<_, _>>()?;
            let results = builder.op_with_region(
                op.kind,
                &operands,
                &op.attributes,
                op.location.clone(),
                op.region.clone(),
            )?;
            for (&old, &new) in op.results.iter().zip(results) {
                map[old.index()] = Some(new);
            }
        }
        let outputs = self
            .source
            .outputs()
            .map(&mut |&place| find(&map, self.results[place], None))?;
        builder.finish(&outputs)
    }
}
