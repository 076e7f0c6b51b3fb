//! The vector operations that the double-precision kernels are written in.

/// `W` lanes of 64 bits. A value of an implementing type is the proof that the CPU has the
/// instructions.
///
/// Only what AVX2 has in one or two instructions is here; floating-point operations round to
/// nearest, ties to even.
pub(crate) trait Lanes<const W: usize>: Copy + Send + Sync + std::fmt::Debug {
    /// `W` doubles.
    type Float: Copy;
    /// `W` 64-bit integers.
    type Int: Copy;

    fn load(self, values: &[u64; W]) -> Self::Int;
    fn store(self, values: Self::Int, out: &mut [u64; W]);
    fn load_float(self, values: &[f64; W]) -> Self::Float;
    fn store_float(self, values: Self::Float, out: &mut [u64; W]);
    /// The doubles with these bits.
    fn as_float(self, bits: Self::Int) -> Self::Float;
    fn splat(self, value: f64) -> Self::Float;
    fn splat_int(self, value: u64) -> Self::Int;

    fn add(self, a: Self::Float, b: Self::Float) -> Self::Float;
    fn sub(self, a: Self::Float, b: Self::Float) -> Self::Float;
    fn mul(self, a: Self::Float, b: Self::Float) -> Self::Float;
    /// a b + c, rounded once.
    fn mul_add(self, a: Self::Float, b: Self::Float, c: Self::Float) -> Self::Float;
    /// a b - c, rounded once.
    fn mul_sub(self, a: Self::Float, b: Self::Float, c: Self::Float) -> Self::Float;
    /// c - a b, rounded once.
    fn neg_mul_add(self, a: Self::Float, b: Self::Float, c: Self::Float) -> Self::Float;
    fn round(self, a: Self::Float) -> Self::Float;
    /// `a`, and where `a` is above `limit` `a - b`.
    fn sub_if_above(self, a: Self::Float, limit: Self::Float, b: Self::Float) -> Self::Float;

    /// Integers in [0, 2^52) as doubles.
    fn to_float(self, a: Self::Int) -> Self::Float;
    /// Integer-valued doubles in (-p, p) as integers in [0, p), for p below 2^51. No lane is -0.
    fn to_canonical(self, a: Self::Float, p: u64) -> Self::Int;

    /// The lanes of `a` in the order of the indices' remainders by W, if the indices have one
    /// quotient by W.
    fn permute(self, a: Self::Int, indices: &[u32; W]) -> Option<Self::Int>;

    fn add_int(self, a: Self::Int, b: Self::Int) -> Self::Int;
    fn sub_int(self, a: Self::Int, b: Self::Int) -> Self::Int;
    /// `b`, and where it has wrapped below zero `a`. A lane of `b` that has not wrapped is at most
    /// the one of `a`, which is below 2^63.
    fn unless_wrapped(self, b: Self::Int, a: Self::Int) -> Self::Int;

    /// Brings the elements of two consecutive vectors that stand `W >> (layer + 1)` apart into the
    /// same lane of two vectors. Layer 0 takes the vectors as loaded, each later layer the result
    /// of the one before.
    fn split(self, layer: u32, a: Self::Float, b: Self::Float) -> (Self::Float, Self::Float);
    /// Undoes [`split`](Self::split) of that layer.
    fn unsplit(self, layer: u32, a: Self::Float, b: Self::Float) -> (Self::Float, Self::Float);
    /// Undoes all splits.
    fn join(self, a: Self::Float, b: Self::Float) -> (Self::Float, Self::Float);
    /// Undoes [`join`](Self::join).
    fn unjoin(self, a: Self::Float, b: Self::Float) -> (Self::Float, Self::Float);
}
