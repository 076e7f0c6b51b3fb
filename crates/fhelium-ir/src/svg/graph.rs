//! What the picture shows: boxes and how many values flow between them.

use crate::{Dialect, Op, OpKind, Program, Type, Uses, ValueId};
use fhelium_state::Scale;
use indexmap::IndexMap;
use std::fmt::Write;

/// Up to this many operations each is a box of its own.
const SINGLE: usize = 60;
/// More boxes than this are too many to look at.
const MOST: usize = 300;

/// What a box stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Input,
    Operation(Dialect),
    Output,
}

/// A box.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub role: Role,
    /// The operation's or input's name.
    pub title: String,
    /// How many operations it stands for.
    pub count: usize,
    /// Attributes and type.
    pub details: Vec<String>,
    /// The level of the result.
    pub level: Option<usize>,
    /// What shows when the pointer rests on it.
    pub tooltip: String,
    /// The row.
    pub layer: usize,
}

pub(super) struct Graph {
    pub nodes: Vec<Node>,
    /// From box to box, with the number of values.
    pub edges: IndexMap<(usize, usize), usize>,
}

/// An operation, or several that make one sum: what becomes a box, or part of one.
struct Unit {
    /// Places of the operations; the last gives the result.
    members: Vec<usize>,
    layer: usize,
}

/// Operations by the unit that they are part of, and the units.
struct Units {
    of_op: Vec<usize>,
    units: Vec<Unit>,
}

fn is_sum(kind: OpKind) -> bool {
    kind.name().ends_with(".add")
}

impl Units {
    fn new(program: &Program, uses: &Uses, fold_sums: bool) -> Self {
        let ops = program.body().ops();
        let returned: std::collections::HashSet<_> = program.results().iter().collect();
        // The operation whose box an operation is drawn in: that of the sum which takes it up.
        let mut head: Vec<usize> = (0..ops.len()).collect();
        for place in (0..ops.len()).rev() {
            let op = &ops[place];
            if let ([result], true) = (op.results(), fold_sums && is_sum(op.kind()))
                && let [user] = *uses.of(*result)
                && ops[user].kind() == op.kind()
                && !returned.contains(result)
            {
                head[place] = head[user];
            }
        }
        let mut of_op = vec![0; ops.len()];
        let mut unit_of_head = IndexMap::new();
        let mut units: Vec<Unit> = Vec::new();
        for place in 0..ops.len() {
            let unit = *unit_of_head.entry(head[place]).or_insert_with(|| {
                units.push(Unit {
                    members: Vec::new(),
                    layer: 1,
                });
                units.len() - 1
            });
            of_op[place] = unit;
            units[unit].members.push(place);
        }
        let mut units = Units { of_op, units };
        units.assign_layers(program, uses);
        units
    }

    /// The unit that defines a value.
    fn of_value(&self, program: &Program, value: ValueId) -> Option<usize> {
        match program.body().values()[value.index()].origin {
            crate::Origin::Argument(_) => None,
            crate::Origin::Result { op, .. } => Some(self.of_op[op]),
        }
    }

    /// As far down as uses allow, so that what is used together stands together; what nothing
    /// uses, right below its operands.
    fn assign_layers(&mut self, program: &Program, uses: &Uses) {
        let ops = program.body().ops();
        // A unit's operands are complete before its last member, which is the one others use.
        for (place, op) in ops.iter().enumerate() {
            let unit = self.of_op[place];
            for &operand in op.operands() {
                if let Some(above) = self.of_value(program, operand)
                    && above != unit
                {
                    let least = self.units[above].layer + 1;
                    self.units[unit].layer = self.units[unit].layer.max(least);
                }
            }
        }
        for place in (0..ops.len()).rev() {
            let unit = self.of_op[place];
            if self.units[unit].members.last() != Some(&place) {
                continue;
            }
            let results = ops[place].results().iter();
            let users = results.flat_map(|&result| uses.of(result));
            if let Some(first) = users.map(|&user| self.units[self.of_op[user]].layer).min() {
                self.units[unit].layer = first - 1;
            }
        }
    }
}

/// Units with equal keys are drawn as one box.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    layer: usize,
    kind: OpKind,
    members: usize,
    ty: String,
    /// Tells boxes apart that are to stay single.
    single: usize,
}

impl Graph {
    pub(super) fn new(program: &Program) -> Self {
        let uses = program.body().uses();
        let ops = program.body().ops();
        let single = ops.len() <= SINGLE;
        let units = Units::new(program, &uses, !single);
        let boxes = |band: usize| {
            let mut boxes: IndexMap<Key, Vec<usize>> = IndexMap::new();
            for (place, unit) in units.units.iter().enumerate() {
                let op = &ops[unit.members[unit.members.len() - 1]];
                let banded = band > 1;
                let ty = op.results().first().map(|&result| program.type_of(result));
                let key = Key {
                    layer: 1 + (unit.layer - 1) / band,
                    kind: op.kind(),
                    members: if banded { 0 } else { unit.members.len() },
                    ty: ty
                        .filter(|_| !banded)
                        .map(Type::to_string)
                        .unwrap_or_default(),
                    single: if single { place } else { 0 },
                };
                boxes.entry(key).or_default().push(place);
            }
            boxes
        };
        let mut band = 1;
        let mut groups = boxes(band);
        // Doubling ends: one band of all layers has no more boxes than there are kinds.
        while groups.len() > MOST && band < ops.len() {
            band *= 2;
            groups = boxes(band);
        }
        let mut graph = Graph {
            nodes: Vec::new(),
            edges: IndexMap::new(),
        };
        for input in program.inputs() {
            graph.nodes.push(Node {
                role: Role::Input,
                title: input.name.to_string(),
                count: 1,
                details: vec![brief(&input.ty)],
                level: level(&input.ty),
                tooltip: format!("input {}: {}", input.name, input.ty),
                layer: 0,
            });
        }
        let mut box_of_unit = vec![0; units.units.len()];
        for (key, members) in &groups {
            for &unit in members {
                box_of_unit[unit] = graph.nodes.len();
            }
            let members = members.iter().flat_map(|&unit| &units.units[unit].members);
            let members: Vec<&Op> = members.map(|&place| &ops[place]).collect();
            graph.nodes.push(node(program, &members, key.layer));
        }
        let bottom = graph.nodes.iter().map(|node| node.layer).max().unwrap_or(0) + 1;
        let output = graph.nodes.len();
        graph.nodes.push(Node {
            role: Role::Output,
            title: "return".to_owned(),
            count: 1,
            details: Vec::new(),
            level: None,
            tooltip: format!("{} values are returned", program.results().len()),
            layer: bottom,
        });
        let box_of = |value: ValueId| match units.of_value(program, value) {
            Some(unit) => box_of_unit[unit],
            None => value.index(),
        };
        for (place, op) in ops.iter().enumerate() {
            let to = box_of_unit[units.of_op[place]];
            for &operand in op.operands() {
                graph.connect(box_of(operand), to);
            }
        }
        for &result in program.results() {
            graph.connect(box_of(result), output);
        }
        graph
    }

    /// Within a row, as in a sum or a band of layers, nothing is drawn.
    fn connect(&mut self, from: usize, to: usize) {
        if self.nodes[from].layer < self.nodes[to].layer {
            *self.edges.entry((from, to)).or_default() += 1;
        }
    }
}

/// The box of these operations of one kind.
fn node(program: &Program, members: &[&Op], layer: usize) -> Node {
    let last = members[members.len() - 1];
    let def = last.kind().def();
    let types: Vec<&Type> = last
        .results()
        .iter()
        .map(|&result| program.type_of(result))
        .collect();
    let mut details = Vec::new();
    let attributes = attributes(members);
    if !attributes.is_empty() {
        details.push(attributes);
    }
    if let Some(region) = last.region() {
        let mut counts: IndexMap<&str, usize> = IndexMap::new();
        for op in region.ops() {
            *counts.entry(op.kind().name()).or_default() += 1;
        }
        let inner = counts
            .iter()
            .map(|(name, count)| format!("{name} \u{d7}{count}"));
        details.push(shorten(&inner.collect::<Vec<_>>().join(", ")));
    }
    if let Some(ty) = types.first() {
        details.push(brief(ty));
    }
    let mut tooltip = def.doc.to_owned();
    for op in members.iter().take(5) {
        let _ = write!(tooltip, "\n{}", op.kind());
        for (name, value) in op.attributes().iter() {
            let _ = write!(tooltip, " {name} = {value}");
        }
        for &result in op.results() {
            let _ = write!(tooltip, " : {}", program.type_of(result));
        }
        if let Some(location) = op.location() {
            let _ = write!(tooltip, " ({location})");
        }
    }
    if members.len() > 5 {
        let _ = write!(tooltip, "\nand {} more", members.len() - 5);
    }
    Node {
        role: Role::Operation(def.dialect),
        title: def.name.to_owned(),
        count: members.len(),
        details,
        level: types.first().and_then(|ty| level(ty)),
        tooltip,
        layer,
    }
}

/// Attributes with the values that they take in these operations.
fn attributes(members: &[&Op]) -> String {
    let mut values: IndexMap<&str, indexmap::IndexSet<String>> = IndexMap::new();
    for op in members {
        for (name, value) in op.attributes().iter() {
            // A level shows in the chip, a scale in the type.
            if !matches!(name, "level" | "scale" | "keepdims" | "dropped" | "dtype") {
                values.entry(name).or_default().insert(value.to_string());
            }
        }
    }
    let values = values.iter().map(|(name, values)| {
        let shown: Vec<&str> = values.iter().take(4).map(String::as_str).collect();
        let more = if values.len() > shown.len() {
            ", \u{2026}"
        } else {
            ""
        };
        match *name {
            "symbol" => format!("{}{more}", shown.join(", ")),
            name => format!("{name} {}{more}", shown.join(", ")),
        }
    });
    shorten(&values.collect::<Vec<_>>().join("; "))
}

/// A line that fits a box.
fn shorten(text: &str) -> String {
    const LONGEST: usize = 34;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(LONGEST - 1).collect();
    short.push('\u{2026}');
    short
}

fn level(ty: &Type) -> Option<usize> {
    match ty {
        Type::Ciphertext { state, .. } => state.as_ref().map(|state| state.level),
        Type::Plaintext { state, .. } => state.as_ref().map(|state| state.level),
        Type::Residues { basis, .. } => Some(basis.level()),
        Type::Tensor { .. } | Type::Key(_) => None,
    }
}

/// A type in a few characters; the level is shown elsewhere.
fn brief(ty: &Type) -> String {
    let batch = match ty.batch() {
        [] => String::new(),
        extents => format!(" {extents:?}"),
    };
    shorten(&match ty {
        Type::Ciphertext { state, .. } => match state {
            Some(state) => {
                let parts = if state.parts == 2 { "" } else { ", 3 parts" };
                format!("ciphertext{batch} {}{parts}", rounded(&state.scale))
            }
            None => format!("ciphertext{batch}"),
        },
        Type::Plaintext { state, .. } => match state {
            Some(state) => format!("plaintext{batch} {}", rounded(&state.scale)),
            None => format!("plaintext{batch}"),
        },
        Type::Tensor { dtype, .. } => format!("{dtype}{batch}"),
        Type::Key(kind) => format!("{kind} key"),
        Type::Residues {
            parts,
            basis,
            domain,
            ..
        } => format!("{basis} {domain}{batch} \u{d7}{parts}"),
    })
}

/// A scale to three decimals of its logarithm; the tooltip has it exactly.
fn rounded(scale: &Scale) -> String {
    let text = format!("2^{:.3}", scale.log2());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
