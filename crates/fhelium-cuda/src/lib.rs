//! CKKS on an NVIDIA GPU: device, memory, kernels, values and operations.
//!
//! The driver is found at run time: nothing here links it, and [`probe`] says what is missing where
//! it is. [`Context`] mirrors [`fhelium_ckks::Context`], operation by operation and residue by
//! residue; values move only by [`upload`](Context::upload) and [`download`](Context::download).

mod context;
mod current;
mod device;
pub mod dlpack;
mod error;
mod executable;
mod fork;
mod graph;
mod images;
mod kernels;
mod keys;
mod measure;
mod ops;
mod probe;
mod queue;
mod raw;
mod reports;
mod tables;
mod tensor;
mod unit_times;
mod values;

pub use context::{Context, ContextOptions};
pub use device::Device;
pub use error::{CudaError, Result};
pub use graph::{DeviceValue, Graph, Replay, StepTime};
pub use images::built_targets;
pub use kernels::Core;
pub use keys::{EncryptionKey, KeySwitchKey, PublicKey, SecretKey};
pub use measure::StandIns;
pub use ops::{Encoded, KeyGenerator};
pub use probe::{Driver, probe};
pub use queue::{Buffer, MemoryUse, Moment, Queue, captured_stream};
pub use tensor::Tensor;
pub use unit_times::{UnitTimes, Work};
pub use values::{Ciphertext, Plaintext};
