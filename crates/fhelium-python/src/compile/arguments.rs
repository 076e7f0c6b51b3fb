//! The arguments of a call: bound to the parameters, and what they are.

use crate::arrays::tensor_from;
use crate::attachment::Attachment;
use crate::dlpack::{Lender, PyArray, imported};
use crate::engine::class_name;
use crate::keys::PyEvaluationKey;
use crate::values::{PyCiphertext, PyPlaintext};
use fhelium_runtime::{CallSignature, Condition, Engine, StaticValue, Value};
use numpy::PyUntypedArray;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyComplex, PyDict, PyFloat, PyInt, PyMemoryView, PyString, PyTuple, PyType as PyClass,
};
use pyo3::{PyTraverseError, PyVisit};
use smallvec::SmallVec;
use std::sync::Arc;

/// How a parameter takes its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Positional,
    Either,
    Keyword,
}

/// A parameter of the compiled function.
#[derive(Clone, Debug)]
struct Parameter {
    name: Arc<str>,
    kind: Kind,
    required: bool,
}

/// The parameters, in order, with their defaults.
pub struct Parameters {
    parameters: Vec<Parameter>,
    defaults: Py<PyTuple>,
    positional: usize,
}

/// Arguments in the order of the parameters.
pub type Arguments<'py> = SmallVec<[Bound<'py, PyAny>; 6]>;

impl Parameters {
    /// Parameters by name, `inspect`'s name of their kind and whether they have no default.
    pub fn new(
        described: Vec<(String, String, bool)>,
        defaults: Bound<'_, PyTuple>,
    ) -> PyResult<Self> {
        let parameters = described
            .into_iter()
            .map(|(name, kind, required)| {
                let kind = match kind.as_str() {
                    "POSITIONAL_ONLY" => Kind::Positional,
                    "POSITIONAL_OR_KEYWORD" => Kind::Either,
                    "KEYWORD_ONLY" => Kind::Keyword,
                    other => {
                        return Err(PyTypeError::new_err(format!(
                            "the parameter {name} is {other}; a compiled function has a fixed \
                             signature"
                        )));
                    }
                };
                Ok(Parameter {
                    name: name.into(),
                    kind,
                    required,
                })
            })
            .collect::<PyResult<Vec<_>>>()?;
        let positional = parameters
            .iter()
            .filter(|parameter| parameter.kind != Kind::Keyword)
            .count();
        Ok(Parameters {
            parameters,
            defaults: defaults.unbind(),
            positional,
        })
    }

    /// A copy of the same parameters.
    pub fn clone_ref(&self, py: Python<'_>) -> Self {
        Parameters {
            parameters: self.parameters.clone(),
            defaults: self.defaults.clone_ref(py),
            positional: self.positional,
        }
    }

    /// Shows the defaults to the garbage collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.defaults)
    }

    /// The parameters' names.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.parameters.iter().map(|parameter| &parameter.name)
    }

    /// Binds as Python does; `None` where Python would refuse.
    pub fn bind<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Arguments<'py>>> {
        let given = args.len();
        if given > self.positional {
            return Ok(None);
        }
        let mut bound: SmallVec<[Option<Bound<'py, PyAny>>; 6]> = args.iter().map(Some).collect();
        bound.resize(self.parameters.len(), None);
        if let Some(kwargs) = kwargs {
            for (name, value) in kwargs {
                let name = name.cast_into::<PyString>()?;
                let name = name.to_cow()?;
                let place = self.parameters.iter().position(|parameter| {
                    parameter.kind != Kind::Positional && *parameter.name == *name
                });
                match place {
                    Some(place) if bound[place].is_none() => bound[place] = Some(value),
                    _ => return Ok(None),
                }
            }
        }
        let defaults = self.defaults.bind(py);
        let mut complete = Arguments::new();
        for (place, (value, parameter)) in bound.into_iter().zip(&self.parameters).enumerate() {
            complete.push(match value {
                Some(value) => value,
                None if parameter.required => return Ok(None),
                None => defaults.get_item(place)?,
            });
        }
        Ok(Some(complete))
    }
}

/// What the arguments of a call are.
pub struct Call<'py> {
    /// The conditions that they meet.
    pub signature: CallSignature,
    /// Those that are values, in the order of the parameters.
    pub values: Vec<Value>,
    /// For each parameter, whether its argument is a value; the others are static.
    pub is_value: Vec<bool>,
    /// The engine of the first encrypted or encoded argument.
    pub engine: Option<Arc<Engine>>,
    /// Kept for results that share memory of another library.
    lenders: Vec<Lender>,
    /// The module of the first array that is not numpy's, in which clear results come back.
    pub framework: Option<Bound<'py, PyAny>>,
}

impl Parameters {
    /// Describes bound arguments.
    ///
    /// # Errors
    /// TypeError for an argument that is no value and no static scalar.
    pub fn describe<'py>(
        &self,
        function: &str,
        bound: &[Bound<'py, PyAny>],
    ) -> PyResult<Call<'py>> {
        let mut call = Call {
            signature: CallSignature::default(),
            values: Vec::with_capacity(bound.len()),
            is_value: Vec::with_capacity(bound.len()),
            engine: None,
            lenders: Vec::new(),
            framework: None,
        };
        let mut conditions = Vec::with_capacity(bound.len());
        for (parameter, argument) in self.parameters.iter().zip(bound) {
            let name = parameter.name.clone();
            if let Some(value) = static_value(argument)? {
                conditions.push((name, Condition::Static(value)));
                call.is_value.push(false);
                continue;
            }
            let value = call.value(argument)?.ok_or_else(|| {
                PyTypeError::new_err(unsupported(function, &parameter.name, argument))
            })?;
            conditions.push((name, Condition::from(&value)));
            call.is_value.push(true);
            call.values.push(value);
        }
        call.signature = conditions.into_iter().collect();
        Ok(call)
    }
}

impl<'py> Call<'py> {
    /// Takes the engine of a value, unless an earlier one gave its own.
    fn join(&mut self, py: Python<'py>, attachment: &Attachment) -> PyResult<()> {
        if self.engine.is_none() {
            self.engine = Some(attachment.engine(py)?);
        }
        Ok(())
    }

    fn value(&mut self, argument: &Bound<'py, PyAny>) -> PyResult<Option<Value>> {
        if let Ok(ciphertext) = argument.cast::<PyCiphertext>() {
            let ciphertext = ciphertext.get();
            self.join(argument.py(), &ciphertext.attachment)?;
            return Ok(Some(Value::Ciphertext(ciphertext.value.clone())));
        }
        if let Ok(plaintext) = argument.cast::<PyPlaintext>() {
            let plaintext = plaintext.get();
            self.join(argument.py(), &plaintext.attachment)?;
            return Ok(Some(Value::Plaintext(plaintext.value.clone())));
        }
        if let Ok(key) = argument.cast::<PyEvaluationKey>() {
            return Ok(Some(Value::Key(key.get().key.clone())));
        }
        if argument.cast::<PyUntypedArray>().is_ok()
            || is_numpy_scalar(argument)?
            || is_buffer(argument)?
        {
            return Ok(Some(Value::from(tensor_from(argument)?)));
        }
        if let Ok(array) = argument.cast::<PyArray>() {
            let array = array.get().ordered(argument.py())?;
            return Ok(Some(Value::Tensor(array.clone())));
        }
        if argument.hasattr("__dlpack__")? {
            let py = argument.py();
            if self.framework.is_none() {
                let module: String = argument.get_type().getattr("__module__")?.extract()?;
                let root = module.split('.').next().unwrap_or_default();
                self.framework = Some(PyModule::import(py, root)?.into_any());
            }
            if let Some(array) = imported(argument)? {
                let (array, lender) = array.into_parts();
                self.lenders.extend(lender);
                return Ok(Some(Value::Tensor(array)));
            }
            let array = PyModule::import(py, "numpy")?
                .getattr("from_dlpack")?
                .call1((argument,))?;
            return Ok(Some(Value::from(tensor_from(&array)?)));
        }
        Ok(None)
    }
}

/// Whether this is one of Python's own arrays, whose memory numpy reads.
fn is_buffer(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value.is_instance_of::<PyMemoryView>()
        || value.get_type().fully_qualified_name()? == "array.array")
}

fn is_numpy_scalar(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    static GENERIC: PyOnceLock<Py<PyClass>> = PyOnceLock::new();
    let py = value.py();
    let generic = GENERIC.get_or_try_init(py, || {
        let class = PyModule::import(py, "numpy")?.getattr("generic")?;
        PyResult::Ok(class.cast_into::<PyClass>()?.unbind())
    })?;
    value.is_instance(generic.bind(py))
}

/// The static value of exactly a Python scalar.
fn static_value(value: &Bound<'_, PyAny>) -> PyResult<Option<StaticValue>> {
    Ok(Some(if value.is_none() {
        StaticValue::None
    } else if value.is_exact_instance_of::<PyBool>() {
        StaticValue::Bool(value.extract()?)
    } else if value.is_exact_instance_of::<PyInt>() {
        match value.extract() {
            Ok(small) => StaticValue::Int(small),
            Err(_) => StaticValue::BigInt(value.str()?.to_cow()?.into()),
        }
    } else if value.is_exact_instance_of::<PyFloat>() {
        StaticValue::float(value.extract()?)
    } else if value.is_exact_instance_of::<PyString>() {
        StaticValue::Str(value.extract::<String>()?.into())
    } else if value.is_exact_instance_of::<PyComplex>() {
        let complex = value.cast::<PyComplex>()?;
        StaticValue::complex(complex.real(), complex.imag())
    } else {
        return Ok(None);
    }))
}

fn unsupported(function: &str, parameter: &str, argument: &Bound<'_, PyAny>) -> String {
    let found = class_name(argument);
    let remedy = match found.as_str() {
        "list" | "tuple" => "pass its items as parameters of their own, or numpy.stack them",
        "dict" | "set" => "pass its values as parameters of their own",
        "Scale" => "pass float(scale)",
        _ => "let the function reach it as a global or a closure variable",
    };
    let vowel = found.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']);
    let article = if vowel { "an" } else { "a" };
    format!(
        "{function}: the argument {parameter} is {article} {found}; arguments are ciphertexts, plaintexts, \
         evaluation keys, numpy or DLPack arrays, and static scalars (None, bool, int, float, \
         complex, str): {remedy}"
    )
}
