//! The distributions of secrets, errors and masks.
//!
//! Secrets and errors are drawn without branches or table look-ups that depend on their values.

use crate::arith::Modulus;
use crate::random::Stream;

/// floor(2^63 P(|X| >= k)) for k = 1, 2, ... where X is the discrete Gaussian on the integers with
/// the standard deviation 3.19 of the security guidelines; beyond |X| = 29 less than 2^-63 is left.
pub const GAUSSIAN_TAILS: [u64; 29] = [
    8069894584386546584,
    5873551606049182538,
    3978228207505332870,
    2495749044543551359,
    1444716942706073168,
    769310073137938730,
    375907609260799627,
    168210339772792835,
    68819443246633799,
    25708796472625943,
    8759777011222246,
    2719919018928688,
    769037087029867,
    197877652703122,
    46310241609192,
    9853620075794,
    1905414041748,
    334747753142,
    53414648995,
    7739511523,
    1018092084,
    121563291,
    13173197,
    1295368,
    115573,
    9355,
    687,
    46,
    3,
];

/// Fills `out` with discrete Gaussian errors of standard deviation 3.19.
///
/// Inversion of the cumulative distribution: every sample is compared with every tail probability
/// (one sign bit, 63 bits of precision), so time and memory access do not depend on it.
pub(crate) fn gaussian(stream: &mut Stream, out: &mut [i8]) {
    let mut rest = out;
    if rest.is_empty() {
        return;
    }
    stream.words(|words| {
        let count = rest.len().min(words.len());
        let (block, after) = std::mem::take(&mut rest).split_at_mut(count);
        for (value, &word) in block.iter_mut().zip(words) {
            let uniform = word >> 1;
            // A tail above the sample leaves a borrow in the top bit: both are below 2^63.
            let magnitude: u64 = GAUSSIAN_TAILS
                .iter()
                .map(|&tail| uniform.wrapping_sub(tail) >> 63)
                .sum();
            let sign = (word & 1) as i8;
            *value = (magnitude as i8 ^ -sign) + sign;
        }
        rest = after;
        !rest.is_empty()
    });
}

/// Fills `out` with -1, 0 and 1, each with probability 1/3.
///
/// Two random bits make one value; the fourth pattern is passed over, without a branch. How often
/// that happens says nothing about the values kept.
pub(crate) fn ternary(stream: &mut Stream, out: &mut [i8]) {
    let mut filled = 0;
    if out.is_empty() {
        return;
    }
    stream.words(|words| {
        for &word in words {
            for shift in (0..64).step_by(2) {
                let pattern = ((word >> shift) & 3) as i8;
                out[filled] = pattern - 1;
                filled += usize::from(pattern != 3);
                if filled == out.len() {
                    return false;
                }
            }
        }
        true
    });
}

/// Fills `out` with uniform residues, by rejection.
pub(crate) fn uniform(stream: &mut Stream, modulus: Modulus, out: &mut [u64]) {
    let mut filled = 0;
    if out.is_empty() {
        return;
    }
    let mask = u64::MAX >> (64 - modulus.bits());
    stream.words(|words| {
        for &word in words {
            let candidate = word & mask;
            out[filled] = candidate;
            filled += usize::from(candidate < modulus.value());
            if filled == out.len() {
                return false;
            }
        }
        true
    });
}

/// What the uniform half of a key or ciphertext expands for, so that one seed never serves two
/// purposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A public key.
    PublicKey = 1,
    /// An evaluation key.
    KeySwitchKey = 2,
    /// An encryption under a secret.
    Ciphertext = 3,
}

/// The number of the stream that the uniform residues of a digit and a limb are drawn from; limbs of
/// special moduli come after those of the moduli.
pub const fn uniform_stream(purpose: Purpose, digit: usize, limb: usize) -> u64 {
    // Both indices are far below 2^24.
    (purpose as u64) << 56 | (digit as u64) << 28 | limb as u64
}

/// Fills `out` with the uniform residues of digit `digit` and limb `limb` under a public seed.
pub(crate) fn uniform_from_seed(
    seed: &[u8; 32],
    purpose: Purpose,
    digit: usize,
    limb: usize,
    modulus: Modulus,
    out: &mut [u64],
) {
    let number = uniform_stream(purpose, digit, limb);
    uniform(&mut Stream::new(seed, number), modulus, out);
}

/// The residues of small signed coefficients.
pub(crate) fn lift(small: &[i8], modulus: Modulus, out: &mut [u64]) {
    let p = modulus.value() as i64;
    for (residue, &value) in out.iter_mut().zip(small) {
        let value = i64::from(value);
        *residue = (value + ((value >> 63) & p)) as u64;
    }
}

/// A standard normal sample (Box-Muller), for noise that floods: its precision is that of floats.
pub(crate) fn standard_normals(stream: &mut Stream, out: &mut [f64]) {
    let unit = |word: u64| ((word >> 11) as f64 + 0.5) * 2f64.powi(-53);
    let mut rest = out;
    if rest.is_empty() {
        return;
    }
    stream.words(|words| {
        for pair in words.as_chunks::<2>().0 {
            let radius = (-2.0 * unit(pair[0]).ln()).sqrt();
            let (sin, cos) = (std::f64::consts::TAU * unit(pair[1])).sin_cos();
            for normal in [radius * cos, radius * sin] {
                let Some((value, after)) = std::mem::take(&mut rest).split_first_mut() else {
                    return false;
                };
                *value = normal;
                rest = after;
            }
        }
        !rest.is_empty()
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::ERROR_STANDARD_DEVIATION;

    const COUNT: usize = 1 << 20;

    fn stream(seed: u8) -> Stream {
        Stream::new(&[seed; 32], 0)
    }

    /// Sum of (observed - expected)^2 / expected over classes expected at least 10 times, the rest
    /// put together; with its degrees of freedom.
    fn chi_square(classes: &[(f64, usize)]) -> (f64, usize) {
        let mut rest = (0.0, 0);
        let mut common = Vec::new();
        for &(expected, found) in classes {
            if expected >= 10.0 {
                common.push((expected, found));
            } else {
                rest = (rest.0 + expected, rest.1 + found);
            }
        }
        let all = common.iter().chain((rest.0 >= 10.0).then_some(&rest));
        let statistic = all
            .clone()
            .map(|&(expected, found)| (found as f64 - expected).powi(2) / expected)
            .sum();
        (statistic, all.count() - 1)
    }

    /// Passes with probability above 1 - 10^-9 for a right sampler (Wilson-Hilferty, six standard
    /// deviations); the seeds are fixed, so it passes always or never.
    fn assert_fits(classes: &[(f64, usize)]) {
        let (statistic, freedom) = chi_square(classes);
        let k = freedom as f64;
        let limit = k * (1.0 - 2.0 / (9.0 * k) + 6.0 * (2.0 / (9.0 * k)).sqrt()).powi(3);
        assert!(
            statistic < limit,
            "chi square {statistic:.1} of {freedom}, limit {limit:.1}"
        );
    }

    fn moments(values: &[i8]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        let variance = values
            .iter()
            .map(|&v| (f64::from(v) - mean).powi(2))
            .sum::<f64>()
            / n;
        (mean, variance)
    }

    #[test]
    fn tails_are_those_of_the_discrete_gaussian() {
        let weight = |k: i32| (-f64::from(k * k) / (2.0 * ERROR_STANDARD_DEVIATION.powi(2))).exp();
        let upper = |from: i32| (from..60).map(weight).sum::<f64>();
        let total = 1.0 + 2.0 * upper(1);
        for (index, &tail) in GAUSSIAN_TAILS.iter().enumerate() {
            let expected = 2.0 * upper(index as i32 + 1) / total * 2f64.powi(63);
            assert!(
                (tail as f64 - expected).abs() <= 1.0 + expected * 1e-13,
                "tail {index}"
            );
        }
        assert!(2.0 * upper(30) / total * 2f64.powi(63) < 1.0);
    }

    #[test]
    fn errors_have_the_gaussian_distribution() {
        let mut values = vec![0; COUNT];
        gaussian(&mut stream(1), &mut values);
        let (mean, variance) = moments(&values);
        let sigma = ERROR_STANDARD_DEVIATION;
        assert!(
            mean.abs() < 5.0 * sigma / (COUNT as f64).sqrt(),
            "mean {mean}"
        );
        let spread = 5.0 * sigma.powi(2) * (2.0 / COUNT as f64).sqrt();
        assert!(
            (variance - sigma.powi(2)).abs() < spread,
            "variance {variance}"
        );
        let tail = |k: usize| match k {
            0 => 2f64.powi(63),
            _ => GAUSSIAN_TAILS.get(k - 1).map_or(0.0, |&tail| tail as f64),
        };
        let classes: Vec<_> = (-29i8..=29)
            .map(|value| {
                let k = usize::from(value.unsigned_abs());
                let both = (tail(k) - tail(k + 1)) * 2f64.powi(-63);
                let expected = if k == 0 { both } else { both / 2.0 } * COUNT as f64;
                (expected, values.iter().filter(|&&v| v == value).count())
            })
            .collect();
        assert_fits(&classes);
    }

    #[test]
    fn secrets_are_uniform_over_three_values() {
        let mut values = vec![7; COUNT];
        ternary(&mut stream(2), &mut values);
        let classes = [-1, 0, 1].map(|value| {
            (
                COUNT as f64 / 3.0,
                values.iter().filter(|&&v| v == value).count(),
            )
        });
        assert_eq!(classes.iter().map(|(_, count)| count).sum::<usize>(), COUNT);
        assert_fits(&classes);
        // Neighbours are independent: the nine pairs are equally frequent.
        let pairs: Vec<_> = (0..9)
            .map(|pair| {
                let wanted = [pair / 3 - 1, pair % 3 - 1];
                let found = values
                    .as_chunks::<2>()
                    .0
                    .iter()
                    .filter(|&&v| v == wanted)
                    .count();
                (COUNT as f64 / 18.0, found)
            })
            .collect();
        assert_fits(&pairs);
    }

    #[test]
    fn masks_are_uniform_below_the_prime() {
        // Just above a power of two, where masking rejects almost half.
        for prime in [1_048_583, (1 << 60) + 33] {
            let modulus = Modulus::new(prime).unwrap();
            let mut values = vec![0; 1 << 17];
            uniform(&mut stream(3), modulus, &mut values);
            assert!(values.iter().all(|&value| value < prime));
            let classes: Vec<_> = (0..64u128)
                .map(|class| {
                    let bucket = |v: u64| u128::from(v) * 64 / u128::from(prime);
                    let found = values.iter().filter(|&&v| bucket(v) == class).count();
                    (values.len() as f64 / 64.0, found)
                })
                .collect();
            assert_fits(&classes);
        }
    }

    #[test]
    fn seeded_residues_depend_on_every_index() {
        let modulus = Modulus::new(1_048_583).unwrap();
        let draw = |seed: u8, purpose, digit, limb| {
            let mut out = [0; 8];
            uniform_from_seed(&[seed; 32], purpose, digit, limb, modulus, &mut out);
            out
        };
        let first = draw(0, Purpose::KeySwitchKey, 0, 0);
        assert_eq!(first, draw(0, Purpose::KeySwitchKey, 0, 0));
        for other in [
            draw(1, Purpose::KeySwitchKey, 0, 0),
            draw(0, Purpose::PublicKey, 0, 0),
            draw(0, Purpose::KeySwitchKey, 1, 0),
            draw(0, Purpose::KeySwitchKey, 0, 1),
        ] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn flooding_noise_is_standard_normal() {
        let mut values = vec![0.0; 1 << 18];
        standard_normals(&mut stream(4), &mut values);
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| v * v).sum::<f64>() / n;
        assert!(mean.abs() < 5.0 / n.sqrt() && (variance - 1.0).abs() < 5.0 * (2.0 / n).sqrt());
    }
}
