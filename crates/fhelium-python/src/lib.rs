//! The Python extension module `fhelium._native`: it converts and calls, nothing more.

mod arrays;
mod attachment;
mod compile;
mod dlpack;
mod engine;
mod errors;
mod held;
mod ir;
mod keys;
mod noise;
mod parameters;
mod saving;
mod scale;
mod values;

use fhelium_ckks::arith::Tier;
use fhelium_runtime::cuda::{CudaError, Driver};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What this build is: its version, the vector tiers that this machine has and the one that new
/// engines use, and its devices.
///
/// `"cuda"` says which GPUs it has kernels for, the driver's CUDA version, and, where no GPU can be
/// used, the problem; asking looks for the driver.
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
    let (cuda, count) = cuda_info(py)?;
    let devices = (0..count).map(|ordinal| format!("cuda:{ordinal}"));
    let devices: Vec<String> = ["cpu".to_owned()].into_iter().chain(devices).collect();
    info.set_item("devices", devices)?;
    info.set_item("cuda", cuda)?;
    Ok(info)
}

/// What there is of CUDA, and how many devices.
fn cuda_info(py: Python<'_>) -> PyResult<(Bound<'_, PyDict>, usize)> {
    let cuda = PyDict::new(py);
    let targets = fhelium_runtime::cuda::built_targets();
    let found = match targets.is_empty() {
        true => Err(CudaError::BuiltWithoutKernels),
        false => fhelium_runtime::cuda::probe(),
    };
    let version =
        |found: &Driver| format!("{}.{}", found.version / 1000, found.version % 1000 / 10);
    cuda.set_item("targets", targets)?;
    cuda.set_item("driver", found.as_ref().ok().map(version))?;
    cuda.set_item("problem", found.as_ref().err().map(ToString::to_string))?;
    Ok((cuda, found.map_or(0, |found| found.devices)))
}

/// The compiled core of fhelium.
#[pymodule(gil_used = false)]
#[pyo3(name = "_native")]
mod native {
    /// The version of the package.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    use super::build_info;
    #[pymodule_export]
    use crate::compile::{
        PyArgumentSignature, PyBufferPlanning, PyCallSignature, PyCallableCore, PyCompilation,
        PyConstantEncodings, PyDeadValues, PyExecutable, PyLinearFusion, PyLowerToCkks,
        PyOperationBackend, PyPass, PyPassReport, PyPipeline, PyPythonPass, PyRequirements,
        PyRescaleJoining, PyReuse, PyRotationHoisting, PyRouteSelection, PySpecialization,
        default_pipeline, get_cache_directory, program_requirements, set_cache_directory,
        set_cache_max_bytes,
    };
    #[pymodule_export]
    use crate::dlpack::PyArray;
    #[pymodule_export]
    use crate::engine::{PyEngine, PyMemoryUse};
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
