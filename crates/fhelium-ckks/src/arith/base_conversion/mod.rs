//! Coefficients from one set of primes to another.
//!
//! S. Halevi, Y. Polyakov, V. Shoup, "An Improved RNS Variant of the BFV Homomorphic Encryption
//! Scheme", CT-RSA 2019, section 2.2: with Q the product of the source primes q_i and
//! y_i = \[x_i (Q/q_i)^-1\] modulo q_i, the centred lift of x is sum y_i (Q/q_i) - v Q with
//! v = round(sum y_i / q_i). The quotients are summed in double precision, in the order of the
//! primes and with the same roundings in every core, so that every core gives the same bits; v is
//! exact unless x lies within k 2^-52 Q of the ends Q/2 of the centred range, k being the number of
//! source primes, where the other end's representative may be given.

mod kernel;

use std::sync::Arc;

use super::dispatch::Core;
use super::error::ArithError;
#[cfg(target_arch = "x86_64")]
use super::fp64::Fp64Field;
use super::modulus::Modulus;
use super::scalar::ScalarField;
use super::tier::Tier;
#[cfg(target_arch = "x86_64")]
pub(super) use kernel::implement_convert;
pub(super) use kernel::{Conversion, Convert};

/// Conversion of coefficient-domain limbs from one set of primes to another.
#[derive(Debug, Clone)]
pub struct BaseConverter {
    sources: usize,
    targets: usize,
    /// Each target prime belongs to one of them: those below 2^49.5 to a vector core, if all source
    /// primes are, the others to the scalar core.
    conversions: Vec<Arc<dyn Convert>>,
}

impl BaseConverter {
    /// The largest number of source primes.
    pub const MAX_SOURCES: usize = 256;

    /// Prepares the conversion from the primes `from` to the primes `to`. The source primes are
    /// distinct; a target prime may be a source prime too and then gets back that limb.
    ///
    /// # Errors
    /// [`ArithError::EmptyBasis`], [`ArithError::RepeatedPrime`], [`ArithError::BasisTooLarge`],
    /// [`ArithError::UnavailableTier`].
    pub fn new(from: &[Modulus], to: &[Modulus], tier: Tier) -> Result<Self, ArithError> {
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
        let core = Core::new(tier, from.iter().map(|q| q.value()).max().unwrap_or(0))?;
        let fast = |p: Modulus| !matches!(Core::new(tier, p.value()), Ok(Core::Scalar));
        let (fast, slow): (Vec<_>, Vec<_>) =
            to.iter().copied().enumerate().partition(|&(_, p)| fast(p));
        let mut conversions = Vec::new();
        for (core, to) in [(Core::Scalar, slow), (core, fast)] {
            if !to.is_empty() {
                conversions.push(convert_on(core, from, &to)?);
            }
        }
        Ok(Self {
            sources: from.len(),
            targets: to.len(),
            conversions,
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
            self.sources,
            "source limbs and primes differ in number"
        );
        assert_eq!(
            to_limbs.len(),
            self.targets,
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
        for conversion in &self.conversions {
            conversion.convert(from_limbs, to_limbs);
        }
    }
}

fn convert_on(
    core: Core,
    from: &[Modulus],
    to: &[(usize, Modulus)],
) -> Result<Arc<dyn Convert>, ArithError> {
    Ok(match core {
        Core::Scalar => Arc::new(Conversion::new(from, to, |modulus| ScalarField {
            modulus,
        })?),
        #[cfg(target_arch = "x86_64")]
        Core::Avx2(proof) => Arc::new(Conversion::new(from, to, |q| Fp64Field::new(proof, q))?),
        #[cfg(target_arch = "x86_64")]
        Core::Avx512(proof) => Arc::new(Conversion::new(from, to, |q| Fp64Field::new(proof, q))?),
    })
}
