//! Operations that are one residue operation, element by element.

use fhelium_ir::{Ckks, Rns};

/// The operation on residues that an elementwise operation on ciphertexts and plaintexts is, with
/// the same attributes and with operands in the same order, at the result's level but for
/// `rns.drop_limbs`'; `None` for one that takes several.
pub(crate) fn residue_operation(kind: Ckks) -> Option<Rns> {
    match kind {
        Ckks::Add | Ckks::AddPlain => Some(Rns::Add),
        Ckks::Sub | Ckks::SubPlain | Ckks::PlainSub => Some(Rns::Sub),
        Ckks::MulPlain => Some(Rns::Mul),
        Ckks::MulInteger => Some(Rns::MulInteger),
        Ckks::Neg => Some(Rns::Neg),
        Ckks::DropLevels => Some(Rns::DropLimbs),
        _ => None,
    }
}
