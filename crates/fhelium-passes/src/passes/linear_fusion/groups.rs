//! Which operations fuse.

use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};

use fhelium_ir::state::LinearProgram;
use fhelium_ir::{Body, IrError, Op, OpKind, Origin, Program, Rns, Type, Uses, ValueId};

use crate::analysis::{linear_program, value_bytes};
use crate::passes::lower_to_rns::residue_operation;
use crate::plan::constant_operations;
use crate::target::Work;

use super::LinearFusion;
use super::region::region;

/// Operations that could run as one.
pub(super) struct Group {
    /// Their places, ascending.
    pub members: Vec<usize>,
    /// What they read of others, in the order of first use.
    pub operands: Vec<ValueId>,
    /// What others read of them, or is returned, in order.
    pub results: Vec<ValueId>,
    /// The expected time one by one.
    pub separate: f64,
    /// The expected time as one.
    pub fused: f64,
}

impl Group {
    /// Whether running as one is cheaper.
    pub fn fuses(&self) -> bool {
        self.fused < self.separate
    }

    fn time(&self) -> f64 {
        self.fused.min(self.separate)
    }
}

/// The groups of a Program.
pub(super) struct Groups {
    /// Those of two operations or more, by first operation.
    pub groups: Vec<Group>,
    /// Operations that could be in one.
    pub candidates: usize,
}

/// More than the steps of a program are left for what a group gives.
const MAX_MEMBERS: usize = LinearProgram::LIMITS.steps - 32;

/// The nodes whose order a merge may change; more, and it is left.
const MAX_REORDERED: usize = 256;

impl Groups {
    /// Finds them, in time linear in the Program's size.
    pub fn find(program: &Program, fusion: &LinearFusion) -> Result<Groups, IrError> {
        let body = program.body();
        let mut returned = vec![false; body.values().len()];
        for result in body.results() {
            returned[result.index()] = true;
        }
        let kinds = kinds(program, fusion);
        let mut finder = Finder {
            program,
            body,
            fusion,
            uses: body.uses(),
            returned,
            node_of: vec![usize::MAX; body.ops().len()],
            nodes: Vec::new(),
            kinds,
        };
        finder.cones()?;
        finder.order();
        finder.merge_neighbours()?;
        let candidates = finder.kinds.iter().flatten().count();
        let mut groups: Vec<Group> = finder
            .nodes
            .into_iter()
            .filter_map(|node| node.group)
            .filter(|group| group.members.len() > 1)
            .collect();
        groups.sort_by_key(|group| group.members[0]);
        Ok(Groups { groups, candidates })
    }
}

/// For each operation that may fuse a number that it has in common with those that it may fuse
/// with: one level, one batch, and all or none of them computed once for many calls.
fn kinds(program: &Program, fusion: &LinearFusion) -> Vec<Option<usize>> {
    let body = program.body();
    let constant = constant_operations(body);
    let mut numbers: HashMap<(usize, &[usize], bool), usize> = HashMap::new();
    let ops = body.ops().iter().zip(constant);
    ops.map(|(op, constant)| {
        let (level, batch) = fusable(op, body, fusion)?;
        let next = numbers.len();
        Some(*numbers.entry((level, batch, constant)).or_insert(next))
    })
    .collect()
}

/// The level and batch of an operation that may fuse.
fn fusable<'a>(op: &Op, body: &'a Body, fusion: &LinearFusion) -> Option<(usize, &'a [usize])> {
    let OpKind::Ckks(kind) = op.kind() else {
        return None;
    };
    if !op.kind().def().dependence.is_elementwise() || fusion.keep.contains(&op.kind()) {
        return None;
    }
    residue_operation(kind)?;
    let [result] = *op.results() else {
        return None;
    };
    let Type::Ciphertext {
        batch,
        state: Some(state),
    } = body.type_of(result)
    else {
        return None;
    };
    let items = |batch: &[usize]| batch.iter().product::<usize>();
    let operands = op.operands().iter().map(|&value| body.type_of(value));
    let fits = |ty: &Type| items(ty.batch()) == items(batch) || items(ty.batch()) == 1;
    (items(batch) > 0 && operands.into_iter().all(fits)).then_some((state.level, batch))
}

/// An operation, or several that run as one.
struct Node {
    /// Greater than those of all that it depends on.
    order: usize,
    kind: Option<usize>,
    /// What it holds; none where it was merged into another.
    group: Option<Group>,
}

struct Finder<'a> {
    program: &'a Program,
    body: &'a Body,
    fusion: &'a LinearFusion,
    uses: Uses,
    returned: Vec<bool>,
    /// By place, as last known: [`Finder::node`] follows merges.
    node_of: Vec<usize>,
    nodes: Vec<Node>,
    kinds: Vec<Option<usize>>,
}

impl Finder<'_> {
    fn source(&self, value: ValueId) -> Option<usize> {
        match self.body.values()[value.index()].origin {
            Origin::Argument(_) => None,
            Origin::Result { op, .. } => Some(op),
        }
    }

    /// Groups of an operation and all that it alone reads, directly or not: nothing outside stands
    /// between such a group's operations.
    fn cones(&mut self) -> Result<(), IrError> {
        for root in (0..self.body.ops().len()).rev() {
            if self.node_of[root] != usize::MAX {
                continue;
            }
            let mut members = match self.kinds[root] {
                Some(kind) => self.cone(root, kind),
                None => vec![root],
            };
            if members.len() > 1 && !self.runs(&members)? {
                members = vec![root];
            }
            let number = self.nodes.len();
            for &place in &members {
                self.node_of[place] = number;
            }
            self.nodes.push(Node {
                order: 0,
                kind: self.kinds[root],
                group: Some(self.group(members)),
            });
        }
        Ok(())
    }

    fn cone(&self, root: usize, kind: usize) -> Vec<usize> {
        let ops = self.body.ops();
        let mut members = BTreeSet::from([root]);
        // How often the members read each value, and values of others among these.
        let mut reads: HashMap<ValueId, usize> = HashMap::new();
        let mut outside: HashSet<ValueId> = HashSet::new();
        let mut next = BinaryHeap::new();
        let mut add =
            |place: usize, next: &mut BinaryHeap<usize>, outside: &mut HashSet<ValueId>| {
                for &operand in ops[place].operands() {
                    *reads.entry(operand).or_default() += 1;
                    outside.insert(operand);
                    if let Some(source) = self.source(operand)
                        && self.kinds[source] == Some(kind)
                        && self.node_of[source] == usize::MAX
                        && !self.returned[operand.index()]
                        && reads[&operand] == self.uses.of(operand).len()
                    {
                        next.push(source);
                    }
                }
            };
        add(root, &mut next, &mut outside);
        // The last first, so that all that may read an operation was looked at before it.
        while let Some(place) = next.pop() {
            let op = &ops[place];
            let mut then = outside.clone();
            then.remove(&op.results()[0]);
            then.extend(op.operands());
            if then.len() > self.fusion.max_operands || members.len() == MAX_MEMBERS {
                continue;
            }
            members.insert(place);
            outside.remove(&op.results()[0]);
            add(place, &mut next, &mut outside);
        }
        members.into_iter().collect()
    }

    /// What a group reads, gives and costs.
    fn group(&self, members: Vec<usize>) -> Group {
        let ops = self.body.ops();
        let inside = |place: usize| members.binary_search(&place).is_ok();
        let mut operands: Vec<ValueId> = Vec::new();
        let mut seen = HashSet::new();
        let mut results = Vec::new();
        for &place in &members {
            for &operand in ops[place].operands() {
                if !self.source(operand).is_some_and(inside) && seen.insert(operand) {
                    operands.push(operand);
                }
            }
            for &result in ops[place].results() {
                let readers = self.uses.of(result);
                if self.returned[result.index()]
                    || readers.is_empty()
                    || readers.iter().any(|&reader| !inside(reader))
                {
                    results.push(result);
                }
            }
        }
        let (separate, fused) = self.times(&members, &operands, &results);
        Group {
            members,
            operands,
            results,
            separate,
            fused,
        }
    }

    /// Residues of a value by the primes of a level.
    fn words(&self, value: ValueId, limbs: usize) -> u64 {
        let (ty, chain) = (self.body.type_of(value), self.program.chain());
        let own = match ty {
            Type::Ciphertext {
                state: Some(state), ..
            } => state.level + 1,
            Type::Plaintext {
                state: Some(state), ..
            } => state.level + 1,
            _ => return 0,
        };
        let bytes = value_bytes(ty, chain.map(AsRef::as_ref));
        bytes / size_of::<u64>() as u64 / own as u64 * limbs.min(own) as u64
    }

    /// The expected times of operations one by one and as one.
    fn times(&self, members: &[usize], operands: &[ValueId], results: &[ValueId]) -> (f64, f64) {
        let rates = &self.fusion.rates;
        let limbs = match results.first().map(|&value| self.body.type_of(value)) {
            Some(Type::Ciphertext {
                state: Some(state), ..
            }) => state.level + 1,
            _ => return (0.0, 0.0),
        };
        let moved =
            |values: &[ValueId]| -> u64 { values.iter().map(|&v| self.words(v, limbs)).sum() };
        let (mut separate, mut all) = (0.0, Work::default());
        for &place in members {
            let op = &self.body.ops()[place];
            let made = moved(op.results());
            let mut work = Work {
                words: made + moved(op.operands()),
                ..Work::default()
            };
            match op.kind() {
                OpKind::Ckks(kind) => match residue_operation(kind) {
                    Some(Rns::Mul | Rns::MulInteger) => work.products = made,
                    Some(Rns::Add | Rns::Sub | Rns::Neg) => work.sums = made,
                    _ => {}
                },
                _ => return (0.0, 0.0),
            }
            separate += rates.time(work);
            all.sums += work.sums;
            all.products += work.products;
        }
        all.words = moved(operands) + moved(results);
        (separate, rates.time(all))
    }

    /// Whether operations have a form that the kernels run.
    fn runs(&self, members: &[usize]) -> Result<bool, IrError> {
        let group = self.group(members.to_vec());
        let limits = LinearProgram::LIMITS;
        if group.operands.len() > self.fusion.max_operands || group.results.len() > limits.results {
            return Ok(false);
        }
        let region = region(
            self.program,
            &group.members,
            &group.operands,
            &group.results,
        )?;
        Ok(linear_program(&region).is_ok())
    }

    fn node(&self, place: usize) -> usize {
        self.node_of[place]
    }

    fn members(&self, node: usize) -> &[usize] {
        self.nodes[node]
            .group
            .as_ref()
            .map_or(&[], |group| &group.members)
    }

    /// Numbers nodes so that each comes after those that it depends on.
    fn order(&mut self) {
        for place in 0..self.body.ops().len() {
            let node = self.node(place);
            // What a node reads was defined before its last operation.
            if self.members(node).last() != Some(&place) {
                continue;
            }
            let read = self
                .members(node)
                .iter()
                .flat_map(|&m| self.body.ops()[m].operands());
            let before = read
                .filter_map(|&operand| self.source(operand))
                .map(|source| self.node(source))
                .filter(|&source| source != node)
                .map(|source| self.nodes[source].order + 1);
            self.nodes[node].order = before.max().unwrap_or(0);
        }
    }

    /// Merges groups that share an operand or hand a value on.
    fn merge_neighbours(&mut self) -> Result<(), IrError> {
        for value in 0..self.body.values().len() {
            let value = ValueId::from_index(value as u32);
            let source = self.source(value);
            let readers = self.uses.of(value).to_vec();
            let mut last: Option<usize> = None;
            for place in source.into_iter().chain(readers) {
                let node = self.node(place);
                if self.nodes[node].kind.is_none() || last == Some(node) {
                    continue;
                }
                last = match last {
                    Some(other) => match self.merge(other, node)? {
                        true => Some(other),
                        false => Some(node),
                    },
                    None => Some(node),
                };
            }
        }
        Ok(())
    }

    /// Merges a node into another where both together are cheaper and no operation stands between
    /// them; whether it was done.
    fn merge(&mut self, into: usize, from: usize) -> Result<bool, IrError> {
        if self.nodes[into].kind != self.nodes[from].kind {
            return Ok(false);
        }
        let (Some(one), Some(other)) = (&self.nodes[into].group, &self.nodes[from].group) else {
            return Ok(false);
        };
        let limits = LinearProgram::LIMITS;
        if one.members.len() + other.members.len() > MAX_MEMBERS {
            return Ok(false);
        }
        let mut members = [&one.members[..], &other.members[..]].concat();
        members.sort_unstable();
        let time = one.time() + other.time();
        let merged = self.group(members);
        if merged.operands.len() > self.fusion.max_operands
            || merged.results.len() > limits.results
            || merged.fused >= time
        {
            return Ok(false);
        }
        let Some(order) = self.reordered(&merged, into, from) else {
            return Ok(false);
        };
        if !self.runs(&merged.members)? {
            return Ok(false);
        }
        for (node, order) in order {
            self.nodes[node].order = order;
        }
        for &place in &merged.members {
            self.node_of[place] = into;
        }
        self.nodes[into].group = Some(merged);
        self.nodes[from].group = None;
        self.nodes[from].kind = None;
        Ok(true)
    }

    /// The numbers that nodes get when two of them become one; `None` where one would depend on
    /// itself, or where too many are concerned.
    fn reordered(&self, merged: &Group, into: usize, from: usize) -> Option<HashMap<usize, usize>> {
        let start = self.nodes[into].order.max(self.nodes[from].order);
        let mut order = HashMap::from([(into, start)]);
        let mut open = vec![into];
        while let Some(node) = open.pop() {
            let after = order[&node] + 1;
            let members = if node == into {
                &merged.members
            } else {
                self.members(node)
            };
            let results = members
                .iter()
                .flat_map(|&place| self.body.ops()[place].results());
            for &reader in results.flat_map(|&result| self.uses.of(result)) {
                let reader = self.node(reader);
                let is_merged = reader == into || reader == from;
                if reader == node || (is_merged && node == into) {
                    continue;
                }
                if is_merged {
                    return None;
                }
                let known = order.get(&reader).copied();
                if known.unwrap_or(self.nodes[reader].order) < after {
                    if order.len() > MAX_REORDERED {
                        return None;
                    }
                    order.insert(reader, after);
                    open.push(reader);
                }
            }
        }
        Some(order)
    }
}
