//! Constants in the forms that the cores take.

use super::product;
use crate::kernels::{Core, Factor, STEP, TILE_TARGETS};
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

/// `Scale` in ntt.cu.
pub(super) fn scale_words(core: Core, modulus: Modulus, sum: u64, difference: u64) -> [u64; 4] {
    two_factors(core, modulus, sum, difference)
}

/// `Closing` in switch.cu.
pub(super) fn closing_words(core: Core, modulus: Modulus, moved: u64, added: u64) -> [u64; 4] {
    two_factors(core, modulus, moved, added)
}

fn two_factors(core: Core, modulus: Modulus, first: u64, second: u64) -> [u64; 4] {
    let (first, second) = (
        fixed_factor(core, modulus, first),
        fixed_factor(core, modulus, second),
    );
    [first.w, first.shoup, second.w, second.shoup]
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

/// The multipliers of a base conversion as a product of matrices, see matrix.cuh: for each tile of
/// targets, step and lane a multiplier's pieces m1 and m0. The pieces of a step are those of each
/// source, low and high, of the quotient v, and with `rest` of a rescale's rest, which is multiplied
/// by Q.
pub(super) fn matrix_words(
    from: &[Modulus],
    to: &[Modulus],
    pieces: usize,
    rest: bool,
) -> Vec<u64> {
    let multiplier = |target: Modulus, piece: usize| {
        let base = match piece.checked_sub(2 * from.len()) {
            None => {
                let index = piece / 2;
                product(&[&from[..index], &from[index + 1..]].concat(), target)
            }
            Some(0) => target.neg(product(from, target)),
            Some(1 | 2) if rest => product(from, target),
            Some(_) => 0,
        };
        // The high piece stands for itself times 2^25.
        let high = if piece < 2 * from.len() {
            piece % 2 == 1
        } else {
            piece == 2 * from.len() + 2
        };
        let scale = if high { target.reduce(1 << CUT) } else { 1 };
        target.centered(target.mul(base, scale))
    };
    let mut words = Vec::new();
    for tile in to.chunks(TILE_TARGETS) {
        for step in 0..pieces / STEP {
            for lane in 0..TILE_TARGETS * STEP {
                let value = tile
                    .get(lane / STEP)
                    .map_or(0, |&target| multiplier(target, step * STEP + lane % STEP));
                let high = (value + (1 << (CUT - 1))) >> CUT;
                let low = value - (high << CUT);
                words.extend([(high as f64).to_bits(), (low as f64).to_bits()]);
            }
        }
    }
    words
}

/// Bits of a low piece.
const CUT: u32 = 25;
