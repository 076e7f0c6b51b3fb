//! Saving, loading and pickling.

use crate::attachment::Attachment;
use crate::compile::{PyCallableCore, PyCompilation, PySpecialization};
use crate::engine::{PyEngine, class_name};
use crate::errors::{OrRaise, raise};
use crate::ir::PyProgram;
use crate::keys::{
    PyEvaluationKey, PyEvaluationKeys, PyKeySet, PyPublicKey, PyRotationKeys, PySecretKey,
};
use crate::parameters::PyParameters;
use crate::scale::PyScale;
use crate::values::{
    PyCiphertext, PyPlaintext, engine_on, public_classes, wrap_ciphertext, wrap_plaintext,
};
use fhelium_ckks::Parameters;
use fhelium_runtime::persist::{self, Inspection, Kind, Object, PersistError, SaveOptions};
use fhelium_runtime::{Device, Engine, RuntimeError};
use fhelium_state::ErrorKind;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyFileExistsError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple, PyType as PyClass};
use std::path::PathBuf;
use std::sync::Arc;

/// What `__reduce__` gives: `fhelium.loads` and the bytes.
pub type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>,));

/// Pickles an object as the bytes that a file would hold.
pub fn reduce(py: Python<'_>, object: Object) -> PyResult<Reduced<'_>> {
    let bytes = py.detach(|| persist::to_bytes(&object, SaveOptions::default()));
    let bytes = PyBytes::new(py, &bytes.map_err(to_python_error)?);
    let loads = PyModule::import(py, "fhelium")?.getattr("loads")?;
    Ok((loads, (bytes,)))
}

/// Refuses to pickle a secret.
pub fn refuse_pickling(what: &str, instead: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "a {what} is not pickled, since whoever reads the pickle decrypts everything: {instead}, or \
         save it with fhelium.save(..., allow_secret=True)"
    ))
}

/// An error of saving or loading as the exception that a person would catch.
pub fn to_python_error(error: PersistError) -> PyErr {
    let text = error.to_string();
    match &error {
        // FileNotFoundError, PermissionError and so on.
        PersistError::Io { error, .. } => std::io::Error::new(error.kind(), text).into(),
        PersistError::Exists { .. } => PyFileExistsError::new_err(text),
        _ => raise(error.kind(), text),
    }
}

fn object_from(py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Object> {
    Ok(if let Ok(value) = value.cast::<PyParameters>() {
        Object::Parameters(value.get().0.clone())
    } else if let Ok(value) = value.cast::<PyCiphertext>() {
        value.get().object()
    } else if let Ok(value) = value.cast::<PyPlaintext>() {
        value.get().object()
    } else if let Ok(key) = value.cast::<PySecretKey>() {
        key.get().object()
    } else if let Ok(key) = value.cast::<PyPublicKey>() {
        key.get().object()
    } else if let Ok(key) = value.cast::<PyEvaluationKey>() {
        key.get().object()
    } else if let Ok(keys) = value.cast::<PyEvaluationKeys>() {
        keys.get().object()
    } else if let Ok(keys) = value.cast::<PyKeySet>() {
        keys.get().object()
    } else if let Ok(program) = value.cast::<PyProgram>() {
        Object::Program(program.get().0.clone())
    } else if let Ok(compilation) = value.cast::<PyCompilation>() {
        Object::Compilation(compilation.get().current(py)?)
    } else {
        return Err(PyTypeError::new_err(unsaved(value)));
    })
}

fn unsaved(value: &Bound<'_, PyAny>) -> String {
    let found = class_name(value);
    let instead = if value.cast::<PySpecialization>().is_ok() {
        "save its .compilation, which compile takes"
    } else if value.cast::<PyRotationKeys>().is_ok() {
        "save KeySet.evaluation(), which holds them"
    } else if value.cast::<PyEngine>().is_ok() {
        "save its .parameters and the keys"
    } else if value.cast::<PyCallableCore>().is_ok() || found == "CompiledCallable" {
        "save the .compilation or .program of one of its .specializations"
    } else {
        "files hold Parameters, Ciphertext, Plaintext, keys, Program and Compilation"
    };
    format!("a {found} cannot be saved: {instead}")
}

/// Whom an object is loaded for: an engine, or one of the object's parameters on a device.
enum Destination {
    Engine(PyEngine),
    Device(Device),
}

impl Destination {
    fn new(engine: Option<&PyEngine>, device: Option<&str>) -> PyResult<Self> {
        match (engine, device) {
            (None, None) => Ok(Destination::Device(Device::Cpu)),
            (None, Some(device)) => Ok(Destination::Device(device.parse().or_raise()?)),
            (Some(engine), None) => Ok(Destination::Engine(engine.clone())),
            (Some(_), Some(_)) => Err(PyTypeError::new_err(
                "give engine or device, not both: an engine has a device",
            )),
        }
    }

    /// The engine for an object. None where it is in host memory, and joins one later; and for what
    /// no device holds.
    fn engine(self, py: Python<'_>, object: &Object) -> PyResult<Option<PyEngine>> {
        let device = match self {
            Destination::Engine(engine) => {
                check_engine(object, &engine.0)?;
                return Ok(Some(engine));
            }
            Destination::Device(Device::Cpu) => return Ok(None),
            Destination::Device(device) => device,
        };
        let engine = match object {
            Object::Ciphertext(_, own)
            | Object::Plaintext(_, own)
            | Object::SecretKey(_, own)
            | Object::PublicKey(_, own)
            | Object::EvaluationKey(_, own)
            | Object::EvaluationKeys(_, own)
            | Object::KeySet(_, own) => engine_on(py, own, device)?,
            Object::Compilation(loaded) => match loaded.program().chain() {
                Some(chain) => py.detach(|| Engine::for_chain(chain, device)).or_raise()?,
                None => return Ok(None),
            },
            Object::Parameters(_) | Object::Program(_) => return Ok(None),
        };
        Ok(Some(PyEngine(engine)))
    }
}

fn object_to_python<'py>(
    py: Python<'py>,
    object: Object,
    destination: Destination,
) -> PyResult<Bound<'py, PyAny>> {
    let engine = destination.engine(py, &object)?;
    let engine = engine.as_ref();
    let object = match (object, engine) {
        // Its materials are placed one by one.
        (object @ Object::Compilation(_), _) | (object, None) => object,
        (object, Some(engine)) => py.detach(|| placed(object, &engine.0)).or_raise()?,
    };
    let attachment = |parameters| match engine {
        Some(engine) => Attachment::To(engine.0.clone()),
        None => Attachment::open(parameters),
    };
    Ok(match object {
        Object::Parameters(parameters) => Bound::new(py, PyParameters(parameters))?.into_any(),
        Object::Ciphertext(value, parameters) => {
            wrap_ciphertext(py, value, attachment(parameters))?
        }
        Object::Plaintext(value, parameters) => wrap_plaintext(py, value, attachment(parameters))?,
        Object::SecretKey(key, parameters) => {
            Bound::new(py, PySecretKey { key, parameters })?.into_any()
        }
        Object::PublicKey(key, parameters) => {
            Bound::new(py, PyPublicKey { key, parameters })?.into_any()
        }
        Object::EvaluationKey(key, parameters) => {
            Bound::new(py, PyEvaluationKey::new(key, &parameters))?.into_any()
        }
        Object::EvaluationKeys(keys, parameters) => {
            Bound::new(py, PyEvaluationKeys { keys, parameters })?.into_any()
        }
        Object::KeySet(keys, parameters) => {
            Bound::new(py, PyKeySet { keys, parameters })?.into_any()
        }
        Object::Program(program) => Bound::new(py, PyProgram(program))?.into_any(),
        Object::Compilation(compilation) => {
            Bound::new(py, PyCompilation::loaded(py, compilation, engine)?)?.into_any()
        }
    })
}

/// What was loaded, on an engine's device.
fn placed(object: Object, engine: &Engine) -> Result<Object, RuntimeError> {
    Ok(match object {
        Object::Ciphertext(value, own) => Object::Ciphertext(engine.place(&value)?, own),
        Object::Plaintext(value, own) => Object::Plaintext(engine.place(&value)?, own),
        Object::SecretKey(key, own) => Object::SecretKey(engine.place(&key)?, own),
        Object::PublicKey(key, own) => Object::PublicKey(engine.place(&key)?, own),
        Object::EvaluationKey(key, own) => Object::EvaluationKey(engine.place(&key)?, own),
        Object::EvaluationKeys(keys, own) => Object::EvaluationKeys(engine.place_keys(&keys)?, own),
        Object::KeySet(keys, own) => Object::KeySet(engine.place_key_set(&keys)?, own),
        other @ (Object::Parameters(_) | Object::Program(_) | Object::Compilation(_)) => other,
    })
}

/// Refuses what was saved under other parameters than the engine's.
fn check_engine(object: &Object, engine: &Arc<Engine>) -> PyResult<()> {
    let own = engine.parameters();
    let same = |parameters: &Parameters| parameters.id() == own.id();
    let program = |chain: Option<&fhelium_state::Chain>| chain.is_none_or(|c| c == own.chain());
    let fits = match object {
        Object::Parameters(parameters)
        | Object::Ciphertext(_, parameters)
        | Object::Plaintext(_, parameters)
        | Object::SecretKey(_, parameters)
        | Object::PublicKey(_, parameters)
        | Object::EvaluationKey(_, parameters)
        | Object::EvaluationKeys(_, parameters)
        | Object::KeySet(_, parameters) => same(parameters),
        Object::Program(loaded) => program(loaded.chain().map(AsRef::as_ref)),
        Object::Compilation(loaded) => program(loaded.program().chain().map(AsRef::as_ref)),
    };
    if fits {
        return Ok(());
    }
    Err(raise(
        ErrorKind::KeyMismatch,
        format!(
            "what was loaded, {}, is of other parameters than the engine's ({own}); load it without \
             engine=, or with an engine of its own parameters",
            object.kind().noun()
        ),
    ))
}

/// The Python class of a kind's objects; none for what Python never sees.
fn class_of(py: Python<'_>, kind: Kind) -> PyResult<Option<Bound<'_, PyClass>>> {
    Ok(Some(match kind {
        Kind::Parameters => py.get_type::<PyParameters>(),
        Kind::Ciphertext => public_classes(py)?.0.bind(py).clone(),
        Kind::Plaintext => public_classes(py)?.1.bind(py).clone(),
        Kind::SecretKey => py.get_type::<PySecretKey>(),
        Kind::PublicKey => py.get_type::<PyPublicKey>(),
        Kind::EvaluationKey => py.get_type::<PyEvaluationKey>(),
        Kind::EvaluationKeys => py.get_type::<PyEvaluationKeys>(),
        Kind::KeySet => py.get_type::<PyKeySet>(),
        Kind::Program => py.get_type::<PyProgram>(),
        Kind::Compilation => py.get_type::<PyCompilation>(),
        Kind::CacheEntry => return Ok(None),
    }))
}

/// The kinds whose objects are instances of a class.
fn kinds_of(py: Python<'_>, class: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Kind>> {
    let Some(class) = class else {
        return Ok(Vec::new());
    };
    let mut kinds = Vec::new();
    if let Ok(class) = class.cast::<PyClass>() {
        for kind in Kind::ALL {
            if let Some(found) = class_of(py, kind)?
                && found.is_subclass(class)?
            {
                kinds.push(kind);
            }
        }
    }
    if kinds.is_empty() {
        return Err(PyTypeError::new_err(format!(
            "type must be a class whose objects files hold, such as fhelium.Ciphertext, found {}",
            class.repr()?
        )));
    }
    Ok(kinds)
}

/// Saves an object in a file.
#[pyfunction]
#[pyo3(signature = (object, path, *, overwrite = false, allow_secret = false))]
pub fn save(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    path: PathBuf,
    overwrite: bool,
    allow_secret: bool,
) -> PyResult<()> {
    let object = object_from(py, object)?;
    let options = SaveOptions {
        overwrite,
        allow_secret,
    };
    py.detach(|| persist::save(&object, &path, options))
        .map_err(to_python_error)
}

/// The bytes that `save` would write.
#[pyfunction]
#[pyo3(signature = (object, *, allow_secret = false))]
pub fn dumps<'py>(
    py: Python<'py>,
    object: &Bound<'py, PyAny>,
    allow_secret: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let object = object_from(py, object)?;
    let options = SaveOptions {
        overwrite: false,
        allow_secret,
    };
    let bytes = py.detach(|| persist::to_bytes(&object, options));
    Ok(PyBytes::new(py, &bytes.map_err(to_python_error)?))
}

/// Loads the object of a file.
#[pyfunction]
#[pyo3(signature = (path, r#type = None, *, engine = None, device = None))]
pub fn load<'py>(
    py: Python<'py>,
    path: PathBuf,
    r#type: Option<&Bound<'py, PyAny>>,
    engine: Option<&PyEngine>,
    device: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let destination = Destination::new(engine, device)?;
    let kinds = kinds_of(py, r#type)?;
    let object = py.detach(|| persist::load(&path, &kinds));
    object_to_python(py, object.map_err(to_python_error)?, destination)
}

/// Loads an object from bytes.
#[pyfunction]
#[pyo3(signature = (data, r#type = None, *, engine = None, device = None))]
pub fn loads<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    r#type: Option<&Bound<'py, PyAny>>,
    engine: Option<&PyEngine>,
    device: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let destination = Destination::new(engine, device)?;
    let kinds = kinds_of(py, r#type)?;
    let object = match data.cast::<PyBytes>() {
        Ok(bytes) => {
            let bytes = bytes.as_bytes();
            py.detach(|| persist::from_bytes(bytes, &kinds))
        }
        Err(_) => {
            let buffer = PyBuffer::<u8>::get(data).map_err(|_| {
                PyTypeError::new_err(format!(
                    "loads takes bytes or another buffer of bytes, found {}",
                    class_name(data)
                ))
            })?;
            let bytes = buffer.to_vec(py)?;
            py.detach(|| persist::from_bytes(&bytes, &kinds))
        }
    };
    object_to_python(py, object.map_err(to_python_error)?, destination)
}

/// What a file says of itself.
#[pyfunction]
pub fn inspect(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let seen = py.detach(|| persist::inspect(&path));
    inspection_to_python(py, &seen.map_err(to_python_error)?)
}

fn inspection_to_python<'py>(py: Python<'py>, seen: &Inspection) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("kind", seen.kind.name())?;
    facts.set_item("schema", seen.schema)?;
    facts.set_item("writer", &seen.writer)?;
    facts.set_item("nbytes", seen.nbytes)?;
    if let Some(parameters) = &seen.parameters {
        facts.set_item("parameters", PyParameters(parameters.clone()))?;
    }
    if let Some(secret) = seen.secret_id() {
        facts.set_item("secret_id", secret.to_string())?;
    }
    let number = |name: &str| seen.contents[name].as_u64();
    for name in ["level", "parts"] {
        if let Some(number) = number(name) {
            facts.set_item(name, number)?;
        }
    }
    if let Some(scale) = seen.contents["scale"].as_str()
        && let Ok(scale) = scale.parse()
    {
        facts.set_item("scale", PyScale(scale))?;
    }
    if let Some(batch) = seen.contents["batch"].as_array() {
        let batch = batch.iter().filter_map(serde_json::Value::as_u64);
        let batch: Vec<u64> = batch.collect();
        facts.set_item("batch_shape", PyTuple::new(py, batch)?)?;
    }
    if let Some(holds_secret) = seen.contents["holds_secret"].as_bool() {
        facts.set_item("holds_secret", holds_secret)?;
        facts.set_item("keys", seen.key_names())?;
    }
    if let Some(program) = seen.contents["program"].as_object() {
        let text = |name: &str| program.get(name).and_then(serde_json::Value::as_str);
        facts.set_item("name", text("name"))?;
        facts.set_item("program_level", text("level"))?;
        let operations = program.get("operations");
        let operations = operations.and_then(serde_json::Value::as_u64);
        facts.set_item("operations", operations)?;
    }
    for (name, field) in [("materials", "symbol"), ("reports", "name")] {
        if let Some(listed) = seen.contents[name].as_array() {
            let names = PyList::new(py, listed.iter().filter_map(|item| item[field].as_str()))?;
            let name = if name == "reports" { "passes" } else { name };
            facts.set_item(name, names)?;
        }
    }
    let tensors = PyDict::new(py);
    for (name, dtype, shape) in &seen.tensors {
        tensors.set_item(name, (dtype, PyTuple::new(py, shape)?))?;
    }
    facts.set_item("tensors", tensors)?;
    Ok(facts)
}
