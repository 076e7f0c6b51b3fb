//! Conversions between element types.

use super::Tensor;
use super::element::{Element, for_any, with_type};
use super::elementwise::map;
use fhelium_ir::DType;
use ndarray::{ArcArray, IxDyn};
use num_complex::Complex;

/// One element in each element type, as numpy's `astype` gives it.
///
/// A complex number loses its imaginary part. A float becomes an integer by truncation; one that
/// no integer of the type holds, and NaN, becomes the least integer, as on every x86 processor.
pub(super) trait Convert: Sized {
    fn to_bool(self) -> bool;
    fn to_i32(self) -> i32;
    fn to_i64(self) -> i64;
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    fn to_c64(self) -> Complex<f32>;
    fn to_c128(self) -> Complex<f64>;
    /// From any other element type; the receiver's own method of those above.
    fn from_element<S: Convert>(source: S) -> Self;
}

macro_rules! truncate {
    ($name:ident, $float:ty, $int:ty) => {
        fn $name(value: $float) -> $int {
            // Both bounds are powers of two, hence exact; NaN fails both comparisons.
            let whole = value.trunc();
            if whole >= <$int>::MIN as $float && whole < -(<$int>::MIN as $float) {
                whole as $int
            } else {
                <$int>::MIN
            }
        }
    };
}

truncate!(i32_from_f32, f32, i32);
truncate!(i32_from_f64, f64, i32);
truncate!(i64_from_f32, f32, i64);
truncate!(i64_from_f64, f64, i64);

macro_rules! convert {
    (@from $into:ident) => {
        fn from_element<S: Convert>(source: S) -> Self {
            source.$into()
        }
    };
    ($type:ty, $into:ident, $x:ident, bool: $bool:expr, i32: $i32:expr, i64: $i64:expr,
     f32: $f32:expr, f64: $f64:expr) => {
        impl Convert for $type {
            fn to_bool(self) -> bool { let $x = self; $bool }
            fn to_i32(self) -> i32 { let $x = self; $i32 }
            fn to_i64(self) -> i64 { let $x = self; $i64 }
            fn to_f32(self) -> f32 { let $x = self; $f32 }
            fn to_f64(self) -> f64 { let $x = self; $f64 }
            fn to_c64(self) -> Complex<f32> { Complex::new(self.to_f32(), 0.0) }
            fn to_c128(self) -> Complex<f64> { Complex::new(self.to_f64(), 0.0) }
            convert!(@from $into);
        }
    };
}

convert!(bool, to_bool, x, bool: x, i32: i32::from(x), i64: i64::from(x),
    f32: f32::from(u8::from(x)), f64: f64::from(u8::from(x)));
convert!(i32, to_i32, x, bool: x != 0, i32: x, i64: i64::from(x), f32: x as f32, f64: f64::from(x));
convert!(i64, to_i64, x, bool: x != 0, i32: x as i32, i64: x, f32: x as f32, f64: x as f64);
convert!(f32, to_f32, x, bool: x != 0.0, i32: i32_from_f32(x), i64: i64_from_f32(x),
    f32: x, f64: f64::from(x));
convert!(f64, to_f64, x, bool: x != 0.0, i32: i32_from_f64(x), i64: i64_from_f64(x),
    f32: x as f32, f64: x);

macro_rules! convert_complex {
    ($type:ty, $into:ident) => {
        impl Convert for $type {
            fn to_bool(self) -> bool { self.re != 0.0 || self.im != 0.0 }
            fn to_i32(self) -> i32 { self.re.to_i32() }
            fn to_i64(self) -> i64 { self.re.to_i64() }
            fn to_f32(self) -> f32 { self.re.to_f32() }
            fn to_f64(self) -> f64 { self.re.to_f64() }
            fn to_c64(self) -> Complex<f32> { Complex::new(self.re.to_f32(), self.im.to_f32()) }
            fn to_c128(self) -> Complex<f64> { Complex::new(self.re.to_f64(), self.im.to_f64()) }
            convert!(@from $into);
        }
    };
}

convert_complex!(Complex<f32>, to_c64);
convert_complex!(Complex<f64>, to_c128);

/// The array in another element type; shared where it has that type already.
pub(super) fn to_type<T: Element>(tensor: &Tensor) -> ArcArray<T, IxDyn> {
    match T::array_of(tensor) {
        Some(array) => array.clone(),
        None => for_any!(tensor, array => map(array, T::from_element)),
    }
}

/// The tensor in another element type; shared where it has that type already.
pub(super) fn cast(tensor: &Tensor, dtype: DType) -> Tensor {
    with_type!(dtype, T => T::into_tensor(to_type::<T>(tensor)))
}
