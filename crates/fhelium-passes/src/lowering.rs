//! What each `he` operation is at the `ckks` level.
//!
//! The `lower-to-ckks` pass and the eager engine both ask here, so that an operation runs the
//! same way whether it is compiled or not.

use fhelium_ir::{Attributes, Ckks, He, KeyKind, Type};
use smallvec::{SmallVec, smallvec};
use thiserror::Error;

/// An `he` operation at the `ckks` level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lowered {
    /// The operation gives its operand of that place as it is.
    Operand(usize),
    /// One operation.
    Operation {
        /// Which.
        kind: Ckks,
        /// Where its operands come from, in order.
        operands: SmallVec<[Source; 3]>,
        /// Its attributes.
        attributes: Attributes,
    },
}

/// Where an operand of the lowered operation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The operand of that place.
    Operand(usize),
    /// The evaluation key of that kind, which the `he` operation did not name.
    Key(KeyKind),
}

/// An `he` operation that has no form at the `ckks` level.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoweringError {
    /// An operand or result without level and scale.
    #[error(
        "{what} has no level and scale yet; give the inputs and encodings theirs, or run a pass that \
         places them before this one"
    )]
    Unplaced {
        /// The value.
        what: String,
    },
    /// Operands that the operation does not take.
    #[error("{found} operands of these kinds were given, which {operation} does not take")]
    Operands {
        /// The operation.
        operation: &'static str,
        /// What was given.
        found: String,
    },
}

/// Gives the `ckks` form of an `he` operation on operands of these types.
///
/// `attributes` are the operation's canonical ones, as [`fhelium_ir::OpKind::resolve`] gives them.
///
/// # Errors
/// [`LoweringError`] where a level and scale is missing, or where the operands are not those of
/// the operation.
pub fn lower_operation(
    operation: He,
    operands: &[&Type],
    attributes: &Attributes,
) -> Result<Lowered, LoweringError> {
    if let Some(place) = operands.iter().position(|ty| ty.is_unplaced()) {
        return Err(LoweringError::Unplaced {
            what: format!("operand {place}, {},", operands[place].noun()),
        });
    }
    let x = Source::Operand(0);
    let y = Source::Operand(1);
    let keyed = |kind: Ckks, key: KeyKind| {
        let key = if operands.len() > 1 {
            y
        } else {
            Source::Key(key)
        };
        lowered(kind, smallvec![x, key], attributes)
    };
    Ok(match operation {
        He::Add | He::Sub | He::Mul => match (operation, side(operands)) {
            (He::Add, Some(Side::Both)) => lowered(Ckks::Add, smallvec![x, y], attributes),
            (He::Add, Some(Side::Left)) => lowered(Ckks::AddPlain, smallvec![x, y], attributes),
            (He::Add, Some(Side::Right)) => lowered(Ckks::AddPlain, smallvec![y, x], attributes),
            (He::Sub, Some(Side::Both)) => lowered(Ckks::Sub, smallvec![x, y], attributes),
            (He::Sub, Some(Side::Left)) => lowered(Ckks::SubPlain, smallvec![x, y], attributes),
            (He::Sub, Some(Side::Right)) => lowered(Ckks::PlainSub, smallvec![x, y], attributes),
            (He::Mul, Some(Side::Both)) => lowered(Ckks::Mul, smallvec![x, y], attributes),
            (He::Mul, Some(Side::Left)) => lowered(Ckks::MulPlain, smallvec![x, y], attributes),
            (He::Mul, Some(Side::Right)) => lowered(Ckks::MulPlain, smallvec![y, x], attributes),
            _ => {
                return Err(LoweringError::Operands {
                    operation: operation.def().name,
                    found: operands
                        .iter()
                        .map(|ty| ty.noun())
                        .collect::<Vec<_>>()
                        .join(" and "),
                });
            }
        },
        He::Square => lowered(Ckks::Square, smallvec![x], attributes),
        He::MulInteger => lowered(Ckks::MulInteger, smallvec![x], attributes),
        He::Neg => lowered(Ckks::Neg, smallvec![x], attributes),
        He::Rotate => match attributes.int("step") {
            Some(0) => Lowered::Operand(0),
            step => keyed(
                Ckks::Rotate,
                KeyKind::Rotation {
                    step: step.unwrap_or(0),
                },
            ),
        },
        He::Conjugate => keyed(Ckks::Conjugate, KeyKind::Conjugation),
        He::Relinearize => keyed(Ckks::Relinearize, KeyKind::Relinearization),
        He::Rescale => lowered(Ckks::Rescale, smallvec![x], attributes),
        He::DropLevels => match attributes.int("count") {
            Some(0) => Lowered::Operand(0),
            _ => lowered(Ckks::DropLevels, smallvec![x], attributes),
        },
        He::SumBatch => {
            let place = attributes
                .int("axis")
                .and_then(|axis| usize::try_from(axis).ok());
            let batch = operands.first().map_or(&[][..], |ty| ty.batch());
            match place {
                // One item is its own sum: the axis goes and nothing is added.
                Some(axis) if batch.get(axis) == Some(&1) => {
                    let mut shape: Vec<i64> = batch.iter().map(|&extent| extent as i64).collect();
                    shape.remove(axis);
                    let attributes = Attributes::new().with("shape", shape);
                    lowered(Ckks::BatchReshape, smallvec![x], &attributes)
                }
                _ => lowered(Ckks::SumBatch, smallvec![x], attributes),
            }
        }
        He::BatchSlice => lowered(Ckks::BatchSlice, smallvec![x], attributes),
        He::BatchReshape => lowered(Ckks::BatchReshape, smallvec![x], attributes),
        He::StackBatch => {
            let places = (0..operands.len()).map(Source::Operand);
            lowered(Ckks::StackBatch, places.collect(), attributes)
        }
        He::Encode => {
            if attributes.get("level").is_none() || attributes.get("scale").is_none() {
                return Err(LoweringError::Unplaced {
                    what: "the plaintext that it makes".to_owned(),
                });
            }
            lowered(Ckks::Encode, smallvec![x], attributes)
        }
    })
}

fn lowered(kind: Ckks, operands: SmallVec<[Source; 3]>, attributes: &Attributes) -> Lowered {
    Lowered::Operation {
        kind,
        operands,
        attributes: attributes.clone(),
    }
}

/// Which of two operands is a ciphertext, the other being a plaintext.
enum Side {
    Left,
    Right,
    Both,
}

fn side(operands: &[&Type]) -> Option<Side> {
    match operands {
        [Type::Ciphertext { .. }, Type::Ciphertext { .. }] => Some(Side::Both),
        [Type::Ciphertext { .. }, Type::Plaintext { .. }] => Some(Side::Left),
        [Type::Plaintext { .. }, Type::Ciphertext { .. }] => Some(Side::Right),
        _ => None,
    }
}

/// The symbol by which a lowered Program refers to a key that it did not name: `rotation_5`.
pub fn key_symbol(kind: KeyKind) -> String {
    match kind {
        KeyKind::Relinearization => "relinearization".to_owned(),
        KeyKind::Conjugation => "conjugation".to_owned(),
        KeyKind::Rotation { step } if step < 0 => format!("rotation_minus_{}", step.unsigned_abs()),
        KeyKind::Rotation { step } => format!("rotation_{step}"),
    }
}
