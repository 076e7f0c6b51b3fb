//! Parameter sets: ring degree, primes, digits, scale and their security.

mod builder;
mod plan;
mod preset;

pub use builder::ParametersBuilder;
pub use preset::Preset;

use crate::error::{CkksError, Result};
use crate::security::{self, SecurityLevel};
use fhelium_state::{Chain, Scale};
use sha2::{Digest, Sha256};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The largest distance of a level's prime from the nominal scale, in bits.
///
/// A rescale divides by the level's prime; with primes farther from the scale than this, a few
/// products would leave a scale of another size.
pub const MAX_PRIME_DRIFT_BITS: f64 = 0.5;

/// What two parameter sets must share for their values and keys to be exchanged: a hash of the
/// ring degree, all primes, the nominal scale and the digit size.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParametersId([u8; 16]);

impl ParametersId {
    /// The id with these bytes, as [`bytes`](Self::bytes) gave them.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        ParametersId(bytes)
    }

    /// Its bytes.
    pub const fn bytes(&self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for ParametersId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6]
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ParametersId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParametersId({self})")
    }
}

/// An immutable parameter set; clones share it.
///
/// [`Parameters::builder`] chooses ring and primes for a depth and a precision,
/// [`Parameters::from_primes`] takes them as they are, [`Preset`] names a few.
#[derive(Clone, PartialEq, Eq)]
pub struct Parameters(Arc<Facts>);

#[derive(PartialEq)]
struct Facts {
    chain: Chain,
    digit_size: usize,
    log_qp: f64,
    requested: SecurityLevel,
    security: Option<SecurityLevel>,
    id: ParametersId,
}

impl Eq for Facts {}

impl Parameters {
    /// Chooses parameters for `depth` rescales at a scale of 2^`scale_bits`.
    pub fn builder(depth: usize, scale_bits: u32) -> ParametersBuilder {
        ParametersBuilder::new(depth, scale_bits)
    }

    /// Parameters with the primes given: the first prime and one for each level, and the special
    /// primes of key switching.
    ///
    /// # Errors
    /// [`CkksError::Parameter`] for a ring degree outside 2^10 ... 2^17; for primes that are not
    /// below 2^61, prime, 1 modulo 2N and distinct; for a level's prime farther than
    /// [`MAX_PRIME_DRIFT_BITS`] from the scale; for a first prime below twice the scale; for special
    /// primes whose product is smaller than a quarter of the largest prime. [`CkksError::Security`]
    /// where the whole modulus is above the bound and `allow_insecure` is not set.
    pub fn from_primes(
        log_n: u32,
        moduli: Vec<u64>,
        special_moduli: Vec<u64>,
        scale: Scale,
        security: SecurityLevel,
        allow_insecure: bool,
    ) -> Result<Self> {
        check_log_n(log_n)?;
        plan::check_primes(log_n, &moduli, &special_moduli, &scale)?;
        let Some(digit_size) = plan::digit_size(&bits_of(&moduli), total_bits(&special_moduli))
        else {
            return Err(CkksError::Parameter {
                argument: "special_moduli",
                found: format!("a product of {:.1} bits", total_bits(&special_moduli)),
                expected: format!(
                    "at least {:.1} bits, those of the largest prime less {}",
                    bits_of(&moduli).into_iter().fold(0.0, f64::max) - plan::DIGIT_SLACK_BITS,
                    plan::DIGIT_SLACK_BITS
                ),
            });
        };
        let log_qp = total_bits(&moduli) + total_bits(&special_moduli);
        let found = security::security_of(log_n, log_qp);
        if found < Some(security) && !allow_insecure {
            let remedy = match security::smallest_log_n(log_qp, security) {
                Some(fits) => format!("N = 2^{fits} fits this modulus"),
                None => "no ring degree fits this modulus: use fewer or smaller primes".to_owned(),
            };
            return Err(CkksError::Security {
                log_qp,
                bound: security::max_log_qp(log_n, security).unwrap_or(0),
                security: security.bits(),
                log_n,
                remedy,
            });
        }
        let id = id_of(log_n, &moduli, &special_moduli, &scale, digit_size);
        Ok(Parameters(Arc::new(Facts {
            chain: Chain::new(log_n, moduli, special_moduli, scale),
            digit_size,
            log_qp,
            requested: security,
            security: found,
            id,
        })))
    }

    /// The modulus chain, which the level and scale rules ask.
    pub fn chain(&self) -> &Chain {
        &self.0.chain
    }

    /// Binary logarithm of the ring degree.
    pub fn log_n(&self) -> u32 {
        self.chain().log_n()
    }

    /// The ring degree N.
    pub fn n(&self) -> usize {
        self.chain().n()
    }

    /// Message slots: N / 2.
    pub fn slots(&self) -> usize {
        self.chain().slots()
    }

    /// The level of a fresh ciphertext.
    pub fn depth(&self) -> usize {
        self.chain().depth()
    }

    /// The nominal scale.
    pub fn scale(&self) -> &Scale {
        self.chain().scale()
    }

    /// The first prime, then one for each level.
    pub fn moduli(&self) -> &[u64] {
        self.chain().moduli()
    }

    /// The special primes of key switching.
    pub fn special_moduli(&self) -> &[u64] {
        self.chain().special_moduli()
    }

    /// Binary logarithm of the modulus of a fresh ciphertext.
    pub fn log_q(&self) -> f64 {
        self.chain().log_q(self.depth())
    }

    /// Binary logarithm of the modulus of evaluation keys, which security rests on.
    pub fn log_qp(&self) -> f64 {
        self.0.log_qp
    }

    /// Primes in one key-switching digit (the last digit may have fewer).
    pub fn digit_size(&self) -> usize {
        self.0.digit_size
    }

    /// Key-switching digits of a ciphertext at `level`.
    pub fn digits(&self, level: usize) -> usize {
        (level + 1).div_ceil(self.digit_size())
    }

    /// The primes of digit `digit` of a ciphertext at `level`, as indices into
    /// [`moduli`](Self::moduli).
    pub fn digit_range(&self, level: usize, digit: usize) -> Range<usize> {
        let start = digit * self.digit_size();
        start..(start + self.digit_size()).min(level + 1)
    }

    /// The bits of the highest level of the security table that these parameters reach: 256, 192,
    /// 128, or 0 when they are below all of them.
    pub fn security_bits(&self) -> u32 {
        self.0.security.map_or(0, SecurityLevel::bits)
    }

    /// The security that was asked for.
    pub fn requested_security(&self) -> SecurityLevel {
        self.0.requested
    }

    /// Whether they reach the security that was asked for.
    pub fn is_secure(&self) -> bool {
        self.0.security >= Some(self.0.requested)
    }

    /// The largest |message| that a ciphertext at level 0 and the nominal scale holds: q_0 / (2
    /// scale). Beyond it a result wraps around without an error.
    pub fn largest_message(&self) -> f64 {
        (self.chain().log_q(0) - 1.0 - self.scale().log2()).exp2()
    }

    /// The id that values and keys of these parameters carry.
    pub fn id(&self) -> ParametersId {
        self.0.id
    }

    /// Refuses a value or key of other parameters.
    pub(crate) fn check_id(
        &self,
        operation: &'static str,
        what: &'static str,
        found: ParametersId,
    ) -> Result<()> {
        if found == self.id() {
            return Ok(());
        }
        Err(CkksError::ParametersMismatch {
            operation,
            what,
            found,
            expected: self.id(),
        })
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "N = 2^{} ({} slots), depth {}, scale {}, log QP {:.1}",
            self.log_n(),
            self.slots(),
            self.depth(),
            self.scale(),
            self.log_qp(),
        )?;
        if let Some(bound) = security::max_log_qp(self.log_n(), self.0.requested) {
            write!(f, " of {bound}")?;
        }
        match self.security_bits() {
            0 => write!(f, ", INSECURE: below 128 bits"),
            bits if !self.is_secure() => {
                write!(
                    f,
                    ", INSECURE: {bits} bits, {} asked for",
                    self.0.requested.bits()
                )
            }
            bits => write!(f, ", {bits}-bit security"),
        }
    }
}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parameters({self}; {})", self.id())
    }
}

fn check_log_n(log_n: u32) -> Result<()> {
    if (security::MIN_LOG_N..=security::MAX_LOG_N).contains(&log_n) {
        return Ok(());
    }
    Err(CkksError::Parameter {
        argument: "log_n",
        found: log_n.to_string(),
        expected: format!("{}..={}", security::MIN_LOG_N, security::MAX_LOG_N),
    })
}

fn bits_of(primes: &[u64]) -> Vec<f64> {
    primes.iter().map(|&prime| (prime as f64).log2()).collect()
}

fn total_bits(primes: &[u64]) -> f64 {
    bits_of(primes).iter().sum()
}

fn id_of(
    log_n: u32,
    moduli: &[u64],
    special_moduli: &[u64],
    scale: &Scale,
    digit_size: usize,
) -> ParametersId {
    let mut hash = Sha256::new();
    hash.update(b"fhelium CKKS parameters 1");
    hash.update(log_n.to_le_bytes());
    hash.update((digit_size as u64).to_le_bytes());
    for primes in [moduli, special_moduli] {
        hash.update((primes.len() as u64).to_le_bytes());
        for prime in primes {
            hash.update(prime.to_le_bytes());
        }
    }
    hash.update(scale.exact().as_bytes());
    let mut id = [0; 16];
    id.copy_from_slice(&hash.finalize()[..16]);
    ParametersId(id)
}
