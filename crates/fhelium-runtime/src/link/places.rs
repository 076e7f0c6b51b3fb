//! Where the clear tensors of a Program are, and its operations run.
//!
//! A Program's types do not say where an array is: it depends on the arguments that the Program is
//! linked for and on what its materials are bound to. Operations on arrays run where these are.

use crate::backend::apart;
use crate::{Device, DeviceKind, Engine, OperationBackend, RuntimeError, Value};
use fhelium_ir::{Core, Op, OpKind, Program, Tensor, Type, Uses, ValueId};
use smallvec::SmallVec;

/// The place of each value.
pub(super) struct Places {
    device: Device,
    /// By the value's number; what is not known yet is where the engine computes.
    kinds: Vec<DeviceKind>,
}

impl Places {
    /// With arguments where these are; arrays are in host memory where none are given.
    pub fn new(program: &Program, engine: &Engine, arguments: Option<&[Value]>) -> Self {
        let device = engine.device();
        let body = program.body();
        let mut places = Places {
            device,
            kinds: vec![device.kind(); body.values().len()],
        };
        for (place, value) in body.arguments().enumerate() {
            if let Type::Tensor { .. } = body.type_of(value) {
                let given = arguments.and_then(|arguments| arguments.get(place));
                places.put(
                    value,
                    given.map_or(DeviceKind::Cpu, |given| given.device().kind()),
                );
            }
        }
        places
    }

    /// Says where a value is.
    pub fn put(&mut self, value: ValueId, place: DeviceKind) {
        self.kinds[value.index()] = place;
    }

    /// Where a value is.
    pub fn of(&self, value: ValueId) -> DeviceKind {
        self.kinds[value.index()]
    }

    /// Where each operation runs, which a reference to a material does nowhere. A number of the
    /// program's own is made wherever it is read.
    pub fn runs_on(
        &mut self,
        program: &Program,
        uses: &Uses,
    ) -> Result<Vec<SmallVec<[DeviceKind; 2]>>, RuntimeError> {
        let body = program.body();
        let mut places = Vec::with_capacity(body.ops().len());
        for op in body.ops() {
            let mut runs_on = SmallVec::<[DeviceKind; 2]>::new();
            if op.kind() != OpKind::Core(Core::Material) {
                let place = self.run(program, op);
                runs_on.push(place.map_err(|error| error.at(op.location()))?);
            }
            places.push(runs_on);
        }
        for (place, op) in body.ops().iter().enumerate() {
            let [number] = op.results() else { continue };
            if op.kind() != OpKind::Tensor(Tensor::Constant) {
                continue;
            }
            let read_by = uses.of(*number).iter();
            let mut wanted: SmallVec<[DeviceKind; 2]> = read_by
                .map(|&user| match body.ops()[user].kind() {
                    OpKind::Tensor(_) => places[user][0],
                    _ => DeviceKind::Cpu,
                })
                .collect();
            if wanted.is_empty() || program.results().contains(number) {
                wanted.push(DeviceKind::Cpu);
            }
            wanted.sort();
            wanted.dedup();
            places[place] = wanted;
        }
        Ok(places)
    }

    /// Where an operation runs, and says of its results that they are there.
    ///
    /// # Errors
    /// [`RuntimeError::Device`] for arrays in two places: only single numbers go along.
    fn run(&mut self, program: &Program, op: &Op) -> Result<DeviceKind, RuntimeError> {
        let operands = op.operands();
        let kinds = operands.iter().map(|&value| self.of(value));
        let place = OperationBackend::place_of(op.kind(), self.device.kind(), kinds);
        if let OpKind::Tensor(_) = op.kind()
            && place != DeviceKind::Cpu
        {
            let there = |value: &ValueId| self.of(*value) == place;
            let here = |value: &ValueId| {
                let ty = program.type_of(*value);
                !there(value) && !matches!(ty, Type::Tensor { shape, .. } if shape.is_empty())
            };
            if let Some(here) = operands.iter().position(here) {
                let there = operands.iter().position(there).unwrap_or_default();
                return Err(apart(op.kind(), here, there, self.device));
            }
        }
        for &result in op.results() {
            self.put(result, place);
        }
        Ok(place)
    }
}
