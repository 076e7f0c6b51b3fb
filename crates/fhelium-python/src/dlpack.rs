//! Clear arrays on a device, and DLPack both ways.

use crate::arrays::{tensor_from, tensor_to_python};
use crate::errors::{OrRaise, bad_argument};
use crate::held::{HeldRef, Holds, hold};
use crate::ir::dtype_name;
use fhelium_runtime::cuda::Queue;
use fhelium_runtime::cuda::dlpack::{CUDA, Shared};
use fhelium_runtime::{Array, Device, Engine, Placed, RuntimeError};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

const FRESH: [&CStr; 2] = [c"dltensor", c"dltensor_versioned"];
const USED: [&CStr; 2] = [c"used_dltensor", c"used_dltensor_versioned"];

/// A clear array on a GPU: what a compiled function gives for arrays that are there.
///
/// It shares its memory with other libraries through DLPack: `torch.from_dlpack(array)`,
/// `cupy.from_dlpack(array)`, and back with `Array.from_dlpack`. What they write shows here, but only
/// an array that came back from them waits for it.
#[pyclass(frozen, name = "Array", module = "fhelium")]
pub struct PyArray {
    array: Array,
    lender: Option<Lender>,
}

#[pymethods]
impl PyArray {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let lender = self.lender.as_ref();
        lender.map_or(Ok(()), |lender| lender.keeps.visit(&visit))
    }

    /// A copy on a GPU of an array or number in host memory.
    #[new]
    #[pyo3(signature = (values, device="cuda"))]
    fn new(values: &Bound<'_, PyAny>, device: &str) -> PyResult<Self> {
        let device: Device = device.parse().or_raise()?;
        if device == Device::Cpu {
            return Err(bad_argument(
                "Array: device is \"cpu\"; arrays in host memory are numpy's",
            ));
        }
        let here = Array::from(tensor_from(values)?);
        let py = values.py();
        let there = py.detach(|| Engine::for_arrays(device)?.place(&here));
        Ok(PyArray::of(py, there.or_raise()?))
    }

    /// Another library's array on a GPU, such as one of PyTorch or CuPy, without a copy.
    ///
    /// Its memory stays as long as this array or a result that shares it lives. Each use of these
    /// asks the other array anew, by its `__dlpack__`, and comes after what is in its library's
    /// current stream by then. That library does not wait for what fhelium still reads.
    #[staticmethod]
    fn from_dlpack<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        if let Ok(own) = array.cast::<PyArray>() {
            return Ok(own.clone());
        }
        let found = imported(array)?.ok_or_else(|| {
            PyTypeError::new_err(
                "from_dlpack: expected an array on a CUDA device; arrays in host memory are \
                 numpy's, with numpy.from_dlpack",
            )
        })?;
        Bound::new(array.py(), found)
    }

    /// The lengths of the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array.shape())
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.array.ndim()
    }

    /// The element type, as numpy's.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let numpy = PyModule::import(py, "numpy")?;
        numpy
            .getattr("dtype")?
            .call1((dtype_name(self.array.dtype()),))
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> usize {
        self.array.nbytes()
    }

    /// The device that holds it, such as "cuda:0".
    #[getter]
    fn device(&self) -> String {
        self.array.device().to_string()
    }

    /// A copy in host memory.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let array = self.ordered(py)?;
        let here = py.detach(|| {
            let engine = Engine::for_arrays(array.device())?;
            array.to_host(engine.parameters())
        });
        let here = tensor_to_python(py, &*here.or_raise()?)?;
        // Also one number: an array without axes.
        PyModule::import(py, "numpy")?
            .getattr("asarray")?
            .call1((here,))
    }

    /// The array on another device, or, for "cpu", a numpy array; this one if it is there already.
    fn to<'py>(slf: &Bound<'py, Self>, device: &str) -> PyResult<Bound<'py, PyAny>> {
        let device: Device = device.parse().or_raise()?;
        let (py, this) = (slf.py(), slf.get());
        if device == this.array.device() {
            return Ok(slf.clone().into_any());
        }
        if device == Device::Cpu {
            return this.numpy(py);
        }
        let array = this.ordered(py)?;
        let moved = py
            .detach(|| Engine::for_arrays(device)?.place(array))
            .or_raise()?;
        Ok(Bound::new(py, PyArray::of(py, moved))?.into_any())
    }

    /// DLPack's device: its type, 2 for CUDA, and its index.
    fn __dlpack_device__(&self) -> PyResult<(i32, i32)> {
        let index = self.there()?.buffer().queue().device().index();
        Ok((CUDA, index as i32))
    }

    /// The array as a DLPack capsule, for another library's `from_dlpack`.
    ///
    /// Work on `stream` comes after what the array's own device work is: 1, or None, is the legacy
    /// default stream, -1 asks for no order.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let own = self.__dlpack_device__()?;
        if let Some(other) = dl_device.filter(|other| *other != own) {
            return Err(PyBufferError::new_err(format!(
                "the array is on DLPack's device {own:?}, and {other:?} was asked for; move it \
                 with .to or .numpy() first"
            )));
        }
        let stream = match stream {
            None => Some(1),
            Some(-1) => None,
            Some(0) => {
                return Err(bad_argument(
                    "__dlpack__: stream 0 is ambiguous; 1 is the legacy default stream, 2 the \
                     thread's",
                ));
            }
            Some(stream) => Some(
                usize::try_from(stream)
                    .map_err(|_| bad_argument(format!("__dlpack__: {stream} is no stream")))?,
            ),
        };
        let versioned = max_version.is_some_and(|(major, _)| major >= 1);
        let copied = copy == Some(true);
        let array = match copied || stream.is_some() {
            true => self.ordered(py)?,
            false => &self.array,
        };
        let device = array.device();
        let managed = py.detach(|| {
            let there = match copied {
                true => {
                    let engine = Engine::for_arrays(device)?;
                    let context = engine.cuda().ok_or_else(|| gone(device))?;
                    Arc::new(context.copy_tensor(array.cuda()?)?)
                }
                false => array.cuda()?.clone(),
            };
            // SAFETY: the standard has consumers pass a stream of theirs that lives.
            let managed = unsafe { there.export_dlpack(versioned, stream, copied) };
            Ok::<_, RuntimeError>(Exported(managed?))
        });
        capsule(py, managed.or_raise()?.0, versioned)
    }

    /// Refuses to copy to the host without being asked.
    #[pyo3(signature = (*_args, **_kwargs))]
    fn __array__(
        &self,
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        Err(PyTypeError::new_err(format!(
            "the array is on {}; copy it to the host with .numpy() first",
            self.array.device()
        )))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "Array(shape={}, dtype={}, device={:?})",
            self.shape(py)?.repr()?,
            dtype_name(self.array.dtype()),
            self.device()
        ))
    }
}

impl PyArray {
    /// An array as a Python object, with the lender of its memory.
    pub fn of(py: Python<'_>, array: Array) -> Self {
        let lender = Lender::of(py, &array);
        PyArray { array, lender }
    }

    /// The array, for a use of its contents that comes after what its lender has done so far.
    pub fn ordered(&self, py: Python<'_>) -> PyResult<&Array> {
        // What the collector has taken apart has no lender any more.
        if let Some(lender) = self.lender.as_ref().and_then(|lender| lender.known.get(py)) {
            // Unused, for the order alone: the memory stays, whatever the lender has by now.
            drop(asked(&lender, self.there()?.buffer().queue())?);
        }
        Ok(&self.array)
    }

    /// The array, and what has to be kept for results that share its memory.
    pub fn into_parts(self) -> (Array, Option<Lender>) {
        (self.array, self.lender)
    }

    fn there(&self) -> PyResult<&fhelium_runtime::cuda::Tensor> {
        self.array.cuda().map(|there| &**there).or_raise()
    }
}

/// A Python object that lends memory, to be asked at each use of it.
///
/// The memory knows it, so that every result that shares it does too, but weakly: whoever shows the
/// memory to Python keeps it, where the garbage collector sees it.
pub struct Lender {
    known: Arc<HeldRef>,
    keeps: Holds,
}

impl Lender {
    fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (keeps, known) = hold(object.clone())?;
        let known = Arc::new(known);
        Ok(Lender { known, keeps })
    }

    /// The same lender, kept once more.
    fn clone_ref(&self, py: Python<'_>) -> Self {
        Lender {
            known: self.known.clone(),
            keeps: self.keeps.clone_ref(py),
        }
    }

    /// The lender of an array's memory; `None` for fhelium's own.
    fn of(py: Python<'_>, array: &Array) -> Option<Self> {
        let known = array.cuda().ok()?.lender()?.clone();
        let known = known.downcast::<HeldRef>().ok()?;
        let keeps = known.holds(py);
        Some(Lender { known, keeps })
    }
}

/// A DLPack capsule of an object's, which has put the next work of the queue behind its own.
fn asked<'py>(lender: &Bound<'py, PyAny>, queue: &Queue) -> PyResult<Bound<'py, PyAny>> {
    let py = lender.py();
    let asked = queue.after_lender(|stream| {
        let arguments = PyDict::new(py);
        arguments.set_item("stream", stream)?;
        arguments.set_item("max_version", (1, 0))?;
        match lender.call_method("__dlpack__", (), Some(&arguments)) {
            // Made before there were versions.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                arguments.del_item("max_version")?;
                lender.call_method("__dlpack__", (), Some(&arguments))
            }
            other => other,
        }
    });
    asked.map_err(RuntimeError::from).or_raise()?
}

fn gone(device: Device) -> RuntimeError {
    RuntimeError::Device(format!("{device} has no engine"))
}

/// A structure that was exported and no capsule has yet.
struct Exported(NonNull<c_void>);

// SAFETY: DLPack's structures may be handed from thread to thread.
unsafe impl Send for Exported {}

/// Another library's array on a GPU, or one of these, ordered after what its library has done so
/// far; `None` for what is elsewhere.
pub fn imported(value: &Bound<'_, PyAny>) -> PyResult<Option<PyArray>> {
    imported_from(value, None)
}

/// [`imported`], with the lender that it was imported with before.
pub fn imported_from(
    value: &Bound<'_, PyAny>,
    lender: Option<&Lender>,
) -> PyResult<Option<PyArray>> {
    let py = value.py();
    if let Ok(own) = value.cast::<PyArray>() {
        let own = own.get();
        return Ok(Some(PyArray {
            array: own.ordered(py)?.clone(),
            lender: own.lender.as_ref().map(|lender| lender.clone_ref(py)),
        }));
    }
    if !value.hasattr("__dlpack_device__")? {
        return Ok(None);
    }
    let (kind, index): (i32, u32) = value.call_method0("__dlpack_device__")?.extract()?;
    if kind != CUDA {
        return Ok(None);
    }
    let device = Device::Cuda(index);
    let engine = py.detach(|| Engine::for_arrays(device)).or_raise()?;
    let context = engine.cuda().ok_or_else(|| gone(device)).or_raise()?;
    let lender = match lender {
        Some(lender) => lender.clone_ref(py),
        None => Lender::new(value)?,
    };
    let shared = taken(&asked(value, context.queue())?)?.lent_by(lender.known.clone());
    let tensor = py.detach(|| context.import_dlpack(shared));
    let tensor = tensor.map_err(RuntimeError::from).or_raise()?;
    Ok(Some(PyArray {
        array: Placed::Cuda(Arc::new(tensor)),
        lender: Some(lender),
    }))
}

/// Takes over what a capsule holds.
fn taken(capsule: &Bound<'_, PyAny>) -> PyResult<Shared> {
    let raw = capsule.as_ptr();
    for (versioned, (fresh, used)) in FRESH.into_iter().zip(USED).enumerate() {
        // SAFETY: the object lives, and the name is a C string.
        if unsafe { ffi::PyCapsule_IsValid(raw, fresh.as_ptr()) } == 0 {
            continue;
        }
        // SAFETY: a capsule of that name, whose pointer is to the structure that the name says.
        // Under the other name its destructor leaves the structure to us.
        unsafe {
            let managed = NonNull::new(ffi::PyCapsule_GetPointer(raw, fresh.as_ptr()));
            let managed = managed.ok_or_else(|| PyErr::fetch(capsule.py()))?;
            if ffi::PyCapsule_SetName(raw, used.as_ptr()) != 0 {
                return Err(PyErr::fetch(capsule.py()));
            }
            return Ok(match versioned {
                0 => Shared::from_unversioned(managed),
                _ => Shared::from_versioned(managed),
            });
        }
    }
    Err(bad_argument(
        "__dlpack__ gave no DLPack capsule, or one that was used already",
    ))
}

/// A capsule of a structure; one that nobody takes over gives it back.
fn capsule<'py>(
    py: Python<'py>,
    managed: NonNull<c_void>,
    versioned: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let name = FRESH[usize::from(versioned)];
    // SAFETY: the name is static, and the destructor takes such capsules.
    unsafe {
        let raw = ffi::PyCapsule_New(managed.as_ptr(), name.as_ptr(), Some(release));
        Bound::from_owned_ptr_or_err(py, raw)
    }
}

unsafe extern "C" fn release(raw: *mut ffi::PyObject) {
    for (versioned, fresh) in FRESH.into_iter().enumerate() {
        // SAFETY: Python calls this once with the capsule; one that still has the name was not
        // taken over.
        unsafe {
            if ffi::PyCapsule_IsValid(raw, fresh.as_ptr()) == 0 {
                continue;
            }
            if let Some(managed) = NonNull::new(ffi::PyCapsule_GetPointer(raw, fresh.as_ptr())) {
                drop(match versioned {
                    0 => Shared::from_unversioned(managed),
                    _ => Shared::from_versioned(managed),
                });
            }
        }
    }
}
