//! The level, scale and part rules of each operation.

use crate::{Chain, Scale, StateError};

const RELINEARIZE: &str = "relinearize it first";

/// What a ciphertext's type says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CipherState {
    /// Rescales left; fresh is the chain's depth, the last is 0.
    pub level: usize,
    /// The exact scale.
    pub scale: Scale,
    /// Two, or three after a product that is not relinearized.
    pub parts: usize,
}

/// What a plaintext's type says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlainState {
    /// The level whose primes it holds; a higher one than a ciphertext's serves it as well.
    pub level: usize,
    /// The exact scale.
    pub scale: Scale,
}

impl CipherState {
    /// A fresh two-part ciphertext.
    pub fn new(level: usize, scale: Scale) -> Self {
        CipherState {
            level,
            scale,
            parts: 2,
        }
    }

    fn sum_scale(
        &self,
        chain: &Chain,
        operation: &'static str,
        scale: &Scale,
        level: usize,
    ) -> Result<Scale, StateError> {
        if !self.scale.is_close(scale, chain.scale_tolerance()) {
            return Err(StateError::ScaleMismatch {
                operation,
                left: self.scale.clone(),
                left_level: self.level,
                right: scale.clone(),
                right_level: level,
            });
        }
        Ok(self.scale.max(scale).clone())
    }

    /// A sum or difference of ciphertexts: equal levels, scales equal or nominally equal
    /// ([`Chain::scale_tolerance`]). The result has the larger scale and the larger number of
    /// parts.
    pub fn add(
        &self,
        chain: &Chain,
        operation: &'static str,
        other: &CipherState,
    ) -> Result<CipherState, StateError> {
        if self.level != other.level {
            return Err(StateError::LevelMismatch {
                operation,
                left: self.level,
                right: other.level,
            });
        }
        let scale = self.sum_scale(chain, operation, &other.scale, other.level)?;
        Ok(CipherState {
            level: self.level,
            scale,
            parts: self.parts.max(other.parts),
        })
    }

    /// A sum or difference with a plaintext, which may hold more levels than the ciphertext.
    pub fn add_plain(
        &self,
        chain: &Chain,
        operation: &'static str,
        plain: &PlainState,
    ) -> Result<CipherState, StateError> {
        self.check_plain_level(operation, plain)?;
        let scale = self.sum_scale(chain, operation, &plain.scale, plain.level)?;
        Ok(CipherState {
            level: self.level,
            scale,
            parts: self.parts,
        })
    }

    fn check_plain_level(
        &self,
        operation: &'static str,
        plain: &PlainState,
    ) -> Result<(), StateError> {
        if plain.level < self.level {
            return Err(StateError::LevelMismatch {
                operation,
                left: self.level,
                right: plain.level,
            });
        }
        Ok(())
    }

    /// The product of two-part ciphertexts at one level: three parts, the scales' product, which
    /// the modulus at that level must hold.
    pub fn multiply(
        &self,
        chain: &Chain,
        operation: &'static str,
        other: &CipherState,
    ) -> Result<CipherState, StateError> {
        for operand in [self, other] {
            operand.check_two_parts(operation)?;
        }
        if self.level != other.level {
            return Err(StateError::LevelMismatch {
                operation,
                left: self.level,
                right: other.level,
            });
        }
        let scale = self.product_scale(chain, operation, &other.scale)?;
        Ok(CipherState {
            level: self.level,
            scale,
            parts: 3,
        })
    }

    /// The product with a plaintext, which may hold more levels than the ciphertext.
    pub fn multiply_plain(
        &self,
        chain: &Chain,
        operation: &'static str,
        plain: &PlainState,
    ) -> Result<CipherState, StateError> {
        self.check_plain_level(operation, plain)?;
        let scale = self.product_scale(chain, operation, &plain.scale)?;
        Ok(CipherState {
            level: self.level,
            scale,
            parts: self.parts,
        })
    }

    fn product_scale(
        &self,
        chain: &Chain,
        operation: &'static str,
        scale: &Scale,
    ) -> Result<Scale, StateError> {
        let product = self.scale.times(scale);
        let bits = chain.log_q(self.level);
        if product.log2() >= bits - 1.0 {
            // Levels that this product lacks, in primes of the nominal scale.
            let lacking = ((product.log2() - bits + 1.0) / chain.scale().log2()).floor() + 1.0;
            return Err(StateError::LevelExhausted {
                operation,
                level: self.level,
                depth: chain.depth(),
                needed: chain.depth() + lacking.max(1.0) as usize,
                why: format!("a product of scale {product} does not fit the {bits:.1} bits left"),
            });
        }
        Ok(product)
    }

    /// Refuses a three-part operand.
    pub fn check_two_parts(&self, operation: &'static str) -> Result<(), StateError> {
        if self.parts != 2 {
            return Err(StateError::Parts {
                operation,
                found: self.parts,
                expected: 2,
                remedy: RELINEARIZE,
            });
        }
        Ok(())
    }

    /// A rotation or conjugation: two parts in, the same state out.
    pub fn automorphism(&self, operation: &'static str) -> Result<CipherState, StateError> {
        self.check_two_parts(operation)?;
        Ok(self.clone())
    }

    /// Relinearization: three parts in, two out.
    pub fn relinearize(&self) -> Result<CipherState, StateError> {
        if self.parts != 3 {
            return Err(StateError::Parts {
                operation: "relinearize",
                found: self.parts,
                expected: 3,
                remedy: "only a product of two ciphertexts needs it, once",
            });
        }
        Ok(CipherState {
            parts: 2,
            ..self.clone()
        })
    }

    /// A rescale: one level less, the scale divided by that level's prime.
    pub fn rescale(&self, chain: &Chain) -> Result<CipherState, StateError> {
        if self.level == 0 {
            return Err(StateError::LevelExhausted {
                operation: "rescale",
                level: 0,
                depth: chain.depth(),
                needed: chain.depth() + 1,
                why: "a rescale needs a prime to divide by".to_owned(),
            });
        }
        let scale = self.scale.over_prime(chain.moduli()[self.level]);
        let least = chain.least_scale();
        if scale.log2() < least.log2() {
            return Err(StateError::ScaleTooSmall {
                scale: self.scale.clone(),
                level: self.level,
                result: scale,
                least,
            });
        }
        Ok(CipherState {
            level: self.level - 1,
            scale,
            parts: self.parts,
        })
    }

    /// `count` levels less at the same scale, which the smaller modulus must still hold.
    pub fn drop_levels(&self, chain: &Chain, count: usize) -> Result<CipherState, StateError> {
        let Some(level) = self.level.checked_sub(count) else {
            return Err(StateError::DropTooMany {
                count,
                level: self.level,
            });
        };
        chain.check_encoding("drop_levels", level, &self.scale)?;
        Ok(CipherState {
            level,
            ..self.clone()
        })
    }
}
