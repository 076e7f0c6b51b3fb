//! File tests: `tests/text/*.fhe` holds texts and what reading them gives.
//!
//! A file is a series of cases; each is a text, a line `// gives`, and the printed Program or the
//! error. `BLESS=1 cargo test -p fhelium-ir --test text` writes what is given now.

use fhelium_ir::Program;
use std::fmt::Write;
use std::path::Path;

const GIVES: &str = "// gives\n";
const NEXT: &str = "// ----\n";

fn result(text: &str) -> String {
    match Program::parse(text) {
        Ok(program) => {
            program.verify().unwrap();
            assert_eq!(Program::parse(&program.to_text()).unwrap(), program);
            program.to_text()
        }
        Err(error) => format!("{:?}: {error}\n", error.kind),
    }
}

#[test]
fn texts_give_what_the_files_say() {
    let bless = std::env::var_os("BLESS").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/text");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let content = std::fs::read_to_string(&path).unwrap();
        let mut blessed = Vec::new();
        for case in content.split(NEXT) {
            let text = case.split(GIVES).next().unwrap();
            let mut case = text.to_owned();
            write!(case, "{GIVES}{}", result(text)).unwrap();
            blessed.push(case);
        }
        let blessed = blessed.join(NEXT);
        if bless {
            std::fs::write(&path, blessed).unwrap();
        } else {
            assert_eq!(content, blessed, "{}: BLESS=1 accepts this", path.display());
        }
        files += 1;
    }
    assert!(files > 0);
}
