// Elements of clear tensors and the arithmetic that is the same on every machine.
//
// Results equal the host's bit for bit: crates/fhelium-runtime/src/tensor has the same sums and
// products in the same order, with the fused multiply-adds that are named here and no others.
#ifndef FHELIUM_TENSOR_CUH
#define FHELIUM_TENSOR_CUH

#include "strided.cuh"

// A function that is called where it would be too large to be repeated.
#ifdef __CUDACC__
#define FH_APART static __device__ __noinline__
#else
#define FH_APART static
#endif

constexpr int THREADS = 256;

typedef int i32;

// fhelium_ir::DType, in its order.
enum DType : u32 { BOOL, I32, I64, F32, F64, C64, C128 };

template <class T>
struct Complex {
    typedef T Real;
    T re, im;
};
typedef Complex<float> c64;
typedef Complex<double> c128;

// Up to three operands and a result, element by element.
template <int OPERANDS>
struct Elements {
    const void* operands[OPERANDS];
    void* target;
    u32 operation;  // which of the kernel's functions
    u32 detail;     // what the function needs beside its operands
    Strided<OPERANDS + 1> shape;
};
typedef Elements<1> Unary;
typedef Elements<2> Binary;
typedef Elements<3> Ternary;
static_assert(sizeof(Unary) == 232 && sizeof(Binary) == 320 && sizeof(Ternary) == 408,
              "src/kernels/tensor.rs has the same layout");

// ------------------------------------------------------------------------------ real numbers

FH_INLINE float fused(float a, float b, float c) { return fmaf(a, b, c); }
FH_INLINE double fused(double a, double b, double c) { return fma(a, b, c); }
FH_INLINE float root(float x) { return sqrtf(x); }
FH_INLINE double root(double x) { return sqrt(x); }
FH_INLINE float magnitude(float x) { return fabsf(x); }
FH_INLINE double magnitude(double x) { return fabs(x); }
FH_INLINE bool is_nan(double x) { return x != x; }
FH_INLINE double infinity() { return fh_from_bits(0x7FF0000000000000ull); }
FH_INLINE double not_a_number() { return fh_from_bits(0x7FF8000000000000ull); }
FH_INLINE bool is_infinite(double x) { return fabs(x) == infinity(); }
FH_INLINE bool is_finite(double x) { return fabs(x) < infinity(); }

// ------------------------------------------------------------------------------------- rings

FH_INLINE bool plus(bool a, bool b) { return a | b; }
FH_INLINE i32 plus(i32 a, i32 b) { return (i32)((u32)a + (u32)b); }
FH_INLINE i64 plus(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
FH_INLINE float plus(float a, float b) { return a + b; }
FH_INLINE double plus(double a, double b) { return a + b; }
template <class T>
FH_INLINE Complex<T> plus(Complex<T> a, Complex<T> b) { return {a.re + b.re, a.im + b.im}; }

FH_INLINE bool minus(bool a, bool b) { return a ^ b; }
FH_INLINE i32 minus(i32 a, i32 b) { return (i32)((u32)a - (u32)b); }
FH_INLINE i64 minus(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }
FH_INLINE float minus(float a, float b) { return a - b; }
FH_INLINE double minus(double a, double b) { return a - b; }
template <class T>
FH_INLINE Complex<T> minus(Complex<T> a, Complex<T> b) { return {a.re - b.re, a.im - b.im}; }

FH_INLINE bool times(bool a, bool b) { return a & b; }
FH_INLINE i32 times(i32 a, i32 b) { return (i32)((u32)a * (u32)b); }
FH_INLINE i64 times(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
FH_INLINE float times(float a, float b) { return a * b; }
FH_INLINE double times(double a, double b) { return a * b; }
// Each part with one rounding of its last product and sum together.
template <class T>
FH_INLINE Complex<T> times(Complex<T> a, Complex<T> b) {
    return {fused(a.re, b.re, -(a.im * b.im)), fused(a.re, b.im, a.im * b.re)};
}
// Without fused products.
template <class T>
FH_INLINE Complex<T> times_apart(Complex<T> a, Complex<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

FH_INLINE bool negated(bool a) { return a; }
FH_INLINE i32 negated(i32 a) { return (i32)(0 - (u32)a); }
FH_INLINE i64 negated(i64 a) { return (i64)(0 - (u64)a); }
FH_INLINE float negated(float a) { return -a; }
FH_INLINE double negated(double a) { return -a; }
template <class T>
FH_INLINE Complex<T> negated(Complex<T> a) { return {-a.re, -a.im}; }

FH_INLINE float over(float a, float b) { return a / b; }
FH_INLINE double over(double a, double b) { return a / b; }
// Smith's method (R. L. Smith, "Algorithm 116", CACM 1962).
template <class T>
FH_INLINE Complex<T> over(Complex<T> a, Complex<T> b) {
    const T re = magnitude(b.re), im = magnitude(b.im);
    if (re >= im) {
        if (re == 0 && im == 0) return {a.re / re, a.im / re};
        const T ratio = b.im / b.re;
        const T scale = 1 / (b.re + b.im * ratio);
        return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    const T ratio = b.re / b.im;
    const T scale = 1 / (b.im + b.re * ratio);
    return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
// One over z by the same method.
template <class T>
FH_INLINE Complex<T> inverted(Complex<T> z) {
    if (magnitude(z.im) <= magnitude(z.re)) {
        const T ratio = z.im / z.re;
        const T scale = z.re + z.im * ratio;
        return {1 / scale, -ratio / scale};
    }
    const T ratio = z.re / z.im;
    const T scale = z.re * ratio + z.im;
    return {ratio / scale, -1 / scale};
}

FH_INLINE i32 absolute(i32 a) { return a < 0 ? negated(a) : a; }
FH_INLINE i64 absolute(i64 a) { return a < 0 ? negated(a) : a; }
FH_INLINE float absolute(float a) { return magnitude(a); }
FH_INLINE double absolute(double a) { return magnitude(a); }
// The larger part times the root of one plus the squared ratio.
template <class T>
FH_INLINE T absolute(Complex<T> z) {
    const T re = magnitude(z.re), im = magnitude(z.im);
    if (is_infinite(re) || is_infinite(im)) return (T)infinity();
    if (is_nan(re) || is_nan(im)) return (T)not_a_number();
    const T larger = re > im ? re : im, smaller = re > im ? im : re;
    if (larger == 0) return 0;
    const T ratio = smaller / larger;
    return root(fused(ratio, ratio, (T)1)) * larger;
}

// ------------------------------------------------------------------------------- conversions

// Truncation; what no integer of the type holds, and NaN, becomes the least one.
FH_INLINE i32 truncated(double x, i32) {
    const double whole = trunc(x);
    return whole >= -2147483648.0 && whole < 2147483648.0 ? (i32)whole : (i32)0x80000000u;
}
FH_INLINE i64 truncated(double x, i64) {
    const double whole = trunc(x);
    return whole >= -9223372036854775808.0 && whole < 9223372036854775808.0
               ? (i64)whole
               : (i64)0x8000000000000000ull;
}

template <class T>
struct Into {
    template <class S>
    __device__ __forceinline__ static T from(S x) { return (T)x; }
    template <class S>
    __device__ __forceinline__ static T from(Complex<S> z) { return (T)z.re; }
};
template <>
struct Into<bool> {
    template <class S>
    __device__ __forceinline__ static bool from(S x) { return x != 0; }
    template <class S>
    __device__ __forceinline__ static bool from(Complex<S> z) { return z.re != 0 || z.im != 0; }
};
template <>
struct Into<i32> {
    __device__ __forceinline__ static i32 from(bool x) { return x; }
    __device__ __forceinline__ static i32 from(i32 x) { return x; }
    __device__ __forceinline__ static i32 from(i64 x) { return (i32)(u32)(u64)x; }
    __device__ __forceinline__ static i32 from(double x) { return truncated(x, i32()); }
    __device__ __forceinline__ static i32 from(float x) { return truncated(x, i32()); }
    template <class S>
    __device__ __forceinline__ static i32 from(Complex<S> z) { return from(z.re); }
};
template <>
struct Into<i64> {
    __device__ __forceinline__ static i64 from(bool x) { return x; }
    __device__ __forceinline__ static i64 from(i32 x) { return x; }
    __device__ __forceinline__ static i64 from(i64 x) { return x; }
    __device__ __forceinline__ static i64 from(double x) { return truncated(x, i64()); }
    __device__ __forceinline__ static i64 from(float x) { return truncated(x, i64()); }
    template <class S>
    __device__ __forceinline__ static i64 from(Complex<S> z) { return from(z.re); }
};
template <class R>
struct Into<Complex<R>> {
    template <class S>
    __device__ __forceinline__ static Complex<R> from(S x) { return {(R)x, 0}; }
    template <class S>
    __device__ __forceinline__ static Complex<R> from(Complex<S> z) { return {(R)z.re, (R)z.im}; }
};

#endif
