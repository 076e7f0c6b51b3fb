//! The bytes that a run takes at the most are told before it.

mod common;

use common::{device, encrypt, engine, message, new_engine, prepared, program};
use fhelium_runtime::ckks::ErrorKind;
use fhelium_runtime::persist::{CacheOutcome, CompileCache};
use fhelium_runtime::tensor::Tensor;
use fhelium_runtime::{
    Array, Device, Engine, MaterialBinding, MaterialSource, PrepareOptions, RuntimeError, Value,
};
use std::fmt;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// An engine of its own, where nothing else takes memory.
fn alone() -> Arc<Engine> {
    let alone = new_engine();
    alone.use_keys(&engine().1.evaluation()).unwrap();
    alone
}

/// Runs a program on an engine of its own and compares the most bytes that a run takes with those that
/// were stated before the first one.
#[track_caller]
fn check(func: &str, arguments: &[Value]) {
    check_capturing(&alone(), ("", &[]), func, arguments);
}

#[track_caller]
fn check_capturing(
    alone: &Arc<Engine>,
    (materials, bound): (&str, &[(&str, MaterialBinding)]),
    func: &str,
    arguments: &[Value],
) {
    let options = PrepareOptions {
        arguments: Some(arguments),
        ..PrepareOptions::default()
    };
    let program = program(alone, materials, func);
    let prepared = prepared(alone, program, bound, options).unwrap();
    let stated = prepared.manifest().memory.peak;
    let executable = prepared.executable();
    let taken = || {
        alone.reset_memory_peak();
        let before = alone.memory().used;
        drop(executable.run(arguments).unwrap());
        (alone.memory().peak - before) as u64
    };
    // On a device the operations of the first run come one by one, and share memory better; beside
    // what stays.
    let first = taken();
    let kept = executable.resident_bytes() as u64;
    assert!(first <= stated + kept, "{first} of {stated} and {kept}");
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

#[test]
fn of_powers_by_a_number_of_the_program() {
    if device() == Device::Cpu {
        return;
    }
    let func = "func (%x: !tensor<i64, [9, 1024]>) {
        %n = tensor.constant {value = 3, dtype = i64}
        %a = tensor.pow %x, %n
        %b = tensor.add %a, %x
        return (%a, %b)
    }";
    let values = (0..9 * 1024).map(|i| i % 7).collect();
    let integers = Tensor::from_vec::<i64>(values, &[9, 1024]).unwrap();
    check(func, &[array(integers)]);
}

#[test]
fn of_a_sum_by_strides() {
    if device() == Device::Cpu {
        return;
    }
    let func = "func (%x: !tensor<f64, [64, 512]>, %y: !tensor<f64, [512, 64]>) {
        %w = tensor.transpose %y {axes = [1, 0]}
        %a = tensor.mul %w, %x
        %p = he.encode %w {level = 3, scale = 2^40}
        return (%a, %p)
    }";
    check(
        func,
        &[array(message(1, &[64, 512])), array(message(2, &[512, 64]))],
    );
}

#[test]
fn of_empty_arrays() {
    let func = "func (%x: !fresh, %w: !tensor<f64, [0, 512]>) {
        %p = he.encode %w {level = 3, scale = 2^40}
        %a = he.mul %x, %p
        return %a
    }";
    check(
        func,
        &[ciphertext(1, &[512]), Value::from(message(2, &[0, 512]))],
    );
}

/// Guards that an array that stays between calls counts as it lies in memory.
#[test]
fn of_captured_arrays() {
    if device() == Device::Cpu {
        return;
    }
    let func = "func (%x: !fresh, %v: !tensor<f64, []>) {
        %w = core.material {symbol = @w}
        %t = tensor.transpose %w {axes = [1, 0]}
        %s = tensor.mul %t, %v
        %p = he.encode %s {level = 3, scale = 2^40}
        %a = he.mul %x, %p
        return %a
    }";
    let fixed = [("w", array(message(1, &[512, 4])).into())];
    let arguments = [ciphertext(1, &[512]), array(message(2, &[]))];
    let materials = "material @w : !tensor<f64, [512, 4]>";
    check_capturing(&alone(), (materials, &fixed), func, &arguments);
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

const PRODUCT: &str = "func (%x: !ciphertext<[4], level=3, scale=2^40, parts=2>) {
    %a = he.square %x
    %b = he.relinearize %a
    %c = he.rescale %b
    %d = he.rotate %c {step = 1}
    return %d
}";

/// Guards that the stated bytes are those that have to be free under a limit: what is refused with fewer
/// leaves nothing behind.
#[test]
fn as_much_has_to_be_free() {
    if device() == Device::Cpu {
        return;
    }
    let alone = alone();
    let x = [ciphertext(1, &[4, 512])];
    let program = program(&alone, "", PRODUCT);
    let prepared = prepared(&alone, program, &[], PrepareOptions::default()).unwrap();
    let stated = prepared.manifest().memory.peak as usize;
    let run = || prepared.executable().run(&x);
    // Warm and recorded.
    for _ in 0..2 {
        run().unwrap();
    }
    let queue = alone.cuda().unwrap().queue();
    let used = alone.memory().used;
    for _ in 0..2 {
        queue.set_memory_limit(Some(used + stated - 1));
        queue.release_kept_memory();
        let error = run().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
        assert!(error.to_string().contains("under the limit"), "{error}");
        assert_eq!(alone.memory().used, used);
        queue.set_memory_limit(Some(used + stated));
        run().unwrap();
    }
}

/// Guards that a function from the compile cache states what it did when it was compiled.
#[test]
fn of_a_function_from_the_cache() {
    let alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let stated = [CacheOutcome::Miss, CacheOutcome::Hit].map(|outcome| {
        let cache = CompileCache::new(folder.path());
        let options = PrepareOptions {
            cache: Some(&cache),
            ..PrepareOptions::default()
        };
        let prepared = prepared(&alone, program(&alone, "", PRODUCT), &[], options).unwrap();
        assert_eq!(prepared.cache_use().outcome, outcome);
        prepared.manifest().memory.peak
    });
    assert_eq!(stated[0], stated[1]);
}
