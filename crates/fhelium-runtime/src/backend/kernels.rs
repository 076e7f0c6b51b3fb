//! The scheme's operations as the backends see them: the same names on the host and on a device.

use crate::placed::{Movable, Placed};
use crate::{DeviceKind, Engine, RuntimeError, Value};
use fhelium_ckks::{BatchSpan, Encoded, LinearProgram, LinearResult};
use std::sync::Arc;

/// A place that computes, with the form that values have there.
pub(super) trait Place: Send + Sync + Sized + 'static {
    /// The form of a value or key.
    type Form<H: Movable>;

    /// The name of every kernel here among its operation's implementations.
    const NAME: &'static str;

    /// Where it is.
    const DEVICE: DeviceKind;

    /// The engine's context here.
    fn of(engine: &Engine) -> Result<&Self, RuntimeError>;

    /// What is here; `None` for what is elsewhere.
    fn form<H: Movable>(placed: &Placed<H>) -> Option<&Self::Form<H>>;

    /// A result as a value.
    fn placed<H: Movable>(form: Self::Form<H>) -> Placed<H>;

    /// A ciphertext or plaintext under other batch axes; `None` for another value.
    fn reshape(value: Value, shape: Vec<usize>) -> Result<Option<Value>, RuntimeError>;
}

/// A ciphertext of a place.
pub(super) type Cipher<P> = <P as Place>::Form<fhelium_ckks::Ciphertext>;
/// A plaintext of a place.
pub(super) type Plain<P> = <P as Place>::Form<fhelium_ckks::Plaintext>;
/// An evaluation key of a place.
pub(super) type Key<P> = <P as Place>::Form<fhelium_ckks::KeySwitchKey>;

impl Place for fhelium_ckks::Context {
    type Form<H: Movable> = H;

    const NAME: &'static str = "host";
    const DEVICE: DeviceKind = DeviceKind::Cpu;

    fn of(engine: &Engine) -> Result<&Self, RuntimeError> {
        Ok(engine.context())
    }

    fn form<H: Movable>(placed: &Placed<H>) -> Option<&H> {
        match placed {
            Placed::Host(here) => Some(here),
            Placed::Cuda(_) => None,
        }
    }

    fn placed<H: Movable>(form: H) -> Placed<H> {
        form.into()
    }

    fn reshape(value: Value, shape: Vec<usize>) -> Result<Option<Value>, RuntimeError> {
        // Copied only where others hold it.
        Ok(match value {
            Value::Ciphertext(Placed::Host(x)) => {
                Some(Arc::unwrap_or_clone(x).reshape_batch(shape)?.into())
            }
            Value::Plaintext(Placed::Host(x)) => {
                Some(Arc::unwrap_or_clone(x).reshape_batch(shape)?.into())
            }
            _ => None,
        })
    }
}

impl Place for fhelium_cuda::Context {
    type Form<H: Movable> = H::Cuda;

    const NAME: &'static str = "cuda";
    const DEVICE: DeviceKind = DeviceKind::Cuda;

    fn of(engine: &Engine) -> Result<&Self, RuntimeError> {
        engine.cuda().ok_or_else(|| {
            RuntimeError::Device(format!(
                "the kernels named \"cuda\" run on engines with device=\"cuda\", and this one is \
                 on {}",
                engine.device()
            ))
        })
    }

    fn form<H: Movable>(placed: &Placed<H>) -> Option<&H::Cuda> {
        match placed {
            Placed::Cuda(there) => Some(there),
            Placed::Host(_) => None,
        }
    }

    fn placed<H: Movable>(form: H::Cuda) -> Placed<H> {
        Placed::Cuda(Arc::new(form))
    }

    fn reshape(value: Value, shape: Vec<usize>) -> Result<Option<Value>, RuntimeError> {
        Ok(match value {
            Value::Ciphertext(Placed::Cuda(x)) => {
                let reshaped = Arc::unwrap_or_clone(x).reshape_batch(shape)?;
                Some(Value::Ciphertext(Self::placed(reshaped)))
            }
            Value::Plaintext(Placed::Cuda(x)) => {
                let reshaped = Arc::unwrap_or_clone(x).reshape_batch(shape)?;
                Some(Value::Plaintext(Self::placed(reshaped)))
            }
            _ => None,
        })
    }
}

/// Declares the operations and has each context run its own.
macro_rules! kernels {
    ($($name:ident($($operand:ident: $ty:ty),*) -> $result:ty;)*) => {
        /// The operations of a place; the contexts document each.
        pub(super) trait Kernels: Place {
            $(fn $name(&self, $($operand: $ty),*) -> Result<$result, RuntimeError>;)*
        }

        impl Kernels for fhelium_ckks::Context {
            $(fn $name(&self, $($operand: $ty),*) -> Result<$result, RuntimeError> {
                // The context's own method, which comes before the trait's.
                Ok(self.$name($($operand),*)?)
            })*
        }

        impl Kernels for fhelium_cuda::Context {
            $(fn $name(&self, $($operand: $ty),*) -> Result<$result, RuntimeError> {
                Ok(self.$name($($operand),*)?)
            })*
        }
    };
}

kernels! {
    add(left: &Cipher<Self>, right: &Cipher<Self>) -> Cipher<Self>;
    subtract(left: &Cipher<Self>, right: &Cipher<Self>) -> Cipher<Self>;
    add_plain(left: &Cipher<Self>, right: &Plain<Self>) -> Cipher<Self>;
    subtract_plain(left: &Cipher<Self>, right: &Plain<Self>) -> Cipher<Self>;
    plain_subtract(left: &Plain<Self>, right: &Cipher<Self>) -> Cipher<Self>;
    multiply(left: &Cipher<Self>, right: &Cipher<Self>) -> Cipher<Self>;
    square(x: &Cipher<Self>) -> Cipher<Self>;
    multiply_plain(left: &Cipher<Self>, right: &Plain<Self>) -> Cipher<Self>;
    multiply_integer(x: &Cipher<Self>, factor: i64) -> Cipher<Self>;
    negate(x: &Cipher<Self>) -> Cipher<Self>;
    rotate(x: &Cipher<Self>, step: i64, key: &Key<Self>) -> Cipher<Self>;
    rotate_hoisted(x: &Cipher<Self>, steps: &[(i64, &Key<Self>)]) -> Vec<Cipher<Self>>;
    conjugate(x: &Cipher<Self>, key: &Key<Self>) -> Cipher<Self>;
    relinearize(x: &Cipher<Self>, key: &Key<Self>) -> Cipher<Self>;
    relinearize_rescale(x: &Cipher<Self>, key: &Key<Self>) -> Cipher<Self>;
    multiply_relinearize(
        left: &Cipher<Self>,
        right: &Cipher<Self>,
        key: &Key<Self>
    ) -> Cipher<Self>;
    multiply_relinearize_rescale(
        left: &Cipher<Self>,
        right: &Cipher<Self>,
        key: &Key<Self>
    ) -> Cipher<Self>;
    rescale(x: &Cipher<Self>) -> Cipher<Self>;
    drop_levels(x: &Cipher<Self>, count: usize) -> Cipher<Self>;
    fused(
        program: &LinearProgram,
        operands: &[Encoded<'_, Cipher<Self>, Plain<Self>>],
        results: &[LinearResult]
    ) -> Vec<Cipher<Self>>;
    sum_batch(x: &Cipher<Self>, axis: usize) -> Cipher<Self>;
    slice_batch(x: &Cipher<Self>, spans: &[BatchSpan]) -> Cipher<Self>;
    slice_plain_batch(x: &Plain<Self>, spans: &[BatchSpan]) -> Plain<Self>;
    stack_batch(items: &[&Cipher<Self>], axis: usize) -> Cipher<Self>;
    stack_plain_batch(items: &[&Plain<Self>], axis: usize) -> Plain<Self>;
}
