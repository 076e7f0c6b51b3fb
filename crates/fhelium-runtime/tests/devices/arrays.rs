//! Clear arrays on a device.

use crate::common::{
    decrypt, device, encrypt, engine, leaves, message, on_host, prepared, program, same_bits, twin,
};
use fhelium_ir::{Attributes, Tensor};
use fhelium_runtime::ckks::ErrorKind;
use fhelium_runtime::{
    Array, Device, Engine, KeySet, LiveTensor, MaterialBinding, MaterialSource, PrepareOptions,
    Replays, RuntimeError, Specialization, Value,
};
use std::sync::{Arc, Mutex, OnceLock};

fn there(engine: &Engine, seed: usize, shape: &[usize]) -> Value {
    Value::Tensor(engine.place(&Array::from(message(seed, shape))).unwrap())
}

/// Guards that a program on arrays runs where they are, with numbers of the program's own, and gives
/// what it gives on the host.
#[test]
fn programs_run_where_their_arrays_are() {
    let (engine, _) = engine();
    let func = "func (%x: !tensor<f64, [3, 8]>, %y: !tensor<f64, [8]>) {
        %half = tensor.constant {value = 0.5, dtype = f64}
        %a = tensor.mul %x, %half
        %b = tensor.add %a, %y loc(\"score.py\":4 in score)
        %c = tensor.transpose %b {axes = [1, 0]}
        %d = tensor.sum %c {axes = [1]}
        return (%d, %c)
    }";
    let linked = |engine: &Arc<Engine>, arguments: &[Value]| {
        let options = PrepareOptions {
            arguments: Some(arguments),
            ..PrepareOptions::default()
        };
        prepared(engine, program(engine, "", func), &[], options)
    };
    let arguments = [there(engine, 1, &[3, 8]), there(engine, 2, &[8])];
    let here: Vec<Value> = arguments.iter().map(on_host).collect();
    let compiled = linked(engine, &arguments).unwrap();
    let found = leaves(&compiled.executable().run(&arguments).unwrap());
    let on_cpu = linked(twin(), &here).unwrap();
    let expected = leaves(&on_cpu.executable().run(&here).unwrap());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!((found.device(), expected.device()), (device(), Device::Cpu));
        assert!(same_bits(found, expected));
    }
    // The manifest says what runs, and where: numbers of the program's own are made on the host.
    let on_host = linked(engine, &here).unwrap();
    for (compiled, expected) in [
        (&compiled, ("cuda", device())),
        (&on_host, ("host", Device::Cpu)),
        (&on_cpu, ("host", Device::Cpu)),
    ] {
        for entry in &compiled.manifest().operations {
            if entry.operation != Tensor::Constant.into() {
                let found = (&*entry.implementation, entry.device);
                assert_eq!(found, expected, "{}", entry.operation);
            }
        }
    }
    // Arrays do not move by themselves.
    let mixed = [arguments[0].clone(), here[1].clone()];
    let error = linked(engine, &mixed).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Device, "{text}");
    assert!(
        text.contains("operand 1 is on cpu and operand 0 on cuda:0") && text.contains("score.py:4"),
        "{text}"
    );
    let error = compiled.executable().run(&mixed).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Device, "{text}");
    assert!(
        text.contains("the argument y is on cpu") && text.contains("on cuda"),
        "{text}"
    );
    let error = linked(twin(), &arguments).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Device, "{error}");
}

fn for_arguments(
    engine: &Arc<Engine>,
    func: &str,
    materials: &str,
    bound: &[(&str, MaterialBinding)],
    arguments: &[Value],
) -> Specialization {
    let options = PrepareOptions {
        arguments: Some(arguments),
        ..PrepareOptions::default()
    };
    prepared(engine, program(engine, materials, func), bound, options).unwrap()
}

#[track_caller]
fn replays(compiled: &Specialization) {
    let found = compiled.executable().replays();
    let recorded = matches!(
        found,
        Replays::Graph(_) | Replays::Launches(_) | Replays::Undecided(_)
    );
    assert!(recorded, "{found}");
}

/// Guards that arrays on the device, of any memory with the arguments' layout, are operands of a
/// recording, for encodings and for operations on them, and that views and handed-through arrays
/// come out as they are.
#[test]
fn a_tape_with_arrays_on_the_device_is_replayed() {
    let (engine, keys) = engine();
    let func = "func (%x: !fresh, %w: !tensor<f64, [8]>, %m: !tensor<f32, [2, 3]>) {
        %two = tensor.constant {value = 2, dtype = i64}
        %square = tensor.pow %w, %two
        %p = he.encode %square {level = 3, scale = 2^40}
        %e = he.mul %x, %p
        %t = tensor.transpose %m {axes = [1, 0]}
        %sum = tensor.sum %m {axes = [1]}
        %product = tensor.matmul %m, %t
        %part = tensor.slice %m {starts = [1, 2], sizes = [1, 2], steps = [1, -2], dropped = [0]}
        return (%e, %t, %sum, %product, %w, %part)
    }";
    let x = encrypt(engine, keys, &message(1, &[8]));
    let context = engine.cuda().unwrap();
    let single = |seed| {
        let wide = there(engine, seed, &[2, 3]);
        let Value::Tensor(Array::Cuda(wide)) = &wide else {
            panic!("{wide:?}")
        };
        let to = Attributes::new().with("dtype", fhelium_ir::DType::F32);
        let narrow = context.tensor(Tensor::Cast, &[wide], &to).unwrap();
        Value::Tensor(Array::Cuda(Arc::new(narrow)))
    };
    // A row of a larger array: the same layout elsewhere in memory.
    let row = |seed| {
        let rows = there(engine, seed, &[3, 8]);
        let Value::Tensor(Array::Cuda(rows)) = &rows else {
            panic!("{rows:?}")
        };
        let at = Attributes::new().with("axis", 0).with("index", 2);
        let row = context.tensor(Tensor::Index, &[rows], &at).unwrap();
        Value::Tensor(Array::Cuda(Arc::new(row)))
    };
    let compiled = for_arguments(engine, func, "", &[], &[x.clone(), row(2), single(3)]);
    let on_cpu = |arguments: &[Value]| {
        let here: Vec<Value> = arguments.iter().map(on_host).collect();
        let compiled = for_arguments(twin(), func, "", &[], &here);
        leaves(&compiled.executable().run(&here).unwrap())
    };
    for round in 0..5 {
        let w = match round % 2 {
            0 => there(engine, round, &[8]),
            _ => row(round),
        };
        let arguments = [x.clone(), w, single(round + 20)];
        let found = leaves(&compiled.executable().run(&arguments).unwrap());
        let expected = on_cpu(&arguments);
        for place in 1..found.len() {
            assert_eq!(found[place].device(), device());
            let same = same_bits(&found[place], &expected[place]);
            assert!(same, "output {place} of round {round}");
        }
        assert_eq!(found[4].address(), arguments[1].address());
        let Value::Tensor(square) = twin_square(&arguments[1]) else {
            panic!("an array")
        };
        let p = engine.encode(square.host().unwrap(), None, None).unwrap();
        let product = engine.multiply(&x, &p.into()).unwrap();
        assert!(same_bits(&found[0], &product), "round {round}");
    }
    replays(&compiled);
    assert!(compiled.executable().host_work().is_empty());
}

/// The squares of an array, on the host.
fn twin_square(array: &Value) -> Value {
    let attributes = Attributes::new();
    let array = on_host(array);
    let operands = [array.clone(), array];
    let squares = twin().apply(Tensor::Mul.into(), &operands, &attributes, None);
    squares.unwrap().remove(0)
}

/// Guards that what is in host memory is computed there and goes up in each call, the rest being
/// replayed; that its values are refused at once and with the line; and that all this is said.
#[test]
fn a_tape_with_arrays_of_the_host_is_replayed_behind_them() {
    let (engine, keys) = engine();
    let func = "func (%x: !fresh, %w: !tensor<f64, [8]>, %s: !tensor<f64, []>) {
        %half = tensor.mul %w, %s loc(\"score.py\":2 in score)
        %p = he.encode %half {level = 3, scale = 2^40} loc(\"score.py\":3 in score)
        %e = he.mul %x, %p
        %q = he.encode %w {level = 3, scale = 2^80} loc(\"score.py\":4 in score)
        %f = he.add %e, %q
        return (%f, %half)
    }";
    let x = encrypt(engine, keys, &message(1, &[8]));
    let arguments = |seed: usize, factor: f64| {
        let factor = fhelium_runtime::tensor::Tensor::scalar(factor);
        [x.clone(), message(seed, &[8]).into(), factor.into()]
    };
    let compiled = for_arguments(engine, func, "", &[], &arguments(1, 0.5));
    let executable = compiled.executable();
    for round in 0..5 {
        let arguments = arguments(round, 0.25 + round as f64);
        let found = leaves(&executable.run(&arguments).unwrap());
        let w = message(round, &[8]).to_vec::<f64>();
        let scaled: Vec<f64> = w.iter().map(|w| w * (0.25 + round as f64)).collect();
        let scaled = fhelium_runtime::tensor::Tensor::from_vec(scaled, &[8]).unwrap();
        let encode = |w, bits| {
            let scale = fhelium_runtime::ckks::Scale::from_bits(bits);
            Value::from(engine.encode(w, None, Some(&scale)).unwrap())
        };
        let product = engine.multiply(&x, &encode(&scaled, 40)).unwrap();
        let expected = engine.add(&product, &encode(&message(round, &[8]), 80));
        assert!(same_bits(&found[0], &expected.unwrap()), "round {round}");
        assert!(same_bits(&found[1], &scaled.into()), "round {round}");
        assert_eq!(found[1].device(), Device::Cpu);
    }
    replays(&compiled);
    let work = executable.host_work();
    assert_eq!((work.operations.len(), work.uploads), (1, 2));
    let text = compiled.explain();
    assert!(
        text.contains("1 operation on arrays in host memory: tensor.mul (score.py:2 in score)")
            && text.contains("2 arrays copied to the device"),
        "{text}"
    );
    for (arguments, line) in [
        (arguments(1, f64::NAN), "score.py:3"),
        (arguments(1, 1e60), "score.py:3"),
    ] {
        let error = executable.run(&arguments).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value, "{error}");
        assert!(error.to_string().contains(line), "{error}");
    }
    engine.synchronize().unwrap();
}

/// Guards that numbers in host memory go along with arrays on the device, live ones with the
/// contents of each call, and that a recording sees them.
#[test]
fn numbers_of_the_host_go_along() {
    let (engine, _) = engine();
    let func = "func (%w: !tensor<f64, [8]>, %s: !tensor<f64, []>) {
        %live = core.material {symbol = @live}
        %a = tensor.mul %w, %s
        %b = tensor.add %a, %live
        return %b
    }";
    let live = Arc::new(LiveTensor::new(number(0.0)));
    let bound = [("live", MaterialBinding::Live(live.clone()))];
    let materials = "material @live : !tensor<f64, []>";
    let arguments = |seed, factor| [there(engine, seed, &[8]), number(factor).into()];
    let compiled = for_arguments(engine, func, materials, &bound, &arguments(1, 1.0));
    for round in 0..6 {
        let (factor, added) = (1.0 + round as f64, (round / 2) as f64);
        live.set(number(added));
        let found = compiled.executable().run(&arguments(round, factor));
        let found = leaves(&found.unwrap()).remove(0);
        let expected = message(round, &[8]).to_vec::<f64>();
        let expected = expected.iter().map(|w| w * factor + added);
        let expected = fhelium_runtime::tensor::Tensor::from_vec(expected.collect(), &[8]);
        assert!(
            same_bits(&found, &expected.unwrap().into()),
            "round {round}"
        );
    }
    replays(&compiled);
}

fn number(value: f64) -> fhelium_runtime::tensor::Tensor {
    fhelium_runtime::tensor::Tensor::scalar(value)
}

/// An array on the device, as another library's: it is read where it is, and may become another.
#[derive(Debug)]
struct Foreign(Mutex<Value>);

impl MaterialSource for Foreign {
    fn version(&self) -> Result<u64, RuntimeError> {
        Ok(0)
    }

    fn read(&self) -> Result<(Value, u64), RuntimeError> {
        Ok((self.0.lock().unwrap().clone(), 0))
    }

    fn tells_changes(&self) -> bool {
        false
    }
}

/// Guards that captured arrays on the device are operands of each call, whatever they hold by then,
/// and what depends on them is computed at each call, by replays too; frozen, they are encoded once.
#[test]
fn captured_arrays_on_the_device_are_read_at_each_call() {
    let (engine, keys) = engine();
    let func = "func (%x: !fresh) {
        %w = core.material {symbol = @w}
        %v = core.material {symbol = @v}
        %sum = tensor.add %w, %v
        %p = he.encode %sum {level = 3, scale = 2^40}
        %q = he.encode %v {level = 3, scale = 2^80}
        %a = he.mul %x, %p
        %b = he.add %a, %q
        return (%b, %w)
    }";
    let materials = "material @v : !tensor<f64, [8]>
        material @w : !tensor<f64, [8]>";
    let x = [encrypt(engine, keys, &message(1, &[8]))];
    let foreign = Arc::new(Foreign(Mutex::new(there(engine, 1, &[8]))));
    let fixed = there(engine, 2, &[8]);
    let bound = [
        ("w", MaterialBinding::Live(foreign.clone())),
        ("v", MaterialBinding::Fixed(fixed.clone())),
    ];
    let on_cpu = |w: &Value| {
        let bound = [
            ("w", MaterialBinding::Fixed(on_host(w))),
            ("v", MaterialBinding::Fixed(on_host(&fixed))),
        ];
        let here = [on_host(&x[0])];
        let compiled = for_arguments(twin(), func, materials, &bound, &here);
        leaves(&compiled.executable().run(&here).unwrap())
    };
    let decrypted = |value: &Value| decrypt(twin(), on_cpu_keys(), &on_host(value));
    let close = |found: &Value, w: &Value| {
        let expected = decrypted(&on_cpu(w)[0]);
        let found = decrypted(found);
        let mut pairs = found.iter().zip(&expected);
        assert!(pairs.all(|(found, expected)| (found - expected).abs() < 1e-7));
    };
    let compiled = for_arguments(engine, func, materials, &bound, &x);
    for round in 0..5 {
        let w = there(engine, 10 + round, &[8]);
        *foreign.0.lock().unwrap() = w.clone();
        let found = leaves(&compiled.executable().run(&x).unwrap());
        close(&found[0], &w);
        assert_eq!(found[1].address(), w.address());
    }
    replays(&compiled);
    let at_each_call: Vec<&str> = compiled
        .manifest()
        .operations
        .iter()
        .filter(|entry| !entry.prologue)
        .map(|entry| entry.operation.name())
        .collect();
    assert_eq!(at_each_call, ["tensor.add", "ckks.encode", "rns.fused"]);
    let live = |name: &str| {
        let known = compiled.manifest().materials.iter();
        known
            .clone()
            .any(|(symbol, live)| &**symbol == name && *live)
    };
    assert!(live("w") && !live("v"));

    let options = PrepareOptions {
        arguments: Some(&x),
        frozen_materials: true,
        ..PrepareOptions::default()
    };
    let frozen = prepared(engine, program(engine, materials, func), &bound, options).unwrap();
    let w = foreign.0.lock().unwrap().clone();
    *foreign.0.lock().unwrap() = there(engine, 99, &[8]);
    let found = leaves(&frozen.executable().run(&x).unwrap());
    close(&found[0], &w);
    assert!(
        frozen
            .manifest()
            .operations
            .iter()
            .any(|entry| { entry.prologue && entry.operation.name() == "ckks.encode" })
    );

    // What it was linked for it stays, but for the contents.
    for (now, part) in [
        (
            there(engine, 1, &[4]),
            "contents may change between calls, the type may not",
        ),
        (message(1, &[8]).into(), "is on cpu now"),
    ] {
        *foreign.0.lock().unwrap() = now;
        let error = compiled.executable().run(&x).unwrap_err().to_string();
        assert!(error.contains("@w") && error.contains(part), "{error}");
    }
}

/// The engine's keys on the CPU.
fn on_cpu_keys() -> &'static KeySet {
    static KEYS: OnceLock<KeySet> = OnceLock::new();
    KEYS.get_or_init(|| twin().place_key_set(&engine().1).unwrap())
}

/// Guards that what looks at data on the device, to which a recording is blind, is done operation by
/// operation, and that the reason names the operation, its line and what to do.
#[test]
fn a_tape_that_looks_at_data_says_why_it_is_not_recorded() {
    let (engine, _) = engine();
    let func = "func (%w: !tensor<i64, [3]>, %n: !tensor<i64, [3]>) {
        %a = tensor.pow %w, %n loc(\"score.py\":2 in score)
        return %a
    }";
    let whole = |values: Vec<i64>| {
        let here = fhelium_runtime::tensor::Tensor::from_vec(values, &[3]).unwrap();
        Value::Tensor(engine.place(&Array::from(here)).unwrap())
    };
    let arguments = [whole(vec![2, 3, -2]), whole(vec![3, 0, 5])];
    let compiled = for_arguments(engine, func, "", &[], &arguments);
    for _ in 0..3 {
        let found = leaves(&compiled.executable().run(&arguments).unwrap()).remove(0);
        assert!(same_bits(&found, &whole(vec![8, 1, -32])));
    }
    let found = compiled.executable().replays();
    assert!(matches!(&found, Replays::Never(_)), "{found}");
    let text = found.to_string();
    for part in ["score.py:2", "tensor.pow", "raise to a constant"] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

/// Guards that an array on the device is a message as one in host memory is.
#[test]
fn arrays_on_the_device_are_encoded() {
    let (engine, keys) = engine();
    let func = "func (%x: !fresh, %w: !tensor<f64, [8]>) {
        %p = he.encode %w {level = 3, scale = 2^40}
        %e = he.mul %x, %p
        return %e
    }";
    let x = encrypt(engine, keys, &message(1, &[8]));
    let run = |w| {
        let arguments = [x.clone(), w];
        let options = PrepareOptions {
            arguments: Some(&arguments),
            ..PrepareOptions::default()
        };
        let compiled = prepared(engine, program(engine, "", func), &[], options).unwrap();
        leaves(&compiled.executable().run(&arguments).unwrap()).remove(0)
    };
    assert!(same_bits(
        &run(there(engine, 2, &[8])),
        &run(message(2, &[8]).into())
    ));
}
