//! Building Programs.

use super::attributes::{attributes_from, operation_from_name};
use super::outputs::tree_from;
use super::program::PyProgram;
use super::types::PyType;
use super::{LocationTuple, location_from};
use crate::errors::{OrRaise, raise};
use crate::parameters::PyParameters;
use fhelium_ir::state::ErrorKind;
use fhelium_ir::{Material, ProgramBuilder, ValueId};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// Builds a Program operation by operation; values are numbers.
///
/// Every operation is checked as it is added: an error names the source line that asked for it.
#[pyclass(name = "ProgramBuilder", module = "fhelium.compile")]
pub struct PyProgramBuilder {
    /// `None` once it is finished.
    builder: Option<ProgramBuilder>,
    values: Vec<ValueId>,
}

impl PyProgramBuilder {
    fn builder(&mut self) -> PyResult<&mut ProgramBuilder> {
        self.builder.as_mut().ok_or_else(|| {
            raise(
                ErrorKind::Compile,
                "this builder is finished: its Program does not change any more",
            )
        })
    }

    fn value(&self, number: usize) -> PyResult<ValueId> {
        self.values.get(number).copied().ok_or_else(|| {
            raise(
                ErrorKind::Compile,
                format!(
                    "there is no value {number}; so far there are {}",
                    self.values.len()
                ),
            )
        })
    }

    fn add(&mut self, values: &[ValueId]) -> Vec<usize> {
        self.values.extend(values);
        values.iter().map(|value| value.index()).collect()
    }
}

#[pymethods]
impl PyProgramBuilder {
    #[new]
    #[pyo3(signature = (name, parameters = None))]
    fn new(name: &str, parameters: Option<&PyParameters>) -> Self {
        let chain = parameters.map(|parameters| Arc::new(parameters.0.chain().clone()));
        PyProgramBuilder {
            builder: Some(ProgramBuilder::new(name, chain)),
            values: Vec::new(),
        }
    }

    /// Gives the parameters, where none were given before.
    fn set_parameters(&mut self, parameters: &PyParameters) -> PyResult<()> {
        let chain = Arc::new(parameters.0.chain().clone());
        self.builder()?.set_chain(chain).or_raise()
    }

    /// One more parameter; parameters come before operations.
    fn input(&mut self, name: &str, r#type: &PyType) -> PyResult<usize> {
        let value = self.builder()?.input(name, r#type.0.clone()).or_raise()?;
        Ok(self.add(&[value])[0])
    }

    /// Declares a material, and gives a value that stands for it.
    #[pyo3(signature = (symbol, r#type, description = "", location = None))]
    fn material(
        &mut self,
        symbol: &str,
        r#type: &PyType,
        description: &str,
        location: Option<LocationTuple>,
    ) -> PyResult<usize> {
        let builder = self.builder()?;
        builder
            .material(symbol, Material::new(r#type.0.clone(), description))
            .or_raise()?;
        let value = builder
            .reference(symbol, location_from(location))
            .or_raise()?;
        Ok(self.add(&[value])[0])
    }

    /// Appends an operation, and gives its results.
    #[pyo3(signature = (name, operands, attributes = None, location = None))]
    fn operation(
        &mut self,
        name: &str,
        operands: Vec<usize>,
        attributes: Option<&Bound<'_, PyDict>>,
        location: Option<LocationTuple>,
    ) -> PyResult<Vec<usize>> {
        let kind = operation_from_name(name)?;
        let attributes = match attributes {
            Some(given) => attributes_from(kind, given)?,
            None => Default::default(),
        };
        let operands = operands
            .into_iter()
            .map(|number| self.value(number))
            .collect::<PyResult<Vec<_>>>()?;
        let results = self
            .builder()?
            .op(kind, &operands, &attributes, location_from(location))
            .or_raise()?
            .to_vec();
        Ok(self.add(&results))
    }

    /// A value's type.
    fn type_of(&mut self, value: usize) -> PyResult<PyType> {
        let id = self.value(value)?;
        let ty = self.builder()?.type_of(id).cloned();
        ty.map(PyType)
            .ok_or_else(|| raise(ErrorKind::Compile, format!("there is no value {value}")))
    }

    /// The Program that returns this structure, whose values are `Output`s.
    fn finish(&mut self, outputs: &Bound<'_, PyAny>) -> PyResult<PyProgram> {
        let tree = tree_from(outputs)?.map(&mut |&number| self.value(number))?;
        self.builder()?;
        let builder = self.builder.take();
        let program = builder
            .map(|builder| builder.finish(&tree).or_raise())
            .transpose()?;
        program
            .map(PyProgram)
            .ok_or_else(|| raise(ErrorKind::Compile, "this builder is finished"))
    }
}
