//! What only a device has: moves, mixed operands, memory limits.

mod arrays;

use crate::common::{
    device, encrypt, engine, leaves, message, on_host, parameters, prepared, program, same_bits,
    twin,
};
use fhelium_runtime::ckks::ErrorKind;
use fhelium_runtime::persist::{Object, SaveOptions, from_bytes, to_bytes};
use fhelium_runtime::{
    Device, Engine, EngineOptions, LiveTensor, MaterialBinding, PrepareOptions, Replays,
    RuntimeError, Value,
};
use std::sync::Arc;

const SUM: &str = "func (%x: !fresh, %y: !fresh) {
    %z = he.add %x, %y loc(\"score.py\":3 in score)
    return %z
}";

/// Guards that values and keys say where they are, move there and back bit for bit, and that a
/// move to where a value is copies nothing.
#[test]
fn values_and_keys_move_there_and_back() {
    let (engine, keys) = engine();
    let cpu = twin();
    let x = encrypt(engine, keys, &message(1, &[2, 8]));
    assert_eq!((x.device(), engine.device()), (device(), device()));
    let p = Value::from(engine.encode(&message(2, &[8]), Some(1), None).unwrap());
    let key = Value::from(keys.rotations[&5].clone());
    for value in [x, p, key] {
        let here = cpu.place_value(&value).unwrap();
        assert_eq!(here.device(), Device::Cpu);
        let there = engine.place_value(&here).unwrap();
        assert_eq!(there.device(), device());
        assert!(same_bits(&there, &value));
        assert_eq!(
            engine.place_value(&there).unwrap().address(),
            there.address()
        );
    }
}

/// Guards that a secret and a public key made on a device work on the CPU, and the reverse.
#[test]
fn keys_work_on_either_side() {
    let (engine, keys) = engine();
    let cpu = twin();
    let moved = cpu.place_key_set(keys).unwrap();
    let decoded = |engine: &Engine, x: &Value, secret| {
        let plaintext = engine.decrypt(x.ciphertext().unwrap(), secret, None);
        engine
            .decode(&plaintext.unwrap(), true)
            .unwrap()
            .to_vec::<f64>()
    };
    let there = encrypt(engine, keys, &message(3, &[8]));
    let here = encrypt(cpu, &moved, &message(3, &[8]));
    let expected = message(3, &[8]).to_vec::<f64>();
    for values in [
        decoded(engine, &there, &keys.secret),
        decoded(cpu, &on_host(&there), &moved.secret),
        decoded(engine, &engine.place_value(&here).unwrap(), &keys.secret),
    ] {
        for (value, expected) in values.iter().zip(&expected) {
            assert!((value - expected).abs() < 1e-6, "{value} {expected}");
        }
    }
}

fn refused(error: &RuntimeError, parts: &[&str]) {
    assert_eq!(error.kind(), ErrorKind::Device, "{error}");
    for part in parts {
        assert!(
            error.to_string().contains(part),
            "{part:?} is not in: {error}"
        );
    }
}

/// Guards that operands in two places are refused with both places and the remedy, by eager and
/// compiled calls, and that nothing moves by itself.
#[test]
fn mixed_places_are_refused() {
    let (engine, keys) = engine();
    let x = encrypt(engine, keys, &message(1, &[8]));
    let y = on_host(&x);
    let error = engine.add(&x, &y).unwrap_err();
    let both = "operand 1 is on cpu and operand 0 on cuda:0";
    refused(&error, &["he.add", both, ".to(\"cuda:0\")", ".to(\"cpu\")"]);
    let error = twin().add(&x, &x).unwrap_err();
    refused(&error, &["operand 0 is on cuda:0", "computes on cpu"]);
    let error = twin().use_keys(&keys.evaluation()).unwrap_err();
    refused(
        &error,
        &["use: the relinearization key is on cuda:0", ".to(\"cpu\")"],
    );
    let plaintext = y.ciphertext().unwrap();
    let error = engine.decrypt(plaintext, &keys.secret, None).unwrap_err();
    refused(
        &error,
        &["decrypt: the ciphertext is on cpu and the secret key on cuda:0"],
    );

    let prepare = |arguments: &[Value]| {
        let options = PrepareOptions {
            arguments: Some(arguments),
            ..PrepareOptions::default()
        };
        prepared(engine, program(engine, "", SUM), &[], options)
    };
    let mixed = [x.clone(), y.clone()];
    let named = "the argument y is on cpu and the argument x on cuda:0";
    refused(&prepare(&mixed).unwrap_err(), &["score", named]);
    let compiled = prepare(&[x.clone(), x.clone()]).unwrap();
    refused(&compiled.executable().run(&mixed).unwrap_err(), &[named]);
    let error = compiled
        .executable()
        .run_with(twin(), &[y.clone(), y.clone()]);
    refused(
        &error.unwrap_err(),
        &["computes on cpu", "compiled for cuda:0"],
    );

    let captured = program(
        engine,
        "material @w: !fresh",
        "func (%x: !fresh) {
            %w = core.material {symbol = @w} loc(\"score.py\":2 in score)
            %z = he.add %x, %w loc(\"score.py\":3 in score)
            return %z
        }",
    );
    let bound = [("w", MaterialBinding::from(y))];
    let error = prepared(engine, captured, &bound, PrepareOptions::default()).unwrap_err();
    refused(
        &error,
        &["score.py:2", "the material @w is on cpu", "cuda:0"],
    );
}

/// Guards that a limit on memory is kept, that what it refuses says the bytes, and that the engine
/// works on after that.
#[test]
fn memory_limits_are_kept() {
    let limited = |memory_limit| {
        let options = EngineOptions {
            device: device(),
            memory_limit: Some(memory_limit),
            ..EngineOptions::default()
        };
        Engine::new(&parameters(), options).unwrap()
    };
    let engine = limited(8 << 20);
    let keys = engine.keygen(&[], false).unwrap();
    let x = encrypt(&engine, &keys, &message(1, &[8]));
    let memory = engine.memory();
    assert_eq!(memory.limit, Some(8 << 20));
    assert!(memory.used > 0 && memory.peak >= memory.used);
    let error = engine
        .encode(&message(1, &[400, 8]), None, None)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    let text = error.to_string();
    assert!(
        text.contains("under the limit") && text.contains("asked for"),
        "{text}"
    );
    let sum = engine.add(&x, &x).unwrap();
    assert!(same_bits(&sum, &engine.add(&x, &x).unwrap()));
    engine.synchronize().unwrap();
    let on_cpu = EngineOptions {
        memory_limit: Some(1),
        ..EngineOptions::default()
    };
    let error = Engine::new(&parameters(), on_cpu).unwrap_err();
    assert!(error.to_string().contains("memory_limit=1"), "{error}");
}

/// Guards that files hold the host form of what is on a device.
#[test]
fn files_do_not_depend_on_the_place() {
    let (engine, keys) = engine();
    let secret = SaveOptions {
        allow_secret: true,
        ..SaveOptions::default()
    };
    let x = encrypt(engine, keys, &message(1, &[3, 8]));
    let object = |x: &Value| {
        Object::Ciphertext(x.ciphertext().unwrap().clone(), engine.parameters().clone())
    };
    let bytes = to_bytes(&object(&x), secret).unwrap();
    assert_eq!(bytes, to_bytes(&object(&on_host(&x)), secret).unwrap());
    let moved = twin().place_key_set(keys).unwrap();
    let object =
        |keys: &fhelium_runtime::KeySet| Object::KeySet(keys.clone(), engine.parameters().clone());
    let bytes = to_bytes(&object(keys), secret).unwrap();
    assert_eq!(bytes, to_bytes(&object(&moved), secret).unwrap());
    match from_bytes(&bytes, &[]).unwrap() {
        Object::KeySet(loaded, _) => assert_eq!(loaded.secret.device(), Device::Cpu),
        other => panic!("{other:?}"),
    }
}

/// Guards that values of two engines on one device mix, and that the manifest names the device.
#[test]
fn engines_of_one_device_share_values() {
    let (engine, keys) = engine();
    let options = EngineOptions {
        device: device(),
        ..EngineOptions::default()
    };
    let other = Engine::new(&parameters(), options).unwrap();
    let x = encrypt(engine, keys, &message(1, &[8]));
    let y = other.add(&x, &x).unwrap();
    let z = engine.add(&x, &y).unwrap();
    let expected = twin().multiply_integer(&on_host(&x), 3).unwrap();
    assert!(same_bits(&z, &expected));
    let arguments = [x, y];
    let options = PrepareOptions {
        arguments: Some(&arguments),
        ..PrepareOptions::default()
    };
    let compiled = prepared(engine, program(engine, "", SUM), &[], options).unwrap();
    let entry = &compiled.manifest().operations[0];
    assert_eq!((&*entry.implementation, entry.device), ("cuda", device()));
    let outputs = leaves(&compiled.executable().run_with(&other, &arguments).unwrap());
    assert!(same_bits(&outputs[0], &expected));
}

/// Guards that a warm tape, which is replayed as recorded, takes other arguments, other contents of
/// live materials and other secrets, hands what it is given through, and says how it runs.
#[test]
fn a_warm_tape_is_replayed_on_other_values() {
    let (engine, keys) = engine();
    let other = engine.keygen(&[1], false).unwrap();
    engine.use_keys(&other.evaluation()).unwrap();
    let weights = Arc::new(LiveTensor::new(message(9, &[8])));
    let func = "func (%x: !fresh) {
        %w = core.material {symbol = @w}
        %p = he.encode %w {level = 2, scale = 2^40}
        %a = he.square %x
        %b = he.relinearize %a
        %c = he.rescale %b
        %d = he.rotate %c {step = 1}
        %e = he.mul %d, %p
        return (%e, %x, %p, %c)
    }";
    let program = program(engine, "material @w : !tensor<f64, [8]>", func);
    let bound = [("w", MaterialBinding::Live(weights.clone()))];
    let compiled = prepared(engine, program, &bound, PrepareOptions::default()).unwrap();
    let executable = compiled.executable();
    assert_eq!(executable.replays(), Replays::NotYet);
    for round in 0..6 {
        let keys = [keys, &other][round / 2 % 2];
        let x = encrypt(engine, keys, &message(round, &[8]));
        if round % 2 == 1 {
            weights.set(message(20 + round, &[8]));
        }
        let p = engine.encode(&weights.get(), Some(2), None).unwrap().into();
        let square = engine.relinearize(&engine.square(&x).unwrap(), None);
        let c = engine.rescale(&square.unwrap()).unwrap();
        let e = engine.multiply(&engine.rotate(&c, 1, None).unwrap(), &p);
        let expected = [e.unwrap(), x.clone(), p, c];
        let outputs = leaves(&executable.run(std::slice::from_ref(&x)).unwrap());
        for (place, (output, expected)) in outputs.iter().zip(&expected).enumerate() {
            assert!(
                same_bits(output, expected),
                "output {place} of round {round}"
            );
        }
        assert_eq!(outputs[1].address(), x.address());
    }
    let Replays::Undecided(launches) = executable.replays() else {
        panic!("{:?}", executable.replays());
    };
    assert!(launches > 5);
    assert!(
        compiled.explain().contains("runs as"),
        "{}",
        compiled.explain()
    );
}
