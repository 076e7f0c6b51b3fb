//! The 64-bit integer core: every prime below 2^61, every CPU, and the reference for the others.

mod field;
pub(super) mod ntt;

pub(super) use field::ScalarField;

use super::error::ArithError;
use super::kernels::implement_kernels;
use super::modulus::Modulus;
use ntt::ScalarTransform;

/// The scalar kernels of one prime and ring degree.
#[derive(Debug)]
pub(super) struct ScalarKernels {
    field: ScalarField,
    transform: ScalarTransform,
}

impl ScalarKernels {
    pub fn new(n: usize, modulus: Modulus) -> Result<Self, ArithError> {
        Ok(Self {
            field: ScalarField { modulus },
            transform: ScalarTransform::new(n, modulus)?,
        })
    }
}

implement_kernels!(ScalarKernels, ScalarField, ScalarTransform, 1);
