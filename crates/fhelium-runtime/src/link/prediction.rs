//! How long a run is expected to take.

use super::Manifest;
use crate::{Device, Engine};
use fhelium_ckks::UnitTimes;
use fhelium_cuda::Work;
use fhelium_ir::OpKind;
use fhelium_passes::analysis::Cost;
use std::time::Duration;

/// The name of the host's own kernels among an operation's implementations.
const HOST_KERNEL: &str = "host";
/// The name of a GPU's.
pub(super) const DEVICE_KERNEL: &str = "cuda";

/// The time that a run is expected to take on an engine: the counted work, each unit at the time that
/// is measured for the engine's parameters by [`unit_times`](fhelium_ckks::Context::unit_times) with
/// its threads, or by [that of its device](fhelium_cuda::Context::unit_times). Work that is kept
/// between calls and clear tensors count nothing.
///
/// `None` where an operation on encrypted values runs in another implementation than these kernels,
/// whose time is not known before it runs, or where a device has no memory to measure with.
pub fn predicted_time(manifest: &Manifest, engine: &Engine) -> Option<Duration> {
    let mut on_host = Cost::default();
    let mut on_device = Vec::new();
    for entry in manifest.operations.iter().filter(|entry| !entry.prologue) {
        if matches!(entry.operation, OpKind::Tensor(_)) {
            continue;
        }
        match (entry.device, &*entry.implementation) {
            (Device::Cpu, HOST_KERNEL) => on_host += entry.cost,
            (Device::Cuda(_), DEVICE_KERNEL) => on_device.push(work_of(entry.cost)),
            _ => return None,
        }
    }
    let host = match on_host == Cost::default() {
        true => Duration::ZERO,
        false => time_of(on_host, engine.context().unit_times()),
    };
    if on_device.is_empty() {
        return Some(host);
    }
    let times = engine.cuda()?.unit_times().ok()?;
    let device: Duration = on_device.into_iter().map(|work| times.of(work)).sum();
    Some(host + times.run() + device)
}

/// A device's work of an operation: it takes a batch at once, and what a key switch does beside its
/// inner products goes with them.
fn work_of(cost: Cost) -> Work {
    let (transforms, divisions) = match cost.key_switches {
        0 => (cost.transforms, 0),
        _ => (0, cost.transforms.saturating_sub(cost.digit_limbs)),
    };
    Work {
        launches: cost.batch_rounds,
        sums: cost.sums,
        products: cost.products,
        transforms,
        digit_limbs: cost.digit_limbs,
        key_products: cost.key_products,
        divisions,
        encodings: cost.encodings,
    }
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
    fn kernels_are_known_by_name() {
        let backend = OperationBackend::standard();
        for &operation in Ckks::ALL {
            let known = backend.available(operation.into());
            for name in [HOST_KERNEL, DEVICE_KERNEL] {
                assert!(
                    known.iter().any(|kernel| kernel.name() == name),
                    "{operation:?}"
                );
            }
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
            batch_rounds: 1,
            digit_limbs: 1,
            key_switches: 1,
        };
        assert_eq!(time_of(one, &TIMES), Duration::from_micros(127));
        let twice = [one, one].into_iter().sum();
        assert_eq!(time_of(twice, &TIMES), Duration::from_micros(254));
        assert_eq!(time_of(Cost::default(), &TIMES), Duration::ZERO);
    }

    /// Guards that a device's time is of all that is counted, once: in a key switch, what is no digit's
    /// limb is divided, and a batch is launched as one.
    #[test]
    fn a_devices_work_is_what_is_counted() {
        let switch = Cost {
            transforms: 50,
            products: 6,
            sums: 9,
            key_products: 60,
            rounds: 21,
            batch_rounds: 7,
            digit_limbs: 30,
            key_switches: 3,
            ..Cost::default()
        };
        let expected = Work {
            launches: 7,
            sums: 9,
            products: 6,
            digit_limbs: 30,
            key_products: 60,
            divisions: 20,
            ..Work::default()
        };
        assert_eq!(work_of(switch), expected);
        let encoding = Cost {
            transforms: 8,
            encodings: 2,
            rounds: 4,
            batch_rounds: 2,
            ..Cost::default()
        };
        let expected = Work {
            launches: 2,
            transforms: 8,
            encodings: 2,
            ..Work::default()
        };
        assert_eq!(work_of(encoding), expected);
    }
}
