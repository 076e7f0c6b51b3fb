//! Signatures of calls.

use fhelium_runtime::{ArgumentSignature, CallSignature};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The conditions that one argument meets.
#[pyclass(
    name = "ArgumentSignature",
    module = "fhelium.compile",
    frozen,
    eq,
    hash
)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PyArgumentSignature(ArgumentSignature);

#[pymethods]
impl PyArgumentSignature {
    /// The parameter's name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// "ciphertext", "plaintext", "tensor", "key" or "static".
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.condition.kind()
    }

    /// Every condition as text, by name.
    #[getter]
    fn properties<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let properties = PyDict::new(py);
        for (name, value) in self.0.condition.properties() {
            properties.set_item(name, value)?;
        }
        Ok(properties)
    }

    /// One condition as text, or the default.
    #[pyo3(signature = (property, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        property: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.0.condition.get(property) {
            Some(value) => Ok(Some(value.into_pyobject(py)?.into_any())),
            None => Ok(default),
        }
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}

/// The conditions of all arguments of a call, in the order of the parameters.
#[pyclass(name = "CallSignature", module = "fhelium.compile", frozen, eq, hash)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PyCallSignature(pub CallSignature);

#[pymethods]
impl PyCallSignature {
    /// The arguments' signatures.
    #[getter]
    fn arguments(&self) -> Vec<PyArgumentSignature> {
        let arguments = self.0.arguments().iter().cloned();
        arguments.map(PyArgumentSignature).collect()
    }

    /// The signature of one argument.
    fn argument(&self, name: &str) -> Option<PyArgumentSignature> {
        self.0.argument(name).cloned().map(PyArgumentSignature)
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}
