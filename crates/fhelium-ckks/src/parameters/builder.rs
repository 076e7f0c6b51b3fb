//! Parameters from a depth and a precision.

use super::{Parameters, bits_of, check_log_n, plan, total_bits};
use crate::error::{CkksError, Result};
use crate::security::{self, SecurityLevel};
use fhelium_state::Scale;
use std::collections::BTreeSet;

/// The first prime lies this many bits above the scale, so that messages up to 2^8 and their noise
/// fit at level 0. At scale 2^40 it is still in the range of the fast cores.
const HEADROOM_BITS: f64 = 9.5;
const MIN_SCALE_BITS: u32 = 20;
const MAX_SCALE_BITS: u32 = 58;
/// The largest scale whose first prime, below 2^61, still has [`HEADROOM_BITS`].
const MAX_SCALE_BITS_WITH_HEADROOM: u32 = 51;
const MAX_FIRST_BITS: u32 = 60;
const MAX_DEPTH: usize = 200;
const MAX_SPECIAL_PRIMES: usize = 32;

/// Chooses ring degree, primes and digits; see [`Parameters::builder`].
///
/// The ring degree is the smallest whose security bound holds the primes. Among the special primes
/// that the bound leaves room for, those with the cheapest key switch are taken: as many and as
/// large as pays, below 2^49.5 where the fast cores gain by it.
#[derive(Clone, Debug)]
pub struct ParametersBuilder {
    depth: usize,
    scale_bits: u32,
    log_n: Option<u32>,
    first_bits: Option<u32>,
    special_primes: Option<usize>,
    security: SecurityLevel,
    allow_insecure: bool,
}

impl ParametersBuilder {
    pub(super) fn new(depth: usize, scale_bits: u32) -> Self {
        ParametersBuilder {
            depth,
            scale_bits,
            log_n: None,
            first_bits: None,
            special_primes: None,
            security: SecurityLevel::default(),
            allow_insecure: false,
        }
    }

    /// The ring degree N = 2^`log_n`, 10 to 17; the smallest secure one by default.
    #[must_use]
    pub fn log_n(mut self, log_n: u32) -> Self {
        self.log_n = Some(log_n);
        self
    }

    /// The bits of the first prime, which bounds messages at level 0: above the scale's bits and at
    /// most 60; 9.5 above the scale's by default, for |message| < 2^8.
    #[must_use]
    pub fn first_bits(mut self, first_bits: u32) -> Self {
        self.first_bits = Some(first_bits);
        self
    }

    /// How many special primes, 1 to 32; more make fewer digits and larger keys' primes.
    #[must_use]
    pub fn special_primes(mut self, count: usize) -> Self {
        self.special_primes = Some(count);
        self
    }

    /// The security to reach; 128 bits by default.
    #[must_use]
    pub fn security(mut self, security: SecurityLevel) -> Self {
        self.security = security;
        self
    }

    /// Accepts parameters below that security, for tests and experiments.
    #[must_use]
    pub fn allow_insecure(mut self, allow: bool) -> Self {
        self.allow_insecure = allow;
        self
    }

    /// The parameters.
    ///
    /// # Errors
    /// [`CkksError::Parameter`] for an argument outside its range or a scale near which there are
    /// too few primes; [`CkksError::Security`] where the bound does not hold the primes, with the
    /// ring degree or depth that fits.
    pub fn build(&self) -> Result<Parameters> {
        self.check_arguments()?;
        let candidates = match self.log_n {
            Some(log_n) => log_n..=log_n,
            None => security::MIN_LOG_N..=security::MAX_LOG_N,
        };
        // What would be chosen at a ring degree without room for it, for the error.
        let mut no_primes = None;
        for log_n in candidates.clone() {
            let Some(bound) = security::max_log_qp(log_n, self.security) else {
                continue;
            };
            // Skips the search for primes where nothing can fit.
            if self.least_bits() > f64::from(bound) {
                continue;
            }
            match self.at(log_n, Some(f64::from(bound))) {
                Ok(Some(parameters)) => return Ok(parameters),
                Ok(None) => {}
                Err(error) => no_primes = Some(error),
            }
        }
        if self.allow_insecure
            && let Some(parameters) = self.at(*candidates.end(), None)?
        {
            return Ok(parameters);
        }
        Err(no_primes.unwrap_or_else(|| self.over_budget(*candidates.end())))
    }

    fn check_arguments(&self) -> Result<()> {
        let refuse = |argument, found: String, expected: String| {
            Err(CkksError::Parameter {
                argument,
                found,
                expected,
            })
        };
        if self.depth > MAX_DEPTH {
            return refuse("depth", self.depth.to_string(), format!("0..={MAX_DEPTH}"));
        }
        if !(MIN_SCALE_BITS..=MAX_SCALE_BITS).contains(&self.scale_bits) {
            return refuse(
                "scale_bits",
                self.scale_bits.to_string(),
                format!("{MIN_SCALE_BITS}..={MAX_SCALE_BITS}"),
            );
        }
        if let Some(log_n) = self.log_n {
            check_log_n(log_n)?;
        }
        match self.first_bits {
            Some(bits) if !(self.scale_bits + 1..=MAX_FIRST_BITS).contains(&bits) => {
                return refuse(
                    "first_bits",
                    bits.to_string(),
                    format!(
                        "{}..={MAX_FIRST_BITS}, above scale_bits = {}",
                        self.scale_bits + 1,
                        self.scale_bits
                    ),
                );
            }
            None if self.scale_bits > MAX_SCALE_BITS_WITH_HEADROOM => {
                return refuse(
                    "scale_bits",
                    self.scale_bits.to_string(),
                    format!(
                        "at most {MAX_SCALE_BITS_WITH_HEADROOM}, so that messages up to 2^8 fit the \
                         first prime; for less head-room give first_bits, up to {MAX_FIRST_BITS}"
                    ),
                );
            }
            _ => {}
        }
        if let Some(count) = self.special_primes
            && !(1..=MAX_SPECIAL_PRIMES).contains(&count)
        {
            return refuse(
                "special_primes",
                count.to_string(),
                format!("1..={MAX_SPECIAL_PRIMES}"),
            );
        }
        Ok(())
    }

    fn first_size(&self) -> f64 {
        match self.first_bits {
            Some(bits) => f64::from(bits),
            None => f64::from(self.scale_bits) + HEADROOM_BITS,
        }
    }

    /// Bits of the level primes, as if each were the scale.
    fn nominal_bits(&self) -> Vec<f64> {
        let mut bits = vec![f64::from(self.scale_bits); self.depth + 1];
        bits[0] = self.first_size();
        bits
    }

    /// About the fewest bits that these arguments need, special primes counted.
    fn least_bits(&self) -> f64 {
        self.nominal_bits().iter().sum::<f64>() + self.first_size()
            - plan::DIGIT_SLACK_BITS
            - MAX_ESTIMATE_ERROR_BITS
    }

    /// Parameters at a ring degree and a bound on log QP, or as many special primes as pay without
    /// one; `None` where the bound has no room.
    fn at(&self, log_n: u32, bound: Option<f64>) -> Result<Option<Parameters>> {
        let mut used = BTreeSet::new();
        let levels = plan::level_primes(log_n, self.depth, self.scale_bits, &mut used)?;
        let Some(first) = plan::prime_below(log_n, self.first_size(), &mut used) else {
            return Ok(None);
        };
        let moduli = [vec![first], levels].concat();
        let room = bound.map_or(f64::INFINITY, |bound| bound - total_bits(&moduli));
        let Some(special) = plan::special(&bits_of(&moduli), room, self.special_primes) else {
            return Ok(None);
        };
        let special_moduli: Option<Vec<u64>> = (0..special.count)
            .map(|_| plan::prime_below(log_n, special.bits, &mut used))
            .collect();
        let Some(special_moduli) = special_moduli else {
            return Ok(None);
        };
        let scale = Scale::from_bits(self.scale_bits);
        Parameters::from_primes(
            log_n,
            moduli,
            special_moduli,
            scale,
            self.security,
            bound.is_none(),
        )
        .map(Some)
    }

    fn over_budget(&self, log_n: u32) -> CkksError {
        let fits = |depth: usize, log_n: u32| {
            let trial = ParametersBuilder {
                depth,
                log_n: Some(log_n),
                ..self.clone()
            };
            let room = security::max_log_qp(log_n, self.security).map_or(0.0, f64::from);
            let bits = trial.nominal_bits();
            plan::special(&bits, room - bits.iter().sum::<f64>(), self.special_primes).is_some()
        };
        let ring = (security::MIN_LOG_N..=security::MAX_LOG_N).find(|&n| fits(self.depth, n));
        let depth = (0..self.depth).rev().find(|&depth| fits(depth, log_n));
        let ring = ring.map(|log_n| format!("log_n = {log_n} fits this depth"));
        let depth = depth.map(|depth| format!("depth = {depth} fits this ring"));
        let remedy = match (ring, depth) {
            (Some(ring), Some(depth)) => format!("{ring}, {depth}"),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => "use a smaller scale_bits and depth".to_owned(),
        };
        CkksError::Security {
            log_qp: self.nominal_bits().iter().sum::<f64>() + self.first_size()
                - plan::DIGIT_SLACK_BITS,
            bound: security::max_log_qp(log_n, self.security).unwrap_or(0),
            security: self.security.bits(),
            log_n,
            remedy,
        }
    }
}

/// Level primes may together be this much smaller than as many scales.
const MAX_ESTIMATE_ERROR_BITS: f64 = 1.0;
