//! The text form: printer and reader. `docs/ir.md` has the grammar.

mod lexer;
mod parser;
mod printer;
mod tree;
mod values;

pub use printer::PrintOptions;
pub(crate) use printer::Symbol;
