//! The Rust types that tensors hold.

use super::Tensor;
use super::cast::Convert;
use fhelium_ir::DType;
use ndarray::{ArcArray, IxDyn};
use num_complex::Complex;
use std::fmt::Debug;

/// A Rust type that tensors hold: `bool`, `i32`, `i64`, `f32`, `f64` and complex numbers of the
/// two float types.
#[allow(private_bounds)]
pub trait Element:
    Copy + Debug + Default + PartialEq + Send + Sync + Convert + bytemuck::NoUninit
{
    /// The element type's name in Programs.
    const DTYPE: DType;

    /// The array as a tensor.
    fn into_tensor(array: ArcArray<Self, IxDyn>) -> Tensor;

    /// The tensor's array, if it holds this type.
    fn array_of(tensor: &Tensor) -> Option<&ArcArray<Self, IxDyn>>;
}

macro_rules! elements {
    ($($type:ty => $variant:ident;)*) => {$(
        impl Element for $type {
            const DTYPE: DType = DType::$variant;

            fn into_tensor(array: ArcArray<Self, IxDyn>) -> Tensor {
                Tensor::$variant(array)
            }

            fn array_of(tensor: &Tensor) -> Option<&ArcArray<Self, IxDyn>> {
                match tensor {
                    Tensor::$variant(array) => Some(array),
                    _ => None,
                }
            }
        }
    )*};
}

elements! {
    bool => Bool;
    i32 => I32;
    i64 => I64;
    f32 => F32;
    f64 => F64;
    Complex<f32> => C64;
    Complex<f64> => C128;
}

/// Evaluates an expression with a tensor's array, whatever its element type.
macro_rules! for_any {
    ($tensor:expr, $array:ident => $body:expr) => {
        match $tensor {
            $crate::tensor::Tensor::Bool($array) => $body,
            $crate::tensor::Tensor::I32($array) => $body,
            $crate::tensor::Tensor::I64($array) => $body,
            $crate::tensor::Tensor::F32($array) => $body,
            $crate::tensor::Tensor::F64($array) => $body,
            $crate::tensor::Tensor::C64($array) => $body,
            $crate::tensor::Tensor::C128($array) => $body,
        }
    };
}

/// Evaluates an expression with `$type` naming the Rust type of an element type.
macro_rules! with_type {
    ($dtype:expr, $type:ident => $body:expr) => {{
        use num_complex::Complex;
        match $dtype {
            fhelium_ir::DType::Bool => {
                type $type = bool;
                $body
            }
            fhelium_ir::DType::I32 => {
                type $type = i32;
                $body
            }
            fhelium_ir::DType::I64 => {
                type $type = i64;
                $body
            }
            fhelium_ir::DType::F32 => {
                type $type = f32;
                $body
            }
            fhelium_ir::DType::F64 => {
                type $type = f64;
                $body
            }
            fhelium_ir::DType::C64 => {
                type $type = Complex<f32>;
                $body
            }
            fhelium_ir::DType::C128 => {
                type $type = Complex<f64>;
                $body
            }
        }
    }};
}

pub(super) use {for_any, with_type};
