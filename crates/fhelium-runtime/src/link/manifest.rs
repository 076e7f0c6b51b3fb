//! What an executable is made of, for people.

use super::RequiredKey;
use crate::Device;
use fhelium_ir::{Location, OpKind};
use fhelium_passes::analysis::Cost;
use std::fmt;
use std::sync::Arc;

/// The choices of the linker and what a run needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Every operation in the order in which it runs, the prologue's first.
    pub operations: Vec<ManifestEntry>,
    /// Evaluation keys that a call looks up by its ciphertexts' secret.
    pub keys: Vec<RequiredKey>,
    /// The symbols of the materials that it reads, and whether they may change between calls.
    pub materials: Vec<(Arc<str>, bool)>,
    /// Bytes of a run.
    pub memory: Memory,
}

/// One operation and what runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestEntry {
    /// The operation.
    pub operation: OpKind,
    /// The implementation's name.
    pub implementation: Arc<str>,
    /// Where it runs.
    pub device: Device,
    /// Whether it runs only when a material changes.
    pub prologue: bool,
    /// The source line that made it.
    pub location: Option<Location>,
    /// The work in it.
    pub cost: Cost,
}

/// Bytes that a run holds, as planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Of the arguments, which the caller holds.
    pub inputs: u64,
    /// Of results, intermediate values and what operations work in, at the most at one time. On a device
    /// it is the device's memory, with the workspace of a replay, which runs one by one stay below; where
    /// other implementations than its kernels run, it is the buffer plan's.
    pub peak: u64,
    /// Of what the prologue keeps between calls.
    pub resident: u64,
}

impl Manifest {
    /// Each operation and implementation once, with how often it occurs, in order of appearance.
    pub fn summary(&self) -> Vec<(OpKind, Arc<str>, usize)> {
        let mut summary = indexmap::IndexMap::new();
        for entry in &self.operations {
            *summary
                .entry((entry.operation, entry.implementation.clone()))
                .or_insert(0) += 1;
        }
        summary
            .into_iter()
            .map(|((operation, implementation), count)| (operation, implementation, count))
            .collect()
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (operation, implementation, count) in self.summary() {
            writeln!(f, "{count:>6} x {operation} -> {implementation}")?;
        }
        for key in &self.keys {
            writeln!(f, "key {}", key.kind)?;
        }
        let Memory {
            inputs,
            peak,
            resident,
        } = self.memory;
        write!(
            f,
            "bytes: inputs {inputs}, peak {peak}, kept between calls {resident}"
        )
    }
}
