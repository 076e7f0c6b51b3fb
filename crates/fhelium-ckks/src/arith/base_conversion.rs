//! Coefficients from one set of primes to another.
//!
//! S. Halevi, Y. Polyakov, V. Shoup, "An Improved RNS Variant of the BFV Homomorphic Encryption
//! Scheme", CT-RSA 2019, section 2.2: with Q the product of the source primes q_i and
//! y_i = \[x_i (Q/q_i)^-1\] modulo q_i, the centred lift of x is sum y_i (Q/q_i) - v Q with
//! v = round(sum y_i / q_i). The quotients are summed in double precision, in the order of the
//! primes and with the same roundings in every core, so that every core gives the same bits; v is
//! exact unless x lies within k 2^-52 Q of the ends Q/2 of the centred range, k being the number of
//! source primes, where the other end's representative may be given.

use super::error::ArithError;
use super::field::Field;
use super::modulus::Modulus;
use super::scalar::ScalarField;
use super::tier::Tier;

/// How many coefficients one step takes through all primes: with 64 source primes its scratch
/// stays within a level-2 cache.
const BLOCK: usize = 512;

/// Adding and subtracting this rounds a double of magnitude up to 2^51 to an integer.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Conversion of coefficient-domain limbs from the primes `from` to the primes `to`.
#[derive(Debug, Clone)]
pub struct BaseConverter {
    from: Vec<Source>,
    to: Vec<Target>,
}

#[derive(Debug, Clone)]
struct Source {
    modulus: Modulus,
    /// (Q / q_i)^-1 modulo q_i.
    inverse: u64,
    /// 1 / q_i.
    reciprocal: f64,
}

#[derive(Debug, Clone)]
struct Target {
    modulus: Modulus,
    /// Q / q_i modulo p_j for each source prime.
    factors: Vec<u64>,
    /// -Q modulo p_j.
    minus_q: u64,
}

impl BaseConverter {
    /// The largest number of source primes.
    pub const MAX_SOURCES: usize = 256;

    /// Prepares the conversion. The source primes are distinct; a target prime may be a source
    /// prime too and then gets back that limb.
    ///
    /// # Errors
    /// [`ArithError::EmptyBasis`], [`ArithError::RepeatedPrime`], [`ArithError::BasisTooLarge`],
    /// [`ArithError::UnavailableTier`].
    pub fn new(from: &[Modulus], to: &[Modulus], tier: Tier) -> Result<Self, ArithError> {
        tier.require()?;
        for (basis, role) in [(from, "source"), (to, "target")] {
            if basis.is_empty() {
                return Err(ArithError::EmptyBasis { role });
            }
        }
        if from.len() > Self::MAX_SOURCES {
            return Err(ArithError::BasisTooLarge {
                count: from.len(),
                max: Self::MAX_SOURCES,
            });
        }
        let product_except = |skip: Option<usize>, p: Modulus| {
            let others = from.iter().enumerate().filter(|&(i, _)| Some(i) != skip);
            others.fold(1, |product, (_, q)| p.mul(product, p.reduce(q.value())))
        };
        let source = |(i, &q): (usize, &Modulus)| {
            let inverse = q.inverse(product_except(Some(i), q));
            Ok(Source {
                modulus: q,
                inverse: inverse.map_err(|_| ArithError::RepeatedPrime { value: q.value() })?,
                reciprocal: 1.0 / q.value() as f64,
            })
        };
        let target = |&p: &Modulus| Target {
            modulus: p,
            factors: (0..from.len())
                .map(|i| product_except(Some(i), p))
                .collect(),
            minus_q: p.neg(product_except(None, p)),
        };
        Ok(Self {
            from: from
                .iter()
                .enumerate()
                .map(source)
                .collect::<Result<_, _>>()?,
            to: to.iter().map(target).collect(),
        })
    }

    /// Writes to each target limb the residues of the centred lift of the source limbs. All limbs
    /// hold canonical residues of coefficients and have one length.
    ///
    /// # Panics
    /// When the number of limbs differs from the number of primes, or lengths differ.
    pub fn convert(&self, from_limbs: &[&[u64]], to_limbs: &mut [&mut [u64]]) {
        assert_eq!(
            from_limbs.len(),
            self.from.len(),
            "source limbs and primes differ in number"
        );
        assert_eq!(
            to_limbs.len(),
            self.to.len(),
            "target limbs and primes differ in number"
        );
        let len = from_limbs[0].len();
        assert!(
            from_limbs.iter().all(|limb| limb.len() == len),
            "source limbs differ in length"
        );
        assert!(
            to_limbs.iter().all(|limb| limb.len() == len),
            "target limbs differ in length"
        );
        let mut scaled = vec![0; self.from.len() * BLOCK];
        let mut quotients = [0; BLOCK];
        for start in (0..len).step_by(BLOCK) {
            let block = start..len.min(start + BLOCK);
            let size = block.len();
            let mut sums = [0.0; BLOCK];
            for ((source, limb), scaled) in self
                .from
                .iter()
                .zip(from_limbs)
                .zip(scaled.chunks_exact_mut(BLOCK))
            {
                let field = ScalarField {
                    modulus: source.modulus,
                };
                let inverse = field.constant(source.inverse);
                for ((y, sum), &x) in scaled.iter_mut().zip(&mut sums).zip(&limb[block.clone()]) {
                    *y = field.mul_constant(x, inverse);
                    *sum += *y as f64 * source.reciprocal;
                }
            }
            for (quotient, sum) in quotients.iter_mut().zip(sums) {
                *quotient = ((sum + ROUND) - ROUND) as u64;
            }
            for (target, limb) in self.to.iter().zip(to_limbs.iter_mut()) {
                let field = ScalarField {
                    modulus: target.modulus,
                };
                for (index, out) in limb[block.clone()].iter_mut().enumerate() {
                    let mut sum = u128::from(quotients[index]) * u128::from(target.minus_q);
                    for (i, (&factor, scaled)) in target
                        .factors
                        .iter()
                        .zip(scaled.chunks_exact(BLOCK))
                        .enumerate()
                    {
                        if i != 0 && i % 32 == 0 {
                            sum = field.fold(sum);
                        }
                        sum = field.accumulate(sum, scaled[index], factor);
                    }
                    *out = field.finish(sum);
                }
            }
            debug_assert!(size <= BLOCK);
        }
    }
}
