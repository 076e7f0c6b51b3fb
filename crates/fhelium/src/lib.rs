//! The crate that Rust programs embed: CKKS encrypted computing, compiled.
