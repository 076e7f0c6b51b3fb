//! The reference page, printed from the table.

use super::{Count, Dialect, Effect, OpDef, OpKind, Presence};
use std::fmt::Write;

/// The start of a Program that declares the inputs and the material of the table's examples.
///
/// An example becomes a Program by a header, `%out = EXAMPLE`, `return %out` and two closing
/// braces.
pub const EXAMPLE_HEADER: &str = "\
program @example {
  chain {
    log_n = 12, scale = 2^40,
    moduli = [562949953216513, 1099511480321, 1099511922689, 1099510890497],
    special = [562949952798721, 562949952847873]
  }
  material @weights : !tensor<f64, [4, 8]> \"weights of a layer\"
  func (
    %a: !ciphertext<[2], level=3, scale=2^40, parts=2>,
    %b: !ciphertext<[], level=3, scale=2^40, parts=2>,
    %product: !ciphertext<[], level=3, scale=2^80, parts=3>,
    %p: !plaintext<[2], level=3, scale=2^40>,
    %t: !tensor<f64, [4, 8]>,
    %row: !tensor<f64, [8]>,
    %vector: !tensor<f64, [8]>,
    %mask: !tensor<bool, [8]>,
    %z: !tensor<c128, [8]>,
    %relinearization: !key<relinearization>,
    %rotation: !key<rotation 5>,
    %conjugation: !key<conjugation>,
    %r: !residues<[2], parts=2, basis=Q(3), domain=ntt>,
    %s: !residues<[], parts=1, basis=Q(3), domain=ntt>,
    %c: !residues<[], parts=1, basis=Q(3), domain=coefficient>,
    %digit: !residues<[], parts=1, basis=digit(3, 2, 4), domain=coefficient>,
    %lifted: !residues<[], parts=1, basis=QP(3), domain=ntt>
  ) {
";

fn dialect_intro(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Core => "References to data that the Program names. They serve every level.",
        Dialect::Tensor => {
            "Clear arrays, by numpy's rules for shapes and element types. They serve every level."
        }
        Dialect::He => {
            "What the user wrote. Levels and scales may be left open for a pass to decide."
        }
        Dialect::Ckks => "Keys, levels and scales are explicit.",
        Dialect::Rns => "Residue polynomials; the level at which operations fuse.",
    }
}

/// The reference page of all operations, in Markdown.
pub fn reference_markdown() -> String {
    let mut page = String::from(
        "# Operations\n\nPrinted from the operation table. The examples read the values that this \
         Program declares:\n\n",
    );
    let _ = writeln!(page, "```text\n{EXAMPLE_HEADER}```");
    let mut dialect = None;
    for kind in OpKind::all() {
        let def = kind.def();
        if dialect != Some(def.dialect) {
            dialect = Some(def.dialect);
            let name = def.dialect.name();
            let _ = writeln!(page, "\n## {name}\n\n{}", dialect_intro(def.dialect));
        }
        entry(&mut page, def);
    }
    page
}

fn entry(page: &mut String, def: &OpDef) {
    let _ = writeln!(page, "\n### {}\n\n{}\n", def.name, def.doc);
    for spec in def.operands {
        let count = match spec.count {
            Count::One => "",
            Count::Optional => " (may be left out)",
            Count::Many => " (any number)",
        };
        let _ = writeln!(page, "- operand `{}`: {}{count}", spec.name, spec.kind);
    }
    for spec in def.attributes {
        let presence = match spec.presence {
            Presence::Required => "",
            Presence::Optional => " (may be left out)",
            Presence::DefaultFalse => " (default: false)",
            Presence::DefaultEmpty => " (default: none)",
        };
        let _ = writeln!(
            page,
            "- attribute `{}`, {}: {}{presence}",
            spec.name, spec.kind, spec.doc
        );
    }
    if def.has_region {
        let _ = writeln!(page, "- a region");
    }
    let _ = writeln!(page, "- gives {}", def.results);
    if def.effect == Effect::Reads {
        let _ = writeln!(page, "- reads data that may change between calls");
    }
    let _ = writeln!(page, "\n```text\n{}\n```", def.example);
}
