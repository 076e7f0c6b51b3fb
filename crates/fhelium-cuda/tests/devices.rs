//! Guards what several devices, other libraries' contexts and forked processes ask for: each device
//! computes on its own memory, a thread's context is after a call what it was before, and a forked
//! process is told that it has no device.

mod contexts;

use contexts::{context_on, contexts, has_kernels};
use cudarc::driver::result::ctx;
use cudarc::driver::sys::CUcontext;
use fhelium_ckks::{Ciphertext, KeyGenerator, Message, Parameters, Randomness, SecretKey};
use fhelium_cuda::{Context, CudaError, Device, Queue};

/// The same parameters on the host and two devices.
struct Pair {
    host: fhelium_ckks::Context,
    first: Context,
    second: Context,
}

fn parameters() -> Parameters {
    let parameters = Parameters::builder(2, 40).log_n(10).allow_insecure(true);
    parameters.build().unwrap()
}

fn pair() -> Option<Pair> {
    if !has_kernels() {
        return None;
    }
    let (host, first) = contexts(&parameters(), None);
    let second = context_on(&host, 1)?;
    Some(Pair {
        host,
        first,
        second,
    })
}

fn encrypted(host: &fhelium_ckks::Context, value: f64) -> (Ciphertext, SecretKey) {
    let randomness = Randomness::from_seed_for_tests(7);
    let secret = KeyGenerator::new(host, &randomness).secret().unwrap();
    let parameters = host.parameters();
    let values = vec![value; parameters.slots()];
    let shape = [values.len()];
    let message = Message::real(&values, &shape).unwrap();
    let plaintext = host.encode(message, parameters.depth(), parameters.scale());
    let ciphertext = host.encrypt(&plaintext.unwrap(), &secret, &randomness);
    (ciphertext.unwrap(), secret)
}

#[test]
fn two_devices_compute_side_by_side() {
    let Some(pair) = pair() else { return };
    assert_eq!(pair.first.device().index(), 0);
    assert_eq!(pair.second.device().index(), 1);
    assert_ne!(
        pair.first.device().primary_context(),
        pair.second.device().primary_context()
    );
    let (x, _) = encrypted(&pair.host, 0.5);
    let expected = pair.host.add(&x, &x).unwrap();
    let on = [&pair.first, &pair.second].map(|device| device.upload(&x).unwrap());
    // In turns, so that each call finds the other's context.
    for _ in 0..2 {
        for (device, x) in [&pair.first, &pair.second].into_iter().zip(&on) {
            let sum = device.download(&device.add(x, x).unwrap()).unwrap();
            assert_eq!(sum.data(), expected.data());
        }
    }
}

#[test]
fn operands_of_the_other_device_are_refused_naming_both() {
    let Some(pair) = pair() else { return };
    let (x, _) = encrypted(&pair.host, 0.5);
    let here = pair.first.upload(&x).unwrap();
    let there = pair.second.upload(&x).unwrap();
    let refused = |result: fhelium_cuda::Result<()>| {
        let error = result.unwrap_err();
        assert!(matches!(error, CudaError::OtherDevice { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("cuda:0") && text.contains("cuda:1"), "{text}");
    };
    refused(pair.first.add(&here, &there).map(drop));
    refused(pair.second.add(&here, &there).map(drop));
    refused(pair.second.negate(&here).map(drop));
    refused(pair.first.download(&there).map(drop));
    let graph = pair
        .first
        .capture(std::slice::from_ref(&here), |inputs| {
            pair.first.negate(&inputs[0]).map(|y| vec![y])
        })
        .unwrap();
    refused(graph.replay(std::slice::from_ref(&there)).map(drop));
    let memory = pair.second.queue().allocate(there.buffer().words());
    let state = x.state().clone();
    let of_memory = fhelium_cuda::Ciphertext::from_buffer(
        &pair.first,
        x.secret_id(),
        state,
        Vec::new(),
        memory.unwrap(),
    );
    refused(of_memory.map(drop));
    // A stream of the other device orders nothing here.
    let stream = pair.second.queue().stream().cu_stream() as usize;
    // SAFETY: the stream lives as long as its queue.
    let on_stream = unsafe { pair.first.on_stream(stream, || pair.first.negate(&here)) };
    let error = on_stream.unwrap_err();
    assert!(matches!(error, CudaError::OtherStream { .. }), "{error}");
}

/// Calls of every kind, each with what it makes dropped in it.
fn calls(context: &Context, x: &Ciphertext) {
    let stays = |name: &str, call: &mut dyn FnMut()| {
        let before = ctx::get_current().unwrap();
        call();
        assert_eq!(ctx::get_current().unwrap(), before, "{name}");
    };
    let y = context.upload(x).unwrap();
    stays("upload", &mut || drop(context.upload(x).unwrap()));
    stays("download", &mut || drop(context.download(&y).unwrap()));
    stays("an operation", &mut || drop(context.add(&y, &y).unwrap()));
    stays("synchronize", &mut || context.synchronize().unwrap());
    stays("a new engine", &mut || {
        let host = fhelium_ckks::Context::new(&parameters(), Default::default()).unwrap();
        drop(Context::new(&host, context.device(), Default::default()).unwrap());
    });
    stays("a new queue", &mut || {
        drop(Queue::new(context.device(), None).unwrap());
    });
    stays("keys, whose memory is erased", &mut || {
        let randomness = Randomness::from_seed_for_tests(1);
        let keys = fhelium_cuda::KeyGenerator::new(context, &randomness);
        drop(keys.relinearization(&keys.secret().unwrap()).unwrap());
    });
    stays("a graph", &mut || {
        let graph = context
            .capture(std::slice::from_ref(&y), |inputs| {
                context.negate(&inputs[0]).map(|y| vec![y])
            })
            .unwrap();
        for replay in [fhelium_cuda::Replay::Graph, fhelium_cuda::Replay::Launches] {
            graph
                .replay_by(replay, std::slice::from_ref(&y))
                .map(drop)
                .unwrap();
        }
    });
    stays("timing", &mut || {
        let start = context.queue().record().unwrap();
        let end = context.queue().record().unwrap();
        context.synchronize().unwrap();
        context.queue().elapsed_us(&start, &end).unwrap();
    });
    stays("another stream", &mut || {
        // SAFETY: the legacy default stream is always there.
        unsafe { context.on_stream(0, || context.negate(&y).map(drop)) }.unwrap();
    });
    stays("memory that is given back", &mut || {
        context.queue().release_kept_memory();
    });
    stays("an error", &mut || {
        drop(Context::new(context.host(), context.device(), {
            fhelium_cuda::ContextOptions {
                memory_limit: Some(1),
                ..Default::default()
            }
        }));
    });
    stays("opening", &mut || {
        drop(Device::open(context.device().index()).unwrap());
    });
}

#[test]
fn calls_leave_the_context_that_a_thread_has() {
    if !has_kernels() {
        return;
    }
    let (host, first) = contexts(&parameters(), None);
    let (x, _) = encrypted(&host, 0.5);
    let second = context_on(&host, 1);
    let others = second.as_ref().map(|second| second.device());
    let contexts = [Some(first.device()), others];
    let found = std::iter::once(0)
        .chain(contexts.into_iter().flatten().map(|d| d.primary_context()))
        .collect::<Vec<_>>();
    for context in [Some(&first), second.as_ref()].into_iter().flatten() {
        for &before in &found {
            std::thread::scope(|scope| {
                let x = &x;
                scope.spawn(move || {
                    // SAFETY: null, or the context of an open device.
                    unsafe { ctx::set_current(before as CUcontext) }.unwrap();
                    calls(context, x);
                });
            });
        }
    }
}

#[test]
fn threads_work_on_both_devices_at_once() {
    let Some(pair) = pair() else { return };
    let (x, _) = encrypted(&pair.host, 0.25);
    let mut expected = x.clone();
    for _ in 0..8 {
        expected = pair.host.add(&expected, &x).unwrap();
    }
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (pair, x, expected) = (&pair, &x, &expected);
            scope.spawn(move || {
                // Each starts on one device and goes on on the other.
                for turn in 0..4 {
                    let device = match (thread + turn) % 2 {
                        0 => &pair.first,
                        _ => &pair.second,
                    };
                    let one = device.upload(x).unwrap();
                    let mut sum = one.clone();
                    for _ in 0..8 {
                        sum = device.add(&sum, &one).unwrap();
                    }
                    assert_eq!(device.download(&sum).unwrap().data(), expected.data());
                }
            });
        }
    });
}

/// What a forked process ends with where `body` does not panic.
#[cfg(unix)]
const WELL: i32 = 42;

/// Runs `body` in a forked process, which ends without what a process does at its end.
#[cfg(unix)]
fn forked(body: impl FnOnce() + std::panic::UnwindSafe) -> i32 {
    // SAFETY: the child uses what it has a copy of, and no thread of the parent.
    match unsafe { libc::fork() } {
        0 => {
            let ended = std::panic::catch_unwind(body);
            // SAFETY: always allowed.
            unsafe { libc::_exit(if ended.is_ok() { WELL } else { 1 }) }
        }
        child => {
            let mut status = 0;
            // SAFETY: the place is live, and the child is this process's.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            match libc::WIFEXITED(status) {
                true => libc::WEXITSTATUS(status),
                false => -libc::WTERMSIG(status),
            }
        }
    }
}

/// The emulated driver ends a forked process that calls it, also from a destructor.
#[cfg(unix)]
#[test]
fn a_forked_process_is_told_and_drops_without_the_driver() {
    if !has_kernels() {
        return;
    }
    let (host, context) = contexts(&parameters(), None);
    let (x, _) = encrypted(&host, 0.5);
    let y = context.upload(&x).unwrap();
    let randomness = Randomness::from_seed_for_tests(1);
    let secret = fhelium_cuda::KeyGenerator::new(&context, &randomness).secret();
    let graph = context
        .capture(std::slice::from_ref(&y), |inputs| {
            context.negate(&inputs[0]).map(|y| vec![y])
        })
        .unwrap();
    let replayed = graph.replay_by(fhelium_cuda::Replay::Graph, std::slice::from_ref(&y));
    let replayed = replayed.unwrap();
    let start = context.queue().record().unwrap();
    let ended = forked(std::panic::AssertUnwindSafe(|| {
        let refused = |result: fhelium_cuda::Result<()>| {
            let error = result.unwrap_err();
            assert_eq!(error, CudaError::Forked);
            assert!(error.to_string().contains("spawn"));
        };
        refused(context.add(&y, &y).map(drop));
        refused(context.upload(&x).map(drop));
        refused(context.download(&y).map(drop));
        refused(context.synchronize());
        refused(graph.replay(std::slice::from_ref(&y)).map(drop));
        refused(context.queue().allocate(8).map(drop));
        refused(Context::new(&host, context.device(), Default::default()).map(drop));
        refused(Device::open(0).map(drop));
        refused(fhelium_cuda::probe().map(drop));
        context.queue().release_kept_memory();
        drop((y, secret, graph, replayed, start, context));
    }));
    assert_eq!(ended, WELL);
}
