//! One context for both sides.

use crate::error::{CustError, Result};
use cust::context::ContextHandle;
use fhelium_cuda::Device;
use std::sync::Arc;

/// Opens device `index` for fhelium beside an embedder's cust context of that device.
///
/// The context stays the embedder's, and current on this thread; fhelium retains the primary
/// context on its own account, so either side may let go first.
///
/// # Errors
/// [`CustError::NotPrimary`] for any other context, and those of [`Device::open`].
pub fn adopt(context: &impl ContextHandle, index: usize) -> Result<Arc<Device>> {
    let device = Device::open(index)?;
    let found = context.get_inner() as usize;
    let expected = device.primary_context();
    if found != expected {
        return Err(CustError::NotPrimary {
            device: device.to_string(),
            found,
            expected,
        });
    }
    Ok(device)
}
