//! Work of both sides in one order.

use crate::error::{CustError, Result};
use cust::stream::Stream;
use cust::sys::{self, CUstream};
use fhelium_cuda::{Context, CudaError};
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, align_of, size_of};
use std::ops::Deref;

/// Runs `work` after all that `stream` and `context` hold so far, and before what comes next in
/// either: fhelium's operations of `context` go to `stream` for that long, beside whatever the
/// embedder launches on it.
///
/// # Errors
/// What `work` returns; [`CustError::OtherStream`], and those of
/// [`Queue::on_stream`](fhelium_cuda::Queue::on_stream).
pub fn on_stream<R, E: From<CustError> + From<CudaError>>(
    context: &Context,
    stream: &Stream,
    work: impl FnOnce() -> Result<R, E>,
) -> Result<R, E> {
    check(context, stream)?;
    // SAFETY: the stream lives for the call, and was just seen to be the primary context's.
    unsafe { context.queue().on_stream(stream.as_inner() as usize, work) }
}

fn check(context: &Context, stream: &Stream) -> Result<()> {
    let mut found = std::ptr::null_mut();
    // SAFETY: the stream is live, and the pointer is to a live handle.
    let status = unsafe { sys::cuStreamGetCtx(stream.as_inner(), &mut found) };
    if status != sys::cudaError_enum::CUDA_SUCCESS {
        return Err(CustError::Cust {
            call: "asking for a stream's context",
            reason: format!("{status:?}"),
        });
    }
    let expected = context.device().primary_context();
    if found as usize != expected {
        return Err(CustError::OtherStream {
            device: context.device().to_string(),
            found: found as usize,
            expected,
        });
    }
    Ok(())
}

/// fhelium's own stream as a cust one, for as long as the context is borrowed. What is launched on
/// it runs after fhelium's operations so far and before the next.
pub struct LentStream<'a> {
    stream: ManuallyDrop<Stream>,
    context: PhantomData<&'a Context>,
}

/// Lends the stream that `context` works on.
///
/// Nothing may be launched on it while another thread records or captures with that context.
pub fn lend_stream(context: &Context) -> LentStream<'_> {
    let handle: CUstream = context.queue().stream().cu_stream().cast();
    // A cust stream is its handle: it has this one field, and so its layout.
    const { assert!(size_of::<Stream>() == size_of::<CUstream>()) };
    const { assert!(align_of::<Stream>() == align_of::<CUstream>()) };
    // SAFETY: the layouts are equal, and the handle is a live stream for the borrow; it is not
    // destroyed here, since the `Stream` is never dropped.
    let stream = unsafe { std::mem::transmute::<CUstream, Stream>(handle) };
    LentStream {
        stream: ManuallyDrop::new(stream),
        context: PhantomData,
    }
}

impl Deref for LentStream<'_> {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        &self.stream
    }
}
