//! Clear arrays between numpy and Rust.

use crate::engine::class_name;
use crate::errors::bad_argument;
use fhelium_runtime::tensor::{Element, Tensor};
use ndarray::{ArcArray, ArrayD, IxDyn};
use numpy::{
    Complex32, Complex64, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// `numpy.asarray`, for what is no array yet.
fn asarray<'py>(value: &Bound<'py, PyAny>, function: &str) -> PyResult<Bound<'py, PyAny>> {
    static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let py = value.py();
    let numpy = NUMPY.get_or_try_init(py, || PyModule::import(py, "numpy").map(Bound::unbind))?;
    numpy.bind(py).getattr(function)?.call1((value,))
}

/// A copy of an array, in its memory order where that has no gaps.
pub fn tensor_from(value: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let array = match value.cast::<PyUntypedArray>() {
        Ok(array) => array.clone(),
        Err(_) => asarray(value, "asarray")?.cast_into::<PyUntypedArray>()?,
    };
    let array = if is_aligned(&array) {
        array
    } else {
        asarray(&array, "ascontiguousarray")?.cast_into::<PyUntypedArray>()?
    };
    macro_rules! try_types {
        ($($type:ty),*) => {$(
            if let Ok(array) = array.cast::<PyArrayDyn<$type>>() {
                return copied::<$type>(array);
            }
        )*};
    }
    try_types!(f64, Complex64, f32, i64, bool, Complex32, i32);
    if value.cast::<PyUntypedArray>().is_err() && !b"biufc".contains(&array.dtype().kind()) {
        return Err(PyTypeError::new_err(format!(
            "expected a ciphertext, plaintext, evaluation key, array or number, found {}",
            class_name(value)
        )));
    }
    Err(bad_argument(format!(
        "an array of dtype {} has no counterpart here: expected bool, int32, int64, float32, \
         float64, complex64 or complex128; convert with .astype first",
        array.dtype()
    )))
}

fn copied<T: Element + numpy::Element>(array: &Bound<'_, PyArrayDyn<T>>) -> PyResult<Tensor> {
    let view = array
        .try_readonly()
        .map_err(|error| bad_argument(error.to_string()))?;
    Ok(Tensor::from(view.as_array().to_owned()))
}

/// Whether the array starts at an aligned place and its strides are whole multiples of the
/// element size, as views of Rust require; views into records may be otherwise.
fn is_aligned(array: &Bound<'_, PyUntypedArray>) -> bool {
    let size = array.dtype().itemsize().max(1) as isize;
    array.is_aligned() && array.strides().iter().all(|stride| stride % size == 0)
}

/// A tensor as a numpy array; without axes, as a numpy scalar.
pub fn tensor_to_python<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let array = match tensor {
        Tensor::Bool(array) => owned(py, array),
        Tensor::I32(array) => owned(py, array),
        Tensor::I64(array) => owned(py, array),
        Tensor::F32(array) => owned(py, array),
        Tensor::F64(array) => owned(py, array),
        Tensor::C64(array) => owned(py, array),
        Tensor::C128(array) => owned(py, array),
    };
    if tensor.ndim() == 0 {
        return array.get_item(pyo3::types::PyTuple::empty(py));
    }
    Ok(array)
}

fn owned<'py, T: Element + numpy::Element>(
    py: Python<'py>,
    array: &ArcArray<T, IxDyn>,
) -> Bound<'py, PyAny> {
    PyArrayDyn::from_owned_array(py, array.to_owned()).into_any()
}

/// Row-major numbers as a numpy array of a shape.
pub fn array_to_python<'py, T: numpy::Element>(
    py: Python<'py>,
    shape: &[usize],
    data: Vec<T>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = ArrayD::from_shape_vec(IxDyn(shape), data)
        .map_err(|error| bad_argument(error.to_string()))?;
    Ok(PyArrayDyn::from_owned_array(py, array).into_any())
}

/// Whether an array can be written to.
pub fn is_writeable(array: &Bound<'_, PyAny>) -> bool {
    array
        .getattr("flags")
        .and_then(|flags| flags.getattr("writeable"))
        .and_then(|flag| flag.extract())
        .unwrap_or(true)
}
