//! `lower-to-rns` computes what the operations that it takes apart mean.
//!
//! Random Programs run twice: on residues of a tiny ring after lowering, and on the messages,
//! big integers modulo Q, before it. Decrypting the former must give the latter within an error
//! that is followed rigorously from the roundings of rescales and key switches.

mod support;

use std::collections::HashMap;

use fhelium_ir::state::Chain;
use fhelium_ir::{Ckks, KeyKind, Level, Op, OpKind, Program, Rns, Type, ValueId};
use fhelium_passes::passes::{
    DeadValues, LowerToCkks, LowerToRns, RescaleJoining, Reuse, RotationHoisting,
};
use fhelium_passes::{Dump, Pipeline};
use ndarray::{ArrayD, IxDyn};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};
use proptest::prelude::*;
use support::batches;
use support::interpreter::{self, Value};
use support::messages::{Message, basis, broadcast, encode, messages};
use support::programs::programs;
use support::residues::{self as ring, Poly, Random, Secret};

/// What a value is for a test: residues of each batch element's parts, a clear array or a key.
#[derive(Clone)]
enum Residual {
    Encoded(ArrayD<Vec<Poly>>),
    Clear(Value),
    Key(KeyKind),
}

/// Runs a Program on residues.
struct Residues<'a> {
    program: &'a Program,
    chain: &'a Chain,
    keys: HashMap<KeyKind, Vec<[Poly; 2]>>,
    values: Vec<Option<Residual>>,
}

impl Residues<'_> {
    fn encoded(&self, id: ValueId) -> &ArrayD<Vec<Poly>> {
        match self.values[id.index()].as_ref().unwrap() {
            Residual::Encoded(value) => value,
            _ => panic!("a value without residues"),
        }
    }

    fn run(&mut self, secret: &Secret, random: &mut Random) {
        for op in self.program.body().ops() {
            let result = self.apply(op, secret, random);
            self.values[op.results()[0].index()] = Some(result);
        }
    }

    fn apply(&mut self, op: &Op, secret: &Secret, random: &mut Random) -> Residual {
        let program = self.program;
        let result = program.type_of(op.results()[0]);
        if let Type::Key(kind) = result {
            return Residual::Key(*kind);
        }
        let kind = match op.kind() {
            OpKind::Rns(kind) => kind,
            OpKind::Ckks(kind) => return Residual::Encoded(self.apply_whole(op, kind)),
            _ => {
                let clear = |value: &Option<Residual>| match value {
                    Some(Residual::Clear(value)) => Some(value.clone()),
                    _ => None,
                };
                let values: Vec<Option<Value>> = self.values.iter().map(clear).collect();
                return Residual::Clear(interpreter::apply(program, op, &values).remove(0));
            }
        };
        let x = self.encoded(op.operands()[0]);
        let of = ring::primes(self.chain, basis(program.type_of(op.operands()[0])));
        let to = ring::primes(self.chain, basis(result));
        let int = |name: &str| op.attributes().int(name).unwrap();
        let each =
            |change: &dyn Fn(&Poly) -> Poly| x.map(|parts| parts.iter().map(change).collect());
        let with = |place: usize, x: &ArrayD<Vec<Poly>>, op_: &dyn Fn(&Poly, &Poly) -> Poly| {
            broadcast(
                x,
                self.encoded(op.operands()[place]),
                result.batch(),
                |x, y| {
                    let parts = x.len().max(y.len());
                    // Residues of one part serve every part of the other.
                    (0..parts)
                        .map(|i| op_(&x[i % x.len()], &y[i % y.len()]))
                        .collect::<Vec<_>>()
                },
            )
        };
        let zero: Poly = vec![vec![0; self.chain.n()]; of.len()];
        let sum = |place: usize, x: &ArrayD<Vec<Poly>>, op_: &dyn Fn(&Poly, &Poly) -> Poly| {
            broadcast(
                x,
                self.encoded(op.operands()[place]),
                result.batch(),
                |x, y| {
                    // Parts that an operand lacks are zero.
                    let part = |x: &[Poly], i: usize| x.get(i).unwrap_or(&zero).clone();
                    (0..x.len().max(y.len()))
                        .map(|i| op_(&part(x, i), &part(y, i)))
                        .collect::<Vec<_>>()
                },
            )
        };
        Residual::Encoded(match kind {
            Rns::Residues | Rns::Ciphertext | Rns::Ntt | Rns::Intt => x.clone(),
            Rns::Add => sum(1, x, &|x, y| ring::add(x, y, &of)),
            Rns::Sub => sum(1, x, &|x, y| ring::sub(x, y, &of)),
            Rns::Mul => with(1, x, &|x, y| ring::mul(x, y, &of)),
            Rns::MulAdd => {
                let product = with(1, x, &|x, y| ring::mul(x, y, &of));
                sum(2, &product, &|x, y| ring::add(x, y, &of))
            }
            Rns::Neg => each(&|x| ring::sub(&ring::sub(x, x, &of), x, &of)),
            Rns::MulInteger => {
                let mut factor = vec![BigInt::ZERO; self.chain.n()];
                factor[0] = int("value").into();
                each(&|x| ring::mul(x, &ring::reduce(&factor, &of), &of))
            }
            Rns::Decompose => {
                let (digit, size) = (int("digit") as usize, int("size") as usize);
                let start = digit * size;
                each(&|x| x[start..(start + size).min(x.len())].to_vec())
            }
            Rns::ExtendBasis => each(&|x| ring::reduce(&ring::lift(x, &of), &to)),
            Rns::KeyProduct => {
                let Some(Residual::Key(kind)) = self.values[op.operands()[1].index()] else {
                    panic!("a key product without a key");
                };
                let key = self
                    .keys
                    .entry(kind)
                    .or_insert_with(|| secret.key(self.chain, kind, random));
                let specials = self.chain.depth() + 1;
                let halves = key[int("digit") as usize].each_ref().map(|half| {
                    let kept = of.len() - self.chain.special_moduli().len();
                    [&half[..kept], &half[specials..]].concat()
                });
                let Some(Residual::Encoded(x)) = &self.values[op.operands()[0].index()] else {
                    panic!("a key product without residues");
                };
                x.map(|x| {
                    halves
                        .iter()
                        .map(|half| ring::mul(&x[0], half, &of))
                        .collect()
                })
            }
            Rns::ReduceBasis | Rns::Rescale => each(&|x| ring::divide(x, &to, &of[to.len()..])),
            Rns::DropLimbs => each(&|x| x[..to.len()].to_vec()),
            Rns::Automorphism => each(&|x| ring::automorphism_of(x, int("galois") as usize, &of)),
            Rns::ExtractPart => x.map(|parts| vec![parts[int("part") as usize].clone()]),
            Rns::Pack => {
                let mut packed = x.clone();
                for &more in &op.operands()[1..] {
                    let more = self.encoded(more).iter();
                    packed
                        .iter_mut()
                        .zip(more)
                        .for_each(|(x, y)| x.push(y[0].clone()));
                }
                packed
            }
            Rns::Fused => panic!("nothing fuses yet"),
        })
    }

    /// Operations that stay whole.
    fn apply_whole(&self, op: &Op, kind: Ckks) -> ArrayD<Vec<Poly>> {
        let result = self.program.type_of(op.results()[0]);
        let to = ring::primes(self.chain, basis(result));
        if kind == Ckks::Encode {
            let Some(Residual::Clear(message)) = &self.values[op.operands()[0].index()] else {
                panic!("an encoding of no message");
            };
            let integers = encode(message, op, self.chain);
            return integers.map(|c| vec![ring::reduce(c, &to)]);
        }
        let operands = op.operands().iter();
        let operands: Vec<_> = operands.map(|&id| self.encoded(id)).collect();
        let sum = |x: &Vec<Poly>, y: &Vec<Poly>| {
            let parts = x.iter().zip(y);
            parts.map(|(x, y)| ring::add(x, y, &to)).collect()
        };
        batches::apply(op, &operands, operands[0].ndim(), sum)
            .unwrap_or_else(|| panic!("{kind:?} stays whole"))
    }
}

fn to_ckks(program: Program) -> Program {
    let pipeline = Pipeline::from_passes(DeadValues)
        .and_then(|p| p.then(LowerToCkks))
        .and_then(|p| p.then(RotationHoisting::default()))
        .unwrap();
    pipeline
        .run_with(program, &Dump::Off)
        .unwrap()
        .into_program()
}

/// How many of the returned ciphertexts said something.
fn check(ckks: &Program, rns: &Program) -> usize {
    let chain = ckks.chain().unwrap();
    let n = chain.n();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let secret = Secret::new(n, &mut random);
    let mut inputs = HashMap::new();
    let mut clear = vec![None; ckks.body().values().len()];
    let mut values = vec![None; rns.body().values().len()];
    for (place, input) in ckks.inputs().iter().enumerate() {
        match &input.ty {
            Type::Ciphertext { batch, .. } => {
                let primes = ring::primes(chain, basis(&input.ty));
                let (s, mut messages, mut items) = (secret.by(&primes), Vec::new(), Vec::new());
                for _ in 0..batch.iter().product() {
                    // Signed messages of 38 bits.
                    let mut small = || BigInt::from(random.next() as i64 >> 26);
                    let message: Vec<BigInt> = (0..n).map(|_| small()).collect();
                    let c1 = random.poly(n, &primes);
                    let m = ring::reduce(&message, &primes);
                    let c0 = ring::sub(&m, &ring::mul(&c1, &s, &primes), &primes);
                    messages.push(message);
                    items.push(vec![c0, c1]);
                }
                let shape = || IxDyn(batch);
                inputs.insert(
                    place,
                    Message {
                        coefficients: ArrayD::from_shape_vec(shape(), messages).unwrap(),
                        error: 0.0,
                    },
                );
                let items = ArrayD::from_shape_vec(shape(), items).unwrap();
                values[place] = Some(Residual::Encoded(items));
            }
            Type::Tensor { shape, .. } => {
                let value = interpreter::data(&input.name, shape);
                clear[place] = Some(value.clone());
                values[place] = Some(Residual::Clear(value));
            }
            Type::Key(kind) => values[place] = Some(Residual::Key(*kind)),
            other => panic!("no test input is {other}"),
        }
    }
    let expected = messages(ckks, &inputs, &clear);
    let mut machine = Residues {
        program: rns,
        chain,
        keys: HashMap::new(),
        values,
    };
    machine.run(&secret, &mut random);

    let mut telling = 0;
    for (&old, &new) in ckks.results().iter().zip(rns.results()) {
        let ty = rns.type_of(new);
        assert_eq!(ty, ckks.type_of(old));
        let Type::Ciphertext { .. } = ty else {
            continue;
        };
        let primes = ring::primes(chain, basis(ty));
        let q = ring::modulus(&primes);
        let s = secret.by(&primes);
        let expected = expected[old.index()].as_ref().unwrap();
        let decrypted = machine.encoded(new).map(|parts| {
            let phase = parts
                .iter()
                .rev()
                .cloned()
                .reduce(|sum, part| ring::add(&part, &ring::mul(&sum, &s, &primes), &primes));
            ring::lift(&phase.unwrap(), &primes)
        });
        for (found, expected_item) in decrypted.iter().zip(&expected.coefficients) {
            for (found, wanted) in found.iter().zip(expected_item) {
                let difference = ring::center(&(found - wanted), &q).abs().to_f64().unwrap();
                assert!(
                    difference <= expected.error * 1.001,
                    "{difference:e} off, {:e} allowed, in\n{}",
                    expected.error,
                    rns.to_text()
                );
            }
        }
        // An error as large as the modulus would allow anything.
        telling += usize::from(expected.error < q.to_f64().unwrap() / 1e6);
    }
    telling
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn lowering_to_residues_keeps_the_message(program in programs(60), join in any::<bool>()) {
        let mut ckks = to_ckks(program);
        if join {
            let joining = Pipeline::from_passes(RescaleJoining).unwrap();
            ckks = joining.run_with(ckks, &Dump::Off).unwrap().into_program();
        }
        let pipeline = Pipeline::from_passes(LowerToRns::default())
            .and_then(|p| p.then(Reuse))
            .unwrap();
        let rns = pipeline.run_with(ckks.clone(), &Dump::Off).unwrap().into_program();
        prop_assert_eq!(&Program::parse(&rns.to_text()).unwrap(), &rns);
        if rns.level() == Level::Rns {
            check(&ckks, &rns);
        }
    }

    #[test]
    fn operations_that_are_kept_stay_whole(program in programs(60)) {
        let ckks = to_ckks(program);
        let count = |program: &Program, kind: Ckks| {
            let ops = program.body().ops().iter();
            ops.filter(|op| op.kind() == OpKind::Ckks(kind)).count()
        };
        let pass = LowerToRns { keep: [Ckks::MulRelin, Ckks::Rescale].into() };
        let pipeline = Pipeline::from_passes(pass).unwrap();
        let rns = pipeline.run_with(ckks.clone(), &Dump::Off).unwrap().into_program();
        for kind in [Ckks::MulRelin, Ckks::Rescale, Ckks::Encode] {
            prop_assert_eq!(count(&rns, kind), count(&ckks, kind));
        }
        for kind in [Ckks::Mul, Ckks::Rotate, Ckks::MulPlain, Ckks::Neg] {
            prop_assert_eq!(count(&rns, kind), 0);
        }
    }
}

/// Sums of ciphertexts with two and three parts, in both orders, which random Programs rarely make.
#[test]
fn uneven_sums_keep_the_message() {
    let text = "\
program @uneven {
  chain {
    log_n = 4, scale = 2^40,
    moduli = [562949953216513, 1099511480321, 1099511922689, 1099510890497],
    special = [562949952798721, 562949952847873]
  }
  func (%x: !ciphertext<[], level=3, scale=2^40, parts=2>,
        %y: !ciphertext<[2], level=3, scale=2^80, parts=2>,
        %t: !tensor<f64, [2, 8]>) {
    %three = ckks.square %x
    %p = ckks.encode %t {level = 3, scale = 2^80}
    %a = ckks.sub %three, %y
    %b = ckks.sub %y, %a
    %c = ckks.add %y, %a
    %d = ckks.add_plain %a, %p
    %e = ckks.plain_sub %p, %a
    %f = ckks.sub_plain %y, %p
    %g = ckks.plain_sub %p, %three
    return (%a, %b, %c, %d, %e, %f, %g)
  }
}";
    let ckks = Program::parse(text).unwrap();
    let pipeline = Pipeline::from_passes(LowerToRns::default()).unwrap();
    let compiled = pipeline.run_with(ckks.clone(), &Dump::Off).unwrap();
    let stats = compiled.reports()[0].result.stats;
    assert_eq!((stats.matched, stats.transformed, stats.skipped), (9, 8, 1));
    assert_eq!(check(&ckks, compiled.program()), 7);
}

/// Errors beyond the modulus, or Programs without ciphertexts, would let the property pass.
#[test]
fn the_property_is_telling() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut telling = 0;
    for _ in 0..20 {
        let ckks = to_ckks(programs(60).new_tree(&mut runner).unwrap().current());
        let pipeline = Pipeline::from_passes(LowerToRns::default()).unwrap();
        let rns = pipeline
            .run_with(ckks.clone(), &Dump::Off)
            .unwrap()
            .into_program();
        telling += check(&ckks, &rns);
    }
    assert!(telling > 100, "{telling} telling results");
}
