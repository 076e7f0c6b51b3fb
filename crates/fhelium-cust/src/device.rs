//! One context for both sides.

use crate::error::{CustError, Result};
use cust::context::{ContextHandle, CurrentContext};
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
    let device = Device::open(index);
    // Opening made the primary context current.
    let found = context.get_inner();
    let restored = CurrentContext::set_current(context);
    let device = device?;
    restored.map_err(|error| CustError::Cust {
        call: "making the cust context current",
        reason: format!("{error:?}"),
    })?;
    let expected = device.primary_context();
    if found as usize != expected {
        return Err(CustError::NotPrimary {
            device: device.to_string(),
            found: found as usize,
            expected,
        });
    }
    Ok(device)
}
