//! RNS-CKKS: parameters, number-theoretic transforms, encoding, keys and the host kernels.

pub mod arith;
