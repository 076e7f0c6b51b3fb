//! A compiled Program gives the bits of the same operations called one by one.

mod common;

use common::{at, encrypt, engine, leaves, message, on_host, same_bits, twin};
use fhelium_runtime::ir::{
    Attributes, DType, He, Material, OpKind, OutputTree, ProgramBuilder, Tensor as T, Type,
    operations::OperandKind,
};
use fhelium_runtime::passes::{Compilation, default_pipeline};
use fhelium_runtime::state::Scale;
use fhelium_runtime::{
    CallSignature, Device, MaterialBinding, OperationBackend, PrepareOptions, Value, prepare,
};
use proptest::prelude::*;
use std::sync::Arc;

/// One step of a random program: an operation on values picked by number.
#[derive(Clone, Debug)]
struct Step {
    operation: OpKind,
    picks: [usize; 2],
    attributes: Attributes,
}

fn step() -> impl Strategy<Value = Step> {
    let none = || Just(Attributes::new());
    let rotation = prop_oneof![Just(0), Just(1), Just(2), Just(5), Just(-1), Just(513)];
    let rotation = rotation.prop_map(|step: i64| Attributes::new().with("step", step));
    let encoding = (0..4i64).prop_map(|level| {
        Attributes::new()
            .with("level", level)
            .with("scale", Scale::from_bits(40))
    });
    let shape = prop_oneof![
        Just(vec![2, 1]),
        Just(vec![-1, 2]),
        Just(vec![2]),
        Just(vec![])
    ];
    let shape = shape.prop_map(|shape: Vec<i64>| Attributes::new().with("shape", shape));
    let slice = (0..3i64, 0..3i64, any::<bool>()).prop_map(|(start, size, drop)| {
        Attributes::new()
            .with("starts", vec![start])
            .with("sizes", vec![size])
            .with("steps", vec![-1])
            .with("dropped", vec![0; usize::from(drop)])
    });
    let he = prop_oneof![
        4 => (Just(He::Add), none()).boxed(),
        2 => (Just(He::Sub), none()).boxed(),
        4 => (Just(He::Mul), none()).boxed(),
        1 => (Just(He::Square), none()).boxed(),
        1 => (Just(He::Neg), none()).boxed(),
        1 => (Just(He::Conjugate), none()).boxed(),
        4 => (Just(He::Relinearize), none()).boxed(),
        4 => (Just(He::Rescale), none()).boxed(),
        4 => (Just(He::Rotate), rotation).boxed(),
        2 => (Just(He::Encode), encoding).boxed(),
        1 => (Just(He::MulInteger), (-5..5i64).prop_map(|v| Attributes::new().with("value", v))).boxed(),
        2 => (Just(He::DropLevels), (0..2i64).prop_map(|c| Attributes::new().with("count", c))).boxed(),
        1 => (Just(He::SumBatch), (-2..2i64).prop_map(|a| Attributes::new().with("axis", a))).boxed(),
        1 => (Just(He::BatchSlice), slice).boxed(),
        1 => (Just(He::BatchReshape), shape).boxed(),
    ]
    .prop_map(|(operation, attributes)| (OpKind::from(operation), attributes));
    let clear = prop_oneof![
        (Just(T::Add), none()),
        (Just(T::Mul), none()),
        (Just(T::Neg), none()),
    ]
    .prop_map(|(operation, attributes)| (OpKind::from(operation), attributes));
    (prop_oneof![5 => he, 1 => clear], any::<[usize; 2]>()).prop_map(
        |((operation, attributes), picks)| Step {
            operation,
            picks,
            attributes,
        },
    )
}

proptest! {
    // An emulated device is slow.
    #![proptest_config(ProptestConfig { cases: if common::device() == Device::Cpu { 100 } else { 12 },
        failure_persistence: None, ..ProptestConfig::default() })]

    /// Guards that building a Program and calling eagerly accept and refuse the same operations,
    /// for the same class of reason, that the compiled Program gives the eager bits, each time, and
    /// that a device gives the CPU's.
    #[test]
    fn random_programs(steps in prop::collection::vec(step(), 1..60)) {
        let (engine, keys) = engine();
        let arguments: Vec<Value> = vec![
            encrypt(engine, keys, &message(1, &[2, 512])),
            encrypt(engine, keys, &message(2, &[512])),
            engine.encode(&message(3, &[512]), Some(2), None).unwrap().into(),
            message(4, &[512]).into(),
        ];
        let material = Value::from(message(5, &[2, 512]));

        let chain = Arc::new(engine.parameters().chain().clone());
        let mut builder = ProgramBuilder::new("random", Some(chain));
        let mut ids = Vec::new();
        for (place, argument) in arguments.iter().enumerate() {
            ids.push(builder.input(format!("x{place}"), argument.ty()).unwrap());
        }
        builder.material("weights", Material::new(material.ty(), "")).unwrap();
        ids.push(builder.reference("weights", None).unwrap());
        let mut values = arguments.clone();
        values.push(material.clone());

        for (line, step) in (1..).zip(&steps) {
            let picks = pick(step, &values);
            let operands: Vec<Value> = picks.iter().map(|&pick| values[pick].clone()).collect();
            let operand_ids: Vec<_> = picks.iter().map(|&pick| ids[pick]).collect();
            let eager = engine.apply(step.operation, &operands, &step.attributes, at(line).as_ref());
            let built = builder.op(step.operation, &operand_ids, &step.attributes, at(line));
            match (eager, built) {
                (Ok(results), Ok(built)) => {
                    prop_assert_eq!(results.len(), built.len());
                    // An encoding's floating-point rounding may differ.
                    let rounds = step.operation == OpKind::from(He::Encode);
                    if common::device() != Device::Cpu && !rounds {
                        let operands: Vec<Value> = operands.iter().map(on_host).collect();
                        let twins = twin().apply(step.operation, &operands, &step.attributes, None);
                        for (result, twin) in results.iter().zip(&twins.unwrap()) {
                            prop_assert!(same_bits(result, twin), "{step:?} on the device");
                        }
                    }
                    ids.extend(built.iter().copied());
                    values.extend(results);
                }
                (Err(eager), Err(built)) => {
                    prop_assert_eq!(eager.kind(), built.kind, "{} / {}", eager, built);
                    let source = format!("score.py:{line} in score");
                    prop_assert!(eager.to_string().starts_with(&source), "{}", eager);
                }
                (eager, built) => prop_assert!(
                    false, "eager {:?} but built {:?}", eager.map(drop), built.map(drop)
                ),
            }
        }

        // What is returned decides what dies where, so return every third value only.
        let returned: Vec<usize> = (0..ids.len()).filter(|i| i % 3 == 0 || *i + 1 == ids.len()).collect();
        let tree = OutputTree::List(returned.iter().map(|&i| OutputTree::Value(ids[i])).collect());
        let mut compilation = Compilation::new(builder.finish(&tree).unwrap());
        compilation
            .material_bindings
            .insert("weights", Arc::new(MaterialBinding::Fixed(material)));
        let specialization = prepare(
            &compilation,
            &default_pipeline(),
            &OperationBackend::standard(),
            CallSignature::default(),
            engine,
            PrepareOptions { arguments: Some(&arguments), ..PrepareOptions::default() },
        )
        .unwrap();
        let before: Vec<Vec<u64>> = residues(&arguments);
        // On a device the second run is recorded, and the third one rebinds.
        for _ in 0..3 {
            let outputs = specialization.executable().run(&arguments).unwrap();
            for (output, &value) in leaves(&outputs).iter().zip(&returned) {
                prop_assert!(
                    same_bits(output, &values[value]),
                    "value {}: {:?} / {:?}\n{}",
                    value, output.ty(), values[value].ty(), specialization.explain()
                );
            }
        }
        prop_assert!(residues(&arguments) == before, "an argument was changed");
    }
}

/// Operands by number: usually of the kind that the operation takes, and for a pair alike in level
/// and scale where the first has a match, so that most steps are legal and some are not.
fn pick(step: &Step, values: &[Value]) -> Vec<usize> {
    let specs = step.operation.def().operands.iter();
    let specs = specs.filter(|spec| spec.kind != OperandKind::Key);
    let mut picks: Vec<usize> = Vec::new();
    for (spec, &random) in specs.zip(&step.picks) {
        let fits = |value: &Value| match spec.kind {
            OperandKind::Tensor => matches!(value, Value::Tensor(_)),
            OperandKind::Ciphertext => matches!(value, Value::Ciphertext(_)),
            _ => matches!(value, Value::Ciphertext(_) | Value::Plaintext(_)),
        };
        let alike = |value: &Value| match (picks.first().map(|&pick| &values[pick]), value) {
            (Some(Value::Ciphertext(x)), Value::Ciphertext(y)) => x.state() == y.state(),
            _ => true,
        };
        let all = 0..values.len();
        let fitting: Vec<usize> = all.filter(|&i| fits(&values[i])).collect();
        let matching: Vec<usize> = fitting
            .iter()
            .copied()
            .filter(|&i| alike(&values[i]))
            .collect();
        let from = match random % 8 {
            0 => &(0..values.len()).collect(),
            1 => &fitting,
            _ => &matching,
        };
        // Later values more often than earlier ones, so that programs grow deep.
        picks.push(from[from.len() - 1 - (random / 8) % from.len().min(4)]);
    }
    picks
}

fn residues(values: &[Value]) -> Vec<Vec<u64>> {
    values
        .iter()
        .map(|value| match on_host(value) {
            Value::Ciphertext(value) => value.host().unwrap().data().to_vec(),
            Value::Plaintext(value) => value.host().unwrap().data().to_vec(),
            _ => Vec::new(),
        })
        .collect()
}

/// Guards that tensors of every element type encode alike, eager and compiled.
#[test]
fn encodings_of_every_element_type() {
    let (engine, _) = engine();
    for dtype in DType::ALL {
        let cast = Attributes::new().with("dtype", dtype);
        let array = engine
            .apply(T::Cast.into(), &[message(1, &[4]).into()], &cast, None)
            .unwrap();
        let attributes = Attributes::new()
            .with("level", 1)
            .with("scale", Scale::from_bits(40));
        let eager = engine
            .apply(He::Encode.into(), &array, &attributes, None)
            .unwrap();
        let chain = Arc::new(engine.parameters().chain().clone());
        let mut builder = ProgramBuilder::new("encode", Some(chain));
        let input = builder.input("x", Type::tensor(dtype, [4])).unwrap();
        let encoded = builder
            .one(He::Encode, &[input], &attributes, None)
            .unwrap();
        let program = builder.finish(&OutputTree::Value(encoded)).unwrap();
        let specialization = prepare(
            &Compilation::new(program),
            &default_pipeline(),
            &OperationBackend::standard(),
            CallSignature::default(),
            engine,
            PrepareOptions::default(),
        )
        .unwrap();
        let outputs = specialization.executable().run(&array).unwrap();
        assert!(same_bits(&leaves(&outputs)[0], &eager[0]), "{dtype}");
    }
}

/// Guards that a rescale joined with a relinearization gives the bits of the steps, at every
/// level.
#[test]
fn joined_rescales() {
    let (engine, keys) = engine();
    let func = "func (%x: !ciphertext<[2]>, %y: !ciphertext<[]>) {
        %a = he.mul %x, %y
        %b = he.relinearize %a
        %c = he.rescale %b
        %d = he.square %y
        %e = he.relinearize %d
        %f = he.rescale %e
        %h = he.square %x
        %i = he.add %h, %h
        %j = he.relinearize %i
        %k = he.rescale %j
        return (%c, %f, %k)
    }";
    let fresh = [
        encrypt(engine, keys, &message(1, &[2, 512])),
        encrypt(engine, keys, &message(2, &[512])),
    ];
    let program = common::program(engine, "", func);
    for dropped in 0..3 {
        let arguments = fresh
            .each_ref()
            .map(|value| engine.drop_levels(value, dropped).unwrap());
        let [x, y] = &arguments;
        let finish = |product: Value| {
            let relinearized = engine.relinearize(&product, None).unwrap();
            engine.rescale(&relinearized).unwrap()
        };
        let product = engine.multiply(x, y).unwrap();
        let square = engine.square(x).unwrap();
        let sum = engine.add(&square, &square).unwrap();
        let expected = [product, engine.square(y).unwrap(), sum].map(finish);
        let options = PrepareOptions {
            arguments: Some(&arguments),
            ..PrepareOptions::default()
        };
        let prepared = common::prepared(engine, program.clone(), &[], options).unwrap();
        for joined in [
            "ckks.mul_relin_rescale",
            "ckks.square_relin_rescale",
            "ckks.relinearize_rescale",
        ] {
            assert_eq!(prepared.cost().count(joined), 1, "{joined}");
        }
        let outputs = leaves(&prepared.executable().run(&arguments).unwrap());
        for (output, expected) in outputs.iter().zip(&expected) {
            assert!(same_bits(output, expected), "{dropped} levels dropped");
        }
    }
}

/// Guards that stacks of ciphertexts and of plaintexts, and what is taken from them again, have the
/// eager bits and hold each operand's residues.
#[test]
fn stacks_and_slices() {
    let (engine, keys) = engine();
    let func = "func (%x: !ciphertext<[]>, %y: !ciphertext<[]>, %p: !plaintext<[]>) {
        %xs = he.stack_batch %x, %y, %x {axis = 0}
        %ps = he.stack_batch %p, %p {axis = 0}
        %rows = he.batch_reshape %xs {shape = [3, 1]}
        %table = he.mul %rows, %ps
        %sums = he.sum_batch %table {axis = 0}
        %last = he.batch_slice %xs {starts = [1], sizes = [1], steps = [1], dropped = [0]}
        %alone = he.sum_batch %rows {axis = 1}
        return (%xs, %sums, %last, %alone)
    }";
    let x = encrypt(engine, keys, &message(1, &[512]));
    let y = encrypt(engine, keys, &message(2, &[512]));
    let p = Value::from(engine.encode(&message(3, &[512]), None, None).unwrap());
    let xs = engine.stack(&[x.clone(), y.clone(), x.clone()], 0).unwrap();
    let ps = engine.stack(&[p.clone(), p.clone()], -1).unwrap();
    let table = engine
        .multiply(&engine.batch_reshape(&xs, &[3, 1]).unwrap(), &ps)
        .unwrap();
    let expected = [
        xs.clone(),
        engine.sum_batch(&table, -2).unwrap(),
        y.clone(),
        xs.clone(),
    ];
    assert!(same_bits(
        &engine.batch_slice(&xs, &[1], &[1], &[1], &[0]).unwrap(),
        &y
    ));
    let program = common::program(engine, "", func);
    let arguments = [x, y, p];
    let options = PrepareOptions {
        arguments: Some(&arguments),
        ..PrepareOptions::default()
    };
    let prepared = common::prepared(engine, program, &[], options).unwrap();
    // The axis of one item is no sum but a view.
    assert_eq!(prepared.cost().count("ckks.sum_batch"), 1);
    let outputs = leaves(&prepared.executable().run(&arguments).unwrap());
    for (place, (output, expected)) in outputs.iter().zip(&expected).enumerate() {
        assert!(same_bits(output, expected), "output {place}");
    }
}
