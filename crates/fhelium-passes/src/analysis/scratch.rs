//! Memory that operations work in.

use fhelium_ir::{Body, Ckks, Op, OpKind};
use fhelium_state::Chain;

use super::costs::Shape;

/// Bytes that the host's kernel of an operation uses beside operands and results, at the most at
/// one time, on one thread: each other thread adds two limbs to a key switch.
///
/// Batch elements come one after the other in a key switch, and together in a rescale.
pub fn scratch_bytes(op: &Op, body: &Body, chain: Option<&Chain>) -> u64 {
    let (OpKind::Ckks(operation), Some(chain)) = (op.kind(), chain) else {
        return 0;
    };
    let mut shapes = op.operands().iter();
    let Some(operand) = shapes.find_map(|&value| Shape::of(body, value, chain)) else {
        return 0;
    };
    let limbs = operand.limbs;
    let special = chain.special_moduli().len() as u64;
    // A chain that allows no key switch has none to run.
    let digits = limbs.div_ceil(chain.digit_size().unwrap_or(1) as u64);
    // While a polynomial is cut into digits, its coefficients are there too.
    let decomposed = digits * (limbs + special);
    // Afterwards both sums are, by the special primes and in the limb at hand.
    let switched = decomposed - limbs + 2 * special + 2;
    let rescaled = switched + 2 + 2 + 1;
    let product = 3 * limbs;
    let used = match operation {
        Ckks::Rotate | Ckks::RotateHoisted | Ckks::Conjugate => switched + 2 * limbs,
        Ckks::Relinearize => decomposed.max(switched),
        Ckks::MulRelin | Ckks::SquareRelin => product + decomposed.max(switched),
        Ckks::RelinearizeRescale => decomposed.max(rescaled),
        Ckks::MulRelinRescale | Ckks::SquareRelinRescale => product + decomposed.max(rescaled),
        Ckks::Rescale => operand.parts.saturating_mul(operand.batch),
        _ => 0,
    };
    used.saturating_mul(chain.n() as u64 * size_of::<u64>() as u64)
}
