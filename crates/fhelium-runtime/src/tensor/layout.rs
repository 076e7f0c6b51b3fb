//! How much memory a tensor may take.

use super::TensorError;
use fhelium_ir::DType;

/// Results larger than this are refused with an error where the allocator would end the process.
const PROBE_BYTES: usize = 1 << 28;

/// Refuses a result that memory cannot hold, before anything is allocated for it.
pub(super) fn check_size(
    operation: &'static str,
    shape: &[usize],
    dtype: DType,
) -> Result<(), TensorError> {
    let refused = || TensorError::OutOfMemory {
        operation,
        shape: shape.to_vec(),
        dtype,
    };
    // ndarray wants the product of the non-zero lengths to be addressable even where another
    // length is 0.
    let bytes = shape
        .iter()
        .filter(|&&length| length != 0)
        .try_fold(dtype.size(), |bytes, &length| bytes.checked_mul(length))
        .filter(|&bytes| bytes <= isize::MAX as usize)
        .ok_or_else(refused)?;
    if bytes > PROBE_BYTES && !shape.contains(&0) {
        Vec::<u8>::new()
            .try_reserve_exact(bytes)
            .map_err(|_| refused())?;
    }
    Ok(())
}
