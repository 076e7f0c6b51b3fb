//! What key generation and encryption draw, in one order for the host and for devices: under the
//! same randomness both make the same keys and ciphertexts.
//!
//! Secrets and errors are small polynomials; whoever computes elsewhere moves them there. Uniform
//! polynomials expand from a public seed: residue by residue, the words of the ChaCha20 stream with
//! the seed as its key and [`uniform_stream`] as its stream number (64-bit block counter from zero,
//! words little-endian), each cut to the modulus' bits, those not below the modulus passed over.

use crate::context::Context;
use crate::encoding::ExactScale;
use crate::encrypt::NoiseFlooding;
use crate::error::{CkksError, Result};
use crate::keys::SecretId;
use crate::random::Randomness;
use crate::sampler::{gaussian, standard_normals, ternary};
use zeroize::Zeroizing;

pub use crate::sampler::{Purpose, uniform_stream};

/// Coefficients of small polynomials, zeroed when dropped.
pub type Small = Zeroizing<Vec<i8>>;

/// A new secret.
pub struct SecretDraw {
    /// Its id.
    pub id: SecretId,
    /// Its N coefficients, uniform in {-1, 0, 1}.
    pub coefficients: Small,
}

impl SecretDraw {
    /// Draws one for a context's parameters.
    ///
    /// # Errors
    /// [`CkksError::Randomness`].
    pub fn new(context: &Context, randomness: &Randomness) -> Result<Self> {
        let draw = randomness.draw()?;
        let id = SecretId::from_bytes(draw.stream(1).bytes());
        let mut coefficients = Zeroizing::new(vec![0; context.n()]);
        ternary(&mut draw.stream(0), &mut coefficients);
        Ok(SecretDraw { id, coefficients })
    }
}

/// The randomness of a public key, which has one digit, or of an evaluation key.
pub struct KeyDraw {
    /// The seed of the uniform halves.
    pub seed: [u8; 32],
    /// Gaussian errors, (digit, N).
    pub errors: Small,
}

impl KeyDraw {
    /// Draws that of a key of so many digits.
    ///
    /// # Errors
    /// [`CkksError::Randomness`].
    pub fn new(context: &Context, digits: usize, randomness: &Randomness) -> Result<Self> {
        let draw = randomness.draw()?;
        let seed = draw.stream(0).bytes();
        let errors = small(context, digits, |digit, out| {
            gaussian(&mut draw.stream(digit as u64 + 1), out);
        });
        Ok(KeyDraw { seed, errors })
    }
}

/// The randomness of an encryption under a public key: for each item of the batch a ternary u and
/// Gaussian e_0 and e_1, (item, 3, N).
///
/// # Errors
/// [`CkksError::Randomness`].
pub fn public_encryption(
    context: &Context,
    items: usize,
    randomness: &Randomness,
) -> Result<Small> {
    let draw = randomness.draw()?;
    Ok(small(context, 3 * items, |index, out| {
        let (item, number) = (index / 3, index % 3);
        let mut stream = draw.stream(item_stream(item, number));
        match number {
            0 => ternary(&mut stream, out),
            _ => gaussian(&mut stream, out),
        }
    }))
}

/// The randomness of an encryption under a secret.
pub struct SecretEncryptionDraw {
    /// Gaussian errors, (item, N).
    pub errors: Small,
    /// For each item the seed of its uniform part.
    pub seeds: Vec<[u8; 32]>,
}

impl SecretEncryptionDraw {
    /// Draws that of a batch of so many items.
    ///
    /// # Errors
    /// [`CkksError::Randomness`].
    pub fn new(context: &Context, items: usize, randomness: &Randomness) -> Result<Self> {
        let draw = randomness.draw()?;
        let errors = small(context, items, |item, out| {
            gaussian(&mut draw.stream(item_stream(item, 0)), out);
        });
        let seed = |item| draw.stream(item_stream(item, 1)).bytes();
        Ok(SecretEncryptionDraw {
            errors,
            seeds: (0..items).map(seed).collect(),
        })
    }
}

/// The noise of a flooding.
pub struct FloodingDraw {
    /// Real coefficients, (item, N), to be rounded after the scale's power of two.
    pub coefficients: Zeroizing<Vec<f64>>,
    /// The standard deviation, whose mantissa the coefficients are already multiplied by.
    pub scale: ExactScale,
}

impl FloodingDraw {
    /// Draws that of a batch of so many plaintexts at a level.
    ///
    /// # Errors
    /// [`CkksError::Parameter`] for a standard deviation that is not finite, below one, or too large
    /// for the modulus at the level; [`CkksError::Randomness`].
    pub fn new(
        context: &Context,
        level: usize,
        items: usize,
        flooding: NoiseFlooding,
        randomness: &Randomness,
    ) -> Result<Self> {
        let bits = flooding.log2_standard_deviation;
        // Ten standard deviations stay within the centred range.
        let most = context.parameters().chain().log_q(level) - 1.0 - 10f64.log2();
        if !(0.0..=most).contains(&bits) {
            return Err(CkksError::Parameter {
                argument: "noise_flooding",
                found: bits.to_string(),
                expected: format!(
                    "0..={most:.1}, the binary logarithm of a standard deviation that the modulus at \
                     level {level} holds"
                ),
            });
        }
        let n = context.n();
        let scale = ExactScale::from_log2(bits);
        let draw = randomness.draw()?;
        let mut coefficients = Zeroizing::new(vec![0.0; items * n]);
        let chunks = coefficients.chunks_exact_mut(n).enumerate().collect();
        context.each(chunks, |(item, normals): (usize, &mut [f64])| {
            standard_normals(&mut draw.stream(item as u64), normals);
            scale.apply(normals);
        });
        Ok(FloodingDraw {
            coefficients,
            scale,
        })
    }
}

/// So many small polynomials, each by its index.
fn small(context: &Context, count: usize, fill: impl Fn(usize, &mut [i8]) + Send + Sync) -> Small {
    let n = context.n();
    let mut all = Zeroizing::new(vec![0; count * n]);
    let chunks = all.chunks_exact_mut(n).enumerate().collect();
    context.each(chunks, |(index, out)| fill(index, out));
    all
}

/// The number of one of an item's streams, three at most.
fn item_stream(item: usize, number: usize) -> u64 {
    (item as u64) << 2 | number as u64
}
