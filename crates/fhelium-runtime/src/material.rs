//! What stands behind a Program's material symbols.

use crate::tensor::Tensor;
use crate::{RuntimeError, Value};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Captured data that may change between calls.
///
/// An executable asks for the version at each call, and reads the contents, and encodes them
/// anew, only where it differs from the one it holds.
pub trait MaterialSource: Send + Sync + fmt::Debug {
    /// A number that is the same for the same contents, such as a hash of them.
    ///
    /// # Errors
    /// Where the data cannot be had any more.
    fn version(&self) -> Result<u64, RuntimeError>;

    /// The contents now, with the version of exactly these contents.
    ///
    /// # Errors
    /// Where the data cannot be had any more.
    fn read(&self) -> Result<(Value, u64), RuntimeError>;

    /// Whether [`version`](Self::version) tells every change of the contents. Where it does not, as for
    /// arrays on a device, which nobody looks at for that, the data is read at each call, and what
    /// depends on it is computed at each call.
    fn tells_changes(&self) -> bool {
        true
    }
}

/// What a material symbol is bound to.
#[derive(Clone, Debug)]
pub enum MaterialBinding {
    /// A value that never changes: a ciphertext, a plaintext, a key, a read-only array.
    Fixed(Value),
    /// Data that is looked at on each call.
    Live(Arc<dyn MaterialSource>),
}

impl MaterialBinding {
    /// The value now.
    ///
    /// # Errors
    /// Those of [`MaterialSource::read`].
    pub fn current(&self) -> Result<Value, RuntimeError> {
        match self {
            MaterialBinding::Fixed(value) => Ok(value.clone()),
            MaterialBinding::Live(source) => source.read().map(|(value, _)| value),
        }
    }

    /// The data, where it may change without being told.
    pub(crate) fn changing(&self) -> Option<&Arc<dyn MaterialSource>> {
        match self {
            MaterialBinding::Live(source) if !source.tells_changes() => Some(source),
            MaterialBinding::Live(_) | MaterialBinding::Fixed(_) => None,
        }
    }

    /// This binding with the contents of now, for good.
    ///
    /// # Errors
    /// Those of [`MaterialSource::read`].
    pub fn frozen(&self) -> Result<MaterialBinding, RuntimeError> {
        self.current().map(MaterialBinding::Fixed)
    }
}

impl<V: Into<Value>> From<V> for MaterialBinding {
    fn from(value: V) -> Self {
        MaterialBinding::Fixed(value.into())
    }
}

/// A tensor that a Rust program may replace between calls.
#[derive(Debug)]
pub struct LiveTensor {
    current: RwLock<(Tensor, u64)>,
}

impl LiveTensor {
    /// A live tensor with these contents.
    pub fn new(tensor: Tensor) -> Self {
        LiveTensor {
            current: RwLock::new((tensor, 0)),
        }
    }

    /// Replaces the contents; calls that begin later see them.
    pub fn set(&self, tensor: Tensor) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = (tensor, current.1 + 1);
    }

    /// The contents now.
    pub fn get(&self) -> Tensor {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.0.clone()
    }
}

impl MaterialSource for LiveTensor {
    fn version(&self) -> Result<u64, RuntimeError> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Ok(current.1)
    }

    fn read(&self) -> Result<(Value, u64), RuntimeError> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Ok((Value::from(current.0.clone()), current.1))
    }
}
