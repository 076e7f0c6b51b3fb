//! What `ckks` Programs mean: messages as big integers modulo Q.

use std::collections::HashMap;

use fhelium_ir::state::Chain;
use fhelium_ir::{Basis, Ckks, Op, OpKind, Program, Type};
use ndarray::{ArrayD, IxDyn};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use super::interpreter::{self, Value};
use super::residues as ring;

/// A message as integer coefficients, and how far the residues' message may be from it.
#[derive(Clone)]
pub struct Message {
    pub coefficients: ArrayD<Vec<BigInt>>,
    pub error: f64,
}

pub fn level(ty: &Type) -> usize {
    match ty {
        Type::Ciphertext {
            state: Some(state), ..
        } => state.level,
        Type::Plaintext {
            state: Some(state), ..
        } => state.level,
        Type::Residues { basis, .. } => basis.level(),
        _ => 0,
    }
}

pub fn basis(ty: &Type) -> Basis {
    match ty {
        Type::Residues { basis, .. } => *basis,
        _ => Basis::Q { level: level(ty) },
    }
}

/// Combines two arrays element by element after broadcasting them.
pub fn broadcast<A, B, C: Clone>(
    x: &ArrayD<A>,
    y: &ArrayD<B>,
    shape: &[usize],
    op: impl Fn(&A, &B) -> C,
) -> ArrayD<C> {
    let (x, y) = (
        x.broadcast(IxDyn(shape)).unwrap(),
        y.broadcast(IxDyn(shape)).unwrap(),
    );
    let items = x.iter().zip(y.iter()).map(|(x, y)| op(x, y));
    ArrayD::from_shape_vec(IxDyn(shape), items.collect()).unwrap()
}

/// The integers that a clear array is encoded as here: its real parts as coefficients.
pub fn encode(message: &Value, op: &Op, chain: &Chain) -> ArrayD<Vec<BigInt>> {
    let n = chain.n();
    let bits = op.attributes().scale("scale").unwrap().log2().floor() as usize;
    let integer = |x: f64| BigInt::from((x * 2f64.powi(30)).round() as i64) << (bits - 30);
    if message.ndim() == 0 {
        let mut coefficients = vec![BigInt::ZERO; n];
        coefficients[0] = integer(message[IxDyn(&[])].re);
        return ArrayD::from_elem(IxDyn(&[]), coefficients);
    }
    let (values, batch) = message.shape().split_last().unwrap();
    let flat: Vec<f64> = message.iter().map(|z| z.re).collect();
    let items = flat.chunks(*values).map(|chunk| {
        let mut coefficients: Vec<BigInt> = chunk.iter().map(|&x| integer(x)).collect();
        coefficients.resize(n, BigInt::ZERO);
        coefficients
    });
    ArrayD::from_shape_vec(IxDyn(batch), items.collect()).unwrap()
}

fn largest(message: &ArrayD<Vec<BigInt>>) -> f64 {
    let all = message.iter().flatten().map(|c| c.abs().to_f64().unwrap());
    all.fold(0.0, f64::max)
}

fn product(x: &[BigInt], y: &[BigInt], q: &BigInt) -> Vec<BigInt> {
    let n = x.len();
    let mut out = vec![BigInt::ZERO; n];
    for (i, a) in x.iter().enumerate() {
        for (j, b) in y.iter().enumerate() {
            let term = a * b;
            if i + j < n {
                out[i + j] += term
            } else {
                out[i + j - n] -= term
            }
        }
    }
    out.iter().map(|c| ring::center(c, q)).collect()
}

/// The result of an operation on batch axes.
fn batched(op: &Op, values: &[Option<Message>], q: &BigInt) -> Option<Message> {
    let operands: Vec<&Message> = op
        .operands()
        .iter()
        .filter_map(|id| values[id.index()].as_ref())
        .collect();
    let arrays: Vec<_> = operands.iter().map(|x| &x.coefficients).collect();
    let first = *arrays.first()?;
    let coefficients = super::batches::apply(op, &arrays, first.ndim(), |x, y| {
        let sums = x.iter().zip(y).map(|(x, y)| ring::center(&(x + y), q));
        sums.collect()
    })?;
    let error = operands.iter().map(|x| x.error).fold(0.0, f64::max);
    let terms = match op.kind() {
        OpKind::Ckks(Ckks::SumBatch) => first.len().max(1),
        _ => 1,
    };
    Some(Message {
        coefficients,
        error: error * terms as f64,
    })
}

/// Runs a `ckks` Program on messages.
pub fn messages(
    program: &Program,
    inputs: &HashMap<usize, Message>,
    clear: &[Option<Value>],
) -> Vec<Option<Message>> {
    let (body, chain) = (program.body(), program.chain().unwrap());
    let n = chain.n() as f64;
    // Rounding a value and the part beside the secret, whose coefficients are at most 1.
    let rounding = 1.0 + n;
    let mut values: Vec<Option<Message>> = vec![None; body.values().len()];
    let mut clear = clear.to_vec();
    for (&place, message) in inputs {
        values[place] = Some(message.clone());
    }
    for op in body.ops() {
        let OpKind::Ckks(kind) = op.kind() else {
            if !matches!(program.type_of(op.results()[0]), Type::Key(_)) {
                let value = interpreter::apply(program, op, &clear).remove(0);
                clear[op.results()[0].index()] = Some(value);
            }
            continue;
        };
        let ty = program.type_of(op.results()[0]);
        let joined = matches!(
            kind,
            Ckks::RelinearizeRescale | Ckks::MulRelinRescale | Ckks::SquareRelinRescale
        );
        // A joined operation computes a level above its result.
        let basis = Basis::Q {
            level: level(ty) + usize::from(joined),
        };
        let q = ring::modulus(&ring::primes(chain, basis));
        if kind == Ckks::Encode {
            let message = clear[op.operands()[0].index()].as_ref().unwrap();
            values[op.results()[0].index()] = Some(Message {
                coefficients: encode(message, op, chain),
                error: 0.0,
            });
            continue;
        }
        if let Some(message) = batched(op, &values, &q) {
            values[op.results()[0].index()] = Some(message);
            continue;
        }
        let operand = |place: usize| values[op.operands()[place].index()].clone().unwrap();
        let x = operand(0);
        let sum = |sign: i32| {
            let y = operand(1);
            Message {
                coefficients: broadcast(&x.coefficients, &y.coefficients, ty.batch(), |x, y| {
                    let sums = x
                        .iter()
                        .zip(y)
                        .map(|(x, y)| ring::center(&(x + y * sign), &q));
                    sums.collect()
                }),
                error: x.error + y.error,
            }
        };
        let times = |y: &Message, rounding: f64| {
            let (a, b) = (largest(&x.coefficients), largest(&y.coefficients));
            Message {
                coefficients: broadcast(&x.coefficients, &y.coefficients, ty.batch(), |x, y| {
                    product(x, y, &q)
                }),
                error: n * (a * y.error + b * x.error + x.error * y.error) + rounding,
            }
        };
        let each = |change: &dyn Fn(&BigInt) -> BigInt, error: f64| Message {
            coefficients: x
                .coefficients
                .map(|c| c.iter().map(|c| ring::center(&change(c), &q)).collect()),
            error,
        };
        let moved = |g: usize| Message {
            coefficients: x.coefficients.map(|c| ring::automorphism(c, g, |c| -c)),
            error: x.error + rounding,
        };
        // A message is rounded down here; each part, and so the message, to the nearest.
        let divided = |message: Message, parts: f64| {
            let dropped = chain.moduli()[level(ty) + 1];
            let quotients = |c: &Vec<BigInt>| c.iter().map(|c| c / dropped).collect();
            Message {
                coefficients: message.coefficients.map(quotients),
                error: message.error / dropped as f64 + 2.0 + parts,
            }
        };
        let results = match kind {
            Ckks::Add | Ckks::AddPlain => vec![sum(1)],
            Ckks::Sub | Ckks::SubPlain | Ckks::PlainSub => vec![sum(-1)],
            Ckks::Mul | Ckks::MulPlain => vec![times(&operand(1), 0.0)],
            Ckks::Square => vec![times(&x, 0.0)],
            Ckks::MulRelin => vec![times(&operand(1), rounding)],
            Ckks::SquareRelin => vec![times(&x, rounding)],
            Ckks::MulInteger => {
                let factor = op.attributes().int("value").unwrap();
                vec![each(&|c| c * factor, x.error * factor.abs() as f64)]
            }
            Ckks::Neg => vec![each(&|c| -c, x.error)],
            Ckks::Relinearize => vec![each(&BigInt::clone, x.error + rounding)],
            Ckks::DropLevels => vec![each(&BigInt::clone, x.error)],
            Ckks::Rescale => {
                let parts = if matches!(program.type_of(op.operands()[0]),
                    Type::Ciphertext { state: Some(s), .. } if s.parts == 3)
                {
                    n * n
                } else {
                    n
                };
                vec![divided(x, parts)]
            }
            Ckks::RelinearizeRescale => {
                vec![divided(each(&BigInt::clone, x.error + rounding), n)]
            }
            Ckks::MulRelinRescale => vec![divided(times(&operand(1), rounding), n)],
            Ckks::SquareRelinRescale => vec![divided(times(&x, rounding), n)],
            Ckks::Rotate => vec![moved(ring::galois(
                op.attributes().int("step").unwrap(),
                chain,
            ))],
            Ckks::RotateHoisted => {
                let steps = op.attributes().ints("steps").unwrap().iter();
                steps
                    .map(|&step| moved(ring::galois(step, chain)))
                    .collect()
            }
            Ckks::Conjugate => vec![moved(2 * chain.n() - 1)],
            Ckks::Encode
            | Ckks::SumBatch
            | Ckks::BatchSlice
            | Ckks::BatchReshape
            | Ckks::StackBatch => unreachable!(),
        };
        for (id, message) in op.results().iter().zip(results) {
            values[id.index()] = Some(message);
        }
    }
    values
}
