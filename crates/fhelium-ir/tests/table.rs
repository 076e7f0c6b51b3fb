//! Every operation of the table, by its example.

use fhelium_ir::operations::{Count, EXAMPLE_HEADER, Presence, reference_markdown};
use fhelium_ir::{OpKind, PrintOptions, Program};
use std::collections::HashSet;

/// The Program of an entry's example, with a location on its operation.
fn example(kind: OpKind) -> Program {
    let text = kind.def().example;
    // The number of results is the table's business: name as many as it gives.
    for results in 1..=4 {
        let names: Vec<String> = (0..results).map(|result| format!("%{result}")).collect();
        let names = names.join(", ");
        let program = format!(
            "{EXAMPLE_HEADER}    {names} = {text} loc(\"model.py\":12 in <score>)\n    return \
             ({names},)\n  }}\n}}\n"
        );
        let program = program.replace("in <score>", "in \"<score>\"");
        match Program::parse(&program) {
            Ok(program) => return program,
            Err(error) if error.message.contains("are named") => {}
            Err(error) => panic!("{kind}: {error}\n{program}"),
        }
    }
    panic!("{kind}: the example gives more than 4 results");
}

/// Guards that a new entry's text form reads back equal, with and without its types.
#[test]
fn every_example_round_trips() {
    for kind in OpKind::all() {
        let program = example(kind);
        assert!(program.body().ops().iter().any(|op| op.kind() == kind));
        program.verify().unwrap();
        let text = program.to_text();
        assert_eq!(Program::parse(&text).unwrap(), program, "{kind}\n{text}");
        assert_eq!(Program::parse(&text).unwrap().to_text(), text);
        let short = program.to_text_with(PrintOptions {
            locations: true,
            types: false,
        });
        assert_eq!(Program::parse(&short).unwrap(), program, "{kind}\n{short}");
    }
}

/// Guards the comparison itself: a location is part of a Program and may be left out of its text.
#[test]
fn locations_are_kept_unless_left_out() {
    for kind in OpKind::all() {
        let program = example(kind);
        let bare = program.to_text_with(PrintOptions {
            locations: false,
            types: true,
        });
        assert!(!bare.contains("loc("));
        assert_ne!(Program::parse(&bare).unwrap(), program);
    }
}

/// Guards what the rest of the crate takes for granted of the table.
#[test]
fn the_table_is_well_formed() {
    let mut names = HashSet::new();
    for kind in OpKind::all() {
        let def = kind.def();
        assert!(names.insert(def.name), "{} is there twice", def.name);
        assert_eq!(OpKind::find(def.name), Some(kind));
        let dialect = def.name.split('.').next().unwrap();
        assert_eq!(dialect, def.dialect.name());
        assert!(def.doc.ends_with('.'), "{}: {}", def.name, def.doc);
        assert!(def.example.starts_with(def.name), "{}", def.name);
        for (place, spec) in def.operands.iter().enumerate() {
            assert!(
                spec.count == Count::One || place + 1 == def.operands.len(),
                "{}: only the last operand varies in number",
                def.name
            );
        }
        for spec in def.attributes {
            if let Some(value) = spec.default_value() {
                assert!(spec.kind.accepts(&value), "{}.{}", def.name, spec.name);
                assert_ne!(spec.presence, Presence::Required);
            }
        }
    }
    assert_eq!(OpKind::find("he.no_such"), None);
}

/// Guards that the reference page names every operation, operand and attribute.
#[test]
fn the_reference_page_shows_the_whole_table() {
    let page = reference_markdown();
    for kind in OpKind::all() {
        let def = kind.def();
        assert!(page.contains(&format!("### {}\n\n{}", def.name, def.doc)));
        assert!(page.contains(def.example));
        for spec in def.attributes {
            assert!(page.contains(&format!("- attribute `{}`, {}", spec.name, spec.kind)));
        }
    }
}

/// Guards that docs/operations.md is the table's; `BLESS=1` writes it.
#[test]
fn the_documentation_is_the_tables() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let page = reference_markdown();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    assert_eq!(written, page, "BLESS=1 writes docs/operations.md");
}

/// Guards that the documentation's example is in the printed form.
#[test]
fn the_documentations_program_is_as_printed() {
    let page = include_str!("../../../docs/ir.md");
    let example = page.split("```text\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    assert_eq!(Program::parse(example).unwrap().to_text(), example);
}
