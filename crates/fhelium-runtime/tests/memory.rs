//! Memory over many calls, in a process of its own.
#![cfg(target_os = "linux")]

mod common;

use common::{encrypt, engine, message, prepared, program};
use fhelium_runtime::PrepareOptions;

const SQUARE: &str = "func (%x: !fresh) {
    %a = he.square %x
    %b = he.relinearize %a
    %c = he.rescale %b
    return %c
}";

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Guards that memory stays flat over many calls, eager and compiled.
#[test]
fn memory_is_flat() {
    let (engine, keys) = engine();
    let program = program(engine, "", SQUARE);
    let specialization = prepared(engine, program, &[], PrepareOptions::default()).unwrap();
    let x = [encrypt(engine, keys, &message(1, &[4]))];
    let mut before = 0;
    for round in 0..2000 {
        if round == 200 {
            before = resident();
        }
        specialization.executable().run(&x).unwrap();
        engine.rotate(&x[0], 1, None).unwrap();
    }
    // Calls that kept their result would hold 200 MB.
    assert!(resident().saturating_sub(before) < 8 << 20);
}
