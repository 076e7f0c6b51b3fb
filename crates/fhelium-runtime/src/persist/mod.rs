//! Saving and loading.
//!
//! One file format serves parameters, values, keys, Programs and Compilations: safetensors, with
//! what the tensors are in the header. [`inspect`] reads the header alone. A file holds no code;
//! what it says is checked like what a caller says, so that a damaged or hostile file gives a
//! [`PersistError`] and nothing else. `docs/saving.md` describes the format.
//!
//! A [`CompileCache`] keeps compiled Programs in a directory, for later processes.

mod bound;
mod compile_cache;
mod container;
mod error;
mod file;
mod keys;
mod object;
mod programs;
mod reports;
mod values;

pub use compile_cache::{CacheOutcome, CacheUse, CompileCache};
pub use error::PersistError;
pub use object::{Kind, Object};

use container::{Incoming, Opened, Outgoing};
use error::Result;
use fhelium_ckks::{Parameters, SecretId};
use file::{Placement, open_file, write_file};
use keys::{KeyRecord, Purpose};
use programs::{CompilationData, CompilationRecord, ProgramRecord, read_program};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::Path;
use values::{CiphertextRecord, ParametersRecord, PlaintextRecord, same_parameters};

/// The version of the format. It is raised when a reader of the one before would take a file
/// wrongly; readers pass over fields that they do not know.
pub const SCHEMA: u32 = 1;

/// How something is saved.
#[derive(Clone, Copy, Debug, Default)]
pub struct SaveOptions {
    /// Whether a file of the name is replaced.
    pub overwrite: bool,
    /// Whether a secret key may be written: whoever reads the file decrypts everything.
    pub allow_secret: bool,
}

/// What a header says.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// What the file holds.
    pub kind: Kind,
    /// The version of the format.
    pub schema: u32,
    /// The version of fhelium that wrote it.
    pub writer: String,
    /// Bytes of the whole file.
    pub nbytes: u64,
    /// The parameters, where the object has some.
    pub parameters: Option<Parameters>,
    /// The contents as they stand in the header.
    pub contents: serde_json::Value,
    /// Name, element type and shape of each tensor.
    pub tensors: Vec<(String, String, Vec<usize>)>,
}

impl Inspection {
    /// The id of the secret that the value or the keys belong to.
    pub fn secret_id(&self) -> Option<SecretId> {
        let contents = &self.contents;
        let text = contents["secret"].as_str();
        let text = text.or_else(|| contents["keys"][0]["secret"].as_str())?;
        values::read_secret_id("", text).ok()
    }

    /// The names of a file's keys: `secret`, `public`, `rotation 5` and so on.
    pub fn key_names(&self) -> Vec<String> {
        let keys = self.contents["keys"].as_array();
        let names = keys.into_iter().flatten().filter_map(|key| {
            let name = key["key"].as_str()?;
            Some(match key["step"].as_u64() {
                Some(step) => format!("{name} {step}"),
                None => name.to_owned(),
            })
        });
        names.collect()
    }
}

/// The contents of files with parameters and one value.
#[derive(Serialize, Deserialize)]
struct WithParameters<T> {
    parameters: ParametersRecord,
    #[serde(flatten)]
    value: T,
}

#[derive(Serialize, Deserialize)]
struct Nothing {}

#[derive(Serialize, Deserialize)]
struct Keys {
    /// Said beside the list, for whoever looks at a header.
    holds_secret: bool,
    keys: Vec<KeyRecord>,
}

#[derive(Serialize, Deserialize)]
struct OnlyProgram {
    program: ProgramRecord,
}

/// Saves an object in a file.
///
/// # Errors
/// [`PersistError::Secret`] for a secret without [`SaveOptions::allow_secret`];
/// [`PersistError::Exists`] for a file that may not be replaced; [`PersistError::Io`].
pub fn save(object: &Object, path: impl AsRef<Path>, options: SaveOptions) -> Result<()> {
    let path = path.as_ref();
    check_secret(object, &path.display().to_string(), options)?;
    let placement = Placement {
        overwrite: options.overwrite,
        private: object.kind().is_secret(),
        durable: true,
    };
    with_outgoing(object, |outgoing| {
        write_file(path, placement, |file| outgoing.write(file))
    })
}

/// The bytes that [`save`] would write.
///
/// # Errors
/// [`PersistError::Secret`] for a secret without [`SaveOptions::allow_secret`].
pub fn to_bytes(object: &Object, options: SaveOptions) -> Result<Vec<u8>> {
    check_secret(object, "bytes", options)?;
    with_outgoing(object, |outgoing| {
        let mut bytes = Vec::new();
        let length = outgoing.len();
        let reserved = bytes.try_reserve_exact(length);
        reserved.map_err(|_| PersistError::OutOfMemory {
            file: "bytes".to_owned(),
            bytes: length,
        })?;
        outgoing
            .write(&mut bytes)
            .map_err(|error| PersistError::Io {
                file: "bytes".to_owned(),
                action: "writing",
                error,
            })?;
        Ok(bytes)
    })
}

fn check_secret(object: &Object, file: &str, options: SaveOptions) -> Result<()> {
    let kind = object.kind();
    if kind.is_secret() && !options.allow_secret {
        return Err(PersistError::Secret {
            file: file.to_owned(),
            kind,
        });
    }
    Ok(())
}

/// Gives `with` what is to be written.
fn with_outgoing<T>(object: &Object, with: impl FnOnce(&Outgoing<'_>) -> Result<T>) -> Result<T> {
    let kind = object.kind();
    let object = object.to_host()?;
    let mut parts = Vec::new();
    match &object {
        Object::Parameters(parameters) => {
            let contents = of(parameters, Nothing {});
            with(&Outgoing::new(kind, &contents, parts)?)
        }
        Object::Ciphertext(value, parameters) => {
            same_parameters(value.parameters_id(), parameters)?;
            let record = CiphertextRecord::write(value.host()?, parameters, "", &mut parts);
            with(&Outgoing::new(kind, &of(parameters, record), parts)?)
        }
        Object::Plaintext(value, parameters) => {
            same_parameters(value.parameters_id(), parameters)?;
            let record = PlaintextRecord::write(value.host()?, parameters, "", &mut parts);
            with(&Outgoing::new(kind, &of(parameters, record), parts)?)
        }
        Object::PublicKey(key, parameters) => {
            let record = KeyRecord::write_public(key.host()?, parameters, &mut parts)?;
            let contents = of(parameters, keys_of(vec![record]));
            with(&Outgoing::new(kind, &contents, parts)?)
        }
        Object::EvaluationKey(key, parameters) => {
            let record = KeyRecord::write_switch(key.host()?, parameters, None, &mut parts)?;
            let contents = of(parameters, keys_of(vec![record]));
            with(&Outgoing::new(kind, &contents, parts)?)
        }
        Object::EvaluationKeys(keys, parameters) => {
            let records = keys::write_evaluation(keys, parameters, &mut parts)?;
            let contents = of(parameters, keys_of(records));
            with(&Outgoing::new(kind, &contents, parts)?)
        }
        Object::SecretKey(key, parameters) => {
            let coefficients = keys::coefficients(key.host()?, parameters)?;
            let record = keys::write_secret(key.host()?, &coefficients, &mut parts);
            let contents = of(parameters, keys_of(vec![record]));
            with(&Outgoing::new(kind, &contents, parts)?)
        }
        Object::KeySet(keys, parameters) => {
            let coefficients = keys::coefficients(keys.secret.host()?, parameters)?;
            let mut records = vec![keys::write_secret(
                keys.secret.host()?,
                &coefficients,
                &mut parts,
            )];
            let public = keys.evaluation();
            records.extend(keys::write_evaluation(&public, parameters, &mut parts)?);
            let contents = of(parameters, keys_of(records));
            with(&Outgoing::new(kind, &contents, parts)?)
        }
        Object::Program(program) => {
            let text = program.to_text();
            let program = ProgramRecord::write(program, &text, &mut parts);
            with(&Outgoing::new(kind, &OnlyProgram { program }, parts)?)
        }
        Object::Compilation(compilation) => {
            let data = CompilationData::of(compilation)?;
            let contents = CompilationRecord::write(compilation, &data, &mut parts)?;
            with(&Outgoing::new(kind, &contents, parts)?)
        }
    }
}

fn of<T>(parameters: &Parameters, value: T) -> WithParameters<T> {
    WithParameters {
        parameters: parameters.into(),
        value,
    }
}

fn keys_of(keys: Vec<KeyRecord>) -> Keys {
    Keys {
        holds_secret: keys.iter().any(|record| record.key == Purpose::Secret),
        keys,
    }
}

/// Loads the object of a file, one of `kinds`; where that is empty, of any kind.
///
/// The kind is looked at before anything else of the contents.
///
/// # Errors
/// [`PersistError::WrongKind`], [`PersistError::Malformed`] and [`PersistError::Io`].
pub fn load(path: impl AsRef<Path>, kinds: &[Kind]) -> Result<Object> {
    let path = path.as_ref();
    let (mut file, length) = open_file(path)?;
    read(&path.display().to_string(), &mut file, length, kinds)
}

/// Loads an object from the bytes of a file.
///
/// # Errors
/// As [`load`].
pub fn from_bytes(bytes: &[u8], kinds: &[Kind]) -> Result<Object> {
    let mut rest = bytes;
    read("the given bytes", &mut rest, bytes.len() as u64, kinds)
}

fn read(file: &str, source: &mut impl Read, length: u64, kinds: &[Kind]) -> Result<Object> {
    let opened = Opened::read(file, source, length)?;
    let kind = opened.kind;
    if !kinds.is_empty() && !kinds.contains(&kind) {
        let names: Vec<String> = kinds.iter().map(|kind| kind.noun()).collect();
        return Err(PersistError::WrongKind {
            file: file.to_owned(),
            found: kind,
            expected: names.join(" or "),
        });
    }
    match kind {
        Kind::Parameters => {
            let contents: WithParameters<Nothing> = opened.contents()?;
            let parameters = contents.parameters.read(file)?;
            opened.data(source)?.finish()?;
            Ok(Object::Parameters(parameters))
        }
        Kind::Ciphertext => {
            let (value, parameters) = read_with_parameters(
                opened,
                source,
                |record: CiphertextRecord, parameters, incoming| {
                    record.read(parameters, "", incoming)
                },
            )?;
            Ok(Object::Ciphertext(value.into(), parameters))
        }
        Kind::Plaintext => {
            let (value, parameters) = read_with_parameters(
                opened,
                source,
                |record: PlaintextRecord, parameters, incoming| {
                    record.read(parameters, "", incoming)
                },
            )?;
            Ok(Object::Plaintext(value.into(), parameters))
        }
        Kind::SecretKey => {
            let (key, parameters) =
                read_with_parameters(opened, source, |keys: Keys, parameters, incoming| {
                    only(&keys, &[Purpose::Secret], incoming)?.read_secret(parameters, incoming)
                })?;
            Ok(Object::SecretKey(key.into(), parameters))
        }
        Kind::PublicKey => {
            let (key, parameters) =
                read_with_parameters(opened, source, |keys: Keys, parameters, incoming| {
                    only(&keys, &[Purpose::Public], incoming)?.read_public(parameters, incoming)
                })?;
            Ok(Object::PublicKey(key.into(), parameters))
        }
        Kind::EvaluationKey => {
            const SWITCHES: [Purpose; 3] = [
                Purpose::Relinearization,
                Purpose::Rotation,
                Purpose::Conjugation,
            ];
            let (key, parameters) =
                read_with_parameters(opened, source, |keys: Keys, parameters, incoming| {
                    only(&keys, &SWITCHES, incoming)?.read_switch(parameters, None, incoming)
                })?;
            Ok(Object::EvaluationKey(key.into(), parameters))
        }
        Kind::EvaluationKeys => {
            let (keys, parameters) =
                read_with_parameters(opened, source, |keys: Keys, parameters, incoming| {
                    keys::read_evaluation(&keys.keys, parameters, incoming)
                })?;
            Ok(Object::EvaluationKeys(keys, parameters))
        }
        Kind::KeySet => {
            let (keys, parameters) =
                read_with_parameters(opened, source, |keys: Keys, parameters, incoming| {
                    keys::read_key_set(&keys.keys, parameters, incoming)
                })?;
            Ok(Object::KeySet(keys, parameters))
        }
        Kind::Program => {
            let mut incoming = opened.data(source)?;
            let program = read_program(&mut incoming)?;
            incoming.finish()?;
            Ok(Object::Program(program))
        }
        Kind::Compilation => {
            let contents: CompilationRecord = opened.contents()?;
            let mut incoming = opened.data(source)?;
            let compilation = contents.read(&mut incoming)?;
            incoming.finish()?;
            Ok(Object::Compilation(compilation))
        }
        Kind::CacheEntry => {
            let expected = "an object; the compile cache alone reads this file";
            Err(PersistError::malformed(file, "kind", kind, expected))
        }
    }
}

fn read_with_parameters<R, T>(
    opened: Opened<'_>,
    source: &mut impl Read,
    read: impl FnOnce(R, &Parameters, &mut Incoming<'_>) -> Result<T>,
) -> Result<(T, Parameters)>
where
    R: serde::de::DeserializeOwned,
{
    let contents: WithParameters<R> = opened.contents()?;
    let parameters = contents.parameters.read(opened.file)?;
    let mut incoming = opened.data(source)?;
    let value = read(contents.value, &parameters, &mut incoming)?;
    incoming.finish()?;
    Ok((value, parameters))
}

/// The only key of a file.
fn only<'k>(keys: &'k Keys, of: &[Purpose], incoming: &Incoming<'_>) -> Result<&'k KeyRecord> {
    match &keys.keys[..] {
        [only] if of.contains(&only.key) => Ok(only),
        other => {
            let found: Vec<Purpose> = other.iter().map(|record| record.key).take(8).collect();
            let expected = format!("one key, of {of:?}");
            Err(incoming.refuse("keys", format_args!("{found:?}"), expected))
        }
    }
}

/// What a file says of itself, from its header; the tensors are not read.
///
/// # Errors
/// As [`load`], for the header.
pub fn inspect(path: impl AsRef<Path>) -> Result<Inspection> {
    let path = path.as_ref();
    let (mut file, length) = open_file(path)?;
    inspect_header(&path.display().to_string(), &mut file, length)
}

/// What the bytes of a file say of themselves.
///
/// # Errors
/// As [`inspect`].
pub fn inspect_bytes(bytes: &[u8]) -> Result<Inspection> {
    let mut rest = bytes;
    inspect_header("the given bytes", &mut rest, bytes.len() as u64)
}

fn inspect_header(file: &str, source: &mut impl Read, length: u64) -> Result<Inspection> {
    #[derive(Deserialize)]
    struct MaybeParameters {
        #[serde(default)]
        parameters: Option<ParametersRecord>,
    }
    let opened = Opened::read(file, source, length)?;
    let contents: MaybeParameters = opened.contents()?;
    let parameters = match contents.parameters {
        Some(record) => Some(record.read(file)?),
        None => None,
    };
    let tensors = opened.tensors.iter().map(|(name, info)| {
        let (dtype, shape) = (info.dtype.to_string(), info.shape.clone());
        (name.clone(), dtype, shape)
    });
    Ok(Inspection {
        kind: opened.kind,
        schema: SCHEMA,
        writer: opened.writer.clone(),
        nbytes: length,
        parameters,
        contents: opened.contents()?,
        tensors: tensors.collect(),
    })
}
