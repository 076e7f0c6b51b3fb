//! Keys, depth and levels.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use fhelium_ir::{
    Body, Ckks, Core, He, KeyKind, Location, Op, OpKind, Program, Rns, Type, ValueId,
};

/// What a Program needs before it can run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// The evaluation keys that the runtime must find, ordered by kind and step. Keys that are
    /// inputs come with each call and are not among them.
    pub keys: Vec<KeyRequirement>,
    /// The most products, with ciphertexts or plaintexts, that follow one another.
    pub multiplicative_depth: usize,
    /// The most levels that a value of the Program has lost since the inputs: its rescales and
    /// dropped levels along one path.
    pub levels: usize,
    /// The lowest level of any ciphertext, where all states are known.
    pub lowest_level: Option<usize>,
}

/// An evaluation key and who asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRequirement {
    /// What the key is for; a rotation's step is from 0 to slots - 1 where the slots are known.
    pub kind: KeyKind,
    /// The material that stands for the key, once the Program names one.
    pub symbol: Option<Arc<str>>,
    /// The operations that use it.
    pub operations: usize,
    /// The lines that made those operations, each once, in the Program's order.
    pub locations: Vec<Location>,
}

impl Requirements {
    /// The rotation steps that need a key, ascending.
    pub fn rotation_steps(&self) -> Vec<i64> {
        let mut steps: Vec<i64> = self
            .keys
            .iter()
            .filter_map(|key| match key.kind {
                KeyKind::Rotation { step } => Some(step),
                KeyKind::Relinearization | KeyKind::Conjugation => None,
            })
            .collect();
        steps.dedup();
        steps
    }

    /// Whether a relinearization key is needed.
    pub fn relinearization(&self) -> bool {
        self.keys
            .iter()
            .any(|key| key.kind == KeyKind::Relinearization)
    }

    /// Whether a conjugation key is needed.
    pub fn conjugation(&self) -> bool {
        self.keys.iter().any(|key| key.kind == KeyKind::Conjugation)
    }
}

impl fmt::Display for KeyRequirement {
    /// Writes `rotation 5: 2 operations (f.py:1 in f, f.py:4 in f)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(symbol) = &self.symbol {
            write!(f, " as @{symbol}")?;
        }
        let plural = if self.operations == 1 { "" } else { "s" };
        write!(f, ": {} operation{plural}", self.operations)?;
        for (place, location) in self.locations.iter().enumerate() {
            let before = if place == 0 { " (" } else { ", " };
            write!(f, "{before}{location}")?;
        }
        if !self.locations.is_empty() {
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirements {
    /// Writes a line for each key, then depth and levels.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for key in &self.keys {
            writeln!(f, "{key}")?;
        }
        write!(
            f,
            "multiplicative depth {}, levels {}",
            self.multiplicative_depth, self.levels
        )?;
        match self.lowest_level {
            Some(level) => write!(f, ", lowest level {level}"),
            None => Ok(()),
        }
    }
}

/// Finds what a Program needs, at any of its levels, in linear time.
pub fn requirements(program: &Program) -> Requirements {
    let body = program.body();
    let mut keys: BTreeMap<(KeyKind, Option<Arc<str>>), KeyRequirement> = BTreeMap::new();
    let mut ask = |kind: KeyKind, symbol: Option<Arc<str>>, location: Option<&Location>| {
        let kind = canonical(kind, program);
        let key = keys
            .entry((kind, symbol.clone()))
            .or_insert_with(|| KeyRequirement {
                kind,
                symbol,
                operations: 0,
                locations: Vec::new(),
            });
        key.operations += 1;
        if let Some(location) = location
            && key.locations.last() != Some(location)
        {
            key.locations.push(location.clone());
        }
    };
    for op in body.ops() {
        for &operand in op.operands() {
            if let Type::Key(kind) = body.type_of(operand)
                && let Some((symbol, reference)) = key_material(body, operand)
            {
                // Hoisted rotations came from several lines; the references know which.
                let asking = match op.kind() {
                    OpKind::Ckks(Ckks::RotateHoisted) => reference.location().or(op.location()),
                    _ => op.location(),
                };
                ask(*kind, Some(symbol), asking);
            }
        }
        if let Some(kind) = key_to_look_up(op) {
            ask(kind, None, op.location());
        }
    }
    let mut keys: Vec<KeyRequirement> = keys.into_values().collect();
    for key in &mut keys {
        let mut seen = HashSet::new();
        key.locations
            .retain(|location| seen.insert(location.clone()));
    }

    let products = product_depths(body, vec![0; body.arguments().len()]);
    let mut levels = vec![0usize; body.values().len()];
    for op in body.ops() {
        let lost = lost_by_operands(op, body, &levels) + levels_lost(op);
        for result in op.results() {
            levels[result.index()] = lost;
        }
    }
    let ciphertexts = body.values().iter().filter_map(|value| match &value.ty {
        Type::Ciphertext { state, .. } => Some(state.as_ref().map(|state| state.level)),
        _ => None,
    });
    Requirements {
        keys,
        multiplicative_depth: products.into_iter().max().unwrap_or(0),
        levels: levels.into_iter().max().unwrap_or(0),
        lowest_level: ciphertexts
            .collect::<Option<Vec<usize>>>()
            .and_then(|levels| levels.into_iter().min()),
    }
}

/// The symbol of the material that a key operand refers to, and the reference; `None` for an
/// input.
fn key_material(body: &Body, key: ValueId) -> Option<(Arc<str>, &Op)> {
    let reference = body.definition(key)?;
    match reference.kind() {
        OpKind::Core(Core::Material) => {
            let symbol = reference.attributes().symbol("symbol")?;
            Some((symbol.clone(), reference))
        }
        _ => None,
    }
}

/// The key that an operation of the `he` level uses without naming it.
fn key_to_look_up(op: &Op) -> Option<KeyKind> {
    let OpKind::He(he) = op.kind() else {
        return None;
    };
    if op.operands().len() > 1 {
        return None;
    }
    match he {
        He::Relinearize => Some(KeyKind::Relinearization),
        He::Conjugate => Some(KeyKind::Conjugation),
        He::Rotate => match op.attributes().int("step") {
            None | Some(0) => None,
            Some(step) => Some(KeyKind::Rotation { step }),
        },
        _ => None,
    }
}

/// A key's kind with its step from 0 to slots - 1, where the slots are known.
fn canonical(kind: KeyKind, program: &Program) -> KeyKind {
    match (kind, program.chain()) {
        (KeyKind::Rotation { step }, Some(chain)) => KeyKind::Rotation {
            step: step.rem_euclid(chain.slots() as i64),
        },
        (kind, _) => kind,
    }
}

/// The most products that follow one another up to each value, given those of the arguments.
fn product_depths(body: &Body, arguments: Vec<usize>) -> Vec<usize> {
    let mut depths = arguments;
    depths.resize(body.values().len(), 0);
    for op in body.ops() {
        let operands: Vec<usize> = op.operands().iter().map(|v| depths[v.index()]).collect();
        let depth =
            operands.iter().copied().max().unwrap_or(0) + usize::from(is_product(op.kind()));
        let inner = op.region().map(|region| {
            let inner = product_depths(region, operands);
            let results = region.results().iter();
            results.map(|v| inner[v.index()]).collect::<Vec<_>>()
        });
        for (place, result) in op.results().iter().enumerate() {
            depths[result.index()] = inner.as_ref().map_or(depth, |inner| inner[place]);
        }
    }
    depths
}

/// The most levels that an operand has lost, those that a fused operation takes off it included.
fn lost_by_operands(op: &Op, body: &Body, levels: &[usize]) -> usize {
    let level = |value: ValueId| match body.type_of(value) {
        Type::Ciphertext {
            state: Some(state), ..
        } => Some(state.level),
        _ => None,
    };
    let left = op.results().first().and_then(|&result| level(result));
    let operands = op.operands().iter().map(|&operand| {
        let dropped = match (op.region(), level(operand), left) {
            (Some(_), Some(from), Some(to)) => from.saturating_sub(to),
            _ => 0,
        };
        levels[operand.index()] + dropped
    });
    operands.max().unwrap_or(0)
}

fn is_product(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::He(He::Mul | He::Square)
            | OpKind::Ckks(
                Ckks::Mul
                    | Ckks::Square
                    | Ckks::MulPlain
                    | Ckks::MulRelin
                    | Ckks::SquareRelin
                    | Ckks::MulRelinRescale
                    | Ckks::SquareRelinRescale
            )
            | OpKind::Rns(Rns::Mul | Rns::MulAdd)
    )
}

fn levels_lost(op: &Op) -> usize {
    match op.kind() {
        OpKind::He(He::Rescale)
        | OpKind::Ckks(
            Ckks::Rescale
            | Ckks::RelinearizeRescale
            | Ckks::MulRelinRescale
            | Ckks::SquareRelinRescale,
        ) => 1,
        OpKind::He(He::DropLevels) | OpKind::Ckks(Ckks::DropLevels) => op
            .attributes()
            .int("count")
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(0),
        _ => 0,
    }
}
