//! Messages to plaintexts and back.

use crate::context::Context;
use crate::error::Result;
use crate::values::Plaintext;
use fhelium_ckks::{Complex64, Message, Scale};

impl Context {
    /// Encodes a message at a level and a scale.
    ///
    /// # Errors
    /// As [`fhelium_ckks::Context::encode`], and the device's.
    pub fn encode(&self, message: Message<'_>, level: usize, scale: &Scale) -> Result<Plaintext> {
        self.upload_plaintext(&self.host().encode(message, level, scale)?)
    }

    /// The message of a plaintext: (batch..., slots) complex values.
    ///
    /// # Errors
    /// A plaintext of other parameters or of another device, and the device's.
    pub fn decode(&self, plaintext: &Plaintext) -> Result<Vec<Complex64>> {
        Ok(self.host().decode(&self.download_plaintext(plaintext)?)?)
    }

    /// The real parts of the message of a plaintext: (batch..., slots).
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_real(&self, plaintext: &Plaintext) -> Result<Vec<f64>> {
        Ok(self
            .host()
            .decode_real(&self.download_plaintext(plaintext)?)?)
    }
}
