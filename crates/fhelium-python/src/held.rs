//! Python objects that shared Rust data uses, where the garbage collector sees them.
//!
//! Backends, passes and compilations are Rust data that many Python objects share. An object that
//! the data owned would be out of the collector's sight: a function that refers to the callable
//! that is compiled with it would never be freed. So the data refers to a [`Held`] weakly, and
//! each Python object that shares the data owns the `Held` and shows it to the collector.

use pyo3::PyTraverseError;
use pyo3::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyWeakref, PyWeakrefMethods, PyWeakrefReference};
use std::sync::{Mutex, PoisonError};

/// Owns a Python object.
#[pyclass(name = "Held", module = "fhelium._native", frozen, weakref)]
pub struct Held(Mutex<Option<Py<PyAny>>>);

#[pymethods]
impl Held {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Nobody keeps it locked; what is not visited is only collected later.
        match self.0.try_lock() {
            Ok(object) => visit.call(&*object),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// What shared data refers to.
pub struct HeldRef(Py<PyWeakrefReference>);

/// The owned objects of the data that one Python object shares.
#[derive(Default)]
pub struct Holds(Vec<Py<Held>>);

/// Has `object` owned by the first of the two, for as long as anybody keeps it.
pub fn hold(object: Bound<'_, PyAny>) -> PyResult<(Holds, HeldRef)> {
    let py = object.py();
    let held = Bound::new(py, Held(Mutex::new(Some(object.unbind()))))?;
    let weak = PyWeakrefReference::new(&held)?;
    Ok((Holds(vec![held.unbind()]), HeldRef(weak.unbind())))
}

impl HeldRef {
    /// The object, unless nobody owns it any more.
    pub fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let held = self.owner(py)?;
        let object = held
            .get()
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()?
            .clone_ref(py);
        Some(object.into_bound(py))
    }

    /// Its owner, to be kept by one more Python object.
    pub fn holds(&self, py: Python<'_>) -> Holds {
        Holds(self.owner(py).into_iter().map(Bound::unbind).collect())
    }

    fn owner<'py>(&self, py: Python<'py>) -> Option<Bound<'py, Held>> {
        let weak = self.0.bind(py).as_any().cast::<PyWeakref>().ok()?;
        weak.upgrade_as::<Held>().ok()?
    }
}

impl Holds {
    /// The same objects, owned once more.
    pub fn clone_ref(&self, py: Python<'_>) -> Self {
        Holds(self.0.iter().map(|held| held.clone_ref(py)).collect())
    }

    /// These objects and others, each once.
    pub fn and(mut self, others: Holds) -> Self {
        for other in others.0 {
            if !self.0.iter().any(|held| held.is(&other)) {
                self.0.push(other);
            }
        }
        self
    }

    /// Shows them to the collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.iter().try_for_each(|held| visit.call(held))
    }
}
