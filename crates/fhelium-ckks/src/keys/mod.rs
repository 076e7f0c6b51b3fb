//! Secrets and the keys made from them.

mod generator;
mod switch;

pub use generator::KeyGenerator;
pub use switch::{KeyKind, KeySwitchKey, normalize_step};

use crate::context::Context;
use crate::error::Result;
use crate::parameters::{Parameters, ParametersId};
use crate::sampler::{Purpose, uniform_from_seed};
use std::fmt;
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// Which secret a key or ciphertext belongs to: random bits drawn beside the secret, never derived
/// from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecretId([u8; 16]);

impl SecretId {
    /// The id with these bytes, as [`bytes`](Self::bytes) gave them.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        SecretId(bytes)
    }

    /// Its bytes.
    pub const fn bytes(&self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for SecretId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6]
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SecretId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretId({self})")
    }
}

/// A uniform ternary secret s. Its memory is zeroed when it is dropped, and `Debug` shows its ids
/// only.
#[derive(Clone)]
pub struct SecretKey {
    pub(crate) parameters: ParametersId,
    pub(crate) id: SecretId,
    /// s in the transform domain, (limb, N), moduli then special moduli.
    pub(crate) residues: Zeroizing<Vec<u64>>,
}

impl SecretKey {
    /// The parameters' id.
    pub fn parameters_id(&self) -> ParametersId {
        self.parameters
    }

    /// The secret's id.
    pub fn secret_id(&self) -> SecretId {
        self.id
    }

    /// Bytes of the residues.
    pub fn nbytes(&self) -> usize {
        size_of_val(&self.residues[..])
    }

    /// The secret's coefficients, -1, 0 or 1, for storing it: **whoever reads them decrypts
    /// everything**. They are zeroed when dropped.
    pub fn coefficients(&self, context: &Context) -> Result<Zeroizing<Vec<i8>>> {
        context
            .parameters()
            .check_id("SecretKey", "secret key", self.parameters)?;
        let ring = &context.limbs()[0];
        let mut limb = Zeroizing::new(self.residues[..context.n()].to_vec());
        ring.inverse(&mut limb);
        let small = limb
            .iter()
            .map(|&residue| ring.modulus().centered(residue) as i8);
        Ok(Zeroizing::new(small.collect()))
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(secret {}, {})", self.id, self.parameters)
    }
}

/// An encryption key: b = -a s + e over the moduli, a expanded from a seed.
pub struct PublicKey {
    pub(crate) parameters: ParametersId,
    pub(crate) secret: SecretId,
    pub(crate) seed: [u8; 32],
    /// b in the transform domain, (limb, N).
    pub(crate) b: Vec<u64>,
    pub(crate) a: OnceLock<Vec<u64>>,
}

impl PublicKey {
    /// A key from its stored parts.
    ///
    /// # Errors
    /// [`CkksError::Shape`](crate::CkksError::Shape) where the residues' number or a residue does
    /// not fit.
    pub fn from_raw(
        parameters: &Parameters,
        secret: SecretId,
        seed: [u8; 32],
        b: Vec<u64>,
    ) -> Result<Self> {
        switch::check_residues("PublicKey", parameters.n(), parameters.moduli(), 1, &b)?;
        Ok(PublicKey {
            parameters: parameters.id(),
            secret,
            seed,
            b,
            a: OnceLock::new(),
        })
    }

    /// The parameters' id.
    pub fn parameters_id(&self) -> ParametersId {
        self.parameters
    }

    /// The id of the secret that decrypts what this key encrypts.
    pub fn secret_id(&self) -> SecretId {
        self.secret
    }

    /// The seed of the uniform half.
    pub fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// The half that is stored, (limb, N), in the transform domain.
    pub fn residues(&self) -> &[u64] {
        &self.b
    }

    /// Bytes stored: one half and a seed.
    pub fn nbytes(&self) -> usize {
        size_of_val(&self.b[..]) + self.seed.len()
    }

    /// The uniform half, (limb, N) in the transform domain, expanded once.
    pub fn uniform(&self, context: &Context) -> &[u64] {
        once(&self.a, || {
            let mut a = vec![0; self.b.len()];
            context.each_limb(&mut a, |index, limb| {
                let modulus = context.limbs()[index].modulus();
                uniform_from_seed(&self.seed, Purpose::PublicKey, 0, index, modulus, limb);
            });
            a
        })
    }
}

/// What a cell holds, made at the first use.
///
/// `make` works on the context's threads, so it must not run inside the cell's lock: a thread that
/// waits in it for others may take up another operation, which would wait for the lock. Threads that
/// come at the same time make it twice, the same.
fn once(cell: &OnceLock<Vec<u64>>, make: impl FnOnce() -> Vec<u64>) -> &[u64] {
    if let Some(made) = cell.get() {
        return made;
    }
    let made = make();
    cell.get_or_init(|| made)
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey(secret {}, {})", self.secret, self.parameters)
    }
}
