//! Saving and loading: what is saved comes back, secrets stay where they are, files are whole.

mod common;

use common::{decrypt, encrypt, engine, message, new_engine, parameters, program, same_bits};
use fhelium_runtime::ckks::security::SecurityLevel;
use fhelium_runtime::ckks::{Parameters, Scale};
use fhelium_runtime::passes::{Compilation, default_pipeline};
use fhelium_runtime::persist::{
    Kind, Object, PersistError, SaveOptions, from_bytes, inspect, inspect_bytes, load, save,
    to_bytes,
};
use fhelium_runtime::state::ErrorKind;
use fhelium_runtime::tensor::{Element, Tensor};
use fhelium_runtime::{Engine, MaterialBinding, Value};
use std::fs;
use std::sync::Arc;

const PUBLIC: SaveOptions = SaveOptions {
    overwrite: false,
    allow_secret: false,
};
const SECRET: SaveOptions = SaveOptions {
    overwrite: false,
    allow_secret: true,
};

fn through_bytes(object: &Object) -> Object {
    let bytes = to_bytes(object, SECRET).unwrap();
    assert_eq!(bytes, to_bytes(object, SECRET).unwrap(), "files repeat");
    from_bytes(&bytes, &[object.kind()]).unwrap()
}

/// Parameters come back equal, the security that was asked for and explicit primes included.
#[test]
fn parameters_come_back_equal() {
    let secure = Parameters::builder(1, 30)
        .security(SecurityLevel::Bits192)
        .build()
        .unwrap();
    for parameters in [parameters(), secure] {
        match through_bytes(&Object::Parameters(parameters.clone())) {
            Object::Parameters(back) => {
                assert_eq!(back, parameters);
                assert_eq!(back.to_string(), parameters.to_string());
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Residues, level, exact scale, parts, batch and secret come back, at every level and part count.
#[test]
fn values_come_back_to_the_bit() {
    let (engine, keys) = engine();
    let parameters = engine.parameters();
    let x = encrypt(engine, keys, &message(1, &[2, 3, 8]));
    let product = engine.multiply(&x, &x).unwrap();
    let rescaled = engine.rescale(&product).unwrap();
    let lowest = engine.drop_levels(&x, 3).unwrap();
    for value in [&x, &product, &rescaled, &lowest] {
        let saved = value.ciphertext().unwrap().clone();
        let secret = saved.secret_id();
        match through_bytes(&Object::Ciphertext(saved, parameters.clone())) {
            Object::Ciphertext(back, with) => {
                assert_eq!(&with, parameters);
                assert_eq!(back.secret_id(), secret);
                assert!(same_bits(&Value::Ciphertext(back), value));
            }
            other => panic!("{other:?}"),
        }
    }
    let odd = Scale::from_bits(35).over_prime(257);
    let plaintext = engine
        .encode(&message(2, &[5]), Some(1), Some(&odd))
        .unwrap();
    match through_bytes(&Object::Plaintext(plaintext.clone(), parameters.clone())) {
        Object::Plaintext(back, _) => assert!(same_bits(&back.into(), &plaintext.into())),
        other => panic!("{other:?}"),
    }
    let empty = engine.encode(&message(2, &[0, 4]), None, None).unwrap();
    match through_bytes(&Object::Plaintext(empty.clone(), parameters.clone())) {
        Object::Plaintext(back, _) => assert!(same_bits(&back.into(), &empty.into())),
        other => panic!("{other:?}"),
    }
}

/// Loaded keys do what the saved ones do, and a loaded secret decrypts.
#[test]
fn keys_come_back_and_work() {
    let (own, keys) = engine();
    let parameters = own.parameters().clone();
    let x = encrypt(own, keys, &message(3, &[6]));
    let Object::KeySet(all, _) = through_bytes(&Object::KeySet(keys.clone(), parameters.clone()))
    else {
        panic!("a key set")
    };
    assert_eq!(decrypt(own, &all, &x), decrypt(own, keys, &x));
    assert_eq!(all.nbytes(), keys.nbytes());
    let evaluation = Object::EvaluationKeys(keys.evaluation(), parameters.clone());
    let Object::EvaluationKeys(loaded, _) = through_bytes(&evaluation) else {
        panic!("evaluation keys")
    };
    assert_eq!(
        loaded.rotations.keys().collect::<Vec<_>>(),
        keys.rotations.keys().collect::<Vec<_>>()
    );
    let fresh = new_engine();
    fresh.use_keys(&loaded).unwrap();
    for step in [1, -1] {
        let rotated = fresh.rotate(&x, step, None).unwrap();
        assert!(same_bits(&rotated, &own.rotate(&x, step, None).unwrap()));
    }
    let product = own.multiply(&x, &x).unwrap();
    let relinearized = own.relinearize(&product, None).unwrap();
    assert!(same_bits(
        &fresh.relinearize(&product, None).unwrap(),
        &relinearized
    ));
    let conjugated = own.conjugate(&x, None).unwrap();
    assert!(same_bits(&fresh.conjugate(&x, None).unwrap(), &conjugated));

    let public = Object::PublicKey(keys.public.clone(), parameters.clone());
    let Object::PublicKey(public, _) = through_bytes(&public) else {
        panic!("a public key")
    };
    let plaintext = own.encode(&message(4, &[6]), None, None).unwrap();
    let y = own.encrypt(&plaintext, &public).unwrap().into();
    assert!((decrypt(own, keys, &y)[0] - message(4, &[6]).to_vec::<f64>()[0]).abs() < 1e-6);
    let secret = Object::SecretKey(keys.secret.clone(), parameters.clone());
    let Object::SecretKey(secret, _) = through_bytes(&secret) else {
        panic!("a secret key")
    };
    assert_eq!(secret.secret_id(), keys.secret.secret_id());
    let one = Object::EvaluationKey(keys.rotations[&5].clone(), parameters.clone());
    let Object::EvaluationKey(one, _) = through_bytes(&one) else {
        panic!("an evaluation key")
    };
    assert_eq!(
        one.host().unwrap().residues(),
        keys.rotations[&5].host().unwrap().residues()
    );
    assert_eq!(one.key_kind(), keys.rotations[&5].key_kind());
}

/// A secret is written only where that is said, and no other file holds any part of it.
#[test]
fn secrets_are_written_only_where_it_is_said() {
    let (engine, keys) = engine();
    let parameters = engine.parameters();
    let secrets = [
        Object::SecretKey(keys.secret.clone(), parameters.clone()),
        Object::KeySet(keys.clone(), parameters.clone()),
    ];
    for secret in &secrets {
        let error = to_bytes(secret, PUBLIC).unwrap_err();
        assert!(matches!(error, PersistError::Secret { .. }));
        assert!(error.to_string().contains("allow_secret"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        assert!(save(secret, &path, PUBLIC).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    let coefficients = keys
        .secret
        .host()
        .unwrap()
        .coefficients(engine.context())
        .unwrap();
    let coefficients: &[u8] = bytemuck::cast_slice(&coefficients);
    let holds = |object: &Object| {
        let bytes = to_bytes(object, SECRET).unwrap();
        // Any sixteen coefficients in a row, so that no part of it is missed.
        let starts = (0..coefficients.len() - 16).step_by(16);
        let mut pieces = starts.map(|start| &coefficients[start..start + 16]);
        pieces.any(|piece| bytes.windows(16).any(|window| window == piece))
    };
    assert!(secrets.iter().all(holds));
    let x = encrypt(engine, keys, &message(5, &[4]));
    let ciphertext = Object::Ciphertext(x.ciphertext().unwrap().clone(), parameters.clone());
    assert!(!holds(&ciphertext));
    assert!(!holds(&Object::PublicKey(
        keys.public.clone(),
        parameters.clone()
    )));
    let rotation = keys.rotations[&1].clone();
    assert!(!holds(&Object::EvaluationKey(rotation, parameters.clone())));
}

fn live(value: impl Into<Value>) -> Arc<MaterialBinding> {
    Arc::new(MaterialBinding::from(value))
}

fn element<T: Element>(value: T) -> Value {
    Tensor::from_vec(vec![value; 6], &[2, 3]).unwrap().into()
}

/// A Compilation comes back with its Program, materials of every kind, plans and reports, and what
/// was compiled from it runs as before.
#[test]
fn compilations_come_back_whole() {
    let (engine, keys) = engine();
    let func = "func (%x: !fresh) {
      %v = core.material {symbol = @v}
      %p = he.encode %v {level = 3, scale = 2^40}
      %y = he.mul %x, %p
      %r = he.rotate %y {step = 1}
      return %r
    }";
    let source = program(engine, "material @v : !tensor<f64, [4]> \"weights\"", func);
    let mut source = Compilation::new(source);
    let x = encrypt(engine, keys, &message(6, &[8]));
    let complex = num_complex::Complex::new(1.5f64, -0.0);
    let values = [
        ("v", Value::from(message(7, &[4]))),
        ("ciphertext", x.clone()),
        (
            "plaintext",
            engine.encode(&message(8, &[4]), None, None).unwrap().into(),
        ),
        ("key", Value::Key(keys.rotations[&5].clone())),
        ("bool", element(true)),
        ("i32", element(-3i32)),
        ("i64", element(i64::MIN)),
        ("f32", element(f32::NAN)),
        ("c64", element(num_complex::Complex::new(1.5f32, -2.0))),
        ("c128", element(complex)),
    ];
    for (symbol, value) in &values {
        source
            .material_bindings
            .insert(*symbol, live(value.clone()));
    }
    let compiled = default_pipeline().run(source).unwrap();
    let Object::Compilation(back) = through_bytes(&Object::Compilation(compiled.clone())) else {
        panic!("a compilation")
    };
    assert_eq!(back.program(), compiled.program());
    assert_eq!(back.reports(), compiled.reports());
    assert_eq!(back.plans().prologue, compiled.plans().prologue);
    assert_eq!(back.plans().buffers, compiled.plans().buffers);
    assert_eq!(back.plans().routes, compiled.plans().routes);
    for (symbol, value) in &values {
        let binding = back
            .material_bindings
            .get::<MaterialBinding>(symbol)
            .unwrap();
        let loaded = binding.current().unwrap();
        match (value, &loaded) {
            (Value::Key(saved), Value::Key(loaded)) => {
                assert_eq!(
                    saved.host().unwrap().residues(),
                    loaded.host().unwrap().residues()
                );
            }
            _ => assert!(same_bits(value, &loaded), "{symbol}"),
        }
    }
    let run = |compilation: &Compilation| {
        let backend = engine.backend();
        let linked = fhelium_runtime::link(compilation, backend, engine, Default::default());
        common::leaves(&linked.unwrap().run(std::slice::from_ref(&x)).unwrap())
    };
    assert!(same_bits(&run(&back)[0], &run(&compiled)[0]));

    let text = Object::Program(compiled.program().clone());
    let Object::Program(program) = through_bytes(&text) else {
        panic!("a program")
    };
    assert_eq!(&program, compiled.program());
}

/// A header tells kind, parameters and parts without the data, which it says nothing false about.
#[test]
fn a_file_tells_what_it_holds() {
    let (engine, keys) = engine();
    let parameters = engine.parameters();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.fhelium");
    let object = Object::EvaluationKeys(keys.evaluation(), parameters.clone());
    save(&object, &path, PUBLIC).unwrap();
    let seen = inspect(&path).unwrap();
    assert_eq!(seen.kind, Kind::EvaluationKeys);
    assert_eq!(seen.parameters.as_ref(), Some(parameters));
    assert_eq!(seen.nbytes, fs::metadata(&path).unwrap().len());
    assert_eq!(seen.contents["holds_secret"], false);
    let listed = seen.contents["keys"].as_array().unwrap();
    let steps: Vec<_> = listed
        .iter()
        .filter_map(|key| key["step"].as_u64())
        .collect();
    assert_eq!(steps, [1, 2, 5, 511]);
    assert_eq!(listed.len(), 7);
    // Cut off after the header, it still tells; loading finds out.
    let whole = fs::read(&path).unwrap();
    assert_eq!(inspect_bytes(&whole).unwrap().contents, seen.contents);
    assert!(inspect_bytes(&whole[..whole.len() - 1]).is_err());

    let error = load(&path, &[Kind::KeySet, Kind::SecretKey]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Serialization);
    let text = error.to_string();
    let words = "keys.fhelium holds evaluation keys, expected a key set or a secret key";
    assert!(text.ends_with(words), "{text}");
}

/// Files are not replaced unless that is asked for, appear whole, and leave nothing beside them.
#[test]
fn files_are_placed_whole_and_replaced_only_where_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.fhelium");
    let first = Object::Parameters(parameters());
    save(&first, &path, PUBLIC).unwrap();
    let bytes = fs::read(&path).unwrap();
    let other = Parameters::builder(1, 30).build().unwrap();
    let other = Object::Parameters(other);
    let error = save(&other, &path, PUBLIC).unwrap_err();
    assert!(matches!(error, PersistError::Exists { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
    let overwrite = SaveOptions {
        overwrite: true,
        ..PUBLIC
    };
    save(&other, &path, overwrite).unwrap();
    assert_eq!(fs::read(&path).unwrap(), to_bytes(&other, PUBLIC).unwrap());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    for (path, words) in [
        (folder.path().join("no/such/folder"), "no/such/folder"),
        (folder.path().to_owned(), "exists"),
    ] {
        let error = save(&first, &path, PUBLIC).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    let missing = load(folder.path().join("missing"), &[]).unwrap_err();
    assert!(matches!(missing, PersistError::Io { .. }), "{missing}");
    assert!(
        load(folder.path(), &[])
            .unwrap_err()
            .to_string()
            .contains("a directory")
    );
}

#[cfg(unix)]
#[test]
fn a_secret_is_readable_by_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (engine, keys) = engine();
    let parameters = engine.parameters();
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = folder.path().join("secret");
    let secret = Object::SecretKey(keys.secret.clone(), parameters.clone());
    save(&secret, &path, SECRET).unwrap();
    assert_eq!(mode(&path), 0o600);
    // Others follow the umask, as a file made by any program does.
    let path = folder.path().join("parameters");
    save(&Object::Parameters(parameters.clone()), &path, PUBLIC).unwrap();
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    assert_eq!(mode(&path), mode(&plain));
}

/// A value is not saved as one of other parameters, which would be found only by who loads it.
#[test]
fn a_value_is_saved_with_its_own_parameters_only() {
    let (engine, keys) = engine();
    let other = Parameters::builder(1, 30).build().unwrap();
    let x = encrypt(engine, keys, &message(1, &[2]));
    let mixed = [
        Object::Ciphertext(x.ciphertext().unwrap().clone(), other.clone()),
        Object::PublicKey(keys.public.clone(), other.clone()),
        Object::SecretKey(keys.secret.clone(), other.clone()),
        Object::EvaluationKeys(keys.evaluation(), other),
    ];
    for object in &mixed {
        let error = to_bytes(object, SECRET).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::KeyMismatch, "{error}");
    }
}

/// Values from outside join the engine that is there, the last one made, before one is made.
#[test]
fn values_find_the_engine_of_their_parameters() {
    let own = Parameters::builder(1, 31).build().unwrap();
    let made = Engine::for_parameters(&own).unwrap();
    assert!(Arc::ptr_eq(&made, &Engine::for_parameters(&own).unwrap()));
    let mine = Engine::new(&own, Default::default()).unwrap();
    assert!(Arc::ptr_eq(&mine, &Engine::for_parameters(&own).unwrap()));
    drop(mine);
    assert!(Arc::ptr_eq(&made, &Engine::for_parameters(&own).unwrap()));
}
