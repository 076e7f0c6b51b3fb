//! `linear-fusion` keeps every residue of random Programs, and the straight-line programs that
//! the kernels run compute what the regions say.

use fhelium_ir::state::{
    Chain, CipherState, LinearFactor, LinearProgram, LinearStep, LinearTerm, LinearValue,
    PlainState, Scale,
};
use fhelium_ir::{
    Attributes, Body, Ckks, KeyKind, OpKind, OutputTree, Program, ProgramBuilder, Rns, Type,
    ValueId,
};
use fhelium_passes::analysis::linear_program;
use fhelium_passes::passes::LinearFusion;
use fhelium_passes::{Compilation, Dump, Pipeline, Rates};
use proptest::prelude::*;

/// One residue of each part of each batch element.
type Value = Vec<Vec<u64>>;

/// A prime so small that every coincidence happens.
const P: u64 = 17;

fn residue(x: i64) -> u64 {
    x.rem_euclid(P as i64) as u64
}

/// Part by part over two operands, the shorter of which has zeros, and a single one of which serves
/// every batch element.
fn zip(x: &Value, y: &Value, op: impl Fn(u64, u64) -> u64) -> Value {
    let part = |value: &Value, item: usize, part: usize| {
        let item = &value[item % value.len()];
        item.get(part).copied().unwrap_or(0)
    };
    let items = 0..x.len().max(y.len());
    let parts = x[0].len().max(y[0].len());
    items
        .map(|item| {
            (0..parts)
                .map(|i| op(part(x, item, i), part(y, item, i)))
                .collect()
        })
        .collect()
}

fn add(x: &Value, y: &Value) -> Value {
    zip(x, y, |x, y| (x + y) % P)
}

fn subtract(x: &Value, y: &Value) -> Value {
    zip(x, y, |x, y| (x + P - y) % P)
}

/// Every part of one by the one part of the other.
fn multiply(x: &Value, y: &Value) -> Value {
    let (x, factor) = if y[0].len() == 1 { (x, y) } else { (y, x) };
    let parts = x[0].len();
    let spread: Value = factor.iter().map(|item| vec![item[0]; parts]).collect();
    zip(x, &spread, |x, y| x * y % P)
}

fn multiple(x: &Value, factor: i64) -> Value {
    let times = |&x: &u64| x * residue(factor) % P;
    x.iter()
        .map(|item| item.iter().map(times).collect())
        .collect()
}

fn run(body: &Body, inputs: &[Value]) -> Vec<Value> {
    let mut values: Vec<Option<Value>> = vec![None; body.values().len()];
    for (slot, input) in values.iter_mut().zip(inputs) {
        *slot = Some(input.clone());
    }
    for op in body.ops() {
        let x = |place: usize| values[op.operands()[place].index()].clone().unwrap();
        let int = || op.attributes().int("value").unwrap();
        let results = match op.kind() {
            OpKind::Core(_) => continue,
            OpKind::Ckks(Ckks::Add | Ckks::AddPlain) | OpKind::Rns(Rns::Add) => {
                vec![add(&x(0), &x(1))]
            }
            OpKind::Ckks(Ckks::Sub | Ckks::SubPlain | Ckks::PlainSub) | OpKind::Rns(Rns::Sub) => {
                vec![subtract(&x(0), &x(1))]
            }
            OpKind::Ckks(Ckks::MulPlain) | OpKind::Rns(Rns::Mul) => vec![multiply(&x(0), &x(1))],
            OpKind::Ckks(Ckks::MulInteger) | OpKind::Rns(Rns::MulInteger) => {
                vec![multiple(&x(0), int())]
            }
            OpKind::Ckks(Ckks::Neg) | OpKind::Rns(Rns::Neg) => vec![multiple(&x(0), -1)],
            OpKind::Ckks(Ckks::DropLevels)
            | OpKind::Rns(Rns::DropLimbs | Rns::Residues | Rns::Ciphertext) => vec![x(0)],
            OpKind::Rns(Rns::MulAdd) => vec![add(&multiply(&x(0), &x(1)), &x(2))],
            // Anything that nothing else computes.
            OpKind::Ckks(Ckks::Conjugate) => {
                vec![
                    x(0).iter()
                        .map(|item| item.iter().map(|x| (x * x + 3) % P).collect())
                        .collect(),
                ]
            }
            OpKind::Rns(Rns::Fused) => {
                let operands: Vec<Value> = (0..op.operands().len()).map(x).collect();
                let region = op.region().unwrap();
                let results = run(region, &operands);
                let program = linear_program(region).unwrap();
                assert_eq!(run_program(&program, &operands), results, "{program:?}");
                results
            }
            other => panic!("{other} is not made here"),
        };
        for (result, value) in op.results().iter().zip(results) {
            values[result.index()] = Some(value);
        }
    }
    let results = body.results().iter();
    results
        .map(|id| values[id.index()].clone().unwrap())
        .collect()
}

fn run_program(program: &LinearProgram, operands: &[Value]) -> Vec<Value> {
    let mut registers: Vec<Option<Value>> = vec![None; program.registers()];
    let mut results: Vec<Option<Value>> = vec![None; program.result_parts().len()];
    let value = |registers: &[Option<Value>], value: LinearValue| match value {
        LinearValue::Operand(place) => operands[usize::from(place)].clone(),
        LinearValue::Register(place) => registers[usize::from(place)].clone().unwrap(),
    };
    let times = |registers: &[Option<Value>], x: Value, factor: LinearFactor| match factor {
        LinearFactor::Integer(factor) => multiple(&x, factor),
        LinearFactor::Value(factor) => multiply(&x, &value(registers, factor)),
    };
    let term = |registers: &[Option<Value>], term: LinearTerm| {
        let x = value(registers, term.value);
        match term.factor {
            Some(factor) => times(registers, x, factor),
            None => x,
        }
    };
    for &step in program.steps() {
        let known =
            |registers: &[Option<Value>], at: u8| registers[usize::from(at)].clone().unwrap();
        let (at, next) = match step {
            LinearStep::Set(at, t) => (at, term(&registers, t)),
            LinearStep::Add(at, t) => (at, add(&known(&registers, at), &term(&registers, t))),
            LinearStep::Subtract(at, t) => {
                (at, subtract(&known(&registers, at), &term(&registers, t)))
            }
            LinearStep::Negate(at) => (at, multiple(&known(&registers, at), -1)),
            LinearStep::Multiply(at, factor) => {
                (at, times(&registers, known(&registers, at), factor))
            }
            LinearStep::Give(at, place) => {
                results[usize::from(place)] = Some(known(&registers, at));
                continue;
            }
        };
        registers[usize::from(at)] = Some(next);
    }
    let items = operands.iter().map(Vec::len).max().unwrap();
    let results = results.into_iter().map(|result| {
        let result = result.unwrap();
        (0..items)
            .map(|item| result[item % result.len()].clone())
            .collect()
    });
    results.collect()
}

/// One try at an operation: which, and where its operands and attributes come from.
type Step = (u8, u16, u16, i8);

fn chain() -> Chain {
    let moduli = vec![562949953216513, 1099511480321, 1099511922689, 1099510890497];
    Chain::new(4, moduli, vec![562949952798721], Scale::from_bits(40))
}

/// Programs of elementwise operations on values of all levels, batches and parts, with a few
/// conjugations in between.
fn build(steps: &[Step], returned: &[u16]) -> Program {
    let mut builder = ProgramBuilder::new("random", Some(chain().into()));
    let mut values: Vec<ValueId> = Vec::new();
    for (level, parts, batch) in [
        (3, 2, vec![]),
        (3, 3, vec![]),
        (3, 2, vec![2]),
        (1, 2, vec![1]),
        (2, 3, vec![2]),
    ] {
        let state = CipherState {
            level,
            scale: Scale::from_bits(40),
            parts,
        };
        let name = format!("x{}", values.len());
        values.push(builder.input(name, Type::ciphertext(batch, state)).unwrap());
    }
    for (level, bits, batch) in [(3, 40, vec![]), (2, 40, vec![2]), (3, 0, vec![])] {
        let state = PlainState {
            level,
            scale: Scale::from_bits(bits),
        };
        let name = format!("p{}", values.len());
        values.push(builder.input(name, Type::plaintext(batch, state)).unwrap());
    }
    let key = builder
        .input("key", Type::Key(KeyKind::Conjugation))
        .unwrap();
    for &(choice, left, right, number) in steps {
        let pick = |number: u16| {
            let (end, number) = (values.len(), usize::from(number));
            match number % 2 {
                0 => values[end - 1 - (number / 2) % end.min(6)],
                _ => values[(number / 2) % end],
            }
        };
        let (x, y) = (pick(left), pick(right));
        let none = Attributes::new();
        let (kind, operands, attributes) = match choice % 16 {
            0..=2 => (Ckks::Add, vec![x, y], none),
            3 | 4 => (Ckks::Sub, vec![x, y], none),
            5 | 6 => (Ckks::AddPlain, vec![x, y], none),
            7 => (Ckks::SubPlain, vec![x, y], none),
            8 => (Ckks::PlainSub, vec![x, y], none),
            9..=11 => (Ckks::MulPlain, vec![x, y], none),
            12 => (
                Ckks::MulInteger,
                vec![x],
                none.with("value", i64::from(number)),
            ),
            13 => (Ckks::Neg, vec![x], none),
            14 => (
                Ckks::DropLevels,
                vec![x],
                none.with("count", i64::from(number).rem_euclid(2)),
            ),
            _ => (Ckks::Conjugate, vec![x, key], none),
        };
        if let Ok(&[result]) = builder.op(kind, &operands, &attributes, None) {
            values.push(result);
        }
    }
    let outputs = returned.iter().map(|&place| {
        let place = usize::from(place) % values.len();
        OutputTree::Value(values[values.len() - 1 - place])
    });
    builder
        .finish(&OutputTree::Tuple(outputs.collect()))
        .unwrap()
}

fn programs() -> impl Strategy<Value = Program> {
    (
        proptest::collection::vec(any::<Step>(), 1..120),
        proptest::collection::vec(any::<u16>(), 1..12),
    )
        .prop_map(|(steps, returned)| build(&steps, &returned))
}

fn inputs(program: &Program) -> Vec<Value> {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % P
    };
    let inputs = program.inputs().iter();
    inputs
        .map(|input| {
            let parts = match &input.ty {
                Type::Ciphertext { state, .. } => state.as_ref().unwrap().parts,
                _ => 1,
            };
            let items = 0..input.ty.batch().iter().product();
            items
                .map(|_| (0..parts).map(|_| next()).collect())
                .collect()
        })
        .collect()
}

fn fuse(program: &Program, fusion: LinearFusion) -> Compilation {
    let pipeline = Pipeline::from_passes(fusion).unwrap();
    pipeline.run_with(program.clone(), &Dump::Off).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn fusing_keeps_every_residue(program in programs(), max_operands in 2..65usize, gpu in any::<bool>()) {
        let rates = if gpu { Rates::GPU } else { Rates::CPU };
        let fusion = LinearFusion { max_operands, rates, ..LinearFusion::default() };
        let fused = fuse(&program, fusion.clone());
        let text = fused.program().to_text();
        prop_assert_eq!(&Program::parse(&text).unwrap(), fused.program());
        let inputs = inputs(&program);
        prop_assert_eq!(
            run(fused.program().body(), &inputs),
            run(program.body(), &inputs),
            "{}\n{}", program.to_text(), text
        );
        let types = |program: &Program| -> Vec<Type> {
            program.results().iter().map(|&id| program.type_of(id).clone()).collect()
        };
        prop_assert_eq!(types(fused.program()), types(&program));
        for op in fused.program().body().ops() {
            if op.region().is_some() {
                prop_assert!(op.operands().len() <= max_operands);
            }
        }
        let again = fuse(fused.program(), fusion);
        prop_assert_eq!(again.program().to_text(), text, "there was something left to fuse");
    }
}

/// Programs in which nothing fuses would let the property pass.
#[test]
fn the_property_is_telling() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut groups, mut several, mut registers) = (0, 0, 0);
    for _ in 0..100 {
        let program = programs().new_tree(&mut runner).unwrap().current();
        let fused = fuse(&program, LinearFusion::default());
        for op in fused.program().body().ops() {
            if let Some(region) = op.region() {
                groups += 1;
                several += usize::from(op.results().len() > 1);
                registers += usize::from(linear_program(region).unwrap().registers() > 1);
            }
        }
    }
    assert!(
        groups > 200 && several > 100 && registers > 50,
        "{groups} {several} {registers}"
    );
}

/// A region whose operations are written out; `ops` see `%x` and `%p` and yield `%y`.
fn region_of(ops: &str) -> Result<LinearProgram, String> {
    let text = format!(
        "program @f {{
  chain {{ log_n = 4, scale = 2^40, moduli = [562949953216513, 1099511480321], special = [562949952798721] }}
  func (%x: !ciphertext<[2], level=1, scale=2^40, parts=2>, %p: !plaintext<[], level=1, scale=2^40>) {{
    %z = rns.fused(%x, %p) {{ (%whole, %plain): %x = rns.residues %whole %p = rns.residues %plain {ops} yield %y }}
    return ()
  }}
}}"
    );
    let program = Program::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    linear_program(program.body().ops()[0].region().unwrap())
}

#[test]
fn what_does_not_run_is_refused_in_words() {
    let refusal = |ops: &str| region_of(ops).unwrap_err();
    let ciphertext = "%y = rns.ciphertext %r {scale = 2^40}";
    assert!(refusal("%y = rns.neg %x").contains("yields !residues<[2], parts=2"));
    let transform = format!("%s = rns.intt %x %r = rns.ntt %s {ciphertext}");
    assert!(refusal(&transform).starts_with("rns.intt does not fuse"));
    let product = format!("%r = rns.mul %x, %x {ciphertext}");
    assert!(refusal(&product).contains("rns.mul of 2 and 2 parts"));
    let many = (0..200).fold(String::new(), |ops, i| {
        let (before, sign) = (
            if i == 0 {
                "x".to_owned()
            } else {
                format!("r{}", i - 1)
            },
            ["add", "sub"][i % 2],
        );
        ops + &format!("%r{i} = rns.{sign} %{before}, %p ")
    });
    let long = format!("{many} %y = rns.ciphertext %r199 {{scale = 2^40}}");
    assert!(
        refusal(&long).contains("201 steps, at most 128")
            || refusal(&long).contains("steps, at most 128")
    );
}

#[test]
fn sums_are_added_up_in_one_register_however_they_nest() {
    let nested = "%a = rns.mul %x, %p %b = rns.sub %x, %p %c = rns.add %a, %b %d = rns.mul_add %x, %p, %c \
                  %e = rns.mul_integer %x {value = -3} %g = rns.neg %e %r = rns.sub %g, %d \
                  %y = rns.ciphertext %r {scale = 2^40}";
    let program = region_of(nested).unwrap();
    assert_eq!(program.registers(), 1, "{program:?}");
    assert_eq!(program.steps().len(), 6, "{program:?}");
}
