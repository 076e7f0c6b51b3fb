//! Backends.

use crate::engine::class_name;
use crate::errors::OrRaise;
use crate::held::{HeldRef, Holds, hold};
use crate::ir::{attributes_to_python, operation_from_name};
use crate::values::{value_from, value_to_python};
use fhelium_ir::OpKind;
use fhelium_runtime::{
    Implementation, Invocation, Operands, OperationBackend, Results, RuntimeError,
};
use pyo3::exceptions::{PyReferenceError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;

/// Which implementation runs each operation; a value, every change of which is another one.
///
/// Without arguments it holds the host kernels. Of the implementations that support an
/// operation's operands the one of least cost is taken.
#[pyclass(name = "OperationBackend", module = "fhelium.compile", frozen)]
#[derive(Default)]
pub struct PyOperationBackend {
    /// The registry.
    pub backend: OperationBackend,
    /// The functions that it runs.
    pub holds: Holds,
}

impl PyOperationBackend {
    /// The same once more.
    pub fn clone_ref(&self, py: Python<'_>) -> Self {
        PyOperationBackend {
            backend: self.backend.clone(),
            holds: self.holds.clone_ref(py),
        }
    }
}

#[pymethods]
impl PyOperationBackend {
    #[new]
    fn new() -> Self {
        PyOperationBackend::default()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.holds.visit(&visit)
    }

    /// This backend and a Python function that runs one operation.
    ///
    /// Args:
    ///     operation: The operation, such as "ckks.add" or "tensor.tanh".
    ///     name: The implementation's name.
    ///     function: Takes the operands, and the attributes by keyword, and returns the result,
    ///         or a list of several.
    ///     cost: The expected time relative to the host kernel's, which is 1.
    #[pyo3(signature = (operation, name, function, *, cost = 0.5))]
    fn with_implementation(
        &self,
        operation: &str,
        name: String,
        function: Bound<'_, PyAny>,
        cost: f64,
    ) -> PyResult<Self> {
        if !function.is_callable() {
            return Err(PyTypeError::new_err(format!(
                "an implementation is a function of the operands, found {}",
                class_name(&function)
            )));
        }
        let py = function.py();
        let (holds, function) = hold(function)?;
        let implementation: Arc<dyn Implementation> = Arc::new(PythonImplementation {
            name,
            operation: operation_from_name(operation)?,
            function,
            cost,
        });
        Ok(PyOperationBackend {
            backend: self
                .backend
                .with_implementations([implementation])
                .or_raise()?,
            holds: self.holds.clone_ref(py).and(holds),
        })
    }

    /// This backend with an operation's implementation fixed by name.
    fn with_selection(&self, py: Python<'_>, operation: &str, name: &str) -> PyResult<Self> {
        let operation = operation_from_name(operation)?;
        Ok(PyOperationBackend {
            backend: self.backend.with_selection(operation, name).or_raise()?,
            holds: self.holds.clone_ref(py),
        })
    }

    /// The names of an operation's implementations, in the order in which they were added.
    fn available(&self, operation: &str) -> PyResult<Vec<String>> {
        let operation = operation_from_name(operation)?;
        let available = self.backend.available(operation).iter();
        Ok(available.map(|known| known.name().to_owned()).collect())
    }

    /// The operations that have an implementation.
    #[getter]
    fn operations(&self) -> Vec<&'static str> {
        self.backend.operations().map(OpKind::name).collect()
    }

    fn __repr__(&self) -> String {
        format!(
            "<OperationBackend of {} operations>",
            self.backend.operations().count()
        )
    }
}

struct PythonImplementation {
    name: String,
    operation: OpKind,
    function: HeldRef,
    cost: f64,
}

impl Implementation for PythonImplementation {
    fn name(&self) -> &str {
        &self.name
    }

    fn operation(&self) -> OpKind {
        self.operation
    }

    fn cost(&self) -> f64 {
        self.cost
    }

    fn execute(
        &self,
        invocation: &Invocation<'_>,
        operands: Operands,
    ) -> Result<Results, RuntimeError> {
        let engine = invocation.engine.handle().ok_or_else(|| {
            RuntimeError::Implementation("the engine is being dropped".to_owned())
        })?;
        Python::attach(|py| {
            let operands = operands
                .into_iter()
                .map(|value| value_to_python(py, value, &engine))
                .collect::<PyResult<Vec<_>>>()?;
            let attributes = attributes_to_python(py, invocation.attributes)?;
            // Whoever runs it keeps the backend, and with it the function.
            let function = self.function.get(py).ok_or_else(|| {
                PyReferenceError::new_err("its function is gone: the backend was collected")
            })?;
            let returned = function.call(PyTuple::new(py, operands)?, Some(&attributes))?;
            match returned.cast::<PyList>() {
                Ok(several) => several.iter().map(|result| value_from(&result)).collect(),
                Err(_) => Ok([value_from(&returned)?].into_iter().collect()),
            }
        })
        .map_err(|error: PyErr| {
            RuntimeError::Implementation(format!(
                "the implementation {:?} of {} failed: {error}",
                self.name, self.operation
            ))
        })
    }
}
