//! fhelium's GPU side in programs that hold [`cust`] contexts, streams and memory.
//!
//! Both sides work in the device's primary context, so nothing is copied between them:
//!
//! - [`adopt`] opens the [`Device`](fhelium_cuda::Device) of a cust context;
//! - [`on_stream`] runs fhelium's operations, or the embedder's launches, in the order of both a
//!   cust stream and a fhelium [`Context`](fhelium_cuda::Context), and [`lend_stream`] lends
//!   fhelium's own stream as a cust one;
//! - [`view`] and [`view_mut`] show a fhelium [`Buffer`](fhelium_cuda::Buffer) as a cust slice, and
//!   [`borrow`] lends a cust buffer to fhelium as an operand.
//!
//! Each side frees only its own: a view ends with the buffer's borrow, a lent stream is not
//! destroyed, a borrowed cust buffer goes back to cust when fhelium's last use of it has run.
//!
//! cust links libcuda. So this crate stands apart: nothing of fhelium depends on it, and a program
//! with it starts only where a driver is installed.
//!
//! `examples/cust_interop.rs` adds two ciphertexts by a kernel of its own on a cust stream.

mod device;
mod error;
mod memory;
mod stream;

pub use device::adopt;
pub use error::{CustError, Result};
pub use memory::{View, ViewMut, borrow, view, view_mut};
pub use stream::{LentStream, lend_stream, on_stream};
