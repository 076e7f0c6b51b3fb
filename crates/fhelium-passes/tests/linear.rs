//! The default pipeline takes time linear in the Program's size (the kind of EVA issue 8).

use std::time::Duration;

use cpu_time::ThreadTime;
use fhelium_ir::state::{Chain, CipherState, Scale};
use fhelium_ir::{
    Attributes, DType, He, Material, OutputTree, Program, ProgramBuilder, Tensor, Type, ValueId,
};
use fhelium_passes::analysis::{costs, requirements};
use fhelium_passes::{Dump, default_pipeline};

struct Terms {
    builder: ProgramBuilder,
    x: ValueId,
}

impl Terms {
    fn new() -> Self {
        let moduli = vec![562949953216513, 1099511480321, 1099511922689];
        let special = vec![562949952798721];
        let chain = Chain::new(14, moduli, special, Scale::from_bits(40));
        let mut builder = ProgramBuilder::new("sum", Some(chain.into()));
        let state = CipherState::new(2, Scale::from_bits(40));
        let x = builder.input("x", Type::ciphertext([], state)).unwrap();
        Terms { builder, x }
    }

    fn he(&mut self, kind: He, operands: &[ValueId], attributes: &Attributes) -> ValueId {
        self.builder.one(kind, operands, attributes, None).unwrap()
    }

    /// The sum of what `term` gives for each number up to `count`.
    fn sum(mut self, count: i64, term: impl Fn(&mut Terms, i64) -> ValueId) -> Program {
        let mut sum = term(&mut self, 0);
        for number in 1..count {
            let next = term(&mut self, number);
            sum = self.he(He::Add, &[sum, next], &Attributes::new());
        }
        self.builder.finish(&OutputTree::Value(sum)).unwrap()
    }
}

/// x times a different captured array each time, summed.
fn products_with_arrays(count: i64) -> Program {
    Terms::new().sum(count, |terms, number| {
        let symbol = format!("w{number}");
        let material = Material::new(Type::tensor(DType::F64, [8]), "");
        terms.builder.material(symbol.as_str(), material).unwrap();
        let array = terms.builder.reference(symbol.as_str(), None).unwrap();
        let array = terms
            .builder
            .one(Tensor::Neg, &[array], &Attributes::new(), None);
        let attributes = Attributes::new()
            .with("level", 2)
            .with("scale", Scale::from_bits(40));
        let plaintext = terms.he(He::Encode, &[array.unwrap()], &attributes);
        terms.he(He::Mul, &[terms.x, plaintext], &Attributes::new())
    })
}

/// x rotated by every step, summed.
fn rotations_of_one_value(count: i64) -> Program {
    Terms::new().sum(count, |terms, number| {
        terms.he(
            He::Rotate,
            &[terms.x],
            &Attributes::new().with("step", number),
        )
    })
}

/// A chain in which each value is rotated and added to itself, and many are equal.
fn chain_of_rotations(count: i64) -> Program {
    let mut terms = Terms::new();
    let mut x = terms.x;
    for number in 0..count {
        let attributes = Attributes::new().with("step", number % 7 + 1);
        let one = terms.he(He::Rotate, &[x], &attributes);
        let same = terms.he(He::Rotate, &[x], &attributes);
        x = terms.he(He::Add, &[one, same], &Attributes::new());
    }
    terms.builder.finish(&OutputTree::Value(x)).unwrap()
}

/// Processor time of this thread, which other work on the machine hardly touches.
fn compile(program: &Program) -> Duration {
    let program = program.clone();
    let started = ThreadTime::now();
    let compiled = default_pipeline().run_with(program, &Dump::Off).unwrap();
    let (needs, costs) = (requirements(compiled.program()), costs(compiled.program()));
    let time = started.elapsed();
    assert!(needs.keys.len() + costs.operations.len() > 0);
    time
}

/// Four times the operations take less than 8 times as long, caches that overflow included; a
/// quadratic pass would take 16 times. The quickest of several runs each counts.
fn assert_linear(name: &str, make: impl Fn(i64) -> Program) {
    let programs = [make(1500), make(6000)];
    let mut best = [Duration::MAX; 2];
    for _ in 0..5 {
        for (best, program) in best.iter_mut().zip(&programs) {
            *best = (*best).min(compile(program));
        }
    }
    let ratio = best[1].as_secs_f64() / best[0].as_secs_f64();
    assert!(
        ratio < 2.6 * 2.6,
        "{name}: t(4n) / t(n) = {ratio:.2} of {best:?}"
    );
}

#[test]
fn compiling_takes_linear_time() {
    assert_linear("products with arrays", products_with_arrays);
    assert_linear("rotations of one value", rotations_of_one_value);
    assert_linear("chain of rotations", chain_of_rotations);
}
