//! Single keys.

use crate::ir::PyType;
use crate::parameters::PyParameters;
use crate::saving::{Reduced, reduce, refuse_pickling};
use crate::values::{device_note, moved};
use fhelium_ckks::{KeyKind, Parameters};
use fhelium_runtime::{KeySwitchKey, PublicKey, SecretKey, Value};
use pyo3::prelude::*;

/// The key that decrypts. It never shows its contents.
#[pyclass(name = "SecretKey", module = "fhelium", frozen)]
pub struct PySecretKey {
    pub key: SecretKey,
    pub parameters: Parameters,
}

/// The key that encrypts.
#[pyclass(name = "PublicKey", module = "fhelium", frozen)]
pub struct PyPublicKey {
    pub key: PublicKey,
    pub parameters: Parameters,
}

/// A key for relinearization, one rotation or conjugation.
#[pyclass(name = "EvaluationKey", module = "fhelium", frozen)]
pub struct PyEvaluationKey {
    pub key: KeySwitchKey,
    pub parameters: Parameters,
}

impl PyEvaluationKey {
    /// A key of these parameters.
    pub fn new(key: KeySwitchKey, parameters: &Parameters) -> Self {
        PyEvaluationKey {
            key,
            parameters: parameters.clone(),
        }
    }
}

#[pymethods]
impl PySecretKey {
    /// The id of the secret: random, not derived from it.
    #[getter]
    fn secret_id(&self) -> String {
        self.key.secret_id().to_string()
    }

    /// The parameters.
    #[getter]
    fn parameters(&self) -> PyParameters {
        PyParameters(self.parameters.clone())
    }

    /// Where it is.
    #[getter]
    fn device(&self) -> String {
        self.key.device().to_string()
    }

    /// The same key on a device.
    fn to<'py>(slf: &Bound<'py, Self>, device: &str) -> PyResult<Bound<'py, Self>> {
        let (py, own) = (slf.py(), slf.get());
        moved(slf, own.key.device(), device, &own.parameters, |engine| {
            Bound::new(py, own.placed(py, engine)?)
        })
    }

    /// Bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.key.nbytes()
    }

    fn __reduce__(&self) -> PyResult<()> {
        let instead = "send PublicKey or KeySet.evaluation() instead";
        Err(refuse_pickling("SecretKey", instead))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        let device = device_note(self.key.device());
        format!("<SecretKey of secret {}{device}>", self.key.secret_id())
    }
}

#[pymethods]
impl PyPublicKey {
    /// The id of the secret that decrypts what this key encrypts.
    #[getter]
    fn secret_id(&self) -> String {
        self.key.secret_id().to_string()
    }

    /// The parameters.
    #[getter]
    fn parameters(&self) -> PyParameters {
        PyParameters(self.parameters.clone())
    }

    /// Where it is.
    #[getter]
    fn device(&self) -> String {
        self.key.device().to_string()
    }

    /// The same key on a device.
    fn to<'py>(slf: &Bound<'py, Self>, device: &str) -> PyResult<Bound<'py, Self>> {
        let (py, own) = (slf.py(), slf.get());
        moved(slf, own.key.device(), device, &own.parameters, |engine| {
            Bound::new(py, own.placed(py, engine)?)
        })
    }

    /// Bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.key.nbytes()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, self.object())
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        let device = device_note(self.key.device());
        format!("<PublicKey of secret {}{device}>", self.key.secret_id())
    }
}

#[pymethods]
impl PyEvaluationKey {
    #[classattr]
    fn _fhelium_kind() -> &'static str {
        "key"
    }

    /// What it is for: "relinearization", "rotation" or "conjugation".
    #[getter]
    fn kind(&self) -> &'static str {
        match self.key.key_kind() {
            KeyKind::Relinearization => "relinearization",
            KeyKind::Rotation { .. } => "rotation",
            KeyKind::Conjugation => "conjugation",
        }
    }

    /// The step of a rotation key, from 0 to slots - 1.
    #[getter]
    fn step(&self) -> Option<usize> {
        match self.key.key_kind() {
            KeyKind::Rotation { step } => Some(step),
            KeyKind::Relinearization | KeyKind::Conjugation => None,
        }
    }

    /// The id of the secret.
    #[getter]
    fn secret_id(&self) -> String {
        self.key.secret_id().to_string()
    }

    /// The parameters.
    #[getter]
    fn parameters(&self) -> PyParameters {
        PyParameters(self.parameters.clone())
    }

    /// Where it is.
    #[getter]
    fn device(&self) -> String {
        self.key.device().to_string()
    }

    /// The same key on a device.
    fn to<'py>(slf: &Bound<'py, Self>, device: &str) -> PyResult<Bound<'py, Self>> {
        let (py, own) = (slf.py(), slf.get());
        moved(slf, own.key.device(), device, &own.parameters, |engine| {
            Bound::new(py, own.placed(py, engine)?)
        })
    }

    /// Bytes: one half and the seed of the other.
    #[getter]
    fn nbytes(&self) -> usize {
        self.key.nbytes()
    }

    fn _type(&self) -> PyType {
        PyType(Value::Key(self.key.clone()).ty())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, self.object())
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        let step = self
            .step()
            .map_or_else(String::new, |step| format!(" by {step}"));
        format!(
            "<EvaluationKey for {}{step} of secret {}{}>",
            self.kind(),
            self.key.secret_id(),
            device_note(self.key.device())
        )
    }
}
