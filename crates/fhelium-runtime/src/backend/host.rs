//! The host kernels as implementations of operations.

mod batch;

use super::{Implementation, Invocation, Operands, Results};
use crate::{RuntimeError, Value, tensor};
use fhelium_ckks::{Ciphertext, KeySwitchKey, Plaintext};
use fhelium_ir::{Ckks, OpKind, Tensor as TensorOp};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// The name of every host kernel among its operation's implementations.
const NAME: &str = "host";

/// A kernel for each `ckks` and each `tensor` operation.
pub(super) fn implementations() -> impl Iterator<Item = Arc<dyn Implementation>> {
    let ckks = Ckks::ALL
        .iter()
        .map(|&operation| Arc::new(CkksKernel(operation)) as Arc<dyn Implementation>);
    let tensor = TensorOp::ALL
        .iter()
        .map(|&operation| Arc::new(TensorKernel(operation)) as Arc<dyn Implementation>);
    ckks.chain(tensor)
}

struct CkksKernel(Ckks);

impl Implementation for CkksKernel {
    fn name(&self) -> &str {
        NAME
    }

    fn operation(&self) -> OpKind {
        self.0.into()
    }

    fn execute(
        &self,
        invocation: &Invocation<'_>,
        operands: Operands,
    ) -> Result<Results, RuntimeError> {
        let context = invocation.engine.context();
        let attributes = invocation.attributes;
        let owned = operands;
        let operands = Typed {
            operation: self.0,
            operands: &owned,
        };
        let absent = |name: &str| operands.malformed(&format!("the attribute {name} is missing"));
        let int = |name: &str| attributes.int(name).ok_or_else(|| absent(name));
        let result = match self.0 {
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
                return rotate_hoisted(invocation, &operands, steps);
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
                return batch::execute(self.0, invocation, owned);
            }
            Ckks::Encode => {
                let level = usize::try_from(int("level")?)
                    .map_err(|_| operands.malformed("level is negative"))?;
                let scale = attributes.scale("scale").ok_or_else(|| absent("scale"))?;
                let plaintext = invocation
                    .engine
                    .encode_at(operands.tensor(0)?, level, scale)?;
                return Ok(smallvec![plaintext.into()]);
            }
        };
        Ok(smallvec![result.into()])
    }
}

fn rotate_hoisted(
    invocation: &Invocation<'_>,
    operands: &Typed<'_>,
    steps: &[i64],
) -> Result<Results, RuntimeError> {
    let x = operands.ciphertext(0)?;
    let mut rotations: SmallVec<[(i64, &KeySwitchKey); 8]> = SmallVec::new();
    for &step in steps.iter().filter(|&&step| step != 0) {
        rotations.push((step, operands.key(1 + rotations.len())?));
    }
    let mut rotated = invocation
        .engine
        .context()
        .rotate_hoisted(x, &rotations)?
        .into_iter();
    steps
        .iter()
        .map(|&step| match step {
            0 => Ok(operands.operands[0].clone()),
            _ => rotated
                .next()
                .map(Value::from)
                .ok_or_else(|| operands.malformed("a rotation gave no result")),
        })
        .collect()
}

struct TensorKernel(TensorOp);

impl Implementation for TensorKernel {
    fn name(&self) -> &str {
        NAME
    }

    fn operation(&self) -> OpKind {
        self.0.into()
    }

    fn execute(
        &self,
        invocation: &Invocation<'_>,
        operands: Operands,
    ) -> Result<Results, RuntimeError> {
        let tensors: SmallVec<[&tensor::Tensor; 4]> = operands
            .iter()
            .map(|operand| match operand {
                Value::Tensor(tensor) => Ok(&**tensor),
                other => Err(RuntimeError::Implementation(format!(
                    "{}: an operand is {}, expected a tensor",
                    self.operation(),
                    other.ty()
                ))),
            })
            .collect::<Result<_, _>>()?;
        let result = tensor::evaluate(self.0, &tensors, invocation.attributes)?;
        Ok(smallvec![result.into()])
    }
}

/// Operands by kind; types are checked when a Program is built, so a refusal here means that an
/// implementation was called with what it does not support.
struct Typed<'a> {
    operation: Ckks,
    operands: &'a [Value],
}

impl<'a> Typed<'a> {
    fn ciphertext(&self, place: usize) -> Result<&'a Ciphertext, RuntimeError> {
        match self.operands.get(place) {
            Some(Value::Ciphertext(value)) => Ok(value),
            _ => Err(self.misplaced(place, "a ciphertext")),
        }
    }

    fn plaintext(&self, place: usize) -> Result<&'a Plaintext, RuntimeError> {
        match self.operands.get(place) {
            Some(Value::Plaintext(value)) => Ok(value),
            _ => Err(self.misplaced(place, "a plaintext")),
        }
    }

    fn tensor(&self, place: usize) -> Result<&'a tensor::Tensor, RuntimeError> {
        match self.operands.get(place) {
            Some(Value::Tensor(value)) => Ok(value),
            _ => Err(self.misplaced(place, "a tensor")),
        }
    }

    fn key(&self, place: usize) -> Result<&'a KeySwitchKey, RuntimeError> {
        match self.operands.get(place) {
            Some(Value::Key(value)) => Ok(value),
            _ => Err(self.misplaced(place, "an evaluation key")),
        }
    }

    fn misplaced(&self, place: usize, expected: &str) -> RuntimeError {
        let found = self
            .operands
            .get(place)
            .map_or_else(|| "missing".to_owned(), |value| value.ty().to_string());
        self.malformed(&format!("operand {place} is {found}, expected {expected}"))
    }

    fn malformed(&self, message: &str) -> RuntimeError {
        RuntimeError::Implementation(format!("{}: {message}", self.operation.def().name))
    }
}
