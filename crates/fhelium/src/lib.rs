//! Computing on encrypted numbers, compiled.
//!
//! fhelium runs Programs over values encrypted with CKKS. This crate is what Rust programs
//! depend on; it gathers the others under one name:
//!
//! - [`ckks`]: parameters, keys and the operations on ciphertexts themselves;
//! - [`ir`]: Programs, their operations and text form;
//! - [`passes`]: what transforms a Program before it runs;
//! - [`runtime`]: engines, backends, executables and the cache of specializations.
//!
//! The [`prelude`] holds what most programs use.
//!
//! ```
//! use fhelium::prelude::*;
//!
//! let parameters = Parameters::builder(1, 40).build()?;
//! let engine = Engine::new(&parameters, EngineOptions::default())?;
//! let keys = engine.keygen(&[1], false)?;
//! engine.use_keys(&keys.evaluation())?;
//!
//! let message = Tensor::from_vec(vec![0.5, -2.0, 3.0], &[3])?;
//! let plaintext = engine.encode(&message, None, None)?;
//! let x = Value::from(engine.encrypt(&plaintext, &keys.public)?);
//!
//! // Slot i receives slot i + 1; then x * rotate(x, 1), back at one level less.
//! let product = engine.multiply(&x, &engine.rotate(&x, 1, None)?)?;
//! let result = engine.rescale(&engine.relinearize(&product, None)?)?;
//!
//! let plaintext = engine.decrypt(result.ciphertext()?, &keys.secret, None)?;
//! let values = engine.decode(&plaintext, true)?.to_vec::<f64>();
//! assert!((values[0] - 0.5 * -2.0).abs() < 1e-6);
//! assert!((values[1] - -2.0 * 3.0).abs() < 1e-6);
//! # Ok::<(), fhelium::runtime::RuntimeError>(())
//! ```
//!
//! `examples/score.rs` compiles a Program with live weights.

pub use fhelium_ckks as ckks;
pub use fhelium_ir as ir;
pub use fhelium_passes as passes;
pub use fhelium_runtime as runtime;

/// What most programs use.
pub mod prelude {
    pub use fhelium_ckks::{Parameters, Preset, Scale};
    pub use fhelium_ir::{
        Attributes, Ckks, DType, He, Location, Material, OpKind, OutputTree, Program,
        ProgramBuilder, Tensor as TensorOp, Type,
    };
    pub use fhelium_passes::{Compilation, Pipeline, default_pipeline};
    pub use fhelium_runtime::tensor::Tensor;
    pub use fhelium_runtime::{
        CallSignature, Engine, EngineOptions, EvaluationKeys, Executable, KeySet, LiveTensor,
        MaterialBinding, OperationBackend, PrepareOptions, RuntimeError, Specialization,
        SpecializationCache, Value, prepare,
    };
}
