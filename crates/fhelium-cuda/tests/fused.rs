//! Guards that fused sums and multiples on a device give the CPU's residues and refusals, on both
//! cores, and again when they are replayed on other operands.

mod bench;
#[path = "../../fhelium-ckks/tests/support/linear.rs"]
mod linear;

use bench::{Bench, has_kernels, parameters};
use fhelium_ckks::{CipherState, Ciphertext, LinearProgram, LinearResult, Plaintext, Scale};
use fhelium_cuda::{Core, Encoded, Replay};

/// The operands' parts: ciphertexts, of which one is of the highest level and single, then
/// plaintexts.
const PARTS: [usize; 5] = [2, 3, 2, 1, 1];

struct Operands {
    ciphertexts: Vec<Ciphertext>,
    plaintexts: Vec<Plaintext>,
}

impl Operands {
    fn new(bench: &mut Bench, parts: &[usize], level: usize, batch: &[usize]) -> Self {
        let highest = bench.host.parameters().depth();
        let (mut ciphertexts, mut plaintexts) = (Vec::new(), Vec::new());
        for (place, &parts) in parts.iter().enumerate() {
            match parts {
                1 if place % 2 == 1 => plaintexts.push(bench.plaintext(highest, &[])),
                1 => plaintexts.push(bench.plaintext(level, batch)),
                _ if place == 1 => ciphertexts.push(bench.ciphertext(highest, parts, &[1])),
                _ => ciphertexts.push(bench.ciphertext(level, parts, batch)),
            }
        }
        Operands {
            ciphertexts,
            plaintexts,
        }
    }

    fn on_host(&self) -> Vec<fhelium_ckks::Encoded<'_>> {
        let ciphertexts = self
            .ciphertexts
            .iter()
            .map(fhelium_ckks::Encoded::Ciphertext);
        let plaintexts = self.plaintexts.iter().map(fhelium_ckks::Encoded::Plaintext);
        ciphertexts.chain(plaintexts).collect()
    }

    fn upload(
        &self,
        bench: &Bench,
    ) -> (Vec<fhelium_cuda::Ciphertext>, Vec<fhelium_cuda::Plaintext>) {
        let ciphertexts = self.ciphertexts.iter().map(|x| bench.device.upload(x));
        let plaintexts = self
            .plaintexts
            .iter()
            .map(|p| bench.device.upload_plaintext(p));
        (
            ciphertexts.collect::<Result<_, _>>().unwrap(),
            plaintexts.collect::<Result<_, _>>().unwrap(),
        )
    }
}

fn encoded<'a>(
    ciphertexts: &'a [fhelium_cuda::Ciphertext],
    plaintexts: &'a [fhelium_cuda::Plaintext],
) -> Vec<Encoded<'a>> {
    let plaintexts = plaintexts.iter().map(Encoded::Plaintext);
    ciphertexts
        .iter()
        .map(Encoded::Ciphertext)
        .chain(plaintexts)
        .collect()
}

fn results(program: &LinearProgram, level: usize, batch: &[usize]) -> Vec<LinearResult> {
    let result = |&parts: &usize| LinearResult {
        state: CipherState {
            level,
            scale: Scale::from_bits(40),
            parts,
        },
        batch_shape: batch.to_vec(),
    };
    program.result_parts().iter().map(result).collect()
}

fn same(
    bench: &Bench,
    what: &str,
    expected: Vec<Ciphertext>,
    found: Vec<fhelium_cuda::Ciphertext>,
) {
    assert_eq!(expected.len(), found.len());
    for (place, (expected, found)) in expected.into_iter().zip(found).enumerate() {
        bench.same(
            &format!("result {place} of {what}"),
            Ok(expected),
            Ok(found),
        );
    }
}

#[test]
fn random_programs_give_the_residues_of_the_cpu() {
    if !has_kernels() {
        return;
    }
    let cores = [
        (40, Some(Core::Fp64)),
        (40, Some(Core::Integer)),
        (49, None),
        (58, None),
    ];
    for (scale_bits, core) in cores {
        let mut bench = Bench::new(&parameters(10, 3, scale_bits, Some(2)), core);
        for (level, batch) in [(0, &[][..]), (2, &[3]), (3, &[2, 1])] {
            for parts in [&PARTS[..], &[2, 2, 2, 1, 1]] {
                let operands = Operands::new(&mut bench, parts, level, batch);
                let (ciphertexts, plaintexts) = operands.upload(&bench);
                for _ in 0..3 {
                    let words = &mut bench.words;
                    let program = linear::program(parts, &mut |end| words.next() as usize % end);
                    let results = results(&program, level, batch);
                    let expected = bench.host.fused(&program, &operands.on_host(), &results);
                    let there = encoded(&ciphertexts, &plaintexts);
                    let found = bench.device.fused(&program, &there, &results);
                    same(
                        &bench,
                        &format!("{program:?}"),
                        expected.unwrap(),
                        found.unwrap(),
                    );
                }
            }
        }
    }
}

/// Guards the kernels of one register, at as many terms as there may be.
#[test]
fn a_sum_of_products_gives_the_residues_of_the_cpu() {
    use fhelium_ckks::{LinearFactor, LinearStep, LinearTerm, LinearValue};
    if !has_kernels() {
        return;
    }
    for (parts, core) in [
        (2, Core::Fp64),
        (3, Core::Fp64),
        (2, Core::Integer),
        (3, Core::Integer),
    ] {
        let mut bench = Bench::new(&parameters(11, 2, 40, Some(1)), Some(core));
        let shapes = [vec![parts; 32], vec![1; 32]].concat();
        let operands = Operands::new(&mut bench, &shapes, 1, &[2]);
        let product = |i: u8| {
            let factor = LinearFactor::Value(LinearValue::Operand(32 + i));
            LinearTerm::product(LinearValue::Operand(i), factor)
        };
        let mut steps = vec![LinearStep::Set(0, product(0)), LinearStep::Negate(0)];
        steps.extend((1..32).map(|i| match i % 3 {
            0 => LinearStep::Subtract(0, product(i)),
            _ => LinearStep::Add(0, product(i)),
        }));
        steps.push(LinearStep::Multiply(0, LinearFactor::Integer(-3)));
        steps.push(LinearStep::Give(0, 0));
        let program = LinearProgram::new(shapes, steps).unwrap();
        let results = results(&program, 1, &[2]);
        let expected = bench
            .host
            .fused(&program, &operands.on_host(), &results)
            .unwrap();
        let (ciphertexts, plaintexts) = operands.upload(&bench);
        let found = bench
            .device
            .fused(&program, &encoded(&ciphertexts, &plaintexts), &results);
        same(&bench, "the sum", expected, found.unwrap());
    }
}

#[test]
fn a_replay_reads_and_writes_what_it_is_bound_to() {
    if !has_kernels() {
        return;
    }
    let mut bench = Bench::new(&parameters(10, 3, 40, None), None);
    let [first, second] = [(); 2].map(|()| Operands::new(&mut bench, &PARTS, 2, &[2]));
    let words = &mut bench.words;
    let program = linear::program(&PARTS, &mut |end| words.next() as usize % end);
    let results = results(&program, 2, &[2]);
    let (inputs, plaintexts) = first.upload(&bench);
    let graph = bench.device.capture(&inputs, |inputs| {
        bench
            .device
            .fused(&program, &encoded(inputs, &plaintexts), &results)
    });
    let graph = graph.unwrap();
    assert_eq!(graph.steps(), 1);
    let mixed = Operands {
        ciphertexts: second.ciphertexts.clone(),
        plaintexts: first.plaintexts.clone(),
    };
    for way in [Replay::Launches, Replay::Graph] {
        for operands in [&first, &mixed] {
            let expected = bench
                .host
                .fused(&program, &operands.on_host(), &results)
                .unwrap();
            let (inputs, _) = operands.upload(&bench);
            let found = graph.replay_by(way, &inputs).unwrap();
            same(&bench, "a replay", expected, found);
        }
    }
}

#[test]
fn refusals_are_those_of_the_cpu() {
    if !has_kernels() {
        return;
    }
    let mut bench = Bench::new(&parameters(10, 3, 40, None), None);
    let operands = Operands::new(&mut bench, &PARTS, 1, &[2]);
    let (ciphertexts, plaintexts) = operands.upload(&bench);
    let words = &mut bench.words;
    let program = linear::program(&PARTS, &mut |end| words.next() as usize % end);
    for (level, batch) in [(2, &[2][..]), (1, &[3])] {
        let results = results(&program, level, batch);
        let expected = bench.host.fused(&program, &operands.on_host(), &results);
        let found = bench
            .device
            .fused(&program, &encoded(&ciphertexts, &plaintexts), &results);
        assert_eq!(
            found.unwrap_err().to_string(),
            expected.unwrap_err().to_string()
        );
    }
    let expected = bench
        .host
        .fused(&program, &[], &[])
        .unwrap_err()
        .to_string();
    assert_eq!(
        bench
            .device
            .fused(&program, &[], &[])
            .unwrap_err()
            .to_string(),
        expected
    );
}
