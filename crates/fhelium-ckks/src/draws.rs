//! What key generation and encryption draw, in one order for the host and for devices: under the
//! same randomness both make the same keys and ciphertexts.
//!
//! Everything but the noise of a flooding is told by keys and stream numbers of ChaCha20 (64-bit block
//! number from zero, 64-bit stream number, words little-endian), so that a device can sample for
//! itself, word by word:
//!
//! - a **ternary** polynomial takes two bits at a time from the least on: 0, 1 and 2 stand for -1, 0
//!   and 1, and 3 is passed over;
//! - a **Gaussian** one takes one word a coefficient: the lowest bit is the sign, and the magnitude is
//!   the number of [`GAUSSIAN_TAILS`] above the other 63;
//! - a **uniform** one, whose key is a public seed and its number [`uniform_stream`], cuts each word
//!   to the modulus' bits and passes over those not below the modulus.

use crate::context::Context;
use crate::encoding::ExactScale;
use crate::encrypt::NoiseFlooding;
use crate::error::{CkksError, Result};
use crate::keys::SecretId;
use crate::random::{Draw, Randomness};
use crate::sampler::{gaussian, standard_normals, ternary};
use zeroize::Zeroizing;

pub use crate::sampler::{GAUSSIAN_TAILS, Purpose, uniform_stream};

/// Coefficients of small polynomials, zeroed when dropped.
pub type Small = Zeroizing<Vec<i8>>;

/// Small polynomials that are drawn but not sampled: groups, one for each item of a batch or digit
/// of a key, of so many members.
pub struct SmallDraw {
    draw: Draw,
    /// Groups.
    pub groups: usize,
    /// Polynomials of a group.
    pub members: usize,
    /// Whether the first member of a group is ternary; all others are Gaussian.
    pub ternary_first: bool,
    /// The stream of the first polynomial; members follow each other.
    pub first_stream: u64,
    /// Streams from one group to the next.
    pub group_step: u64,
}

impl SmallDraw {
    /// The streams' key: **whoever reads it knows the polynomials**.
    pub fn key(&self) -> &[u8; 32] {
        self.draw.key()
    }

    /// Samples them: (group, member, N).
    pub fn sample(&self, context: &Context) -> Small {
        let n = context.n();
        let mut all = Zeroizing::new(vec![0; self.groups * self.members * n]);
        let polynomials = all.chunks_exact_mut(n).enumerate().collect();
        context.each(polynomials, |(index, out)| {
            let (group, member) = (index / self.members, index % self.members);
            let number = self.first_stream + group as u64 * self.group_step + member as u64;
            let mut stream = self.draw.stream(number);
            if member == 0 && self.ternary_first {
                ternary(&mut stream, out);
            } else {
                gaussian(&mut stream, out);
            }
        });
        all
    }
}

/// A new secret.
pub struct SecretDraw {
    /// Its id.
    pub id: SecretId,
    /// Its coefficients: one ternary polynomial.
    pub coefficients: SmallDraw,
}

impl SecretDraw {
    /// Draws one.
    ///
    /// # Errors
    /// [`CkksError::Randomness`].
    pub fn new(randomness: &Randomness) -> Result<Self> {
        let draw = randomness.draw()?;
        Ok(SecretDraw {
            id: SecretId::from_bytes(draw.stream(1).bytes()),
            coefficients: SmallDraw {
                draw,
                groups: 1,
                members: 1,
                ternary_first: true,
                first_stream: 0,
                group_step: 0,
            },
        })
    }
}

/// The randomness of a public key, which has one digit, or of an evaluation key.
pub struct KeyDraw {
    /// The seed of the uniform halves.
    pub seed: [u8; 32],
    /// A Gaussian error for each digit.
    pub errors: SmallDraw,
}

impl KeyDraw {
    /// Draws that of a key of so many digits.
    ///
    /// # Errors
    /// [`CkksError::Randomness`].
    pub fn new(digits: usize, randomness: &Randomness) -> Result<Self> {
        let draw = randomness.draw()?;
        Ok(KeyDraw {
            seed: draw.stream(0).bytes(),
            errors: SmallDraw {
                draw,
                groups: digits,
                members: 1,
                ternary_first: false,
                first_stream: 1,
                group_step: 1,
            },
        })
    }
}

/// Streams of an item of a batch.
const ITEM_STREAMS: u64 = 4;

/// The randomness of an encryption under a public key: for each item of the batch a ternary u and
/// Gaussian e_0 and e_1.
///
/// # Errors
/// [`CkksError::Randomness`].
pub fn public_encryption(items: usize, randomness: &Randomness) -> Result<SmallDraw> {
    Ok(SmallDraw {
        draw: randomness.draw()?,
        groups: items,
        members: 3,
        ternary_first: true,
        first_stream: 0,
        group_step: ITEM_STREAMS,
    })
}

/// The randomness of an encryption under a secret.
pub struct SecretEncryptionDraw {
    /// A Gaussian error for each item.
    pub errors: SmallDraw,
    /// For each item the seed of its uniform part.
    pub seeds: Vec<[u8; 32]>,
}

impl SecretEncryptionDraw {
    /// Draws that of a batch of so many items.
    ///
    /// # Errors
    /// [`CkksError::Randomness`].
    pub fn new(items: usize, randomness: &Randomness) -> Result<Self> {
        let draw = randomness.draw()?;
        let seed = |item| draw.stream(item * ITEM_STREAMS + 1).bytes();
        Ok(SecretEncryptionDraw {
            seeds: (0..items as u64).map(seed).collect(),
            errors: SmallDraw {
                draw,
                groups: items,
                members: 1,
                ternary_first: false,
                first_stream: 0,
                group_step: ITEM_STREAMS,
            },
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
