//! What the tests over random Programs share; each test binary uses some of it.

#![allow(dead_code)]

pub mod batches;
pub mod interpreter;
pub mod messages;
pub mod programs;
pub mod residues;
