//! Attributes: the constants of an operation.

use crate::DType;
use crate::types::List;
use fhelium_state::Scale;
use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A float that compares and hashes by its bits, so that programs can be compared.
///
/// Every NaN is the same number here, and 0.0 and -0.0 are two.
#[derive(Clone, Copy)]
pub struct Real(f64);

impl Real {
    /// The number, with any NaN made the one that the text form can write.
    pub fn new(value: f64) -> Self {
        Real(if value.is_nan() { f64::NAN } else { value })
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Real {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Real {}

impl Hash for Real {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl fmt::Debug for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_nan() {
            f.write_str("nan")
        } else {
            // The shortest text that reads back as the same bits, always with a point or an
            // exponent, so that it does not read back as an integer.
            write!(f, "{:?}", self.0)
        }
    }
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Attribute {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Integers.
    Ints(Vec<i64>),
    /// A float.
    Float(Real),
    /// A complex number: real part, imaginary part.
    Complex(Real, Real),
    /// The name of a material.
    Symbol(Arc<str>),
    /// An exact scale.
    Scale(Scale),
    /// An element type.
    DType(DType),
}

/// What an attribute may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttributeKind {
    /// [`Attribute::Bool`].
    Bool,
    /// [`Attribute::Int`].
    Int,
    /// [`Attribute::Ints`].
    Ints,
    /// A number: bool, int, float or complex.
    Number,
    /// [`Attribute::Symbol`].
    Symbol,
    /// [`Attribute::Scale`].
    Scale,
    /// [`Attribute::DType`].
    DType,
}

impl AttributeKind {
    /// Whether a value is of this kind.
    pub fn accepts(self, value: &Attribute) -> bool {
        use Attribute as A;
        match self {
            AttributeKind::Bool => matches!(value, A::Bool(_)),
            AttributeKind::Int => matches!(value, A::Int(_)),
            AttributeKind::Ints => matches!(value, A::Ints(_)),
            AttributeKind::Number => {
                matches!(
                    value,
                    A::Bool(_) | A::Int(_) | A::Float(_) | A::Complex(_, _)
                )
            }
            AttributeKind::Symbol => matches!(value, A::Symbol(_)),
            AttributeKind::Scale => matches!(value, A::Scale(_)),
            AttributeKind::DType => matches!(value, A::DType(_)),
        }
    }
}

impl fmt::Display for AttributeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AttributeKind::Bool => "a truth value",
            AttributeKind::Int => "an integer",
            AttributeKind::Ints => "a list of integers",
            AttributeKind::Number => "a number",
            AttributeKind::Symbol => "a symbol",
            AttributeKind::Scale => "a scale",
            AttributeKind::DType => "an element type",
        })
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attribute::Bool(value) => write!(f, "{value}"),
            Attribute::Int(value) => write!(f, "{value}"),
            Attribute::Ints(values) => write!(f, "{}", List(values)),
            Attribute::Float(value) => write!(f, "{value}"),
            Attribute::Complex(real, imaginary) => write!(f, "complex({real}, {imaginary})"),
            Attribute::Symbol(symbol) => write!(f, "{}", crate::text::Symbol(symbol)),
            Attribute::Scale(scale) => f.write_str(&scale.exact()),
            Attribute::DType(dtype) => write!(f, "{dtype}"),
        }
    }
}

macro_rules! from {
    ($($source:ty => $variant:ident($value:ident => $make:expr);)*) => {$(
        impl From<$source> for Attribute {
            fn from($value: $source) -> Self {
                Attribute::$variant($make)
            }
        }
    )*};
}

from! {
    bool => Bool(value => value);
    i64 => Int(value => value);
    Vec<i64> => Ints(value => value);
    f64 => Float(value => Real::new(value));
    Scale => Scale(value => value);
    DType => DType(value => value);
}

/// An operation's attributes by name.
///
/// A resolved operation holds them in the table's order with defaults filled in, so that equal
/// operations have equal attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes {
    entries: Vec<(Cow<'static, str>, Attribute)>,
}

impl Attributes {
    /// No attributes.
    pub fn new() -> Self {
        Attributes::default()
    }

    /// Sets an attribute, in place of an earlier one of that name.
    pub fn set(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Attribute>) {
        let (name, value) = (name.into(), value.into());
        match self.entries.iter_mut().find(|(known, _)| *known == name) {
            Some((_, slot)) => *slot = value,
            None => self.entries.push((name, value)),
        }
    }

    /// These attributes and one more.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Attribute>) -> Self {
        self.set(name, value);
        self
    }

    /// The attribute of that name.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        let entry = self.entries.iter().find(|(known, _)| known == name);
        entry.map(|(_, value)| value)
    }

    /// The integer of that name.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Attribute::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The integers of that name.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.get(name)? {
            Attribute::Ints(values) => Some(values),
            _ => None,
        }
    }

    /// The truth value of that name.
    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            Attribute::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The scale of that name.
    pub fn scale(&self, name: &str) -> Option<&Scale> {
        match self.get(name)? {
            Attribute::Scale(value) => Some(value),
            _ => None,
        }
    }

    /// The symbol of that name.
    pub fn symbol(&self, name: &str) -> Option<&Arc<str>> {
        match self.get(name)? {
            Attribute::Symbol(value) => Some(value),
            _ => None,
        }
    }

    /// The element type of that name.
    pub fn dtype(&self, name: &str) -> Option<DType> {
        match self.get(name)? {
            Attribute::DType(value) => Some(*value),
            _ => None,
        }
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Attribute)> {
        self.entries.iter().map(|(name, value)| (&**name, value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<const COUNT: usize> From<[(&'static str, Attribute); COUNT]> for Attributes {
    fn from(entries: [(&'static str, Attribute); COUNT]) -> Self {
        let mut attributes = Attributes::new();
        for (name, value) in entries {
            attributes.set(name, value);
        }
        attributes
    }
}
