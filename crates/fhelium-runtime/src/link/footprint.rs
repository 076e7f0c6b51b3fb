//! The memory of a device that a run takes, known before it.
//!
//! A plan counts the values of a program; what a device's operations work in, and what a recording of
//! them shares, only these know. So the tape is followed on operands that stand for a call's.

use super::host_part::Staged;
use super::kept::{LiveMaterial, Prologue};
use super::prediction::DEVICE_KERNEL;
use super::replay::made;
use super::tape::{Bound, Frame, Outside, Source, Step, Tape};
use crate::placed::Placed;
use crate::{Engine, MaterialBinding, RuntimeError, Value};
use fhelium_ckks::SecretId;
use fhelium_cuda::StandIns;
use fhelium_ir::{KeyKind, OpKind, Type};
use std::collections::HashMap;
use std::sync::Arc;

/// What a tape reads beside the values that it makes, by type.
#[derive(Debug, Default)]
pub(super) struct Reads(HashMap<Source, Type>);

/// What is known of the arrays that a call reads: how they lie in memory.
#[derive(Clone, Copy)]
pub(super) struct KnownArrays<'a> {
    pub arguments: Option<&'a [Value]>,
    pub live: &'a [LiveMaterial],
    pub staged: &'a [Staged],
    pub prologue: &'a Prologue,
}

/// Values in the places of a call's.
struct Places(HashMap<Source, Value>);

/// Stands for the secret of a call, on which no memory depends.
const ANY_SECRET: SecretId = SecretId::from_bytes([0; 16]);

impl Reads {
    /// Says that the tape reads a value of a type.
    pub fn put(&mut self, source: Source, ty: &Type) {
        if !matches!(source, Source::Frame(_) | Source::LastUse(_)) {
            self.0.entry(source).or_insert_with(|| ty.clone());
        }
    }

    /// Bytes of the engine's device that a run of the tape takes, at the most at one time: results, what
    /// it works in, and arrays that go up for it.
    ///
    /// `None` on the CPU, and where it shows only in a run: for values of any level, and for other
    /// implementations than the device's kernels.
    pub fn bytes_taken(&self, tape: &Tape, known: KnownArrays<'_>, engine: &Engine) -> Option<u64> {
        let context = engine.cuda()?;
        if !tape.steps.iter().all(is_on_device) {
            return None;
        }
        // Before the queue is held: some arrays are asked of Python, which others hold while they wait
        // for the queue.
        let mut reads = Vec::with_capacity(self.0.len());
        for (&source, ty) in &self.0 {
            reads.push((source, ty, known.at(source, engine)));
        }
        let mut staged = 0;
        let operands = |make: StandIns<'_>| {
            let mut places = known.kept(make, engine)?;
            for (source, ty, known) in reads {
                if places.contains_key(&source) {
                    continue;
                }
                let value = stand_in(make, ty, known, engine)?;
                if let (Source::Staged(_), Value::Tensor(Placed::Cuda(array))) = (source, &value) {
                    staged += array.buffer().nbytes();
                }
                places.insert(source, value);
            }
            Ok::<_, RuntimeError>(Places(places))
        };
        let work = |places: &Places| made(tape, places, engine);
        // What is wrong with values shows in a run.
        let taken = context.measure(operands, work).ok()?;
        Some((staged + taken) as u64)
    }
}

fn is_on_device(step: &Step) -> bool {
    step.implementation.name() == DEVICE_KERNEL
}

impl KnownArrays<'_> {
    fn at(&self, source: Source, engine: &Engine) -> Option<Value> {
        match source {
            Source::Argument(index) => self.arguments?.get(index as usize).cloned(),
            Source::Live(index) => self.live.get(index as usize)?.read(engine).ok(),
            Source::Staged(index) => self.at(self.staged.get(index as usize)?.source, engine),
            _ => None,
        }
    }

    /// The kept arrays on the device: captured ones, the program's numbers, and what the prologue makes
    /// of these.
    fn kept(
        &self,
        make: StandIns<'_>,
        engine: &Engine,
    ) -> Result<HashMap<Source, Value>, RuntimeError> {
        let mut frame = Frame::new(Bound::default(), self.prologue.slots);
        for material in &self.prologue.materials {
            if let MaterialBinding::Fixed(value @ Value::Tensor(Placed::Cuda(_))) =
                &material.binding
            {
                let known = Some(value.clone());
                frame.put(material.slot, stand_in(make, &material.ty, known, engine)?);
            }
        }
        for step in &self.prologue.steps {
            let is_of_array = matches!(step.implementation.operation(), OpKind::Tensor(_));
            if is_of_array && is_on_device(step) {
                // Of one that needs what is not there the type has to do.
                let _ = frame.run(step, engine);
            }
        }
        let kept = self.prologue.kept.iter().zip(0..);
        let on_device = kept.filter(|(kept, _)| kept.staged.is_none());
        Ok(on_device
            .filter_map(|(kept, index)| {
                let value = frame.take(Source::Frame(kept.slot)).ok()?;
                Some((Source::Kept(index), value))
            })
            .collect())
    }
}

impl Outside for &Places {
    fn get(&self, source: Source) -> Option<Value> {
        self.0.get(&source).cloned()
    }
}

/// A value of a type on the device; an array lies as the known one does.
fn stand_in(
    make: StandIns<'_>,
    ty: &Type,
    known: Option<Value>,
    engine: &Engine,
) -> Result<Value, RuntimeError> {
    Ok(match (ty, known) {
        (
            Type::Ciphertext {
                batch,
                state: Some(state),
            },
            _,
        ) => {
            let value = make.ciphertext(ANY_SECRET, state.clone(), batch.clone())?;
            Value::Ciphertext(Placed::Cuda(Arc::new(value)))
        }
        (
            Type::Plaintext {
                batch,
                state: Some(state),
            },
            _,
        ) => {
            let value = make.plaintext(state.clone(), batch.clone())?;
            Value::Plaintext(Placed::Cuda(Arc::new(value)))
        }
        (Type::Key(kind), _) => {
            let key = make.key(ANY_SECRET, key_kind(*kind, engine))?;
            Value::Key(Placed::Cuda(Arc::new(key)))
        }
        (Type::Tensor { .. }, Some(Value::Tensor(here @ Placed::Host(_)))) => {
            Value::Tensor(engine.place(&here)?)
        }
        (Type::Tensor { .. }, Some(Value::Tensor(Placed::Cuda(there)))) => {
            let value = make.like(&there.trimmed())?;
            Value::Tensor(Placed::Cuda(Arc::new(value)))
        }
        (Type::Tensor { dtype, shape }, _) => {
            let value = make.tensor(*dtype, shape)?;
            Value::Tensor(Placed::Cuda(Arc::new(value)))
        }
        (unknown, _) => {
            let text = format!("{unknown} does not say how many bytes a value has");
            return Err(RuntimeError::Link(text));
        }
    })
}

fn key_kind(kind: KeyKind, engine: &Engine) -> fhelium_ckks::KeyKind {
    match kind {
        KeyKind::Relinearization => fhelium_ckks::KeyKind::Relinearization,
        KeyKind::Rotation { step } => fhelium_ckks::KeyKind::rotation(step, engine.slots()),
        KeyKind::Conjugation => fhelium_ckks::KeyKind::Conjugation,
    }
}
