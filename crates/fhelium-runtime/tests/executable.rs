//! Executables: keys, arguments, outputs, threads and memory.

mod common;

use common::{decrypt, encrypt, engine, leaves, message, new_engine, prepared, program, same_bits};
use fhelium_runtime::ckks::ErrorKind;
use fhelium_runtime::ir::{KeyKind, OutputTree};
use fhelium_runtime::{PrepareOptions, RuntimeError, Value, link};

const ROTATIONS: &str = r#"func (%x: !fresh) {
    %a = he.rotate %x {step = 1} loc("score.py":3 in score)
    %b = he.rotate %a {step = -511} loc("score.py":4 in score)
    %c = he.rotate %b {step = 7} loc("score.py":5 in score)
    %d = he.conjugate %c loc("score.py":6 in score)
    return %d
}"#;

const SQUARE: &str = r#"func (%x: !fresh) {
    %a = he.square %x loc("score.py":3 in score)
    %b = he.relinearize %a loc("score.py":4 in score)
    %c = he.rescale %b loc("score.py":5 in score)
    return %c
}"#;

/// Guards that linking for given arguments names every missing key with the lines that need it,
/// and that the same program links once the keys are there.
#[test]
fn all_missing_keys_are_listed_at_link() {
    let engine = new_engine();
    let keys = engine.keygen(&[1], false).unwrap();
    let arguments = [encrypt(&engine, &keys, &message(1, &[4]))];
    let options = PrepareOptions {
        arguments: Some(&arguments),
        ..PrepareOptions::default()
    };
    let prepare = || prepared(&engine, program(&engine, "", ROTATIONS), &[], options);

    let error = prepare().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MissingKey);
    assert!(
        error
            .to_string()
            .contains("no evaluation keys of this ciphertext's secret")
    );

    engine.use_keys(&keys.evaluation()).unwrap();
    let RuntimeError::MissingKeys(missing) = prepare().unwrap_err() else {
        panic!("expected MissingKeys");
    };
    let found: Vec<(KeyKind, u32)> = missing
        .missing
        .iter()
        .map(|key| (key.kind, key.locations[0].line))
        .collect();
    // -511 is 1 modulo the 512 slots.
    assert_eq!(
        found,
        [
            (KeyKind::Rotation { step: 7 }, 5),
            (KeyKind::Conjugation, 6)
        ]
    );
    let text = missing.to_string();
    assert!(
        text.contains("rotation 7 (needed at score.py:5 in score)"),
        "{text}"
    );
    assert!(text.contains("registered rotation steps are [1]"), "{text}");
    assert!(
        text.contains("rotations=[7]") && text.contains("conjugation=True"),
        "{text}"
    );

    let mut more = keys.evaluation();
    more.rotations = engine.rotation_keys(&keys.secret, &[7]).unwrap();
    engine.use_keys(&more).unwrap();
    let missing = prepare().unwrap_err().to_string();
    assert!(!missing.contains("rotation 7"), "{missing}");
}

/// Guards that an eager operation without its key says which keys there are.
#[test]
fn an_eager_missing_key_names_the_step() {
    let (engine, keys) = engine();
    let x = encrypt(engine, keys, &message(1, &[4]));
    let error = engine.rotate(&x, 3, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MissingKey);
    let text = error.to_string();
    assert!(
        text.contains("rotation 3") && text.contains("[1, 2, 5, 511]"),
        "{text}"
    );
    assert!(same_bits(&engine.rotate(&x, 1024, None).unwrap(), &x));
}

/// Guards that one executable serves several secrets, each with its own keys, that ciphertexts of
/// two secrets are refused by name, and that keys replaced later are used.
#[test]
fn keys_follow_the_secret_of_the_call() {
    let engine = new_engine();
    let [first, second] = [(); 2].map(|()| engine.keygen(&[], false).unwrap());
    engine.use_keys(&first.evaluation()).unwrap();
    let executable = prepared(
        &engine,
        program(&engine, "", SQUARE),
        &[],
        PrepareOptions::default(),
    )
    .unwrap();
    let executable = executable.executable();
    let x = encrypt(&engine, &second, &message(1, &[4]));
    let error = executable.run(std::slice::from_ref(&x)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MissingKey);
    engine.use_keys(&second.evaluation()).unwrap();
    for keys in [&first, &second] {
        let x = encrypt(&engine, keys, &message(1, &[4]));
        let outputs = executable.run(std::slice::from_ref(&x)).unwrap();
        let values = decrypt(&engine, keys, &leaves(&outputs)[0]);
        for (value, clear) in values.iter().zip(message(1, &[4]).to_vec::<f64>()) {
            assert!((value - clear * clear).abs() < 1e-6);
        }
    }

    let sum = "func (%x: !fresh, %y: !fresh) {\n %s = he.add %x, %y\n return %s\n }";
    let sum = prepared(
        &engine,
        program(&engine, "", sum),
        &[],
        PrepareOptions::default(),
    )
    .unwrap();
    let y = encrypt(&engine, &first, &message(2, &[4]));
    let error = sum.executable().run(&[x, y]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::KeyMismatch);
    let text = error.to_string();
    assert!(
        text.contains("the argument x") && text.contains("the argument y"),
        "{text}"
    );
}

/// Guards that another engine of the same parameters runs an executable with its own keys.
#[test]
fn another_engine_brings_its_keys() {
    let (engine, _) = engine();
    let other = new_engine();
    let keys = other.keygen(&[], false).unwrap();
    let x = [encrypt(&other, &keys, &message(1, &[4]))];
    let specialization = prepared(
        engine,
        program(engine, "", SQUARE),
        &[],
        PrepareOptions::default(),
    )
    .unwrap();
    other.use_keys(&keys.evaluation()).unwrap();
    assert!(specialization.executable().run(&x).is_err());
    let outputs = specialization.executable().run_with(&other, &x).unwrap();
    let product = other.square(&x[0]).unwrap();
    let expected = other
        .rescale(&other.relinearize(&product, None).unwrap())
        .unwrap();
    assert!(same_bits(&leaves(&outputs)[0], &expected));
}

/// Guards captured keys: bound to their symbol they are used whatever is registered.
#[test]
fn captured_keys_need_no_registration() {
    let engine = new_engine();
    let keys = engine.keygen(&[3], false).unwrap();
    let x = encrypt(&engine, &keys, &message(1, &[4]));
    let key = Value::from(keys.rotations[&3].clone());
    let func = "func (%x: !fresh) {
        %k = core.material {symbol = @turn}
        %y = he.rotate %x, %k {step = 3}
        return %y
    }";
    let specialization = prepared(
        &engine,
        program(&engine, "material @turn : !key<rotation 3>", func),
        &[("turn", key.clone().into())],
        PrepareOptions::default(),
    )
    .unwrap();
    let outputs = specialization
        .executable()
        .run(std::slice::from_ref(&x))
        .unwrap();
    let expected = engine.rotate(&x, 3, Some(&key)).unwrap();
    assert!(same_bits(&leaves(&outputs)[0], &expected));
    assert!(specialization.keys().is_empty());
}

/// Guards the output's structure: nesting, constants, an input and a value returned twice.
#[test]
fn outputs_keep_their_structure() {
    let (engine, keys) = engine();
    let x = encrypt(engine, keys, &message(1, &[4]));
    let func = r#"func (%x: !fresh) {
        %y = he.neg %x
        return {"a": (%y, %x, none), "b": [%y, 3, "text"]}
    }"#;
    let specialization = prepared(
        engine,
        program(engine, "", func),
        &[],
        PrepareOptions::default(),
    )
    .unwrap();
    let outputs = specialization
        .executable()
        .run(std::slice::from_ref(&x))
        .unwrap();
    let OutputTree::Dict(items) = &outputs else {
        panic!("expected a dict, found {outputs:?}");
    };
    assert_eq!(items.len(), 2);
    let values = leaves(&outputs);
    let negated = engine.negate(&x).unwrap();
    for (value, expected) in values.iter().zip([&negated, &x, &negated]) {
        assert!(same_bits(value, expected));
    }
}

/// Guards that wrong arguments are refused before anything runs, by name, found and expected.
#[test]
fn wrong_arguments_are_named() {
    let (engine, keys) = engine();
    let specialization = prepared(
        engine,
        program(engine, "", SQUARE),
        &[],
        PrepareOptions::default(),
    )
    .unwrap();
    let run = |arguments: &[Value]| specialization.executable().run(arguments).unwrap_err();
    let text = run(&[]).to_string();
    assert_eq!(text, "score takes 1 arguments (x), found 0");
    let x = encrypt(engine, keys, &message(1, &[4]));
    let lower = engine.drop_levels(&x, 1).unwrap();
    let text = run(&[lower]).to_string();
    assert!(
        text.contains("the argument x is !ciphertext<[], level=2"),
        "{text}"
    );
    let tensor = Value::from(message(1, &[4]));
    assert_eq!(run(&[tensor]).kind(), ErrorKind::Value);
}

/// Guards that an input without level and scale takes the argument's when it is prepared.
#[test]
fn open_inputs_take_the_arguments_state() {
    let (engine, keys) = engine();
    let func = "func (%x: !ciphertext<[2]>) {
        %y = he.mul %x, %x
        %z = he.relinearize %y
        return %z
    }";
    let x = encrypt(engine, keys, &message(1, &[2, 4]));
    for levels in 0..3 {
        let arguments = [engine.drop_levels(&x, levels).unwrap()];
        let options = PrepareOptions {
            arguments: Some(&arguments),
            ..PrepareOptions::default()
        };
        let specialization = prepared(engine, program(engine, "", func), &[], options).unwrap();
        let outputs = specialization.executable().run(&arguments).unwrap();
        let product = engine.square(&arguments[0]).unwrap();
        let expected = engine.relinearize(&product, None).unwrap();
        assert!(same_bits(&leaves(&outputs)[0], &expected));
    }
    let arguments = [encrypt(engine, keys, &message(1, &[3, 4]))];
    let options = PrepareOptions {
        arguments: Some(&arguments),
        ..PrepareOptions::default()
    };
    let text = prepared(engine, program(engine, "", func), &[], options)
        .unwrap_err()
        .to_string();
    assert!(text.contains("the input x is !ciphertext<[2]>"), "{text}");
}

/// Guards that he operations and other parameters are refused when linking.
#[test]
fn programs_that_cannot_run_do_not_link() {
    let (engine, _) = engine();
    let compilation = program(engine, "", SQUARE).into();
    let backend = fhelium_runtime::OperationBackend::standard();
    let error = link(&compilation, &backend, engine, Default::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Link);
    let text = error.to_string();
    assert!(text.starts_with("score.py:3 in score: he.square"), "{text}");
    assert!(text.contains("lower-to-ckks"), "{text}");

    let other = fhelium_runtime::ckks::Parameters::builder(2, 30)
        .log_n(10)
        .allow_insecure(true)
        .build()
        .unwrap();
    let other = fhelium_runtime::Engine::new(&other, Default::default()).unwrap();
    let error = link(&compilation, &backend, &other, Default::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::KeyMismatch);
}

/// Guards that one executable runs in many threads at once, with the same bits everywhere.
#[test]
fn threads_share_an_executable() {
    let (engine, keys) = engine();
    let specialization = prepared(
        engine,
        program(engine, "", SQUARE),
        &[],
        PrepareOptions::default(),
    )
    .unwrap();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let specialization = &specialization;
            scope.spawn(move || {
                let x = encrypt(engine, keys, &message(seed, &[4]));
                let product = engine.square(&x).unwrap();
                let relinearized = engine.relinearize(&product, None).unwrap();
                let expected = engine.rescale(&relinearized).unwrap();
                for _ in 0..25 {
                    let outputs = specialization
                        .executable()
                        .run(std::slice::from_ref(&x))
                        .unwrap();
                    assert!(same_bits(&leaves(&outputs)[0], &expected));
                }
            });
        }
    });
    let measured = specialization.executable().measured();
    assert_eq!(measured.runs, 100);
    assert!(measured.fastest.unwrap() * 100 <= measured.total);
}
