//! Guards that every operation on a device gives the CPU's residues, for both cores, at every ring
//! degree, level, digit layout and batch shape, on uniform and on extreme residues.
//!
//! Without a GPU the kernels run on the host (tests/host/emulator), at the smaller ring degrees.

mod bench;

use bench::{Bench, Words, context_on, has_kernels, is_emulated, open, parameters};
use fhelium_ckks::Parameters;
use fhelium_cuda::{Context, ContextOptions, Core};

fn linear_operations(bench: &mut Bench, level: usize) {
    let depth = bench.host.parameters().depth();
    let shapes: [(&[usize], &[usize]); 5] = [
        (&[], &[]),
        (&[3], &[]),
        (&[], &[2]),
        (&[2, 1], &[3]),
        (&[1, 2], &[2]),
    ];
    for (left_shape, right_shape) in shapes {
        let (a, b) = (
            bench.ciphertext(level, 2, left_shape),
            bench.ciphertext(level, 2, right_shape),
        );
        let third = bench.ciphertext(level, 3, right_shape);
        let p = bench.plaintext(depth, right_shape);
        let (host, device) = (&bench.host, &bench.device);
        let (da, db, d3) = (
            device.upload(&a).unwrap(),
            device.upload(&b).unwrap(),
            device.upload(&third).unwrap(),
        );
        let dp = device.upload_plaintext(&p).unwrap();
        bench.same("add", host.add(&a, &b), device.add(&da, &db));
        bench.same("subtract", host.subtract(&a, &b), device.subtract(&da, &db));
        bench.same(
            "add three parts",
            host.add(&a, &third),
            device.add(&da, &d3),
        );
        bench.same(
            "subtract from three",
            host.subtract(&third, &a),
            device.subtract(&d3, &da),
        );
        bench.same(
            "subtract three",
            host.subtract(&a, &third),
            device.subtract(&da, &d3),
        );
        bench.same(
            "add plain",
            host.add_plain(&a, &p),
            device.add_plain(&da, &dp),
        );
        bench.same(
            "subtract plain",
            host.subtract_plain(&a, &p),
            device.subtract_plain(&da, &dp),
        );
        bench.same(
            "plain subtract",
            host.plain_subtract(&p, &third),
            device.plain_subtract(&dp, &d3),
        );
        if level > 0 {
            bench.same("multiply", host.multiply(&a, &b), device.multiply(&da, &db));
            bench.same(
                "multiply plain",
                host.multiply_plain(&a, &p),
                device.multiply_plain(&da, &dp),
            );
            bench.same(
                "multiply plain of three",
                host.multiply_plain(&third, &p),
                device.multiply_plain(&d3, &dp),
            );
        }
    }
    let a = bench.ciphertext(level, 3, &[2]);
    let square = bench.ciphertext(level, 2, &[2]);
    let (host, device) = (&bench.host, &bench.device);
    let da = device.upload(&a).unwrap();
    bench.same("negate", host.negate(&a), device.negate(&da));
    for factor in [0, 1, -1, 12345, i64::MAX, i64::MIN] {
        bench.same(
            "multiply integer",
            host.multiply_integer(&a, factor),
            device.multiply_integer(&da, factor),
        );
    }
    for count in 0..=level {
        bench.same(
            "drop levels",
            host.drop_levels(&a, count),
            device.drop_levels(&da, count),
        );
    }
    if level > 0 {
        let ds = device.upload(&square).unwrap();
        bench.same("square", host.square(&square), device.square(&ds));
    }
}

fn switching_operations(bench: &mut Bench, level: usize, shape: &[usize]) {
    let (a, b) = (
        bench.ciphertext(level, 2, shape),
        bench.ciphertext(level, 2, &[]),
    );
    let third = bench.ciphertext(level, 3, shape);
    let squared = bench
        .host
        .parameters()
        .scale()
        .times(bench.host.parameters().scale());
    let fits = squared.log2() < bench.host.parameters().chain().log_q(level) - 1.0;
    let wide = fits.then(|| bench.ciphertext_at(level, 3, shape, squared));
    let (host, device) = (&bench.host, &bench.device);
    let (da, db, d3) = (
        device.upload(&a).unwrap(),
        device.upload(&b).unwrap(),
        device.upload(&third).unwrap(),
    );
    let key = device.upload_key(&bench.relinearization).unwrap();
    let host_key = &bench.relinearization;
    bench.same(
        "relinearize",
        host.relinearize(&third, host_key),
        device.relinearize(&d3, &key),
    );
    if level > 0 {
        let product = host.multiply_relinearize(&a, &b, host_key).unwrap();
        bench.same(
            "multiply relinearize",
            Ok(product.clone()),
            device.multiply_relinearize(&da, &db, &key),
        );
        let device_product = device.multiply_relinearize(&da, &db, &key).unwrap();
        bench.same(
            "rescale",
            host.rescale(&product),
            device.rescale(&device_product),
        );
        bench.same(
            "multiply relinearize rescale",
            host.rescale(&product),
            device.multiply_relinearize_rescale(&da, &db, &key),
        );
        let square = host
            .multiply_relinearize(&a, &a, host_key)
            .and_then(|s| host.rescale(&s));
        bench.same(
            "square relinearize rescale",
            square,
            device.multiply_relinearize_rescale(&da, &da, &key),
        );
    }
    if let Some(wide) = wide.filter(|_| level > 0) {
        let dw = device.upload(&wide).unwrap();
        bench.same(
            "rescale of three parts",
            host.rescale(&wide),
            device.rescale(&dw),
        );
        bench.same(
            "relinearize rescale",
            host.relinearize(&wide, host_key)
                .and_then(|w| host.rescale(&w)),
            device.relinearize_rescale(&dw, &key),
        );
    }
    let conjugation = device.upload_key(&bench.conjugation).unwrap();
    bench.same(
        "conjugate",
        host.conjugate(&a, &bench.conjugation),
        device.conjugate(&da, &conjugation),
    );
    let rotations: Vec<_> = bench
        .rotations
        .iter()
        .map(|(step, key)| (*step, device.upload_key(key).unwrap()))
        .collect();
    let steps: Vec<_> = rotations.iter().map(|(step, key)| (*step, key)).collect();
    let hoisted = device.rotate_hoisted(&da, &steps).unwrap();
    for (((step, host_key), (_, key)), hoisted) in
        bench.rotations.iter().zip(&rotations).zip(hoisted)
    {
        let expected = host.rotate(&a, *step, host_key).unwrap();
        bench.same(
            "rotate",
            Ok(expected.clone()),
            device.rotate(&da, *step, key),
        );
        bench.same("rotate hoisted", Ok(expected), Ok(hoisted));
    }
}

fn transforms(bench: &mut Bench, level: usize) {
    let p = bench.plaintext(level, &[3]);
    let buffer = bench.device.queue().upload(p.data()).unwrap();
    bench.device.inverse(&buffer, level, 3).unwrap();
    let coefficients = bench.device.queue().download(&buffer).unwrap();
    bench.device.forward(&buffer, level, 3).unwrap();
    assert_eq!(bench.device.queue().download(&buffer).unwrap(), p.data());
    let (n, moduli) = (
        bench.host.parameters().n(),
        bench.host.parameters().moduli(),
    );
    for (index, limb) in coefficients.chunks_exact(n).enumerate() {
        let mut values = limb.to_vec();
        let ring =
            fhelium_ckks::arith::Limb::new(n, moduli[index % (level + 1)], bench.host.tier());
        ring.unwrap().forward(&mut values);
        assert_eq!(
            values,
            &p.data()[index * n..][..n],
            "limb {index} at N = {n}"
        );
    }
}

fn all_operations(parameters: &Parameters, core: Option<Core>, levels: &[usize]) {
    let mut bench = Bench::new(parameters, core);
    for &level in levels {
        transforms(&mut bench, level);
        linear_operations(&mut bench, level);
        switching_operations(&mut bench, level, &[]);
    }
    switching_operations(&mut bench, levels[levels.len() - 1], &[2]);
    // Nothing that an operation took may stay taken.
    let used = bench.device.memory().used;
    switching_operations(&mut bench, levels[0], &[]);
    assert_eq!(bench.device.memory().used, used);
}

const CORES: [Core; 2] = [Core::Fp64, Core::Integer];

#[test]
fn every_digit_layout_gives_the_residues_of_the_cpu() {
    if !has_kernels() {
        return;
    }
    // One prime a digit; several, the last digit short; one digit; those of matrices, with four steps at
    // once and with two more; more than matrices take.
    for (depth, special) in [(4, 1), (4, 2), (2, 3), (5, 4), (7, 6), (9, 10), (10, 20)] {
        for core in CORES {
            let parameters = parameters(10, depth, 40, Some(special));
            let levels = [0, 1, depth - 1, depth];
            // On the host the kernels take long.
            let levels = if is_emulated() {
                &levels[2..]
            } else {
                &levels[..]
            };
            all_operations(&parameters, Some(core), levels);
        }
    }
}

#[test]
fn kernels_of_their_own_give_the_residues_of_the_fused_ones() {
    if !has_kernels() {
        return;
    }
    for (depth, special) in [(2, 1), (4, 3), (5, 4), (6, 7)] {
        let mut bench = Bench::new(&parameters(10, depth, 40, Some(special)), Some(Core::Fp64));
        let options = ContextOptions {
            core: Some(Core::Fp64),
            unfused: true,
            ..ContextOptions::default()
        };
        bench.device = Context::new(&bench.host, &open(), options).unwrap();
        switching_operations(&mut bench, depth, &[]);
        switching_operations(&mut bench, 1, &[2]);
    }
}

/// Blocks that hold whole columns, of every height, are for conversions from several primes that fill the
/// device.
#[test]
fn conversions_of_whole_columns_give_the_residues_of_the_cpu() {
    if !has_kernels() {
        return;
    }
    let sizes = if is_emulated() {
        [(10, 5, 5), (11, 5, 4), (14, 4, 4)]
    } else {
        [(14, 19, 4), (15, 9, 7), (16, 13, 14)]
    };
    for (log_n, depth, special) in sizes {
        let parameters = parameters(log_n, depth, 40, Some(special));
        let mut bench = Bench::new(&parameters, Some(Core::Fp64));
        switching_operations(&mut bench, depth, &[]);
        if !is_emulated() {
            switching_operations(&mut bench, depth - 2, &[2]);
        }
    }
}

/// Where blocks of whole columns are fewer than places for them, several share a polynomial's targets.
#[test]
fn shares_of_whole_columns_give_the_residues_of_the_cpu() {
    if !has_kernels() || !is_emulated() {
        return;
    }
    let mut bench = Bench::new(&parameters(10, 11, 40, Some(9)), Some(Core::Fp64));
    bench.device = context_on(&bench.host, 1).unwrap();
    // Two digits, the last short; one.
    for level in [11, 5] {
        switching_operations(&mut bench, level, &[]);
    }
}

/// What the layouts above leave out: levels at which digits vanish or shrink, batches, and routes and cuts
/// for other numbers of multiprocessors.
#[test]
fn layouts_drawn_at_random_give_the_residues_of_the_cpu() {
    if !has_kernels() {
        return;
    }
    let mut words = Words(7);
    for round in 0..8 {
        let log_n = 10 + u32::from(words.below(4) == 0);
        let depth = 1 + words.below(9);
        let special = 1 + words.below(16);
        let bits = [25, 35, 45, 47][words.below(4)];
        let level = words.below(depth + 1);
        let shape: &[usize] = [&[][..], &[2], &[3]][words.below(3)];
        let of =
            format!("depth {depth}, {special} special primes, {bits} bits, at {level}, {shape:?}");
        let parameters = Parameters::builder(depth, bits)
            .log_n(log_n)
            .allow_insecure(true)
            .first_bits(bits + 2)
            .special_primes(special);
        let mut bench = Bench::new(&parameters.build().expect(&of), Some(Core::Fp64));
        if round % 2 == 0
            && let Some(device) = context_on(&bench.host, 1)
        {
            bench.device = device;
        }
        println!("2^{log_n}, {of}");
        switching_operations(&mut bench, level, shape);
    }
}

#[test]
fn contexts_with_less_shared_memory_leave_the_others_theirs() {
    if !has_kernels() {
        return;
    }
    let log_n = if is_emulated() { 10 } else { 15 };
    let [mut more, mut less] = [9, 4]
        .map(|special| Bench::new(&parameters(log_n, 9, 40, Some(special)), Some(Core::Fp64)));
    switching_operations(&mut less, 9, &[]);
    switching_operations(&mut more, 9, &[]);
}

#[test]
fn every_ring_degree_gives_the_residues_of_the_cpu() {
    if !has_kernels() {
        return;
    }
    let largest = if is_emulated() { 11 } else { 17 };
    for log_n in 11..=largest {
        for core in CORES {
            let parameters = parameters(log_n, 3, 40, Some(2));
            let levels: &[usize] = if log_n < 14 && !is_emulated() {
                &[0, 2, 3]
            } else {
                &[0, 3]
            };
            all_operations(&parameters, Some(core), levels);
        }
    }
}

#[test]
fn the_larger_passes_transform_as_the_cpu_does() {
    if !has_kernels() {
        return;
    }
    for log_n in 12..=17 {
        for core in CORES {
            let parameters = parameters(log_n, 2, 40, Some(1));
            let mut bench = Bench::new(&parameters, Some(core));
            transforms(&mut bench, 1);
            let squared = parameters.scale().times(parameters.scale());
            let a = bench.ciphertext_at(2, 2, &[], squared);
            let rescaled = bench.device.rescale(&bench.device.upload(&a).unwrap());
            bench.same("rescale", bench.host.rescale(&a), rescaled);
        }
    }
}

#[test]
fn primes_outside_the_fast_range_give_the_residues_of_the_cpu() {
    if !has_kernels() {
        return;
    }
    for (scale_bits, special) in [(25, 1), (45, 2), (51, 2), (58, 3)] {
        let parameters = parameters(10, 3, scale_bits, Some(special));
        all_operations(&parameters, None, &[0, 1, 3]);
    }
}

#[test]
fn memory_that_is_not_there_is_an_error_and_the_next_call_works() {
    if !has_kernels() {
        return;
    }
    let mut bench = Bench::new(&parameters(10, 3, 40, None), None);
    let a = bench.ciphertext(3, 2, &[]);
    let device = &bench.device;
    let da = device.upload(&a).unwrap();
    let key = device.upload_key(&bench.relinearization).unwrap();
    let used = device.memory().used;
    device.queue().set_memory_limit(Some(used + (64 << 10)));
    let error = device.multiply_relinearize(&da, &da, &key).unwrap_err();
    assert_eq!(
        error.kind(),
        fhelium_ckks::ErrorKind::OutOfMemory,
        "{error}"
    );
    assert_eq!(device.memory().used, used);
    device.queue().set_memory_limit(None);
    let expected = bench
        .host
        .multiply_relinearize(&a, &a, &bench.relinearization);
    bench.same(
        "after the limit",
        expected,
        device.multiply_relinearize(&da, &da, &key),
    );
}

#[test]
fn values_of_another_stream_are_waited_for_and_refusals_are_those_of_the_cpu() {
    if !has_kernels() {
        return;
    }
    let mut bench = Bench::new(&parameters(10, 2, 40, None), None);
    let (a, low) = (bench.ciphertext(2, 2, &[]), bench.ciphertext(1, 2, &[]));
    let other = Context::new(&bench.host, &open(), ContextOptions::default()).unwrap();
    let (here, there) = (bench.device.upload(&a).unwrap(), other.upload(&a).unwrap());
    bench.same(
        "add",
        bench.host.add(&a, &a),
        bench.device.add(&here, &there),
    );
    let device_low = bench.device.upload(&low).unwrap();
    let host_error = bench.host.add(&a, &low).unwrap_err();
    assert_eq!(
        bench
            .device
            .add(&here, &device_low)
            .unwrap_err()
            .to_string(),
        host_error.to_string()
    );
    let key = bench.device.upload_key(&bench.conjugation).unwrap();
    let host_error = bench.host.rotate(&a, 1, &bench.conjugation).unwrap_err();
    let error = bench.device.rotate(&here, 1, &key).unwrap_err();
    assert_eq!(error.to_string(), host_error.to_string());
}
