//! Programs and Compilations.
//!
//! A Program is kept as its text, which is read and verified like any other. Of plans only what
//! they follow from is kept: they are made anew, so that a plan that does not fit its Program
//! cannot come from a file.

use super::container::{Incoming, Part};
use super::error::Result;
use super::keys::KeyRecord;
use super::reports::ReportRecord;
use super::values::{
    CiphertextRecord, ParametersRecord, PlaintextRecord, TensorRecord, same_parameters,
};
use crate::engine::{Carrier, ToHost};
use crate::{Array, Engine, MaterialBinding, RuntimeError, Value};
use fhelium_ckks::Parameters;
use fhelium_ckks::security::SecurityLevel;
use fhelium_ir::Program;
use fhelium_passes::Compilation;
use fhelium_passes::plan::{BufferPlan, Plans, Prologue, RoutePlan};
use safetensors::Dtype;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const PROGRAM: &str = "program";

/// What a file says of its Program, for people; reading goes by the text alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ProgramRecord {
    name: String,
    level: String,
    operations: usize,
    inputs: Vec<(String, String)>,
}

impl ProgramRecord {
    /// `text` is the Program's.
    pub fn write<'a>(program: &Program, text: &'a str, parts: &mut Vec<Part<'a>>) -> Self {
        parts.push(Part::new(
            PROGRAM,
            Dtype::U8,
            vec![text.len()],
            text.as_bytes(),
        ));
        let inputs = program.inputs().iter();
        ProgramRecord {
            name: program.name().to_owned(),
            level: program.level().to_string(),
            operations: program.body().ops().len(),
            inputs: inputs
                .map(|input| (input.name.to_string(), input.ty.to_string()))
                .collect(),
        }
    }
}

/// The Program of a file.
pub(super) fn read_program(incoming: &mut Incoming<'_>) -> Result<Program> {
    let text = incoming.text(PROGRAM)?;
    Program::parse(&text).map_err(|error| {
        incoming.refuse("program", error, "a Program of this version's operations")
    })
}

/// What plans follow from.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct PlansRecord {
    /// The memory that the prologue may keep, where there is one.
    prologue_bytes: Option<u64>,
    /// The operations that do not take the native route, where routes were selected.
    routes: Option<Vec<(usize, String)>>,
    /// Whether buffers are planned.
    buffers: bool,
}

impl From<&Plans> for PlansRecord {
    fn from(plans: &Plans) -> Self {
        let routes = plans.routes.as_ref().map(|routes| {
            let named = routes.named();
            named
                .map(|(place, name)| (place, name.to_owned()))
                .collect()
        });
        PlansRecord {
            prologue_bytes: plans.prologue.as_ref().map(|plan| plan.max_resident_bytes),
            routes,
            buffers: plans.buffers.is_some(),
        }
    }
}

impl PlansRecord {
    /// The plans of a Program.
    pub fn plans(&self, program: &Program) -> Plans {
        let prologue = self
            .prologue_bytes
            .map(|bytes| Prologue::of(program, bytes));
        let buffers = self
            .buffers
            .then(|| Arc::new(BufferPlan::of(program, prologue.as_ref())));
        let routes = self.routes.clone();
        Plans {
            buffers,
            prologue: prologue.map(Arc::new),
            routes: routes.map(|named| Arc::new(RoutePlan::from_named(program, named))),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct MaterialRecord {
    symbol: String,
    #[serde(flatten)]
    value: ValueRecord,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum ValueRecord {
    Ciphertext(CiphertextRecord),
    Plaintext(PlaintextRecord),
    Tensor(TensorRecord),
    Key(KeyRecord),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CompilationRecord {
    program: ProgramRecord,
    /// Those of the materials that are encrypted, encoded or keys, where there are some.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    parameters: Option<ParametersRecord>,
    materials: Vec<MaterialRecord>,
    plans: PlansRecord,
    reports: Vec<ReportRecord>,
}

/// What a Compilation's materials hold now, and its text: what its parts borrow from.
pub(super) struct CompilationData {
    text: String,
    materials: Vec<(String, Value)>,
    parameters: Option<Parameters>,
}

impl CompilationData {
    pub fn of(compilation: &Compilation) -> Result<Self> {
        let bindings = &compilation.material_bindings;
        let mut materials = Vec::new();
        for symbol in bindings.names() {
            let Some(binding) = bindings.get::<MaterialBinding>(symbol) else {
                continue;
            };
            let value = match binding.current()? {
                Value::Tensor(array) => Value::from(array_on_host(&array)?.to_contiguous()),
                other => other,
            };
            materials.push((symbol.to_owned(), value));
        }
        let clear = |(_, value): &(String, Value)| matches!(value, Value::Tensor(_));
        let parameters = match materials.iter().all(clear) {
            true => None,
            false => Some(parameters_of(compilation.program())?),
        };
        if let Some(parameters) = &parameters {
            for (_, value) in &mut materials {
                *value = ToHost(parameters).carry_value(value)?;
            }
        }
        Ok(CompilationData {
            text: compilation.program().to_text(),
            materials,
            parameters,
        })
    }
}

fn array_on_host(array: &Array) -> Result<Arc<crate::tensor::Tensor>> {
    let engine = match array {
        Array::Host(here) => return Ok(here.clone()),
        Array::Cuda(_) => Engine::for_arrays(array.device())?,
    };
    Ok(array.to_host(engine.parameters())?)
}

/// The parameters that a Program's chain is of. They are those of values that exist, so they were
/// accepted at whatever security they have.
fn parameters_of(program: &Program) -> Result<Parameters> {
    let chain = program.chain().ok_or_else(|| {
        RuntimeError::Value(format!(
            "the program {} has encrypted materials and no modulus chain",
            program.name()
        ))
    })?;
    let parameters = Parameters::from_primes(
        chain.log_n(),
        chain.moduli().to_vec(),
        chain.special_moduli().to_vec(),
        chain.scale().clone(),
        SecurityLevel::default(),
        true,
    );
    Ok(parameters.map_err(RuntimeError::from)?)
}

impl CompilationRecord {
    pub fn write<'a>(
        compilation: &Compilation,
        data: &'a CompilationData,
        parts: &mut Vec<Part<'a>>,
    ) -> Result<Self> {
        let mut materials = Vec::with_capacity(data.materials.len());
        for (place, (symbol, value)) in data.materials.iter().enumerate() {
            let prefix = material_prefix(place);
            materials.push(MaterialRecord {
                symbol: symbol.clone(),
                value: ValueRecord::write(value, data.parameters.as_ref(), &prefix, parts)?,
            });
        }
        Ok(CompilationRecord {
            program: ProgramRecord::write(compilation.program(), &data.text, parts),
            parameters: data.parameters.as_ref().map(ParametersRecord::from),
            materials,
            plans: compilation.plans().into(),
            reports: compilation.reports().iter().map(Into::into).collect(),
        })
    }

    pub fn read(&self, incoming: &mut Incoming<'_>) -> Result<Compilation> {
        let program = read_program(incoming)?;
        let parameters = match &self.parameters {
            Some(record) => Some(record.read(incoming.file)?),
            None => None,
        };
        let plans = self.plans.plans(&program);
        let mut compilation = Compilation::new(program);
        for (place, material) in self.materials.iter().enumerate() {
            let prefix = material_prefix(place);
            let value = material
                .value
                .read(parameters.as_ref(), &prefix, incoming)?;
            let binding = Arc::new(MaterialBinding::Fixed(value));
            let bindings = &mut compilation.material_bindings;
            if bindings.insert(&*material.symbol, binding).is_some() {
                let found = format!("@{} twice", material.symbol);
                return Err(incoming.refuse("materials", found, "each symbol once"));
            }
        }
        compilation.restore(plans, self.reports.iter().map(Into::into).collect());
        Ok(compilation)
    }
}

fn material_prefix(place: usize) -> String {
    format!("material-{place}")
}

impl ValueRecord {
    fn write<'a>(
        value: &'a Value,
        parameters: Option<&Parameters>,
        prefix: &str,
        parts: &mut Vec<Part<'a>>,
    ) -> Result<Self> {
        let own = || {
            parameters.ok_or_else(|| {
                RuntimeError::Value("an encrypted material has no parameters".to_owned())
            })
        };
        Ok(match value {
            Value::Ciphertext(value) => {
                let parameters = own()?;
                same_parameters(value.parameters_id(), parameters)?;
                ValueRecord::Ciphertext(CiphertextRecord::write(
                    value.host()?,
                    parameters,
                    prefix,
                    parts,
                ))
            }
            Value::Plaintext(value) => {
                let parameters = own()?;
                same_parameters(value.parameters_id(), parameters)?;
                ValueRecord::Plaintext(PlaintextRecord::write(
                    value.host()?,
                    parameters,
                    prefix,
                    parts,
                ))
            }
            Value::Tensor(value) => {
                ValueRecord::Tensor(TensorRecord::write(value.host()?, prefix, parts))
            }
            Value::Key(key) => {
                let record = KeyRecord::write_switch(key.host()?, own()?, Some(prefix), parts)?;
                ValueRecord::Key(record)
            }
        })
    }

    fn read(
        &self,
        parameters: Option<&Parameters>,
        prefix: &str,
        incoming: &mut Incoming<'_>,
    ) -> Result<Value> {
        if let ValueRecord::Tensor(record) = self {
            return Ok(record.read(prefix, incoming)?.into());
        }
        let Some(parameters) = parameters else {
            let expected = "the parameters of the encrypted materials";
            return Err(incoming.refuse("parameters", "none", expected));
        };
        Ok(match self {
            ValueRecord::Ciphertext(record) => record.read(parameters, prefix, incoming)?.into(),
            ValueRecord::Plaintext(record) => record.read(parameters, prefix, incoming)?.into(),
            ValueRecord::Key(record) => record
                .read_switch(parameters, Some(prefix), incoming)?
                .into(),
            ValueRecord::Tensor(record) => record.read(prefix, incoming)?.into(),
        })
    }
}
