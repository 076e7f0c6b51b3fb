// Sums, products, quotients, conversions and choices of clear tensors.
//
// Grid: (elements of the result); a thread does one. A kernel serves an element type; which of its
// functions runs is the launch's to say.

#include "tensor.cuh"

namespace {

// What a binary kernel's `operation` names.
enum { ADD, SUBTRACT, MULTIPLY, DIVIDE };

template <class T>
__device__ __forceinline__ T combined(u32 operation, T a, T b) {
    switch (operation) {
        case ADD: return plus(a, b);
        case SUBTRACT: return minus(a, b);
        default: return times(a, b);
    }
}
template <class T>
__device__ __forceinline__ T combined_with_quotient(u32 operation, T a, T b) {
    return operation == DIVIDE ? over(a, b) : combined(operation, a, b);
}

template <class T, T (*FUNCTION)(u32, T, T)>
__device__ __forceinline__ void binary(const Binary& args) {
    const u32 index = thread_index<THREADS>();
    if (index >= args.shape.count) return;
    i64 at[3];
    places_of(args.shape, index, at);
    const T a = static_cast<const T*>(args.operands[0])[at[0]];
    const T b = static_cast<const T*>(args.operands[1])[at[1]];
    static_cast<T*>(args.target)[at[2]] = FUNCTION(args.operation, a, b);
}

// What a unary kernel's `operation` names.
enum { NEGATE, ABSOLUTE, CONJUGATE };

template <class T>
__device__ __forceinline__ T real_changed(u32 operation, T a) {
    return operation == NEGATE ? negated(a) : absolute(a);
}
template <class T>
__device__ __forceinline__ T complex_changed(u32 operation, T a) {
    return operation == NEGATE ? negated(a) : T{a.re, -a.im};
}
template <class T>
__device__ __forceinline__ typename T::Real complex_absolute(u32, T a) {
    return absolute(a);
}

template <class T, class R, R (*FUNCTION)(u32, T)>
__device__ __forceinline__ void unary(const Unary& args) {
    const u32 index = thread_index<THREADS>();
    if (index >= args.shape.count) return;
    i64 at[2];
    places_of(args.shape, index, at);
    const T a = static_cast<const T*>(args.operands[0])[at[0]];
    static_cast<R*>(args.target)[at[1]] = FUNCTION(args.operation, a);
}

// To one type from any other; `operation` is that other.
template <class T>
__device__ __forceinline__ void cast(const Unary& args) {
    const u32 index = thread_index<THREADS>();
    if (index >= args.shape.count) return;
    i64 at[2];
    places_of(args.shape, index, at);
    T* target = static_cast<T*>(args.target) + at[1];
    const void* source = args.operands[0];
    switch (args.operation) {
        case BOOL: *target = Into<T>::from(static_cast<const bool*>(source)[at[0]]); break;
        case I32: *target = Into<T>::from(static_cast<const i32*>(source)[at[0]]); break;
        case I64: *target = Into<T>::from(static_cast<const i64*>(source)[at[0]]); break;
        case F32: *target = Into<T>::from(static_cast<const float*>(source)[at[0]]); break;
        case F64: *target = Into<T>::from(static_cast<const double*>(source)[at[0]]); break;
        case C64: *target = Into<T>::from(static_cast<const c64*>(source)[at[0]]); break;
        default: *target = Into<T>::from(static_cast<const c128*>(source)[at[0]]);
    }
}

// Integers to non-negative exponents, wrapping.
template <class T>
__device__ __forceinline__ T whole_power(u32, T base, T exponent) {
    T result = 1;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) result = times(result, base);
        base = times(base, base);
    }
    return result;
}

// Writes 1 where any element is negative; the target is one word.
template <class T>
__device__ __forceinline__ void any_negative(const Unary& args) {
    const u32 index = thread_index<THREADS>();
    if (index >= args.shape.count) return;
    i64 at[2];
    places_of(args.shape, index, at);
    const T a = static_cast<const T*>(args.operands[0])[at[0]];
    if (a < 0) *static_cast<u64*>(args.target) = 1;
}

// Held between bounds; where they cross, the high one. Equal numbers differ in the sign of zero
// only: there `keep` keeps the element.
template <class T>
__device__ __forceinline__ T limited(T x, T low, T high, bool keep) {
    const T raised = x > low || (keep && x == low) || x != x ? x : low;
    return raised < high || (keep && raised == high) || raised != raised ? raised : high;
}

template <class T>
__device__ __forceinline__ void clip(const Ternary& args) {
    const u32 index = thread_index<THREADS>();
    if (index >= args.shape.count) return;
    i64 at[4];
    places_of(args.shape, index, at);
    const T x = static_cast<const T*>(args.operands[0])[at[0]];
    const T low = static_cast<const T*>(args.operands[1])[at[1]];
    const T high = static_cast<const T*>(args.operands[2])[at[2]];
    static_cast<T*>(args.target)[at[3]] = limited(x, low, high, args.detail != 0);
}

template <class T>
__device__ __forceinline__ void choose(const Ternary& args) {
    const u32 index = thread_index<THREADS>();
    if (index >= args.shape.count) return;
    i64 at[4];
    places_of(args.shape, index, at);
    const bool chosen = static_cast<const bool*>(args.operands[0])[at[0]];
    const T* source = static_cast<const T*>(args.operands[chosen ? 1 : 2]);
    static_cast<T*>(args.target)[at[3]] = source[at[chosen ? 1 : 2]];
}

}  // namespace

#define BINARY(NAME, T, FUNCTION) FH_KERNEL(NAME, THREADS, 4, Binary, (binary<T, FUNCTION<T>>))
BINARY(binary_bool, bool, combined)
BINARY(binary_i32, i32, combined)
BINARY(binary_i64, i64, combined)
BINARY(binary_f32, float, combined_with_quotient)
BINARY(binary_f64, double, combined_with_quotient)
BINARY(binary_c64, c64, combined_with_quotient)
BINARY(binary_c128, c128, combined_with_quotient)
BINARY(power_i32, i32, whole_power)
BINARY(power_i64, i64, whole_power)

#define UNARY(NAME, T, R, FUNCTION) FH_KERNEL(NAME, THREADS, 4, Unary, (unary<T, R, FUNCTION<T>>))
UNARY(unary_i32, i32, i32, real_changed)
UNARY(unary_i64, i64, i64, real_changed)
UNARY(unary_f32, float, float, real_changed)
UNARY(unary_f64, double, double, real_changed)
UNARY(unary_c64, c64, c64, complex_changed)
UNARY(unary_c128, c128, c128, complex_changed)
UNARY(absolute_c64, c64, float, complex_absolute)
UNARY(absolute_c128, c128, double, complex_absolute)
FH_KERNEL(any_negative_i32, THREADS, 4, Unary, any_negative<i32>)
FH_KERNEL(any_negative_i64, THREADS, 4, Unary, any_negative<i64>)

FH_KERNEL(cast_bool, THREADS, 4, Unary, cast<bool>)
FH_KERNEL(cast_i32, THREADS, 4, Unary, cast<i32>)
FH_KERNEL(cast_i64, THREADS, 4, Unary, cast<i64>)
FH_KERNEL(cast_f32, THREADS, 4, Unary, cast<float>)
FH_KERNEL(cast_f64, THREADS, 4, Unary, cast<double>)
FH_KERNEL(cast_c64, THREADS, 4, Unary, cast<c64>)
FH_KERNEL(cast_c128, THREADS, 4, Unary, cast<c128>)

FH_KERNEL(clip_bool, THREADS, 4, Ternary, clip<bool>)
FH_KERNEL(clip_i32, THREADS, 4, Ternary, clip<i32>)
FH_KERNEL(clip_i64, THREADS, 4, Ternary, clip<i64>)
FH_KERNEL(clip_f32, THREADS, 4, Ternary, clip<float>)
FH_KERNEL(clip_f64, THREADS, 4, Ternary, clip<double>)

FH_KERNEL(choose_1, THREADS, 4, Ternary, choose<unsigned char>)
FH_KERNEL(choose_4, THREADS, 4, Ternary, choose<u32>)
FH_KERNEL(choose_8, THREADS, 4, Ternary, choose<u64>)
FH_KERNEL(choose_16, THREADS, 4, Ternary, choose<ulonglong2>)
