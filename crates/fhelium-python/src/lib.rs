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

use fhelium_ckks::arith::Tier;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What this build is: its version, the vector tiers that this machine has and the one that new
/// engines use, and its devices.
#[pyfunction]
fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let info = PyDict::new(py);
    info.set_item("version", env!("CARGO_PKG_VERSION"))?;
    info.set_item("debug", cfg!(debug_assertions))?;
    let name = |tier: &Tier| format!("{tier:?}").to_lowercase();
    let tiers: Vec<String> = Tier::available().iter().map(name).collect();
    info.set_item("tiers", tiers)?;
    // None where FHELIUM_CPU_TIER names no tier of this machine; making an Engine says so.
    info.set_item("tier", Tier::detect().ok().as_ref().map(name))?;
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
