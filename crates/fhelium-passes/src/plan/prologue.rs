//! What a Program computes from its materials and constants alone.

use fhelium_ir::{Body, Core, Op, OpKind, Origin, Program, Type, ValueId};

use crate::analysis::value_bytes;

/// The operations that depend on materials and constants only, and the values that they hand on.
///
/// A runtime may run them once, keep the values of [`Prologue::boundary`] and run the others at
/// each call. A material may be live data: when its contents change, the operations that depend
/// on it, found by following [`Prologue::operations`] in order, are run again. References to
/// evaluation keys are not among them, since a key belongs to the call's secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prologue {
    /// Places of the operations, ascending.
    pub operations: Vec<usize>,
    /// Values that the other operations read or that the Program returns, ascending.
    pub boundary: Vec<ValueId>,
    /// Bytes of the boundary values, those of materials themselves left out.
    pub resident_bytes: u64,
    /// Places of operations that could be among them but would take more memory than allowed.
    pub over_budget: Vec<usize>,
    /// The memory that was allowed, from which the rest follows.
    pub max_resident_bytes: u64,
    is_member: Vec<bool>,
}

impl Prologue {
    /// Finds the prologue of a Program.
    ///
    /// Its boundary values take at most `max_resident_bytes`; where that is not enough for all,
    /// the first in the Program's order are kept. Values that only the operations left out read
    /// stay beside them: they are clear arrays, smaller than what is encoded from them.
    pub fn of(program: &Program, max_resident_bytes: u64) -> Self {
        Prologue::without(program, max_resident_bytes, |_| false)
    }

    /// The same without what depends on some materials: those whose contents may change with nobody
    /// telling.
    pub fn without(
        program: &Program,
        max_resident_bytes: u64,
        may_change: impl Fn(&Op) -> bool,
    ) -> Self {
        let body = program.body();
        let mut is_member = fixed_operations(body, &may_change);
        let read_outside = |is_member: &[bool]| {
            let mut read = vec![false; body.values().len()];
            for (place, op) in body.ops().iter().enumerate() {
                if !is_member[place] {
                    op.operands().iter().for_each(|v| read[v.index()] = true);
                }
            }
            body.results().iter().for_each(|v| read[v.index()] = true);
            read
        };
        let bytes_of = |place: usize, read: &[bool]| -> u64 {
            let op = &body.ops()[place];
            if op.kind() == OpKind::Core(Core::Material) {
                return 0;
            }
            let kept = op.results().iter().filter(|v| read[v.index()]);
            kept.map(|&v| value_bytes(body.type_of(v), program.chain().map(AsRef::as_ref)))
                .fold(0, u64::saturating_add)
        };

        let read = read_outside(&is_member);
        let mut over_budget = Vec::new();
        let mut planned = 0u64;
        for (place, op) in body.ops().iter().enumerate() {
            if !is_member[place] {
                continue;
            }
            let sum = planned.saturating_add(bytes_of(place, &read));
            // What reads a value that is computed at every call is computed at every call too.
            if sum <= max_resident_bytes && reads_members_only(body, op, &is_member) {
                planned = sum;
            } else {
                is_member[place] = false;
                over_budget.push(place);
            }
        }

        let read = read_outside(&is_member);
        let operations: Vec<usize> = (0..is_member.len()).filter(|&p| is_member[p]).collect();
        let boundary = operations
            .iter()
            .flat_map(|&place| body.ops()[place].results())
            .filter(|value| read[value.index()])
            .copied()
            .collect();
        let resident_bytes = operations
            .iter()
            .map(|&place| bytes_of(place, &read))
            .fold(0, u64::saturating_add);
        Prologue {
            operations,
            boundary,
            resident_bytes,
            over_budget,
            max_resident_bytes,
            is_member,
        }
    }

    /// Whether the operation at a place belongs to the prologue.
    pub fn contains(&self, place: usize) -> bool {
        self.is_member.get(place).copied().unwrap_or(false)
    }
}

fn reads_members_only(body: &Body, op: &Op, is_member: &[bool]) -> bool {
    op.operands()
        .iter()
        .all(|value| match body.values()[value.index()].origin {
            Origin::Argument(_) => false,
            Origin::Result { op, .. } => is_member[op],
        })
}

/// For each operation whether all that it depends on are materials, keys apart, and constants.
pub(crate) fn constant_operations(body: &Body) -> Vec<bool> {
    fixed_operations(body, &|_| false)
}

/// The same, where some materials are no constants.
fn fixed_operations(body: &Body, may_change: &impl Fn(&Op) -> bool) -> Vec<bool> {
    let mut constant = vec![false; body.ops().len()];
    for (place, op) in body.ops().iter().enumerate() {
        let mut results = op.results().iter();
        let is_key = results.any(|&value| matches!(body.type_of(value), Type::Key(_)));
        constant[place] = !is_key && !may_change(op) && reads_members_only(body, op, &constant);
    }
    constant
}
