//! RNS-CKKS: parameters, number-theoretic transforms, encoding, keys and the host kernels.
//!
//! ```
//! use fhelium_ckks::{Context, ContextOptions, KeyGenerator, Message, Parameters, Randomness};
//!
//! # fn main() -> Result<(), fhelium_ckks::CkksError> {
//! let parameters = Parameters::builder(1, 30).build()?;
//! let context = Context::new(&parameters, ContextOptions::default())?;
//! let randomness = Randomness::from_os()?;
//! let keys = KeyGenerator::new(&context, &randomness);
//! let secret = keys.secret()?;
//! let public = keys.public(&secret)?;
//! let relinearization = keys.relinearization(&secret)?;
//!
//! let message = Message::real(&[0.5, -0.25, 3.0], &[3])?;
//! let plaintext = context.encode(message, parameters.depth(), parameters.scale())?;
//! let x = context.encrypt(&plaintext, &public, &randomness)?;
//! let square = context.multiply_relinearize(&x, &x, &relinearization)?;
//! let square = context.rescale(&square)?;
//!
//! let values = context.decode_real(&context.decrypt(&square, &secret)?)?;
//! assert!((values[2] - 9.0).abs() < 1e-2);
//! # Ok(())
//! # }
//! ```

pub mod arith;
mod buffers;
mod context;
pub mod draws;
mod encoding;
mod encrypt;
mod error;
mod keys;
mod noise;
mod ops;
mod parameters;
mod random;
mod sampler;
pub mod security;
mod values;

pub use buffers::MemoryUse;
pub use context::{Context, ContextOptions};
pub use encoding::{Complex64, ExactScale, Message, Values, slot_order, twist};
pub use encrypt::{EncryptionKey, NoiseFlooding};
pub use error::{CkksError, Result};
pub use keys::{
    KeyGenerator, KeyKind, KeySwitchKey, PublicKey, SecretId, SecretKey, normalize_step,
};
pub use noise::{NoiseEstimate, NoiseModel};
pub use ops::{
    BatchSpan, Broadcast, Encoded, LinearOperand, LinearResult, UnitTimes, batch_shape,
    linear_shape,
};
pub use parameters::{MAX_PRIME_DRIFT_BITS, Parameters, ParametersBuilder, ParametersId, Preset};
pub use random::Randomness;
pub use values::{Ciphertext, Plaintext};

// What parameters, values and errors are said in.
pub use fhelium_state::{
    Chain, CipherState, ErrorKind, LinearFactor, LinearProgram, LinearStep, LinearTerm,
    LinearValue, PlainState, Scale, StateError,
};
