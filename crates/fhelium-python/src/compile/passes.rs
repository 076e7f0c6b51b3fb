//! Passes, and what each reports.

use super::compilation::PyCompilation;
use crate::errors::bad_argument;
use crate::held::{HeldRef, Holds, hold};
use crate::ir::PyProgram;
use fhelium_passes::passes::{
    BufferPlanning, ConstantEncodings, DeadValues, LinearFusion, LowerToCkks, RescaleJoining,
    Reuse, RotationHoisting, RouteSelection,
};
use fhelium_passes::{
    Compilation, FunctionPass, Named, Pass, PassContext, PassError, PassReport, PassResult,
};
use pyo3::exceptions::{PyReferenceError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;

/// A transformation or analysis of a Compilation.
#[pyclass(name = "Pass", module = "fhelium.compile", frozen, subclass)]
pub struct PyPass {
    pub(super) pass: Arc<dyn Pass>,
    pub(super) holds: Holds,
}

#[pymethods]
impl PyPass {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.holds.visit(&visit)
    }

    /// The name by which a pipeline addresses it.
    #[getter]
    fn name(&self) -> &str {
        self.pass.name()
    }

    /// A text that stands for what the pass does, its options included; None for a pass whose
    /// results are not kept on disk.
    #[getter]
    fn cache_key(&self) -> Option<String> {
        self.pass.cache_key()
    }

    /// The same pass under another name, so that a pipeline may hold it twice.
    fn named(&self, py: Python<'_>, name: String) -> Self {
        PyPass {
            pass: Arc::new(Named::of(name, self.pass.clone())),
            holds: self.holds.clone_ref(py),
        }
    }

    fn __repr__(&self) -> String {
        format!("<pass {}>", self.pass.name())
    }
}

/// A function's pass with a cache key, if it has one.
fn keyed<F>(pass: FunctionPass<F>, key: Option<String>) -> Arc<dyn Pass>
where
    F: Fn(&mut Compilation, &PassContext<'_>) -> Result<PassResult, PassError>
        + Send
        + Sync
        + 'static,
{
    match key {
        Some(key) => Arc::new(pass.with_cache_key(key)),
        None => Arc::new(pass),
    }
}

/// Removes operations whose results nothing reads.
#[pyclass(name = "DeadValues", module = "fhelium.compile", frozen, extends = PyPass)]
pub struct PyDeadValues;

/// Computes equal expressions once.
#[pyclass(name = "Reuse", module = "fhelium.compile", frozen, extends = PyPass)]
pub struct PyReuse;

/// Makes keys, levels and scales explicit: `he` operations become `ckks` operations.
#[pyclass(name = "LowerToCkks", module = "fhelium.compile", frozen, extends = PyPass)]
pub struct PyLowerToCkks;

/// Joins a relinearization with the rescale that alone reads it.
#[pyclass(name = "RescaleJoining", module = "fhelium.compile", frozen, extends = PyPass)]
pub struct PyRescaleJoining;

/// Joins rotations of one ciphertext, which then share its decomposition.
#[pyclass(name = "RotationHoisting", module = "fhelium.compile", frozen, extends = PyPass)]
pub struct PyRotationHoisting;

/// Joins sums, differences and multiples of one level into operations that run as one.
#[pyclass(name = "LinearFusion", module = "fhelium.compile", frozen, extends = PyPass)]
pub struct PyLinearFusion;

/// Finds what depends on fixed data alone, to be computed once and kept between calls.
#[pyclass(name = "ConstantEncodings", module = "fhelium.compile", frozen, extends = PyPass)]
pub struct PyConstantEncodings;

/// Chooses for each operation how it runs.
#[pyclass(name = "RouteSelection", module = "fhelium.compile", frozen, extends = PyPass)]
pub struct PyRouteSelection;

/// Plans which values share buffers.
#[pyclass(name = "BufferPlanning", module = "fhelium.compile", frozen, extends = PyPass)]
pub struct PyBufferPlanning;

fn pass<S>(subclass: S, pass: impl Pass + 'static) -> PyClassInitializer<S>
where
    S: pyo3::PyClass<BaseType = PyPass>,
{
    let pass = PyPass {
        pass: Arc::new(pass),
        holds: Holds::default(),
    };
    PyClassInitializer::from(pass).add_subclass(subclass)
}

#[pymethods]
impl PyDeadValues {
    #[new]
    fn new() -> PyClassInitializer<Self> {
        pass(PyDeadValues, DeadValues)
    }
}

#[pymethods]
impl PyReuse {
    #[new]
    fn new() -> PyClassInitializer<Self> {
        pass(PyReuse, Reuse)
    }
}

#[pymethods]
impl PyLowerToCkks {
    #[new]
    fn new() -> PyClassInitializer<Self> {
        pass(PyLowerToCkks, LowerToCkks)
    }
}

#[pymethods]
impl PyRescaleJoining {
    #[new]
    fn new() -> PyClassInitializer<Self> {
        pass(PyRescaleJoining, RescaleJoining)
    }
}

#[pymethods]
impl PyRotationHoisting {
    /// `max_group_size`: the most rotations in one group, at least 2.
    #[new]
    #[pyo3(signature = (*, max_group_size = 16))]
    fn new(max_group_size: i64) -> PyResult<PyClassInitializer<Self>> {
        let size = usize::try_from(max_group_size);
        let Some(max_group_size) = size.ok().filter(|&size| size >= 2) else {
            return Err(bad_argument(format!(
                "max_group_size must be at least 2, found {max_group_size}"
            )));
        };
        Ok(pass(
            PyRotationHoisting,
            RotationHoisting { max_group_size },
        ))
    }
}

#[pymethods]
impl PyLinearFusion {
    /// `max_operands`: the most operands of one operation, from 2 to 64.
    #[new]
    #[pyo3(signature = (*, max_operands = 64))]
    fn new(max_operands: i64) -> PyResult<PyClassInitializer<Self>> {
        let fusion = LinearFusion::default();
        let most = usize::try_from(max_operands);
        let Some(max_operands) = most
            .ok()
            .filter(|most| (2..=fusion.max_operands).contains(most))
        else {
            return Err(bad_argument(format!(
                "max_operands must be from 2 to {}, found {max_operands}",
                fusion.max_operands
            )));
        };
        Ok(pass(
            PyLinearFusion,
            LinearFusion {
                max_operands,
                ..fusion
            },
        ))
    }
}

#[pymethods]
impl PyConstantEncodings {
    /// `max_resident_bytes`: the most that is kept between calls.
    #[new]
    #[pyo3(signature = (*, max_resident_bytes = None))]
    fn new(max_resident_bytes: Option<u64>) -> PyClassInitializer<Self> {
        let mut encodings = ConstantEncodings::default();
        if let Some(bytes) = max_resident_bytes {
            encodings.max_resident_bytes = bytes;
        }
        pass(PyConstantEncodings, encodings)
    }
}

#[pymethods]
impl PyRouteSelection {
    #[new]
    fn new() -> PyClassInitializer<Self> {
        pass(PyRouteSelection, RouteSelection::default())
    }
}

#[pymethods]
impl PyBufferPlanning {
    #[new]
    fn new() -> PyClassInitializer<Self> {
        pass(PyBufferPlanning, BufferPlanning)
    }
}

/// A pass made of a Python function.
///
/// The function takes a Compilation and returns the Program that takes the place of its own, or
/// None where it stays. What comes back is verified like every pass's result.
///
/// Without a `cache_key`, functions compiled with it are not kept in the cache directory. Whoever
/// gives one promises that the function looks at the Program alone, and changes the key whenever
/// the function changes.
#[pyclass(name = "PythonPass", module = "fhelium.compile", frozen, extends = PyPass)]
pub struct PyPythonPass;

#[pymethods]
impl PyPythonPass {
    #[new]
    #[pyo3(signature = (name, function, *, cache_key = None))]
    fn new(
        name: String,
        function: Bound<'_, PyAny>,
        cache_key: Option<String>,
    ) -> PyResult<PyClassInitializer<Self>> {
        if !function.is_callable() {
            return Err(PyTypeError::new_err(format!(
                "a PythonPass takes a function from a Compilation to a Program or None, found {}",
                function.get_type().name()?
            )));
        }
        let (holds, function) = hold(function)?;
        let run = move |compilation: &mut Compilation, context: &PassContext<'_>| {
            run_python(&function, compilation, context)
        };
        // The name apart, a Rust pass must not have the same key.
        let key = cache_key.map(|key| format!("PythonPass({key:?})"));
        let pass = keyed(FunctionPass::new(name, run), key);
        let pass = PyPass { pass, holds };
        Ok(PyClassInitializer::from(pass).add_subclass(PyPythonPass))
    }
}

fn run_python(
    function: &HeldRef,
    compilation: &mut Compilation,
    context: &PassContext<'_>,
) -> Result<PassResult, PassError> {
    Python::attach(|py| {
        let given = Py::new(py, PyCompilation::of(py, compilation.clone()))?;
        // Whoever runs it keeps the pipeline, and with it the function.
        let function = function.get(py).ok_or_else(|| {
            PyReferenceError::new_err("the pass's function is gone: its pipeline was collected")
        })?;
        let returned = function.call1((given.bind(py),))?;
        let mut result = PassResult::default();
        if !returned.is_none() {
            let program = returned.cast::<PyProgram>().map_err(|_| {
                PyTypeError::new_err(format!(
                    "the pass must return a Program or None, found {}",
                    returned
                        .get_type()
                        .name()
                        .map_or_else(|_| "an object".to_owned(), |name| name.to_string())
                ))
            })?;
            result.stats.matched = 1;
            result.stats.transformed = 1;
            compilation.set_program(program.get().0.clone());
        }
        given.get().bind_materials(py, compilation)?;
        Ok(result)
    })
    .map_err(|error: PyErr| {
        let text = Python::attach(|py| error.value(py).to_string());
        context.error(text).caused_by(error)
    })
}

/// What one pass of a pipeline did, and how long it took.
#[pyclass(name = "PassReport", module = "fhelium.compile", frozen)]
pub struct PyPassReport(pub PassReport);

#[pymethods]
impl PyPassReport {
    /// The pass.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// Counts of operations: matched, transformed, inserted, removed and skipped.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = PyDict::new(py);
        let counts = &self.0.result.stats;
        stats.set_item("matched", counts.matched)?;
        stats.set_item("transformed", counts.transformed)?;
        stats.set_item("inserted", counts.inserted)?;
        stats.set_item("removed", counts.removed)?;
        stats.set_item("skipped", counts.skipped)?;
        Ok(stats)
    }

    /// Remarks, with the operation and line that each is about.
    #[getter]
    fn diagnostics(&self) -> Vec<String> {
        let remarks = self.0.result.diagnostics.iter();
        remarks.map(ToString::to_string).collect()
    }

    /// Choices: subject, selected, candidates and details of each.
    #[getter]
    fn decisions(&self) -> Vec<(String, String, Vec<String>, String)> {
        let decisions = self.0.result.decisions.iter().cloned();
        decisions
            .map(|choice| {
                (
                    choice.subject,
                    choice.selected,
                    choice.candidates,
                    choice.details,
                )
            })
            .collect()
    }

    /// Seconds in the pass itself.
    #[getter]
    fn seconds(&self) -> f64 {
        self.0.time.as_secs_f64()
    }

    /// Operations before and after.
    #[getter]
    fn operations(&self) -> (usize, usize) {
        self.0.operations
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}
