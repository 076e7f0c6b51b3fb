//! Types of values.

use crate::DType;
use fhelium_state::{CipherState, PlainState};
use std::fmt;

/// The type of a value: everything that running an operation on it needs to know.
///
/// `Display` is the text form: `!ciphertext<[6], level=3, scale=2^40, parts=2>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Encrypted messages of all slots each.
    Ciphertext {
        /// Batch axes; `[]` is one ciphertext.
        batch: Vec<usize>,
        /// Level, scale and parts; `None` where a pass is still to decide them (`he` level only).
        state: Option<CipherState>,
    },
    /// Encoded messages of all slots each.
    Plaintext {
        /// Batch axes; `[]` is one plaintext.
        batch: Vec<usize>,
        /// Level and scale; `None` where a pass is still to decide them (`he` level only).
        state: Option<PlainState>,
    },
    /// A clear array.
    Tensor {
        /// Element type.
        dtype: DType,
        /// Extents, outermost first; `[]` is a scalar.
        shape: Vec<usize>,
    },
    /// An evaluation key.
    Key(KeyKind),
    /// Residue polynomials: what `rns` operations work on.
    Residues {
        /// Batch axes.
        batch: Vec<usize>,
        /// Polynomials of each batch element: 1 to 3.
        parts: usize,
        /// The primes that the residues are taken by.
        basis: Basis,
        /// Coefficients or NTT values.
        domain: Domain,
    },
}

/// What an evaluation key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyKind {
    /// From the secret's square to the secret.
    Relinearization,
    /// For a rotation: slot `i` receives slot `i + step`.
    Rotation {
        /// The step; steps that are equal modulo the slots name one key.
        step: i64,
    },
    /// For complex conjugation.
    Conjugation,
}

/// The primes by which residue polynomials are reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Basis {
    /// The chain's primes `0..=level`.
    Q {
        /// The level.
        level: usize,
    },
    /// The chain's primes `0..=level` and all special primes.
    QP {
        /// The level.
        level: usize,
    },
    /// The chain's primes `start..end`: one digit of a polynomial at a level.
    Digit {
        /// The level of the polynomial that was decomposed.
        level: usize,
        /// First prime of the digit.
        start: usize,
        /// One past the last prime of the digit.
        end: usize,
    },
}

/// How a residue polynomial is represented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// By its coefficients.
    Coefficient,
    /// By its values at the roots of `X^N + 1`.
    Ntt,
}

impl Type {
    /// A tensor type.
    pub fn tensor(dtype: DType, shape: impl Into<Vec<usize>>) -> Type {
        Type::Tensor {
            dtype,
            shape: shape.into(),
        }
    }

    /// A ciphertext type of known state.
    pub fn ciphertext(batch: impl Into<Vec<usize>>, state: CipherState) -> Type {
        Type::Ciphertext {
            batch: batch.into(),
            state: Some(state),
        }
    }

    /// A plaintext type of known state.
    pub fn plaintext(batch: impl Into<Vec<usize>>, state: PlainState) -> Type {
        Type::Plaintext {
            batch: batch.into(),
            state: Some(state),
        }
    }

    /// What kind of value this is, with its article, for messages: "a ciphertext".
    pub fn noun(&self) -> &'static str {
        match self {
            Type::Ciphertext { .. } => "a ciphertext",
            Type::Plaintext { .. } => "a plaintext",
            Type::Tensor { .. } => "a tensor",
            Type::Key(KeyKind::Relinearization) => "a relinearization key",
            Type::Key(KeyKind::Rotation { .. }) => "a rotation key",
            Type::Key(KeyKind::Conjugation) => "a conjugation key",
            Type::Residues { .. } => "residues",
        }
    }

    /// The batch axes, or a tensor's shape; a key has none.
    pub fn batch(&self) -> &[usize] {
        match self {
            Type::Ciphertext { batch, .. }
            | Type::Plaintext { batch, .. }
            | Type::Residues { batch, .. } => batch,
            Type::Tensor { shape, .. } => shape,
            Type::Key(_) => &[],
        }
    }

    /// Whether level and scale are still to be decided by a pass.
    pub fn is_unplaced(&self) -> bool {
        matches!(
            self,
            Type::Ciphertext { state: None, .. } | Type::Plaintext { state: None, .. }
        )
    }
}

impl Basis {
    /// The level of the ciphertext that these primes serve.
    pub fn level(self) -> usize {
        match self {
            Basis::Q { level } | Basis::QP { level } | Basis::Digit { level, .. } => level,
        }
    }
}

/// Writes `[1, 2, 3]`.
pub(crate) struct List<'a, T>(pub &'a [T]);

impl<T: fmt::Display> fmt::Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, item) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{item}")?;
        }
        f.write_str("]")
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Ciphertext { batch, state } => {
                write!(f, "!ciphertext<{}", List(batch))?;
                if let Some(state) = state {
                    let (level, scale, parts) = (state.level, state.scale.exact(), state.parts);
                    write!(f, ", level={level}, scale={scale}, parts={parts}")?;
                }
                f.write_str(">")
            }
            Type::Plaintext { batch, state } => {
                write!(f, "!plaintext<{}", List(batch))?;
                if let Some(state) = state {
                    write!(f, ", level={}, scale={}", state.level, state.scale.exact())?;
                }
                f.write_str(">")
            }
            Type::Tensor { dtype, shape } => write!(f, "!tensor<{dtype}, {}>", List(shape)),
            Type::Key(kind) => write!(f, "!key<{kind}>"),
            Type::Residues {
                batch,
                parts,
                basis,
                domain,
            } => write!(
                f,
                "!residues<{}, parts={parts}, basis={basis}, domain={domain}>",
                List(batch)
            ),
        }
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyKind::Relinearization => f.write_str("relinearization"),
            KeyKind::Rotation { step } => write!(f, "rotation {step}"),
            KeyKind::Conjugation => f.write_str("conjugation"),
        }
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Basis::Q { level } => write!(f, "Q({level})"),
            Basis::QP { level } => write!(f, "QP({level})"),
            Basis::Digit { level, start, end } => write!(f, "digit({level}, {start}, {end})"),
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Domain::Coefficient => "coefficient",
            Domain::Ntt => "ntt",
        })
    }
}
