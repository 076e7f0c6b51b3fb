//! Memory of either side in the other's types.

use crate::error::{CustError, Result};
use cust::memory::{DeviceBuffer, DevicePointer, DeviceSlice};
use cust::sys;
use fhelium_cuda::{Buffer, Context, Queue};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A fhelium buffer as a cust slice.
pub struct View<'a> {
    slice: DeviceSlice<u64>,
    buffer: PhantomData<&'a Buffer>,
}

/// A fhelium buffer as a cust slice that may be written.
pub struct ViewMut<'a> {
    slice: DeviceSlice<u64>,
    buffer: PhantomData<&'a mut Buffer>,
}

/// Shows the residues of a value, in its layout.
///
/// Read them within [`on_stream`](crate::on_stream) or on a [lent](crate::lend_stream) stream; other
/// streams know nothing of the buffer's order. The slice is `Copy`, as cust's are: a copy must not
/// be used beyond the view.
pub fn view(buffer: &Buffer) -> View<'_> {
    View {
        slice: slice(buffer),
        buffer: PhantomData,
    }
}

/// Shows memory that is still to become a value, such as
/// [`Queue::allocate`](fhelium_cuda::Queue::allocate) gives. The rules are those of [`view`].
pub fn view_mut(buffer: &mut Buffer) -> ViewMut<'_> {
    ViewMut {
        slice: slice(buffer),
        buffer: PhantomData,
    }
}

fn slice(buffer: &Buffer) -> DeviceSlice<u64> {
    let pointer = DevicePointer::from_raw(buffer.address());
    // SAFETY: the buffer holds as many words, and outlives the views, which have its lifetime.
    unsafe { DeviceSlice::from_raw_parts(pointer, buffer.words()) }
}

impl Deref for View<'_> {
    type Target = DeviceSlice<u64>;

    fn deref(&self) -> &DeviceSlice<u64> {
        &self.slice
    }
}

impl Deref for ViewMut<'_> {
    type Target = DeviceSlice<u64>;

    fn deref(&self) -> &DeviceSlice<u64> {
        &self.slice
    }
}

impl DerefMut for ViewMut<'_> {
    fn deref_mut(&mut self) -> &mut DeviceSlice<u64> {
        &mut self.slice
    }
}

/// Lends a cust buffer to fhelium, for instance as the residues of
/// [`Ciphertext::from_buffer`](fhelium_cuda::Ciphertext::from_buffer). Nothing is copied.
///
/// fhelium reads it in the order of `context`: what fills it must have run, or be ordered before by
/// [`on_stream`](crate::on_stream). It goes back to cust when nothing of fhelium uses it any more;
/// letting go of the last such use waits for the device.
///
/// # Errors
/// [`CustError::OtherMemory`] for memory of another context or device.
pub fn borrow(context: &Context, memory: Arc<DeviceBuffer<u64>>) -> Result<Buffer> {
    let address = memory.as_device_ptr().as_raw();
    let words = memory.len();
    if words > 0 {
        check(context, address)?;
    }
    let keeper = Keeper {
        queue: context.queue().clone(),
        memory: Some(memory),
    };
    // SAFETY: the memory holds as many words and is alive for as long as the keeper.
    Ok(unsafe { context.queue().borrow(address, words, Box::new(keeper)) })
}

/// Holds a cust buffer until the queue's last use of it has run.
struct Keeper {
    queue: Arc<Queue>,
    memory: Option<Arc<DeviceBuffer<u64>>>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if self.queue.synchronize().is_err() {
            // Its last use may not have run, and never tells: the memory is left to the driver.
            std::mem::forget(self.memory.take());
        }
    }
}

fn check(context: &Context, address: u64) -> Result<()> {
    let device = context.device();
    let mut found = std::ptr::null_mut::<()>();
    let mut ordinal = -1i32;
    // SAFETY: the driver refuses addresses that are none; the results are a handle and an int.
    let (asked, placed) = unsafe {
        (
            sys::cuPointerGetAttribute(
                (&raw mut found).cast(),
                sys::CUpointer_attribute_enum::CU_POINTER_ATTRIBUTE_CONTEXT,
                address,
            ),
            sys::cuPointerGetAttribute(
                (&raw mut ordinal).cast(),
                sys::CUpointer_attribute_enum::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                address,
            ),
        )
    };
    let success = sys::cudaError_enum::CUDA_SUCCESS;
    // Memory of the driver's pools belongs to a device and to no context.
    let same_context =
        asked != success || found.is_null() || found as usize == device.primary_context();
    if placed == success && ordinal as usize == device.index() && same_context {
        return Ok(());
    }
    Err(CustError::OtherMemory {
        device: device.to_string(),
        address,
        found: found as usize,
        ordinal,
    })
}
