//! What the tests over random Programs share.

pub mod interpreter;
pub mod programs;
