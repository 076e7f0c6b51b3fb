//! How long a run is expected to take.

use super::Manifest;
use crate::{Device, Engine};
use fhelium_ckks::UnitTimes;
use fhelium_ir::OpKind;
use fhelium_passes::analysis::Cost;
use std::time::Duration;

/// The name of the host's own kernels among an operation's implementations.
const HOST_KERNEL: &str = "host";

/// The time that a run is expected to take with an engine's threads: the counted work, each unit
/// at the time that [`unit_times`](fhelium_ckks::Context::unit_times) measures on this machine for
/// the engine's parameters. Work that is kept between calls and clear tensors count nothing.
///
/// `None` where an operation on encrypted values runs in another implementation than the host's
/// own kernel, whose time is not known before it runs.
pub fn predicted_time(manifest: &Manifest, engine: &Engine) -> Option<Duration> {
    let mut work = Cost::default();
    for entry in manifest.operations.iter().filter(|entry| !entry.prologue) {
        if matches!(entry.operation, OpKind::Tensor(_)) {
            continue;
        }
        if entry.device != Device::Cpu || &*entry.implementation != HOST_KERNEL {
            return None;
        }
        work += entry.cost;
    }
    Some(time_of(work, engine.context().unit_times()))
}

/// The time of counted work.
fn time_of(work: Cost, times: &UnitTimes) -> Duration {
    let parts = [
        (work.transforms, times.transform),
        (work.products, times.product),
        (work.sums, times.sum),
        (work.conversions, times.conversion),
        (work.key_products, times.key_product),
        (work.encodings, times.encoding),
        (work.rounds, times.round),
    ];
    let nanos: f64 = parts.iter().map(|&(count, time)| count as f64 * time).sum();
    Duration::from_secs_f64(nanos / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OperationBackend;
    use fhelium_ir::Ckks;

    #[test]
    fn host_kernels_are_known_by_name() {
        let backend = OperationBackend::standard();
        for &operation in Ckks::ALL {
            let known = backend.available(operation.into());
            assert!(known.iter().any(|kernel| kernel.name() == HOST_KERNEL));
        }
    }

    /// Times of which every one has another weight.
    const TIMES: UnitTimes = UnitTimes {
        transform: 1e3,
        product: 2e3,
        sum: 4e3,
        conversion: 8e3,
        key_product: 16e3,
        encoding: 32e3,
        round: 64e3,
    };

    #[test]
    fn every_count_is_weighed_once_and_sums_add_up() {
        let one = Cost {
            transforms: 1,
            products: 1,
            sums: 1,
            conversions: 1,
            key_products: 1,
            encodings: 1,
            rounds: 1,
            key_switches: 1,
        };
        assert_eq!(time_of(one, &TIMES), Duration::from_micros(127));
        let twice = [one, one].into_iter().sum();
        assert_eq!(time_of(twice, &TIMES), Duration::from_micros(254));
        assert_eq!(time_of(Cost::default(), &TIMES), Duration::ZERO);
    }
}
