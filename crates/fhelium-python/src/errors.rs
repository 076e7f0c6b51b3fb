//! Every error of the Rust crates as the Python class that stands for it.

use fhelium_state::ErrorKind;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::error::Error;
use std::fmt::Display;

/// The class of `fhelium.errors` for each kind of error.
fn class_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Parameter => "ParameterError",
        ErrorKind::Security => "SecurityError",
        ErrorKind::Value => "ArgumentError",
        ErrorKind::ScaleMismatch => "ScaleMismatch",
        ErrorKind::LevelMismatch => "LevelMismatch",
        ErrorKind::Parts => "PartsMismatch",
        ErrorKind::LevelExhausted => "LevelExhausted",
        ErrorKind::MissingKey => "MissingKey",
        ErrorKind::KeyMismatch => "KeyMismatch",
        ErrorKind::Capture => "CaptureError",
        ErrorKind::Compile => "CompileError",
        ErrorKind::Link => "LinkError",
        ErrorKind::SpecializationMiss => "SpecializationMiss",
        ErrorKind::Device => "DeviceError",
        ErrorKind::OutOfMemory => "OutOfMemory",
        ErrorKind::Serialization => "SerializationError",
    }
}

/// A Python exception of this kind.
pub fn raise(kind: ErrorKind, message: impl Display) -> PyErr {
    let message = message.to_string();
    Python::attach(|py| {
        static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
        let class = MODULE
            .get_or_try_init(py, || {
                PyModule::import(py, "fhelium.errors").map(Bound::unbind)
            })
            .and_then(|module| module.bind(py).getattr(class_name(kind)));
        match class.and_then(|class| class.call1((message.as_str(),))) {
            Ok(error) => PyErr::from_value(error),
            // Only an interpreter that is shutting down has no such module.
            Err(_) => PyRuntimeError::new_err(message),
        }
    })
}

/// An argument of the wrong value.
pub fn bad_argument(message: impl Display) -> PyErr {
    raise(ErrorKind::Value, message)
}

/// An error of the crates as a Python exception.
pub trait IntoPython {
    /// The exception of the error's class, with the Python exception beneath it, if there is
    /// one, as its cause.
    fn into_python(self) -> PyErr;
}

/// Results with the crates' errors.
pub trait OrRaise<T> {
    /// The value, or the exception of the error's class.
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: IntoPython> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(E::into_python)
    }
}

macro_rules! into_python {
    ($($error:ty => $kind:expr;)*) => {$(
        impl IntoPython for $error {
            fn into_python(self) -> PyErr {
                let kind: fn(&$error) -> ErrorKind = $kind;
                let raised = raise(kind(&self), &self);
                Python::attach(|py| {
                    if let Some(cause) = python_cause(py, &self) {
                        raised.set_cause(py, Some(cause));
                    }
                });
                raised
            }
        }
    )*};
}

into_python! {
    fhelium_state::StateError => |error| error.kind();
    fhelium_state::ParseScaleError => |_| ErrorKind::Value;
    fhelium_ckks::CkksError => |error| error.kind();
    fhelium_ir::IrError => |error| error.kind;
    fhelium_passes::PipelineError => |error| error.kind();
    fhelium_runtime::RuntimeError => |error| error.kind();
}

/// The Python exception that an error came from, if it did.
fn python_cause(py: Python<'_>, error: &(dyn Error + 'static)) -> Option<PyErr> {
    let mut beneath = error.source();
    while let Some(error) = beneath {
        if let Some(raised) = error.downcast_ref::<PyErr>() {
            return Some(raised.clone_ref(py));
        }
        beneath = error.source();
    }
    None
}
