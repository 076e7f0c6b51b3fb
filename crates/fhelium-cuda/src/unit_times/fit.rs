//! Times of units from times of operations.

use super::KINDS;

/// An operation's counts of work and the nanoseconds that it took.
pub(super) struct Sample {
    pub counts: [f64; KINDS],
    pub nanos: f64,
}

/// Rounds of the descent; tests show that these are enough.
const ROUNDS: usize = 4000;

/// The times, none below its `least`, for which the relative errors of all samples together have the
/// smallest sum of squares.
///
/// By coordinate descent, which takes one time after the other to its best value given the rest
/// (V. Franc, V. Hlavac, M. Navara, "Sequential coordinate-wise algorithm for the non-negative least
/// squares problem", 2005): it converges for bounded least squares, and here is little to compute.
pub(super) fn fit(samples: &[Sample], least: [f64; KINDS]) -> [f64; KINDS] {
    let rows: Vec<[f64; KINDS]> = samples
        .iter()
        .map(|sample| sample.counts.map(|count| count / sample.nanos))
        .collect();
    let mut times = least;
    // What is left of each row's aim, 1.
    let mut rest: Vec<f64> = rows
        .iter()
        .map(|row| 1.0 - row.iter().zip(times).map(|(a, time)| a * time).sum::<f64>())
        .collect();
    for _ in 0..ROUNDS {
        for kind in 0..KINDS {
            let square: f64 = rows.iter().map(|row| row[kind] * row[kind]).sum();
            if square == 0.0 {
                continue;
            }
            let slope: f64 = rows
                .iter()
                .zip(&rest)
                .map(|(row, rest)| row[kind] * rest)
                .sum();
            let time = (times[kind] + slope / square).max(least[kind]);
            let change = time - times[kind];
            times[kind] = time;
            for (row, rest) in rows.iter().zip(&mut rest) {
                *rest -= row[kind] * change;
            }
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operations that have a kind each beside the first, which all have, few and many.
    fn samples(times: [f64; KINDS], error: f64) -> Vec<Sample> {
        let mut samples = Vec::new();
        for kind in 0..KINDS {
            for size in [1.0, 50.0] {
                let mut counts = [0.0; KINDS];
                counts[0] = 3.0;
                counts[kind] += size;
                counts[(kind + 1) % KINDS] += 2.0;
                let nanos: f64 = counts.iter().zip(times).map(|(n, time)| n * time).sum();
                let sign = if samples.len() % 2 == 0 { 1.0 } else { -1.0 };
                let nanos = nanos * (1.0 + sign * error);
                samples.push(Sample { counts, nanos });
            }
        }
        samples
    }

    const TIMES: [f64; KINDS] = [3000.0, 90.0, 120.0, 300.0, 700.0, 250.0, 900.0, 20000.0];

    #[test]
    fn times_that_explain_everything_are_found() {
        let found = fit(&samples(TIMES, 0.0), [0.0; KINDS]);
        for (found, expected) in found.into_iter().zip(TIMES) {
            assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
        }
    }

    #[test]
    fn measurements_that_are_off_give_predictions_that_are_off_by_as_much() {
        let samples = samples(TIMES, 0.1);
        let found = fit(&samples, [0.0; KINDS]);
        for Sample { counts, nanos } in samples {
            let predicted: f64 = counts.iter().zip(found).map(|(n, time)| n * time).sum();
            assert!(
                (predicted / nanos - 1.0).abs() < 0.25,
                "{predicted} {nanos}"
            );
        }
    }

    #[test]
    fn no_time_is_below_its_least() {
        // The second kind seems to take less than nothing.
        let sample = |counts: [f64; 2], nanos| Sample {
            counts: std::array::from_fn(|kind| counts.get(kind).copied().unwrap_or_default()),
            nanos,
        };
        let samples = [sample([1.0, 0.0], 100.0), sample([1.0, 5.0], 80.0)];
        let mut least = [0.0; KINDS];
        least[0] = 10.0;
        let found = fit(&samples, least);
        assert!(found[0] > 80.0 && found[0] < 100.0, "{found:?}");
        assert_eq!(found[1], 0.0);
        least[0] = 150.0;
        assert_eq!(fit(&samples, least)[0], 150.0);
    }
}
