//! Parameters, ciphertexts, plaintexts and arrays.

use super::container::{Incoming, Part};
use super::error::{PersistError, Result};
use crate::tensor::Tensor;
use fhelium_ckks::security::SecurityLevel;
use fhelium_ckks::{
    CipherState, Ciphertext, Parameters, ParametersId, PlainState, Plaintext, Scale, SecretId,
};
use fhelium_ir::DType;
use safetensors::Dtype;
use serde::{Deserialize, Serialize};

/// As many primes as a Program's chain may have.
const MAX_PRIMES: usize = 512;

/// A scale's text is one factor for each prime at most.
const MAX_SCALE_TEXT: usize = MAX_PRIMES * 40;

/// As many axes as numpy has.
const MAX_AXES: usize = 64;

/// A parameter set: primes, not how they were chosen, so that a later version that chooses others
/// still reads it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ParametersRecord {
    id: String,
    log_n: u32,
    scale: String,
    moduli: Vec<u64>,
    special_moduli: Vec<u64>,
    /// The security that was asked for, in bits; whether it is reached follows from the primes.
    security: u32,
}

impl From<&Parameters> for ParametersRecord {
    fn from(parameters: &Parameters) -> Self {
        ParametersRecord {
            id: id_text(parameters.id().bytes()),
            log_n: parameters.log_n(),
            scale: parameters.scale().exact(),
            moduli: parameters.moduli().to_vec(),
            special_moduli: parameters.special_moduli().to_vec(),
            security: parameters.requested_security().bits(),
        }
    }
}

impl ParametersRecord {
    /// The parameters, checked like any that a caller gives; insecure ones were accepted before
    /// they were saved.
    pub fn read(&self, file: &str) -> Result<Parameters> {
        let refuse = |field: &str, found: &dyn std::fmt::Display, expected: &str| {
            PersistError::malformed(file, field, found, expected)
        };
        let primes = self.moduli.len() + self.special_moduli.len();
        if primes > MAX_PRIMES {
            let expected = format!("at most {MAX_PRIMES} primes");
            return Err(refuse("parameters", &primes, &expected));
        }
        let security = SecurityLevel::from_bits(self.security);
        let security = security.ok_or_else(|| {
            refuse(
                "parameters.security",
                &self.security,
                "128, 192 or 256 bits",
            )
        })?;
        let parameters = Parameters::from_primes(
            self.log_n,
            self.moduli.clone(),
            self.special_moduli.clone(),
            read_scale(file, "parameters.scale", &self.scale)?,
            security,
            true,
        );
        let parameters =
            parameters.map_err(|error| refuse("parameters", &error, "a parameter set"))?;
        let id = id_text(parameters.id().bytes());
        if id != self.id {
            let expected = format!("{id}, the id that these primes and this scale give here");
            return Err(refuse("parameters.id", &self.id, &expected));
        }
        Ok(parameters)
    }
}

/// Sixteen bytes as hexadecimal digits.
pub(super) fn id_text(bytes: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(bytes))
}

/// A secret's id.
pub(super) fn read_secret_id(file: &str, text: &str) -> Result<SecretId> {
    let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = digits
        .then(|| u128::from_str_radix(text, 16).ok())
        .flatten();
    let number = number
        .ok_or_else(|| PersistError::malformed(file, "secret", text, "32 hexadecimal digits"))?;
    Ok(SecretId::from_bytes(number.to_be_bytes()))
}

fn read_scale(file: &str, field: &str, text: &str) -> Result<Scale> {
    let refuse = |found: &dyn std::fmt::Display| {
        PersistError::malformed(file, field, found, "an exact scale, such as 2^40*257^-1")
    };
    if text.len() > MAX_SCALE_TEXT {
        return Err(refuse(&format_args!("{} characters", text.len())));
    }
    text.parse().map_err(|_| refuse(&text))
}

/// Where a value is, for errors: `residues` or `material-3.residues`.
fn tensor_name(prefix: &str, name: &str) -> String {
    match prefix {
        "" => name.to_owned(),
        prefix => format!("{prefix}.{name}"),
    }
}

fn check_batch(incoming: &Incoming<'_>, batch: &[usize]) -> Result<()> {
    if batch.len() > MAX_AXES {
        let found = format_args!("{} axes", batch.len()).to_string();
        return Err(incoming.refuse("batch", found, format!("at most {MAX_AXES}")));
    }
    Ok(())
}

fn check_level(incoming: &Incoming<'_>, level: usize, parameters: &Parameters) -> Result<()> {
    if level > parameters.depth() {
        let expected = format!("0 to {}, the parameters' depth", parameters.depth());
        return Err(incoming.refuse("level", level, expected));
    }
    Ok(())
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CiphertextRecord {
    secret: String,
    level: usize,
    scale: String,
    parts: usize,
    batch: Vec<usize>,
}

impl CiphertextRecord {
    pub fn write<'a>(
        value: &'a Ciphertext,
        parameters: &Parameters,
        prefix: &str,
        parts: &mut Vec<Part<'a>>,
    ) -> Self {
        let state = value.state();
        let mut shape = value.batch_shape().to_vec();
        shape.extend([state.parts, state.level + 1, parameters.n()]);
        let name = tensor_name(prefix, "residues");
        parts.push(Part::new(name, Dtype::U64, shape, value.data()));
        CiphertextRecord {
            secret: id_text(value.secret_id().bytes()),
            level: state.level,
            scale: state.scale.exact(),
            parts: state.parts,
            batch: value.batch_shape().to_vec(),
        }
    }

    pub fn read(
        &self,
        parameters: &Parameters,
        prefix: &str,
        incoming: &mut Incoming<'_>,
    ) -> Result<Ciphertext> {
        check_batch(incoming, &self.batch)?;
        check_level(incoming, self.level, parameters)?;
        if !(2..=3).contains(&self.parts) {
            return Err(incoming.refuse("parts", self.parts, "2 or 3"));
        }
        let secret = read_secret_id(incoming.file, &self.secret)?;
        let state = CipherState {
            level: self.level,
            scale: read_scale(incoming.file, "scale", &self.scale)?,
            parts: self.parts,
        };
        let mut shape = self.batch.clone();
        shape.extend([self.parts, self.level + 1, parameters.n()]);
        let data = incoming.words(&tensor_name(prefix, "residues"), &shape)?;
        Ciphertext::from_raw(parameters, secret, state, self.batch.clone(), data)
            .map_err(|error| incoming.refuse("residues", error, "a ciphertext of the parameters"))
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PlaintextRecord {
    level: usize,
    scale: String,
    batch: Vec<usize>,
}

impl PlaintextRecord {
    pub fn write<'a>(
        value: &'a Plaintext,
        parameters: &Parameters,
        prefix: &str,
        parts: &mut Vec<Part<'a>>,
    ) -> Self {
        let state = value.state();
        let mut shape = value.batch_shape().to_vec();
        shape.extend([state.level + 1, parameters.n()]);
        let name = tensor_name(prefix, "residues");
        parts.push(Part::new(name, Dtype::U64, shape, value.data()));
        PlaintextRecord {
            level: state.level,
            scale: state.scale.exact(),
            batch: value.batch_shape().to_vec(),
        }
    }

    pub fn read(
        &self,
        parameters: &Parameters,
        prefix: &str,
        incoming: &mut Incoming<'_>,
    ) -> Result<Plaintext> {
        check_batch(incoming, &self.batch)?;
        check_level(incoming, self.level, parameters)?;
        let state = PlainState {
            level: self.level,
            scale: read_scale(incoming.file, "scale", &self.scale)?,
        };
        let mut shape = self.batch.clone();
        shape.extend([self.level + 1, parameters.n()]);
        let data = incoming.words(&tensor_name(prefix, "residues"), &shape)?;
        Plaintext::from_raw(parameters, state, self.batch.clone(), data)
            .map_err(|error| incoming.refuse("residues", error, "a plaintext of the parameters"))
    }
}

/// A clear array. Complex numbers are stored as pairs along a last axis of their own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TensorRecord {
    dtype: String,
    shape: Vec<usize>,
}

fn stored(dtype: DType) -> (Dtype, bool) {
    match dtype {
        DType::Bool => (Dtype::BOOL, false),
        DType::I32 => (Dtype::I32, false),
        DType::I64 => (Dtype::I64, false),
        DType::F32 => (Dtype::F32, false),
        DType::F64 => (Dtype::F64, false),
        DType::C64 => (Dtype::F32, true),
        DType::C128 => (Dtype::F64, true),
    }
}

fn stored_shape(shape: &[usize], pairs: bool) -> Vec<usize> {
    let mut shape = shape.to_vec();
    shape.extend(pairs.then_some(2));
    shape
}

impl TensorRecord {
    /// `value` lies row-major, as `Tensor::to_contiguous` makes it.
    pub fn write<'a>(value: &'a Tensor, prefix: &str, parts: &mut Vec<Part<'a>>) -> Self {
        let (dtype, pairs) = stored(value.dtype());
        let name = tensor_name(prefix, "elements");
        let shape = stored_shape(value.shape(), pairs);
        parts.push(Part::new(
            name,
            dtype,
            shape,
            value.bytes().unwrap_or_default(),
        ));
        TensorRecord {
            dtype: value.dtype().name().to_owned(),
            shape: value.shape().to_vec(),
        }
    }

    pub fn read(&self, prefix: &str, incoming: &mut Incoming<'_>) -> Result<Tensor> {
        check_batch(incoming, &self.shape)?;
        let known = DType::ALL.into_iter();
        let dtype = known.clone().find(|dtype| dtype.name() == self.dtype);
        let dtype = dtype.ok_or_else(|| {
            let names: Vec<&str> = known.map(DType::name).collect();
            incoming.refuse("dtype", &self.dtype, format!("one of {}", names.join(", ")))
        })?;
        let (stored, pairs) = stored(dtype);
        let name = tensor_name(prefix, "elements");
        let shape = stored_shape(&self.shape, pairs);
        let read = |bytes: &[u8]| Tensor::from_bytes(dtype, &self.shape, bytes);
        incoming
            .bytes(&name, stored, &shape, read)?
            .map_err(|error| incoming.refuse(format!("tensor {name:?}"), error, "an array"))
    }
}

/// Whether a value belongs to the parameters that are saved with it.
pub(super) fn same_parameters(found: ParametersId, parameters: &Parameters) -> Result<()> {
    if found == parameters.id() {
        return Ok(());
    }
    Err(crate::RuntimeError::KeyMismatch(format!(
        "a value or key of parameters {found} cannot be saved with parameters {}; give its own",
        parameters.id()
    ))
    .into())
}
