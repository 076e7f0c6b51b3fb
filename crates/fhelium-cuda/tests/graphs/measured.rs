//! What memory work takes, found without running it.

use crate::{Function, Values, batches, bench, has_kernels};
use fhelium_ckks::CipherState;
use fhelium_cuda::{CudaError, StandIns};

/// Guards that the bytes of a replay are known before anything is there, that the work itself takes no
/// more, and that nothing but its memory is followed.
#[test]
fn what_work_takes_is_known_before_it_runs() {
    if !has_kernels() {
        return;
    }
    let mut bench = bench();
    let operands = batches(&mut bench);
    let device = &bench.device;
    let function = Function::new(&bench);
    let state = CipherState {
        level: 3,
        scale: bench.host.parameters().scale().clone(),
        parts: 2,
    };
    let like = |make: StandIns<'_>| {
        let shapes = operands[..2].iter().map(|a| a.batch_shape().to_vec());
        shapes
            .map(|shape| make.ciphertext(bench.secret, state.clone(), shape))
            .collect::<fhelium_cuda::Result<Values>>()
    };
    let before = device.memory();
    let mut leaked = None;
    let work = |inputs: &Values| {
        leaked = Some(inputs[0].clone());
        function.run(device, inputs)
    };
    let taken = device.measure(like, work).unwrap();
    let copied = device.measure(like, |inputs| {
        let here = device.download(&inputs[0])?;
        Ok::<_, CudaError>(vec![device.upload(&here)?])
    });
    assert_eq!(copied.unwrap(), 8 * operands[0].data().len());
    // What goes wrong on the way leaves nothing behind, either.
    let failed = device.measure(like, |inputs| {
        device.negate(&inputs[0])?;
        device.add(&inputs[0], &device.drop_levels(&inputs[1], 1)?)?;
        Ok::<Values, CudaError>(Vec::new())
    });
    assert!(matches!(failed, Err(CudaError::Ckks(_))), "{failed:?}");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        device.measure(like, |_| -> fhelium_cuda::Result<Values> {
            panic!("on the way")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(device.memory(), before, "nothing was taken");
    std::thread::scope(|scope| {
        let sum = scope.spawn(|| device.upload(&operands[0]).map(|a| device.add(&a, &a)));
        assert!(matches!(sum.join(), Ok(Ok(Ok(_)))), "the queue is free");
    });
    let leaked = leaked.unwrap();
    let error = device.add(&leaked, &leaked).unwrap_err();
    assert!(matches!(error, CudaError::Capture { .. }), "{error}");

    let inputs: Values = operands[..2]
        .iter()
        .map(|a| device.upload(a).unwrap())
        .collect();
    let graph = device
        .capture(&inputs, |inputs| function.run(device, inputs))
        .unwrap();
    let most = |work: &dyn Fn() -> fhelium_cuda::Result<Values>| {
        device.queue().reset_memory_peak();
        let before = device.memory().used;
        function.check(&bench, [&operands[0], &operands[1]], work().unwrap());
        device.memory().peak - before
    };
    assert_eq!(most(&|| graph.replay(&inputs)), taken);
    assert!(most(&|| function.run(device, &inputs)) <= taken);
}

/// Guards that what another thread does meanwhile runs, and is not followed.
#[test]
fn a_measurement_is_of_one_thread() {
    if !has_kernels() {
        return;
    }
    let mut bench = bench();
    let a = bench.ciphertext(3, 2, &[]);
    let device = &bench.device;
    let there = device.upload(&a).unwrap();
    let like = |make: StandIns<'_>| make.like(&there);
    let negated = |a: &fhelium_cuda::Ciphertext| device.negate(a).map(|negated| vec![negated]);
    let alone = device.measure(like, negated).unwrap();
    let begun = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let mut meanwhile = None;
        let taken = device.measure(like, |stand_in| {
            meanwhile = Some(scope.spawn(|| {
                begun.wait();
                let sum = device.add(&device.upload(&a)?, &there)?;
                device.download(&device.subtract(&sum, &there)?)
            }));
            begun.wait();
            // Time for the other thread to come as far as it comes.
            std::thread::sleep(std::time::Duration::from_millis(20));
            negated(stand_in)
        });
        assert_eq!(taken.unwrap(), alone);
        let found = meanwhile.unwrap().join().unwrap().unwrap();
        assert!(found.data() == a.data());
    });
}
