//! What a Program needs before it can run.

use crate::ir::{LocationTuple, PyProgram, location_to_python};
use fhelium_ckks::KeySwitchKey;
use fhelium_passes::analysis::{Requirements, requirements};
use pyo3::prelude::*;

/// What a Program needs: keys, with the lines that ask for them, and levels.
#[pyclass(name = "ProgramRequirements", module = "fhelium._native", frozen)]
pub struct PyRequirements {
    requirements: Requirements,
    key_bytes: Option<usize>,
}

#[pymethods]
impl PyRequirements {
    /// The rotation steps that need a key, ascending.
    #[getter]
    fn rotation_steps(&self) -> Vec<i64> {
        self.requirements.rotation_steps()
    }

    /// Whether the relinearization key is needed.
    #[getter]
    fn relinearization(&self) -> bool {
        self.requirements.relinearization()
    }

    /// Whether the conjugation key is needed.
    #[getter]
    fn conjugation(&self) -> bool {
        self.requirements.conjugation()
    }

    /// The most products that follow one another.
    #[getter]
    fn multiplicative_depth(&self) -> usize {
        self.requirements.multiplicative_depth
    }

    /// The most levels that a value loses.
    #[getter]
    fn levels(&self) -> usize {
        self.requirements.levels
    }

    /// Bytes of the evaluation keys, where the parameters are known.
    #[getter]
    fn key_bytes(&self) -> Option<usize> {
        self.key_bytes
    }

    /// Each key, such as "rotation 5", with the lines that ask for it.
    #[getter]
    fn keys(&self) -> Vec<(String, Vec<LocationTuple>)> {
        let keys = self.requirements.keys.iter();
        keys.map(|key| {
            let lines = key.locations.iter();
            let lines = lines.filter_map(|location| location_to_python(Some(location)));
            (key.kind.to_string(), lines.collect())
        })
        .collect()
    }
}

/// What a Program needs before it can run.
#[pyfunction]
#[pyo3(signature = (program, parameters = None))]
pub fn program_requirements(
    py: Python<'_>,
    program: &PyProgram,
    parameters: Option<&crate::parameters::PyParameters>,
) -> PyRequirements {
    let requirements = py.detach(|| requirements(&program.0));
    let key_bytes = parameters.map(|parameters| {
        let keys = requirements.rotation_steps().len()
            + usize::from(requirements.relinearization())
            + usize::from(requirements.conjugation());
        keys * KeySwitchKey::predicted_nbytes(&parameters.0)
    });
    PyRequirements {
        requirements,
        key_bytes,
    }
}
