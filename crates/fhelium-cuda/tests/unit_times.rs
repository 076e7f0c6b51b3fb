//! Guards that times of units are there for every parameter set, are measured once, and leave the
//! context as it was. How near they come to what operations take is a benchmark's matter
//! (benches/predictions.py).

mod bench;

use bench::{Bench, has_kernels, parameters};
use fhelium_cuda::Work;
use std::time::Duration;

/// One unit of a kind of work.
fn one(set: impl FnOnce(&mut Work)) -> Work {
    let mut work = Work::default();
    set(&mut work);
    work
}

#[test]
fn units_take_time_and_are_measured_once_beside_what_runs() {
    if !has_kernels() {
        return;
    }
    let mut bench = Bench::new(&parameters(10, 3, 40, None), None);
    let operand = bench.ciphertext(3, 2, &[]);
    let device = &bench.device;
    let value = device.upload(&operand).unwrap();
    let before = device.memory();
    let times = device.unit_times().unwrap();
    assert_eq!(device.memory(), before, "the memory is another stream's");
    assert!(times.launch() > Duration::ZERO);
    assert!(times.run() < Duration::from_secs(1));
    assert_eq!(times.of(Work::default()), Duration::ZERO);
    let units = [
        one(|work| work.launches = 1000),
        one(|work| work.sums = 1000),
        one(|work| work.products = 1000),
        one(|work| work.transforms = 1000),
        one(|work| work.digit_limbs = 1000),
        one(|work| work.key_products = 1000),
        one(|work| work.divisions = 1000),
        one(|work| work.encodings = 1000),
    ];
    let all: Duration = units.iter().map(|&unit| times.of(unit)).sum();
    assert!(all > times.of(units[0]), "more than launches: {times:?}");
    assert!(all < Duration::from_secs(1000), "{times:?}");
    assert_eq!(device.unit_times().unwrap(), times);
    assert_eq!(device.clone().unit_times().unwrap(), times);
    // What runs meanwhile is not affected.
    bench.same("-a", bench.host.negate(&operand), device.negate(&value));
}

/// Guards parameters of one level and of a few, with one digit and several.
#[test]
fn small_chains_have_times_too() {
    if !has_kernels() {
        return;
    }
    for (depth, special) in [(1, None), (2, Some(1))] {
        let bench = Bench::new(&parameters(10, depth, 40, special), None);
        let times = bench.device.unit_times().unwrap();
        assert!(times.launch() > Duration::ZERO, "depth {depth}: {times:?}");
    }
}

/// Guards that a recording holds nothing of a measurement within it.
#[test]
fn a_capture_does_not_see_the_measurement() {
    if !has_kernels() {
        return;
    }
    let mut bench = Bench::new(&parameters(10, 1, 40, None), None);
    let operand = bench.ciphertext(1, 2, &[]);
    let device = &bench.device;
    let inputs = [device.upload(&operand).unwrap()];
    device.negate(&inputs[0]).unwrap();
    let graph = device
        .capture(&inputs, |of| {
            device.unit_times()?;
            device.negate(&of[0]).map(|negated| vec![negated])
        })
        .unwrap();
    assert_eq!(graph.steps(), 1, "only the negation is recorded");
    let result = graph.replay(&inputs).unwrap().remove(0);
    bench.same("-a", bench.host.negate(&operand), Ok(result));
}
