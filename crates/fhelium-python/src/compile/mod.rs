//! Compilations, pipelines, backends and compiled functions.

mod arguments;
mod backend;
mod cache;
mod callable;
mod compilation;
mod materials;
mod passes;
mod pipeline;
mod requirements;
mod signature;
mod specialization;

pub use backend::PyOperationBackend;
pub use cache::{get_cache_directory, set_cache_directory, set_cache_max_bytes};
pub use callable::PyCallableCore;
pub use compilation::PyCompilation;
pub use passes::{
    PyBufferPlanning, PyConstantEncodings, PyDeadValues, PyLinearFusion, PyLowerToCkks, PyPass,
    PyPassReport, PyPythonPass, PyRescaleJoining, PyReuse, PyRotationHoisting, PyRouteSelection,
};
pub use pipeline::{PyPipeline, default_pipeline};
pub use requirements::{PyRequirements, program_requirements};
pub use signature::{PyArgumentSignature, PyCallSignature};
pub use specialization::{PyExecutable, PySpecialization};
