//! Messages to ciphertexts and back.

use super::Engine;
use crate::RuntimeError;
use crate::placed::{Array, Ciphertext, EncryptionKey, Placed, Plaintext, SecretKey};
use crate::tensor::Tensor;
use fhelium_ckks::{Complex64, Message, NoiseFlooding};
use fhelium_state::Scale;
use std::sync::Arc;

impl Engine {
    /// Encodes messages: the last axis holds up to all slots, the others are batch axes; a scalar
    /// fills every slot. The level is the depth and the scale the parameters' by default.
    ///
    /// # Errors
    /// Those of [`Context::encode`](fhelium_ckks::Context::encode).
    pub fn encode(
        &self,
        message: &Tensor,
        level: Option<usize>,
        scale: Option<&Scale>,
    ) -> Result<Plaintext, RuntimeError> {
        let parameters = self.parameters();
        self.encode_at(
            message,
            level.unwrap_or(parameters.depth()),
            scale.unwrap_or(parameters.scale()),
        )
    }

    pub(crate) fn encode_at(
        &self,
        message: &Tensor,
        level: usize,
        scale: &Scale,
    ) -> Result<Plaintext, RuntimeError> {
        with_message(message, |message| {
            Ok(match self.cuda() {
                Some(context) => Placed::Cuda(Arc::new(context.encode(message, level, scale)?)),
                None => self.context().encode(message, level, scale)?.into(),
            })
        })
    }

    /// Encodes an array where it is: one on the device without waiting for it, so that values which
    /// no plaintext holds are refused by what waits for the device next.
    ///
    /// # Errors
    /// As [`Engine::encode`], and [`RuntimeError::Device`] for an array elsewhere.
    pub fn encode_array(
        &self,
        message: &Array,
        level: Option<usize>,
        scale: Option<&Scale>,
    ) -> Result<Plaintext, RuntimeError> {
        let parameters = self.parameters();
        self.encode_array_at(
            message,
            level.unwrap_or(parameters.depth()),
            scale.unwrap_or(parameters.scale()),
        )
    }

    pub(crate) fn encode_array_at(
        &self,
        message: &Array,
        level: usize,
        scale: &Scale,
    ) -> Result<Plaintext, RuntimeError> {
        match (message, self.cuda()) {
            (Placed::Cuda(message), Some(context)) => {
                let plaintext = context.encode_tensor(message, level, scale)?;
                Ok(Placed::Cuda(Arc::new(plaintext)))
            }
            (message, _) => self.encode_at(message.host()?, level, scale),
        }
    }

    /// Refuses what [`Engine::encode`] refuses for its values, its shape, the level or the scale.
    pub(crate) fn check_message(
        &self,
        message: &Tensor,
        level: usize,
        scale: &Scale,
    ) -> Result<(), RuntimeError> {
        let context = self.context();
        with_message(message, |message| {
            Ok(context.check_message(&message, level, scale)?)
        })
    }

    /// The messages of a plaintext: shape (batch..., slots), `f64` when `real`, else `c128`. They
    /// are in host memory.
    ///
    /// # Errors
    /// A plaintext of other parameters or on another device.
    pub fn decode(&self, plaintext: &Plaintext, real: bool) -> Result<Tensor, RuntimeError> {
        self.check_devices(&"decode", [("the plaintext", plaintext.device())])?;
        let mut shape = plaintext.batch_shape().to_vec();
        shape.push(self.slots());
        Ok(match (plaintext, self.cuda()) {
            (Placed::Cuda(plaintext), Some(context)) if real => {
                Tensor::from_vec(context.decode_real(plaintext)?, &shape)?
            }
            (Placed::Cuda(plaintext), Some(context)) => {
                Tensor::from_vec(context.decode(plaintext)?, &shape)?
            }
            _ if real => Tensor::from_vec(self.context().decode_real(plaintext.host()?)?, &shape)?,
            _ => Tensor::from_vec(self.context().decode(plaintext.host()?)?, &shape)?,
        })
    }

    /// Encrypts a plaintext under a public or secret key. Each ciphertext has its own randomness,
    /// whatever threads do.
    ///
    /// # Errors
    /// Those of [`Context::encrypt`](fhelium_ckks::Context::encrypt), and operands on another
    /// device.
    pub fn encrypt<'a>(
        &self,
        plaintext: &Plaintext,
        key: impl Into<EncryptionKey<'a>>,
    ) -> Result<Ciphertext, RuntimeError> {
        let key = key.into();
        let operands = [
            ("the plaintext", plaintext.device()),
            ("the key", key.device()),
        ];
        self.check_devices(&"encrypt", operands)?;
        let randomness = &self.randomness;
        if let Some(context) = self.cuda() {
            let key = match key {
                EncryptionKey::Public(key) => fhelium_cuda::EncryptionKey::Public(key.cuda()?),
                EncryptionKey::Secret(key) => fhelium_cuda::EncryptionKey::Secret(key.cuda()?),
            };
            let ciphertext = context.encrypt(&**plaintext.cuda()?, key, randomness)?;
            return Ok(Placed::Cuda(Arc::new(ciphertext)));
        }
        let key = match key {
            EncryptionKey::Public(key) => fhelium_ckks::EncryptionKey::Public(key.host()?),
            EncryptionKey::Secret(key) => fhelium_ckks::EncryptionKey::Secret(key.host()?),
        };
        let ciphertext = self.context().encrypt(plaintext.host()?, key, randomness)?;
        Ok(ciphertext.into())
    }

    /// Decrypts a ciphertext, with added noise where given.
    ///
    /// # Errors
    /// Those of [`Context::decrypt`](fhelium_ckks::Context::decrypt) and
    /// [`Context::flood`](fhelium_ckks::Context::flood), and operands on another device.
    pub fn decrypt(
        &self,
        ciphertext: &Ciphertext,
        secret: &SecretKey,
        flooding: Option<NoiseFlooding>,
    ) -> Result<Plaintext, RuntimeError> {
        let operands = [
            ("the ciphertext", ciphertext.device()),
            ("the secret key", secret.device()),
        ];
        self.check_devices(&"decrypt", operands)?;
        let randomness = &self.randomness;
        if let Some(context) = self.cuda() {
            let plaintext = context.decrypt(ciphertext.cuda()?, secret.cuda()?)?;
            let plaintext = match flooding {
                Some(flooding) => context.flood(plaintext, flooding, randomness)?,
                None => plaintext,
            };
            return Ok(Placed::Cuda(Arc::new(plaintext)));
        }
        let context = self.context();
        let plaintext = context.decrypt(ciphertext.host()?, secret.host()?)?;
        Ok(match flooding {
            Some(flooding) => context.flood(plaintext, flooding, randomness)?.into(),
            None => plaintext.into(),
        })
    }
}

/// An array as the encoder reads it.
fn with_message<R>(
    message: &Tensor,
    read: impl FnOnce(Message<'_>) -> Result<R, RuntimeError>,
) -> Result<R, RuntimeError> {
    let shape = message.shape();
    if message.dtype().is_complex() {
        read(Message::complex(&message.to_vec::<Complex64>(), shape)?)
    } else {
        read(Message::real(&message.to_vec::<f64>(), shape)?)
    }
}
