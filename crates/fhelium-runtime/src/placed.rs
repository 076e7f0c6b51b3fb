//! Values and keys where they are: in host memory or on a CUDA device.

use crate::{Device, RuntimeError};
use fhelium_ckks::{CipherState, KeyKind, ParametersId, PlainState, SecretId};
use fhelium_cuda::Context;
use fhelium_ir::DType;
use std::fmt;
use std::sync::Arc;

/// A kind of value or key that has a form on CUDA devices.
pub trait Movable: Sized + fmt::Debug + Send + Sync + 'static {
    /// The form on a device.
    type Cuda: fmt::Debug + Send + Sync + 'static;

    /// What messages call it, with its article.
    const NOUN: &'static str;

    /// Copies it to a device.
    ///
    /// # Errors
    /// Other parameters than the context's; memory or a device that fails.
    fn upload(&self, context: &Context) -> fhelium_cuda::Result<Self::Cuda>;

    /// Copies it back: the bits that were uploaded.
    ///
    /// # Errors
    /// As [`Movable::upload`].
    fn download(there: &Self::Cuda, context: &Context) -> fhelium_cuda::Result<Self>;

    /// The ordinal of the device that holds it.
    fn ordinal(there: &Self::Cuda) -> usize;
}

/// A value or key in host memory or on a CUDA device; cheap to clone, never changed once made.
pub enum Placed<H: Movable> {
    /// In host memory.
    Host(Arc<H>),
    /// On a CUDA device.
    Cuda(Arc<H::Cuda>),
}

/// A ciphertext, batched or not.
pub type Ciphertext = Placed<fhelium_ckks::Ciphertext>;
/// An encoded message, batched or not.
pub type Plaintext = Placed<fhelium_ckks::Plaintext>;
/// An evaluation key.
pub type KeySwitchKey = Placed<fhelium_ckks::KeySwitchKey>;
/// A clear array.
pub type Array = Placed<crate::tensor::Tensor>;
/// The key that decrypts.
pub type SecretKey = Placed<fhelium_ckks::SecretKey>;
/// The key that encrypts.
pub type PublicKey = Placed<fhelium_ckks::PublicKey>;

/// What encrypts.
#[derive(Clone, Copy, Debug)]
pub enum EncryptionKey<'a> {
    /// The public key.
    Public(&'a PublicKey),
    /// The secret key; less noise.
    Secret(&'a SecretKey),
}

impl EncryptionKey<'_> {
    /// Where it is.
    pub fn device(&self) -> Device {
        match self {
            EncryptionKey::Public(key) => key.device(),
            EncryptionKey::Secret(key) => key.device(),
        }
    }
}

impl<'a> From<&'a PublicKey> for EncryptionKey<'a> {
    fn from(key: &'a PublicKey) -> Self {
        EncryptionKey::Public(key)
    }
}

impl<'a> From<&'a SecretKey> for EncryptionKey<'a> {
    fn from(key: &'a SecretKey) -> Self {
        EncryptionKey::Secret(key)
    }
}

impl<H: Movable> Placed<H> {
    /// Where it is.
    pub fn device(&self) -> Device {
        match self {
            Placed::Host(_) => Device::Cpu,
            Placed::Cuda(there) => Device::cuda(H::ordinal(there)),
        }
    }

    /// What is in host memory.
    ///
    /// # Errors
    /// [`RuntimeError::Device`] for one on a device; [`Placed::to_host`] copies it.
    pub fn host(&self) -> Result<&Arc<H>, RuntimeError> {
        match self {
            Placed::Host(here) => Ok(here),
            Placed::Cuda(_) => Err(RuntimeError::Device(format!(
                "{} is on {}, expected on cpu; move it with .to(\"cpu\")",
                H::NOUN,
                self.device()
            ))),
        }
    }

    /// What is on a CUDA device.
    ///
    /// # Errors
    /// [`RuntimeError::Device`] for one in host memory; [`Engine::place`](crate::Engine::place)
    /// copies it.
    pub fn cuda(&self) -> Result<&Arc<H::Cuda>, RuntimeError> {
        match self {
            Placed::Cuda(there) => Ok(there),
            Placed::Host(_) => Err(RuntimeError::Device(format!(
                "{} is on cpu, expected on a CUDA device; move it with .to(\"cuda\")",
                H::NOUN
            ))),
        }
    }

    /// An address that is the same for the same data as long as this lives.
    pub fn address(&self) -> *const () {
        match self {
            Placed::Host(here) => Arc::as_ptr(here).cast(),
            Placed::Cuda(there) => Arc::as_ptr(there).cast(),
        }
    }
}

impl<H: Movable> Clone for Placed<H> {
    fn clone(&self) -> Self {
        match self {
            Placed::Host(here) => Placed::Host(here.clone()),
            Placed::Cuda(there) => Placed::Cuda(there.clone()),
        }
    }
}

impl<H: Movable> fmt::Debug for Placed<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placed::Host(here) => here.fmt(f),
            Placed::Cuda(there) => there.fmt(f),
        }
    }
}

impl<H: Movable> From<H> for Placed<H> {
    fn from(here: H) -> Self {
        Placed::Host(Arc::new(here))
    }
}

impl<H: Movable> From<Arc<H>> for Placed<H> {
    fn from(here: Arc<H>) -> Self {
        Placed::Host(here)
    }
}

/// What a value or key says of itself, wherever it is.
macro_rules! same_everywhere {
    ($($kind:ty { $($(#[$docs:meta])* $name:ident -> $result:ty;)* })*) => {$(
        impl $kind {$(
            $(#[$docs])*
            pub fn $name(&self) -> $result {
                match self {
                    Placed::Host(here) => here.$name(),
                    Placed::Cuda(there) => there.$name(),
                }
            }
        )*}
    )*};
}

same_everywhere! {
    Ciphertext {
        /// The parameters' id.
        parameters_id -> ParametersId;
        /// The id of the secret that decrypts it.
        secret_id -> SecretId;
        /// Level, scale and parts.
        state -> &CipherState;
        /// The batch axes.
        batch_shape -> &[usize];
        /// Bytes of the residues.
        nbytes -> usize;
    }
    Plaintext {
        /// The parameters' id.
        parameters_id -> ParametersId;
        /// Level and scale.
        state -> &PlainState;
        /// The batch axes.
        batch_shape -> &[usize];
        /// Bytes of the residues.
        nbytes -> usize;
    }
    Array {
        /// The element type.
        dtype -> DType;
        /// The lengths of the axes, outermost first.
        shape -> &[usize];
        /// The distance in elements from one index to the next along each axis; may be negative.
        strides -> &[isize];
        /// The number of axes.
        ndim -> usize;
        /// The bytes of all elements.
        nbytes -> usize;
    }
    SecretKey {
        /// The parameters' id.
        parameters_id -> ParametersId;
        /// The secret's id.
        secret_id -> SecretId;
        /// Bytes of the residues.
        nbytes -> usize;
    }
    PublicKey {
        /// The parameters' id.
        parameters_id -> ParametersId;
        /// The id of the secret that decrypts what it encrypts.
        secret_id -> SecretId;
        /// Bytes where it is: in host memory one half and the seed of the other.
        nbytes -> usize;
    }
    KeySwitchKey {
        /// The parameters' id.
        parameters_id -> ParametersId;
        /// The secret's id.
        secret_id -> SecretId;
        /// What it switches.
        key_kind -> KeyKind;
        /// Bytes where it is: in host memory one half and the seed of the other.
        nbytes -> usize;
    }
}

macro_rules! movable {
    ($($kind:ident, $noun:literal, $upload:ident, $download:ident;)*) => {$(
        impl Movable for fhelium_ckks::$kind {
            type Cuda = fhelium_cuda::$kind;
            const NOUN: &'static str = $noun;

            fn upload(&self, context: &Context) -> fhelium_cuda::Result<Self::Cuda> {
                context.$upload(self)
            }

            fn download(there: &Self::Cuda, context: &Context) -> fhelium_cuda::Result<Self> {
                context.$download(there)
            }

            fn ordinal(there: &Self::Cuda) -> usize {
                there.buffer().queue().device().index()
            }
        }
    )*};
}

movable! {
    Ciphertext, "the ciphertext", upload, download;
    Plaintext, "the plaintext", upload_plaintext, download_plaintext;
    KeySwitchKey, "the evaluation key", upload_key, download_key;
    SecretKey, "the secret key", upload_secret, download_secret;
    PublicKey, "the public key", upload_public, download_public;
}
