//! The kernels of one prime and ring degree, behind one object that is chosen once.

use std::fmt;

use super::modulus::Modulus;

/// The kernels that [`Limb`](super::limb::Limb) calls after it checked the lengths.
pub(super) trait Kernels: fmt::Debug + Send + Sync {
    fn forward(&self, a: &mut [u64]);
    fn inverse(&self, a: &mut [u64]);
    fn forward_sub_mul(&self, a: &mut [u64], b: &[u64], w: u64);
    fn center_forward_sub_mul(&self, out: &mut [u64], src: &[u64], q: Modulus, b: &[u64], w: u64);
    fn add(&self, out: &mut [u64], a: &[u64], b: &[u64]);
    fn add_assign(&self, a: &mut [u64], b: &[u64]);
    fn sub(&self, out: &mut [u64], a: &[u64], b: &[u64]);
    fn sub_assign(&self, a: &mut [u64], b: &[u64]);
    fn sub_from_assign(&self, a: &mut [u64], b: &[u64]);
    fn neg_assign(&self, a: &mut [u64]);
    fn mul(&self, out: &mut [u64], a: &[u64], b: &[u64]);
    fn mul_assign(&self, a: &mut [u64], b: &[u64]);
    fn mul_add_assign(&self, acc: &mut [u64], a: &[u64], b: &[u64]);
    fn mul_scalar(&self, out: &mut [u64], a: &[u64], w: u64);
    fn mul_scalar_assign(&self, a: &mut [u64], w: u64);
    fn mul_scalar_add_assign(&self, acc: &mut [u64], a: &[u64], w: u64);
    fn add_scalar_assign(&self, a: &mut [u64], w: u64);
    fn sub_mul_scalar_assign(&self, a: &mut [u64], b: &[u64], w: u64);
    fn tensor(&self, c: [&mut [u64]; 3], a: [&[u64]; 2], b: [&[u64]; 2]);
    fn square_tensor(&self, c: [&mut [u64]; 3], a: [&[u64]; 2]);
    fn inner_product_pair(
        &self,
        out: [&mut [u64]; 2],
        digits: &[&[u64]],
        keys: [&[&[u64]]; 2],
        accumulate: bool,
    );
    fn reduce(&self, out: &mut [u64], src: &[u64], q: Modulus);
    fn round(&self, out: &mut [u64], src: &[f64], factor: f64);
    fn permute(&self, out: &mut [u64], src: &[u64], permutation: &[u32]);
}

/// Implements [`Kernels`] for a type that holds a `field` and a `transform`, with every kernel
/// compiled under the given attributes (`#[target_feature(...)]` for the vector cores).
///
/// # Safety
/// A value of the type may exist only on a CPU that has the features which the attributes name.
macro_rules! implement_kernels {
    ($(#[$features:meta])* $kernels:ty, $field:ty, $transform:ty, $width:literal) => {
        impl $crate::arith::kernels::Kernels for $kernels {
            $crate::arith::kernels::implement_kernels!(@transform $(#[$features])*, $transform;
                forward(a: &mut [u64]);
                inverse(a: &mut [u64]);
                forward_sub_mul(a: &mut [u64], b: &[u64], w: u64);
                center_forward_sub_mul(out: &mut [u64], src: &[u64],
                    q: $crate::arith::modulus::Modulus, b: &[u64], w: u64);
            );
            $crate::arith::kernels::implement_kernels!(@pointwise $(#[$features])*, $field, $width;
                add(out: &mut [u64], a: &[u64], b: &[u64]);
                add_assign(a: &mut [u64], b: &[u64]);
                sub(out: &mut [u64], a: &[u64], b: &[u64]);
                sub_assign(a: &mut [u64], b: &[u64]);
                sub_from_assign(a: &mut [u64], b: &[u64]);
                neg_assign(a: &mut [u64]);
                mul(out: &mut [u64], a: &[u64], b: &[u64]);
                mul_assign(a: &mut [u64], b: &[u64]);
                mul_add_assign(acc: &mut [u64], a: &[u64], b: &[u64]);
                mul_scalar(out: &mut [u64], a: &[u64], w: u64);
                mul_scalar_assign(a: &mut [u64], w: u64);
                mul_scalar_add_assign(acc: &mut [u64], a: &[u64], w: u64);
                add_scalar_assign(a: &mut [u64], w: u64);
                sub_mul_scalar_assign(a: &mut [u64], b: &[u64], w: u64);
                tensor(c: [&mut [u64]; 3], a: [&[u64]; 2], b: [&[u64]; 2]);
                square_tensor(c: [&mut [u64]; 3], a: [&[u64]; 2]);
                inner_product_pair(out: [&mut [u64]; 2], digits: &[&[u64]], keys: [&[&[u64]]; 2],
                    accumulate: bool);
                reduce(out: &mut [u64], src: &[u64], q: $crate::arith::modulus::Modulus);
                round(out: &mut [u64], src: &[f64], factor: f64);
                permute(out: &mut [u64], src: &[u64], permutation: &[u32]);
            );
        }
    };
    (@transform $(#[$features:meta])*, $transform:ty;
        $($method:ident($($name:ident: $type:ty),+);)+) => {
        $crate::arith::kernels::implement_kernels!(@each_transform [$(#[$features])*] $transform;
            $($method($($name: $type),+);)+);
    };
    (@each_transform $features:tt $transform:ty;
        $method:ident($($name:ident: $type:ty),+); $($rest:tt)*) => {
        $crate::arith::kernels::implement_kernels!(@one_transform $features $transform;
            $method($($name: $type),+));
        $crate::arith::kernels::implement_kernels!(@each_transform $features $transform; $($rest)*);
    };
    (@each_transform $features:tt $transform:ty;) => {};
    (@one_transform [$(#[$features:meta])*] $transform:ty;
        $method:ident($($name:ident: $type:ty),+)) => {
        fn $method(&self, $($name: $type),+) {
            $(#[$features])*
            unsafe fn run(transform: &$transform, $($name: $type),+) {
                transform.$method($($name),+)
            }
            // SAFETY: a value of this type exists only where the CPU has the features.
            unsafe { run(&self.transform, $($name),+) }
        }
    };
    (@pointwise $(#[$features:meta])*, $field:ty, $width:literal;
        $($method:ident($($name:ident: $type:ty),+);)+) => {
        $crate::arith::kernels::implement_kernels!(@each_pointwise [$(#[$features])*] $field, $width;
            $($method($($name: $type),+);)+);
    };
    (@each_pointwise $features:tt $field:ty, $width:literal;
        $method:ident($($name:ident: $type:ty),+); $($rest:tt)*) => {
        $crate::arith::kernels::implement_kernels!(@one_pointwise $features $field, $width;
            $method($($name: $type),+));
        $crate::arith::kernels::implement_kernels!(@each_pointwise $features $field, $width;
            $($rest)*);
    };
    (@each_pointwise $features:tt $field:ty, $width:literal;) => {};
    (@one_pointwise [$(#[$features:meta])*] $field:ty, $width:literal;
        $method:ident($($name:ident: $type:ty),+)) => {
        fn $method(&self, $($name: $type),+) {
            $(#[$features])*
            unsafe fn run(field: $field, $($name: $type),+) {
                $crate::arith::pointwise::$method::<$field, $width>(field, $($name),+)
            }
            // SAFETY: a value of this type exists only where the CPU has the features.
            unsafe { run(self.field, $($name),+) }
        }
    };
}
pub(super) use implement_kernels;
