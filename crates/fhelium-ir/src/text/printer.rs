//! Writing the text form.

use crate::types::List;
use crate::{Body, Literal, Op, OutputTree, Program, ValueId};
use fhelium_state::Chain;
use std::fmt::{self, Write};

/// What the text form shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// The source line of each operation: `loc("file":12 in f)`.
    pub locations: bool,
    /// The type of each result; the reader infers them where they are left out.
    pub types: bool,
}

impl Default for PrintOptions {
    /// Everything: the text reads back as an equal Program.
    fn default() -> Self {
        PrintOptions {
            locations: true,
            types: true,
        }
    }
}

/// Whether a name can be written without quotes.
fn is_bare(name: &str) -> bool {
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|other| other.is_ascii_alphanumeric() || matches!(other, '_' | '.' | '-'))
}

/// Writes a quoted string.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\t' => f.write_str("\\t")?,
                '\r' => f.write_str("\\r")?,
                // Other controls, and the separators that editors take for line ends.
                other if other.is_control() || matches!(other, '\u{2028}' | '\u{2029}') => {
                    write!(f, "\\u{{{:x}}}", other as u32)?;
                }
                other => f.write_char(other)?,
            }
        }
        f.write_char('"')
    }
}

/// Writes a name, in quotes where it needs them.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_bare(self.0) {
            f.write_str(self.0)
        } else {
            write!(f, "{}", Quoted(self.0))
        }
    }
}

/// Writes a symbol: `@name`.
pub(crate) struct Symbol<'a>(pub &'a str);

impl fmt::Display for Symbol<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", Name(self.0))
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::None => f.write_str("none"),
            Literal::Bool(value) => write!(f, "{value}"),
            Literal::Int(value) => write!(f, "{value}"),
            Literal::Float(value) => write!(f, "{value}"),
            Literal::Complex(real, imaginary) => write!(f, "complex({real}, {imaginary})"),
            Literal::Str(text) => write!(f, "{}", Quoted(text)),
        }
    }
}

impl Program {
    /// The text form, which [`Program::parse`] reads back as an equal Program.
    pub fn to_text(&self) -> String {
        self.to_text_with(PrintOptions::default())
    }

    /// The text form with parts left out.
    pub fn to_text_with(&self, options: PrintOptions) -> String {
        let mut printer = Printer {
            out: String::new(),
            options,
        };
        // Writing to a string cannot fail.
        let _ = printer.program(self);
        printer.out
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

/// How the values of a body are named.
struct Names<'a> {
    arguments: Vec<Name<'a>>,
}

impl Names<'_> {
    fn write(&self, out: &mut String, value: ValueId) -> fmt::Result {
        match self.arguments.get(value.index()) {
            Some(name) => write!(out, "%{name}"),
            None => write!(out, "%{}", value.index() - self.arguments.len()),
        }
    }

    fn write_all(&self, out: &mut String, values: &[ValueId]) -> fmt::Result {
        for (place, &value) in values.iter().enumerate() {
            if place > 0 {
                out.push_str(", ");
            }
            self.write(out, value)?;
        }
        Ok(())
    }
}

struct Printer {
    out: String,
    options: PrintOptions,
}

impl Printer {
    fn program(&mut self, program: &Program) -> fmt::Result {
        writeln!(self.out, "program {} {{", Symbol(program.name()))?;
        if let Some(chain) = program.chain() {
            self.chain(chain)?;
        }
        for (symbol, material) in program.materials() {
            write!(self.out, "  material {} : {}", Symbol(symbol), material.ty)?;
            if !material.description.is_empty() {
                write!(self.out, " {}", Quoted(&material.description))?;
            }
            self.out.push('\n');
        }
        self.out.push_str("  func (");
        for (place, input) in program.inputs().iter().enumerate() {
            let separator = if place > 0 { ", " } else { "" };
            write!(self.out, "{separator}%{}: {}", Name(&input.name), input.ty)?;
        }
        self.out.push_str(") {\n");
        let names = Names {
            arguments: program.inputs().iter().map(|i| Name(&i.name)).collect(),
        };
        self.ops(program.body(), &names, 2)?;
        self.out.push_str("    return ");
        self.tree(&program.output_values(), &names)?;
        self.out.push_str("\n  }\n}\n");
        Ok(())
    }

    fn chain(&mut self, chain: &Chain) -> fmt::Result {
        writeln!(
            self.out,
            "  chain {{ log_n = {}, scale = {}, moduli = {}, special = {} }}",
            chain.log_n(),
            chain.scale().exact(),
            List(chain.moduli()),
            List(chain.special_moduli())
        )
    }

    fn indent(&mut self, depth: usize) {
        for _ in 0..depth {
            self.out.push_str("  ");
        }
    }

    fn ops(&mut self, body: &Body, names: &Names<'_>, depth: usize) -> fmt::Result {
        for op in body.ops() {
            self.indent(depth);
            self.op(body, op, names, depth)?;
            self.out.push('\n');
        }
        Ok(())
    }

    fn op(&mut self, body: &Body, op: &Op, names: &Names<'_>, depth: usize) -> fmt::Result {
        if !op.results().is_empty() {
            names.write_all(&mut self.out, op.results())?;
            self.out.push_str(" = ");
        }
        self.out.push_str(op.kind().name());
        if let Some(region) = op.region() {
            self.out.push('(');
            names.write_all(&mut self.out, op.operands())?;
            self.out.push(')');
            self.region(region, depth)?;
        } else if !op.operands().is_empty() {
            self.out.push(' ');
            names.write_all(&mut self.out, op.operands())?;
        }
        self.attributes(op)?;
        if self.options.types {
            for (place, &result) in op.results().iter().enumerate() {
                let separator = if place > 0 { ", " } else { " : " };
                write!(self.out, "{separator}{}", body.type_of(result))?;
            }
        }
        if self.options.locations
            && let Some(location) = op.location()
        {
            write!(
                self.out,
                " loc({}:{}",
                Quoted(&location.file),
                location.line
            )?;
            if !location.function.is_empty() {
                write!(self.out, " in {}", Name(&location.function))?;
            }
            self.out.push(')');
        }
        Ok(())
    }

    /// Attributes, without those that have their default.
    fn attributes(&mut self, op: &Op) -> fmt::Result {
        let mut opened = false;
        for (name, value) in op.attributes().iter() {
            let spec = op.kind().def().attribute(name);
            if spec.and_then(|spec| spec.default_value()).as_ref() == Some(value) {
                continue;
            }
            let separator = if opened { ", " } else { " {" };
            write!(self.out, "{separator}{name} = {value}")?;
            opened = true;
        }
        if opened {
            self.out.push('}');
        }
        Ok(())
    }

    fn region(&mut self, region: &Body, depth: usize) -> fmt::Result {
        let arguments: Vec<String> = region
            .arguments()
            .map(|value| format!("in{}", value.index()))
            .collect();
        let names = Names {
            arguments: arguments.iter().map(|name| Name(name)).collect(),
        };
        self.out.push_str(" { (");
        let values: Vec<ValueId> = region.arguments().collect();
        names.write_all(&mut self.out, &values)?;
        self.out.push_str("):\n");
        self.ops(region, &names, depth + 1)?;
        self.indent(depth + 1);
        self.out.push_str("yield ");
        names.write_all(&mut self.out, region.results())?;
        self.out.push('\n');
        self.indent(depth);
        self.out.push('}');
        Ok(())
    }

    fn tree(&mut self, tree: &OutputTree<ValueId>, names: &Names<'_>) -> fmt::Result {
        match tree {
            OutputTree::Value(value) => names.write(&mut self.out, *value),
            OutputTree::Literal(literal) => write!(self.out, "{literal}"),
            OutputTree::Tuple(items) => {
                self.out.push('(');
                self.trees(items, names)?;
                // One item in parentheses is a tuple only with a comma.
                self.out.push_str(if items.len() == 1 { ",)" } else { ")" });
                Ok(())
            }
            OutputTree::List(items) => {
                self.out.push('[');
                self.trees(items, names)?;
                self.out.push(']');
                Ok(())
            }
            OutputTree::Dict(items) => {
                self.out.push('{');
                for (place, (key, item)) in items.iter().enumerate() {
                    let separator = if place > 0 { ", " } else { "" };
                    write!(self.out, "{separator}{key}: ")?;
                    self.tree(item, names)?;
                }
                self.out.push('}');
                Ok(())
            }
        }
    }

    fn trees(&mut self, items: &[OutputTree<ValueId>], names: &Names<'_>) -> fmt::Result {
        for (place, item) in items.iter().enumerate() {
            if place > 0 {
                self.out.push_str(", ");
            }
            self.tree(item, names)?;
        }
        Ok(())
    }
}
