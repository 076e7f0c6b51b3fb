//! Constants in the forms that the cores take.

use super::product;
use crate::kernels::{Core, Factor};
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
