//! Analyses, passes and pipelines over Programs.
//!
//! A [`Pipeline`] runs passes over a [`Compilation`] and verifies the Program after each. Some
//! passes rewrite the Program; others leave [plans](plan) for the linker. [`default_pipeline`] is
//! what compiled functions use unless they are given another.

pub mod analysis;
mod compilation;
mod dump;
mod error;
pub mod lowering;
mod pass;
pub mod passes;
mod pipeline;
pub mod plan;
mod target;

pub use compilation::{Bindings, Compilation};
pub use dump::{DUMP_VARIABLE, Dump};
pub use error::{PassError, PipelineError};
pub use pass::{
    Decision, Diagnostic, FunctionPass, Pass, PassContext, PassReport, PassResult, PassStats,
};
pub use pipeline::{IntoPasses, Named, Pipeline, Place};
pub use target::{Rates, Target};

use std::sync::Arc;

/// What compiled functions run through unless they are given another pipeline.
///
/// In order: `dead-values`, `reuse`, `lower-to-ckks`, `rescale-joining`, `rotation-hoisting`,
/// `linear-fusion`, `constant-encodings`, `route-selection`, `buffer-planning`, each with its default
/// options. It inserts no rescale and no relinearization.
pub fn default_pipeline() -> Pipeline {
    let passes: Vec<Arc<dyn Pass>> = vec![
        Arc::new(passes::DeadValues),
        Arc::new(passes::Reuse),
        Arc::new(passes::LowerToCkks),
        Arc::new(passes::RescaleJoining),
        Arc::new(passes::RotationHoisting::default()),
        Arc::new(passes::LinearFusion::default()),
        Arc::new(passes::ConstantEncodings::default()),
        Arc::new(passes::RouteSelection::default()),
        Arc::new(passes::BufferPlanning),
    ];
    Pipeline::of_distinct(passes)
}
