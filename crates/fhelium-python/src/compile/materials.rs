//! What material symbols are bound to.

use crate::arrays::{is_writeable, tensor_from};
use crate::dlpack::{Lender, imported, imported_from};
use crate::errors::bad_argument;
use crate::values::value_from;
use fhelium_runtime::{MaterialBinding, MaterialSource, RuntimeError, Value};
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::fmt;
use xxhash_rust::xxh3::xxh3_64;

/// A captured array whose owner may change it between calls.
struct LiveArray {
    array: Py<PyAny>,
}

impl fmt::Debug for LiveArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a captured array")
    }
}

fn failed(error: &PyErr) -> RuntimeError {
    RuntimeError::Value(format!("a captured array cannot be read any more: {error}"))
}

impl MaterialSource for LiveArray {
    fn version(&self) -> Result<u64, RuntimeError> {
        Python::attach(|py| hash(self.array.bind(py))).map_err(|error| failed(&error))
    }

    fn read(&self) -> Result<(Value, u64), RuntimeError> {
        // Under one attachment, so that no Python code runs between the two.
        Python::attach(|py| {
            let array = self.array.bind(py);
            Ok((Value::from(tensor_from(array)?), hash(array)?))
        })
        .map_err(|error: PyErr| failed(&error))
    }
}

/// A hash of an array's contents.
fn hash(array: &Bound<'_, PyAny>) -> PyResult<u64> {
    // The usual case without a copy.
    if let Ok(floats) = array.cast::<PyArrayDyn<f64>>()
        && floats.is_c_contiguous()
        && let Ok(view) = floats.try_readonly()
        && let Ok(slice) = view.as_slice()
    {
        return Ok(xxh3_64(bytemuck::cast_slice(slice)));
    }
    let tensor = tensor_from(array)?.to_contiguous();
    Ok(tensor.bytes().map_or(0, xxh3_64))
}

/// A captured array on a device. Nobody looks at its contents to tell whether they have changed: they
/// are read where they are, at each call.
struct DeviceArray {
    array: Py<PyAny>,
    /// Its own: results that share the memory of one call ask it, too.
    lender: Option<Lender>,
}

impl fmt::Debug for DeviceArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a captured array on a device")
    }
}

impl MaterialSource for DeviceArray {
    fn version(&self) -> Result<u64, RuntimeError> {
        Ok(0)
    }

    /// Asks the library that holds it anew, which orders what it has done so far before what comes.
    fn read(&self) -> Result<(Value, u64), RuntimeError> {
        Python::attach(|py| {
            let array = imported_from(self.array.bind(py), self.lender.as_ref())?
                .ok_or_else(|| bad_argument("it is in host memory now"))?;
            Ok((Value::Tensor(array.into_parts().0), 0))
        })
        .map_err(|error: PyErr| failed(&error))
    }

    fn tells_changes(&self) -> bool {
        false
    }
}

/// What a Python object binds a material to: an array that can be written to is looked at on
/// each call, everything else is read once.
pub fn binding_from(value: &Bound<'_, PyAny>) -> PyResult<MaterialBinding> {
    if let Some(first) = imported(value)? {
        let array = value.clone().unbind();
        let (_, lender) = first.into_parts();
        return Ok(MaterialBinding::Live(std::sync::Arc::new(DeviceArray {
            array,
            lender,
        })));
    }
    if value.cast::<PyUntypedArray>().is_ok() && is_writeable(value) {
        // Read once here, so that an array of a wrong kind is an error at once.
        tensor_from(value)?;
        let array = value.clone().unbind();
        return Ok(MaterialBinding::Live(std::sync::Arc::new(LiveArray {
            array,
        })));
    }
    value_from(value).map(MaterialBinding::Fixed)
}
