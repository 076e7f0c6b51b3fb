//! Which implementation runs an operation.
//!
//! An [`OperationBackend`] maps operations to [`Implementation`]s. The standard one holds the
//! host's and the CUDA kernels; others may be added. Eager calls and compiled programs select here, by the same
//! rules, and call the same code.

mod batch;
mod ckks;
mod fused;
mod implementation;
mod kernels;
mod tensor;

pub(crate) use implementation::run_checked;
pub use implementation::{Implementation, Invocation, Operands, Results};
pub(crate) use tensor::apart;

use crate::{DeviceKind, RuntimeError};
use fhelium_ir::{Attributes, Ckks, OpKind, Rns, Type};
use fhelium_passes::{Rates, Target};
use indexmap::IndexMap;
use kernels::Place;
use std::cmp::Ordering;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A registry of implementations; immutable, cheap to clone.
///
/// Of the implementations that support an operation on its operand types, the one of least
/// [`cost`](Implementation::cost) is taken. One selected by name
/// ([`with_selection`](OperationBackend::with_selection)) is taken or the operation fails.
#[derive(Clone)]
pub struct OperationBackend {
    registry: Arc<Registry>,
}

#[derive(Clone, Default)]
struct Registry {
    implementations: IndexMap<OpKind, Vec<Arc<dyn Implementation>>>,
    selected: IndexMap<OpKind, Arc<str>>,
}

impl OperationBackend {
    /// The kernels named `host` for every `ckks` and `tensor` operation and for `rns.fused`, and those
    /// named `cuda`, for CUDA devices.
    pub fn standard() -> Self {
        static STANDARD: OnceLock<OperationBackend> = OnceLock::new();
        STANDARD
            .get_or_init(|| {
                let mut registry = Registry::default();
                let host = ckks::implementations::<fhelium_ckks::Context>()
                    .chain(tensor::implementations::<fhelium_ckks::Context>())
                    .chain([fused::implementation::<fhelium_ckks::Context>()]);
                let cuda = ckks::implementations::<fhelium_cuda::Context>()
                    .chain(tensor::implementations::<fhelium_cuda::Context>())
                    .chain([fused::implementation::<fhelium_cuda::Context>()]);
                for implementation in host.chain(cuda) {
                    registry
                        .implementations
                        .entry(implementation.operation())
                        .or_default()
                        .push(implementation);
                }
                OperationBackend {
                    registry: Arc::new(registry),
                }
            })
            .clone()
    }

    /// A backend without implementations.
    pub fn empty() -> Self {
        OperationBackend {
            registry: Arc::default(),
        }
    }

    /// This backend and more implementations.
    ///
    /// # Errors
    /// [`RuntimeError::Value`] where an operation has an implementation of that name already, or
    /// a cost is no positive number.
    pub fn with_implementations(
        &self,
        more: impl IntoIterator<Item = Arc<dyn Implementation>>,
    ) -> Result<Self, RuntimeError> {
        let mut registry = Registry::clone(&self.registry);
        for implementation in more {
            let (operation, name) = (implementation.operation(), implementation.name());
            let cost = implementation.cost();
            if !(cost.is_finite() && cost > 0.0) {
                return Err(RuntimeError::Value(format!(
                    "the implementation {name:?} of {operation} gives its cost as {cost}; a cost \
                     is a positive number, relative to 1 for the standard kernel"
                )));
            }
            let known = registry.implementations.entry(operation).or_default();
            if known.iter().any(|other| other.name() == name) {
                return Err(RuntimeError::Value(format!(
                    "{operation} has an implementation named {name:?} already; give this one \
                     another name"
                )));
            }
            known.push(implementation);
        }
        Ok(OperationBackend {
            registry: Arc::new(registry),
        })
    }

    /// This backend with the implementation of an operation fixed by name.
    ///
    /// # Errors
    /// [`RuntimeError::Link`] where the operation has no implementation of that name.
    pub fn with_selection(&self, operation: OpKind, name: &str) -> Result<Self, RuntimeError> {
        let available = self.available(operation);
        if !available.iter().any(|known| known.name() == name) {
            return Err(unknown(operation, name, available));
        }
        let mut registry = Registry::clone(&self.registry);
        registry.selected.insert(operation, name.into());
        Ok(OperationBackend {
            registry: Arc::new(registry),
        })
    }

    /// The operations that have an implementation.
    pub fn operations(&self) -> impl Iterator<Item = OpKind> {
        self.registry.implementations.keys().copied()
    }

    /// A text that stands for the registry: its implementations by name, with their costs and
    /// devices, and what is selected. Backends with one text link a Program alike.
    pub fn description(&self) -> String {
        let mut text = String::new();
        for (operation, known) in &self.registry.implementations {
            for known in known {
                let (name, cost, device) = (known.name(), known.cost(), known.device());
                text.push_str(&format!("{operation} {name:?} {cost} {device}\n"));
            }
        }
        for (operation, name) in &self.registry.selected {
            text.push_str(&format!("{operation} = {name:?}\n"));
        }
        text
    }

    /// What passes may know of this backend for a Program that runs in a place.
    ///
    /// An operation that has another implementation there than the standard kernel, or one selected
    /// by name, stays whole, so that it is the one that runs; so do all where nothing runs
    /// `rns.fused`.
    pub fn target(&self, place: DeviceKind) -> Target {
        let here = |operation: OpKind| {
            let known = self.available(operation).iter();
            known.filter(move |known| known.device() == place)
        };
        let standard = match place {
            DeviceKind::Cpu => fhelium_ckks::Context::NAME,
            DeviceKind::Cuda => fhelium_cuda::Context::NAME,
        };
        let nothing_fuses = here(Rns::Fused.into()).next().is_none();
        let is_whole = |operation: &OpKind| {
            nothing_fuses
                || self.registry.selected.contains_key(operation)
                || here(*operation).any(|known| known.name() != standard)
        };
        Target {
            rates: match place {
                DeviceKind::Cpu => Rates::CPU,
                DeviceKind::Cuda => Rates::GPU,
            },
            whole: (Ckks::ALL.iter().map(|&operation| operation.into()))
                .filter(is_whole)
                .collect(),
        }
    }

    /// The implementations of an operation, in the order in which they were added.
    pub fn available(&self, operation: OpKind) -> &[Arc<dyn Implementation>] {
        self.registry
            .implementations
            .get(&operation)
            .map_or(&[], Vec::as_slice)
    }

    /// Where an operation of an engine on `device` runs: operations on ciphertexts there, those on
    /// clear tensors where these are, which `tensors` says of each: on a device if any is there.
    pub fn place_of(
        operation: OpKind,
        device: DeviceKind,
        tensors: impl IntoIterator<Item = DeviceKind>,
    ) -> DeviceKind {
        let OpKind::Tensor(_) = operation else {
            return device;
        };
        let mut tensors = tensors.into_iter();
        let there = tensors.find(|&place| place != DeviceKind::Cpu);
        there.unwrap_or_default()
    }

    /// The implementation that runs an operation in a place on operands of these types.
    ///
    /// # Errors
    /// [`RuntimeError::Link`] where none there supports them, where the selected one does not, or where
    /// several support them at equal cost.
    pub fn resolve(
        &self,
        operation: OpKind,
        place: DeviceKind,
        operands: &[&Type],
        attributes: &Attributes,
    ) -> Result<&Arc<dyn Implementation>, RuntimeError> {
        let available = self.available(operation);
        if let Some(name) = self.registry.selected.get(&operation) {
            return self.resolve_named(operation, name, place, operands, attributes);
        }
        let mut best: Vec<&Arc<dyn Implementation>> = Vec::new();
        for candidate in available {
            if candidate.device() != place || !candidate.supports(operands, attributes) {
                continue;
            }
            match best
                .first()
                .map(|best| candidate.cost().total_cmp(&best.cost()))
            {
                None | Some(Ordering::Equal) => best.push(candidate),
                Some(Ordering::Less) => best = vec![candidate],
                Some(Ordering::Greater) => {}
            }
        }
        match best[..] {
            [only] => Ok(only),
            [] => Err(RuntimeError::Link(format!(
                "{operation}: no implementation on {place} supports {}; registered: {}",
                Types(operands),
                Names(available, Some(place))
            ))),
            [first, ..] => Err(RuntimeError::Link(format!(
                "{operation}: several implementations support {} at cost {}: {}; select one by \
                 name, or give them different costs",
                Types(operands),
                first.cost(),
                best.iter()
                    .map(|candidate| candidate.name())
                    .collect::<Vec<_>>()
                    .join(", ")
            ))),
        }
    }

    /// The implementation of this name, to run an operation on operands of these types.
    ///
    /// # Errors
    /// [`RuntimeError::Link`] where there is none of that name, or it does not support them.
    pub fn resolve_named(
        &self,
        operation: OpKind,
        name: &str,
        place: DeviceKind,
        operands: &[&Type],
        attributes: &Attributes,
    ) -> Result<&Arc<dyn Implementation>, RuntimeError> {
        let available = self.available(operation);
        let chosen = available
            .iter()
            .find(|known| known.name() == name)
            .ok_or_else(|| unknown(operation, name, available))?;
        if chosen.device() != place {
            return Err(RuntimeError::Link(format!(
                "{operation}: the selected implementation {name:?} runs on {}, and the operation \
                 on {place}; select one that runs there, or use an engine on {}",
                chosen.device(),
                chosen.device()
            )));
        }
        if !chosen.supports(operands, attributes) {
            return Err(RuntimeError::Link(format!(
                "{operation}: the selected implementation {name:?} does not support {}",
                Types(operands)
            )));
        }
        Ok(chosen)
    }

    /// Why an operation cannot run here, for people; empty if it can.
    pub fn diagnostics(
        &self,
        operation: OpKind,
        place: DeviceKind,
        operands: &[&Type],
        attributes: &Attributes,
    ) -> Vec<String> {
        match self.resolve(operation, place, operands, attributes) {
            Ok(_) => Vec::new(),
            Err(error) => vec![error.to_string()],
        }
    }
}

impl Default for OperationBackend {
    fn default() -> Self {
        OperationBackend::standard()
    }
}

impl fmt::Debug for OperationBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (operation, implementations) in &self.registry.implementations {
            let names: Vec<&str> = implementations.iter().map(|known| known.name()).collect();
            map.entry(operation, &names);
        }
        map.finish()
    }
}

fn unknown(operation: OpKind, name: &str, available: &[Arc<dyn Implementation>]) -> RuntimeError {
    RuntimeError::Link(format!(
        "{operation}: no implementation is named {name:?}; registered: {}",
        Names(available, None)
    ))
}

/// Implementations by name; those elsewhere than in a place with where they run.
struct Names<'a>(&'a [Arc<dyn Implementation>], Option<DeviceKind>);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (position, implementation) in self.0.iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            write!(f, "{comma}{}", implementation.name())?;
            if self.1.is_some_and(|place| place != implementation.device()) {
                write!(f, " (on {})", implementation.device())?;
            }
        }
        Ok(())
    }
}

struct Types<'a>(&'a [&'a Type]);

impl fmt::Display for Types<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (position, ty) in self.0.iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            write!(f, "{comma}{ty}")?;
        }
        f.write_str(")")
    }
}
