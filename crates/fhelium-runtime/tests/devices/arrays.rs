//! Clear arrays on a device.

use crate::common::{
    device, encrypt, engine, leaves, message, on_host, prepared, program, same_bits, twin,
};
use fhelium_ir::Tensor;
use fhelium_runtime::ckks::ErrorKind;
use fhelium_runtime::{Array, Device, Engine, PrepareOptions, Value};
use std::sync::Arc;

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
