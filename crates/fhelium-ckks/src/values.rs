//! Plaintexts and ciphertexts.

use crate::buffers::Buffer;
use crate::error::{CkksError, Result};
use crate::keys::SecretId;
use crate::ops::batch_shape::check_reshape;
use crate::parameters::{Parameters, ParametersId};
use fhelium_state::{CipherState, PlainState};
use std::fmt;

/// Encoded messages: residues of integer polynomials in the transform domain.
///
/// The data's layout is (batch, limb, N), limb `i` holding residues modulo `moduli[i]`.
#[derive(Clone, PartialEq)]
pub struct Plaintext {
    pub(crate) parameters: ParametersId,
    pub(crate) state: PlainState,
    pub(crate) batch_shape: Vec<usize>,
    pub(crate) data: Buffer,
}

/// Encrypted messages: residues of two or three polynomials in the transform domain.
///
/// The data's layout is (batch, part, limb, N), limb `i` holding residues modulo `moduli[i]`. With
/// parts c_0, c_1, c_2 and secret s the message is c_0 + c_1 s + c_2 s^2.
#[derive(Clone)]
pub struct Ciphertext {
    pub(crate) parameters: ParametersId,
    pub(crate) secret: SecretId,
    pub(crate) state: CipherState,
    pub(crate) batch_shape: Vec<usize>,
    pub(crate) data: Buffer,
}

/// The product of a batch shape's axes.
pub(crate) fn batch_size(batch_shape: &[usize]) -> usize {
    batch_shape.iter().product()
}

impl Plaintext {
    /// A plaintext from its parts, as the accessors gave them.
    ///
    /// # Errors
    /// The level and scale rules' for a level or scale that the parameters lack;
    /// [`CkksError::Shape`] where the data's length or a residue does not fit.
    pub fn from_raw(
        parameters: &Parameters,
        state: PlainState,
        batch_shape: Vec<usize>,
        data: Vec<u64>,
    ) -> Result<Self> {
        parameters
            .chain()
            .check_encoding("Plaintext", state.level, &state.scale)?;
        check_data("Plaintext", parameters, &batch_shape, 1, state.level, &data)?;
        Ok(Plaintext {
            parameters: parameters.id(),
            state,
            batch_shape,
            data: data.into(),
        })
    }

    /// The parameters' id.
    pub fn parameters_id(&self) -> ParametersId {
        self.parameters
    }

    /// Level and scale.
    pub fn state(&self) -> &PlainState {
        &self.state
    }

    /// The batch axes.
    pub fn batch_shape(&self) -> &[usize] {
        &self.batch_shape
    }

    /// The residues, (batch, limb, N).
    pub fn data(&self) -> &[u64] {
        &self.data
    }

    /// Bytes of the residues.
    pub fn nbytes(&self) -> usize {
        size_of_val(&self.data[..])
    }

    /// This plaintext's batch under another shape of as many items.
    ///
    /// # Errors
    /// [`CkksError::Shape`] where the numbers of items differ.
    pub fn reshape_batch(mut self, batch_shape: Vec<usize>) -> Result<Self> {
        check_reshape(&self.batch_shape, &batch_shape)?;
        self.batch_shape = batch_shape;
        Ok(self)
    }
}

impl Ciphertext {
    /// A ciphertext from its parts, as the accessors gave them.
    ///
    /// # Errors
    /// The level and scale rules' for a level or scale that the parameters lack;
    /// [`CkksError::Shape`] where the parts, the data's length or a residue do not fit.
    pub fn from_raw(
        parameters: &Parameters,
        secret: SecretId,
        state: CipherState,
        batch_shape: Vec<usize>,
        data: Vec<u64>,
    ) -> Result<Self> {
        parameters
            .chain()
            .check_encoding("Ciphertext", state.level, &state.scale)?;
        if !(2..=3).contains(&state.parts) {
            return Err(CkksError::Shape {
                operation: "Ciphertext",
                found: format!("{} parts", state.parts),
                expected: "2 or 3 parts".to_owned(),
            });
        }
        check_data(
            "Ciphertext",
            parameters,
            &batch_shape,
            state.parts,
            state.level,
            &data,
        )?;
        Ok(Ciphertext {
            parameters: parameters.id(),
            secret,
            state,
            batch_shape,
            data: data.into(),
        })
    }

    /// The parameters' id.
    pub fn parameters_id(&self) -> ParametersId {
        self.parameters
    }

    /// The id of the secret that decrypts it.
    pub fn secret_id(&self) -> SecretId {
        self.secret
    }

    /// Level, scale and parts.
    pub fn state(&self) -> &CipherState {
        &self.state
    }

    /// The batch axes.
    pub fn batch_shape(&self) -> &[usize] {
        &self.batch_shape
    }

    /// The residues, (batch, part, limb, N).
    pub fn data(&self) -> &[u64] {
        &self.data
    }

    /// Bytes of the residues.
    pub fn nbytes(&self) -> usize {
        size_of_val(&self.data[..])
    }

    /// This ciphertext's batch under another shape of as many items.
    ///
    /// # Errors
    /// [`CkksError::Shape`] where the numbers of items differ.
    pub fn reshape_batch(mut self, batch_shape: Vec<usize>) -> Result<Self> {
        check_reshape(&self.batch_shape, &batch_shape)?;
        self.batch_shape = batch_shape;
        Ok(self)
    }
}

pub(crate) fn checked_size(shape: &[usize]) -> Option<usize> {
    shape
        .iter()
        .try_fold(1usize, |size, &axis| size.checked_mul(axis))
}

fn check_data(
    operation: &'static str,
    parameters: &Parameters,
    batch_shape: &[usize],
    parts: usize,
    level: usize,
    data: &[u64],
) -> Result<()> {
    let n = parameters.n();
    let words =
        checked_size(batch_shape).and_then(|size| size.checked_mul(parts * (level + 1) * n));
    if words != Some(data.len()) {
        return Err(CkksError::Shape {
            operation,
            found: format!("{} residues", data.len()),
            expected: format!(
                "batch {batch_shape:?} x {parts} parts x {} limbs x {n}",
                level + 1
            ),
        });
    }
    let moduli = parameters.moduli()[..=level].iter().cycle();
    for (index, (limb, &modulus)) in data.chunks_exact(n).zip(moduli).enumerate() {
        if let Some(residue) = limb.iter().find(|&&residue| residue >= modulus) {
            return Err(CkksError::Shape {
                operation,
                found: format!("the residue {residue} in limb {index}"),
                expected: format!("residues below its modulus {modulus}"),
            });
        }
    }
    Ok(())
}

impl fmt::Debug for Plaintext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Plaintext(level {}, scale {}, batch {:?}, {})",
            self.state.level, self.state.scale, self.batch_shape, self.parameters
        )
    }
}

impl fmt::Debug for Ciphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Ciphertext(level {}, scale {}, {} parts, batch {:?}, secret {}, {})",
            self.state.level,
            self.state.scale,
            self.state.parts,
            self.batch_shape,
            self.secret,
            self.parameters
        )
    }
}

/// A buffer of zeros; a large one is refused where memory lacks instead of ending the process.
pub(crate) fn zeroed(operation: &'static str, words: usize) -> Result<Vec<u64>> {
    // Smaller ones come zeroed from the system without a pass over them.
    const LARGE: usize = 1 << 23;
    if words < LARGE {
        return Ok(vec![0; words]);
    }
    let mut data = Vec::new();
    let bytes = words.saturating_mul(size_of::<u64>());
    data.try_reserve_exact(words)
        .map_err(|_| CkksError::OutOfMemory { operation, bytes })?;
    data.resize(words, 0);
    Ok(data)
}
