//! Random legal Programs.

use std::sync::Arc;

use fhelium_ir::state::{Chain, CipherState, Scale};
use fhelium_ir::{
    Attributes, DType, He, KeyKind, Location, Material, OpKind, OutputTree, Program,
    ProgramBuilder, Tensor, Type, ValueId,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// One try at an operation: which, and where its operands and attributes come from.
pub type Step = (u8, u16, u16, i8);

/// Programs of up to `length` tried operations, of which the illegal ones are left out.
pub fn programs(length: usize) -> impl Strategy<Value = Program> {
    (vec(any::<Step>(), 1..length), vec(any::<u16>(), 1..40))
        .prop_map(|(steps, returned)| build(&steps, &returned))
}

/// A chain of 8 slots, so that steps collide and wrap often. Four levels, so that rescales and
/// drops run out; the rules read the primes' sizes only.
pub fn chain() -> Arc<Chain> {
    let moduli = vec![
        562949953216513,
        1099511480321,
        1099511922689,
        1099510890497,
        1099509805057,
    ];
    let special = vec![562949952798721, 562949952847873];
    Arc::new(Chain::new(4, moduli, special, Scale::from_bits(40)))
}

/// Builds the Program that the numbers describe.
pub fn build(steps: &[Step], returned: &[u16]) -> Program {
    let chain = chain();
    let depth = chain.depth();
    let slots = chain.slots();
    let mut builder = ProgramBuilder::new("random", Some(chain));
    let fresh = || CipherState::new(depth, Scale::from_bits(40));
    let mut values: Vec<ValueId> = [("x", vec![]), ("y", vec![]), ("z", vec![3])]
        .map(|(name, batch)| {
            builder
                .input(name, Type::ciphertext(batch, fresh()))
                .unwrap()
        })
        .into();
    values.push(
        builder
            .input("t", Type::tensor(DType::C128, [slots]))
            .unwrap(),
    );
    let own_key = builder
        .input("own_key", Type::Key(KeyKind::Rotation { step: 3 }))
        .unwrap();
    for (symbol, shape) in [("v", vec![slots]), ("w", vec![3, 5])] {
        let material = Material::new(Type::tensor(DType::C128, shape), "");
        builder.material(symbol, material).unwrap();
    }
    let location = |place: usize| Some(Location::new("random.py", place as u32 + 1, "f"));
    for (place, &(choice, left, right, number)) in steps.iter().enumerate() {
        // Operands of the last few values make chains; of the first, equal operations.
        let choice = choice % 25;
        let is_clear = |value: &&ValueId| {
            matches!(builder.type_of(**value), Some(Type::Tensor { .. }))
                == (19..24).contains(&choice)
        };
        let pick = |number: u16, values: &[ValueId]| {
            let (end, number) = (values.len(), usize::from(number));
            match number % 3 {
                0 => values[end - 1 - (number / 3) % end.min(4)],
                1 => values[(number / 3) % end.min(4)],
                _ => values[(number / 3) % end],
            }
        };
        let fitting: Vec<ValueId> = values.iter().filter(is_clear).copied().collect();
        let x = pick(left, &fitting);
        let y = match choice {
            19 | 20 => pick(right, &values),
            _ => pick(right, &fitting),
        };
        let none = Attributes::new();
        let number = i64::from(number);
        let step = |count: i64| Attributes::new().with("step", number.rem_euclid(count));
        let (kind, operands, attributes): (OpKind, Vec<ValueId>, Attributes) = match choice {
            0..=2 => (He::Add.into(), vec![x, y], none),
            3 => (He::Sub.into(), vec![x, y], none),
            4..=6 => (He::Mul.into(), vec![x, y], none),
            7 => (He::Square.into(), vec![x], none),
            8 => (
                He::MulInteger.into(),
                vec![x],
                Attributes::new().with("value", number % 4),
            ),
            9 => (He::Neg.into(), vec![x], none),
            10..=12 => (He::Rotate.into(), vec![x], step(4)),
            13 => (He::Rotate.into(), vec![x, own_key], step(4)),
            14 => (He::Conjugate.into(), vec![x], none),
            15 | 16 => (He::Relinearize.into(), vec![x], none),
            17 => (He::Rescale.into(), vec![x], none),
            18 => (
                He::DropLevels.into(),
                vec![x],
                Attributes::new().with("count", number.rem_euclid(2)),
            ),
            19 | 20 => {
                let state = match builder.type_of(y) {
                    Some(Type::Ciphertext {
                        state: Some(state), ..
                    }) => state.clone(),
                    _ => continue,
                };
                let attributes = Attributes::new()
                    .with("level", state.level as i64)
                    .with("scale", state.scale);
                (He::Encode.into(), vec![x], attributes)
            }
            21 => {
                let symbol = ["v", "w"][usize::from(right % 2)];
                values.push(builder.reference(symbol, location(place)).unwrap());
                continue;
            }
            22 => (Tensor::Add.into(), vec![x, y], none),
            23 => (Tensor::Mul.into(), vec![x, y], none),
            _ => {
                let mut operands = vec![x];
                let (kind, attributes) = match number.rem_euclid(4) {
                    0 => (He::SumBatch, none.with("axis", -1)),
                    1 => {
                        let size = number.div_euclid(4).rem_euclid(2);
                        let slice = none
                            .with("starts", vec![2])
                            .with("sizes", vec![1 + size])
                            .with("steps", vec![-1])
                            .with("dropped", vec![0; usize::from(size == 0)]);
                        (He::BatchSlice, slice)
                    }
                    2 => (He::BatchReshape, none.with("shape", vec![1, -1])),
                    _ => {
                        operands.push(y);
                        (He::StackBatch, none.with("axis", 0))
                    }
                };
                (kind.into(), operands, attributes)
            }
        };
        let Ok(results) = builder.op(kind, &operands, &attributes, location(place)) else {
            continue;
        };
        let mut results = results.to_vec();
        // As people write it: nothing else reads the product, or the relinearized one.
        let then: &[He] = match choice {
            6 => &[He::Relinearize, He::Rescale],
            16 => &[He::Rescale],
            _ => &[],
        };
        for &kind in then {
            let next = builder.one(kind, &results, &Attributes::new(), location(place));
            results = next.map_or(results, |next| vec![next]);
        }
        values.extend(results);
    }
    let outputs = returned.iter().map(|&place| {
        OutputTree::Value(values[values.len() - 1 - usize::from(place) % values.len()])
    });
    builder
        .finish(&OutputTree::Tuple(outputs.collect()))
        .unwrap()
}
