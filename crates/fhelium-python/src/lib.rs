//! The Python extension module `fhelium._native`: it converts and calls, nothing more.

mod arrays;
mod attachment;
mod compile;
mod engine;
mod errors;
mod ir;
mod keys;
mod noise;
mod parameters;
mod saving;
mod scale;
mod values;

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What this build is: its version, its vector instructions and its devices.
#[pyfunction]
fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let info = PyDict::new(py);
    info.set_item("version", env!("CARGO_PKG_VERSION"))?;
    info.set_item("debug", cfg!(debug_assertions))?;
    info.set_item(
        "tiers",
        fhelium_ckks::arith::Tier::available()
            .iter()
            .map(|tier| format!("{tier:?}").to_lowercase())
            .collect::<Vec<_>>(),
    )?;
    info.set_item("devices", ["cpu"])?;
    Ok(info)
}

/// The compiled core of fhelium.
#[pymodule(gil_used = false)]
#[pyo3(name = "_native")]
mod native {
    #[pymodule_export]
    use super::build_info;
    #[pymodule_export]
    use crate::compile::{
        PyArgumentSignature, PyBufferPlanning, PyCallSignature, PyCallableCore, PyCompilation,
        PyConstantEncodings, PyDeadValues, PyExecutable, PyLowerToCkks, PyOperationBackend, PyPass,
        PyPassReport, PyPipeline, PyPythonPass, PyRequirements, PyRescaleJoining, PyReuse,
        PyRotationHoisting, PyRouteSelection, PySpecialization, default_pipeline,
        get_cache_directory, program_requirements, set_cache_directory,
    };
    #[pymodule_export]
    use crate::engine::PyEngine;
    #[pymodule_export]
    use crate::ir::{PyOperation, PyOutput, PyProgram, PyProgramBuilder, PyType};
    #[pymodule_export]
    use crate::keys::{
        PyEvaluationKey, PyEvaluationKeys, PyKeySet, PyPublicKey, PyRotationKeys, PySecretKey,
    };
    #[pymodule_export]
    use crate::noise::{PyNoiseEstimate, PyNoiseModel};
    #[pymodule_export]
    use crate::parameters::PyParameters;
    #[pymodule_export]
    use crate::saving::{dumps, inspect, load, loads, save};
    #[pymodule_export]
    use crate::scale::PyScale;
    #[pymodule_export]
    use crate::values::{PyCiphertext, PyPlaintext, register_values};
}
