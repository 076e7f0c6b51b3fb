//! Types of values.

use crate::errors::bad_argument;
use crate::scale::{PyScale, ScaleArgument};
use fhelium_ir::state::{CipherState, PlainState};
use fhelium_ir::{DType, KeyKind, Type};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// numpy's name of an element type.
pub fn dtype_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::I32 => "int32",
        DType::I64 => "int64",
        DType::F32 => "float32",
        DType::F64 => "float64",
        DType::C64 => "complex64",
        DType::C128 => "complex128",
    }
}

/// The element type of numpy's name.
pub fn dtype_from_name(name: &str) -> PyResult<DType> {
    DType::ALL
        .into_iter()
        .find(|dtype| dtype_name(*dtype) == name)
        .ok_or_else(|| {
            let names: Vec<_> = DType::ALL.into_iter().map(dtype_name).collect();
            bad_argument(format!(
                "arrays of dtype {name} cannot take part in a Program, which knows {}; convert \
                 with .astype first",
                names.join(", ")
            ))
        })
}

/// The type of a value of a Program: all that execution needs to know of it.
#[pyclass(name = "Type", module = "fhelium.compile", frozen, eq, hash)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PyType(pub Type);

/// A type as a Python object.
pub fn type_to_python(ty: &Type) -> PyType {
    PyType(ty.clone())
}

impl PyType {
    fn cipher_state(&self) -> Option<&CipherState> {
        match &self.0 {
            Type::Ciphertext { state, .. } => state.as_ref(),
            _ => None,
        }
    }

    fn plain_state(&self) -> Option<&PlainState> {
        match &self.0 {
            Type::Plaintext { state, .. } => state.as_ref(),
            _ => None,
        }
    }
}

#[pymethods]
impl PyType {
    /// The type of a ciphertext.
    #[staticmethod]
    #[pyo3(signature = (level, scale, parts = 2, batch_shape = vec![]))]
    fn ciphertext(
        level: usize,
        scale: ScaleArgument,
        parts: usize,
        batch_shape: Vec<usize>,
    ) -> Self {
        let state = CipherState {
            level,
            scale: scale.0,
            parts,
        };
        PyType(Type::ciphertext(batch_shape, state))
    }

    /// The type of a plaintext.
    #[staticmethod]
    #[pyo3(signature = (level, scale, batch_shape = vec![]))]
    fn plaintext(level: usize, scale: ScaleArgument, batch_shape: Vec<usize>) -> Self {
        let state = PlainState {
            level,
            scale: scale.0,
        };
        PyType(Type::plaintext(batch_shape, state))
    }

    /// The type of a clear array; the element type by numpy's name.
    #[staticmethod]
    fn tensor(dtype: &str, shape: Vec<usize>) -> PyResult<Self> {
        Ok(PyType(Type::tensor(dtype_from_name(dtype)?, shape)))
    }

    /// "ciphertext", "plaintext", "tensor", "key" or "residues".
    #[getter]
    fn kind(&self) -> &'static str {
        match &self.0 {
            Type::Ciphertext { .. } => "ciphertext",
            Type::Plaintext { .. } => "plaintext",
            Type::Tensor { .. } => "tensor",
            Type::Key(_) => "key",
            Type::Residues { .. } => "residues",
        }
    }

    /// Rescales left, of a ciphertext or plaintext whose state is known.
    #[getter]
    fn level(&self) -> Option<usize> {
        let cipher = self.cipher_state().map(|state| state.level);
        cipher.or_else(|| self.plain_state().map(|state| state.level))
    }

    /// The exact scale, of a ciphertext or plaintext whose state is known.
    #[getter]
    fn scale(&self) -> Option<PyScale> {
        let cipher = self.cipher_state().map(|state| &state.scale);
        let scale = cipher.or_else(|| self.plain_state().map(|state| &state.scale));
        scale.cloned().map(PyScale)
    }

    /// The parts of a ciphertext whose state is known.
    #[getter]
    fn parts(&self) -> Option<usize> {
        self.cipher_state().map(|state| state.parts)
    }

    /// Extents of a clear array, batch axes of the other values; () for a key.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let shape: &[usize] = match &self.0 {
            Type::Ciphertext { batch, .. }
            | Type::Plaintext { batch, .. }
            | Type::Residues { batch, .. } => batch,
            Type::Tensor { shape, .. } => shape,
            Type::Key(_) => &[],
        };
        PyTuple::new(py, shape)
    }

    /// numpy's name of a clear array's element type.
    #[getter]
    fn dtype(&self) -> Option<&'static str> {
        match &self.0 {
            Type::Tensor { dtype, .. } => Some(dtype_name(*dtype)),
            _ => None,
        }
    }

    /// What a key is for: "relinearization", "rotation" or "conjugation".
    #[getter]
    fn key_kind(&self) -> Option<&'static str> {
        match &self.0 {
            Type::Key(KeyKind::Relinearization) => Some("relinearization"),
            Type::Key(KeyKind::Rotation { .. }) => Some("rotation"),
            Type::Key(KeyKind::Conjugation) => Some("conjugation"),
            _ => None,
        }
    }

    /// The step of a rotation key.
    #[getter]
    fn step(&self) -> Option<i64> {
        match &self.0 {
            Type::Key(KeyKind::Rotation { step }) => Some(*step),
            _ => None,
        }
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}
