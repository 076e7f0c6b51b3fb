//! Clear arrays and the operations on them, with numpy's semantics.
//!
//! A [`Tensor`] is a shared, dynamic-rank array; cloning one, and taking views of one
//! (`tensor.transpose`, `tensor.slice`, `tensor.index`), copies no elements. [`evaluate`] runs one
//! operation of the `tensor` dialect; what it accepts, and its result's shape and element type,
//! is what `fhelium-ir`'s table says.
//!
//! # How close to numpy
//!
//! Against numpy 2.x, elements are:
//!
//! - equal to the last bit: integer and boolean arithmetic (which wraps), conversions, `add`,
//!   `sub`, `mul`, `div`, `neg`, `abs`, `clip`, `where`, `sqrt` of reals, whole powers of complex
//!   numbers, everything that only moves elements, and `sum` and `mean`, which add in numpy's
//!   pairwise order;
//! - within 1 ulp: `exp`, `log`, `sin`, `cos` and `tanh` of `f64`, which are correctly rounded
//!   here and the same on every machine, whereas numpy's last bit depends on the processor; and
//!   `pow` of `f64`, by the platform's mathematical library. `f32` versions are correctly rounded
//!   too, while numpy's own are up to 4 ulp from the true value;
//! - within 2 ulp of numpy's on glibc: the same functions and `sqrt` of complex numbers. Their
//!   fractional and large powers are exponentials of a product, which magnifies rounding errors;
//! - within the usual bound of a dot product of length k, `k eps sum |a||b|`: `matmul` of floats,
//!   whose order of summation is the processor's affair, here as in numpy.
//!
//! `sum` and `mean` depend on the order of elements in memory, in numpy too. Views and
//! element-wise results have numpy's memory order here; copies made by `reshape`, `concatenate`,
//! `stack` and `broadcast` are row-major. A mean of integers equals numpy's where their magnitudes
//! sum to less than 2^53.
//!
//! Complex products and magnitudes use a fused multiply-add, as numpy does on processors that
//! have one. Two results differ on purpose, as there are no such element types here: a fractional
//! function of booleans is `f64` (numpy: 16 bits), and powers of booleans are refused.

mod arithmetic;
mod cast;
mod complex;
mod device;
mod element;
mod elementary;
mod elementwise;
mod error;
mod evaluate;
mod layout;
mod matmul;
mod power;
mod reduction;
mod select;
mod shape;
mod value;

pub use element::Element;
pub use error::TensorError;
pub use evaluate::evaluate;
pub use value::Tensor;
