//! The moduli that levels, scales and rescales refer to.

use crate::{Scale, StateError};

/// A modulus chain: what level and scale rules need to know of a parameter set.
///
/// Level `l` uses the primes `moduli[0..=l]`; a rescale at level `l` divides by `moduli[l]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Chain {
    log_n: u32,
    moduli: Vec<u64>,
    special_moduli: Vec<u64>,
    scale: Scale,
}

impl Chain {
    /// A chain for ring degree `2^log_n`, with its nominal scale.
    ///
    /// `moduli` holds the first prime and then one for each level; `special_moduli` those of key
    /// switching. Primality and security are `fhelium-ckks`' concern.
    ///
    /// # Panics
    /// If `moduli` is empty.
    pub fn new(log_n: u32, moduli: Vec<u64>, special_moduli: Vec<u64>, scale: Scale) -> Self {
        assert!(
            !moduli.is_empty(),
            "a modulus chain holds at least the first prime"
        );
        Chain {
            log_n,
            moduli,
            special_moduli,
            scale,
        }
    }

    /// Binary logarithm of the ring degree.
    pub fn log_n(&self) -> u32 {
        self.log_n
    }

    /// The ring degree N.
    pub fn n(&self) -> usize {
        1 << self.log_n
    }

    /// Message slots: N / 2.
    pub fn slots(&self) -> usize {
        self.n() / 2
    }

    /// The level of a fresh ciphertext: the rescales that the chain allows.
    pub fn depth(&self) -> usize {
        self.moduli.len() - 1
    }

    /// The nominal scale.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// The first prime, then one for each level.
    pub fn moduli(&self) -> &[u64] {
        &self.moduli
    }

    /// The primes of key switching.
    pub fn special_moduli(&self) -> &[u64] {
        &self.special_moduli
    }

    /// Binary logarithm of the modulus at a level.
    ///
    /// # Panics
    /// If the level is above the depth.
    pub fn log_q(&self, level: usize) -> f64 {
        self.moduli[..=level]
            .iter()
            .map(|&q| (q as f64).log2())
            .sum()
    }

    /// Two scales closer than this relative distance add as one.
    ///
    /// The primes follow the scale only as closely as primes lie, so paths of products and
    /// rescales to one level end at scales that are nominally the same and differ by less than
    /// this: eight times the largest relative distance of a level's prime from the nominal
    /// scale, at least 2^-19 and at most 2^-7. A sum of such operands carries a relative error
    /// of at most that; operands that took the same path have the same scale exactly and carry
    /// none.
    pub fn scale_tolerance(&self) -> f64 {
        let farthest = self.moduli[1..]
            .iter()
            .map(|&q| Scale::from_integer(q).map_or(0.0, |q| q.log2_ratio(&self.scale).abs()))
            .fold(0.0, f64::max);
        (8.0 * farthest * std::f64::consts::LN_2).clamp(2f64.powi(-19), 2f64.powi(-7))
    }

    /// The least scale that a rescale may leave: the square root of the nominal scale.
    pub fn least_scale(&self) -> Scale {
        Scale::from_bits((self.scale.log2() / 2.0).floor().max(0.0) as u32)
    }

    /// Refuses a level outside the chain.
    pub fn check_level(&self, operation: &'static str, level: usize) -> Result<(), StateError> {
        if level > self.depth() {
            return Err(StateError::NoSuchLevel {
                operation,
                level,
                depth: self.depth(),
            });
        }
        Ok(())
    }

    /// Refuses a level outside the chain, a scale below one, and a scale that the modulus at the
    /// level cannot hold.
    pub fn check_encoding(
        &self,
        operation: &'static str,
        level: usize,
        scale: &Scale,
    ) -> Result<(), StateError> {
        self.check_level(operation, level)?;
        if scale.log2() < 0.0 {
            return Err(StateError::NotAScale {
                found: scale.to_string(),
            });
        }
        let bits = self.log_q(level);
        if scale.log2() >= bits - 1.0 {
            return Err(StateError::ScaleTooLarge {
                operation,
                scale: scale.clone(),
                level,
                bits,
            });
        }
        Ok(())
    }
}
