//! Where the tapes find each value.

use super::host_part::{Encoding, Staged};
use super::kept::Kept;
use super::tape::Source;
use crate::{DeviceKind, RuntimeError};
use fhelium_ir::ValueId;
use std::collections::HashMap;

/// The values that a program's tapes make and read, by number and place: a number of the program's
/// own may be in both.
#[derive(Default)]
pub(super) struct Sources {
    /// Arguments, keys, and what the steps make.
    known: HashMap<(usize, DeviceKind), Source>,
    /// The prologue's own frame.
    prologue: HashMap<(usize, DeviceKind), u32>,
    kept: Vec<Kept>,
    host_slots: u32,
    staged: Vec<Staged>,
}

impl Sources {
    /// Says where a value is found.
    pub fn put(&mut self, value: ValueId, place: DeviceKind, source: Source) {
        self.known.insert((value.index(), place), source);
    }

    /// The slot of a value in the prologue's frame.
    pub fn prologue_slot(&mut self, value: ValueId, place: DeviceKind) -> u32 {
        let next = self.prologue.len() as u32;
        let slot = self.prologue.entry((value.index(), place));
        *slot.or_insert(next)
    }

    /// Whether the prologue has a value in a place.
    pub fn has_prologue_slot(&self, value: ValueId, place: DeviceKind) -> bool {
        self.prologue.contains_key(&(value.index(), place))
    }

    /// A slot in the frame of the steps that run on the host, for a value that they make.
    pub fn host_slot(&mut self, value: ValueId) -> u32 {
        let slot = self.host_slots;
        self.host_slots += 1;
        self.put(value, DeviceKind::Cpu, Source::Host(slot));
        slot
    }

    /// Where the main tape, or the caller, finds a value.
    pub fn get(&mut self, value: ValueId, place: DeviceKind) -> Result<Source, RuntimeError> {
        self.find(value, place).ok_or_else(|| {
            RuntimeError::Link("the plan does not fit the program: a value has no place".to_owned())
        })
    }

    /// Where a step on the host of a program for a device finds an array.
    pub fn for_host(&mut self, value: ValueId) -> Result<Source, RuntimeError> {
        Ok(match self.get(value, DeviceKind::Cpu)? {
            Source::Host(slot) => Source::Frame(slot),
            source => source,
        })
    }

    /// Where a step on the device finds an array that is there or, for an encoding perhaps, goes up.
    pub fn for_device(
        &mut self,
        value: ValueId,
        encoding: Option<Encoding>,
    ) -> Result<Source, RuntimeError> {
        if let Some(there) = self.find(value, DeviceKind::Cuda) {
            return Ok(there);
        }
        if let Some(&slot) = self.prologue.get(&(value.index(), DeviceKind::Cpu)) {
            return Ok(self.keep(slot, Some(encoding.into_iter().collect())));
        }
        let source = self.get(value, DeviceKind::Cpu)?;
        let known = self
            .staged
            .iter()
            .position(|staged| staged.source == source);
        let place = known.unwrap_or_else(|| {
            let encodings = Vec::new();
            self.staged.push(Staged { source, encodings });
            self.staged.len() - 1
        });
        add(&mut self.staged[place].encodings, encoding);
        Ok(Source::Staged(place as u32))
    }

    fn find(&mut self, value: ValueId, place: DeviceKind) -> Option<Source> {
        let key = (value.index(), place);
        if let Some(&known) = self.known.get(&key) {
            return Some(known);
        }
        let slot = *self.prologue.get(&key)?;
        Some(self.keep(slot, None))
    }

    /// A slot of the prologue's frame that stays between calls: on the device, where its array goes
    /// up for some encodings.
    fn keep(&mut self, slot: u32, staged: Option<Vec<Encoding>>) -> Source {
        let alike = |kept: &Kept| kept.slot == slot && kept.staged.is_some() == staged.is_some();
        let place = match self.kept.iter().position(alike) {
            Some(place) => {
                if let (Some(known), Some(more)) = (&mut self.kept[place].staged, staged) {
                    more.into_iter()
                        .for_each(|encoding| add(known, Some(encoding)));
                }
                place
            }
            None => {
                self.kept.push(Kept { slot, staged });
                self.kept.len() - 1
            }
        };
        Source::Kept(place as u32)
    }

    /// Slots of the prologue's frame, and what of them is kept.
    pub fn finish_prologue(&mut self) -> (usize, Vec<Kept>) {
        (self.prologue.len(), std::mem::take(&mut self.kept))
    }

    /// Slots of the frame of the steps on the host, and what goes to the device.
    pub fn finish_host(&mut self) -> (usize, Vec<Staged>) {
        (self.host_slots as usize, std::mem::take(&mut self.staged))
    }
}

fn add(encodings: &mut Vec<Encoding>, encoding: Option<Encoding>) {
    if let Some(encoding) = encoding
        && !encodings.contains(&encoding)
    {
        encodings.push(encoding);
    }
}
