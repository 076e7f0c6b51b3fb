//! Linked variants of compiled functions.

use super::backend::PyOperationBackend;
use super::compilation::{PyCompilation, holds_of};
use super::signature::PyCallSignature;
use crate::errors::OrRaise;
use crate::held::Holds;
use crate::ir::{PyProgram, literal_to_python, location_to_python};
use crate::values::{lent_value_from, value_to_python};
use fhelium_ir::OutputTree;
use fhelium_runtime::persist::CacheOutcome;
use fhelium_runtime::{Engine, Specialization, Value};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use std::path::PathBuf;
use std::sync::Arc;

/// A variant of a compiled function: its Program after the passes, linked to a backend.
#[pyclass(name = "Specialization", module = "fhelium.compile", frozen)]
pub struct PySpecialization {
    specialization: Arc<Specialization>,
    holds: Holds,
}

impl PySpecialization {
    /// A variant, with what keeps the functions of its backend; its compilations' dicts are kept
    /// from here on.
    pub fn new(py: Python<'_>, specialization: Arc<Specialization>, backend: Holds) -> Self {
        let dicts = holds_of(py, specialization.source());
        PySpecialization {
            holds: backend.and(dicts),
            specialization,
        }
    }

    /// Seconds that a run is expected to take; the first call measures the machine.
    fn predicted(&self, py: Python<'_>) -> Option<f64> {
        let executable = self.specialization.executable();
        let predicted = py.detach(|| executable.predicted(executable.engine()));
        predicted.map(|time| time.as_secs_f64())
    }

    /// The variant.
    pub fn inner(&self) -> &Arc<Specialization> {
        &self.specialization
    }
}

#[pymethods]
impl PySpecialization {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.holds.visit(&visit)
    }

    /// What the arguments must be.
    #[getter]
    fn signature(&self) -> PyCallSignature {
        PyCallSignature(self.specialization.signature().clone())
    }

    /// The Compilation before the passes.
    #[getter]
    fn source(&self, py: Python<'_>) -> PyCompilation {
        PyCompilation::of(py, self.specialization.source().clone())
    }

    /// The Compilation after the passes, with their reports.
    #[getter]
    fn compilation(&self, py: Python<'_>) -> PyCompilation {
        PyCompilation::of(py, self.specialization.compilation().clone())
    }

    /// The Program after the passes.
    #[getter]
    fn program(&self) -> PyProgram {
        PyProgram(self.specialization.program().clone())
    }

    /// The backend that it was linked with.
    #[getter]
    fn backend(&self, py: Python<'_>) -> PyOperationBackend {
        PyOperationBackend {
            backend: self.specialization.backend().clone(),
            holds: self.holds.clone_ref(py),
        }
    }

    /// What runs.
    #[getter]
    fn executable(slf: Py<Self>) -> PyExecutable {
        PyExecutable(slf)
    }

    /// Operations with their implementations, keys, materials and bytes; read-only.
    #[getter]
    fn manifest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let manifest = self.specialization.manifest();
        let operations = PyList::empty(py);
        for entry in &manifest.operations {
            let operation = PyDict::new(py);
            operation.set_item("operation", entry.operation.name())?;
            operation.set_item("implementation", &*entry.implementation)?;
            operation.set_item("device", entry.device.to_string())?;
            operation.set_item("prologue", entry.prologue)?;
            operation.set_item("location", location_to_python(entry.location.as_ref()))?;
            operations.append(read_only(operation)?)?;
        }
        let whole = PyDict::new(py);
        whole.set_item("operations", PyTuple::new(py, operations)?)?;
        whole.set_item("keys", self.keys(py)?)?;
        let materials = PyDict::new(py);
        for (symbol, live) in &manifest.materials {
            materials.set_item(&**symbol, if *live { "live" } else { "fixed" })?;
        }
        whole.set_item("materials", read_only(materials)?)?;
        let bytes = PyDict::new(py);
        bytes.set_item("inputs", manifest.memory.inputs)?;
        bytes.set_item("peak", manifest.memory.peak)?;
        bytes.set_item("resident", manifest.memory.resident)?;
        whole.set_item("bytes", read_only(bytes)?)?;
        read_only(whole)
    }

    /// Counts of operations and of the work in them, the seconds that a run is predicted to take
    /// (None where that is not known), and the seconds that the runs so far took: together and the
    /// fastest of them.
    #[getter]
    fn cost<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let cost = self.specialization.cost();
        let operations = PyDict::new(py);
        for (name, (count, _)) in &cost.operations {
            operations.set_item(name, count)?;
        }
        let whole = PyDict::new(py);
        whole.set_item("operations", read_only(operations)?)?;
        let total = cost.total;
        whole.set_item("transforms", total.transforms)?;
        whole.set_item("products", total.products)?;
        whole.set_item("sums", total.sums)?;
        whole.set_item("conversions", total.conversions)?;
        whole.set_item("key_products", total.key_products)?;
        whole.set_item("key_switches", total.key_switches)?;
        let measured = self.specialization.executable().measured();
        whole.set_item("predicted_seconds", self.predicted(py))?;
        whole.set_item("runs", measured.runs)?;
        whole.set_item("seconds", measured.total.as_secs_f64())?;
        let fastest = measured.fastest.map(|time| time.as_secs_f64());
        whole.set_item("fastest_seconds", fastest)?;
        let times = self.specialization.times();
        let preparation = PyDict::new(py);
        preparation.set_item("capture", times.capture.as_secs_f64())?;
        preparation.set_item("passes", times.passes.as_secs_f64())?;
        preparation.set_item("link", times.link.as_secs_f64())?;
        whole.set_item("preparation_seconds", read_only(preparation)?)?;
        read_only(whole)
    }

    /// Whether its compiled Program came from the cache directory.
    #[getter(from_cache)]
    fn read_from_cache(&self) -> bool {
        self.specialization.cache_use().outcome == CacheOutcome::Hit
    }

    /// The evaluation keys that a call looks up: kind, and the lines that need it.
    #[getter]
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let keys = self.specialization.keys().iter().map(|key| {
            let lines: Vec<_> = key
                .locations
                .iter()
                .filter_map(|location| location_to_python(Some(location)))
                .collect();
            (key.kind.to_string(), lines)
        });
        PyTuple::new(py, keys.collect::<Vec<_>>())
    }

    /// A text for people: signature, passes, implementations, keys, costs, bytes and times.
    fn explain(&self, py: Python<'_>) -> String {
        // The first prediction measures the machine.
        py.detach(|| self.specialization.explain())
    }

    /// Writes a picture of the Program.
    fn to_svg(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let program = self.specialization.program();
        py.detach(|| std::fs::write(&path, program.to_svg()))
            .map_err(|error| PyOSError::new_err(format!("{}: {error}", path.display())))
    }

    fn _repr_html_(&self, py: Python<'_>) -> String {
        let mut rows = String::new();
        let mut row = |name: &str, value: &str| {
            rows.push_str(&format!(
                "<tr><th style=\"text-align:left\">{}</th><td style=\"text-align:left\">{}</td></tr>",
                escape(name),
                escape(value)
            ));
        };
        row("function", self.specialization.program().name());
        for argument in self.specialization.signature().arguments() {
            row(&argument.name, &argument.condition.to_string());
        }
        for (operation, implementation, count) in self.specialization.manifest().summary() {
            row(operation.name(), &format!("{count} x {implementation}"));
        }
        let keys = self
            .specialization
            .keys()
            .iter()
            .map(|key| key.kind.to_string());
        row("keys", &keys.collect::<Vec<_>>().join(", "));
        let memory = self.specialization.manifest().memory;
        row("peak bytes", &memory.peak.to_string());
        let milliseconds = |seconds: f64| format!("{:.3} ms", 1e3 * seconds);
        let predicted = self
            .predicted(py)
            .map_or("not known".to_owned(), milliseconds);
        row("predicted time", &predicted);
        let measured = self.specialization.executable().measured();
        if let Some(fastest) = measured.fastest {
            let mean = milliseconds(measured.total.as_secs_f64() / measured.runs as f64);
            let fastest = milliseconds(fastest.as_secs_f64());
            row("measured time", &format!("{mean}, the fastest {fastest}"));
        }
        row("runs", &measured.runs.to_string());
        format!("<table>{rows}</table>")
    }

    fn __repr__(&self) -> String {
        format!(
            "<Specialization {}{}, {} operations>",
            self.specialization.program().name(),
            self.specialization.signature(),
            self.specialization.program().body().ops().len()
        )
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn read_only(dict: Bound<'_, PyDict>) -> PyResult<Bound<'_, PyAny>> {
    PyModule::import(dict.py(), "types")?
        .getattr("MappingProxyType")?
        .call1((dict,))
}

/// A linked Program.
#[pyclass(name = "Executable", module = "fhelium.compile", frozen)]
pub struct PyExecutable(Py<PySpecialization>);

#[pymethods]
impl PyExecutable {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)
    }

    /// Runs it on the Program's inputs, in order.
    #[pyo3(signature = (*inputs))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let values = inputs
            .iter()
            .map(|input| lent_value_from(&input))
            .collect::<PyResult<Vec<_>>>()?;
        let (values, _lenders): (Vec<_>, Vec<_>) = values.into_iter().unzip();
        run(py, self.0.get().inner(), &values, None, None)
    }

    /// How its next run is done: as a CUDA graph or as recorded launches, whichever was found to be
    /// the faster, in both ways by turns until that is known, or operation by operation and why; and
    /// what is done on the host before that.
    #[getter]
    fn replays(&self) -> String {
        let executable = self.0.get().inner().executable();
        let (replays, work) = (executable.replays(), executable.host_work());
        match work.is_empty() {
            true => replays.to_string(),
            false => format!("{replays}; before that, in each call: {work}"),
        }
    }

    fn __repr__(&self) -> String {
        format!("<Executable of {}>", self.0.get().inner().program().name())
    }
}

/// Runs a variant and gives its results as Python objects, in the framework that was given.
pub fn run<'py>(
    py: Python<'py>,
    specialization: &Arc<Specialization>,
    values: &[Value],
    engine: Option<Arc<Engine>>,
    framework: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let executable = specialization.executable();
    let engine = engine.unwrap_or_else(|| executable.engine().clone());
    let outputs = py
        .detach(|| executable.run_with(&engine, values))
        .or_raise()?;
    let mut results = Results {
        py,
        engine,
        framework,
        known: Vec::new(),
    };
    results.rebuild(&outputs)
}

struct Results<'a, 'py> {
    py: Python<'py>,
    engine: Arc<Engine>,
    framework: Option<&'a Bound<'py, PyAny>>,
    /// Objects by the data they stand for: what is returned twice is one object.
    known: Vec<(*const (), Bound<'py, PyAny>)>,
}

impl<'py> Results<'_, 'py> {
    fn rebuild(&mut self, tree: &OutputTree<Value>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        Ok(match tree {
            OutputTree::Value(value) => self.leaf(value)?,
            OutputTree::Literal(literal) => literal_to_python(py, literal)?,
            OutputTree::Tuple(items) => PyTuple::new(py, self.all(items)?)?.into_any(),
            OutputTree::List(items) => PyList::new(py, self.all(items)?)?.into_any(),
            OutputTree::Dict(items) => {
                let dict = PyDict::new(py);
                for (key, item) in items {
                    dict.set_item(literal_to_python(py, key)?, self.rebuild(item)?)?;
                }
                dict.into_any()
            }
        })
    }

    fn all(&mut self, items: &[OutputTree<Value>]) -> PyResult<Vec<Bound<'py, PyAny>>> {
        items.iter().map(|item| self.rebuild(item)).collect()
    }

    fn leaf(&mut self, value: &Value) -> PyResult<Bound<'py, PyAny>> {
        let data = value.address();
        if let Some((_, object)) = self.known.iter().find(|(known, _)| *known == data) {
            return Ok(object.clone());
        }
        let mut object = value_to_python(self.py, value.clone(), &self.engine)?;
        if let (Value::Tensor(_), Some(framework)) = (value, self.framework)
            && framework.hasattr("from_dlpack")?
        {
            object = framework.call_method1("from_dlpack", (object,))?;
        }
        self.known.push((data, object.clone()));
        Ok(object)
    }
}
