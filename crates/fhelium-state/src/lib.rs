//! What a CKKS value's type says, and how each operation changes it.
//!
//! A value carries a [`level`](CipherState::level) (the rescales it has left), an exact
//! [`Scale`] and a number of parts. This crate holds those facts and the rules of every
//! operation over them, once: the Program's verifier, capture, the eager engine and the host
//! kernels all ask here, so that they accept and refuse the same programs with the same words.
//!
//! [`LinearProgram`] is what fused sums and multiples are handed to the kernels as.
//!
//! Nothing here computes on residues; see `fhelium-ckks` for that.

mod chain;
mod digits;
mod error;
mod linear;
mod rules;
mod scale;

pub use chain::Chain;
pub use digits::{DIGIT_SLACK_BITS, digit_size};
pub use error::{ErrorKind, StateError};
pub use linear::{
    LinearError, LinearFactor, LinearLimits, LinearProgram, LinearStep, LinearTerm, LinearValue,
};
pub use rules::{CipherState, PlainState};
pub use scale::{ParseScaleError, Scale};
