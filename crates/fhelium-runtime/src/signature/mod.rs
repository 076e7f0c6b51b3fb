//! What of a call's arguments a specialization is made for.
//!
//! A specialization holds for arguments whose [`CallSignature`]s are equal: their kinds, levels,
//! exact scales, shapes and places, and the values of static scalars. The contents of arrays,
//! ciphertexts, plaintexts and keys are no part of it.

mod difference;
mod scalar;

pub use difference::{Difference, nearest};
pub use scalar::StaticValue;

use crate::{Device, Value};
use fhelium_ckks::ParametersId;
use fhelium_ir::{DType, KeyKind};
use fhelium_state::Scale;
use std::fmt;
use std::sync::Arc;

/// The conditions that one argument meets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// A ciphertext.
    Ciphertext {
        /// Rescales left.
        level: usize,
        /// The exact scale.
        scale: Scale,
        /// Two, or three after a product that is not relinearized.
        parts: usize,
        /// Batch axes.
        batch_shape: Vec<usize>,
        /// The parameter set.
        parameters: ParametersId,
        /// Where its residues are.
        device: Device,
    },
    /// A plaintext.
    Plaintext {
        /// The level whose primes it holds.
        level: usize,
        /// The exact scale.
        scale: Scale,
        /// Batch axes.
        batch_shape: Vec<usize>,
        /// The parameter set.
        parameters: ParametersId,
        /// Where its residues are.
        device: Device,
    },
    /// A clear tensor.
    Tensor {
        /// The element type.
        dtype: DType,
        /// The shape.
        shape: Vec<usize>,
        /// Distance between neighbours on each axis, in elements.
        strides: Vec<isize>,
        /// Where its elements are.
        device: Device,
    },
    /// An evaluation key.
    Key {
        /// What it is for; a rotation's step included.
        kind: KeyKind,
        /// The parameter set.
        parameters: ParametersId,
        /// Where its residues are.
        device: Device,
    },
    /// A scalar that specializes the program by its exact value and type.
    Static(StaticValue),
}

impl Condition {
    /// The kind of argument, as messages name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Condition::Ciphertext { .. } => "ciphertext",
            Condition::Plaintext { .. } => "plaintext",
            Condition::Tensor { .. } => "tensor",
            Condition::Key { .. } => "key",
            Condition::Static(_) => "static",
        }
    }

    /// Every condition by name, with its value as text, in the order of the declaration.
    pub fn properties(&self) -> Vec<(&'static str, String)> {
        match self {
            Condition::Ciphertext {
                level,
                scale,
                parts,
                batch_shape,
                parameters,
                device,
            } => vec![
                ("level", level.to_string()),
                ("scale", scale.to_string()),
                ("parts", parts.to_string()),
                ("batch_shape", shape_text(batch_shape)),
                ("parameters", parameters.to_string()),
                ("device", device.to_string()),
            ],
            Condition::Plaintext {
                level,
                scale,
                batch_shape,
                parameters,
                device,
            } => vec![
                ("level", level.to_string()),
                ("scale", scale.to_string()),
                ("batch_shape", shape_text(batch_shape)),
                ("parameters", parameters.to_string()),
                ("device", device.to_string()),
            ],
            Condition::Tensor {
                dtype,
                shape,
                strides,
                device,
            } => vec![
                ("dtype", dtype.to_string()),
                ("shape", shape_text(shape)),
                ("strides", shape_text(strides)),
                ("device", device.to_string()),
            ],
            Condition::Key {
                kind,
                parameters,
                device,
            } => vec![
                ("key", kind.to_string()),
                ("parameters", parameters.to_string()),
                ("device", device.to_string()),
            ],
            Condition::Static(value) => vec![
                ("type", value.type_name().to_owned()),
                ("value", value.to_string()),
            ],
        }
    }

    /// The condition of this name as text, if this kind of argument has it.
    pub fn get(&self, property: &str) -> Option<String> {
        self.properties()
            .into_iter()
            .find_map(|(name, value)| (name == property).then_some(value))
    }
}

impl From<&Value> for Condition {
    fn from(value: &Value) -> Self {
        let device = value.device();
        match value {
            Value::Ciphertext(ciphertext) => Condition::Ciphertext {
                level: ciphertext.state().level,
                scale: ciphertext.state().scale.clone(),
                parts: ciphertext.state().parts,
                batch_shape: ciphertext.batch_shape().to_vec(),
                parameters: ciphertext.parameters_id(),
                device,
            },
            Value::Plaintext(plaintext) => Condition::Plaintext {
                level: plaintext.state().level,
                scale: plaintext.state().scale.clone(),
                batch_shape: plaintext.batch_shape().to_vec(),
                parameters: plaintext.parameters_id(),
                device,
            },
            Value::Tensor(tensor) => Condition::Tensor {
                dtype: tensor.dtype(),
                shape: tensor.shape().to_vec(),
                strides: tensor.strides().to_vec(),
                device,
            },
            Value::Key(key) => Condition::Key {
                kind: crate::value::key_kind(key),
                parameters: key.parameters_id(),
                device,
            },
        }
    }
}

/// One argument's name and conditions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArgumentSignature {
    /// The parameter's name.
    pub name: Arc<str>,
    /// What the argument must be.
    pub condition: Condition,
}

/// The conditions of all arguments of a call, in the order of the parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct CallSignature {
    arguments: Vec<ArgumentSignature>,
}

impl CallSignature {
    /// A signature of these arguments, in the order of the parameters.
    pub fn new(arguments: Vec<ArgumentSignature>) -> Self {
        CallSignature { arguments }
    }

    /// The arguments, in the order of the parameters.
    pub fn arguments(&self) -> &[ArgumentSignature] {
        &self.arguments
    }

    /// The argument of this name.
    pub fn argument(&self, name: &str) -> Option<&ArgumentSignature> {
        self.arguments
            .iter()
            .find(|argument| &*argument.name == name)
    }
}

impl FromIterator<(Arc<str>, Condition)> for CallSignature {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Condition)>>(arguments: I) -> Self {
        CallSignature::new(
            arguments
                .into_iter()
                .map(|(name, condition)| ArgumentSignature { name, condition })
                .collect(),
        )
    }
}

fn shape_text<T: fmt::Display>(shape: &[T]) -> String {
    match shape {
        [only] => format!("({only},)"),
        _ => {
            let axes: Vec<String> = shape.iter().map(T::to_string).collect();
            format!("({})", axes.join(", "))
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Condition::Static(value) = self {
            return write!(f, "static {} {value}", value.type_name());
        }
        write!(f, "{}(", self.kind())?;
        for (position, (name, value)) in self.properties().iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            write!(f, "{comma}{name}={value}")?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for ArgumentSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.condition)
    }
}

impl fmt::Display for CallSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (position, argument) in self.arguments.iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            write!(f, "{comma}{argument}")?;
        }
        f.write_str(")")
    }
}
