//! Keys that belong together.

use super::{PyEvaluationKey, PyPublicKey, PySecretKey};
use crate::errors::raise;
use crate::parameters::PyParameters;
use crate::saving::{Reduced, reduce, refuse_pickling};
use crate::values::{device_note, moved};
use fhelium_ckks::{Parameters, normalize_step};
use fhelium_runtime::{EvaluationKeys, KeySet, KeySwitchKey};
use fhelium_state::ErrorKind;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Rotation keys by step; steps are taken modulo the slots, so that -1 and slots - 1 are one.
#[pyclass(name = "RotationKeys", module = "fhelium", frozen, mapping)]
#[derive(Clone)]
pub struct PyRotationKeys {
    keys: BTreeMap<usize, KeySwitchKey>,
    pub parameters: Parameters,
}

impl PyRotationKeys {
    fn find(&self, step: i64) -> Option<&KeySwitchKey> {
        self.keys
            .get(&normalize_step(step, self.parameters.slots()))
    }

    fn wrap(&self, key: &KeySwitchKey) -> PyEvaluationKey {
        PyEvaluationKey::new(key.clone(), &self.parameters)
    }
}

#[pymethods]
impl PyRotationKeys {
    fn __getitem__(&self, step: i64) -> PyResult<PyEvaluationKey> {
        let key = self.find(step).ok_or_else(|| {
            raise(
                ErrorKind::MissingKey,
                format!(
                    "there is no rotation key for step {step}; there are keys for {:?}: add it to \
                     rotations of keygen",
                    self.keys()
                ),
            )
        })?;
        Ok(self.wrap(key))
    }

    fn __contains__(&self, step: &Bound<'_, PyAny>) -> bool {
        step.extract()
            .is_ok_and(|step: i64| self.find(step).is_some())
    }

    fn __len__(&self) -> usize {
        self.keys.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.keys().into_pyobject(py)?.try_iter()?.into_any())
    }

    /// The steps, from 1 to slots - 1, ascending.
    fn keys(&self) -> Vec<usize> {
        self.keys.keys().copied().collect()
    }

    /// The keys, in the order of the steps.
    fn values(&self) -> Vec<PyEvaluationKey> {
        self.keys.values().map(|key| self.wrap(key)).collect()
    }

    /// Steps and keys.
    fn items(&self) -> Vec<(usize, PyEvaluationKey)> {
        let items = self.keys.iter();
        items.map(|(step, key)| (*step, self.wrap(key))).collect()
    }

    /// The key of a step, or the default.
    #[pyo3(signature = (step, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        step: i64,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.find(step) {
            Some(key) => Ok(Some(self.wrap(key).into_pyobject(py)?.into_any())),
            None => Ok(default),
        }
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (PyEvaluationKeys, &'static str))> {
        let keys = EvaluationKeys {
            rotations: self.keys.clone(),
            ..EvaluationKeys::default()
        };
        let holder = PyEvaluationKeys {
            keys,
            parameters: self.parameters.clone(),
        };
        let getattr = PyModule::import(py, "builtins")?.getattr("getattr")?;
        Ok((getattr, (holder, "rotations")))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        format!("<RotationKeys for {:?}>", self.keys())
    }
}

/// A secret key with the keys that belong to it.
#[pyclass(name = "KeySet", module = "fhelium", frozen)]
pub struct PyKeySet {
    pub keys: KeySet,
    pub parameters: Parameters,
}

#[pymethods]
impl PyKeySet {
    /// The parameters.
    #[getter]
    fn parameters(&self) -> PyParameters {
        PyParameters(self.parameters.clone())
    }

    /// Where it is.
    #[getter]
    fn device(&self) -> String {
        self.keys.secret.device().to_string()
    }

    /// The same keys on a device.
    fn to<'py>(slf: &Bound<'py, Self>, device: &str) -> PyResult<Bound<'py, Self>> {
        let (py, own) = (slf.py(), slf.get());
        moved(
            slf,
            own.keys.secret.device(),
            device,
            &own.parameters,
            |engine| Bound::new(py, own.placed(py, engine)?),
        )
    }

    /// The key that decrypts.
    #[getter]
    fn secret(&self) -> PySecretKey {
        PySecretKey {
            key: self.keys.secret.clone(),
            parameters: self.parameters.clone(),
        }
    }

    /// The key that encrypts.
    #[getter]
    fn public(&self) -> PyPublicKey {
        PyPublicKey {
            key: self.keys.public.clone(),
            parameters: self.parameters.clone(),
        }
    }

    /// The relinearization key.
    #[getter]
    fn relinearization(&self) -> PyEvaluationKey {
        PyEvaluationKey::new(self.keys.relinearization.clone(), &self.parameters)
    }

    /// The rotation keys by step.
    #[getter]
    fn rotations(&self) -> PyRotationKeys {
        PyRotationKeys {
            keys: self.keys.rotations.clone(),
            parameters: self.parameters.clone(),
        }
    }

    /// The conjugation key, if one was asked for.
    #[getter]
    fn conjugation(&self) -> Option<PyEvaluationKey> {
        let key = self.keys.conjugation.clone()?;
        Some(PyEvaluationKey::new(key, &self.parameters))
    }

    /// Bytes of all keys.
    #[getter]
    fn nbytes(&self) -> usize {
        self.keys.nbytes()
    }

    /// The keys without the secret: what someone who computes needs.
    fn evaluation(&self) -> PyEvaluationKeys {
        PyEvaluationKeys {
            keys: self.keys.evaluation(),
            parameters: self.parameters.clone(),
        }
    }

    fn __reduce__(&self) -> PyResult<()> {
        let instead = "send KeySet.evaluation(), which holds no secret";
        Err(refuse_pickling("KeySet", instead))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        format!(
            "<KeySet of secret {}: rotations {:?}, {} bytes{}>",
            self.keys.secret.secret_id(),
            self.rotations().keys(),
            self.nbytes(),
            device_note(self.keys.secret.device())
        )
    }
}

/// The keys that someone who computes needs; no secret is among them.
#[pyclass(name = "EvaluationKeys", module = "fhelium", frozen)]
pub struct PyEvaluationKeys {
    pub keys: EvaluationKeys,
    pub parameters: Parameters,
}

#[pymethods]
impl PyEvaluationKeys {
    /// The parameters.
    #[getter]
    fn parameters(&self) -> PyParameters {
        PyParameters(self.parameters.clone())
    }

    /// Where they are.
    #[getter]
    fn device(&self) -> String {
        self.keys.device().to_string()
    }

    /// The same keys on a device.
    fn to<'py>(slf: &Bound<'py, Self>, device: &str) -> PyResult<Bound<'py, Self>> {
        let (py, own) = (slf.py(), slf.get());
        moved(slf, own.keys.device(), device, &own.parameters, |engine| {
            Bound::new(py, own.placed(py, engine)?)
        })
    }

    /// The key that encrypts, if it is here.
    #[getter]
    fn public(&self) -> Option<PyPublicKey> {
        Some(PyPublicKey {
            key: self.keys.public.clone()?,
            parameters: self.parameters.clone(),
        })
    }

    /// The relinearization key, if it is here.
    #[getter]
    fn relinearization(&self) -> Option<PyEvaluationKey> {
        let key = self.keys.relinearization.clone()?;
        Some(PyEvaluationKey::new(key, &self.parameters))
    }

    /// The rotation keys by step.
    #[getter]
    fn rotations(&self) -> PyRotationKeys {
        PyRotationKeys {
            keys: self.keys.rotations.clone(),
            parameters: self.parameters.clone(),
        }
    }

    /// The conjugation key, if it is here.
    #[getter]
    fn conjugation(&self) -> Option<PyEvaluationKey> {
        let key = self.keys.conjugation.clone()?;
        Some(PyEvaluationKey::new(key, &self.parameters))
    }

    /// Bytes of all keys.
    #[getter]
    fn nbytes(&self) -> usize {
        self.keys.nbytes()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, self.object())
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        format!(
            "<EvaluationKeys: rotations {:?}, {} bytes{}>",
            self.rotations().keys(),
            self.nbytes(),
            device_note(self.keys.device())
        )
    }
}
