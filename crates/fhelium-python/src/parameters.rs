//! Parameter sets.

use crate::errors::{OrRaise, raise};
use crate::saving::{Reduced, reduce};
use crate::scale::{PyScale, ScaleArgument};
use fhelium_ckks::security::SecurityLevel;
use fhelium_ckks::{CkksError, Parameters, Preset};
use fhelium_runtime::persist::Object;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The parameters of CKKS: ring, primes, scale and digits, with the security that they have.
///
/// The primes track the scale: a product rescaled has the scale that it began with, to within
/// 2^-20 where there are such primes.
#[pyclass(name = "Parameters", module = "fhelium", frozen)]
#[derive(Clone)]
pub struct PyParameters(pub Parameters);

/// An integer argument; the digits of one beyond 64 bits, which is out of every range here.
struct Integer(Result<i64, String>);

impl FromPyObject<'_, '_> for Integer {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match value.extract() {
            Ok(value) => Ok(Integer(Ok(value))),
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
                Ok(Integer(Err(value.str()?.to_string())))
            }
            Err(error) => Err(error),
        }
    }
}

fn natural<T: TryFrom<i64>>(
    argument: &'static str,
    Integer(value): Integer,
    expected: &'static str,
) -> PyResult<T> {
    match value {
        Ok(value) => T::try_from(value).map_err(|_| refuse(argument, value, expected)),
        Err(digits) => Err(refuse(argument, digits, expected)),
    }
}

fn refuse(argument: &'static str, value: impl ToString, expected: &str) -> PyErr {
    let error = CkksError::Parameter {
        argument,
        found: value.to_string(),
        expected: expected.to_owned(),
    };
    raise(error.kind(), error)
}

fn security_level(bits: Integer) -> PyResult<SecurityLevel> {
    const EXPECTED: &str = "128, 192 or 256";
    let bits: u32 = natural("security", bits, EXPECTED)?;
    SecurityLevel::from_bits(bits).ok_or_else(|| refuse("security", bits, EXPECTED))
}

#[pymethods]
impl PyParameters {
    #[new]
    #[pyo3(signature = (
        depth = Integer(Ok(7)), scale_bits = Integer(Ok(40)), *, log_n = None, first_bits = None,
        special_primes = None, secret = "ternary", security = Integer(Ok(128)),
        allow_insecure = false
    ), text_signature = "(depth=7, scale_bits=40, *, log_n=None, first_bits=None, \
        special_primes=None, secret='ternary', security=128, allow_insecure=False)")]
    #[expect(
        clippy::too_many_arguments,
        reason = "they are Python's keyword arguments"
    )]
    fn new(
        py: Python<'_>,
        depth: Integer,
        scale_bits: Integer,
        log_n: Option<Integer>,
        first_bits: Option<Integer>,
        special_primes: Option<Integer>,
        secret: &str,
        security: Integer,
        allow_insecure: bool,
    ) -> PyResult<Self> {
        if secret != "ternary" {
            return Err(refuse(
                "secret",
                format!("{secret:?}"),
                "\"ternary\", the distribution that the security figures are for",
            ));
        }
        let depth = natural("depth", depth, "0..=200")?;
        let scale_bits = natural("scale_bits", scale_bits, "20..=58")?;
        let mut builder = Parameters::builder(depth, scale_bits)
            .security(security_level(security)?)
            .allow_insecure(allow_insecure);
        if let Some(log_n) = log_n {
            builder = builder.log_n(natural("log_n", log_n, "10..=17")?);
        }
        if let Some(bits) = first_bits {
            builder = builder.first_bits(natural("first_bits", bits, "at most 60")?);
        }
        if let Some(count) = special_primes {
            builder = builder.special_primes(natural("special_primes", count, "1..=32")?);
        }
        py.detach(|| builder.build()).or_raise().map(PyParameters)
    }

    /// Parameters of explicit primes.
    ///
    /// Args:
    ///     log_n: The binary logarithm of the ring degree.
    ///     moduli: The chain's primes: the last to stay first, then one for each level.
    ///     special_moduli: The primes of key switching.
    ///     scale: The scale of fresh ciphertexts.
    ///     security: 128, 192 or 256.
    ///     allow_insecure: Whether to accept parameters below that security.
    #[staticmethod]
    #[pyo3(signature = (
        log_n, moduli, special_moduli, scale, *, security = Integer(Ok(128)), allow_insecure = false
    ), text_signature = "(log_n, moduli, special_moduli, scale, *, security=128, \
        allow_insecure=False)")]
    fn from_primes(
        log_n: Integer,
        moduli: Vec<u64>,
        special_moduli: Vec<u64>,
        scale: ScaleArgument,
        security: Integer,
        allow_insecure: bool,
    ) -> PyResult<Self> {
        let log_n = natural("log_n", log_n, "10..=17")?;
        let security = security_level(security)?;
        Parameters::from_primes(
            log_n,
            moduli,
            special_moduli,
            scale.0,
            security,
            allow_insecure,
        )
        .or_raise()
        .map(PyParameters)
    }

    /// A named parameter set.
    #[staticmethod]
    fn preset(py: Python<'_>, name: &str) -> PyResult<Self> {
        let preset = name.parse::<Preset>().or_raise()?;
        Ok(PyParameters(py.detach(|| preset.parameters())))
    }

    /// The names that `preset` knows, smallest ring first.
    #[staticmethod]
    fn preset_names() -> Vec<&'static str> {
        Preset::ALL.iter().map(|preset| preset.name()).collect()
    }

    /// The ring degree.
    #[getter]
    fn n(&self) -> usize {
        self.0.n()
    }

    /// The binary logarithm of the ring degree.
    #[getter]
    fn log_n(&self) -> u32 {
        self.0.log_n()
    }

    /// Numbers in a message: half the ring degree.
    #[getter]
    fn slots(&self) -> usize {
        self.0.slots()
    }

    /// Rescales that a fresh ciphertext has: the level it begins with.
    #[getter]
    fn depth(&self) -> usize {
        self.0.depth()
    }

    /// The scale of fresh ciphertexts, and of plaintexts that multiply.
    #[getter]
    fn scale(&self) -> PyScale {
        PyScale(self.0.scale().clone())
    }

    /// The chain's primes: index 0 stays to the last, rescaling from level l divides by index l.
    #[getter]
    fn moduli<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.moduli())
    }

    /// The primes of key switching.
    #[getter]
    fn special_moduli<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.special_moduli())
    }

    /// Bits of the product of the chain's primes.
    #[getter]
    fn log_q(&self) -> f64 {
        self.0.log_q()
    }

    /// Bits of the product of all primes, which the security depends on.
    #[getter]
    fn log_qp(&self) -> f64 {
        self.0.log_qp()
    }

    /// The security in bits: 256, 192 or 128, or 0 for less.
    #[getter]
    fn security_bits(&self) -> u32 {
        self.0.security_bits()
    }

    /// The largest |message| that decrypts right at level 0 and the usual scale.
    #[getter]
    fn largest_message(&self) -> f64 {
        self.0.largest_message()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<PyParameters>()
            .is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.id().bytes().hash(&mut hasher);
        hasher.finish()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, Object::Parameters(self.0.clone()))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }
}
