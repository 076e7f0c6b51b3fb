//! The `ckks` operations, on the host and on a device by the same code.

use super::kernels::{Cipher, Kernels, Key, Place, Plain};
use super::{Implementation, Invocation, Operands, Results, batch};
use crate::placed::Array;
use crate::{DeviceKind, RuntimeError, Value};
use fhelium_ir::{Ckks, OpKind};
use smallvec::{SmallVec, smallvec};
use std::marker::PhantomData;
use std::sync::Arc;

/// A kernel of a place for each `ckks` operation.
pub(super) fn implementations<P: Kernels>() -> impl Iterator<Item = Arc<dyn Implementation>> {
    Ckks::ALL.iter().map(|&operation| {
        let place = PhantomData::<P>;
        Arc::new(CkksKernel { operation, place }) as Arc<dyn Implementation>
    })
}

struct CkksKernel<P> {
    operation: Ckks,
    place: PhantomData<P>,
}

impl<P: Kernels> Implementation for CkksKernel<P> {
    fn name(&self) -> &str {
        P::NAME
    }

    fn operation(&self) -> OpKind {
        self.operation.into()
    }

    fn device(&self) -> DeviceKind {
        P::DEVICE
    }

    fn execute(
        &self,
        invocation: &Invocation<'_>,
        operands: Operands,
    ) -> Result<Results, RuntimeError> {
        let context = P::of(invocation.engine)?;
        let attributes = invocation.attributes;
        let owned = operands;
        let operands = Typed::<P>::new(self.operation, &owned);
        let absent = |name: &str| operands.malformed(&format!("the attribute {name} is missing"));
        let int = |name: &str| attributes.int(name).ok_or_else(|| absent(name));
        let result = match self.operation {
            Ckks::Add => context.add(operands.ciphertext(0)?, operands.ciphertext(1)?)?,
            Ckks::Sub => context.subtract(operands.ciphertext(0)?, operands.ciphertext(1)?)?,
            Ckks::AddPlain => context.add_plain(operands.ciphertext(0)?, operands.plaintext(1)?)?,
            Ckks::SubPlain => {
                context.subtract_plain(operands.ciphertext(0)?, operands.plaintext(1)?)?
            }
            Ckks::PlainSub => {
                context.plain_subtract(operands.plaintext(0)?, operands.ciphertext(1)?)?
            }
            Ckks::Mul => context.multiply(operands.ciphertext(0)?, operands.ciphertext(1)?)?,
            Ckks::Square => context.square(operands.ciphertext(0)?)?,
            Ckks::MulPlain => {
                context.multiply_plain(operands.ciphertext(0)?, operands.plaintext(1)?)?
            }
            Ckks::MulInteger => context.multiply_integer(operands.ciphertext(0)?, int("value")?)?,
            Ckks::Neg => context.negate(operands.ciphertext(0)?)?,
            Ckks::Rotate => {
                context.rotate(operands.ciphertext(0)?, int("step")?, operands.key(1)?)?
            }
            Ckks::RotateHoisted => {
                let steps = attributes.ints("steps").ok_or_else(|| absent("steps"))?;
                return rotate_hoisted(context, &operands, steps);
            }
            Ckks::Conjugate => context.conjugate(operands.ciphertext(0)?, operands.key(1)?)?,
            Ckks::Relinearize => context.relinearize(operands.ciphertext(0)?, operands.key(1)?)?,
            Ckks::MulRelin => context.multiply_relinearize(
                operands.ciphertext(0)?,
                operands.ciphertext(1)?,
                operands.key(2)?,
            )?,
            Ckks::SquareRelin => {
                let x = operands.ciphertext(0)?;
                context.multiply_relinearize(x, x, operands.key(1)?)?
            }
            Ckks::RelinearizeRescale => {
                context.relinearize_rescale(operands.ciphertext(0)?, operands.key(1)?)?
            }
            Ckks::MulRelinRescale => context.multiply_relinearize_rescale(
                operands.ciphertext(0)?,
                operands.ciphertext(1)?,
                operands.key(2)?,
            )?,
            Ckks::SquareRelinRescale => {
                let x = operands.ciphertext(0)?;
                context.multiply_relinearize_rescale(x, x, operands.key(1)?)?
            }
            Ckks::Rescale => context.rescale(operands.ciphertext(0)?)?,
            Ckks::DropLevels => {
                let count = usize::try_from(int("count")?)
                    .map_err(|_| operands.malformed("count is negative"))?;
                context.drop_levels(operands.ciphertext(0)?, count)?
            }
            Ckks::SumBatch | Ckks::BatchSlice | Ckks::BatchReshape | Ckks::StackBatch => {
                return batch::execute::<P>(self.operation, invocation, owned);
            }
            Ckks::Encode => {
                let level = usize::try_from(int("level")?)
                    .map_err(|_| operands.malformed("level is negative"))?;
                let scale = attributes.scale("scale").ok_or_else(|| absent("scale"))?;
                let engine = invocation.engine;
                let plaintext = engine.encode_array_at(operands.array(0)?, level, scale)?;
                return Ok(smallvec![plaintext.into()]);
            }
        };
        Ok(smallvec![Value::Ciphertext(P::placed(result))])
    }
}

fn rotate_hoisted<P: Kernels>(
    context: &P,
    operands: &Typed<'_, P>,
    steps: &[i64],
) -> Result<Results, RuntimeError> {
    let x = operands.ciphertext(0)?;
    let mut rotations: SmallVec<[(i64, &Key<P>); 8]> = SmallVec::new();
    for &step in steps.iter().filter(|&&step| step != 0) {
        rotations.push((step, operands.key(1 + rotations.len())?));
    }
    let mut rotated = context.rotate_hoisted(x, &rotations)?.into_iter();
    steps
        .iter()
        .map(|&step| match step {
            0 => Ok(operands.operands[0].clone()),
            _ => rotated
                .next()
                .map(|result| Value::Ciphertext(P::placed(result)))
                .ok_or_else(|| operands.malformed("a rotation gave no result")),
        })
        .collect()
}

/// Operands by kind; types are checked when a Program is built, so a refusal here means that an
/// implementation was called with what it does not support.
pub(super) struct Typed<'a, P> {
    operation: Ckks,
    operands: &'a [Value],
    place: PhantomData<P>,
}

impl<'a, P: Place> Typed<'a, P> {
    pub fn new(operation: Ckks, operands: &'a [Value]) -> Self {
        Typed {
            operation,
            operands,
            place: PhantomData,
        }
    }

    pub fn ciphertext(&self, place: usize) -> Result<&'a Cipher<P>, RuntimeError> {
        let value = self.operands.get(place).and_then(|value| match value {
            Value::Ciphertext(value) => P::form(value),
            _ => None,
        });
        value.ok_or_else(|| self.misplaced(place, "a ciphertext"))
    }

    pub fn plaintext(&self, place: usize) -> Result<&'a Plain<P>, RuntimeError> {
        let value = self.operands.get(place).and_then(|value| match value {
            Value::Plaintext(value) => P::form(value),
            _ => None,
        });
        value.ok_or_else(|| self.misplaced(place, "a plaintext"))
    }

    fn array(&self, place: usize) -> Result<&'a Array, RuntimeError> {
        match self.operands.get(place) {
            Some(Value::Tensor(value)) => Ok(value),
            _ => Err(self.misplaced(place, "a tensor")),
        }
    }

    fn key(&self, place: usize) -> Result<&'a Key<P>, RuntimeError> {
        let value = self.operands.get(place).and_then(|value| match value {
            Value::Key(value) => P::form(value),
            _ => None,
        });
        value.ok_or_else(|| self.misplaced(place, "an evaluation key"))
    }

    fn misplaced(&self, place: usize, expected: &str) -> RuntimeError {
        let found = self.operands.get(place).map_or_else(
            || "missing".to_owned(),
            |value| format!("{} on {}", value.ty(), value.device()),
        );
        let here = P::NAME;
        self.malformed(&format!(
            "operand {place} is {found}, expected {expected} for the kernels named {here}"
        ))
    }

    pub fn malformed(&self, message: &str) -> RuntimeError {
        RuntimeError::Implementation(format!("{}: {message}", self.operation.def().name))
    }
}
