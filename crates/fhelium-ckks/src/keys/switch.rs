//! Evaluation keys of hybrid key switching.

use super::SecretId;
use crate::context::Context;
use crate::error::{CkksError, Result};
use crate::parameters::{Parameters, ParametersId};
use crate::sampler::{Purpose, uniform_from_seed};
use std::fmt;
use std::sync::OnceLock;

/// What a key switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyKind {
    /// The third part of a product.
    Relinearization,
    /// A rotation.
    Rotation {
        /// The step, modulo the slots.
        step: usize,
    },
    /// The conjugation of all slots.
    Conjugation,
}

impl KeyKind {
    /// The rotation by `step` slots in either direction; steps that differ by a multiple of the
    /// slots are one.
    pub fn rotation(step: i64, slots: usize) -> Self {
        KeyKind::Rotation {
            step: normalize_step(step, slots),
        }
    }

    /// The exponent g of the automorphism X -> X^g; 1, the identity, for relinearization.
    pub fn galois(self, n: usize) -> usize {
        match self {
            KeyKind::Relinearization => 1,
            KeyKind::Rotation { step } => power_of_five(step, n),
            KeyKind::Conjugation => 2 * n - 1,
        }
    }

    /// The exponent of the inverse automorphism.
    pub fn inverse_galois(self, n: usize) -> usize {
        match self {
            KeyKind::Rotation { step } => power_of_five(n / 2 - step, n),
            KeyKind::Relinearization | KeyKind::Conjugation => self.galois(n),
        }
    }

    /// Refuses a rotation by a multiple of the slots.
    ///
    /// # Errors
    /// [`CkksError::Parameter`].
    pub fn check(self, slots: usize) -> Result<()> {
        match self {
            KeyKind::Rotation { step } if !(1..slots).contains(&step) => {
                Err(CkksError::Parameter {
                    argument: "step",
                    found: step.to_string(),
                    expected: format!(
                        "1..{slots}: a rotation by a multiple of the slots needs no key"
                    ),
                })
            }
            _ => Ok(()),
        }
    }
}

/// The step modulo the slots: 0 to slots - 1.
pub fn normalize_step(step: i64, slots: usize) -> usize {
    step.rem_euclid(slots as i64) as usize
}

fn power_of_five(exponent: usize, n: usize) -> usize {
    // 2n is a power of two, which divides what wraps around.
    5_usize.wrapping_pow(exponent as u32) % (2 * n)
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyKind::Relinearization => write!(f, "relinearization"),
            KeyKind::Rotation { step } => write!(f, "rotation by {step}"),
            KeyKind::Conjugation => write!(f, "conjugation"),
        }
    }
}

/// A key that brings a product with another polynomial s' back to the secret s: for each digit j a
/// pair over all moduli and special moduli,
///
/// b_j = -a_j t + e_j + P g_j s',
///
/// where P is the product of the special primes and g_j is 1 modulo the primes of digit j and 0
/// modulo the others (K. Han, D. Ki, "Better Bootstrapping for Approximate Homomorphic Encryption",
/// CT-RSA 2020). For relinearization s' = s^2 and t = s. For the automorphism sigma, s' = s and t =
/// sigma^-1(s): the automorphism is applied after the switch, so that several rotations share one
/// decomposition, and hoisted results are the single rotations' bit for bit.
///
/// The uniform halves a_j are kept as a seed and expanded at the first use.
pub struct KeySwitchKey {
    pub(crate) parameters: ParametersId,
    pub(crate) secret: SecretId,
    pub(crate) kind: KeyKind,
    pub(crate) seed: [u8; 32],
    /// (digit, limb, N) in the transform domain, moduli then special moduli.
    pub(crate) b: Vec<u64>,
    pub(crate) a: OnceLock<Vec<u64>>,
}

impl KeySwitchKey {
    /// A key from its stored parts.
    ///
    /// # Errors
    /// [`CkksError::Shape`] where the residues' number or a residue does not fit;
    /// [`CkksError::Parameter`] for a rotation step that is not in 1 ... slots - 1.
    pub fn from_raw(
        parameters: &Parameters,
        secret: SecretId,
        kind: KeyKind,
        seed: [u8; 32],
        b: Vec<u64>,
    ) -> Result<Self> {
        kind.check(parameters.slots())?;
        let digits = parameters.digits(parameters.depth());
        let moduli = [parameters.moduli(), parameters.special_moduli()].concat();
        check_residues("KeySwitchKey", parameters.n(), &moduli, digits, &b)?;
        Ok(KeySwitchKey {
            parameters: parameters.id(),
            secret,
            kind,
            seed,
            b,
            a: OnceLock::new(),
        })
    }

    /// Bytes that one key of these parameters stores: known before it is made.
    pub fn predicted_nbytes(parameters: &Parameters) -> usize {
        let limbs = parameters.moduli().len() + parameters.special_moduli().len();
        parameters.digits(parameters.depth()) * limbs * parameters.n() * size_of::<u64>() + 32
    }

    /// What it switches.
    pub fn key_kind(&self) -> KeyKind {
        self.kind
    }

    /// The parameters' id.
    pub fn parameters_id(&self) -> ParametersId {
        self.parameters
    }

    /// The secret's id.
    pub fn secret_id(&self) -> SecretId {
        self.secret
    }

    /// The seed of the uniform halves.
    pub fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// The halves that are stored, (digit, limb, N), in the transform domain.
    pub fn residues(&self) -> &[u64] {
        &self.b
    }

    /// Bytes stored: one half and a seed.
    pub fn nbytes(&self) -> usize {
        size_of_val(&self.b[..]) + self.seed.len()
    }

    /// Bytes of the expanded uniform halves; 0 before the first use.
    pub fn expanded_nbytes(&self) -> usize {
        self.a.get().map_or(0, |a| size_of_val(&a[..]))
    }

    /// Frees the expanded halves; the next use expands them again.
    pub fn release_expanded(&mut self) {
        self.a = OnceLock::new();
    }

    /// The uniform halves, (digit, limb, N) in the transform domain, expanded once.
    pub fn uniform(&self, context: &Context) -> &[u64] {
        super::once(&self.a, || {
            let mut a = vec![0; self.b.len()];
            let limbs = context.limbs().len();
            context.each_limb(&mut a, |index, out| {
                let (digit, limb) = (index / limbs, index % limbs);
                uniform_limb(context, &self.seed, digit, limb, out);
            });
            a
        })
    }

    /// Refuses the key for a ciphertext of another secret or parameter set, or for another purpose.
    pub(crate) fn check(
        &self,
        operation: &'static str,
        context: &Context,
        secret: SecretId,
        kind: KeyKind,
    ) -> Result<()> {
        context
            .parameters()
            .check_id(operation, "key", self.parameters)?;
        if self.kind != kind {
            return Err(CkksError::WrongKey {
                operation,
                found: self.kind,
                expected: kind,
            });
        }
        if self.secret != secret {
            return Err(CkksError::SecretMismatch {
                operation,
                what: "key",
                found: self.secret,
                expected: secret,
            });
        }
        Ok(())
    }
}

impl fmt::Debug for KeySwitchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "KeySwitchKey({}, secret {}, {})",
            self.kind, self.secret, self.parameters
        )
    }
}

/// One limb of a uniform half.
pub(super) fn uniform_limb(
    context: &Context,
    seed: &[u8; 32],
    digit: usize,
    limb: usize,
    out: &mut [u64],
) {
    let modulus = context.limbs()[limb].modulus();
    uniform_from_seed(seed, Purpose::KeySwitchKey, digit, limb, modulus, out);
}

/// Refuses residues, (digit, limb, N), that are not `digits` times one limb for each modulus.
pub(super) fn check_residues(
    operation: &'static str,
    n: usize,
    moduli: &[u64],
    digits: usize,
    residues: &[u64],
) -> Result<()> {
    let limbs = moduli.len();
    if residues.len() != digits * limbs * n {
        return Err(CkksError::Shape {
            operation,
            found: format!("{} residues", residues.len()),
            expected: format!("{digits} digits x {limbs} limbs x {n}"),
        });
    }
    let moduli = moduli.iter().cycle();
    for (index, (limb, &modulus)) in residues.chunks_exact(n).zip(moduli).enumerate() {
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
