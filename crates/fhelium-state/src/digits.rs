//! The digits of hybrid key switching.

use crate::Chain;

/// A digit may exceed the special modulus by this many bits.
///
/// A digit as large as P adds noise of the size of a fresh error; each bit more doubles that, which
/// two bits leave far below the scale.
pub const DIGIT_SLACK_BITS: f64 = 2.0;

/// The largest number of primes in a digit with which all digits stay within
/// [`DIGIT_SLACK_BITS`] of the special modulus.
///
/// `modulus_bits` holds the binary logarithms of the chain's primes in order; a digit is a run of
/// them. `None` if a single prime is too large already.
pub fn digit_size(modulus_bits: &[f64], special_bits: f64) -> Option<usize> {
    (1..=modulus_bits.len()).rev().find(|&size| {
        let fits = |digit: &[f64]| digit.iter().sum::<f64>() <= special_bits + DIGIT_SLACK_BITS;
        modulus_bits.chunks(size).all(fits)
    })
}

impl Chain {
    /// The primes of a digit, see [`digit_size`]; `None` if the special primes are too few for any.
    pub fn digit_size(&self) -> Option<usize> {
        let bits =
            |moduli: &[u64]| -> Vec<f64> { moduli.iter().map(|&q| (q as f64).log2()).collect() };
        digit_size(
            &bits(self.moduli()),
            bits(self.special_moduli()).iter().sum(),
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::{Chain, Scale};

    fn size(moduli: &[u64], special: &[u64]) -> Option<usize> {
        Chain::new(14, moduli.to_vec(), special.to_vec(), Scale::from_bits(40)).digit_size()
    }

    #[test]
    fn digits_are_as_large_as_the_special_modulus_allows() {
        let (q0, q, p) = (1 << 49, 1 << 40, 1 << 49);
        assert_eq!(size(&[q0, q, q, q], &[p, p]), Some(2));
        // 40 + 40 bits fit 98, and so do 49 + 40; three of them do not.
        assert_eq!(size(&[q0, q, q, q, q], &[p, p]), Some(2));
        assert_eq!(size(&[q0, q, q, q], &[p]), Some(1));
        // Two bits more than the special modulus are allowed, three are not.
        assert_eq!(size(&[1 << 51, q], &[p]), Some(1));
        assert_eq!(size(&[1 << 52, q], &[p]), None);
        assert_eq!(size(&[q0], &[]), None);
        // More special primes than chain primes: one digit holds all.
        assert_eq!(size(&[q0, q], &[p, p, p]), Some(2));
    }
}
