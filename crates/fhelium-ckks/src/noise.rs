//! How far results may be from the exact ones.
//!
//! Errors are bounded slot by slot, in the canonical embedding (A. Costache, L. Nuernberger, R.
//! Player, "Optimisations and Tradeoffs for HElib", CT-RSA 2023, and I. Iliashenko's earlier use of
//! the same heuristic): a polynomial with independent coefficients of variance V takes at a root of
//! unity a value that is close to a complex Gaussian of variance N V. The bounds are for high
//! probability, not for the worst case, and rest on that independence; each holds for a slot but
//! for a probability of about 2^-45. Measured errors lie well below, usually by a factor of three to
//! ten for each operation and by more over many.

use crate::parameters::Parameters;
use crate::security::ERROR_STANDARD_DEVIATION;
use fhelium_state::Scale;

/// |Z| <= 6 but for a probability of e^-36, Z a complex Gaussian of variance 1.
const ONE: f64 = 6.0;

/// |Z W| <= 18 but for a probability of about 8 e^-36, Z and W independent.
const PRODUCT: f64 = 18.0;

/// |Z W W| <= 84 but for a probability of about 8 e^-36: |Z|^2 = 12 and |W|^2 = 24 are the likeliest
/// there.
const PRODUCT_OF_THREE: f64 = 84.0;

/// Bound on the relative error of the floating-point transforms, against the largest value.
const TRANSFORM: f64 = 1.0 / (1u64 << 49) as f64;

/// A value's size and the bound on its error.
#[derive(Clone, Debug, PartialEq)]
pub struct NoiseEstimate {
    /// The polynomials: 1 for a plaintext, 2 or 3 for a ciphertext.
    pub parts: usize,
    /// The level.
    pub level: usize,
    /// The scale.
    pub scale: Scale,
    /// The largest |message| of a slot.
    pub magnitude: f64,
    /// The largest error of a slot, in the message's unit.
    pub error: f64,
}

/// Bounds for one parameter set; made by [`Parameters::noise`].
#[derive(Clone, Copy, Debug)]
pub struct NoiseModel<'a> {
    parameters: &'a Parameters,
}

impl Parameters {
    /// Bounds on the errors of these parameters' operations.
    pub fn noise(&self) -> NoiseModel<'_> {
        NoiseModel { parameters: self }
    }
}

impl NoiseModel<'_> {
    /// A plaintext of |values| up to `magnitude`: its coefficients are rounded.
    ///
    /// The roundings are taken as independent. They are not where all but a few slots are zero and
    /// those few below N units of 1 / scale: then their sum may reach N / 2 units.
    pub fn encode(&self, level: usize, scale: &Scale, magnitude: f64) -> NoiseEstimate {
        let error = self.gaussian(1.0 / 12.0) / scale.to_f64() + TRANSFORM * magnitude;
        NoiseEstimate {
            parts: 1,
            level,
            scale: scale.clone(),
            magnitude,
            error,
        }
    }

    /// Encryption of a plaintext under a public key: e_0 + e_1 s + e u.
    #[must_use]
    pub fn encrypt_public(&self, plain: &NoiseEstimate) -> NoiseEstimate {
        let variance = ERROR_STANDARD_DEVIATION.powi(2);
        let small = self.product(variance, 2.0 / 3.0);
        self.encrypted(plain, self.gaussian(variance) + 2.0 * small)
    }

    /// Encryption of a plaintext under the secret: e.
    #[must_use]
    pub fn encrypt_secret(&self, plain: &NoiseEstimate) -> NoiseEstimate {
        self.encrypted(plain, self.gaussian(ERROR_STANDARD_DEVIATION.powi(2)))
    }

    fn encrypted(&self, plain: &NoiseEstimate, error: f64) -> NoiseEstimate {
        NoiseEstimate {
            parts: 2,
            ..self.more(plain, error)
        }
    }

    /// A sum or difference. Scales that are only nominally equal add their relative difference.
    #[must_use]
    pub fn add(&self, left: &NoiseEstimate, right: &NoiseEstimate) -> NoiseEstimate {
        let apart = left.scale.log2_ratio(&right.scale).abs().exp2() - 1.0;
        let smaller = if left.scale.log2_ratio(&right.scale) < 0.0 {
            left
        } else {
            right
        };
        NoiseEstimate {
            parts: left.parts.max(right.parts),
            level: left.level,
            scale: left.scale.max(&right.scale).clone(),
            magnitude: left.magnitude + right.magnitude,
            error: left.error + right.error + apart * (smaller.magnitude + smaller.error),
        }
    }

    /// A product, with a plaintext too.
    #[must_use]
    pub fn multiply(&self, left: &NoiseEstimate, right: &NoiseEstimate) -> NoiseEstimate {
        NoiseEstimate {
            parts: left.parts + right.parts - 1,
            level: left.level.min(right.level),
            scale: left.scale.times(&right.scale),
            magnitude: left.magnitude * right.magnitude,
            error: left.magnitude * right.error
                + right.magnitude * left.error
                + left.error * right.error,
        }
    }

    /// An integer multiple.
    #[must_use]
    pub fn multiply_integer(&self, value: &NoiseEstimate, factor: i64) -> NoiseEstimate {
        let factor = factor.unsigned_abs() as f64;
        NoiseEstimate {
            magnitude: value.magnitude * factor,
            error: value.error * factor,
            ..value.clone()
        }
    }

    /// A key switch: relinearization, rotation or conjugation. Each digit is multiplied by a fresh
    /// error and divided by P, rounded.
    #[must_use]
    pub fn key_switch(&self, value: &NoiseEstimate) -> NoiseEstimate {
        let parameters = self.parameters;
        let log2 = |prime: &u64| (*prime as f64).log2();
        let special: f64 = parameters.special_moduli().iter().map(log2).sum();
        // Sum of the digits' squares over P^2: each is uniform in an interval of its modulus.
        let squares: f64 = (0..parameters.digits(value.level))
            .map(|digit| {
                let primes = &parameters.moduli()[parameters.digit_range(value.level, digit)];
                (2.0 * (primes.iter().map(log2).sum::<f64>() - special)).exp2()
            })
            .sum();
        let digits = self.product(squares / 12.0, ERROR_STANDARD_DEVIATION.powi(2));
        let switched = NoiseEstimate {
            parts: value.parts.min(2),
            ..value.clone()
        };
        self.more(&switched, digits + self.rounding(2))
    }

    /// A rescale at the value's level.
    #[must_use]
    pub fn rescale(&self, value: &NoiseEstimate) -> NoiseEstimate {
        let prime = self.parameters.moduli()[value.level];
        let lower = NoiseEstimate {
            level: value.level.saturating_sub(1),
            scale: value.scale.over_prime(prime),
            ..value.clone()
        };
        self.more(&lower, self.rounding(value.parts))
    }

    /// Levels dropped: exact.
    #[must_use]
    pub fn drop_levels(&self, value: &NoiseEstimate, count: usize) -> NoiseEstimate {
        NoiseEstimate {
            level: value.level.saturating_sub(count),
            ..value.clone()
        }
    }

    /// The error of the decoded message.
    pub fn decode(&self, value: &NoiseEstimate) -> f64 {
        value.error + TRANSFORM * (value.magnitude + value.error)
    }

    /// Rounding all parts after a division: errors uniform in [-1/2, 1/2], the second times s and
    /// the third times s^2.
    fn rounding(&self, parts: usize) -> f64 {
        let (error, secret) = (1.0 / 12.0, 2.0 / 3.0);
        let second = self.product(error, secret);
        let n = self.parameters.n() as f64;
        let third = PRODUCT_OF_THREE * (n * error).sqrt() * n * secret;
        self.gaussian(error)
            + if parts > 1 { second } else { 0.0 }
            + if parts > 2 { third } else { 0.0 }
    }

    /// Bound on the slots of a polynomial with coefficients of that variance.
    fn gaussian(&self, variance: f64) -> f64 {
        ONE * (self.parameters.n() as f64 * variance).sqrt()
    }

    /// Bound on the slots of the product of two such polynomials.
    fn product(&self, left: f64, right: f64) -> f64 {
        PRODUCT * self.parameters.n() as f64 * (left * right).sqrt()
    }

    fn more(&self, value: &NoiseEstimate, error: f64) -> NoiseEstimate {
        let error = value.error + error / value.scale.to_f64();
        NoiseEstimate {
            error,
            ..value.clone()
        }
    }
}
