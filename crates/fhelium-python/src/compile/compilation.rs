//! Compilations.

use super::materials::binding_from;
use super::passes::PyPassReport;
use crate::arrays::tensor_to_python;
use crate::engine::PyEngine;
use crate::errors::OrRaise;
use crate::held::{HeldRef, Holds, hold};
use crate::ir::PyProgram;
use crate::saving::{Reduced, reduce};
use crate::values::value_to_python;
use fhelium_passes::{Bindings, Compilation};
use fhelium_runtime::persist::Object;
use fhelium_runtime::{Device, Engine, MaterialBinding, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;

/// A Program under compilation, with the data bound to its materials.
///
/// Passes read and replace the Program; `material_bindings` and `workspace` are dicts that they
/// may change.
#[pyclass(name = "Compilation", module = "fhelium.compile", frozen)]
pub struct PyCompilation {
    /// The compilation as the passes see it.
    pub compilation: Compilation,
    /// The dicts.
    pub holds: Holds,
}

/// What Python hangs on a compilation.
pub struct PythonSide {
    /// The dicts of materials and of the workspace, as a tuple.
    dicts: HeldRef,
    /// Engines that the captured function used, the one of its arguments first.
    engines: Vec<Arc<Engine>>,
}

const SIDE: &str = "python";
const MATERIALS: usize = 0;
const WORKSPACE: usize = 1;

impl PyCompilation {
    fn make(
        program: PyProgram,
        materials: Bound<'_, PyDict>,
        workspace: Bound<'_, PyDict>,
        engines: Vec<Arc<Engine>>,
    ) -> PyResult<Self> {
        let py = materials.py();
        let mut compilation = Compilation::new(program.0);
        let holds = hang(&mut compilation, materials, workspace, engines)?;
        let made = PyCompilation::of(py, compilation.clone());
        made.bind_materials(py, &mut compilation)?;
        Ok(PyCompilation { compilation, holds })
    }

    /// A compilation whose dicts another Python object keeps.
    pub fn of(py: Python<'_>, compilation: Compilation) -> Self {
        let holds = holds_of(py, &compilation);
        PyCompilation { compilation, holds }
    }

    /// The same once more.
    pub fn clone_ref(&self, py: Python<'_>) -> Self {
        PyCompilation {
            compilation: self.compilation.clone(),
            holds: self.holds.clone_ref(py),
        }
    }

    /// A Program or Compilation as a Compilation.
    pub fn from_source(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(compilation) = source.cast::<PyCompilation>() {
            return Ok(compilation.get().clone_ref(py));
        }
        let program = source.cast::<PyProgram>().map_err(|_| {
            PyTypeError::new_err(format!(
                "expected a Program or a Compilation, found {}",
                source
                    .get_type()
                    .name()
                    .map_or_else(|_| "an object".to_owned(), |name| name.to_string())
            ))
        })?;
        let empty = || PyDict::new(py);
        PyCompilation::make(program.get().clone(), empty(), empty(), Vec::new())
    }

    /// A Compilation that was loaded, for an engine or for the one that its encrypted materials
    /// find.
    pub fn loaded(
        py: Python<'_>,
        loaded: Compilation,
        engine: Option<&PyEngine>,
    ) -> PyResult<Self> {
        let materials = PyDict::new(py);
        let mut engine = engine.map(|engine| engine.0.clone());
        for symbol in loaded.material_bindings.names() {
            let Some(binding) = loaded.material_bindings.get::<MaterialBinding>(symbol) else {
                continue;
            };
            let value = binding.current().or_raise()?;
            let object = match (&value, loaded.program().chain()) {
                (Value::Tensor(tensor), _) => tensor_to_python(py, tensor.host().or_raise()?)?,
                (_, None) => continue,
                (_, Some(chain)) => {
                    let own = match &engine {
                        Some(engine) => engine.clone(),
                        None => py
                            .detach(|| Engine::for_chain(chain, Device::Cpu))
                            .or_raise()?,
                    };
                    let value = py.detach(|| own.place_value(&value)).or_raise()?;
                    value_to_python(py, value, engine.insert(own))?
                }
            };
            materials.set_item(symbol, object)?;
        }
        let (plans, reports) = (loaded.plans().clone(), loaded.reports().to_vec());
        let program = PyProgram(loaded.into_program());
        let engines = engine.into_iter().collect();
        let mut made = PyCompilation::make(program, materials, PyDict::new(py), engines)?;
        made.compilation.restore(plans, reports);
        Ok(made)
    }

    /// The Compilation with what the dict of materials holds now.
    pub fn current(&self, py: Python<'_>) -> PyResult<Compilation> {
        let mut current = self.compilation.clone();
        current.material_bindings = Bindings::default();
        self.bind_materials(py, &mut current)?;
        Ok(current)
    }

    /// What Python hung on it.
    fn side(&self) -> Option<Arc<PythonSide>> {
        self.compilation.workspace.get::<PythonSide>(SIDE)
    }

    /// The engines that the captured function used.
    pub fn engines(&self) -> Vec<Arc<Engine>> {
        self.side()
            .map_or_else(Vec::new, |side| side.engines.clone())
    }

    /// Binds what the dict of materials holds now.
    pub fn bind_materials(&self, py: Python<'_>, into: &mut Compilation) -> PyResult<()> {
        for (symbol, value) in self.dict(py, MATERIALS)? {
            let symbol: String = symbol.extract()?;
            let binding = binding_from(&value)?;
            into.material_bindings.insert(symbol, Arc::new(binding));
        }
        Ok(())
    }

    /// One of the dicts.
    fn dict<'py>(&self, py: Python<'py>, which: usize) -> PyResult<Bound<'py, PyDict>> {
        let dicts = self.side().and_then(|side| side.dicts.get(py));
        match dicts {
            Some(dicts) => Ok(dicts.get_item(which)?.cast_into()?),
            None => Ok(PyDict::new(py)),
        }
    }
}

/// Hangs Python's dicts on a compilation, and gives what keeps them.
fn hang(
    compilation: &mut Compilation,
    materials: Bound<'_, PyDict>,
    workspace: Bound<'_, PyDict>,
    engines: Vec<Arc<Engine>>,
) -> PyResult<Holds> {
    let dicts = PyTuple::new(materials.py(), [&materials, &workspace])?;
    let (holds, dicts) = hold(dicts.into_any())?;
    let side = PythonSide { dicts, engines };
    compilation.workspace.insert(SIDE, Arc::new(side));
    Ok(holds)
}

/// What keeps the dicts that hang on a compilation, once more.
pub fn holds_of(py: Python<'_>, compilation: &Compilation) -> Holds {
    let side = compilation.workspace.get::<PythonSide>(SIDE);
    side.map_or_else(Holds::default, |side| side.dicts.holds(py))
}

#[pymethods]
impl PyCompilation {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.holds.visit(&visit)
    }

    #[new]
    #[pyo3(signature = (program, material_bindings = None, engines = vec![]))]
    fn new(
        py: Python<'_>,
        program: &PyProgram,
        material_bindings: Option<Bound<'_, PyDict>>,
        engines: Vec<Bound<'_, PyEngine>>,
    ) -> PyResult<Self> {
        let materials = match material_bindings {
            Some(given) => given.copy()?,
            None => PyDict::new(py),
        };
        let engines = engines.iter().map(|engine| engine.get().0.clone());
        PyCompilation::make(
            program.clone(),
            materials,
            PyDict::new(py),
            engines.collect(),
        )
    }

    /// The Program as the passes so far left it.
    #[getter]
    fn program(&self) -> PyProgram {
        PyProgram(self.compilation.program().clone())
    }

    /// What each material's symbol is bound to.
    #[getter]
    fn material_bindings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.dict(py, MATERIALS)
    }

    /// Entries that passes and callers hand to each other.
    #[getter]
    fn workspace<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.dict(py, WORKSPACE)
    }

    /// One report for each pass that ran, in order.
    #[getter]
    fn reports(&self) -> Vec<PyPassReport> {
        self.compilation
            .reports()
            .iter()
            .cloned()
            .map(PyPassReport)
            .collect()
    }

    /// Bytes of intermediate values and results at the most at one time, once they are planned.
    #[getter]
    fn peak_bytes(&self) -> Option<u64> {
        Some(self.compilation.plans().buffers.as_ref()?.peak_bytes)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, Object::Compilation(self.current(py)?))
    }

    /// The same with dicts of its own.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let mut compilation = self.compilation.clone();
        let materials = self.material_bindings(py)?.copy()?;
        let workspace = self.workspace(py)?.copy()?;
        let holds = hang(&mut compilation, materials, workspace, self.engines())?;
        Ok(PyCompilation { compilation, holds })
    }

    fn __repr__(&self) -> String {
        let program = self.compilation.program();
        format!(
            "<Compilation of {}, {} operations, {} passes run>",
            program.name(),
            program.body().ops().len(),
            self.compilation.reports().len()
        )
    }
}
