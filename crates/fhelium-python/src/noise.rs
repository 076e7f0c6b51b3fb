//! Bounds on errors.

use crate::parameters::PyParameters;
use crate::scale::{PyScale, ScaleArgument};
use fhelium_ckks::{NoiseEstimate, Parameters};
use pyo3::prelude::*;

/// A value's size and the bound on its error, slot by slot.
#[pyclass(name = "NoiseEstimate", module = "fhelium", frozen)]
#[derive(Clone)]
pub struct PyNoiseEstimate(NoiseEstimate);

#[pymethods]
impl PyNoiseEstimate {
    /// The polynomials: 1 for a plaintext, 2 or 3 for a ciphertext.
    #[getter]
    fn parts(&self) -> usize {
        self.0.parts
    }

    /// The level.
    #[getter]
    fn level(&self) -> usize {
        self.0.level
    }

    /// The scale.
    #[getter]
    fn scale(&self) -> PyScale {
        PyScale(self.0.scale.clone())
    }

    /// The largest |message|.
    #[getter]
    fn magnitude(&self) -> f64 {
        self.0.magnitude
    }

    /// The largest error, in the message's unit.
    #[getter]
    fn error(&self) -> f64 {
        self.0.error
    }

    fn __repr__(&self) -> String {
        format!(
            "<NoiseEstimate level={} scale={} magnitude={:.3e} error={:.3e}>",
            self.0.level, self.0.scale, self.0.magnitude, self.0.error
        )
    }
}

/// Bounds, for high probability, on the errors of a parameter set's operations.
///
/// Each method takes the estimates of an operation's operands and gives its result's.
#[pyclass(name = "NoiseModel", module = "fhelium", frozen)]
pub struct PyNoiseModel(Parameters);

#[pymethods]
impl PyNoiseModel {
    #[new]
    fn new(parameters: &PyParameters) -> Self {
        PyNoiseModel(parameters.0.clone())
    }

    /// A plaintext of |values| up to `magnitude`.
    #[pyo3(signature = (magnitude, *, level = None, scale = None))]
    fn encode(
        &self,
        magnitude: f64,
        level: Option<usize>,
        scale: Option<ScaleArgument>,
    ) -> PyNoiseEstimate {
        let level = level.unwrap_or_else(|| self.0.depth());
        let scale = scale.map_or_else(|| self.0.scale().clone(), |scale| scale.0);
        PyNoiseEstimate(self.0.noise().encode(level, &scale, magnitude))
    }

    /// Encryption under a public key, or under the secret key.
    #[pyo3(signature = (plaintext, *, secret = false))]
    fn encrypt(&self, plaintext: &PyNoiseEstimate, secret: bool) -> PyNoiseEstimate {
        let noise = self.0.noise();
        PyNoiseEstimate(match secret {
            true => noise.encrypt_secret(&plaintext.0),
            false => noise.encrypt_public(&plaintext.0),
        })
    }

    /// A sum or difference.
    fn add(&self, left: &PyNoiseEstimate, right: &PyNoiseEstimate) -> PyNoiseEstimate {
        PyNoiseEstimate(self.0.noise().add(&left.0, &right.0))
    }

    /// A product.
    fn multiply(&self, left: &PyNoiseEstimate, right: &PyNoiseEstimate) -> PyNoiseEstimate {
        PyNoiseEstimate(self.0.noise().multiply(&left.0, &right.0))
    }

    /// An integer multiple.
    fn multiply_integer(&self, value: &PyNoiseEstimate, factor: i64) -> PyNoiseEstimate {
        PyNoiseEstimate(self.0.noise().multiply_integer(&value.0, factor))
    }

    /// Relinearization, a rotation or conjugation.
    fn key_switch(&self, value: &PyNoiseEstimate) -> PyNoiseEstimate {
        PyNoiseEstimate(self.0.noise().key_switch(&value.0))
    }

    /// A rescale.
    fn rescale(&self, value: &PyNoiseEstimate) -> PyNoiseEstimate {
        PyNoiseEstimate(self.0.noise().rescale(&value.0))
    }

    /// Dropped levels.
    #[pyo3(signature = (value, count = 1))]
    fn drop_levels(&self, value: &PyNoiseEstimate, count: usize) -> PyNoiseEstimate {
        PyNoiseEstimate(self.0.noise().drop_levels(&value.0, count))
    }

    /// The error of the decoded message.
    fn decode(&self, value: &PyNoiseEstimate) -> f64 {
        self.0.noise().decode(&value.0)
    }
}
