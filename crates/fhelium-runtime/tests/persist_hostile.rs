//! Files that are cut, damaged or made up: an error that names the place, and nothing worse.

mod common;

use common::{encrypt, engine, message, program};
use fhelium_runtime::passes::{Compilation, default_pipeline};
use fhelium_runtime::persist::{
    Object, PersistError, SaveOptions, from_bytes, inspect_bytes, to_bytes,
};
use fhelium_runtime::{MaterialBinding, Value};
use proptest::prelude::*;
use std::sync::{Arc, OnceLock};

/// One file of every kind.
fn files() -> &'static [Vec<u8>] {
    static FILES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    FILES.get_or_init(|| {
        let (engine, keys) = engine();
        let parameters = || engine.parameters().clone();
        let x = encrypt(engine, keys, &message(1, &[2, 8]));
        let plaintext = engine.encode(&message(2, &[4]), None, None).unwrap();
        let func = "func (%x: !fresh) {
          %v = core.material {symbol = @v}
          %y = he.add %x, %v
          %r = he.rotate %y {step = 1}
          return %r
        }";
        let material = "material @v : !ciphertext<[2], level=3, scale=2^40, parts=2>";
        let program = program(engine, material, func);
        let mut source = Compilation::new(program.clone());
        let binding = Arc::new(MaterialBinding::Fixed(x.clone()));
        source.material_bindings.insert("v", binding);
        let compiled = default_pipeline().run(source).unwrap();
        let Value::Ciphertext(x) = x else {
            panic!("a ciphertext")
        };
        let objects = [
            Object::Parameters(parameters()),
            Object::Ciphertext(x, parameters()),
            Object::Plaintext(plaintext, parameters()),
            Object::SecretKey(keys.secret.clone(), parameters()),
            Object::PublicKey(keys.public.clone(), parameters()),
            Object::EvaluationKey(keys.rotations[&1].clone(), parameters()),
            Object::EvaluationKeys(keys.evaluation(), parameters()),
            Object::KeySet(keys.clone(), parameters()),
            Object::Program(program),
            Object::Compilation(compiled),
        ];
        let options = SaveOptions {
            allow_secret: true,
            ..SaveOptions::default()
        };
        let bytes = objects.iter().map(|object| to_bytes(object, options));
        bytes.collect::<Result<_, _>>().unwrap()
    })
}

fn header(file: &[u8]) -> String {
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    String::from_utf8(file[8..8 + length].to_vec()).unwrap()
}

fn with_header(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(data);
    file
}

fn refused(bytes: &[u8]) -> PersistError {
    let error = from_bytes(bytes, &[]).unwrap_err();
    let _ = inspect_bytes(bytes);
    let text = error.to_string();
    assert!(text.contains("the given bytes"), "{text}");
    assert!(text.len() < 2000, "{text}");
    error
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Wherever a file is cut off, loading says so.
    #[test]
    fn a_file_cut_off_is_refused(which in 0usize..10, at in 0.0f64..1.0) {
        let file = &files()[which];
        refused(&file[..(file.len() as f64 * at) as usize]);
    }

    /// Any single changed bit is found.
    #[test]
    fn a_changed_bit_is_found(which in 0usize..10, at in 0.0f64..1.0, bit in 0u8..8, early: bool) {
        let mut file = files()[which].clone();
        let length = 8 + header(&file).len();
        let span = if early { length } else { file.len() };
        let place = (span as f64 * at) as usize;
        let blank = place >= 8 && place < length && file[place] == b' ';
        file[place] ^= 1 << bit;
        // White space after the header is nobody's.
        prop_assume!(!blank);
        refused(&file);
    }

    /// Bytes added are found.
    #[test]
    fn bytes_added_are_found(which in 0usize..10, more in proptest::collection::vec(any::<u8>(), 1..50)) {
        let mut file = files()[which].clone();
        file.extend(more);
        refused(&file);
    }

    /// Noise is refused, with any claimed length of the header.
    #[test]
    fn noise_is_refused(length: u64, noise in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend(&noise);
        refused(&bytes);
        refused(&noise);
    }

    /// A header in which any number or word is exchanged for another is refused, checksum or not.
    #[test]
    fn a_header_with_other_words_is_refused(
        which in 0usize..10, word in any::<prop::sample::Index>(), other in "[0-9]{1,20}|-1|null|\"x\"|\\[\\]|1e999"
    ) {
        let file = &files()[which];
        let head = header(file);
        let words: Vec<&str> = head.split_inclusive([':', ',', '[', ']', '{', '}']).collect();
        let place = word.index(words.len());
        let mut changed: Vec<String> = words.iter().map(ToString::to_string).collect();
        let mark = changed[place].pop().map(String::from).unwrap_or_default();
        changed[place] = other + &mark;
        let changed = changed.concat();
        prop_assume!(changed != head);
        refused(&with_header(&changed, &file[8 + head.len()..]));
    }
}

/// Sizes that no machine has are refused before anything is allocated for them.
#[test]
fn sizes_out_of_this_world_are_refused() {
    let huge = u64::MAX;
    let shapes = [
        format!("[{huge}]"),
        "[4294967296,4294967296,8]".to_owned(),
        "[18446744073709551615,0]".to_owned(),
    ];
    for shape in shapes {
        for offsets in ["[0,0]", "[0,18446744073709551615]", "[8,0]", "[0,8]"] {
            let text = format!(
                "{{\"residues\":{{\"dtype\":\"U64\",\"shape\":{shape},\"data_offsets\":{offsets}}}}}"
            );
            refused(&with_header(&text, &[0; 8]));
        }
    }
    let deep = "[".repeat(100_000);
    refused(&with_header(&deep, &[]));
    refused(&with_header(
        &format!("{{\"__metadata__\":{{\"fhelium\":\"{}\"}}}}", deep),
        &[],
    ));
    let mut long = (u64::MAX).to_le_bytes().to_vec();
    long.extend([b' '; 64]);
    assert!(refused(&long).to_string().contains("length of the header"));
}

/// What a file claims is held against what else it says and against the parameters, also where
/// its checksums are right.
#[test]
fn claims_that_do_not_fit_are_refused_by_name() {
    let claims = [
        (1, "\\\"level\\\":3", "\\\"level\\\":2", "residues"),
        (1, "\\\"level\\\":3", "\\\"level\\\":99", "level"),
        (
            1,
            "\\\"level\\\":3",
            "\\\"level\\\":18446744073709551615",
            "level",
        ),
        (1, "\\\"parts\\\":2", "\\\"parts\\\":4", "parts"),
        (1, "\\\"parts\\\":2", "\\\"parts\\\":3", "residues"),
        (1, "\\\"batch\\\":[2]", "\\\"batch\\\":[3]", "residues"),
        (
            1,
            "\\\"batch\\\":[2]",
            "\\\"batch\\\":[18446744073709551615,2]",
            "residues",
        ),
        (
            1,
            "\\\"scale\\\":\\\"2^40\\\",\\\"parts",
            "\\\"scale\\\":\\\"2^4000\\\",\\\"parts",
            "scale",
        ),
        (
            1,
            "\\\"scale\\\":\\\"2^40\\\",\\\"parts",
            "\\\"scale\\\":\\\"2^-40\\\",\\\"parts",
            "scale",
        ),
        (
            1,
            "\\\"scale\\\":\\\"2^40\\\",\\\"parts",
            "\\\"scale\\\":\\\"zero\\\",\\\"parts",
            "scale",
        ),
        (1, "\\\"log_n\\\":10", "\\\"log_n\\\":11", "parameters"),
        (1, "\\\"log_n\\\":10", "\\\"log_n\\\":60", "log_n"),
        (
            1,
            "\\\"security\\\":128",
            "\\\"security\\\":127",
            "security",
        ),
        (
            1,
            "\\\"kind\\\":\\\"ciphertext\\\"",
            "\\\"kind\\\":\\\"plaintext\\\"",
            "residues",
        ),
        (
            1,
            "\\\"kind\\\":\\\"ciphertext\\\"",
            "\\\"kind\\\":\\\"cipher\\\"",
            "kind",
        ),
        (
            1,
            "\\\"kind\\\":\\\"ciphertext\\\"",
            "\\\"kind\\\":\\\"program\\\"",
            "program",
        ),
        (1, "\\\"schema\\\":1", "\\\"schema\\\":2", "schema 2"),
        (5, "\\\"step\\\":1", "\\\"step\\\":0", "step"),
        (5, "\\\"step\\\":1", "\\\"step\\\":512", "step"),
        (
            5,
            "\\\"key\\\":\\\"rotation\\\"",
            "\\\"key\\\":\\\"secret\\\"",
            "keys",
        ),
        (
            6,
            "\\\"key\\\":\\\"public\\\"",
            "\\\"key\\\":\\\"relinearization\\\"",
            "relinearization.seed",
        ),
    ];
    for (which, old, new, words) in claims {
        let file = &files()[which];
        let head = header(file);
        assert!(head.contains(old), "{old} in {head}");
        // A key's tensors go by its step.
        let step = new.split_once("step\\\":").map_or("1", |(_, step)| step);
        let changed = head.replacen(old, new, 1);
        let changed = changed.replace("rotation-1.", &format!("rotation-{step}."));
        let changed = with_header(&changed, &file[8 + head.len()..]);
        let text = refused(&resealed(&changed)).to_string();
        assert!(text.contains(words), "{old} -> {new}: {text}");
        assert!(!text.contains("checksum"), "{old} -> {new}: {text}");
    }
}

/// Residues at or above their modulus, and coefficients of a secret that are not ternary.
#[test]
fn data_out_of_range_is_refused() {
    for (which, words) in [
        (1, "residue"),
        (2, "residue"),
        (4, "residue"),
        (6, "residue"),
    ] {
        let mut file = files()[which].clone();
        let start = 8 + header(&file).len();
        file[start..start + 8].fill(0xff);
        let text = refused(&resealed(&file)).to_string();
        assert!(text.contains(words), "{text}");
    }
    let mut file = files()[3].clone();
    let end = file.len();
    file[end - 1] = 77;
    let text = refused(&resealed(&file)).to_string();
    assert!(text.contains("-1..=1") && !text.contains("77"), "{text}");
}

/// A file of another program is called that.
#[test]
fn other_safetensors_files_are_named() {
    let text = "{\"__metadata__\":{\"format\":\"pt\"},\"w\":{\"dtype\":\"F32\",\"shape\":[1],\
                \"data_offsets\":[0,4]}}";
    let error = refused(&with_header(text, &[0; 4]));
    assert!(error.to_string().contains("another program"), "{error}");
    assert!(
        refused(b"PK\x03\x04 a zip archive, not ours")
            .to_string()
            .contains("header")
    );
}

/// The file with checksums that fit what it says now, which whoever makes one up would write.
fn resealed(file: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    for name in ["data_checksum", "header_checksum"] {
        let error = match from_bytes(&file, &[]) {
            Err(error) => error.to_string(),
            Ok(_) => return file,
        };
        // The message says what the checksum must be, and what the file says.
        let Some((_, rest)) = error.split_once(&name.replace('_', " ")) else {
            continue;
        };
        let digits: Vec<&str> = rest
            .split(|c: char| !c.is_ascii_hexdigit())
            .filter(|word| word.len() == 16)
            .collect();
        let (right, old) = match name {
            "data_checksum" => (digits[0], digits[1]),
            _ => (digits[1], digits[0]),
        };
        let head = header(&file);
        let data = file[8 + head.len()..].to_vec();
        file = with_header(&head.replace(old, right), &data);
        // A new data checksum changes what the header's is of.
        if name == "data_checksum" {
            return resealed(&file);
        }
    }
    file
}
