//! Values that stay between calls: materials and what is computed from them alone.
//!
//! Encoding a captured array costs more than most operations that use it, so it is done once and
//! again only when the array's contents have changed.

use super::host_part::{Encoding, stage};
use super::tape::{Bound, Frame, Source, Step};
use crate::material::MaterialSource;
use crate::{DeviceKind, Engine, MaterialBinding, RuntimeError, Value};
use fhelium_ir::Type;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// A material that the tape reads.
#[derive(Clone, Debug)]
pub(super) struct MaterialSlot {
    pub symbol: Arc<str>,
    pub ty: Type,
    pub binding: MaterialBinding,
    /// The frame slot in which the prologue finds it.
    pub slot: u32,
}

/// A material whose contents may change with nobody telling: it is read at each call.
#[derive(Clone, Debug)]
pub(super) struct LiveMaterial {
    pub symbol: Arc<str>,
    pub ty: Type,
    pub source: Arc<dyn MaterialSource>,
    /// Where it was when the program was linked.
    pub place: DeviceKind,
}

impl LiveMaterial {
    /// The contents now.
    pub fn read(&self, engine: &Engine) -> Result<Value, RuntimeError> {
        let (value, _) = self.source.read()?;
        check_material(&self.symbol, &self.ty, &value, engine)?;
        if value.device().kind() == self.place {
            return Ok(value);
        }
        Err(RuntimeError::Device(format!(
            "the captured value @{} is on {} now, but the function was compiled for one on {}; clear \
             the compiled function to capture it anew",
            self.symbol,
            value.device(),
            self.place
        )))
    }
}

/// The prologue's steps and the values that it hands to the main tape.
#[derive(Debug)]
pub(super) struct Prologue {
    pub materials: Vec<MaterialSlot>,
    /// In order; each slot is written once, so a part of them can run again.
    pub steps: Vec<Step>,
    pub slots: usize,
    pub kept: Vec<Kept>,
    state: RwLock<Option<Arc<State>>>,
    refreshing: Mutex<()>,
}

/// A value that the main tape reads.
#[derive(Debug)]
pub(super) struct Kept {
    /// Where the prologue's frame has it.
    pub slot: u32,
    /// Of an array in host memory that the device reads, its encodings there: it is kept on the
    /// device.
    pub staged: Option<Vec<Encoding>>,
}

#[derive(Debug)]
struct State {
    /// Of each live material, in the order of `materials`.
    versions: Vec<u64>,
    values: Arc<[Value]>,
}

impl Prologue {
    pub fn new(
        materials: Vec<MaterialSlot>,
        steps: Vec<Step>,
        slots: usize,
        kept: Vec<Kept>,
    ) -> Self {
        Prologue {
            materials,
            steps,
            slots,
            kept,
            state: RwLock::new(None),
            refreshing: Mutex::new(()),
        }
    }

    /// The kept values for the materials' contents of now.
    pub fn values(&self, engine: &Engine) -> Result<Arc<[Value]>, RuntimeError> {
        if let Some(state) = self.current()
            && self.is_fresh(&state)?
        {
            return Ok(state.values.clone());
        }
        let _one_at_a_time = self
            .refreshing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let held = self.current();
        if let Some(state) = &held
            && self.is_fresh(state)?
        {
            return Ok(state.values.clone());
        }
        let state = Arc::new(self.refresh(held.as_deref(), engine)?);
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = Some(state.clone());
        Ok(state.values.clone())
    }

    /// Bytes of the kept values; 0 before the first call.
    pub fn nbytes(&self) -> usize {
        self.current()
            .map_or(0, |state| state.values.iter().map(Value::nbytes).sum())
    }

    fn current(&self) -> Option<Arc<State>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.clone()
    }

    fn live(&self) -> impl Iterator<Item = (usize, &Arc<dyn MaterialSource>)> {
        self.materials
            .iter()
            .enumerate()
            .filter_map(|(place, material)| match &material.binding {
                MaterialBinding::Live(source) => Some((place, source)),
                MaterialBinding::Fixed(_) => None,
            })
    }

    fn is_fresh(&self, state: &State) -> Result<bool, RuntimeError> {
        for ((_, source), &version) in self.live().zip(&state.versions) {
            if source.version()? != version {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads the materials and runs the steps that depend on changed ones, all at first.
    fn refresh(&self, held: Option<&State>, engine: &Engine) -> Result<State, RuntimeError> {
        let mut frame = Frame::new(Bound::default(), self.slots);
        let mut versions = Vec::new();
        // A slot is dirty where its value may differ from the one that the held state is made of.
        let mut dirty = vec![held.is_none(); self.slots];
        for material in &self.materials {
            let value = match &material.binding {
                MaterialBinding::Fixed(value) => value.clone(),
                MaterialBinding::Live(source) => {
                    let (value, version) = source.read()?;
                    let held = held.and_then(|held| held.versions.get(versions.len()));
                    dirty[material.slot as usize] |= held != Some(&version);
                    versions.push(version);
                    value
                }
            };
            check_material(&material.symbol, &material.ty, &value, engine)?;
            frame.put(material.slot, value);
        }
        for step in &self.steps {
            if reads(step).any(|slot| dirty[slot as usize]) {
                writes(step).for_each(|slot| dirty[slot as usize] = true);
            }
        }
        // What is not kept is needed again where a dirty step reads it.
        let mut needed = vec![false; self.slots];
        for &Kept { slot, .. } in &self.kept {
            needed[slot as usize] = dirty[slot as usize];
        }
        for step in self.steps.iter().rev() {
            if writes(step).any(|slot| needed[slot as usize]) {
                reads(step).for_each(|slot| needed[slot as usize] = true);
            }
        }
        for step in &self.steps {
            if writes(step).any(|slot| needed[slot as usize]) {
                frame.run(step, engine)?;
            }
        }
        let values = self
            .kept
            .iter()
            .enumerate()
            .map(|(place, Kept { slot, staged })| match held {
                Some(held) if !dirty[*slot as usize] => Ok(held.values[place].clone()),
                _ => {
                    let value = frame.take(Source::Frame(*slot))?;
                    match staged {
                        Some(encodings) => stage(engine, &value, encodings),
                        None => Ok(value),
                    }
                }
            })
            .collect::<Result<_, _>>()?;
        Ok(State { versions, values })
    }
}

/// Refuses what is no longer what the program was linked for.
fn check_material(
    symbol: &str,
    ty: &Type,
    value: &Value,
    engine: &Engine,
) -> Result<(), RuntimeError> {
    if value.has_type(ty) {
        let named = format_args!("the captured value @{symbol}");
        return engine.check_places(&"the compiled function", [(named, value)]);
    }
    Err(RuntimeError::Value(format!(
        "the captured value @{symbol} is {} now, but the function was compiled for {ty}; contents may \
         change between calls, the type may not: clear the compiled function to capture it anew",
        value.ty()
    )))
}

fn reads(step: &Step) -> impl Iterator<Item = u32> + '_ {
    step.operands.iter().filter_map(|source| match source {
        Source::Frame(slot) | Source::LastUse(slot) => Some(*slot),
        _ => None,
    })
}

fn writes(step: &Step) -> impl Iterator<Item = u32> + '_ {
    step.results.iter().copied().flatten()
}
