//! Work and replays on a stream of another library's, and in its capture.

use crate::{Function, Values, batches, bench, has_kernels};
use cudarc::driver::sys::{self, CUstreamCaptureMode};
use fhelium_cuda::{CudaError, Graph, Replay, StandIns};

/// A stream as another library would make it, in the device's context, which is then this thread's.
fn foreign_stream(context: usize) -> sys::CUstream {
    let mut stream = std::ptr::null_mut();
    // SAFETY: the device is open, and the place is live.
    unsafe {
        sys::cuCtxSetCurrent(context as sys::CUcontext)
            .result()
            .unwrap();
        sys::cuStreamCreate(&mut stream, 1).result().unwrap();
    }
    stream
}

/// Guards that replays settle on one way, on whatever streams they are, with the residues all along.
#[test]
fn the_faster_way_is_known_after_some_replays() {
    if !has_kernels() {
        return;
    }
    let mut bench = bench();
    let operand = bench.ciphertext(1, 2, &[]);
    let device = &bench.device;
    let input = [device.upload(&operand).unwrap()];
    let graph = device
        .capture(&input, |of| {
            device.negate(&of[0]).map(|negated| vec![negated])
        })
        .unwrap();
    assert_eq!(graph.chosen(), None);
    assert!(format!("{graph:?}").contains("not decided"), "{graph:?}");
    let stream = foreign_stream(device.device().primary_context());
    let mut replays = 0;
    while graph.chosen().is_none() {
        replays += 1;
        assert!(replays < 40, "not decided after {replays} replays");
        let result = if replays % 5 == 0 {
            // SAFETY: the stream lives to the end of the test.
            unsafe { device.on_stream(stream as usize, || graph.replay(&input)) }
        } else {
            graph.replay(&input)
        };
        bench.same(
            "-a",
            bench.host.negate(&operand),
            Ok(result.unwrap().remove(0)),
        );
    }
    let same: Graph<_> = device
        .capture(&input, |of| Ok::<_, CudaError>(of.to_vec()))
        .unwrap();
    assert_eq!(same.chosen(), Some(Replay::Launches), "nothing is launched");
    let result = same.replay(&input).unwrap().remove(0);
    assert_eq!(result.buffer().address(), input[0].buffer().address());
    let chosen = graph.chosen();
    for _ in 0..3 {
        let result = graph.replay(&input).unwrap().remove(0);
        bench.same("-a", bench.host.negate(&operand), Ok(result));
    }
    assert_eq!(graph.chosen(), chosen, "decided once");
    // SAFETY: made above; what ran on it was waited for.
    unsafe { sys::cuStreamDestroy_v2(stream) }.result().unwrap();
}

#[test]
fn work_on_another_librarys_stream_and_in_its_capture_gives_the_residues() {
    if !has_kernels() {
        return;
    }
    let mut bench = bench();
    let operands = batches(&mut bench);
    let device = &bench.device;
    let function = Function::new(&bench);
    let inputs: Values = operands[..2]
        .iter()
        .map(|a| device.upload(a).unwrap())
        .collect();
    let graph = device
        .capture(&inputs, |inputs| function.run(device, inputs))
        .unwrap();
    let stream = foreign_stream(device.device().primary_context());
    let on_stream = |work: &dyn Fn() -> fhelium_cuda::Result<Values>| {
        // SAFETY: the stream lives to the end of the test.
        unsafe { device.on_stream(stream as usize, work) }
    };
    let expected = [&operands[0], &operands[1]];
    function.check(
        &bench,
        expected,
        on_stream(&|| function.run(device, &inputs)).unwrap(),
    );
    function.check(
        &bench,
        expected,
        on_stream(&|| graph.replay(&inputs)).unwrap(),
    );

    let used = device.memory().used;
    // SAFETY: the calls are in the order that the driver asks for, on live handles.
    unsafe {
        // Others' tests may run in other threads.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        sys::cuStreamBeginCapture_v2(stream, mode).result().unwrap();
        let eager = on_stream(&|| function.run(device, &inputs)).unwrap();
        let replayed = on_stream(&|| graph.replay(&inputs)).unwrap();
        let measured = on_stream(&|| {
            let like = |make: StandIns<'_>| make.like(&inputs[0]);
            device.measure(like, |a| device.negate(a).map(|negated| vec![negated]))?;
            Ok(Vec::new())
        });
        assert!(measured.is_ok(), "which adds nothing to the capture");
        assert!(on_stream(&|| device.upload(&operands[0]).map(|a| vec![a])).is_err());
        let mut captured = std::ptr::null_mut();
        sys::cuStreamEndCapture(stream, &mut captured)
            .result()
            .unwrap();
        let mut executable = std::ptr::null_mut();
        sys::cuGraphInstantiateWithFlags(&mut executable, captured, 0)
            .result()
            .unwrap();
        sys::cuGraphDestroy(captured).result().unwrap();
        for _ in 0..2 {
            sys::cuGraphLaunch(executable, stream).result().unwrap();
            sys::cuStreamSynchronize(stream).result().unwrap();
            function.check(&bench, expected, eager.clone());
            function.check(&bench, expected, replayed.clone());
        }
        drop((eager, replayed));
        assert!(device.memory().used > used, "the graph may run again");
        sys::cuGraphExecDestroy(executable).result().unwrap();
        sys::cuStreamDestroy_v2(stream).result().unwrap();
    }
    // The driver lets go in its own time.
    let start = std::time::Instant::now();
    while device.memory().used > used {
        assert!(
            start.elapsed().as_secs() < 10,
            "the graph's memory is not given back"
        );
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}
