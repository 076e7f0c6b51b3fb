//! The bytes that a run takes at the most are told before it.

mod common;

use common::{device, encrypt, engine, message, new_engine, prepared, program};
use fhelium_runtime::tensor::Tensor;
use fhelium_runtime::{
    Array, Device, Engine, MaterialBinding, MaterialSource, PrepareOptions, RuntimeError, Value,
};
use std::fmt;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Runs a program on an engine of its own, where nothing else takes memory, and compares the most bytes
/// that a run takes with those that were stated before the first one.
#[track_caller]
fn check(func: &str, arguments: &[Value]) {
    let alone = new_engine();
    alone.use_keys(&engine().1.evaluation()).unwrap();
    let options = PrepareOptions {
        arguments: Some(arguments),
        ..PrepareOptions::default()
    };
    let prepared = prepared(&alone, program(&alone, "", func), &[], options).unwrap();
    let stated = prepared.manifest().memory.peak;
    let executable = prepared.executable();
    let taken = || {
        alone.reset_memory_peak();
        let before = alone.memory().used;
        drop(executable.run(arguments).unwrap());
        (alone.memory().peak - before) as u64
    };
    // On a device the operations of the first run come one by one, and share memory better.
    let first = taken();
    assert!(first <= stated, "{first} of {stated}");
    for run in 1..4 {
        assert_eq!(taken(), stated, "run {run}, {}", executable.replays());
    }
}

fn ciphertext(seed: usize, shape: &[usize]) -> Value {
    let (engine, keys) = engine();
    encrypt(engine, keys, &message(seed, shape))
}

fn plaintext(seed: usize, shape: &[usize]) -> Value {
    let (engine, _) = engine();
    engine
        .encode(&message(seed, shape), None, None)
        .unwrap()
        .into()
}

/// A clear array where the tests compute.
fn array(tensor: Tensor) -> Value {
    let (engine, _) = engine();
    Value::Tensor(engine.place(&Array::from(tensor)).unwrap())
}

/// Guards that fused values take no memory, and results and operands do.
#[test]
fn of_sums_and_multiples() {
    let func = "func (%x: !fresh, %y: !fresh, %b: !ciphertext<[3], level=3, scale=2^40, parts=2>, %p: !plaintext<[], level=3, scale=2^40>, %q: !plaintext<[3], level=3, scale=2^40>) {
        %0 = he.mul %x, %p
        %1 = he.mul %y, %p
        %2 = he.add %0, %1
        %3 = he.sub %2, %0
        %4 = he.add %b, %b
        %5 = he.mul %4, %q
        return (%3, %5)
    }";
    let arguments = [
        ciphertext(1, &[512]),
        ciphertext(2, &[512]),
        ciphertext(3, &[3, 512]),
        plaintext(4, &[512]),
        plaintext(5, &[3, 512]),
    ];
    check(func, &arguments);
}

#[test]
fn of_products() {
    let func = "func (%x: !fresh, %y: !fresh) {
        %a = he.mul %x, %y
        %b = he.relinearize %a
        %c = he.rescale %b
        %d = he.square %c
        %e = he.relinearize %d
        %f = he.rescale %e
        %g = he.square %f
        return %g
    }";
    check(func, &[ciphertext(1, &[512]), ciphertext(2, &[512])]);
}

#[test]
fn of_a_batch_of_products() {
    let func = "func (%x: !ciphertext<[3], level=3, scale=2^40, parts=2>, %y: !fresh) {
        %a = he.mul %x, %y
        %b = he.relinearize %a
        %c = he.rescale %b
        %d = he.rotate %c {step = 1}
        %e = he.sum_batch %d {axis = 0}
        return %e
    }";
    check(func, &[ciphertext(1, &[3, 512]), ciphertext(2, &[512])]);
}

#[test]
fn of_rotations() {
    let func = "func (%x: !fresh) {
        %a = he.rotate %x {step = 1}
        %b = he.add %a, %x
        %c = he.rotate %b {step = 2}
        %d = he.conjugate %c
        %e = he.add %c, %d
        return %e
    }";
    check(func, &[ciphertext(1, &[512])]);
}

#[test]
fn of_hoisted_rotations() {
    let func = "func (%x: !fresh, %p: !plaintext<[], level=3, scale=2^40>) {
        %a = he.rotate %x {step = 1}
        %b = he.rotate %x {step = 2}
        %c = he.rotate %x {step = 5}
        %d = he.rotate %x {step = -1}
        %e = he.mul %c, %p
        %f = he.mul %d, %p
        %g = he.add %e, %f
        %h = he.rescale %g
        return (%a, %b, %h)
    }";
    check(func, &[ciphertext(1, &[512]), plaintext(2, &[512])]);
}

#[test]
fn of_encoded_arrays() {
    let func = "func (%x: !fresh, %w: !tensor<f64, [512]>, %v: !tensor<f64, [512]>) {
        %sum = tensor.add %w, %v
        %p = he.encode %sum {level = 3, scale = 2^40}
        %q = he.encode %w {level = 3, scale = 2^40}
        %a = he.mul %x, %p
        %b = he.add %a, %a
        %c = he.rescale %b
        %d = he.mul %x, %q
        %e = he.rescale %d
        %f = he.mul %c, %e
        return %f
    }";
    let x = ciphertext(1, &[512]);
    let here = |seed| Value::from(message(seed, &[512]));
    check(func, &[x.clone(), here(2), here(3)]);
    check(
        func,
        &[x, array(message(2, &[512])), array(message(3, &[512]))],
    );
}

/// Guards that it is told where data decides, so that nothing is recorded.
#[test]
fn of_what_looks_at_data() {
    // Memory of the host counts no arrays.
    if device() == Device::Cpu {
        return;
    }
    let func = "func (%x: !tensor<i64, [9, 1024]>, %n: !tensor<i64, [9, 1024]>) {
        %a = tensor.pow %x, %n
        %b = tensor.add %a, %x
        %c = tensor.transpose %b {axes = [1, 0]}
        %d = tensor.mul %c, %c
        %e = tensor.sum %d {axes = [1]}
        return %e
    }";
    let integers = |seed: i64| {
        let values = (0..9 * 1024).map(|i| (i * seed) % 7).collect();
        Tensor::from_vec::<i64>(values, &[9, 1024]).unwrap()
    };
    check(func, &[array(integers(3)), array(integers(2))]);
}

/// An array that is had only with the help of another thread, which uses the engine meanwhile: as one of
/// Python's is, whose interpreter another thread may hold.
struct Shared(Arc<Engine>, Value);

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

impl MaterialSource for Shared {
    fn version(&self) -> Result<u64, RuntimeError> {
        Ok(0)
    }

    fn read(&self) -> Result<(Value, u64), RuntimeError> {
        let (done, waited) = mpsc::channel();
        let engine = self.0.clone();
        std::thread::spawn(move || done.send(engine.place(&Array::from(message(1, &[8]))).is_ok()));
        let placed = waited.recv_timeout(Duration::from_secs(20));
        assert_eq!(placed, Ok(true), "the other thread waits for the queue");
        Ok((self.1.clone(), 0))
    }

    fn tells_changes(&self) -> bool {
        false
    }
}

/// Guards that nobody is asked for an array by a thread that holds the queue.
#[test]
fn arrays_are_asked_for_before_the_queue_is_held() {
    if device() == Device::Cpu {
        return;
    }
    let func = "func (%x: !tensor<f64, [8]>) {
        %w = core.material {symbol = @w}
        %y = tensor.mul %x, %w
        return %y
    }";
    let engine = new_engine();
    let [x, w] = [1, 2].map(|seed| array(message(seed, &[8])));
    let source = Arc::new(Shared(engine.clone(), w));
    let prepared = prepared(
        &engine,
        program(&engine, "material @w : !tensor<f64, [8]>", func),
        &[("w", MaterialBinding::Live(source))],
        PrepareOptions {
            arguments: Some(std::slice::from_ref(&x)),
            ..PrepareOptions::default()
        },
    )
    .unwrap();
    // The result and an empty workspace.
    assert_eq!(prepared.manifest().memory.peak, 8 * 8 + 8);
}
