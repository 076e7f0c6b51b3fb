//! Constants in the forms that the cores take.

use super::product;
use crate::kernels::{Core, Factor, STEP};
use fhelium_ckks::arith::Modulus;

/// A fixed factor's word: a centred double's bits, or the integer.
pub(super) fn factor_word(core: Core, modulus: Modulus, w: u64) -> u64 {
    match core {
        Core::Fp64 => (modulus.centered(w) as f64).to_bits(),
        Core::Integer => w,
    }
}

/// A fixed factor.
pub(super) fn fixed_factor(core: Core, modulus: Modulus, w: u64) -> Factor {
    let shoup = match core {
        Core::Fp64 => 0,
        Core::Integer => modulus.shoup(w),
    };
    Factor {
        w: factor_word(core, modulus, w),
        shoup,
    }
}

/// A fixed factor's words.
pub(super) fn factor_words(core: Core, modulus: Modulus, w: u64) -> [u64; 2] {
    let Factor { w, shoup } = fixed_factor(core, modulus, w);
    [w, shoup]
}

/// `Scale` in ntt.cuh.
pub(super) fn scale_words(core: Core, modulus: Modulus, sum: u64, difference: u64) -> [u64; 4] {
    let ([sum, sum_shoup], [difference, difference_shoup]) = (
        factor_words(core, modulus, sum),
        factor_words(core, modulus, difference),
    );
    [sum, sum_shoup, difference, difference_shoup]
}

/// A row of factors of a base conversion from primes with product Q to `target`: Q/q_i for each
/// source, at `place` -Q, and behind it Q.
pub(super) fn conversion_row(
    core: Core,
    from: &[Modulus],
    target: Modulus,
    place: usize,
    words: usize,
) -> Vec<u64> {
    let word = |w| factor_word(core, target, w);
    let mut row = vec![word(0); words];
    for (index, factor) in row[..from.len()].iter_mut().enumerate() {
        let others = [&from[..index], &from[index + 1..]].concat();
        *factor = word(product(&others, target));
    }
    let whole = product(from, target);
    row[place] = word(target.neg(whole));
    row[place + 1] = word(whole);
    row
}

/// The multipliers of a base conversion as a product of matrices, see matrix.cuh: for each target a
/// row of the pieces m1 and m0 of each multiplier. Behind the sources comes one that is multiplied by
/// their product Q: a rescale's rest less the quotient.
pub(super) fn matrix_words(from: &[Modulus], to: &[Modulus], pieces: usize) -> Vec<u64> {
    let multiplier = |target: Modulus, piece: usize| {
        // Pieces come in eights: the low ones of four sources, then their high ones.
        let source = piece / (2 * STEP) * STEP + piece % STEP;
        let base = match source {
            source if source < from.len() => {
                product(&[&from[..source], &from[source + 1..]].concat(), target)
            }
            source if source == from.len() => product(from, target),
            _ => 0,
        };
        // The high piece stands for itself times 2^25.
        let is_high = piece / STEP % 2 == 1;
        let scale = if is_high { target.reduce(1 << CUT) } else { 1 };
        target.centered(target.mul(base, scale))
    };
    let mut words = Vec::with_capacity(2 * pieces * to.len());
    for &target in to {
        for piece in 0..pieces {
            let value = multiplier(target, piece);
            let high = (value + (1 << (CUT - 1))) >> CUT;
            let low = value - (high << CUT);
            words.extend([(high as f64).to_bits(), (low as f64).to_bits()]);
        }
    }
    words
}

/// Bits of a low piece.
const CUT: u32 = 25;
