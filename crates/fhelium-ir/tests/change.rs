//! Changing Programs, and what the verifier keeps out.

mod common;

use fhelium_ir::{
    Attributes, DType, Editor, Location, Material, OpKind, OutputTree, Place, Program,
    ProgramBuilder, Rewriter, Tensor, Type, ValueId,
};
use std::time::{Duration, Instant};

fn none() -> Attributes {
    Attributes::new()
}

/// neg of neg of x, and x + that.
fn small() -> Program {
    let mut builder = ProgramBuilder::new("small", None);
    let ty = Type::tensor(DType::F64, [4]);
    let x = builder.input("x", ty).unwrap();
    let a = builder.one(Tensor::Neg, &[x], &none(), None).unwrap();
    let b = builder.one(Tensor::Neg, &[a], &none(), None).unwrap();
    let c = builder.one(Tensor::Add, &[x, b], &none(), None).unwrap();
    let outputs = vec![OutputTree::Value(c), OutputTree::Value(b)];
    builder.finish(&OutputTree::Tuple(outputs)).unwrap()
}

fn kinds(program: &Program) -> Vec<&'static str> {
    program
        .body()
        .ops()
        .iter()
        .map(|op| op.kind().name())
        .collect()
}

/// Guards replacing, inserting, taking out and the lists of uses, results included.
#[test]
fn an_editor_replaces_inserts_and_takes_out() {
    let program = small();
    let mut editor = Editor::new(&program);
    let [first, second, add] = editor.ops()[..] else {
        panic!("three operations")
    };
    let x = ValueId::from_index(0);
    let (a, b) = (
        editor.op(first).unwrap().results()[0],
        editor.op(second).unwrap().results()[0],
    );
    assert_eq!(editor.uses(x).unwrap().len(), 2);
    assert!(editor.precedes(first, add).unwrap());
    assert!(editor.erase(second).is_err(), "it is used");
    editor.replace_uses(b, x).unwrap();
    assert!(editor.is_unused(b).unwrap());
    assert_eq!(editor.uses(x).unwrap().len(), 3);
    editor.erase(second).unwrap();
    assert!(editor.op(second).is_err());
    assert!(editor.is_unused(a).unwrap());
    editor.erase(first).unwrap();
    let abs = editor
        .insert(Place::Before(add), Tensor::Abs, &[x], &none(), None)
        .unwrap()[0];
    editor.set_operand(add, 1, abs).unwrap();
    editor
        .material("w", Material::new(Type::tensor(DType::F64, [4]), ""))
        .unwrap();
    let w = editor.reference(Place::Start, "w").unwrap();
    editor.set_operand(add, 0, w).unwrap();
    assert!(editor.is_defined_before(w, add).unwrap());
    let changed = editor.finish().unwrap();
    assert_eq!(
        kinds(&changed),
        ["core.material", "tensor.abs", "tensor.add"]
    );
    assert_eq!(changed.results()[1], x);
    changed.verify().unwrap();
    assert_eq!(Program::parse(&changed.to_text()).unwrap(), changed);
}

/// Guards that an order which breaks SSA form is refused, with the operation's place.
#[test]
fn an_editor_refuses_uses_before_definitions() {
    let mut builder = ProgramBuilder::new("p", None);
    let x = builder.input("x", Type::tensor(DType::F64, [4])).unwrap();
    let a = builder.one(Tensor::Neg, &[x], &none(), None).unwrap();
    let line = Location::new("f.py", 3, "f");
    let b = builder.one(Tensor::Abs, &[a], &none(), Some(line)).unwrap();
    let program = builder.finish(&OutputTree::Value(b)).unwrap();
    let mut editor = Editor::new(&program);
    let ops = editor.ops();
    editor.shift(ops[1], Place::Start).unwrap();
    assert!(editor.precedes(ops[1], ops[0]).unwrap());
    let error = editor.finish().unwrap_err();
    assert!(
        error.to_string().starts_with("f.py:3 in f: tensor.abs: "),
        "{error}"
    );
}

/// Guards order numbers when the gaps between them are used up.
#[test]
fn an_editor_keeps_order_under_many_insertions_at_one_place() {
    let program = small();
    let mut editor = Editor::new(&program);
    let anchor = editor.ops()[1];
    let x = ValueId::from_index(0);
    for _ in 0..500 {
        editor
            .insert(Place::Before(anchor), Tensor::Abs, &[x], &none(), None)
            .unwrap();
        editor
            .insert(Place::After(anchor), Tensor::Sin, &[x], &none(), None)
            .unwrap();
    }
    let ops = editor.ops();
    assert_eq!(ops.len(), 1003);
    assert!(
        ops.windows(2)
            .all(|pair| editor.precedes(pair[0], pair[1]).unwrap())
    );
}

/// Guards that types follow through a rebuild when inputs change theirs.
#[test]
fn a_rewriter_infers_types_anew() {
    let program = small();
    let wide = Type::tensor(DType::C64, [7]);
    let mut rewriter = Rewriter::with_input_types(&program, |_, _| wide.clone()).unwrap();
    for op in program.body().ops() {
        rewriter.copy(op).unwrap();
    }
    let changed = rewriter.finish().unwrap();
    assert!(
        changed
            .results()
            .iter()
            .all(|&result| *changed.type_of(result) == wide)
    );
}

/// Guards that a value whose operation is left out cannot be used.
#[test]
fn a_rewriter_refuses_values_that_were_left_out() {
    let program = small();
    let mut rewriter = Rewriter::new(&program).unwrap();
    let ops = program.body().ops();
    rewriter.copy(&ops[0]).unwrap();
    assert!(
        rewriter
            .copy(&ops[2])
            .unwrap_err()
            .message
            .contains("removed")
    );
}

/// Guards the limits of the builder: undefined values, names and symbols that are taken.
#[test]
fn a_builder_refuses_what_is_not_there_or_is_taken() {
    let ty = Type::tensor(DType::F64, [4]);
    let mut builder = ProgramBuilder::new("p", None);
    let x = builder.input("x", ty.clone()).unwrap();
    assert!(builder.input("x", ty.clone()).is_err());
    let stranger = ValueId::from_index(9);
    let line = Location::new("f.py", 3, "f");
    let error = builder
        .one(Tensor::Neg, &[stranger], &none(), Some(line))
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("f.py:3 in f: tensor.neg: value 9"),
        "{error}"
    );
    builder
        .material("w", Material::new(ty.clone(), "weights"))
        .unwrap();
    assert!(
        builder
            .material("w", Material::new(ty.clone(), ""))
            .is_err()
    );
    let open = Type::Ciphertext {
        batch: vec![],
        state: None,
    };
    assert!(builder.material("c", Material::new(open, "")).is_err());
    builder.one(Tensor::Neg, &[x], &none(), None).unwrap();
    assert!(builder.input("late", ty).is_err());
    builder.retain_used_materials();
    assert!(builder.materials().is_empty());
    assert!(builder.finish(&OutputTree::Value(stranger)).is_err());
}

/// Time to build, print, read, verify, rebuild and edit a chain of multiply-adds.
fn work(size: usize) -> Duration {
    let started = Instant::now();
    let (mut builder, inputs) = common::builder();
    let (x, table) = (inputs[0], inputs[4]);
    let name = Location::new("f.py", 1, "f");
    let mut y = x;
    for _ in 0..size {
        let scale = fhelium_ir::state::Scale::from_bits(40);
        let encode = none().with("level", 3i64).with("scale", scale);
        let row = none().with("axis", 0i64).with("index", 1i64);
        let row = builder
            .one(Tensor::Index, &[table], &row, Some(name.clone()))
            .unwrap();
        let p = builder
            .one(fhelium_ir::He::Encode, &[row], &encode, None)
            .unwrap();
        y = builder
            .one(fhelium_ir::He::Add, &[y, p], &none(), None)
            .unwrap();
    }
    let program = builder.finish(&OutputTree::Value(y)).unwrap();
    let read = Program::parse(&program.to_text()).unwrap();
    read.verify().unwrap();
    let mut editor = Editor::new(&common::copied(&read));
    for op in editor.ops() {
        if editor.op(op).unwrap().kind() == OpKind::from(Tensor::Index) {
            let rows = editor.op(op).unwrap().results()[0];
            let new = editor
                .insert(
                    Place::Before(op),
                    Tensor::Sum,
                    &[table],
                    &none().with("axes", vec![0i64]),
                    None,
                )
                .unwrap();
            editor.replace_uses(rows, new[0]).unwrap();
            editor.erase(op).unwrap();
        }
    }
    editor.finish().unwrap();
    started.elapsed()
}

/// Guards against quadratic time: 4000 multiply-adds, 12000 operations, in a second or two. Eight
/// times the size takes about 8 times as long; quadratic steps would take 64 times as long, and
/// the bound between leaves room for a busy machine.
#[test]
fn time_is_linear_in_the_number_of_operations() {
    work(100);
    let best = |size| (0..3).map(|_| work(size)).min().unwrap();
    let (small, large) = (best(500), best(4000));
    assert!(large < Duration::from_secs(10), "{large:?}");
    assert!(large < small * 28, "{small:?} for 500, {large:?} for 4000");
}

/// Source lines and notes can be taken away and put back, inside regions too, and nothing else
/// changes: what a Program means is told from its text without them.
#[test]
fn source_lines_and_notes_are_replaced_and_nothing_else() {
    let text = "program @f {
  material @w : !tensor<f64, [4]> \"captured at a.py:1 in f\"
  func (%x: !tensor<f64, [4]>) {
    %w = core.material {symbol = @w} : !tensor<f64, [4]> loc(\"a.py\":1 in f)
    %0 = tensor.add %x, %w : !tensor<f64, [4]> loc(\"a.py\":2 in f)
    %1 = tensor.neg %0 : !tensor<f64, [4]>
    return %1
  }
}";
    let program = Program::parse(text).unwrap();
    let bare = program
        .map_locations(&mut |_| None)
        .map_descriptions(&mut |_, _| "".into());
    assert!(!bare.to_text().contains("a.py"));
    assert_ne!(bare, program);
    let lines = std::cell::RefCell::new(vec![2, 1]);
    let marked = program.map_locations(&mut |_| {
        Some(Location::new(
            "b.py",
            lines.borrow_mut().pop().unwrap(),
            "g",
        ))
    });
    let back = marked
        .map_locations(&mut |line| Some(Location::new("a.py", line.line, "f")))
        .map_descriptions(&mut |_, note| note.into());
    assert_eq!(back, program);
    back.verify().unwrap();
}
