//! Bytes of values.

use fhelium_ir::{Basis, Type};
use fhelium_state::Chain;

/// Bytes of one residue.
const WORD: u64 = 8;

/// Bytes that a value of a type occupies while a Program runs, counts saturating.
///
/// Ciphertexts, plaintexts and residues hold one 64-bit word for each batch element, part, prime
/// and coefficient. A key's bytes depend on the digits of the parameters and are counted where
/// those are known: a key has 0 here, as has a value whose level no pass has decided.
pub fn value_bytes(ty: &Type, chain: Option<&Chain>) -> u64 {
    let elements = ty.batch().iter().fold(1u64, |product, &extent| {
        product.saturating_mul(extent as u64)
    });
    if let Type::Tensor { dtype, .. } = ty {
        return elements.saturating_mul(dtype.size() as u64);
    }
    let Some(chain) = chain else {
        return 0;
    };
    let polynomials = match ty {
        Type::Ciphertext {
            state: Some(state), ..
        } => state.parts * (state.level + 1),
        Type::Plaintext {
            state: Some(state), ..
        } => state.level + 1,
        Type::Residues { parts, basis, .. } => parts * limbs(*basis, chain),
        _ => 0,
    };
    elements
        .saturating_mul(polynomials as u64)
        .saturating_mul(chain.n() as u64)
        .saturating_mul(WORD)
}

/// The primes of a basis.
pub fn limbs(basis: Basis, chain: &Chain) -> usize {
    match basis {
        Basis::Q { level } => level + 1,
        Basis::QP { level } => level + 1 + chain.special_moduli().len(),
        Basis::Digit { start, end, .. } => end - start,
    }
}
