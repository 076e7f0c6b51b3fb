//! Programs.

use super::attributes::attributes_to_python;
use super::types::{PyType, type_to_python};
use super::{LocationTuple, location_to_python};
use crate::errors::OrRaise;
use crate::saving::{Reduced, reduce};
use fhelium_ir::{PrintOptions, Program};
use fhelium_runtime::persist::Object;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// A function over encrypted and clear values as typed operations.
///
/// A Program is always valid and never changes.
#[pyclass(name = "Program", module = "fhelium.compile", frozen, eq)]
#[derive(Clone, PartialEq)]
pub struct PyProgram(pub Program);

/// One operation of a Program.
#[pyclass(name = "Operation", module = "fhelium.compile", frozen, get_all)]
pub struct PyOperation {
    /// The name in the operation table, such as "he.rotate".
    name: &'static str,
    /// The numbers of the values that it reads.
    operands: Vec<usize>,
    /// The numbers of the values that it gives.
    results: Vec<usize>,
    /// The types of what it gives.
    types: Vec<PyType>,
    /// Its attributes.
    attributes: Py<PyDict>,
    /// File, line and function of the source line that made it.
    location: Option<LocationTuple>,
}

#[pymethods]
impl PyOperation {
    fn __repr__(&self) -> String {
        format!("<{} {:?} -> {:?}>", self.name, self.operands, self.results)
    }
}

#[pymethods]
impl PyProgram {
    /// Reads a Program's text.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        py.detach(|| Program::parse(text)).or_raise().map(PyProgram)
    }

    /// The text, which `parse` reads back.
    #[pyo3(signature = (*, locations = true))]
    fn to_text(&self, locations: bool) -> String {
        self.0.to_text_with(PrintOptions {
            locations,
            ..PrintOptions::default()
        })
    }

    /// A picture of the Program, as SVG text.
    fn to_svg(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.to_svg())
    }

    /// Checks again what holds of every Program.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.verify()).or_raise()
    }

    /// The operations in order.
    fn walk(&self, py: Python<'_>) -> PyResult<Vec<PyOperation>> {
        let operations = self.0.body().ops().iter().map(|operation| {
            Ok(PyOperation {
                name: operation.kind().name(),
                operands: operation.operands().iter().map(|id| id.index()).collect(),
                results: operation.results().iter().map(|id| id.index()).collect(),
                types: operation
                    .results()
                    .iter()
                    .map(|id| type_to_python(self.0.type_of(*id)))
                    .collect(),
                attributes: attributes_to_python(py, operation.attributes())?.unbind(),
                location: location_to_python(operation.location()),
            })
        });
        operations.collect()
    }

    /// The function's name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// "he", "ckks" or "rns".
    #[getter]
    fn level(&self) -> String {
        self.0.level().to_string()
    }

    /// The types of the inputs by name.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inputs = PyDict::new(py);
        for input in self.0.inputs() {
            inputs.set_item(&*input.name, type_to_python(&input.ty))?;
        }
        Ok(inputs)
    }

    /// The names of the inputs, in order.
    #[getter]
    fn input_names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.inputs().iter().map(|input| &*input.name))
    }

    /// The types of the materials by symbol.
    #[getter]
    fn materials<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let materials = PyDict::new(py);
        for (symbol, material) in self.0.materials() {
            materials.set_item(&**symbol, type_to_python(&material.ty))?;
        }
        Ok(materials)
    }

    /// Notes on the materials by symbol.
    #[getter]
    fn material_descriptions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let notes = PyDict::new(py);
        for (symbol, material) in self.0.materials() {
            notes.set_item(&**symbol, &*material.description)?;
        }
        Ok(notes)
    }

    fn __len__(&self) -> usize {
        self.0.body().ops().len()
    }

    fn __str__(&self) -> String {
        self.to_text(false)
    }

    fn __repr__(&self) -> String {
        format!(
            "<Program {} at level {}, {} operations>",
            self.0.name(),
            self.0.level(),
            self.0.body().ops().len()
        )
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, Object::Program(self.0.clone()))
    }
}
