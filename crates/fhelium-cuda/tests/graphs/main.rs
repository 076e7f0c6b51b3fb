//! Guards that recorded work gives the CPU's residues again on whatever it is replayed on: by both
//! ways of replaying, on other streams, from several threads, and inside somebody else's capture.

#[path = "../bench/mod.rs"]
mod bench;
mod measured;
mod streams;

use bench::{Bench, has_kernels, open, parameters};
use fhelium_ckks::Ciphertext;
use fhelium_cuda::{Context, ContextOptions, CudaError, Graph, KeySwitchKey, Replay};

const WAYS: [Replay; 2] = [Replay::Launches, Replay::Graph];

/// A function of two ciphertexts with copies, results of several kinds and one that is an input.
struct Function {
    relinearization: KeySwitchKey,
    rotation: KeySwitchKey,
    step: i64,
}

type Values = Vec<fhelium_cuda::Ciphertext>;

impl Function {
    fn new(bench: &Bench) -> Self {
        let (step, rotation) = &bench.rotations[0];
        Function {
            relinearization: bench.device.upload_key(&bench.relinearization).unwrap(),
            rotation: bench.device.upload_key(rotation).unwrap(),
            step: *step,
        }
    }

    fn run(
        &self,
        device: &Context,
        inputs: &[fhelium_cuda::Ciphertext],
    ) -> fhelium_cuda::Result<Values> {
        let [a, b] = inputs else {
            panic!("two inputs");
        };
        let product = device.multiply_relinearize_rescale(a, b, &self.relinearization)?;
        let rotated = device.rotate(&product, self.step, &self.rotation)?;
        let sum = device.add(&product, &rotated)?;
        // Its launches overlap in a graph, too.
        let rescaled = device.rescale(&device.multiply(a, b)?)?;
        Ok(vec![
            sum.clone(),
            a.clone(),
            device.negate(b)?,
            sum,
            rescaled,
        ])
    }

    #[track_caller]
    fn check(&self, bench: &Bench, inputs: [&Ciphertext; 2], results: Values) {
        let host = &bench.host;
        let product = host
            .multiply_relinearize(inputs[0], inputs[1], &bench.relinearization)
            .and_then(|product| host.rescale(&product))
            .unwrap();
        let rotated = host
            .rotate(&product, self.step, &bench.rotations[0].1)
            .unwrap();
        let sum = host.add(&product, &rotated);
        let expected = [
            sum.clone(),
            Ok(inputs[0].clone()),
            host.negate(inputs[1]),
            sum,
            host.multiply(inputs[0], inputs[1])
                .and_then(|product| host.rescale(&product)),
        ];
        assert_eq!(results.len(), expected.len());
        for (index, (expected, found)) in expected.into_iter().zip(results).enumerate() {
            bench.same(&format!("result {index}"), expected, Ok(found));
        }
    }
}

/// Batches that broadcast in a way that needs copies.
fn batches(bench: &mut Bench) -> [Ciphertext; 4] {
    let shapes: [&[usize]; 4] = [&[2, 1], &[3], &[2, 1], &[3]];
    shapes.map(|shape| bench.ciphertext(3, 2, shape))
}

fn bench() -> Bench {
    Bench::new(&parameters(10, 3, 40, None), None)
}

#[test]
fn a_graph_gives_the_residues_for_whatever_it_is_bound_to() {
    if !has_kernels() {
        return;
    }
    let mut bench = bench();
    let operands = batches(&mut bench);
    let device = &bench.device;
    let function = Function::new(&bench);
    let on_device: Values = operands.iter().map(|a| device.upload(a).unwrap()).collect();
    let [a, b, c, d] = &operands;
    function.check(
        &bench,
        [a, b],
        function.run(device, &on_device[..2]).unwrap(),
    );
    let graph = device
        .capture(&on_device[..2], |inputs| function.run(device, inputs))
        .unwrap();
    let used = device.memory().used;
    for way in WAYS {
        let first = graph.replay_by(way, &on_device[..2]).unwrap();
        // While the first results live, the next are elsewhere.
        let second = graph.replay_by(way, &on_device[2..]).unwrap();
        let again = graph.replay_by(way, &on_device[2..]).unwrap();
        let mixed = [on_device[0].clone(), on_device[3].clone()];
        let third = graph.replay_by(way, &mixed).unwrap();
        function.check(&bench, [a, b], first);
        function.check(&bench, [c, d], second);
        function.check(&bench, [c, d], again);
        function.check(&bench, [a, d], third);
        // Steady: the same addresses again.
        for _ in 0..2 {
            function.check(&bench, [a, d], graph.replay_by(way, &mixed).unwrap());
        }
    }
    assert_eq!(device.memory().used, used, "a replay leaves nothing behind");
    let results = graph.replay(&on_device[..2]).unwrap();
    assert_eq!(results[0].buffer().address(), results[3].buffer().address());
    assert_eq!(
        results[1].buffer().address(),
        on_device[0].buffer().address()
    );
}

#[test]
fn one_input_may_stand_for_both_and_keys_may_be_inputs() {
    if !has_kernels() {
        return;
    }
    let mut bench = bench();
    let (a, b) = (bench.ciphertext(3, 2, &[]), bench.ciphertext(3, 2, &[]));
    let device = &bench.device;
    let (da, db) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
    let same = [da.clone(), da.clone()];
    let add = |inputs: &[fhelium_cuda::Ciphertext]| {
        device.add(&inputs[0], &inputs[1]).map(|sum| vec![sum])
    };
    let graph = device.capture(&same, add).unwrap();
    for way in WAYS {
        let sum = graph
            .replay_by(way, &[da.clone(), db.clone()])
            .unwrap()
            .remove(0);
        bench.same("add", bench.host.add(&a, &b), Ok(sum));
        let sum = graph.replay_by(way, &same).unwrap().remove(0);
        bench.same("add", bench.host.add(&a, &a), Ok(sum));
    }
    let key = device.upload_key(&bench.relinearization).unwrap();
    let uses = |keys: &[KeySwitchKey]| {
        device
            .multiply_relinearize(&da, &db, &keys[0])
            .map(|_| Vec::<KeySwitchKey>::new())
    };
    let graph = device.capture(std::slice::from_ref(&key), uses).unwrap();
    assert!(graph.replay(std::slice::from_ref(&key)).unwrap().is_empty());
}

#[test]
fn a_graph_keeps_what_it_reads_and_its_values_are_of_no_use_elsewhere() {
    if !has_kernels() {
        return;
    }
    let mut bench = bench();
    let (a, b) = (bench.ciphertext(2, 2, &[]), bench.ciphertext(2, 2, &[]));
    let device = &bench.device;
    let da = device.upload(&a).unwrap();
    let mut leaked = None;
    let graph = {
        let db = device.upload(&b).unwrap();
        device
            .capture(std::slice::from_ref(&da), |inputs| {
                leaked = Some(inputs[0].clone());
                device.add(&inputs[0], &db).map(|sum| vec![sum, db.clone()])
            })
            .unwrap()
    };
    // Would take the memory of b if that were free.
    let _other = device.upload(&a).unwrap();
    let results = graph.replay(std::slice::from_ref(&da)).unwrap();
    bench.same("add", bench.host.add(&a, &b), Ok(results[0].clone()));
    bench.same("constant", Ok(b.clone()), Ok(results[1].clone()));
    let leaked = leaked.unwrap();
    for error in [
        device.add(&leaked, &leaked).unwrap_err(),
        device.download(&leaked).unwrap_err(),
        graph.replay(&[leaked]).unwrap_err(),
    ] {
        assert!(matches!(error, CudaError::Capture { .. }), "{error}");
    }
    // Still as good as before, and what came from elsewhere outlives the graph.
    let results = graph.replay(std::slice::from_ref(&da)).unwrap();
    drop(graph);
    bench.same("add", bench.host.add(&a, &b), Ok(results[0].clone()));
    bench.same("constant", Ok(b), Ok(results[1].clone()));
}

#[test]
fn what_a_graph_cannot_hold_or_take_is_refused() {
    if !has_kernels() {
        return;
    }
    let mut bench = bench();
    let (a, low) = (bench.ciphertext(3, 2, &[]), bench.ciphertext(2, 2, &[]));
    let device = &bench.device;
    let (da, dlow) = (device.upload(&a).unwrap(), device.upload(&low).unwrap());
    let input = std::slice::from_ref(&da);
    let none = |result: fhelium_cuda::Result<Graph<fhelium_cuda::Ciphertext>>| result.unwrap_err();
    let other = Context::new(&bench.host, &open(), ContextOptions::default()).unwrap();
    let there = other.upload(&a).unwrap();
    for error in [
        none(device.capture(input, |_| device.upload(&a).map(|a| vec![a]))),
        none(device.capture(input, |inputs| device.download(&inputs[0]).map(|_| vec![]))),
        none(device.capture(input, |inputs| {
            device
                .capture(inputs, |_| Ok(vec![]))
                .map(|_: Graph<fhelium_cuda::Ciphertext>| vec![])
        })),
        none(device.capture(input, |inputs| {
            device.add(&inputs[0], &there).map(|sum| vec![sum])
        })),
    ] {
        assert!(matches!(error, CudaError::Capture { .. }), "{error}");
    }
    let graph = device
        .capture(input, |inputs| device.negate(&inputs[0]).map(|a| vec![a]))
        .unwrap();
    let error = graph.replay(&[dlow]).unwrap_err().to_string();
    assert!(
        error.contains("level 3") && error.contains("level 2"),
        "{error}"
    );
    let error = graph.replay(&[]).unwrap_err().to_string();
    assert!(error.contains("inputs: 1, and got 0"), "{error}");
    // A value of another stream is waited for.
    let negated = graph.replay(&[there]).unwrap().remove(0);
    bench.same("negate", bench.host.negate(&a), Ok(negated));

    device.queue().release_kept_memory();
    device.queue().set_memory_limit(Some(device.memory().used));
    let error = graph.replay(input).unwrap_err();
    assert_eq!(error.kind(), fhelium_ckks::ErrorKind::OutOfMemory);
    device.queue().set_memory_limit(None);
    let negated = graph.replay(input).unwrap().remove(0);
    bench.same("negate", bench.host.negate(&a), Ok(negated));
}

#[test]
fn replays_from_several_threads_do_not_mix() {
    if !has_kernels() {
        return;
    }
    let mut bench = bench();
    let operands: Vec<_> = (0..3).map(|_| bench.ciphertext(1, 2, &[])).collect();
    let device = &bench.device;
    let first = [device.upload(&operands[0]).unwrap()];
    let graph = device
        .capture(&first, |inputs| {
            let twice = device.add(&inputs[0], &inputs[0])?;
            device.subtract(&twice, &inputs[0]).map(|a| vec![a])
        })
        .unwrap();
    std::thread::scope(|scope| {
        for (index, operand) in operands.iter().enumerate() {
            let (graph, bench) = (&graph, &bench);
            scope.spawn(move || {
                let input = [bench.device.upload(operand).unwrap()];
                for round in 0..4 {
                    let way = WAYS[(index + round) % 2];
                    let result = graph.replay_by(way, &input).unwrap().remove(0);
                    bench.same("2a - a", Ok(operand.clone()), Ok(result));
                }
            });
        }
    });
}

/// Guards that what another thread does meanwhile is no part of a recording, and is not refused as if
/// it were: here it downloads a value that has to be waited for.
#[test]
fn a_recording_is_of_one_thread() {
    if !has_kernels() {
        return;
    }
    let mut bench = bench();
    let a = bench.ciphertext(3, 2, &[]);
    let device = &bench.device;
    let other = Context::new(&bench.host, &open(), ContextOptions::default()).unwrap();
    let there = other.upload(&a).unwrap();
    let input = [device.upload(&a).unwrap()];
    let begun = std::sync::Barrier::new(2);
    let found = std::thread::scope(|scope| {
        let mut meanwhile = None;
        let graph = device.capture(&input, |inputs| {
            meanwhile = Some(scope.spawn(|| {
                begun.wait();
                device.download(&there)
            }));
            begun.wait();
            // Long enough for the other thread to get to the queue, which it waits for.
            std::thread::sleep(std::time::Duration::from_millis(100));
            device.negate(&inputs[0]).map(|a| vec![a])
        });
        assert_eq!(graph.unwrap().steps(), 1);
        meanwhile.unwrap().join().unwrap()
    });
    assert_eq!(found.unwrap().data(), a.data());
}

/// Guards that a profile tells which kernels run, in which order and on how much memory.
#[test]
fn a_profile_names_each_launch_and_the_memory_that_it_is_given() {
    if !has_kernels() {
        return;
    }
    let mut bench = bench();
    let operands = [bench.ciphertext(1, 2, &[]), bench.ciphertext(1, 2, &[])];
    let device = &bench.device;
    let inputs = operands.each_ref().map(|a| device.upload(a).unwrap());
    let key = device.upload_key(&bench.relinearization).unwrap();
    let graph = device
        .capture(&inputs, |of| {
            let sum = device.add(&of[0], &of[1])?;
            Ok::<_, CudaError>(vec![device.multiply_relinearize(&sum, &of[1], &key)?])
        })
        .unwrap();
    let steps = graph.profile(&inputs, 1).unwrap();
    assert_eq!(steps.len(), graph.steps());
    assert!(steps[0].kernel.starts_with("add"), "{:?}", steps[0]);
    let bytes = 8 * inputs[0].buffer().words();
    assert_eq!(steps[0].bytes, 3 * bytes, "two operands and their sum");
    // One launch reads the whole key.
    let key_bytes = 8 * key.buffer().words();
    assert!(steps.iter().any(|step| step.bytes > key_bytes), "{steps:?}");
    for step in &steps {
        assert!(!step.kernel.is_empty() && step.bytes > 0, "{step:?}");
        assert!(!step.grid.contains(&0) && step.threads > 0, "{step:?}");
        assert!(step.in_turn.is_finite() && step.repeated >= 0.0, "{step:?}");
    }
    // The graph is as good as before.
    let result = graph.replay(&inputs).unwrap().remove(0);
    let sum = bench.host.add(&operands[0], &operands[1]).unwrap();
    let expected = bench
        .host
        .multiply_relinearize(&sum, &operands[1], &bench.relinearization);
    bench.same("the product", expected, Ok(result));
}
