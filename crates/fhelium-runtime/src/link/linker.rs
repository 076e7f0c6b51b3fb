//! The linker.

use super::executable::{Executable, Parts};
use super::footprint::{KnownArrays, Reads};
use super::host_part::{Encoding, HostPart};
use super::kept::{LiveMaterial, MaterialSlot, Prologue};
use super::keys::{KeyTable, RequiredKey};
use super::manifest::{Manifest, ManifestEntry, Memory};
use super::places::Places;
use super::planned::plans;
use super::sources::Sources;
use super::tape::{Source, Step, Tape};
use crate::value::normalized;
use crate::{Device, DeviceKind, Engine, MaterialBinding, OperationBackend, RuntimeError, Value};
use fhelium_ckks::SecretId;
use fhelium_ir::state::LinearProgram;
use fhelium_ir::{Body, Ckks, Core, KeyKind, Level, Op, OpKind, Program, Type, Uses, ValueId};
use fhelium_passes::Compilation;
use fhelium_passes::analysis::{linear_program, operation_cost};
use fhelium_passes::plan::{BufferPlan, Route};
use indexmap::IndexMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// How a Program is linked.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkOptions<'a> {
    /// Arguments of the kind that the executable is for: it takes clear arrays that are where
    /// theirs are, and those in host memory where none are given. The keys of their secret are
    /// looked up now, so that missing ones are reported before the first run.
    pub arguments: Option<&'a [Value]>,
    /// Whether live materials are read once, here, and never again.
    pub frozen_materials: bool,
    /// The manifest of an earlier link of the same compilation, whose choices of implementations
    /// by name are kept.
    pub relink: Option<&'a Manifest>,
}

/// Links a compilation whose Program is at the `ckks` level: selects an implementation for every
/// operation, resolves its materials and plans its buffers.
///
/// # Errors
/// [`RuntimeError::Link`] where an operation has no implementation or a material is not bound;
/// [`RuntimeError::KeyMismatch`] where the Program is for other parameters than the engine's;
/// [`MissingKeys`](crate::MissingKeys) with all keys that are missing, where arguments are given.
pub fn link(
    compilation: &Compilation,
    backend: &OperationBackend,
    engine: &Arc<Engine>,
    options: LinkOptions<'_>,
) -> Result<Executable, RuntimeError> {
    let program = compilation.program();
    check_program(program, engine)?;
    let (prologue, buffers) = plans(compilation, options);
    let mut linker = Linker {
        compilation,
        program,
        backend,
        engine,
        options,
        plan: &prologue,
        buffers: &buffers,
        uses: program.body().uses(),
        places: Places::new(program, engine, options.arguments),
        sources: Sources::default(),
        reads: Reads::default(),
        materials: Vec::new(),
        live: Vec::new(),
        keys: IndexMap::new(),
        entries: Vec::new(),
        secrets: Vec::new(),
    };
    let executable = linker.link()?;
    if let Some(arguments) = options.arguments {
        executable.check_keys(arguments)?;
    }
    Ok(executable)
}

fn check_program(program: &Program, engine: &Engine) -> Result<(), RuntimeError> {
    if let Some(chain) = program.chain()
        && **chain != *engine.parameters().chain()
    {
        return Err(RuntimeError::KeyMismatch(format!(
            "the program {} was made for other parameters (N = 2^{}, depth {}) than the engine's \
             ({}); link it to an engine of its own parameters",
            program.name(),
            chain.log_n(),
            chain.depth(),
            engine.parameters()
        )));
    }
    let mut ops = program.body().ops().iter();
    if let Some(op) = ops.find(|op| op.kind().level() == Some(Level::He)) {
        return Err(RuntimeError::Link(format!(
            "{}: he operations do not run as they are; let the pipeline contain lower-to-ckks",
            op.kind()
        ))
        .at(op.location()));
    }
    Ok(())
}

struct Linker<'a> {
    compilation: &'a Compilation,
    program: &'a Program,
    backend: &'a OperationBackend,
    engine: &'a Arc<Engine>,
    options: LinkOptions<'a>,
    plan: &'a fhelium_passes::plan::Prologue,
    buffers: &'a BufferPlan,
    uses: Uses,
    places: Places,
    sources: Sources,
    /// What the steps where the engine computes read.
    reads: Reads,
    materials: Vec<MaterialSlot>,
    live: Vec<LiveMaterial>,
    keys: IndexMap<KeyKind, RequiredKey>,
    entries: Vec<ManifestEntry>,
    secrets: Vec<(String, SecretId)>,
}

impl Linker<'_> {
    fn link(&mut self) -> Result<Executable, RuntimeError> {
        let program = self.program;
        let body = program.body();
        for (place, argument) in body.arguments().enumerate() {
            let source = Source::Argument(place as u32);
            self.sources.put(argument, self.places.of(argument), source);
        }
        for op in body.ops() {
            if op.kind() == OpKind::Core(Core::Material) {
                self.material(op).map_err(|error| error.at(op.location()))?;
            }
        }
        let runs_on = self.places.runs_on(program, &self.uses)?;
        let mut prologue_steps = Vec::new();
        for &place in &self.plan.operations {
            for &runs_on in &runs_on[place] {
                prologue_steps.push(self.prologue_step(place, runs_on)?);
            }
        }
        let (mut host_steps, mut steps) = (Vec::new(), Vec::new());
        let in_each_call = |place: &usize| !self.plan.contains(*place);
        let in_each_call: Vec<usize> = (0..body.ops().len()).filter(in_each_call).collect();
        // What a device does not depend on comes first.
        if self.engine.cuda().is_some() {
            for &place in &in_each_call {
                if runs_on[place].contains(&DeviceKind::Cpu) {
                    host_steps.push(self.host_step(place)?);
                }
            }
        }
        let main = self.engine.device().kind();
        for &place in &in_each_call {
            if runs_on[place].contains(&main) {
                steps.push(self.step(place)?);
            }
        }
        let mut results = Vec::with_capacity(program.results().len());
        for &value in program.results() {
            results.push(self.sources.get(value, self.places.of(value))?);
        }
        let (prologue_slots, kept) = self.sources.finish_prologue();
        let (host_slots, staged) = self.sources.finish_host();
        let required: Vec<RequiredKey> = self.keys.values().cloned().collect();
        let told = |material: &MaterialSlot| {
            let live = matches!(material.binding, MaterialBinding::Live(_));
            (material.symbol.clone(), live)
        };
        let untold = |material: &LiveMaterial| (material.symbol.clone(), true);
        let tape = Tape {
            steps,
            slots: self.buffers.slots.len(),
            results,
        };
        let prologue = Prologue::new(
            std::mem::take(&mut self.materials),
            prologue_steps,
            prologue_slots,
            kept,
        );
        let known = KnownArrays {
            arguments: self.options.arguments,
            live: &self.live,
            staged: &staged,
            prologue: &prologue,
        };
        let on_device = self.reads.bytes_taken(&tape, known, self.engine);
        let manifest = Manifest {
            operations: std::mem::take(&mut self.entries),
            keys: required.clone(),
            materials: prologue
                .materials
                .iter()
                .map(told)
                .chain(self.live.iter().map(untold))
                .collect(),
            memory: Memory {
                inputs: self.buffers.input_bytes,
                peak: on_device.unwrap_or(self.buffers.peak_bytes),
                resident: self.buffers.resident_bytes,
            },
        };
        Ok(Executable::new(Parts {
            engine: self.engine.clone(),
            name: program.name().into(),
            inputs: program.inputs().into(),
            inputs_on: body
                .arguments()
                .map(|value| self.places.of(value))
                .collect(),
            prologue,
            live: std::mem::take(&mut self.live),
            host_part: HostPart {
                steps: host_steps,
                slots: host_slots,
                staged,
            },
            tape,
            keys: KeyTable::new(required),
            outputs: program.outputs().clone(),
            secrets: std::mem::take(&mut self.secrets),
            manifest,
        }))
    }

    /// A reference to a material: bound, or a key that is looked up at each call.
    fn material(&mut self, op: &Op) -> Result<(), RuntimeError> {
        let (Some(symbol), [result]) = (op.attributes().symbol("symbol"), op.results()) else {
            return Ok(());
        };
        let ty = match self.program.type_of(*result) {
            Type::Key(kind) => Type::Key(normalized(*kind, self.engine.parameters())),
            other => other.clone(),
        };
        let bound = self
            .compilation
            .material_bindings
            .get::<MaterialBinding>(symbol);
        let binding = match (bound, &ty) {
            (Some(binding), _) if self.options.frozen_materials => binding.frozen()?,
            (Some(binding), _) => MaterialBinding::clone(&binding),
            (None, Type::Key(kind)) => {
                self.required_key(*kind, *result);
                return Ok(());
            }
            (None, _) => {
                return Err(RuntimeError::Link(format!(
                    "the material @{symbol} ({ty}) is not bound; bound are: {}",
                    list(self.compilation.material_bindings.names())
                )));
            }
        };
        let value = binding.current()?;
        if !value.has_type(&ty) {
            return Err(RuntimeError::Link(format!(
                "the material @{symbol} is declared as {ty}, but bound to {}",
                value.ty()
            )));
        }
        let named = format!("the material @{symbol}");
        self.engine.check_parameters(&value, &named)?;
        self.engine
            .check_places(&self.program.name(), [(&named, &value)])?;
        if let Some(secret) = value.secret_id() {
            self.secrets.push((named, secret));
        }
        if let Value::Tensor(array) = &value {
            self.places.put(*result, array.device().kind());
        }
        if let Some(source) = binding.changing() {
            let (place, index) = (self.places.of(*result), self.live.len() as u32);
            self.sources.put(*result, place, Source::Live(index));
            self.live.push(LiveMaterial {
                symbol: symbol.clone(),
                ty,
                source: source.clone(),
                place,
            });
            return Ok(());
        }
        let slot = self.sources.prologue_slot(*result, self.places.of(*result));
        self.materials.push(MaterialSlot {
            symbol: symbol.clone(),
            ty,
            binding,
            slot,
        });
        Ok(())
    }

    fn required_key(&mut self, kind: KeyKind, value: ValueId) {
        let entry = self.keys.entry(kind);
        let place = entry.index() as u32;
        let required = entry.or_insert_with(|| RequiredKey {
            kind,
            locations: Vec::new(),
        });
        let body = self.program.body();
        // A hoisted rotation stands for several lines; each key's reference keeps its own.
        let users = self.uses.of(value).iter().map(|&user| &body.ops()[user]);
        let users = users.filter(|op| op.kind() != OpKind::Ckks(Ckks::RotateHoisted));
        for op in body.definition(value).into_iter().chain(users) {
            if let Some(location) = op.location()
                && !required.locations.contains(location)
            {
                required.locations.push(location.clone());
            }
        }
        self.sources
            .put(value, self.places.of(value), Source::Key(place));
    }

    fn prologue_step(&mut self, place: usize, runs_on: DeviceKind) -> Result<Step, RuntimeError> {
        let op = &self.program.body().ops()[place];
        let mut operands = SmallVec::new();
        for &value in op.operands() {
            let is_there = self.sources.has_prologue_slot(value, runs_on);
            let found = if is_there {
                runs_on
            } else {
                self.places.of(value)
            };
            let slot = self.sources.prologue_slot(value, found);
            operands.push(Source::Frame(slot));
        }
        let results = op.results().iter();
        let results = results.map(|&value| Some(self.sources.prologue_slot(value, runs_on)));
        let results = results.collect();
        self.select(place, true, runs_on, operands, results)
    }

    /// A step on the host of a program for a device.
    fn host_step(&mut self, place: usize) -> Result<Step, RuntimeError> {
        let op = &self.program.body().ops()[place];
        let mut operands = SmallVec::new();
        for &value in op.operands() {
            operands.push(self.sources.for_host(value)?);
        }
        let results = op.results().iter();
        let results = results.map(|&value| Some(self.sources.host_slot(value)));
        let results = results.collect();
        self.select(place, false, DeviceKind::Cpu, operands, results)
    }

    /// A step where the engine computes.
    fn step(&mut self, place: usize) -> Result<Step, RuntimeError> {
        let op = &self.program.body().ops()[place];
        let runs_on = self.engine.device().kind();
        let mut operands = SmallVec::<[Source; 4]>::new();
        for &value in op.operands() {
            let goes_up = runs_on != self.places.of(value);
            operands.push(match goes_up {
                true => self.sources.for_device(value, encoding(op))?,
                false => self.sources.get(value, runs_on)?,
            });
        }
        for (&source, &value) in operands.iter().zip(op.operands()) {
            self.reads.put(source, self.program.type_of(value));
        }
        let released = &self.buffers.releases[place];
        for value in released {
            // Moved out where the operation reads it for the last time.
            let last = op.operands().iter().rposition(|operand| operand == value);
            if let Some(position) = last
                && let Source::Frame(slot) = operands[position]
            {
                operands[position] = Source::LastUse(slot);
            }
        }
        let mut results = SmallVec::new();
        for &value in op.results() {
            let slot = self.buffers.values[value.index()]
                .slot
                .map(|slot| slot as u32);
            if let Some(slot) = slot {
                self.sources.put(value, runs_on, Source::Frame(slot));
            }
            results.push(slot.filter(|_| !released.contains(&value)));
        }
        self.select(place, false, runs_on, operands, results)
    }

    /// The step with its implementation: the one of an earlier link, else the one that a pass
    /// chose by name, else the backend's choice.
    fn select(
        &mut self,
        place: usize,
        prologue: bool,
        runs_on: DeviceKind,
        operands: SmallVec<[Source; 4]>,
        results: SmallVec<[Option<u32>; 1]>,
    ) -> Result<Step, RuntimeError> {
        let op = &self.program.body().ops()[place];
        let types: SmallVec<[&Type; 4]> = op
            .operands()
            .iter()
            .map(|&value| self.program.type_of(value))
            .collect();
        let device = self.engine.device();
        // What was chosen for another kind of device is no choice for this one.
        let earlier = self
            .options
            .relink
            .and_then(|manifest| manifest.operations.get(self.entries.len()))
            .filter(|entry| entry.operation == op.kind() && entry.device.kind() == runs_on)
            .map(|entry| &*entry.implementation);
        let routes = self.compilation.plans().routes.as_deref();
        let route = match routes.and_then(|routes| routes.route(place)) {
            Some(Route::Named(name)) => Some(name.as_str()),
            Some(Route::Native) | None => None,
        };
        let implementation = match earlier.or(route) {
            Some(name) => {
                self.backend
                    .resolve_named(op.kind(), name, runs_on, &types, op.attributes())
            }
            None => self
                .backend
                .resolve(op.kind(), runs_on, &types, op.attributes()),
        }
        .map_err(|error| error.at(op.location()))?;
        self.entries.push(ManifestEntry {
            operation: op.kind(),
            implementation: implementation.name().into(),
            device: match runs_on {
                DeviceKind::Cpu => Device::Cpu,
                DeviceKind::Cuda => device,
            },
            prologue,
            location: op.location().cloned(),
            cost: operation_cost(
                op,
                self.program.body(),
                self.program.chain().map(AsRef::as_ref),
            ),
        });
        Ok(Step {
            implementation: implementation.clone(),
            operands,
            attributes: op.attributes().clone(),
            region: op.region().map(|region| fused(op, region)).transpose()?,
            result_types: op
                .results()
                .iter()
                .map(|&value| self.program.type_of(value).clone())
                .collect(),
            results,
            location: op.location().cloned(),
        })
    }
}

/// The encoding that an operation is.
fn encoding(op: &Op) -> Option<Encoding> {
    if op.kind() != OpKind::Ckks(Ckks::Encode) {
        return None;
    }
    Some(Encoding {
        level: usize::try_from(op.attributes().int("level")?).ok()?,
        scale: op.attributes().scale("scale")?.clone(),
        location: op.location().cloned(),
    })
}

/// What a region computes.
fn fused(op: &Op, region: &Body) -> Result<LinearProgram, RuntimeError> {
    linear_program(region)
        .map_err(|reason| RuntimeError::Link(format!("{}: {reason}", op.kind())).at(op.location()))
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("@{name}")).collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}
