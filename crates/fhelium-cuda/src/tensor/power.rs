//! Powers.

use super::Tensor;
use super::elementwise::Choice;
use crate::context::Context;
use crate::error::{CudaError, Result};
use crate::kernels::{Elements, TensorKernel, pieces};
use fhelium_ir::{DType, negative_power};

impl Context {
    /// `base ** exponent` in `dtype`; wrapping of integers.
    ///
    /// # Errors
    /// [`CudaError::Tensor`] for an integer raised to a negative one; in a capture, where data cannot
    /// be looked at, [`CudaError::Capture`] for an integer raised to anything but a constant.
    pub(super) fn power(
        &self,
        name: &'static str,
        base: &Tensor,
        exponent: &Tensor,
        dtype: DType,
        shape: &[usize],
    ) -> Result<Tensor> {
        let alone = exponent.ndim() == 0;
        let base = self.cast(name, base, dtype)?;
        let exponent = self.cast(name, exponent, dtype)?;
        if dtype.is_integer() {
            self.check_exponents(name, &exponent)?;
        }
        let choice = Choice {
            operation: 0,
            detail: u32::from(alone),
        };
        let kernel = TensorKernel::Power(dtype);
        // SAFETY: both operands were cast to the kernel's type.
        unsafe { self.elementwise::<2, 3>(name, kernel, choice, [&base, &exponent], dtype, shape) }
    }

    /// Refuses integers that are negative, naming the first.
    fn check_exponents(&self, name: &'static str, exponent: &Tensor) -> Result<()> {
        let refused = |value: i64| CudaError::Tensor {
            operation: name,
            error: negative_power(value),
        };
        if let Some(value) = exponent.constant {
            return if value < 0 {
                Err(refused(value))
            } else {
                Ok(())
            };
        }
        let _turn = self.queue().lock()?;
        if self.queue().is_capturing() {
            return Err(CudaError::Capture {
                operation: name,
                remedy: "the exponents' signs decide; raise to a constant, or cast the base to a float",
            });
        }
        let joined = self.join(name, &[("exponent", &exponent.data)])?;
        let found = self.queue().upload(&[0])?;
        let strides = [exponent.strides(), &vec![0; exponent.ndim()]];
        let bytes = exponent.dtype.size() as i64;
        pieces(exponent.shape(), strides, [0; 2], &mut |piece, places| {
            let arguments = Elements::<1, 2> {
                operands: [exponent.address().wrapping_add_signed(places[0] * bytes)],
                target: found.address(),
                operation: 0,
                detail: 0,
                shape: *piece,
            };
            let kernel = TensorKernel::AnyNegative(exponent.dtype);
            // SAFETY: the kernel reads the exponents and writes the one word of `found`.
            unsafe {
                self.tensor_kernels()
                    .launch(self.queue(), kernel, piece.grid(), 0, &arguments)
            }
        })?;
        let found = self.queue().download(&found)?;
        joined.leave()?;
        if found == [0] {
            return Ok(());
        }
        let wide = self.cast(name, exponent, DType::I64)?;
        let all = self.download_tensor(&wide)?;
        let values = all
            .as_chunks::<8>()
            .0
            .iter()
            .map(|bytes| i64::from_ne_bytes(*bytes));
        let negative = values.into_iter().find(|&value| value < 0);
        Err(refused(negative.unwrap_or(-1)))
    }
}
