//! What a Program returns, between Python and Rust.

use crate::errors::raise;
use fhelium_ir::state::ErrorKind;
use fhelium_ir::{Literal, OutputTree, Real};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyNone, PyString, PyTuple};

/// A computed value in the structure that a captured function returns.
#[pyclass(name = "Output", module = "fhelium.compile", frozen)]
pub struct PyOutput {
    /// The value's number.
    pub value: usize,
}

#[pymethods]
impl PyOutput {
    #[new]
    fn new(value: usize) -> Self {
        PyOutput { value }
    }
}

fn refused(found: &Bound<'_, PyAny>) -> PyErr {
    let kind = found
        .get_type()
        .name()
        .map_or_else(|_| "object".to_owned(), |name| name.to_string());
    raise(
        ErrorKind::Capture,
        format!(
            "a returned {kind} cannot be part of a Program's result: expected values, None, bool, \
             int, float, complex and str in tuples, lists and dicts"
        ),
    )
}

fn literal_from(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    if value.is_none() {
        Ok(Literal::None)
    } else if value.is_instance_of::<PyBool>() {
        Ok(Literal::Bool(value.extract()?))
    } else if value.is_instance_of::<PyInt>() {
        Ok(Literal::Int(value.extract()?))
    } else if value.is_instance_of::<PyFloat>() {
        Ok(Literal::Float(Real::new(value.extract()?)))
    } else if let Ok(complex) = value.cast::<PyComplex>() {
        Ok(Literal::Complex(
            Real::new(complex.real()),
            Real::new(complex.imag()),
        ))
    } else if value.is_instance_of::<PyString>() {
        Ok(Literal::Str(value.extract()?))
    } else {
        Err(refused(value))
    }
}

/// The output tree of a Python structure whose values are [`PyOutput`]s.
pub fn tree_from(value: &Bound<'_, PyAny>) -> PyResult<OutputTree<usize>> {
    let all = |items: Vec<Bound<'_, PyAny>>| -> PyResult<Vec<_>> {
        items.iter().map(tree_from).collect()
    };
    if let Ok(output) = value.cast::<PyOutput>() {
        Ok(OutputTree::Value(output.get().value))
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        Ok(OutputTree::Tuple(all(tuple.iter().collect())?))
    } else if let Ok(list) = value.cast::<PyList>() {
        Ok(OutputTree::List(all(list.iter().collect())?))
    } else if let Ok(dict) = value.cast::<PyDict>() {
        let entries = dict
            .iter()
            .map(|(key, item)| Ok((literal_from(&key)?, tree_from(&item)?)));
        Ok(OutputTree::Dict(entries.collect::<PyResult<_>>()?))
    } else {
        literal_from(value).map(OutputTree::Literal)
    }
}

/// A literal as a Python object.
pub fn literal_to_python<'py>(py: Python<'py>, literal: &Literal) -> PyResult<Bound<'py, PyAny>> {
    Ok(match literal {
        Literal::None => PyNone::get(py).to_owned().into_any(),
        Literal::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Literal::Int(value) => value.into_pyobject(py)?.into_any(),
        Literal::Float(value) => value.get().into_pyobject(py)?.into_any(),
        Literal::Complex(real, imaginary) => {
            PyComplex::from_doubles(py, real.get(), imaginary.get()).into_any()
        }
        Literal::Str(value) => value.into_pyobject(py)?.into_any(),
    })
}
