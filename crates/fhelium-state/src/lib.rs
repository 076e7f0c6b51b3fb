//! Exact scales, the modulus chain and the level and scale rules that every CKKS operation follows.
