//! The core of a compiled function: signature, cache, preparation and calls.

use super::arguments::{Arguments, Call, Parameters};
use super::backend::PyOperationBackend;
use super::cache::CacheChoice;
use super::compilation::PyCompilation;
use super::pipeline::PyPipeline;
use super::signature::PyCallSignature;
use super::specialization::{PySpecialization, run};
use crate::errors::IntoPython;
use crate::held::Holds;
use crate::ir::PyType;
use fhelium_passes::Compilation;
use fhelium_runtime::persist::CacheOutcome;
use fhelium_runtime::{
    CallSignature, Device, Engine, MaterialBinding, OperationBackend, PrepareOptions,
    RecursivePreparation, RuntimeError, Specialization, SpecializationCache, SpecializationMiss,
    Value, nearest, prepare,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use std::collections::HashMap;
use std::ffi::CString;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The table of prepared specializations of one compiled function, and its calls.
#[pyclass(name = "CallableCore", module = "fhelium._native", frozen)]
pub struct PyCallableCore {
    name: String,
    parameters: Parameters,
    error_on_miss: bool,
    frozen_materials: bool,
    backend: Option<PyOperationBackend>,
    cache_choice: CacheChoice,
    disk_hits: AtomicU64,
    disk_misses: AtomicU64,
    cache: SpecializationCache<Py<PySpecialization>>,
    /// Variants compiled for another backend, to be linked when they are asked for.
    unlinked: Mutex<HashMap<CallSignature, Py<PySpecialization>>>,
}

/// An error of a preparation, which runs Python and Rust.
enum Failure {
    Python(PyErr),
    Runtime(RuntimeError),
}

impl From<RecursivePreparation> for Failure {
    fn from(error: RecursivePreparation) -> Self {
        Failure::Runtime(error.into())
    }
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Self {
        Failure::Runtime(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Failure::Python(error)
    }
}

/// What a compilation's materials are now.
fn captured(compilation: &Compilation) -> Result<Vec<Value>, RuntimeError> {
    let bindings = &compilation.material_bindings;
    let bound = bindings
        .names()
        .filter_map(|name| bindings.get::<MaterialBinding>(name));
    bound.map(|binding| binding.current()).collect()
}

/// The device of the first value that is on one.
fn place_of<'a>(values: impl Iterator<Item = &'a Value>) -> Device {
    let mut places = values.map(Value::device);
    places
        .find(|place| *place != Device::Cpu)
        .unwrap_or_default()
}

impl PyCallableCore {
    /// The arguments in the order of the parameters, or what Python says against them.
    fn bind<'py>(
        &self,
        py: Python<'py>,
        callable: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Arguments<'py>> {
        match self.parameters.bind(py, args, kwargs)? {
            Some(bound) => Ok(bound),
            None => {
                let empty = PyDict::new(py);
                let bound = callable.call_method1("_bind", (args, kwargs.unwrap_or(&empty)))?;
                Ok(bound.cast_into::<PyTuple>()?.iter().collect())
            }
        }
    }

    fn miss(&self, signature: &CallSignature) -> RuntimeError {
        let entries = self.cache.entries();
        let prepared = entries.iter().map(|(signature, _)| signature);
        RuntimeError::from(Box::new(SpecializationMiss {
            callable: self.name.clone(),
            prepared: entries.len(),
            nearest: nearest(signature, prepared),
        }))
    }

    /// The specialization of these arguments, prepared if there is none.
    fn get_or_prepare<'py>(
        &self,
        py: Python<'py>,
        callable: &Bound<'py, PyAny>,
        bound: &[Bound<'py, PyAny>],
        call: &Call<'py>,
    ) -> PyResult<Arc<Py<PySpecialization>>> {
        let callable = callable.clone().unbind();
        let bound: Vec<Py<PyAny>> = bound.iter().map(|value| value.clone().unbind()).collect();
        // Threads that wait for this one's preparation must not hold the interpreter.
        let Call {
            signature,
            values,
            is_value,
            engine,
            ..
        } = call;
        let engine = engine.clone();
        let cache = self.cache_choice.cache();
        let mut warning = None;
        let prepared = py.detach(|| {
            self.cache.get_or_prepare(signature, || {
                // Attached before the lock, as whoever else takes it is.
                let known = Python::attach(|py| {
                    let unlinked = self.unlinked();
                    unlinked.get(signature).map(|known| known.clone_ref(py))
                });
                let options = PrepareOptions {
                    arguments: Some(values),
                    frozen_materials: self.frozen_materials,
                    ..PrepareOptions::default()
                };
                // What keeps the compilation's dicts stays until the variant keeps them too.
                let (specialization, _kept) = match &known {
                    Some(known) => {
                        let known = known.get().inner();
                        let engine = match engine {
                            Some(engine) => engine,
                            None => known.executable().engine().clone(),
                        };
                        (known.relink(&self.backend(), &engine, options)?, None)
                    }
                    None => {
                        let started = Instant::now();
                        let (compilation, pipeline, _holds) = Python::attach(|py| {
                            self.capture(py, &callable, &bound, signature, values, is_value)
                        })?;
                        let engine =
                            match engine.or_else(|| compilation.engines().into_iter().next()) {
                                Some(engine) => engine,
                                None => {
                                    let captured = captured(&compilation.compilation)?;
                                    Engine::for_arrays(place_of(values.iter().chain(&captured)))?
                                }
                            };
                        let options = PrepareOptions {
                            capture: started.elapsed(),
                            cache: cache.as_deref(),
                            ..options
                        };
                        let made = prepare(
                            &compilation.compilation,
                            &pipeline,
                            &self.backend(),
                            signature.clone(),
                            &engine,
                            options,
                        )?;
                        self.count(made.cache_use().outcome);
                        warning.clone_from(&made.cache_use().warning);
                        (made, Some(compilation))
                    }
                };
                self.check_inputs(&specialization, is_value)?;
                let specialization = Arc::new(specialization);
                Ok(Python::attach(|py| {
                    let backend = self.backend.as_ref();
                    let holds = backend.map(|backend| backend.holds.clone_ref(py));
                    let holds = holds.unwrap_or_default();
                    Py::new(py, PySpecialization::new(py, specialization, holds))
                })?)
            })
        });
        let prepared = prepared.map_err(|failure| match failure {
            Failure::Python(error) => error,
            Failure::Runtime(error) => error.into_python(),
        })?;
        // Only now, that a warning turned into an error loses nothing.
        if let Some(warning) = warning {
            warn_of_cache(py, &warning)?;
        }
        Ok(prepared)
    }

    fn count(&self, outcome: CacheOutcome) {
        match outcome {
            CacheOutcome::Hit => self.disk_hits.fetch_add(1, Ordering::Relaxed),
            CacheOutcome::Miss => self.disk_misses.fetch_add(1, Ordering::Relaxed),
            CacheOutcome::Unused => return,
        };
    }

    /// The compilation, the pipeline, and what keeps the functions of its passes.
    fn capture(
        &self,
        py: Python<'_>,
        callable: &Py<PyAny>,
        bound: &[Py<PyAny>],
        signature: &CallSignature,
        values: &[fhelium_runtime::Value],
        is_value: &[bool],
    ) -> PyResult<(PyCompilation, fhelium_passes::Pipeline, Holds)> {
        let callable = callable.bind(py);
        let mut values = values.iter();
        let types: Vec<Option<PyType>> = is_value
            .iter()
            .map(|&is_value| match is_value {
                true => values.next().map(|value| PyType(value.ty())),
                false => None,
            })
            .collect();
        let types = PyTuple::new(py, types)?;
        let bound = PyTuple::new(py, bound.iter().map(|value| value.bind(py)))?;
        let compilation = callable.call_method1("_source", (types, bound))?;
        let compilation = compilation.cast::<PyCompilation>()?.get().clone_ref(py);
        let chosen =
            callable.call_method1("_choose_pipeline", (PyCallSignature(signature.clone()),))?;
        let (pipeline, holds) = match chosen.cast::<PyPipeline>() {
            Ok(pipeline) => {
                let PyPipeline { pipeline, holds } = pipeline.get();
                (pipeline.clone(), holds.clone_ref(py))
            }
            Err(_) => (fhelium_passes::default_pipeline(), Holds::default()),
        };
        Ok((compilation, pipeline, holds))
    }

    /// Refuses a Program whose inputs a pass made other than the callable's parameters.
    fn check_inputs(
        &self,
        specialization: &Specialization,
        is_value: &[bool],
    ) -> Result<(), RuntimeError> {
        let parameters = self.parameters.names().zip(is_value);
        let expected: Vec<&str> = parameters
            .filter_map(|(name, &is_value)| is_value.then_some(&**name))
            .collect();
        let inputs = specialization.program().inputs().iter();
        let found: Vec<&str> = inputs.map(|input| &*input.name).collect();
        if found != expected {
            return Err(RuntimeError::Value(format!(
                "{}: the pipeline left a Program with the inputs {found:?}, but the arguments are \
                 {expected:?}; transform the Compilation first and compile what comes out",
                self.name
            )));
        }
        Ok(())
    }

    fn backend(&self) -> OperationBackend {
        let chosen = self.backend.as_ref();
        chosen.map_or_else(OperationBackend::default, |chosen| chosen.backend.clone())
    }

    fn unlinked(&self) -> std::sync::MutexGuard<'_, HashMap<CallSignature, Py<PySpecialization>>> {
        // A map that is only inserted into and cleared is whole after a panic too.
        self.unlinked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Warns of the cache directory, at the line that called the compiled function.
fn warn_of_cache(py: Python<'_>, text: &str) -> PyResult<()> {
    let class = PyModule::import(py, "fhelium.errors")?.getattr("CompileCacheWarning")?;
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    PyErr::warn(py, &class, &text, 2)
}

#[pymethods]
impl PyCallableCore {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.parameters.visit(&visit)?;
        if let Some(backend) = &self.backend {
            backend.holds.visit(&visit)?;
        }
        // What is locked is only collected later.
        if let Ok(unlinked) = self.unlinked.try_lock() {
            unlinked
                .values()
                .try_for_each(|variant| visit.call(variant))?;
        }
        let mut visited = Ok(());
        self.cache.visit(|variant| {
            if visited.is_ok() {
                visited = visit.call(variant);
            }
        });
        visited
    }

    fn __clear__(&self) {
        self.clear();
    }

    #[new]
    #[pyo3(signature = (
        name, parameters, defaults, backend, error_on_miss, max_specializations, frozen_materials,
        cache_directory
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are CompiledCallable's")]
    fn new(
        name: String,
        parameters: Vec<(String, String, bool)>,
        defaults: Bound<'_, PyTuple>,
        backend: Option<Bound<'_, PyOperationBackend>>,
        error_on_miss: bool,
        max_specializations: Option<usize>,
        frozen_materials: bool,
        cache_directory: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Ok(PyCallableCore {
            name,
            parameters: Parameters::new(parameters, defaults)?,
            error_on_miss,
            frozen_materials,
            backend: backend.map(|backend| backend.get().clone_ref(backend.py())),
            cache_choice: CacheChoice::from_python(cache_directory.as_ref())?,
            disk_hits: AtomicU64::new(0),
            disk_misses: AtomicU64::new(0),
            cache: SpecializationCache::new(max_specializations.and_then(NonZeroUsize::new)),
            unlinked: Mutex::default(),
        })
    }

    /// Runs the specialization of these arguments, preparing it on a miss where that is allowed.
    fn call<'py>(
        &self,
        py: Python<'py>,
        callable: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bound = self.bind(py, callable, args, Some(kwargs))?;
        let call = self.parameters.describe(&self.name, &bound)?;
        let specialization = match self.cache.lookup(&call.signature) {
            Some(found) => found,
            None if self.error_on_miss => {
                self.cache.count_refusal();
                return Err(self.miss(&call.signature).into_python());
            }
            None => self.get_or_prepare(py, callable, &bound, &call)?,
        };
        run(
            py,
            specialization.get().inner(),
            &call.values,
            call.engine,
            call.framework.as_ref(),
        )
    }

    /// The specialization of these arguments, prepared if there is none; it is not run.
    fn prepare<'py>(
        &self,
        py: Python<'py>,
        callable: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<Py<PySpecialization>> {
        let bound = self.bind(py, callable, args, Some(kwargs))?;
        let call = self.parameters.describe(&self.name, &bound)?;
        let specialization = match self.cache.peek(&call.signature) {
            Some(found) => found,
            None => self.get_or_prepare(py, callable, &bound, &call)?,
        };
        Ok(specialization.clone_ref(py))
    }

    /// What a call with these arguments would do.
    fn explain<'py>(
        &self,
        py: Python<'py>,
        callable: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<String> {
        let bound = self.bind(py, callable, args, Some(kwargs))?;
        let call = self.parameters.describe(&self.name, &bound)?;
        if let Some(found) = self.cache.peek(&call.signature) {
            return Ok(format!("hit\n\n{}", found.get().inner().explain()));
        }
        let what = match self.error_on_miss {
            true => "a call would raise SpecializationMiss",
            false => "a call would compile",
        };
        Ok(format!("miss: {what}\n{}", self.miss(&call.signature)))
    }

    /// A core with another backend and this one's variants, none of them linked.
    fn unlinked_copy(&self, py: Python<'_>, backend: &PyOperationBackend) -> Self {
        let mut unlinked = HashMap::new();
        for (signature, variant) in self.unlinked().iter() {
            unlinked.insert(signature.clone(), variant.clone_ref(py));
        }
        for (signature, variant) in self.cache.entries() {
            unlinked.insert(signature, variant.clone_ref(py));
        }
        PyCallableCore {
            name: self.name.clone(),
            parameters: self.parameters.clone_ref(py),
            error_on_miss: self.error_on_miss,
            frozen_materials: self.frozen_materials,
            backend: Some(backend.clone_ref(py)),
            cache_choice: self.cache_choice.clone(),
            disk_hits: AtomicU64::new(0),
            disk_misses: AtomicU64::new(0),
            cache: SpecializationCache::new(self.cache.limit()),
            unlinked: Mutex::new(unlinked),
        }
    }

    /// Drops all variants.
    fn clear(&self) {
        self.cache.clear();
        self.unlinked().clear();
    }

    /// The linked variants, in the order of their preparation.
    #[getter]
    fn specializations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let entries = self.cache.entries();
        PyTuple::new(py, entries.iter().map(|(_, variant)| variant.bind(py)))
    }

    /// Calls that found their variant.
    #[getter]
    fn hits(&self) -> u64 {
        self.cache.counters().hits
    }

    /// Calls and preparations that found none.
    #[getter]
    fn misses(&self) -> u64 {
        self.cache.counters().misses
    }

    /// Variants whose compiled Program came from the cache directory.
    #[getter]
    fn disk_hits(&self) -> u64 {
        self.disk_hits.load(Ordering::Relaxed)
    }

    /// Variants that were compiled and then written to the cache directory.
    #[getter]
    fn disk_misses(&self) -> u64 {
        self.disk_misses.load(Ordering::Relaxed)
    }

    /// Variants dropped because of the limit.
    #[getter]
    fn evictions(&self) -> u64 {
        self.cache.counters().evictions
    }

    /// Seconds spent in preparations, failed ones included.
    #[getter]
    fn preparation_seconds(&self) -> f64 {
        self.cache.counters().preparation.as_secs_f64()
    }
}
