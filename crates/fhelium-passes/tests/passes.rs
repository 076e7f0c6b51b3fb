//! File tests: `tests/passes/<pass>/<case>.fhe` holds a Program and what the pass makes of it.
//!
//! A case is a Program, perhaps a line `// options: name = number`, a line `// gives`, and then the
//! pass's report as comments, followed by the new Program, `unchanged`, the plan, or the error. A
//! case of `pipeline` goes through all of the default pipeline. `BLESS=1 cargo test -p
//! fhelium-passes --test passes` writes what is given now.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use fhelium_ir::Program;
use fhelium_passes::analysis::{costs, requirements};
use fhelium_passes::passes::{
    BufferPlanning, ConstantEncodings, DeadValues, LinearFusion, LowerToCkks, LowerToRns,
    RescaleJoining, Reuse, RotationHoisting, RouteSelection,
};
use fhelium_passes::plan::Lifetime;
use fhelium_passes::{Compilation, Dump, PassReport, Pipeline, default_pipeline};

const GIVES: &str = "// gives\n";

fn pipeline(pass: &str, options: &BTreeMap<&str, u64>) -> Pipeline {
    let option = |name: &str| options.get(name).copied();
    let made = match pass {
        "dead-values" => Pipeline::from_passes(DeadValues),
        "reuse" => Pipeline::from_passes(Reuse),
        "lower-to-ckks" => Pipeline::from_passes(LowerToCkks),
        "rescale-joining" => Pipeline::from_passes(RescaleJoining),
        "lower-to-rns" => Pipeline::from_passes(LowerToRns::default()),
        "rotation-hoisting" => Pipeline::from_passes(RotationHoisting {
            max_group_size: option("max_group_size").map_or(16, |size| size as usize),
        }),
        "linear-fusion" => Pipeline::from_passes(LinearFusion {
            max_operands: option("max_operands").map_or(64, |most| most as usize),
            ..LinearFusion::default()
        }),
        "constant-encodings" => Pipeline::from_passes(ConstantEncodings {
            max_resident_bytes: option("max_resident_bytes").unwrap_or(1 << 30),
        }),
        "route-selection" => Pipeline::from_passes(RouteSelection::default()),
        "buffer-planning" => {
            Pipeline::from_passes(ConstantEncodings::default()).and_then(|p| p.then(BufferPlanning))
        }
        "pipeline" => Ok(default_pipeline()),
        "requirements" | "costs" => Ok(Pipeline::new()),
        other => panic!("no pass is tested in a folder named {other}"),
    };
    made.unwrap()
}

fn options(text: &str) -> BTreeMap<&str, u64> {
    let lines = text.lines().filter_map(|l| l.strip_prefix("// options:"));
    let pairs = lines.flat_map(|line| line.split(','));
    let pairs = pairs.map(|pair| pair.split_once('=').expect("name = number"));
    pairs
        .map(|(name, number)| (name.trim(), number.trim().parse().expect("a number")))
        .collect()
}

fn given(pass: &str, text: &str) -> String {
    let program = match Program::parse(text) {
        Ok(program) => program,
        Err(error) => return format!("no Program: {error}\n"),
    };
    let compiled = match pipeline(pass, &options(text)).run_with(program.clone(), &Dump::Off) {
        Ok(compiled) => compiled,
        Err(error) => return format!("{:?}: {error}\n", error.kind()),
    };
    let mut out = String::new();
    for report in compiled.reports() {
        write_report(&mut out, report);
    }
    let printed = compiled.program().to_text();
    let again = Program::parse(&printed).unwrap();
    assert_eq!(&again, compiled.program(), "the text form loses something");
    match pass {
        "requirements" => writeln!(out, "{}", requirements(&program)).unwrap(),
        "costs" => {
            let costs = costs(&program);
            for (name, (count, cost)) in &costs.operations {
                writeln!(out, "{count} x {name}: {cost:?}").unwrap();
            }
            writeln!(out, "total: {:?}", costs.total).unwrap();
        }
        _ if compiled.program() == &program => out.push_str("unchanged\n"),
        _ => out.push_str(&printed),
    }
    write_plans(&mut out, &compiled);
    out
}

fn write_report(out: &mut String, report: &PassReport) {
    writeln!(out, "// {}: {}", report.name, report.result.stats).unwrap();
    for diagnostic in &report.result.diagnostics {
        writeln!(out, "//   {diagnostic}").unwrap();
    }
    for decision in &report.result.decisions {
        let (subject, selected) = (&decision.subject, &decision.selected);
        write!(out, "//   {subject}: {selected}").unwrap();
        if !decision.candidates.is_empty() {
            write!(out, " of [{}]", decision.candidates.join(", ")).unwrap();
        }
        writeln!(out, ", {}", decision.details).unwrap();
    }
}

/// Writes the plans with values numbered as in the text.
fn write_plans(out: &mut String, compiled: &Compilation) {
    let inputs = compiled.program().inputs().len();
    let name = |index: usize| match compiled.program().inputs().get(index) {
        Some(input) => format!("%{}", input.name),
        None => format!("%{}", index - inputs),
    };
    if let Some(prologue) = &compiled.plans().prologue {
        let boundary: Vec<_> = prologue.boundary.iter().map(|v| name(v.index())).collect();
        let (operations, bytes) = (&prologue.operations, prologue.resident_bytes);
        writeln!(
            out,
            "prologue: operations {operations:?} give [{}], {bytes} bytes",
            boundary.join(", ")
        )
        .unwrap();
    }
    if let Some(plan) = &compiled.plans().buffers {
        for (index, value) in plan.values.iter().enumerate() {
            if value.lifetime == Lifetime::Resident {
                continue;
            }
            let (bytes, lifetime) = (value.bytes, value.lifetime);
            write!(out, "{}: {bytes} bytes, {lifetime:?}", name(index)).unwrap();
            if let Some(slot) = value.slot {
                write!(out, ", buffer {slot}").unwrap();
            }
            out.push('\n');
        }
    }
}

#[test]
fn passes_give_what_the_files_say() {
    let bless = std::env::var_os("BLESS").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passes");
    let mut wrong = String::new();
    let mut cases = 0;
    for pass in std::fs::read_dir(folder).unwrap() {
        let pass = pass.unwrap().path();
        let pass_name = pass.file_name().unwrap().to_str().unwrap();
        for case in std::fs::read_dir(&pass).unwrap() {
            let path = case.unwrap().path();
            let content = std::fs::read_to_string(&path).unwrap();
            let text = content.split(GIVES).next().unwrap();
            let now = format!("{text}{GIVES}{}", given(pass_name, text));
            if bless {
                std::fs::write(&path, now).unwrap();
            } else if now != content {
                writeln!(wrong, "{}:\n{now}", path.display()).unwrap();
            }
            cases += 1;
        }
    }
    assert!(wrong.is_empty(), "BLESS=1 accepts this:\n{wrong}");
    assert!(cases > 0);
}
