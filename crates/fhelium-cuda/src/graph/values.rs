//! The values that recorded work takes and gives.

use crate::keys::KeySwitchKey;
use crate::queue::Buffer;
use crate::values::{Ciphertext, Plaintext};
use std::fmt;
use std::sync::Arc;

/// A value on a device that recorded work takes or gives: one buffer, and what is known about it.
pub trait DeviceValue: Clone + fmt::Debug {
    /// Its residues.
    fn buffer(&self) -> &Arc<Buffer>;

    /// The same with other memory.
    fn with_buffer(&self, buffer: Arc<Buffer>) -> Self;

    /// Whether work that was recorded for the one does for the other: all but the residues is equal.
    fn is_like(&self, other: &Self) -> bool;
}

impl DeviceValue for Ciphertext {
    fn buffer(&self) -> &Arc<Buffer> {
        &self.data
    }

    fn with_buffer(&self, data: Arc<Buffer>) -> Self {
        Ciphertext {
            data,
            ..self.clone()
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        self.parameters == other.parameters
            && self.secret == other.secret
            && self.state == other.state
            && self.batch_shape == other.batch_shape
    }
}

impl DeviceValue for Plaintext {
    fn buffer(&self) -> &Arc<Buffer> {
        &self.data
    }

    fn with_buffer(&self, data: Arc<Buffer>) -> Self {
        Plaintext {
            data,
            ..self.clone()
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        self.parameters == other.parameters
            && self.state == other.state
            && self.batch_shape == other.batch_shape
    }
}

impl DeviceValue for KeySwitchKey {
    fn buffer(&self) -> &Arc<Buffer> {
        &self.data
    }

    fn with_buffer(&self, data: Arc<Buffer>) -> Self {
        KeySwitchKey {
            data,
            ..self.clone()
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        self.parameters == other.parameters
            && self.secret == other.secret
            && self.kind == other.kind
    }
}
