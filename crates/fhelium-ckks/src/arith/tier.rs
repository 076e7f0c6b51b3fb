//! Which vector instructions the kernels use.

use std::fmt;

use super::error::ArithError;

/// The environment variable that forces a tier: `scalar`, `avx2` or `avx512`.
pub const TIER_VARIABLE: &str = "FHELIUM_CPU_TIER";

/// A set of vector instructions. Every tier gives the same bits; they differ in speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// 64-bit integer arithmetic, on every CPU.
    Scalar,
    /// AVX2 and FMA: four double-precision lanes.
    Avx2,
    /// AVX-512 F, DQ and VL: eight double-precision lanes.
    Avx512,
}

impl Tier {
    const ALL: [Tier; 3] = [Tier::Scalar, Tier::Avx2, Tier::Avx512];

    /// The tier that `FHELIUM_CPU_TIER` names, else the widest one that this CPU runs.
    ///
    /// # Errors
    /// [`ArithError::UnknownTier`] or [`ArithError::UnavailableTier`] for a value of the variable
    /// that this build does not know or this CPU cannot run.
    pub fn detect() -> Result<Self, ArithError> {
        match std::env::var_os(TIER_VARIABLE) {
            Some(name) if !name.is_empty() => Self::from_name(&name.to_string_lossy()),
            _ => Ok(Self::available().last().copied().unwrap_or(Tier::Scalar)),
        }
    }

    /// The tier of that name.
    ///
    /// # Errors
    /// As [`detect`](Self::detect).
    pub fn from_name(name: &str) -> Result<Self, ArithError> {
        let known = Self::ALL.into_iter().find(|tier| tier.name() == name);
        known
            .ok_or_else(|| ArithError::UnknownTier {
                name: name.to_owned(),
                available: available_names(),
            })?
            .require()
    }

    /// The tiers that this CPU runs, narrowest first.
    pub fn available() -> Vec<Self> {
        Self::ALL
            .into_iter()
            .filter(|tier| tier.is_available())
            .collect()
    }

    /// The tier's name, as `FHELIUM_CPU_TIER` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Tier::Scalar => "scalar",
            Tier::Avx2 => "avx2",
            Tier::Avx512 => "avx512",
        }
    }

    /// Whether this CPU runs the tier.
    pub fn is_available(self) -> bool {
        match self {
            Tier::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Tier::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Tier::Avx512 => {
                Tier::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The tier itself, if this CPU runs it.
    pub(crate) fn require(self) -> Result<Self, ArithError> {
        if self.is_available() {
            Ok(self)
        } else {
            Err(ArithError::UnavailableTier {
                name: self.name(),
                available: available_names(),
            })
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn available_names() -> String {
    let names: Vec<_> = Tier::available().into_iter().map(Tier::name).collect();
    names.join(", ")
}
