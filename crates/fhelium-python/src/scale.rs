//! Exact scales.

use crate::errors::{OrRaise, bad_argument, raise};
use fhelium_state::{Scale, StateError};
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyString};

/// The exact positive number by which a message is multiplied before it is rounded to integers.
///
/// A power of two times powers of primes, never rounded. It prints as 2^x; `exact` is the form
/// without loss. It compares with scales, integers and floats, exactly.
#[pyclass(name = "Scale", module = "fhelium", frozen)]
#[derive(Clone)]
pub struct PyScale(pub Scale);

/// A scale argument: a Scale, a positive number, or text such as "2^40".
pub struct ScaleArgument(pub Scale);

impl<'py> FromPyObject<'_, 'py> for ScaleArgument {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(scale) = value.cast::<PyScale>() {
            return Ok(ScaleArgument(scale.get().0.clone()));
        }
        if value.is_instance_of::<PyString>() {
            let text = value.extract::<String>()?;
            return text.parse::<Scale>().or_raise().map(ScaleArgument);
        }
        match number(&value)? {
            Some(scale) => Ok(ScaleArgument(scale)),
            None => {
                let found = value.repr()?.to_string();
                let error = StateError::NotAScale { found };
                Err(raise(error.kind(), error))
            }
        }
    }
}

/// The exact scale of a Python number; `None` where it is not positive and finite.
fn number(value: &Bound<'_, PyAny>) -> PyResult<Option<Scale>> {
    if value.is_instance_of::<PyInt>() {
        if let Ok(small) = value.extract::<u128>() {
            return Ok(integer(small));
        }
    } else if !value.is_instance_of::<PyFloat>() && !value.hasattr("__float__")? {
        return Err(PyTypeError::new_err(format!(
            "a scale is a Scale, a positive number or text such as \"2^40\", found {}",
            value.get_type().name()?
        )));
    }
    Ok(value.extract::<f64>().ok().and_then(Scale::from_f64))
}

fn integer(value: u128) -> Option<Scale> {
    if value == 0 {
        return None;
    }
    let twos = value.trailing_zeros();
    let odd = u64::try_from(value >> twos).ok()?;
    Some(Scale::from_integer(odd)?.times(&Scale::from_bits(twos)))
}

#[pymethods]
impl PyScale {
    #[new]
    fn new(value: ScaleArgument) -> Self {
        PyScale(value.0)
    }

    /// The binary logarithm.
    #[getter]
    fn log2(&self) -> f64 {
        self.0.log2()
    }

    /// The text without loss: "2^80*1099511922689^-1".
    #[getter]
    fn exact(&self) -> String {
        self.0.exact()
    }

    fn __float__(&self) -> f64 {
        self.0.to_f64()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Scale({})", self.0)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        // Equal numbers of Python hash alike, and a scale may equal one.
        let float = self.0.to_f64();
        if Scale::from_f64(float).as_ref() == Some(&self.0) {
            return PyFloat::new(py, float).hash();
        }
        PyString::new(py, &self.0.exact()).hash()
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, operator: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let known = match other.cast::<PyScale>() {
            Ok(scale) => Some(scale.get().0.clone()),
            Err(_) if other.is_instance_of::<PyInt>() || other.is_instance_of::<PyFloat>() => {
                number(other)?
            }
            Err(_) => return Ok(py.NotImplemented()),
        };
        let Some(other) = known else {
            // Not a positive finite number, so not equal to any scale.
            return match operator {
                CompareOp::Eq => Ok(false.into_pyobject(py)?.to_owned().into_any().unbind()),
                CompareOp::Ne => Ok(true.into_pyobject(py)?.to_owned().into_any().unbind()),
                _ => Err(bad_argument(
                    "a scale is ordered among positive finite numbers only",
                )),
            };
        };
        let ratio = self.0.log2_ratio(&other);
        let holds = match operator {
            CompareOp::Eq => self.0 == other,
            CompareOp::Ne => self.0 != other,
            CompareOp::Lt => ratio < 0.0,
            CompareOp::Le => ratio <= 0.0,
            CompareOp::Gt => ratio > 0.0,
            CompareOp::Ge => ratio >= 0.0,
        };
        Ok(holds.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __mul__(&self, other: ScaleArgument) -> Self {
        PyScale(self.0.times(&other.0))
    }

    fn __rmul__(&self, other: ScaleArgument) -> Self {
        PyScale(other.0.times(&self.0))
    }

    fn __truediv__(&self, other: ScaleArgument) -> Self {
        PyScale(self.0.over(&other.0))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().0.exact(),))
    }
}
