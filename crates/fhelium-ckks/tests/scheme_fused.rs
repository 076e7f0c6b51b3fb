//! Fused sums and multiples give the residues of exact integers, and of the operations one by one.

mod support;

#[path = "support/linear.rs"]
mod linear;

use fhelium_ckks::arith::Tier;
use fhelium_ckks::*;
use support::Bench;

/// Words that look random.
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 20) as usize % end
    }

    /// Residues of which every fourth is 0 or p - 1.
    fn residues(&mut self, moduli: &[u64], polynomials: usize, n: usize) -> Vec<u64> {
        let mut data = Vec::new();
        for _ in 0..polynomials {
            for &p in moduli {
                data.extend((0..n).map(|_| match self.next() >> 60 {
                    0 | 1 => 0,
                    2 | 3 => p - 1,
                    _ => self.next() % p,
                }));
            }
        }
        data
    }

    fn ciphertext(
        &mut self,
        bench: &Bench,
        level: usize,
        parts: usize,
        batch: &[usize],
    ) -> Ciphertext {
        let parameters = bench.parameters();
        let state = CipherState {
            level,
            scale: parameters.scale().clone(),
            parts,
        };
        let items: usize = batch.iter().product();
        let data = self.residues(
            &parameters.moduli()[..=level],
            items * parts,
            parameters.n(),
        );
        Ciphertext::from_raw(
            parameters,
            bench.secret.secret_id(),
            state,
            batch.to_vec(),
            data,
        )
        .unwrap()
    }

    fn plaintext(&mut self, bench: &Bench, level: usize, batch: &[usize]) -> Plaintext {
        let parameters = bench.parameters();
        let state = PlainState {
            level,
            scale: parameters.scale().clone(),
        };
        let items: usize = batch.iter().product();
        let data = self.residues(&parameters.moduli()[..=level], items, parameters.n());
        Plaintext::from_raw(parameters, state, batch.to_vec(), data).unwrap()
    }
}

/// The program at one residue: the parts of each operand in, those of each result out.
fn exact(program: &LinearProgram, operands: &[Vec<u64>], p: u64) -> Vec<Vec<u64>> {
    let wide = u128::from(p);
    let mul = |x: u64, y: u64| (u128::from(x) * u128::from(y) % wide) as u64;
    let mut registers = vec![Vec::new(); 4];
    let mut results = vec![Vec::new(); program.result_parts().len()];
    let value = |registers: &[Vec<u64>], value: LinearValue| match value {
        LinearValue::Operand(at) => operands[usize::from(at)].clone(),
        LinearValue::Register(at) => registers[usize::from(at)].clone(),
    };
    let factor = |registers: &[Vec<u64>], factor: LinearFactor| match factor {
        LinearFactor::Value(at) => value(registers, at)[0],
        LinearFactor::Integer(integer) => i128::from(integer).rem_euclid(i128::from(p)) as u64,
    };
    let scaled = |registers: &[Vec<u64>], term: LinearTerm| -> Vec<u64> {
        let by = term.factor.map_or(1, |by| factor(registers, by));
        value(registers, term.value)
            .iter()
            .map(|&x| mul(x, by))
            .collect()
    };
    let sum = |x: &[u64], y: &[u64], sign: u64| -> Vec<u64> {
        let part = |x: &[u64], i: usize| x.get(i).copied().unwrap_or(0);
        let parts = 0..x.len().max(y.len());
        parts
            .map(|i| ((u128::from(part(x, i)) + u128::from(mul(part(y, i), sign))) % wide) as u64)
            .collect()
    };
    for &step in program.steps() {
        let (at, next) = match step {
            LinearStep::Set(at, term) => (at, scaled(&registers, term)),
            LinearStep::Add(at, term) => (
                at,
                sum(&registers[usize::from(at)], &scaled(&registers, term), 1),
            ),
            LinearStep::Subtract(at, term) => (
                at,
                sum(
                    &registers[usize::from(at)],
                    &scaled(&registers, term),
                    p - 1,
                ),
            ),
            LinearStep::Negate(at) => (at, sum(&[], &registers[usize::from(at)], p - 1)),
            LinearStep::Multiply(at, by) => {
                let by = factor(&registers, by);
                (
                    at,
                    registers[usize::from(at)]
                        .iter()
                        .map(|&x| mul(x, by))
                        .collect(),
                )
            }
            LinearStep::Give(at, result) => {
                results[usize::from(result)] = registers[usize::from(at)].clone();
                continue;
            }
        };
        registers[usize::from(at)] = next;
    }
    results
}

fn bench(log_n: u32, scale_bits: u32, threads: usize, tier: Option<Tier>) -> Bench {
    let parameters = Parameters::builder(3, scale_bits)
        .log_n(log_n)
        .allow_insecure(true);
    let options = ContextOptions {
        threads: Some(threads),
        tier,
    };
    Bench::with(&parameters.build().unwrap(), options, 1)
}

/// Guards every kind of step at every level and batch, edges of the residues' range included, on
/// vector and scalar kernels and with primes on either side of what the fast ones take.
#[test]
fn random_programs_give_exact_residues() {
    for (scale_bits, tier, threads) in [(40, None, 2), (40, Some(Tier::Scalar), 1), (51, None, 1)] {
        let bench = bench(10, scale_bits, threads, tier);
        let mut words = Words(u64::from(scale_bits));
        for (level, batch) in [(0, &[][..]), (2, &[3]), (3, &[2, 1])] {
            let single: &[usize] = &[1];
            let ciphertexts = [
                words.ciphertext(&bench, level, 2, batch),
                words.ciphertext(&bench, 3, 3, single),
                words.ciphertext(&bench, level, 2, single),
            ];
            let plaintexts = [
                words.plaintext(&bench, 3, &[]),
                words.plaintext(&bench, level, batch),
            ];
            let operands: Vec<Encoded<'_>> = ciphertexts
                .iter()
                .map(Encoded::Ciphertext)
                .chain(plaintexts.iter().map(Encoded::Plaintext))
                .collect();
            let parts = [2, 3, 2, 1, 1];
            for _ in 0..6 {
                let program = linear::program(&parts, &mut |end| words.below(end));
                check(&bench, &program, &operands, level, batch);
            }
        }
    }
}

fn check(
    bench: &Bench,
    program: &LinearProgram,
    operands: &[Encoded<'_>],
    level: usize,
    batch: &[usize],
) {
    let (n, moduli) = (bench.parameters().n(), bench.parameters().moduli());
    let states = program.result_parts().iter().map(|&parts| LinearResult {
        state: CipherState {
            level,
            scale: bench.parameters().scale().clone(),
            parts,
        },
        batch_shape: batch.to_vec(),
    });
    let states: Vec<_> = states.collect();
    let results = bench.context.fused(program, operands, &states).unwrap();
    let items: usize = batch.iter().product();
    for item in 0..items {
        for (limb, &p) in moduli[..=level].iter().enumerate() {
            for at in (0..n).step_by(7) {
                let residues = |operand: &Encoded<'_>| {
                    let (data, parts, level, shape) = match operand {
                        Encoded::Ciphertext(x) => {
                            (x.data(), x.state().parts, x.state().level, x.batch_shape())
                        }
                        Encoded::Plaintext(p) => (p.data(), 1, p.state().level, p.batch_shape()),
                    };
                    let item = item % shape.iter().product::<usize>();
                    (0..parts)
                        .map(|part| data[((item * parts + part) * (level + 1) + limb) * n + at])
                        .collect()
                };
                let operands: Vec<Vec<u64>> = operands.iter().map(residues).collect();
                let expected = exact(program, &operands, p);
                for (result, expected) in results.iter().zip(expected) {
                    let parts = result.state().parts;
                    let found: Vec<u64> = (0..parts)
                        .map(|part| {
                            result.data()[((item * parts + part) * (level + 1) + limb) * n + at]
                        })
                        .collect();
                    assert_eq!(
                        found, expected,
                        "{program:?} at {at} of limb {limb} of item {item}"
                    );
                }
            }
        }
    }
}

/// Guards that a sum of products is bit for bit the operations one by one, at a degree of several
/// pieces.
#[test]
fn a_sum_of_products_is_the_operations_one_by_one() {
    let bench = bench(14, 40, 2, None);
    let (context, mut words) = (&bench.context, Words(7));
    let x: Vec<_> = (0..16)
        .map(|_| words.ciphertext(&bench, 3, 2, &[]))
        .collect();
    let p: Vec<_> = (0..16).map(|_| words.plaintext(&bench, 3, &[])).collect();
    let mut expected = context.multiply_plain(&x[0], &p[0]).unwrap();
    for (x, p) in x.iter().zip(&p).skip(1) {
        expected = context
            .add(&expected, &context.multiply_plain(x, p).unwrap())
            .unwrap();
    }
    let product = |i: u8| {
        let factor = LinearFactor::Value(LinearValue::Operand(16 + i));
        LinearTerm::product(LinearValue::Operand(i), factor)
    };
    let mut steps = vec![LinearStep::Set(0, product(0))];
    steps.extend((1..16).map(|i| LinearStep::Add(0, product(i))));
    steps.push(LinearStep::Give(0, 0));
    let parts = [[2; 16], [1; 16]].concat();
    let program = LinearProgram::new(parts, steps).unwrap();
    let operands: Vec<_> = x
        .iter()
        .map(Encoded::Ciphertext)
        .chain(p.iter().map(Encoded::Plaintext))
        .collect();
    let result = LinearResult {
        state: expected.state().clone(),
        batch_shape: vec![],
    };
    let before = context.memory().used;
    let found = context.fused(&program, &operands, &[result]).unwrap();
    assert_eq!(found[0].data(), expected.data());
    assert_eq!(found[0].state(), expected.state());
    // What it works in is no residues of the context's.
    assert_eq!(context.memory().used - before, found[0].nbytes());
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let bench = bench(10, 40, 1, None);
    let mut words = Words(3);
    let add = LinearProgram::new(
        vec![2, 2],
        vec![
            LinearStep::Set(0, LinearTerm::of(LinearValue::Operand(0))),
            LinearStep::Add(0, LinearTerm::of(LinearValue::Operand(1))),
            LinearStep::Give(0, 0),
        ],
    )
    .unwrap();
    let refusal = |x: &Ciphertext, y: &Ciphertext, level: usize, batch_shape: &[usize]| {
        let state = CipherState {
            level,
            scale: bench.parameters().scale().clone(),
            parts: 2,
        };
        let result = LinearResult {
            state,
            batch_shape: batch_shape.to_vec(),
        };
        let operands = [Encoded::Ciphertext(x), Encoded::Ciphertext(y)];
        bench
            .context
            .fused(&add, &operands, &[result])
            .unwrap_err()
            .to_string()
    };
    let x = words.ciphertext(&bench, 2, 2, &[2]);
    let three = words.ciphertext(&bench, 2, 3, &[2]);
    let other = words.ciphertext(&bench, 2, 2, &[3]);
    assert!(refusal(&x, &three, 2, &[2]).contains("operands of [2, 3] parts, expected [2, 2]"));
    assert!(
        refusal(&x, &x, 3, &[2]).contains("an operand of level 2 and 2 items, expected level 3")
    );
    assert!(
        refusal(&x, &other, 2, &[3])
            .contains("2 items, expected level 2 or more, and 3 items or 1")
    );
    let stranger = Bench::with(bench.parameters(), ContextOptions::default(), 9);
    let theirs = words.ciphertext(&stranger, 2, 2, &[2]);
    assert!(refusal(&x, &theirs, 2, &[2]).contains("secret"));
    let error = bench.context.fused(&add, &[], &[]).unwrap_err().to_string();
    assert!(error.contains("no ciphertext"), "{error}");
}
