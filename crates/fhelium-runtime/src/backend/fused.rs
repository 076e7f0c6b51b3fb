//! `rns.fused` on the host and on a device by the same code.

use super::kernels::{Cipher, Kernels, Plain};
use super::{Implementation, Invocation, Operands, Results};
use crate::{DeviceKind, RuntimeError, Value};
use fhelium_ckks::{Encoded, LinearResult};
use fhelium_ir::{Attributes, OpKind, Rns, Type};
use std::marker::PhantomData;
use std::sync::Arc;

/// A place's kernel for what a linked region computes.
pub(super) fn implementation<P: Kernels>() -> Arc<dyn Implementation> {
    Arc::new(FusedKernel::<P>(PhantomData))
}

struct FusedKernel<P>(PhantomData<P>);

impl<P: Kernels> Implementation for FusedKernel<P> {
    fn name(&self) -> &str {
        P::NAME
    }

    fn operation(&self) -> OpKind {
        Rns::Fused.into()
    }

    fn device(&self) -> DeviceKind {
        P::DEVICE
    }

    fn supports(&self, operands: &[&Type], _: &Attributes) -> bool {
        let is_encoded =
            |ty: &&Type| matches!(ty, Type::Ciphertext { .. } | Type::Plaintext { .. });
        operands.iter().all(is_encoded)
    }

    fn execute(
        &self,
        invocation: &Invocation<'_>,
        operands: Operands,
    ) -> Result<Results, RuntimeError> {
        let context = P::of(invocation.engine)?;
        let malformed =
            |message: String| RuntimeError::Implementation(format!("rns.fused: {message}"));
        let program = invocation
            .region
            .ok_or_else(|| malformed("the region is missing".to_owned()))?;
        let encoded: Option<Vec<Encoded<'_, Cipher<P>, Plain<P>>>> = operands
            .iter()
            .map(|operand| match operand {
                Value::Ciphertext(x) => P::form(x).map(Encoded::Ciphertext),
                Value::Plaintext(p) => P::form(p).map(Encoded::Plaintext),
                _ => None,
            })
            .collect();
        let encoded = encoded.ok_or_else(|| {
            malformed(format!(
                "an operand is neither a ciphertext nor a plaintext for the kernels named {}",
                P::NAME
            ))
        })?;
        let results = invocation.results.iter().map(|ty| match ty {
            Type::Ciphertext {
                batch,
                state: Some(state),
            } => Ok(LinearResult {
                state: state.clone(),
                batch_shape: batch.clone(),
            }),
            other => Err(malformed(format!(
                "a result is {other}, expected a ciphertext"
            ))),
        });
        let results: Vec<LinearResult> = results.collect::<Result<_, _>>()?;
        let made = context.fused(program, &encoded, &results)?;
        let made = made.into_iter();
        Ok(made
            .map(|result| Value::Ciphertext(P::placed(result)))
            .collect())
    }
}
