//! Runs Programs.
//!
//! An [`Engine`] holds a parameter set, its tables and keys, and runs single operations. A
//! Program runs by the same code: [`link`] selects an implementation for each operation from an
//! [`OperationBackend`] and makes a flat [`Executable`], so that compiled results equal eager
//! ones bit for bit. A [`SpecializationCache`] keeps executables by the [`CallSignature`] of the
//! arguments that they were made for.

mod backend;
mod cache;
mod device;
mod engine;
mod error;
mod link;
mod material;
pub mod persist;
mod placed;
mod signature;
mod specialization;
mod sync;
pub mod tensor;
mod value;

pub use backend::{Implementation, Invocation, Operands, OperationBackend, Results};
pub use cache::{CacheCounters, RecursivePreparation, SpecializationCache};
pub use device::{Device, DeviceKind};
pub use engine::{Engine, EngineOptions, EvaluationKeys, KeySet};
pub use error::{MissingKey, MissingKeys, RuntimeError, SpecializationMiss};
pub use link::{
    Executable, HostWork, LinkOptions, Manifest, ManifestEntry, Measured, Memory, Replays,
    RequiredKey, link, predicted_time,
};
pub use material::{LiveTensor, MaterialBinding, MaterialSource};
pub use placed::{
    Array, Ciphertext, EncryptionKey, KeySwitchKey, Movable, Placed, Plaintext, PublicKey,
    SecretKey,
};
pub use signature::{
    ArgumentSignature, CallSignature, Condition, Difference, StaticValue, nearest,
};
pub use specialization::{PreparationTimes, PrepareOptions, Specialization, prepare};
pub use value::Value;

pub use fhelium_ckks as ckks;
pub use fhelium_cuda as cuda;
pub use fhelium_ir as ir;
pub use fhelium_passes as passes;
pub use fhelium_state as state;
