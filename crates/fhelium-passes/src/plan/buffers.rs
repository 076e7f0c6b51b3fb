//! Lifetimes and shared memory.

use std::collections::BTreeMap;

use fhelium_ir::{Op, OpKind, Origin, Program, Type, ValueId};

use crate::analysis::{scratch_bytes, value_bytes};
use crate::plan::Prologue;

/// When each value dies, and which values may share one buffer.
///
/// Values are told apart by number ([`ValueId::index`]), operations by place. Buffers are for what
/// the tape computes at each call; inputs, keys, materials and prologue values have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferPlan {
    /// Bytes of each buffer.
    pub slots: Vec<u64>,
    /// One for each value.
    pub values: Vec<ValuePlan>,
    /// Values that each operation reads last, one list for each operation.
    pub releases: Vec<Vec<ValueId>>,
    /// For each operation the operand whose buffer its only result may take over: the operand
    /// dies here, has the result's size and is read element by element.
    pub in_place: Vec<Option<usize>>,
    /// The most bytes that are alive at once: values, and what the host's kernels work in. A
    /// result is beside its operands until its operation ends. Inputs and what stays between calls
    /// are not counted.
    pub peak_bytes: u64,
    /// Bytes of the inputs, which the caller holds.
    pub input_bytes: u64,
    /// Bytes that the prologue keeps between calls.
    pub resident_bytes: u64,
}

/// The plan for one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValuePlan {
    /// Its size.
    pub bytes: u64,
    /// How long it is needed.
    pub lifetime: Lifetime,
    /// Its buffer: an index into [`BufferPlan::slots`].
    pub slot: Option<usize>,
}

/// How long a value is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// An input: the caller holds it.
    Input,
    /// A key, a material or a value of the prologue: it stays between calls.
    Resident,
    /// Until the operation at this place has read it; for a value that nothing reads, the
    /// operation that defines it.
    Until(usize),
    /// It leaves the Program.
    Returned,
}

impl BufferPlan {
    /// Plans a Program, in time linear in its size but for one ordered map of buffer sizes.
    pub fn of(program: &Program, prologue: Option<&Prologue>) -> Self {
        let body = program.body();
        let in_prologue = |place: usize| prologue.is_some_and(|p| p.contains(place));
        let mut values = lifetimes(program, &in_prologue);
        let mut releases = vec![Vec::new(); body.ops().len()];
        for value in body.ops().iter().flat_map(|op| op.results()) {
            if let Lifetime::Until(place) = values[value.index()].lifetime {
                releases[place].push(*value);
            }
        }

        let mut pool = Pool::default();
        let mut in_place = vec![None; body.ops().len()];
        let (mut alive, mut peak_bytes) = (0u64, 0u64);
        for (place, op) in body.ops().iter().enumerate() {
            let results = op.results().iter().map(|value| value.index());
            let planned: Vec<usize> = results
                .filter(|&index| values[index].lifetime != Lifetime::Resident)
                .collect();
            let taken = taken_operand(op, place, &planned, &values);
            in_place[place] = taken;
            for &index in &planned {
                values[index].slot = Some(match taken {
                    Some(operand) => {
                        let value = op.operands()[operand].index();
                        values[value].slot.expect("only planned values are taken")
                    }
                    None => pool.take(values[index].bytes),
                });
                alive = alive.saturating_add(values[index].bytes);
            }
            if !in_prologue(place) {
                let scratch = scratch_bytes(op, body, program.chain().map(AsRef::as_ref));
                peak_bytes = peak_bytes.max(alive.saturating_add(scratch));
            }
            for released in &releases[place] {
                let value = values[released.index()];
                let moved_on = taken.is_some_and(|operand| op.operands()[operand] == *released);
                if let Some(slot) = value.slot {
                    alive = alive.saturating_sub(value.bytes);
                    if !moved_on {
                        pool.give_back(slot);
                    }
                }
            }
        }
        let bytes = |wanted: Lifetime| {
            let of = values.iter().filter(|value| value.lifetime == wanted);
            of.map(|value| value.bytes).fold(0, u64::saturating_add)
        };
        BufferPlan {
            slots: pool.slots,
            input_bytes: bytes(Lifetime::Input),
            resident_bytes: prologue.map_or(0, |p| p.resident_bytes),
            peak_bytes,
            values,
            releases,
            in_place,
        }
    }

    /// Bytes of all buffers together.
    pub fn slot_bytes(&self) -> u64 {
        self.slots.iter().copied().fold(0, u64::saturating_add)
    }

    /// The place of the operation that reads a value last, for values that die in the Program.
    pub fn last_use(&self, value: ValueId) -> Option<usize> {
        match self.values.get(value.index())?.lifetime {
            Lifetime::Until(place) => Some(place),
            Lifetime::Input | Lifetime::Resident | Lifetime::Returned => None,
        }
    }
}

fn lifetimes(program: &Program, in_prologue: &dyn Fn(usize) -> bool) -> Vec<ValuePlan> {
    let body = program.body();
    let mut values: Vec<ValuePlan> = body
        .values()
        .iter()
        .map(|value| ValuePlan {
            bytes: value_bytes(&value.ty, program.chain().map(AsRef::as_ref)),
            lifetime: match value.origin {
                Origin::Argument(_) => Lifetime::Input,
                Origin::Result { op, .. }
                    if in_prologue(op)
                        || matches!(value.ty, Type::Key(_))
                        || matches!(body.ops()[op].kind(), OpKind::Core(_)) =>
                {
                    Lifetime::Resident
                }
                Origin::Result { op, .. } => Lifetime::Until(op),
            },
            slot: None,
        })
        .collect();
    for (place, op) in body.ops().iter().enumerate() {
        for operand in op.operands() {
            if let Lifetime::Until(last) = &mut values[operand.index()].lifetime {
                *last = place;
            }
        }
    }
    for result in body.results() {
        let lifetime = &mut values[result.index()].lifetime;
        if matches!(lifetime, Lifetime::Until(_)) {
            *lifetime = Lifetime::Returned;
        }
    }
    values
}

/// The operand whose buffer the only result may take.
fn taken_operand(op: &Op, place: usize, planned: &[usize], values: &[ValuePlan]) -> Option<usize> {
    let &[result] = planned else {
        return None;
    };
    let writes_where_it_reads = matches!(op.kind(), OpKind::Ckks(_) | OpKind::Rns(_))
        && op.kind().def().dependence.is_elementwise();
    if !writes_where_it_reads {
        return None;
    }
    op.operands().iter().position(|operand| {
        let value = &values[operand.index()];
        value.lifetime == Lifetime::Until(place)
            && value.slot.is_some()
            && value.bytes == values[result].bytes
    })
}

/// Buffers and those of them that are free.
#[derive(Default)]
struct Pool {
    slots: Vec<u64>,
    free: BTreeMap<u64, Vec<usize>>,
}

impl Pool {
    /// The smallest free buffer that holds `bytes` without wasting more than half, or a new one.
    fn take(&mut self, bytes: u64) -> usize {
        let fitting = self.free.range_mut(bytes..=bytes.saturating_mul(2)).next();
        if let Some((&size, free)) = fitting
            && let Some(slot) = free.pop()
        {
            if free.is_empty() {
                self.free.remove(&size);
            }
            return slot;
        }
        self.slots.push(bytes);
        self.slots.len() - 1
    }

    fn give_back(&mut self, slot: usize) {
        self.free.entry(self.slots[slot]).or_default().push(slot);
    }
}
