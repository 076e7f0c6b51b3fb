//! Keys.

mod sets;
mod single;

pub use sets::{PyEvaluationKeys, PyKeySet, PyRotationKeys};
pub use single::{PyEvaluationKey, PyPublicKey, PySecretKey};

use crate::errors::OrRaise;
use fhelium_runtime::Engine;
use fhelium_runtime::persist::Object;
use pyo3::prelude::*;

/// What a file holds of each.
macro_rules! objects {
    ($($class:ty => $kind:ident, $field:ident;)*) => {$(
        impl $class {
            /// What a file holds of it.
            pub fn object(&self) -> Object {
                Object::$kind(self.$field.clone(), self.parameters.clone())
            }
        }
    )*};
}

/// Each on an engine's device.
macro_rules! places {
    ($($class:ident => $place:ident, $field:ident;)*) => {$(
        impl $class {
            /// The same on an engine's device.
            pub fn placed(&self, py: Python<'_>, engine: &Engine) -> PyResult<Self> {
                let $field = py.detach(|| engine.$place(&self.$field)).or_raise()?;
                let parameters = self.parameters.clone();
                Ok($class { $field, parameters })
            }
        }
    )*};
}

places! {
    PySecretKey => place, key;
    PyPublicKey => place, key;
    PyEvaluationKey => place, key;
    PyEvaluationKeys => place_keys, keys;
    PyKeySet => place_key_set, keys;
}

objects! {
    PySecretKey => SecretKey, key;
    PyPublicKey => PublicKey, key;
    PyEvaluationKey => EvaluationKey, key;
    PyEvaluationKeys => EvaluationKeys, keys;
    PyKeySet => KeySet, keys;
}
