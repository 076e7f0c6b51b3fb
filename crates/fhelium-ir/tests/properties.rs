//! Properties over random Programs and random texts.

mod common;

use common::{copied, random_program};
use fhelium_ir::operations::EXAMPLE_HEADER;
use fhelium_ir::{Editor, Literal, OpKind, OutputTree, Program, ProgramBuilder, Real};
use proptest::prelude::*;

fn choices() -> impl Strategy<Value = Vec<(u16, [u16; 3], i64)>> {
    prop::collection::vec((any::<u16>(), any::<[u16; 3]>(), -1i64..6), 0..60)
}

fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        Just(Literal::None),
        any::<bool>().prop_map(Literal::Bool),
        any::<i128>().prop_map(Literal::Int),
        any::<f64>().prop_map(|value| Literal::Float(Real::new(value))),
        (any::<u64>(), any::<f64>()).prop_map(|(bits, imaginary)| {
            Literal::Complex(Real::new(f64::from_bits(bits)), Real::new(imaginary))
        }),
        any::<String>().prop_map(Literal::Str),
    ]
}

fn tree() -> impl Strategy<Value = OutputTree<()>> {
    let leaf = prop_oneof![
        Just(OutputTree::Value(())),
        literal().prop_map(OutputTree::Literal)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(OutputTree::Tuple),
            prop::collection::vec(inner.clone(), 0..4).prop_map(OutputTree::List),
            prop::collection::vec(inner, 0..4).prop_map(|items| {
                let keyed = items.into_iter().enumerate();
                OutputTree::Dict(
                    keyed
                        .map(|(key, item)| (Literal::Str(format!("\u{1}{key}\"\\\n")), item))
                        .collect(),
                )
            }),
        ]
    })
}

/// Texts to spoil: every operation occurs.
fn corpus() -> Vec<String> {
    let mut texts: Vec<String> = OpKind::all()
        .map(|kind| {
            let example = kind.def().example;
            format!("{EXAMPLE_HEADER}  %0 = {example} loc(\"a.py\":1 in f)\n return %0 }} }}")
        })
        .collect();
    texts.push(include_str!("text/programs.fhe").to_owned());
    texts
}

/// Whatever the text, reading it gives a Program that holds up, or an error with a place in it.
fn check(text: &str) {
    match Program::parse(text) {
        Ok(program) => {
            program.verify().unwrap();
            assert_eq!(Program::parse(&program.to_text()).unwrap(), program);
        }
        Err(error) => {
            let place = error.position.expect("an error of the reader has a place");
            let lines = text.split('\n').count();
            assert!((1..=lines).contains(&place.line), "{error}");
            let line = text.split('\n').nth(place.line - 1).unwrap();
            assert!(
                (1..=line.chars().count() + 1).contains(&place.column),
                "{error}"
            );
            assert!(error.to_string().contains(&place.to_string()));
        }
    }
}

proptest! {
    /// Guards printing and reading against each other on whole Programs, and both ways of
    /// changing a Program against changing what they should not.
    #[test]
    fn random_programs_round_trip(choices in choices(), below_he: bool) {
        let program = random_program(&choices, below_he);
        program.verify().unwrap();
        let text = program.to_text();
        prop_assert_eq!(&Program::parse(&text).unwrap(), &program, "{}", text);
        prop_assert_eq!(&copied(&program), &program);
        prop_assert_eq!(&Editor::new(&program).finish().unwrap(), &program);
    }

    /// Guards constants of every kind and strings of any characters in output trees and names.
    #[test]
    fn outputs_and_names_round_trip(tree in tree(), name: String, input: String) {
        let mut builder = ProgramBuilder::new(name, None);
        let ty = fhelium_ir::Type::tensor(fhelium_ir::DType::F64, [2]);
        let value = builder.input(input, ty).unwrap();
        let outputs = tree.map(&mut |()| Ok::<_, ()>(value)).unwrap();
        let program = builder.finish(&outputs).unwrap();
        let text = program.to_text();
        prop_assert_eq!(&Program::parse(&text).unwrap(), &program, "{}", text);
    }

    #[test]
    fn cut_texts_never_panic(which: prop::sample::Index, at: prop::sample::Index) {
        let corpus = corpus();
        let text = which.get(&corpus);
        let cut: String = text.chars().take(at.index(text.chars().count())).collect();
        check(&cut);
    }

    /// Replaces, removes and repeats pieces.
    #[test]
    fn spoiled_texts_never_panic(
        which: prop::sample::Index,
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), 0usize..12, prop_oneof![
                "[-{}()<>,:=^*!%@\"\\\\ 0-9a-z.]{0,3}",
                Just("18446744073709551616".to_owned()),
                Just("-1".to_owned()),
                Just("0".to_owned()),
                Just("2^99999999999999999999999999999*3^-1".to_owned()),
                Just("(((((((((((".to_owned()),
                Just("\u{2028}é".to_owned()),
            ]),
            1..4,
        ),
    ) {
        let corpus = corpus();
        let mut text: Vec<char> = which.get(&corpus).chars().collect();
        for (at, length, new) in edits {
            let start = at.index(text.len() + 1);
            let end = (start + length).min(text.len());
            text.splice(start..end, new.chars());
        }
        check(&text.into_iter().collect::<String>());
    }

    #[test]
    fn arbitrary_texts_never_panic(text: String) {
        check(&text);
        check(&format!("program @p {{ {text}"));
    }
}

/// Guards the generator: that random Programs reach most of the table.
#[test]
fn random_programs_have_operations() {
    let choices: Vec<_> = (0u16..300)
        .map(|n| {
            (
                n,
                [n, n.wrapping_mul(7), n.wrapping_mul(31)],
                i64::from(n % 7) - 1,
            )
        })
        .collect();
    let mut seen = std::collections::HashSet::new();
    for below_he in [false, true] {
        let program = random_program(&choices, below_he);
        seen.extend(program.body().ops().iter().map(|op| op.kind()));
    }
    let all = OpKind::all().count();
    assert!(seen.len() * 10 > all * 7, "{} of {all}", seen.len());
}

/// Guards the bound on recursion: the nesting of what is returned.
#[test]
fn deep_nesting_is_refused_not_overflowed() {
    for (open, close) in [("(", ",)"), ("[", "]"), ("{1: ", "}")] {
        for depth in [64, 65, 100_000] {
            let tree = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let text = format!("program @p {{ func () {{ return {tree} }} }}");
            match Program::parse(&text) {
                Ok(program) => {
                    assert!(depth <= 64);
                    assert_eq!(Program::parse(&program.to_text()).unwrap(), program);
                }
                Err(error) => assert!(depth > 64 && error.message.contains("deeper"), "{error}"),
            }
        }
    }
    check(&"program @p { func () { %a = rns.fused() { (): ".repeat(1000));
}
