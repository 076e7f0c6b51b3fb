//! What a rule sees, and the helpers that rules share.

use super::InferContext;
use crate::{Attributes, Body, DType, Domain, InferError, KeyKind, Type};
use fhelium_state::{Chain, CipherState, Scale};
use std::sync::Arc;

/// One application of an operation. Operand counts and kinds and attribute kinds are checked
/// before a rule sees it.
pub(crate) struct Call<'a> {
    pub(super) context: &'a InferContext<'a>,
    pub(super) operands: &'a [&'a Type],
    pub(super) attributes: &'a Attributes,
    pub(super) region: Option<&'a Body>,
}

fn absent(name: &str) -> InferError {
    InferError::malformed(format!("the attribute {name} is missing"))
}

impl<'a> Call<'a> {
    pub(super) fn int(&self, name: &str) -> Result<i64, InferError> {
        self.attributes.int(name).ok_or_else(|| absent(name))
    }

    pub(super) fn ints(&self, name: &str) -> Result<&'a [i64], InferError> {
        self.attributes.ints(name).ok_or_else(|| absent(name))
    }

    pub(super) fn bool(&self, name: &str) -> Result<bool, InferError> {
        self.attributes.bool(name).ok_or_else(|| absent(name))
    }

    pub(super) fn dtype(&self, name: &str) -> Result<DType, InferError> {
        self.attributes.dtype(name).ok_or_else(|| absent(name))
    }

    pub(super) fn symbol(&self, name: &str) -> Result<&'a Arc<str>, InferError> {
        self.attributes.symbol(name).ok_or_else(|| absent(name))
    }

    pub(super) fn scale(&self, name: &str) -> Result<&'a Scale, InferError> {
        self.attributes.scale(name).ok_or_else(|| absent(name))
    }

    /// An integer attribute that counts something.
    pub(super) fn count(&self, name: &str) -> Result<usize, InferError> {
        let value = self.int(name)?;
        usize::try_from(value)
            .map_err(|_| InferError::value(format!("{name} is {value}; it must be 0 or more")))
    }

    /// The chain, which any known level or scale refers to.
    pub(super) fn chain(&self) -> Result<&'a Chain, InferError> {
        self.context.chain.ok_or_else(|| {
            InferError::malformed(
                "a level or scale is known but the program declares no modulus chain; declare one \
                 or leave the states out of the types",
            )
        })
    }

    /// Operand `index` as batch and state.
    pub(super) fn ciphertext(
        &self,
        index: usize,
    ) -> Result<(&'a [usize], Option<&'a CipherState>), InferError> {
        match self.operands.get(index) {
            Some(Type::Ciphertext { batch, state }) => Ok((batch, state.as_ref())),
            _ => Err(self.misplaced(index, "a ciphertext")),
        }
    }

    /// Operand `index` as element type and shape.
    pub(super) fn tensor(&self, index: usize) -> Result<(DType, &'a [usize]), InferError> {
        match self.operands.get(index) {
            Some(Type::Tensor { dtype, shape }) => Ok((*dtype, shape)),
            _ => Err(self.misplaced(index, "a tensor")),
        }
    }

    /// Operand `index` as residues.
    pub(super) fn residues(&self, index: usize) -> Result<ResiduesRef<'a>, InferError> {
        match self.operands.get(index) {
            Some(Type::Residues {
                batch,
                parts,
                basis,
                domain,
            }) => Ok(ResiduesRef {
                batch,
                parts: *parts,
                basis: *basis,
                domain: *domain,
            }),
            _ => Err(self.misplaced(index, "residues")),
        }
    }

    /// Operand `index` as a key of that kind; rotation steps are compared modulo the slots.
    pub(super) fn check_key(&self, index: usize, expected: KeyKind) -> Result<(), InferError> {
        let Some(Type::Key(found)) = self.operands.get(index) else {
            return Err(self.misplaced(index, "an evaluation key"));
        };
        if self.normalized(*found) != self.normalized(expected) {
            return Err(InferError::Invalid {
                kind: fhelium_state::ErrorKind::MissingKey,
                message: format!(
                    "the key given is for {found}; this operation needs the key for {expected}"
                ),
            });
        }
        Ok(())
    }

    fn normalized(&self, kind: KeyKind) -> KeyKind {
        match kind {
            KeyKind::Rotation { step } => KeyKind::Rotation {
                step: self.normalized_step(step),
            },
            other => other,
        }
    }

    /// A rotation step modulo the slots, where the chain says how many there are.
    pub(super) fn normalized_step(&self, step: i64) -> i64 {
        match self.context.chain {
            Some(chain) => step.rem_euclid(chain.slots() as i64),
            None => step,
        }
    }

    fn misplaced(&self, index: usize, expected: &str) -> InferError {
        let found = self
            .operands
            .get(index)
            .map_or("missing", |operand| operand.noun());
        InferError::malformed(format!("operand {index} is {found}, expected {expected}"))
    }
}

/// A residues type by its fields.
#[derive(Clone, Copy)]
pub(crate) struct ResiduesRef<'a> {
    pub(super) batch: &'a [usize],
    pub(super) parts: usize,
    pub(super) basis: crate::Basis,
    pub(super) domain: Domain,
}

impl ResiduesRef<'_> {
    /// The type of residues that differ from these in some fields.
    pub(super) fn to_type(self) -> Type {
        Type::Residues {
            batch: self.batch.to_vec(),
            parts: self.parts,
            basis: self.basis,
            domain: self.domain,
        }
    }
}
