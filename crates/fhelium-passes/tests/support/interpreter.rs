//! Runs Programs on clear numbers: an encrypted or encoded value is its slots, exactly.
//!
//! Passes may only reorder and share computations, so what they make of a Program gives the same
//! numbers, bit for bit.

use fhelium_ir::{Body, Ckks, Core, He, Op, OpKind, Program, Rns, Tensor, Type};
use ndarray::{ArrayD, Axis, IxDyn, Slice};
use num_complex::Complex64;

/// Batch axes and slots, or a clear array.
pub type Value = ArrayD<Complex64>;

/// The values of a Program's outputs, and those of all its operations' results by number.
pub struct Run {
    pub outputs: Vec<Value>,
    pub values: Vec<Option<Value>>,
}

/// Runs a Program; a material's data is made from its symbol and type.
pub fn run(program: &Program, inputs: &[Value]) -> Run {
    let body = program.body();
    let mut values: Vec<Option<Value>> = vec![None; body.values().len()];
    for (argument, input) in body.arguments().zip(inputs) {
        values[argument.index()] = Some(input.clone());
    }
    for op in body.ops() {
        let results = apply(program, op, &values);
        for (id, value) in op.results().iter().zip(results) {
            values[id.index()] = Some(value);
        }
    }
    let outputs = program.results().iter();
    let outputs = outputs.map(|id| values[id.index()].clone().expect("a computed output"));
    Run {
        outputs: outputs.collect(),
        values,
    }
}

/// Numbers that look random and depend on a name only.
pub fn data(name: &str, shape: &[usize]) -> Value {
    let mut state = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    ArrayD::from_shape_simple_fn(IxDyn(shape), || Complex64::new(next(), next()))
}

/// The results of one operation.
pub fn apply(program: &Program, op: &Op, values: &[Option<Value>]) -> Vec<Value> {
    let slots = program.chain().map_or(0, |chain| chain.slots());
    let x = |place: usize| {
        let id = op.operands()[place];
        values[id.index()]
            .as_ref()
            .expect("an operand computed before")
    };
    let int = |name: &str| op.attributes().int(name).expect("an integer attribute");
    if matches!(op.kind(), OpKind::He(_) | OpKind::Ckks(_)) {
        let operands = op.operands().iter().map(|id| values[id.index()].as_ref());
        let operands: Vec<&Value> = operands.flatten().collect();
        let rank = program.type_of(op.operands()[0]).batch().len();
        if let Some(value) = super::batches::apply(op, &operands, rank, |x, y| x + y) {
            return vec![value];
        }
    }
    let one = match op.kind() {
        OpKind::Core(Core::Material) => {
            let symbol = op.attributes().symbol("symbol").unwrap();
            let ty = program.type_of(op.results()[0]);
            let mut shape = ty.batch().to_vec();
            if matches!(ty, Type::Plaintext { .. } | Type::Ciphertext { .. }) {
                shape.push(slots);
            }
            data(symbol, &shape)
        }
        OpKind::He(He::Add) | OpKind::Ckks(Ckks::Add | Ckks::AddPlain) => x(0) + x(1),
        OpKind::He(He::Sub) | OpKind::Ckks(Ckks::Sub | Ckks::SubPlain | Ckks::PlainSub) => {
            x(0) - x(1)
        }
        OpKind::He(He::Mul)
        | OpKind::Ckks(Ckks::Mul | Ckks::MulPlain | Ckks::MulRelin | Ckks::MulRelinRescale) => {
            x(0) * x(1)
        }
        OpKind::He(He::Square)
        | OpKind::Ckks(Ckks::Square | Ckks::SquareRelin | Ckks::SquareRelinRescale) => x(0) * x(0),
        OpKind::He(He::MulInteger) | OpKind::Ckks(Ckks::MulInteger) => {
            x(0).mapv(|z| z * int("value") as f64)
        }
        OpKind::He(He::Neg) | OpKind::Ckks(Ckks::Neg) => x(0).mapv(|z| -z),
        OpKind::He(He::Rotate) | OpKind::Ckks(Ckks::Rotate) => rotate(x(0), int("step")),
        OpKind::Ckks(Ckks::RotateHoisted) => {
            let steps = op.attributes().ints("steps").unwrap().iter();
            return steps.map(|&step| rotate(x(0), step)).collect();
        }
        OpKind::He(He::Conjugate) | OpKind::Ckks(Ckks::Conjugate) => x(0).mapv(|z| z.conj()),
        OpKind::He(He::Relinearize | He::Rescale | He::DropLevels)
        | OpKind::Ckks(
            Ckks::Relinearize | Ckks::RelinearizeRescale | Ckks::Rescale | Ckks::DropLevels,
        ) => x(0).clone(),
        OpKind::He(He::Encode) | OpKind::Ckks(Ckks::Encode) => encode(x(0), slots),
        OpKind::Rns(Rns::Fused) => {
            let operands: Vec<Value> = (0..op.operands().len()).map(|i| x(i).clone()).collect();
            return region(op.region().unwrap(), &operands);
        }
        OpKind::Tensor(Tensor::Add) => x(0) + x(1),
        OpKind::Tensor(Tensor::Mul) => x(0) * x(1),
        OpKind::Tensor(Tensor::Neg) => x(0).mapv(|z| -z),
        other => panic!("the interpreter does not know {other}"),
    };
    vec![one]
}

/// The results of a region of elementwise operations.
fn region(region: &Body, operands: &[Value]) -> Vec<Value> {
    let mut values: Vec<Value> = operands.to_vec();
    for op in region.ops() {
        let x = |place: usize| &values[op.operands()[place].index()];
        let value = match op.kind() {
            OpKind::Rns(Rns::Residues | Rns::Ciphertext | Rns::DropLimbs) => x(0).clone(),
            OpKind::Rns(Rns::Add) => x(0) + x(1),
            OpKind::Rns(Rns::Sub) => x(0) - x(1),
            OpKind::Rns(Rns::Mul) => x(0) * x(1),
            OpKind::Rns(Rns::Neg) => x(0).mapv(|z| -z),
            OpKind::Rns(Rns::MulInteger) => {
                let factor = op.attributes().int("value").unwrap() as f64;
                x(0).mapv(|z| z * factor)
            }
            other => panic!("{other} in a region"),
        };
        values.push(value);
    }
    let results = region.results().iter();
    results.map(|id| values[id.index()].clone()).collect()
}

/// Slot `i` receives slot `i + step`.
fn rotate(x: &Value, step: i64) -> Value {
    let axis = Axis(x.ndim() - 1);
    let slots = x.len_of(axis) as i64;
    let step = step.rem_euclid(slots) as usize;
    let places: Vec<usize> = (0..slots as usize)
        .map(|i| (i + step) % slots as usize)
        .collect();
    x.select(axis, &places)
}

/// The last axis padded with zeros to all slots; a scalar fills them.
fn encode(message: &Value, slots: usize) -> Value {
    if message.ndim() == 0 {
        return ArrayD::from_elem(IxDyn(&[slots]), message[IxDyn(&[])]);
    }
    let mut shape = message.shape().to_vec();
    let given = std::mem::replace(shape.last_mut().unwrap(), slots);
    let mut padded = ArrayD::zeros(IxDyn(&shape));
    padded
        .slice_axis_mut(Axis(shape.len() - 1), Slice::from(..given))
        .assign(message);
    padded
}

/// The inputs of a Program, made from their names.
pub fn inputs(program: &Program, salt: &str) -> Vec<Value> {
    let slots = program.chain().map_or(0, |chain| chain.slots());
    let of_input = |place: usize| {
        let input = &program.inputs()[place];
        let mut shape = input.ty.batch().to_vec();
        if !matches!(input.ty, Type::Tensor { .. }) {
            shape.push(slots);
        }
        data(&format!("{}{salt}", input.name), &shape)
    };
    (0..program.inputs().len()).map(of_input).collect()
}
