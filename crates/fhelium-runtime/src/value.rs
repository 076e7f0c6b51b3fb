//! Values that programs take and give.

use crate::placed::{Array, Ciphertext, KeySwitchKey, Plaintext};
use crate::tensor::Tensor;
use crate::{Device, RuntimeError};
use fhelium_ckks::{Parameters, ParametersId, SecretId};
use fhelium_ir::{KeyKind, Type};
use std::sync::Arc;

/// A value: cheap to clone, never changed once made.
#[derive(Clone, Debug)]
pub enum Value {
    /// A ciphertext, batched or not.
    Ciphertext(Ciphertext),
    /// An encoded message, batched or not.
    Plaintext(Plaintext),
    /// A clear array.
    Tensor(Array),
    /// An evaluation key.
    Key(KeySwitchKey),
}

impl Value {
    /// The value's type, as Programs know it.
    pub fn ty(&self) -> Type {
        match self {
            Value::Ciphertext(value) => Type::Ciphertext {
                batch: value.batch_shape().to_vec(),
                state: Some(value.state().clone()),
            },
            Value::Plaintext(value) => Type::Plaintext {
                batch: value.batch_shape().to_vec(),
                state: Some(value.state().clone()),
            },
            Value::Tensor(value) => Type::tensor(value.dtype(), value.shape()),
            Value::Key(key) => Type::Key(key_kind(key)),
        }
    }

    /// Whether [`Value::ty`] is `ty`; a ciphertext or plaintext type without a state asks for the
    /// batch shape alone.
    pub fn has_type(&self, ty: &Type) -> bool {
        match (self, ty) {
            (Value::Ciphertext(value), Type::Ciphertext { batch, state }) => {
                value.batch_shape() == batch
                    && state.as_ref().is_none_or(|state| value.state() == state)
            }
            (Value::Plaintext(value), Type::Plaintext { batch, state }) => {
                value.batch_shape() == batch
                    && state.as_ref().is_none_or(|state| value.state() == state)
            }
            (Value::Tensor(value), Type::Tensor { dtype, shape }) => {
                value.dtype() == *dtype && value.shape() == shape
            }
            (Value::Key(key), Type::Key(kind)) => key_kind(key) == *kind,
            _ => false,
        }
    }

    /// The ciphertext.
    ///
    /// # Errors
    /// [`RuntimeError::Value`] for a value of another kind; so for the three below.
    pub fn ciphertext(&self) -> Result<&Ciphertext, RuntimeError> {
        match self {
            Value::Ciphertext(value) => Ok(value),
            other => Err(other.is_no("a ciphertext")),
        }
    }

    /// The plaintext.
    pub fn plaintext(&self) -> Result<&Plaintext, RuntimeError> {
        match self {
            Value::Plaintext(value) => Ok(value),
            other => Err(other.is_no("a plaintext")),
        }
    }

    /// The tensor, which is in host memory.
    ///
    /// # Errors
    /// [`RuntimeError::Value`] for another value, [`RuntimeError::Device`] for a tensor on a device.
    pub fn tensor(&self) -> Result<&Arc<Tensor>, RuntimeError> {
        match self {
            Value::Tensor(value) => value.host(),
            other => Err(other.is_no("a tensor")),
        }
    }

    /// The key.
    pub fn key(&self) -> Result<&KeySwitchKey, RuntimeError> {
        match self {
            Value::Key(value) => Ok(value),
            other => Err(other.is_no("an evaluation key")),
        }
    }

    fn is_no(&self, expected: &str) -> RuntimeError {
        RuntimeError::Value(format!("found {}, expected {expected}", self.ty()))
    }

    /// Whether it is a clear tensor in host memory: a message for any engine.
    pub(crate) fn is_host_array(&self) -> bool {
        matches!(self, Value::Tensor(Array::Host(_)))
    }

    /// Where the value is.
    pub fn device(&self) -> Device {
        match self {
            Value::Ciphertext(value) => value.device(),
            Value::Plaintext(value) => value.device(),
            Value::Tensor(value) => value.device(),
            Value::Key(key) => key.device(),
        }
    }

    /// The parameters of what is encoded, encrypted or a key.
    pub fn parameters_id(&self) -> Option<ParametersId> {
        match self {
            Value::Ciphertext(value) => Some(value.parameters_id()),
            Value::Plaintext(value) => Some(value.parameters_id()),
            Value::Tensor(_) => None,
            Value::Key(key) => Some(key.parameters_id()),
        }
    }

    /// An address that is the same for the same data as long as the value lives.
    pub fn address(&self) -> *const () {
        match self {
            Value::Ciphertext(value) => value.address(),
            Value::Plaintext(value) => value.address(),
            Value::Tensor(value) => value.address(),
            Value::Key(key) => key.address(),
        }
    }

    /// Bytes of its data.
    pub fn nbytes(&self) -> usize {
        match self {
            Value::Ciphertext(value) => value.nbytes(),
            Value::Plaintext(value) => value.nbytes(),
            Value::Tensor(value) => value.nbytes(),
            Value::Key(key) => key.nbytes(),
        }
    }

    /// The secret under which a ciphertext or key stands.
    pub fn secret_id(&self) -> Option<SecretId> {
        match self {
            Value::Ciphertext(value) => Some(value.secret_id()),
            Value::Key(key) => Some(key.secret_id()),
            Value::Plaintext(_) | Value::Tensor(_) => None,
        }
    }
}

macro_rules! value_from {
    ($($source:ty => $variant:ident;)*) => {$(
        impl From<$source> for Value {
            fn from(value: $source) -> Self {
                Value::$variant(value.into())
            }
        }
    )*};
}

value_from! {
    Ciphertext => Ciphertext;
    fhelium_ckks::Ciphertext => Ciphertext;
    Arc<fhelium_ckks::Ciphertext> => Ciphertext;
    Plaintext => Plaintext;
    fhelium_ckks::Plaintext => Plaintext;
    Arc<fhelium_ckks::Plaintext> => Plaintext;
    Tensor => Tensor;
    Arc<Tensor> => Tensor;
    KeySwitchKey => Key;
    fhelium_ckks::KeySwitchKey => Key;
    Arc<fhelium_ckks::KeySwitchKey> => Key;
}

/// A key's kind as Programs name it.
pub(crate) fn key_kind(key: &KeySwitchKey) -> KeyKind {
    match key.key_kind() {
        fhelium_ckks::KeyKind::Relinearization => KeyKind::Relinearization,
        fhelium_ckks::KeyKind::Rotation { step } => KeyKind::Rotation { step: step as i64 },
        fhelium_ckks::KeyKind::Conjugation => KeyKind::Conjugation,
    }
}

/// The kind with a rotation's step taken modulo the slots, as keys are registered.
pub(crate) fn normalized(kind: KeyKind, parameters: &Parameters) -> KeyKind {
    match kind {
        KeyKind::Rotation { step } => KeyKind::Rotation {
            step: step.rem_euclid(parameters.slots() as i64),
        },
        other => other,
    }
}
