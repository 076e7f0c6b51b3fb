//! What passes may know of where a Program will run.

use std::collections::BTreeSet;

use fhelium_ir::OpKind;

/// Where a Program will run. [`Pipeline::for_target`](crate::Pipeline::for_target) hands it to the
/// passes, which keep of it what their [cache keys](crate::Pass::cache_key) then tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// What moving and computing residues costs there.
    pub rates: Rates,
    /// Operations that are carried out by something else than the standard kernels, and so must not
    /// become part of others.
    pub whole: BTreeSet<OpKind>,
}

/// What work on residues costs: nanoseconds, with all of a machine at work.
///
/// Only their ratios decide anything. The constants are estimates, the GPU's from the bandwidth and the
/// launches of an H200; rates that are measured are rounded, so that one machine gives the same decisions at each start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Starting an operation.
    pub launch: f64,
    /// Moving one residue to or from memory.
    pub word: f64,
    /// Adding one residue to another that is at hand.
    pub sum: f64,
    /// Multiplying two that are at hand.
    pub product: f64,
}

impl Rates {
    /// Two threads of a server's CPU with AVX2.
    pub const CPU: Rates = Rates {
        launch: 2000.0,
        word: 0.5,
        sum: 0.2,
        product: 0.6,
    };

    /// A data-centre GPU: one H200.
    pub const GPU: Rates = Rates {
        launch: 2500.0,
        word: 0.002,
        sum: 0.0004,
        product: 0.0012,
    };

    /// Measured rates, each rounded to the next power of two.
    #[must_use]
    pub fn rounded(self) -> Rates {
        let power = |rate: f64| rate.max(f64::MIN_POSITIVE).log2().round().exp2();
        Rates {
            launch: power(self.launch),
            word: power(self.word),
            sum: power(self.sum),
            product: power(self.product),
        }
    }

    /// The time of work that moves and computes at once, whichever takes longer.
    pub(crate) fn time(&self, work: Work) -> f64 {
        let memory = work.words as f64 * self.word;
        let arithmetic = work.sums as f64 * self.sum + work.products as f64 * self.product;
        self.launch + memory.max(arithmetic)
    }
}

impl Default for Rates {
    fn default() -> Self {
        Rates::CPU
    }
}

/// Counts of residues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Read and written.
    pub words: u64,
    /// Added.
    pub sums: u64,
    /// Multiplied.
    pub products: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_round_to_powers_of_two() {
        let measured = Rates {
            launch: 1900.0,
            word: 0.3,
            sum: 0.0,
            product: 1.5,
        };
        let rounded = measured.rounded();
        assert_eq!(
            (rounded.launch, rounded.word, rounded.product),
            (2048.0, 0.25, 2.0)
        );
        assert_eq!(rounded.rounded(), rounded);
    }
}
