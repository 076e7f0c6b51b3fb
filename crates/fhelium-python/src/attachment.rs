//! Which engine a value belongs to.

use crate::errors::OrRaise;
use fhelium_ckks::Parameters;
use fhelium_runtime::Engine;
use pyo3::prelude::*;
use std::sync::{Arc, OnceLock};

/// The engine that made a value, or for a value that was loaded or unpickled the one that it
/// joins when it is first computed with: see [`Engine::for_parameters`].
#[derive(Clone)]
pub enum Attachment {
    /// Made by this engine, or loaded for it.
    To(Arc<Engine>),
    /// Loaded.
    Open(Arc<Open>),
}

/// A value's parameters, and its engine once it has one.
pub struct Open {
    parameters: Parameters,
    engine: OnceLock<Arc<Engine>>,
}

impl Attachment {
    /// A loaded value's.
    pub fn open(parameters: Parameters) -> Self {
        Attachment::Open(Arc::new(Open {
            parameters,
            engine: OnceLock::new(),
        }))
    }

    /// The engine.
    pub fn engine(&self, py: Python<'_>) -> PyResult<Arc<Engine>> {
        match self {
            Attachment::To(engine) => Ok(engine.clone()),
            Attachment::Open(open) => {
                if let Some(engine) = open.engine.get() {
                    return Ok(engine.clone());
                }
                // Making one takes a while.
                let engine = py.detach(|| Engine::for_parameters(&open.parameters));
                let engine = engine.or_raise()?;
                Ok(open.engine.get_or_init(|| engine).clone())
            }
        }
    }

    /// The parameters.
    pub fn parameters(&self) -> &Parameters {
        match self {
            Attachment::To(engine) => engine.parameters(),
            Attachment::Open(open) => &open.parameters,
        }
    }
}
