//! The text form.

mod printer;

pub use printer::PrintOptions;
pub(crate) use printer::Symbol;
