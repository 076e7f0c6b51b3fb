//! Random straight-line programs. Tests of other crates include this file by its path.

use fhelium_ckks::{LinearFactor, LinearProgram, LinearStep, LinearTerm, LinearValue};

/// A program over `parts`, with terms of all kinds in all registers.
pub fn program(parts: &[usize], below: &mut dyn FnMut(usize) -> usize) -> LinearProgram {
    let operands = |count: usize| (0..parts.len()).filter(move |&i| parts[i] <= count);
    let (any, plain): (Vec<_>, Vec<_>) = (operands(3).collect(), operands(1).collect());
    let of = |place: usize| LinearValue::Operand(place as u8);
    let mut steps = Vec::new();
    let mut integers = 0;
    for register in 0..4u8 {
        let start = any[below(any.len())];
        steps.push(LinearStep::Set(register, LinearTerm::of(of(start))));
    }
    for _ in 0..40 {
        let register = below(4) as u8;
        let value = match below(4) {
            0 => LinearValue::Register((register + 1 + below(3) as u8) % 4),
            _ => of(any[below(any.len())]),
        };
        integers += 1;
        let factor = match below(3) {
            0 if integers < 16 => {
                let edges = [0, 1, -1, 3, i64::MIN, i64::MAX, -(1 << 40)];
                LinearFactor::Integer(edges[below(edges.len())])
            }
            _ => LinearFactor::Value(of(plain[below(plain.len())])),
        };
        let term = match below(3) {
            0 => LinearTerm::of(value),
            _ => LinearTerm::product(value, factor),
        };
        steps.push(match below(8) {
            0..=2 => LinearStep::Add(register, term),
            3..=5 => LinearStep::Subtract(register, term),
            6 => LinearStep::Negate(register),
            _ => LinearStep::Multiply(register, factor),
        });
    }
    // A ciphertext at least, so that there is something to give.
    let ciphertext = of(any.iter().copied().find(|&i| parts[i] > 1).unwrap());
    for register in 0..4 {
        steps.push(LinearStep::Add(register, LinearTerm::of(ciphertext)));
        steps.push(LinearStep::Give(register, 3 - register));
    }
    LinearProgram::new(parts.to_vec(), steps).unwrap()
}
