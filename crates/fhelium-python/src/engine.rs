//! The engine.

use crate::arrays::tensor_to_python;
use crate::errors::{IntoPython, OrRaise, bad_argument, raise};
use crate::ir::{attributes_from, operation_from_name};
use crate::keys::{PyEvaluationKey, PyEvaluationKeys, PyKeySet, PyPublicKey, PySecretKey};
use crate::parameters::PyParameters;
use crate::values::{PyCiphertext, PyPlaintext, value_from, value_to_python};
use fhelium_ckks::NoiseFlooding;
use fhelium_runtime::cuda::{CudaError, MemoryUse};
use fhelium_runtime::{
    Device, EncryptionKey, Engine, EngineOptions, OperationBackend, RuntimeError, Value,
};
use fhelium_state::ErrorKind;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;

/// What `fhelium.Engine` stands on.
#[pyclass(name = "Engine", module = "fhelium._native", frozen, subclass)]
#[derive(Clone)]
pub struct PyEngine(pub Arc<Engine>);

#[pymethods]
impl PyEngine {
    #[new]
    #[pyo3(signature = (
        parameters, *, device = "cpu", threads = None, memory_limit = None, seed = None
    ))]
    fn new(
        py: Python<'_>,
        parameters: &PyParameters,
        device: &str,
        threads: Option<i64>,
        memory_limit: Option<i64>,
        seed: Option<i128>,
    ) -> PyResult<Self> {
        let threads = match threads {
            None => None,
            Some(count) if count > 0 => Some(count as usize),
            Some(count) => {
                return Err(bad_argument(format!(
                    "threads must be positive, or None for one on each core, found {count}"
                )));
            }
        };
        let memory_limit = match memory_limit {
            None => None,
            Some(bytes) if bytes > 0 => Some(bytes as usize),
            Some(bytes) => {
                return Err(bad_argument(format!(
                    "memory_limit is bytes of the device's memory, or None for all of it, found \
                     {bytes}"
                )));
            }
        };
        let seed = match seed.map(u64::try_from) {
            None => None,
            Some(Ok(seed)) => Some(seed),
            Some(Err(_)) => return Err(bad_argument("seed must be from 0 to 2^64 - 1")),
        };
        let options = EngineOptions {
            device: device.parse::<Device>().or_raise()?,
            threads,
            tier: None,
            memory_limit,
            seed,
            backend: OperationBackend::standard(),
        };
        py.detach(|| Engine::new(&parameters.0, options))
            .or_raise()
            .map(PyEngine)
    }

    /// The parameters.
    #[getter]
    fn parameters(&self) -> PyParameters {
        PyParameters(self.0.parameters().clone())
    }

    /// Numbers in a message.
    #[getter]
    fn slots(&self) -> usize {
        self.0.slots()
    }

    /// Where it computes.
    #[getter]
    fn device(&self) -> String {
        self.0.device().to_string()
    }

    /// What of its device's memory the engine uses; on the CPU, what its values and operations do.
    fn memory(&self) -> PyMemoryUse {
        PyMemoryUse(self.0.memory())
    }

    /// Has the peak of `memory()` count from now on.
    fn _reset_memory_peak(&self) {
        self.0.reset_memory_peak();
    }

    /// Waits until everything that was asked of the engine is done.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.synchronize()).or_raise()
    }

    /// Calls a function with this engine's work on another stream.
    fn _on_stream<'py>(
        &self,
        py: Python<'py>,
        stream: usize,
        function: Bound<'py, PyAny>,
        args: Bound<'py, PyTuple>,
        kwargs: Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let context = self.0.cuda().ok_or_else(|| {
            raise(
                ErrorKind::Device,
                "on_stream: the engine computes on cpu; use one with device=\"cuda\"",
            )
        })?;
        let (function, args, kwargs) = (function.unbind(), args.unbind(), kwargs.unbind());
        let call = || {
            Python::attach(|py| function.call(py, args.bind(py), Some(kwargs.bind(py))))
                .map_err(Failure::Python)
        };
        // The queue is this thread's for the call: others that wait for it must not hold the
        // interpreter, nor may this one while it waits.
        // SAFETY: the handle is a live stream of the device, as `Engine.on_stream` asks for.
        let called = py.detach(|| unsafe { context.on_stream(stream, call) });
        match called {
            Ok(result) => Ok(result.into_bound(py)),
            Err(Failure::Python(error)) => Err(error),
            Err(Failure::Device(error)) => Err(RuntimeError::from(error).into_python()),
        }
    }

    /// A value or keys on this engine's device.
    fn _to<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = value.py();
        let engine = &self.0;
        Ok(if let Ok(value) = value.cast::<PyCiphertext>() {
            value.get().placed(py, engine)?
        } else if let Ok(value) = value.cast::<PyPlaintext>() {
            value.get().placed(py, engine)?
        } else if let Ok(key) = value.cast::<PyEvaluationKey>() {
            Bound::new(py, key.get().placed(py, engine)?)?.into_any()
        } else if let Ok(key) = value.cast::<PySecretKey>() {
            Bound::new(py, key.get().placed(py, engine)?)?.into_any()
        } else if let Ok(key) = value.cast::<PyPublicKey>() {
            Bound::new(py, key.get().placed(py, engine)?)?.into_any()
        } else if let Ok(keys) = value.cast::<PyEvaluationKeys>() {
            Bound::new(py, keys.get().placed(py, engine)?)?.into_any()
        } else if let Ok(keys) = value.cast::<PyKeySet>() {
            Bound::new(py, keys.get().placed(py, engine)?)?.into_any()
        } else {
            return Err(PyTypeError::new_err(format!(
                "to: expected a Ciphertext, a Plaintext or keys, found {}",
                class_name(value)
            )));
        })
    }

    /// Bytes of the evaluation keys that keygen would make, known before it does.
    #[pyo3(signature = (*, rotations = vec![], conjugation = false))]
    fn predicted_key_bytes(&self, rotations: Vec<i64>, conjugation: bool) -> usize {
        self.0.predicted_key_bytes(&rotations, conjugation)
    }

    fn _keygen(
        &self,
        py: Python<'_>,
        rotations: Vec<i64>,
        conjugation: bool,
    ) -> PyResult<PyKeySet> {
        let keys = py
            .detach(|| self.0.keygen(&rotations, conjugation))
            .or_raise()?;
        Ok(PyKeySet {
            keys,
            parameters: self.0.parameters().clone(),
        })
    }

    fn _use(&self, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(keys) = keys.cast::<PyEvaluationKeys>() {
            return self.0.use_keys(&keys.get().keys).or_raise();
        }
        if keys.cast::<PyKeySet>().is_ok() {
            return Err(PyTypeError::new_err(
                "use: a KeySet holds the secret; give keys.evaluation()",
            ));
        }
        Err(PyTypeError::new_err(format!(
            "use: expected EvaluationKeys, such as keys.evaluation(), found {}",
            keys.get_type().name()?
        )))
    }

    fn _apply<'py>(
        &self,
        py: Python<'py>,
        operation: &str,
        operands: Vec<Bound<'py, PyAny>>,
        attributes: &Bound<'py, PyDict>,
        key: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let kind = operation_from_name(operation)?;
        let attributes = attributes_from(kind, attributes)?;
        let values = operands
            .iter()
            .chain(key.as_ref())
            .map(value_from)
            .collect::<PyResult<Vec<Value>>>()?;
        let results = py
            .detach(|| self.0.apply(kind, &values, &attributes, None))
            .or_raise()?;
        let mut results = results
            .into_iter()
            .map(|value| value_to_python(py, value, &self.0))
            .collect::<PyResult<Vec<_>>>()?;
        if results.len() == 1 {
            return Ok(results.remove(0));
        }
        Ok(results.into_pyobject(py)?.into_any())
    }

    fn _rotate_many<'py>(
        &self,
        py: Python<'py>,
        ciphertext: &PyCiphertext,
        steps: Vec<i64>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let value = Value::Ciphertext(ciphertext.value.clone());
        let results = py
            .detach(|| self.0.rotate_many(&value, &steps))
            .or_raise()?;
        let results = results.into_iter();
        results
            .map(|value| value_to_python(py, value, &self.0))
            .collect()
    }

    fn _decode<'py>(
        &self,
        py: Python<'py>,
        plaintext: &PyPlaintext,
        real: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let tensor = py
            .detach(|| self.0.decode(&plaintext.value, real))
            .or_raise()?;
        tensor_to_python(py, &tensor)
    }

    fn _encrypt<'py>(
        &self,
        py: Python<'py>,
        plaintext: &PyPlaintext,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let encrypt = |key: EncryptionKey<'_>| self.0.encrypt(&plaintext.value, key);
        let ciphertext = if let Ok(public) = key.cast::<PyPublicKey>() {
            let key = &public.get().key;
            py.detach(|| encrypt(EncryptionKey::Public(key)))
        } else if let Ok(secret) = key.cast::<PySecretKey>() {
            let key = &secret.get().key;
            py.detach(|| encrypt(EncryptionKey::Secret(key)))
        } else {
            return Err(PyTypeError::new_err(format!(
                "encrypt: key must be a PublicKey or a SecretKey, such as keys.public, found {}",
                key.get_type().name()?
            )));
        };
        value_to_python(py, Value::from(ciphertext.or_raise()?), &self.0)
    }

    fn _decrypt<'py>(
        &self,
        py: Python<'py>,
        ciphertext: &Bound<'py, PyAny>,
        secret: &Bound<'py, PyAny>,
        real: bool,
        noise_flooding: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ciphertext = ciphertext.cast::<PyCiphertext>().map_err(|_| {
            PyTypeError::new_err(format!(
                "decrypt: expected a Ciphertext, found {}",
                class_name(ciphertext)
            ))
        })?;
        let secret = secret.cast::<PySecretKey>().map_err(|_| {
            PyTypeError::new_err(format!(
                "decrypt: the secret key is needed, such as keys.secret, found {}",
                class_name(secret)
            ))
        })?;
        let (value, key) = (&ciphertext.get().value, &secret.get().key);
        let flooding = noise_flooding.map(|log2_standard_deviation| NoiseFlooding {
            log2_standard_deviation,
        });
        let tensor = py
            .detach(|| {
                let plaintext = self.0.decrypt(value, key, flooding)?;
                self.0.decode(&plaintext, real)
            })
            .or_raise()?;
        tensor_to_python(py, &tensor)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<PyEngine>()
            .is_ok_and(|other| Arc::ptr_eq(&other.get().0, &self.0))
    }

    fn __hash__(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    fn __repr__(&self) -> String {
        format!("<Engine on {} of {}>", self.device(), self.0.parameters())
    }
}

/// An error of a call on another stream.
enum Failure {
    Python(PyErr),
    Device(CudaError),
}

impl From<CudaError> for Failure {
    fn from(error: CudaError) -> Self {
        Failure::Device(error)
    }
}

/// Bytes of a device's memory that an engine uses.
#[pyclass(name = "MemoryUse", module = "fhelium", frozen)]
pub struct PyMemoryUse(MemoryUse);

#[pymethods]
impl PyMemoryUse {
    /// Held by live values, keys and tables.
    #[getter]
    fn used(&self) -> usize {
        self.0.used
    }

    /// Freed and kept for the next operations.
    #[getter]
    fn kept(&self) -> usize {
        self.0.kept
    }

    /// The most that was used at once.
    #[getter]
    fn peak(&self) -> usize {
        self.0.peak
    }

    /// The limit on `used` and `kept` together, if one was set.
    #[getter]
    fn limit(&self) -> Option<usize> {
        self.0.limit
    }

    fn __repr__(&self) -> String {
        let MemoryUse {
            used,
            kept,
            peak,
            limit,
        } = self.0;
        let limit = limit.map_or_else(|| "None".to_owned(), |limit| limit.to_string());
        format!("<MemoryUse used={used} kept={kept} peak={peak} limit={limit}>")
    }
}

/// The name of an object's class, for messages.
pub fn class_name(object: &Bound<'_, PyAny>) -> String {
    object
        .get_type()
        .name()
        .map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}
