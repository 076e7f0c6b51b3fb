//! Encoding, encryption and decryption against the messages.

use fhelium_ckks::*;

mod support;
use support::*;

#[test]
fn messages_come_back_from_encryption() {
    let bench = Bench::new(Parameters::builder(3, 40).log_n(10).allow_insecure(true), 1);
    let values = bench.random(1, &[2, 512]);
    for level in [3, 0] {
        let x = bench.encrypt(&values, &[2, 512], level);
        let found = bench.decrypt(&x);
        assert!(distance(&found, &values) < 1e-6, "level {level}");
    }
}

#[test]
fn product_rotation_conjugation() {
    let bench = Bench::new(Parameters::builder(3, 40).log_n(10).allow_insecure(true), 1);
    let values = bench.random(1, &[512]);
    let x = bench.encrypt(&values, &[512], 3);
    let relin = bench.keys().relinearization(&bench.secret).unwrap();
    let y = bench.context.multiply_relinearize(&x, &x, &relin).unwrap();
    let y = bench.context.rescale(&y).unwrap();
    let squares: Vec<_> = values.iter().map(|v| v * v).collect();
    assert!(distance(&bench.decrypt(&y), &squares) < 1e-6);
    let key = bench.keys().rotation(&bench.secret, 3).unwrap();
    let z = bench.context.rotate(&x, 3, &key).unwrap();
    let turned: Vec<_> = (0..512).map(|i| values[(i + 3) % 512]).collect();
    assert!(distance(&bench.decrypt(&z), &turned) < 1e-6);
    let key = bench.keys().conjugation(&bench.secret).unwrap();
    let z = bench.context.conjugate(&x, &key).unwrap();
    let turned: Vec<_> = values.iter().map(|v| v.conj()).collect();
    assert!(distance(&bench.decrypt(&z), &turned) < 1e-6);
}
