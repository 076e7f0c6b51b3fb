//! Attributes of operations between Python and Rust.

use super::types::{dtype_from_name, dtype_name};
use crate::errors::{bad_argument, raise};
use crate::scale::{PyScale, ScaleArgument};
use fhelium_ir::state::ErrorKind;
use fhelium_ir::{Attribute, AttributeKind, Attributes, OpKind, Real};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt};

/// An operation of the table by its full name.
pub fn operation_from_name(name: &str) -> PyResult<OpKind> {
    OpKind::find(name).ok_or_else(|| {
        raise(
            ErrorKind::Compile,
            format!("there is no operation {name:?}; the reference lists them, such as \"he.add\""),
        )
    })
}

/// Attributes of an operation, of the kinds that the table says.
pub fn attributes_from(kind: OpKind, given: &Bound<'_, PyDict>) -> PyResult<Attributes> {
    let mut attributes = Attributes::new();
    for (name, value) in given {
        let name: String = name.extract()?;
        let Some(spec) = kind.def().attribute(&name) else {
            let known: Vec<_> = kind.def().attributes.iter().map(|spec| spec.name).collect();
            return Err(raise(
                ErrorKind::Compile,
                format!(
                    "{kind} has no attribute {name:?}; it has [{}]",
                    known.join(", ")
                ),
            ));
        };
        let attribute = attribute_from(spec.kind, &value)?.ok_or_else(|| {
            bad_argument(format!(
                "{kind}: {name} must be {}, found {}",
                spec.kind,
                found(&value)
            ))
        })?;
        attributes.set(spec.name, attribute);
    }
    Ok(attributes)
}

fn found(value: &Bound<'_, PyAny>) -> String {
    let text = value
        .repr()
        .map_or_else(|_| "?".to_owned(), |text| text.to_string());
    if text.len() > 80 {
        return format!("{}...", text.chars().take(80).collect::<String>());
    }
    text
}

fn attribute_from(kind: AttributeKind, value: &Bound<'_, PyAny>) -> PyResult<Option<Attribute>> {
    Ok(match kind {
        AttributeKind::Bool => value.extract().ok().map(Attribute::Bool),
        AttributeKind::Int => value.extract().ok().map(Attribute::Int),
        AttributeKind::Ints => value.extract().ok().map(Attribute::Ints),
        AttributeKind::Number => number_from(value),
        AttributeKind::Symbol => value
            .extract::<String>()
            .ok()
            .map(|symbol| Attribute::Symbol(symbol.into())),
        AttributeKind::Scale => Some(Attribute::Scale(value.extract::<ScaleArgument>()?.0)),
        AttributeKind::DType => Some(Attribute::DType(dtype_from_name(&value.str()?.to_cow()?)?)),
    })
}

fn number_from(value: &Bound<'_, PyAny>) -> Option<Attribute> {
    if value.is_instance_of::<PyBool>() {
        return value.extract().ok().map(Attribute::Bool);
    }
    if value.is_instance_of::<PyInt>() {
        return value.extract().ok().map(Attribute::Int);
    }
    if value.is_instance_of::<PyFloat>() {
        return value.extract().ok().map(|number: f64| number.into());
    }
    let complex = value.cast::<PyComplex>().ok()?;
    Some(Attribute::Complex(
        Real::new(complex.real()),
        Real::new(complex.imag()),
    ))
}

/// Attributes as a dict.
pub fn attributes_to_python<'py>(
    py: Python<'py>,
    attributes: &Attributes,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in attributes.iter() {
        match value {
            Attribute::Bool(value) => dict.set_item(name, value),
            Attribute::Int(value) => dict.set_item(name, value),
            Attribute::Ints(values) => dict.set_item(name, values),
            Attribute::Float(value) => dict.set_item(name, value.get()),
            Attribute::Complex(real, imaginary) => dict.set_item(
                name,
                PyComplex::from_doubles(py, real.get(), imaginary.get()),
            ),
            Attribute::Symbol(symbol) => dict.set_item(name, &**symbol),
            Attribute::Scale(scale) => dict.set_item(name, PyScale(scale.clone())),
            Attribute::DType(dtype) => dict.set_item(name, dtype_name(*dtype)),
        }?;
    }
    Ok(dict)
}
