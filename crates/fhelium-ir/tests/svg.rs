//! The picture: well-formed whatever the names, and of a size that a person can look at.

mod common;

use common::random_program;
use fhelium_ir::{Attributes, He, OutputTree, Program, ProgramBuilder, Tensor, Type, ValueId};
use proptest::prelude::*;

/// The picture's elements, by a reader of XML.
fn elements(svg: &str) -> usize {
    let document = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
    document
        .descendants()
        .filter(|node| node.has_tag_name("g"))
        .count()
}

/// Layers of rotations, products and sums: what a matrix product looks like.
fn matrix_products(layers: usize, diagonals: i64) -> Program {
    let text = include_str!("text/programs.fhe");
    let layer = Program::parse(text.split("// gives").next().unwrap()).unwrap();
    let mut builder = ProgramBuilder::without_inputs_of(&layer);
    let input = &layer.inputs()[0];
    let mut x: ValueId = builder
        .input(
            input.name.clone(),
            Type::Ciphertext {
                batch: vec![6],
                state: None,
            },
        )
        .unwrap();
    for _ in 0..layers {
        let w = builder.reference("w", None).unwrap();
        let mut sum = None;
        for step in 0..diagonals {
            let row = Attributes::new().with("axis", 0i64).with("index", step % 3);
            let row = builder.one(Tensor::Index, &[w], &row, None).unwrap();
            let p = builder
                .one(He::Encode, &[row], &Attributes::new(), None)
                .unwrap();
            let step = Attributes::new().with("step", step);
            let turned = builder.one(He::Rotate, &[x], &step, None).unwrap();
            let term = builder
                .one(He::Mul, &[turned, p], &Attributes::new(), None)
                .unwrap();
            sum = Some(match sum {
                None => term,
                Some(sum) => builder
                    .one(He::Add, &[sum, term], &Attributes::new(), None)
                    .unwrap(),
            });
        }
        x = builder
            .one(He::Rescale, &[sum.unwrap()], &Attributes::new(), None)
            .unwrap();
    }
    builder.finish(&OutputTree::Value(x)).unwrap()
}

/// Guards grouping: 64 diagonals are a handful of boxes, thousands of layers a few hundred.
#[test]
fn large_programs_become_few_boxes() {
    let one = matrix_products(1, 64).to_svg();
    assert_eq!(elements(&one), 9, "input, output and 7 kinds of operation");
    assert!(one.contains("he.rotate \u{d7}64"));
    assert!(one.contains("step 0, 1, 2, 3, \u{2026}"));
    assert!(one.contains("he.add \u{d7}63"));
    let many = matrix_products(1500, 2);
    assert!(many.body().ops().len() > 10_000);
    assert!(elements(&many.to_svg()) <= 302);
}

/// Guards that a small Program shows every operation.
#[test]
fn small_programs_show_every_operation() {
    let program = matrix_products(1, 3);
    assert_eq!(elements(&program.to_svg()), program.body().ops().len() + 2);
}

proptest! {
    #[test]
    fn pictures_are_well_formed(
        choices in prop::collection::vec((any::<u16>(), any::<[u16; 3]>(), -1i64..6), 0..90),
        below_he: bool,
        name: String,
    ) {
        let program = random_program(&choices, below_he);
        elements(&program.to_svg());
        let mut builder = ProgramBuilder::new(name.clone(), None);
        let x = builder.input(name, Type::tensor(fhelium_ir::DType::F64, [2])).unwrap();
        elements(&builder.finish(&OutputTree::Value(x)).unwrap().to_svg());
    }
}
