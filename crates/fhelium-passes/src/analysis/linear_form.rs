//! A fused region as the straight-line program that the kernels run.

use fhelium_ir::state::{LinearFactor, LinearProgram, LinearStep, LinearTerm, LinearValue};
use fhelium_ir::{Basis, Body, Op, OpKind, Origin, Rns, Type, ValueId};

/// The program of a region that only sums, subtracts and multiplies, residue by residue.
///
/// Sums that nothing else reads are added up term by term, whichever way they were nested, since
/// sums of residues do not depend on their order; a value that is read several times stays in a
/// register in between.
///
/// # Errors
/// Why the region is no such program, in words: what it holds, or which limit it exceeds.
pub fn linear_program(region: &Body) -> Result<LinearProgram, String> {
    if region.ops().len() > MAX_OPS {
        return Err(format!(
            "the region holds {} operations, at most {MAX_OPS} fuse",
            region.ops().len()
        ));
    }
    check_shapes(region)?;
    let mut form = Form::of(region)?;
    form.emit()?;
    let parts = region.arguments().map(|value| parts(region.type_of(value)));
    LinearProgram::new(parts.collect(), form.steps)
        .map_err(|error| format!("the region has {error}"))
}

/// More than any program of the most steps is made of; bounds recursion.
const MAX_OPS: usize = 4 * LinearProgram::LIMITS.steps;

fn parts(ty: &Type) -> usize {
    match ty {
        Type::Ciphertext { state, .. } => state.as_ref().map_or(2, |state| state.parts),
        Type::Residues { parts, .. } => *parts,
        _ => 1,
    }
}

fn level(ty: &Type) -> Option<usize> {
    match ty {
        Type::Ciphertext { state, .. } => state.as_ref().map(|state| state.level),
        Type::Plaintext { state, .. } => state.as_ref().map(|state| state.level),
        Type::Residues {
            basis: Basis::Q { level },
            ..
        } => Some(*level),
        _ => None,
    }
}

fn items(ty: &Type) -> usize {
    ty.batch().iter().product()
}

/// Results are ciphertexts of one level and batch, operands ciphertexts and plaintexts of that
/// batch or single ones.
fn check_shapes(region: &Body) -> Result<(), String> {
    let mut results = region.results().iter().map(|&value| region.type_of(value));
    let Some(first) = results.next() else {
        return Err("the region yields nothing".to_owned());
    };
    if let Some(other) = results
        .chain([first])
        .find(|ty| !matches!(ty, Type::Ciphertext { .. }))
    {
        return Err(format!("the region yields {other}, expected ciphertexts"));
    }
    let uneven = |other: &&Type| level(other) != level(first) || items(other) != items(first);
    let mut results = region.results().iter().map(|&value| region.type_of(value));
    if let Some(other) = results.find(uneven) {
        return Err(format!(
            "the region yields {first} and {other}, expected one level and batch"
        ));
    }
    for argument in region.arguments() {
        let ty = region.type_of(argument);
        if !matches!(ty, Type::Ciphertext { .. } | Type::Plaintext { .. }) {
            return Err(format!(
                "the region takes {ty}, expected ciphertexts and plaintexts"
            ));
        }
        if items(ty) != 1 && items(ty) != items(first) {
            return Err(format!(
                "the region takes {ty} for results of batch {:?}, expected that batch or a single \
                 one",
                first.batch()
            ));
        }
        if level(ty) < level(first) {
            return Err(format!(
                "the region takes {ty} for results of a higher level"
            ));
        }
    }
    Ok(())
}

/// What a value of the region is.
#[derive(Clone, Copy, Debug)]
enum Node {
    /// An operand.
    Leaf(u8),
    /// The same polynomials as another value.
    Same(ValueId),
    /// `x + y` or `x - y`.
    Sum {
        x: ValueId,
        y: ValueId,
        minus: bool,
    },
    Negative(ValueId),
    Product {
        x: ValueId,
        y: ValueId,
    },
    /// `x y + z`.
    ProductSum {
        x: ValueId,
        y: ValueId,
        z: ValueId,
    },
    Multiple {
        x: ValueId,
        factor: i64,
    },
}

struct Form<'a> {
    region: &'a Body,
    nodes: Vec<Node>,
    /// Reads of each value that are still to come, results among them.
    reads: Vec<u32>,
    /// Registers that hold values which are read several times.
    held: Vec<Option<u8>>,
    free: Vec<u8>,
    steps: Vec<LinearStep>,
}

/// A term of a sum: a value that is an operand, held, or a product.
#[derive(Clone, Copy)]
struct Signed {
    value: ValueId,
    minus: bool,
}

/// A term that can be added as it is, and the values that it reads.
type ReadyTerm = (LinearTerm, [Option<ValueId>; 2]);

impl<'a> Form<'a> {
    fn of(region: &'a Body) -> Result<Self, String> {
        let mut nodes: Vec<Node> = Vec::with_capacity(region.values().len());
        for (place, value) in region.values().iter().enumerate() {
            let node = match value.origin {
                Origin::Argument(place) => Node::Leaf(u8::try_from(place).map_err(|_| {
                    format!("the region takes {} operands", region.arguments().len())
                })?),
                Origin::Result { op, .. } => node(&region.ops()[op])?,
            };
            debug_assert_eq!(nodes.len(), place);
            nodes.push(node);
        }
        let mut form = Form {
            region,
            reads: vec![0; nodes.len()],
            held: vec![None; nodes.len()],
            free: (0..LinearProgram::LIMITS.registers as u8).rev().collect(),
            steps: Vec::new(),
            nodes,
        };
        for &result in region.results() {
            let result = form.resolve(result);
            form.reads[result.index()] += 1;
        }
        // Values are read after they are defined, so that each is known to be read or not by then.
        for index in (0..form.nodes.len()).rev() {
            if form.reads[index] > 0 {
                for operand in operands(form.nodes[index]).into_iter().flatten() {
                    let operand = form.resolve(operand);
                    form.reads[operand.index()] += 1;
                }
            }
        }
        Ok(form)
    }

    /// The value that has the polynomials.
    fn resolve(&self, mut value: ValueId) -> ValueId {
        while let Node::Same(other) = self.nodes[value.index()] {
            value = other;
        }
        value
    }

    fn emit(&mut self) -> Result<(), String> {
        let results: Vec<ValueId> = self.region.results().to_vec();
        let results: Vec<ValueId> = results.iter().map(|&value| self.resolve(value)).collect();
        for index in 0..self.nodes.len() {
            let value = ValueId::from_index(index as u32);
            let given = || {
                (0u8..)
                    .zip(&results)
                    .filter(|(_, result)| **result == value)
            };
            let is_shared = self.reads[index] > 1 && !matches!(self.nodes[index], Node::Leaf(_));
            if matches!(self.nodes[index], Node::Same(_))
                || !(is_shared || given().next().is_some())
            {
                continue;
            }
            let register = self.evaluate(value)?;
            self.held[index] = Some(register);
            for (place, _) in given() {
                self.steps.push(LinearStep::Give(register, place));
                self.read(value);
            }
            if matches!(self.nodes[index], Node::Leaf(_)) && self.held[index].take().is_some() {
                self.free.push(register);
            }
        }
        Ok(())
    }

    /// Counts a read of a value, whose register is free after the last one.
    fn read(&mut self, value: ValueId) {
        let reads = &mut self.reads[value.index()];
        *reads = reads.saturating_sub(1);
        if *reads == 0
            && let Some(register) = self.held[value.index()].take()
        {
            self.free.push(register);
        }
    }

    fn register(&mut self) -> Result<u8, String> {
        self.free.pop().ok_or_else(|| {
            format!(
                "the region needs more than {} intermediate values at once",
                LinearProgram::LIMITS.registers
            )
        })
    }

    /// Where a value can be read without computing anything.
    fn ready(&self, value: ValueId) -> Option<LinearValue> {
        match self.nodes[value.index()] {
            Node::Leaf(place) => Some(LinearValue::Operand(place)),
            _ => self.held[value.index()].map(LinearValue::Register),
        }
    }

    /// The terms whose sum a value is.
    fn terms(&self, value: ValueId, minus: bool, is_root: bool, terms: &mut Vec<Signed>) {
        let value = self.resolve(value);
        let node = self.nodes[value.index()];
        if !is_root && (self.ready(value).is_some()) {
            terms.push(Signed { value, minus });
            return;
        }
        match node {
            Node::Sum { x, y, minus: of_y } => {
                self.terms(x, minus, false, terms);
                self.terms(y, minus != of_y, false, terms);
            }
            Node::Negative(x) => self.terms(x, !minus, false, terms),
            Node::ProductSum { z, .. } => {
                terms.push(Signed { value, minus });
                self.terms(z, minus, false, terms);
            }
            Node::Leaf(_) | Node::Same(_) | Node::Product { .. } | Node::Multiple { .. } => {
                terms.push(Signed { value, minus });
            }
        }
    }

    /// The two sides of a term that is a product: the value, and a factor that is a value or an
    /// integer.
    fn sides(&self, value: ValueId) -> Result<(ValueId, Result<ValueId, i64>), String> {
        let (x, y) = match self.nodes[value.index()] {
            Node::Product { x, y } | Node::ProductSum { x, y, .. } => (x, y),
            Node::Multiple { x, factor } => return Ok((self.resolve(x), Err(factor))),
            _ => return Err("a term of the region is no product".to_owned()),
        };
        let (x, y) = (self.resolve(x), self.resolve(y));
        let of = |value: ValueId| parts(self.region.type_of(value));
        match (of(x), of(y)) {
            (_, 1) => Ok((x, Ok(y))),
            (1, _) => Ok((y, Ok(x))),
            (x, y) => Err(format!(
                "rns.mul of {x} and {y} parts does not fuse: one side has one part"
            )),
        }
    }

    /// A term as one that can be added as it is, if it is.
    fn ready_term(&self, value: ValueId) -> Result<Option<ReadyTerm>, String> {
        if let Some(ready) = self.ready(value) {
            return Ok(Some((LinearTerm::of(ready), [Some(value), None])));
        }
        let (x, factor) = self.sides(value)?;
        let Some(ready) = self.ready(x) else {
            return Ok(None);
        };
        Ok(match factor {
            Err(integer) => {
                let term = LinearTerm::product(ready, LinearFactor::Integer(integer));
                Some((term, [Some(x), None]))
            }
            Ok(y) => self.ready(y).map(|factor| {
                let term = LinearTerm::product(ready, LinearFactor::Value(factor));
                (term, [Some(x), Some(y)])
            }),
        })
    }

    /// Computes a value into a register that nothing else uses.
    fn evaluate(&mut self, value: ValueId) -> Result<u8, String> {
        let mut terms = Vec::new();
        self.terms(value, false, true, &mut terms);
        // What needs computing comes first, while few registers are in use; else a plus sign.
        let mut first = None;
        for (place, term) in terms.iter().enumerate() {
            if self.ready_term(term.value)?.is_none() {
                first = Some(place);
                break;
            }
        }
        let plus = || terms.iter().position(|term| !term.minus);
        let first = terms.remove(first.or_else(plus).unwrap_or(0));
        let register = self.computed(first.value)?;
        if first.minus {
            self.steps.push(LinearStep::Negate(register));
        }
        for term in terms {
            let step = match term.minus {
                true => LinearStep::Subtract,
                false => LinearStep::Add,
            };
            match self.ready_term(term.value)? {
                Some((ready, reads)) => {
                    self.steps.push(step(register, ready));
                    reads.into_iter().flatten().for_each(|read| self.read(read));
                }
                None => {
                    let other = self.computed(term.value)?;
                    let ready = LinearTerm::of(LinearValue::Register(other));
                    self.steps.push(step(register, ready));
                    self.free.push(other);
                }
            }
        }
        Ok(register)
    }

    /// A term in a register that nothing else uses.
    fn computed(&mut self, value: ValueId) -> Result<u8, String> {
        if let Some((term, reads)) = self.ready_term(value)? {
            return self.taken(term, reads);
        }
        let (x, factor) = self.sides(value)?;
        let register = match self.ready(x) {
            Some(ready) => self.taken(LinearTerm::of(ready), [Some(x), None])?,
            None => self.evaluate(x)?,
        };
        match factor {
            Err(integer) => {
                let factor = LinearFactor::Integer(integer);
                self.steps.push(LinearStep::Multiply(register, factor));
            }
            Ok(y) => match self.ready(y) {
                Some(ready) => {
                    let factor = LinearFactor::Value(ready);
                    self.steps.push(LinearStep::Multiply(register, factor));
                    self.read(y);
                }
                None => {
                    let other = self.evaluate(y)?;
                    let factor = LinearFactor::Value(LinearValue::Register(other));
                    self.steps.push(LinearStep::Multiply(register, factor));
                    self.free.push(other);
                }
            },
        }
        Ok(register)
    }

    /// A ready term in a register: its value's own where that is not read again.
    fn taken(&mut self, term: LinearTerm, reads: [Option<ValueId>; 2]) -> Result<u8, String> {
        if let (LinearValue::Register(register), [Some(value), _]) = (term.value, reads)
            && self.reads[value.index()] == 1
        {
            self.held[value.index()] = None;
            if let Some(factor) = term.factor {
                self.steps.push(LinearStep::Multiply(register, factor));
            }
            reads.into_iter().flatten().for_each(|read| self.read(read));
            return Ok(register);
        }
        let register = self.register()?;
        self.steps.push(LinearStep::Set(register, term));
        reads.into_iter().flatten().for_each(|read| self.read(read));
        Ok(register)
    }
}

/// What an operation of a region gives.
fn node(op: &Op) -> Result<Node, String> {
    let refused = || {
        format!(
            "{} does not fuse: a region that runs holds sums, differences and products with one \
             part, residue by residue",
            op.kind()
        )
    };
    let OpKind::Rns(kind) = op.kind() else {
        return Err(refused());
    };
    Ok(match (kind, op.operands()) {
        (Rns::Residues | Rns::Ciphertext | Rns::DropLimbs, &[x]) => Node::Same(x),
        (Rns::Add, &[x, y]) => Node::Sum { x, y, minus: false },
        (Rns::Sub, &[x, y]) => Node::Sum { x, y, minus: true },
        (Rns::Neg, &[x]) => Node::Negative(x),
        (Rns::Mul, &[x, y]) => Node::Product { x, y },
        (Rns::MulAdd, &[x, y, z]) => Node::ProductSum { x, y, z },
        (Rns::MulInteger, &[x]) => Node::Multiple {
            x,
            factor: op.attributes().int("value").ok_or_else(refused)?,
        },
        _ => return Err(refused()),
    })
}

/// What a computed value reads.
fn operands(node: Node) -> [Option<ValueId>; 3] {
    match node {
        // A value that is the same as another was resolved by its readers.
        Node::Leaf(_) | Node::Same(_) => [None; 3],
        Node::Negative(x) | Node::Multiple { x, .. } => [Some(x), None, None],
        Node::Sum { x, y, .. } | Node::Product { x, y } => [Some(x), Some(y), None],
        Node::ProductSum { x, y, z } => [Some(x), Some(y), Some(z)],
    }
}
