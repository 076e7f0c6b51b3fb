//! Ciphertexts and plaintexts.

use crate::arrays::{tensor_from, tensor_to_python};
use crate::attachment::Attachment;
use crate::dlpack::{Lender, PyArray, imported};
use crate::engine::PyEngine;
use crate::errors::OrRaise;
use crate::ir::PyType;
use crate::keys::PyEvaluationKey;
use crate::parameters::PyParameters;
use crate::saving::{Reduced, reduce};
use crate::scale::PyScale;
use fhelium_ckks::Parameters;
use fhelium_runtime::persist::Object;
use fhelium_runtime::{Ciphertext, Device, Engine, Placed, Plaintext, Value};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType as PyClass};
use std::sync::Arc;

/// Encrypted messages of all slots each, batched or not.
#[pyclass(name = "Ciphertext", module = "fhelium._native", frozen, subclass)]
pub struct PyCiphertext {
    pub value: Ciphertext,
    pub attachment: Attachment,
}

/// Encoded messages of all slots each, batched or not.
#[pyclass(name = "Plaintext", module = "fhelium._native", frozen, subclass)]
pub struct PyPlaintext {
    pub value: Plaintext,
    pub attachment: Attachment,
}

/// The engine on a device that the value of another place joins there.
pub fn engine_on(py: Python<'_>, parameters: &Parameters, device: Device) -> PyResult<Arc<Engine>> {
    // Making one takes a while.
    py.detach(|| Engine::on(parameters, device)).or_raise()
}

/// What `.to` gives of an object that is at `now`: the object where it is there already, else what
/// `placed` makes of it for an engine of its parameters there.
pub fn moved<'py, T>(
    object: &Bound<'py, T>,
    now: Device,
    device: &str,
    parameters: &Parameters,
    placed: impl FnOnce(&Arc<Engine>) -> PyResult<Bound<'py, T>>,
) -> PyResult<Bound<'py, T>> {
    let device = device.parse::<Device>().or_raise()?;
    if now == device {
        return Ok(object.clone());
    }
    placed(&engine_on(object.py(), parameters, device)?)
}

/// The part of a `repr` that names a device; nothing for host memory.
pub fn device_note(device: Device) -> String {
    match device {
        Device::Cpu => String::new(),
        Device::Cuda(_) => format!(" device={device}"),
    }
}

impl PyCiphertext {
    /// What a file holds of it.
    pub fn object(&self) -> Object {
        Object::Ciphertext(self.value.clone(), self.attachment.parameters().clone())
    }

    /// The same on an engine's device, as one of the engine's.
    pub fn placed<'py>(
        &self,
        py: Python<'py>,
        engine: &Arc<Engine>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let value = py.detach(|| engine.place(&self.value)).or_raise()?;
        wrap_ciphertext(py, value, Attachment::To(engine.clone()))
    }
}

impl PyPlaintext {
    /// What a file holds of it.
    pub fn object(&self) -> Object {
        Object::Plaintext(self.value.clone(), self.attachment.parameters().clone())
    }

    /// The same on an engine's device, as one of the engine's.
    pub fn placed<'py>(
        &self,
        py: Python<'py>,
        engine: &Arc<Engine>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let value = py.detach(|| engine.place(&self.value)).or_raise()?;
        wrap_plaintext(py, value, Attachment::To(engine.clone()))
    }
}

#[pymethods]
impl PyCiphertext {
    #[new]
    fn new(value: &Bound<'_, PyCiphertext>) -> Self {
        PyCiphertext {
            value: value.get().value.clone(),
            attachment: value.get().attachment.clone(),
        }
    }

    /// Rescales left.
    #[getter]
    fn level(&self) -> usize {
        self.value.state().level
    }

    /// The exact scale.
    #[getter]
    fn scale(&self) -> PyScale {
        PyScale(self.value.state().scale.clone())
    }

    /// Two, or three after a product that is not relinearized.
    #[getter]
    fn parts(&self) -> usize {
        self.value.state().parts
    }

    /// Batch axes; () for a single ciphertext.
    #[getter]
    fn batch_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.value.batch_shape())
    }

    /// Where its residues are.
    #[getter]
    fn device(&self) -> String {
        self.value.device().to_string()
    }

    /// Bytes of its residues.
    #[getter]
    fn nbytes(&self) -> usize {
        self.value.nbytes()
    }

    /// The parameters under which it was encrypted.
    #[getter]
    fn parameters(&self) -> PyParameters {
        PyParameters(self.attachment.parameters().clone())
    }

    /// The id of the secret that decrypts it.
    #[getter]
    fn secret_id(&self) -> String {
        self.value.secret_id().to_string()
    }

    /// The same ciphertext on a device.
    fn to<'py>(slf: &Bound<'py, Self>, device: &str) -> PyResult<Bound<'py, PyAny>> {
        let (py, own) = (slf.py(), slf.get());
        let (now, parameters) = (own.value.device(), own.attachment.parameters());
        moved(slf.as_any(), now, device, parameters, |engine| {
            own.placed(py, engine)
        })
    }

    /// The residues, shape (batch..., parts, primes, N) in the transform domain: for tests.
    fn _residues<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let n = self.attachment.parameters().n();
        let mut shape = self.value.batch_shape().to_vec();
        shape.extend([self.value.state().parts, self.value.state().level + 1, n]);
        let parameters = self.attachment.parameters();
        let here = py.detach(|| self.value.to_host(parameters)).or_raise()?;
        crate::arrays::array_to_python(py, &shape, here.data().to_vec())
    }

    #[getter]
    fn _engine(&self, py: Python<'_>) -> PyResult<PyEngine> {
        self.attachment.engine(py).map(PyEngine)
    }

    fn _type(&self) -> PyType {
        PyType(Value::Ciphertext(self.value.clone()).ty())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, self.object())
    }

    // It never changes, so that a copy would be in nothing different.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        format!(
            "<Ciphertext level={} scale={} parts={} batch_shape={:?}{}>",
            self.value.state().level,
            self.value.state().scale,
            self.value.state().parts,
            self.value.batch_shape(),
            device_note(self.value.device())
        )
    }
}

#[pymethods]
impl PyPlaintext {
    #[new]
    fn new(value: &Bound<'_, PyPlaintext>) -> Self {
        PyPlaintext {
            value: value.get().value.clone(),
            attachment: value.get().attachment.clone(),
        }
    }

    /// The level whose primes it holds; it serves ciphertexts of lower levels too.
    #[getter]
    fn level(&self) -> usize {
        self.value.state().level
    }

    /// The exact scale.
    #[getter]
    fn scale(&self) -> PyScale {
        PyScale(self.value.state().scale.clone())
    }

    /// Batch axes; () for a single plaintext.
    #[getter]
    fn batch_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.value.batch_shape())
    }

    /// Where its residues are.
    #[getter]
    fn device(&self) -> String {
        self.value.device().to_string()
    }

    /// Bytes of its residues.
    #[getter]
    fn nbytes(&self) -> usize {
        self.value.nbytes()
    }

    /// The parameters for which it was encoded.
    #[getter]
    fn parameters(&self) -> PyParameters {
        PyParameters(self.attachment.parameters().clone())
    }

    /// The same plaintext on a device.
    fn to<'py>(slf: &Bound<'py, Self>, device: &str) -> PyResult<Bound<'py, PyAny>> {
        let (py, own) = (slf.py(), slf.get());
        let (now, parameters) = (own.value.device(), own.attachment.parameters());
        moved(slf.as_any(), now, device, parameters, |engine| {
            own.placed(py, engine)
        })
    }

    #[getter]
    fn _engine(&self, py: Python<'_>) -> PyResult<PyEngine> {
        self.attachment.engine(py).map(PyEngine)
    }

    fn _type(&self) -> PyType {
        PyType(Value::Plaintext(self.value.clone()).ty())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, self.object())
    }

    // It never changes, so that a copy would be in nothing different.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        format!(
            "<Plaintext level={} scale={} batch_shape={:?}{}>",
            self.value.state().level,
            self.value.state().scale,
            self.value.batch_shape(),
            device_note(self.value.device())
        )
    }
}

/// The public classes, which derive from the two here and add the operators.
static CLASSES: PyOnceLock<(Py<PyClass>, Py<PyClass>)> = PyOnceLock::new();

/// Says which classes the values of this module are instances of.
#[pyfunction]
pub fn register_values(
    py: Python<'_>,
    ciphertext: Bound<'_, PyClass>,
    plaintext: Bound<'_, PyClass>,
) -> PyResult<()> {
    CLASSES
        .set(py, (ciphertext.unbind(), plaintext.unbind()))
        .map_err(|_| PyRuntimeError::new_err("the classes of values are registered already"))
}

/// The public classes of ciphertexts and plaintexts.
pub fn public_classes(py: Python<'_>) -> PyResult<&(Py<PyClass>, Py<PyClass>)> {
    CLASSES
        .get(py)
        .ok_or_else(|| PyRuntimeError::new_err("import fhelium, not fhelium._native"))
}

/// A ciphertext, plaintext, key, array or number as a value.
pub fn value_from(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    lent_value_from(object).map(|(value, _)| value)
}

/// [`value_from`], with what has to be kept for results that share memory of another library.
pub fn lent_value_from(object: &Bound<'_, PyAny>) -> PyResult<(Value, Option<Lender>)> {
    let value = if let Ok(ciphertext) = object.cast::<PyCiphertext>() {
        Value::Ciphertext(ciphertext.get().value.clone())
    } else if let Ok(plaintext) = object.cast::<PyPlaintext>() {
        Value::Plaintext(plaintext.get().value.clone())
    } else if let Ok(key) = object.cast::<PyEvaluationKey>() {
        Value::Key(key.get().key.clone())
    } else if let Some(array) = imported(object)? {
        let (array, lender) = array.into_parts();
        return Ok((Value::Tensor(array), lender));
    } else {
        tensor_from(object)?.into()
    };
    Ok((value, None))
}

/// A ciphertext as a Python object.
pub fn wrap_ciphertext(
    py: Python<'_>,
    value: Ciphertext,
    attachment: Attachment,
) -> PyResult<Bound<'_, PyAny>> {
    let class = public_classes(py)?.0.bind(py);
    class.call1((PyCiphertext { value, attachment },))
}

/// A plaintext as a Python object.
pub fn wrap_plaintext(
    py: Python<'_>,
    value: Plaintext,
    attachment: Attachment,
) -> PyResult<Bound<'_, PyAny>> {
    let class = public_classes(py)?.1.bind(py);
    class.call1((PyPlaintext { value, attachment },))
}

/// A value as a Python object that belongs to an engine.
pub fn value_to_python<'py>(
    py: Python<'py>,
    value: Value,
    engine: &Arc<Engine>,
) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Ciphertext(value) => wrap_ciphertext(py, value, Attachment::To(engine.clone())),
        Value::Plaintext(value) => wrap_plaintext(py, value, Attachment::To(engine.clone())),
        Value::Tensor(Placed::Host(tensor)) => tensor_to_python(py, &tensor),
        Value::Tensor(array) => Ok(Bound::new(py, PyArray::of(py, array))?.into_any()),
        Value::Key(key) => {
            let key = PyEvaluationKey::new(key, engine.parameters());
            Ok(key.into_pyobject(py)?.into_any())
        }
    }
}
