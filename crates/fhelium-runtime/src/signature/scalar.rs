//! Static scalars: arguments whose value is part of the signature.

use std::fmt;
use std::sync::Arc;

/// A scalar argument's exact value and type.
///
/// `1`, `1.0` and `True` are three different values. Floats compare by their bits, so that `0.0`
/// and `-0.0` differ.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StaticValue {
    /// No value.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer outside the range of `i64`, in decimal.
    BigInt(Arc<str>),
    /// A float, by its bits.
    Float(u64),
    /// A complex number: the bits of its real and imaginary parts.
    Complex(u64, u64),
    /// A text.
    Str(Arc<str>),
}

impl StaticValue {
    /// A float's exact value; every NaN is the same.
    pub fn float(value: f64) -> Self {
        StaticValue::Float(bits(value))
    }

    /// A complex number's exact value.
    pub fn complex(real: f64, imaginary: f64) -> Self {
        StaticValue::Complex(bits(real), bits(imaginary))
    }

    /// The name of its type, as Python spells it.
    pub fn type_name(&self) -> &'static str {
        match self {
            StaticValue::None => "None",
            StaticValue::Bool(_) => "bool",
            StaticValue::Int(_) | StaticValue::BigInt(_) => "int",
            StaticValue::Float(_) => "float",
            StaticValue::Complex(..) => "complex",
            StaticValue::Str(_) => "str",
        }
    }
}

fn bits(value: f64) -> u64 {
    if value.is_nan() {
        f64::NAN.to_bits()
    } else {
        value.to_bits()
    }
}

impl fmt::Display for StaticValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StaticValue::None => f.write_str("None"),
            StaticValue::Bool(true) => f.write_str("True"),
            StaticValue::Bool(false) => f.write_str("False"),
            StaticValue::Int(value) => write!(f, "{value}"),
            StaticValue::BigInt(text) => f.write_str(text),
            StaticValue::Float(bits) => write!(f, "{:?}", f64::from_bits(*bits)),
            StaticValue::Complex(real, imaginary) => write!(
                f,
                "({:?}{:+?}j)",
                f64::from_bits(*real),
                f64::from_bits(*imaginary)
            ),
            StaticValue::Str(text) => write!(f, "{text:?}"),
        }
    }
}
