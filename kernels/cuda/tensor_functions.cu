// Exponentials, logarithms, roots, sines and powers of clear tensors.
//
// Grid: (elements of the result); a thread does one. Complex functions have the special values of
// C's annex G and the steps of crates/fhelium-runtime/src/tensor/complex.rs. What differs from the
// host is the last bits of CUDA's own exp, log, sin and their like.

#include "tensor.cuh"

namespace {

// What `operation` names.
enum { EXP, LOG, SQRT, SIN, COS, TANH };

// Not inlined: a kernel holds six of them.
FH_APART double real_function(u32 operation, double x) {
    switch (operation) {
        case EXP: return exp(x);
        case LOG: return log(x);
        case SQRT: return sqrt(x);
        case SIN: return sin(x);
        case COS: return cos(x);
        default: return tanh(x);
    }
}

// Arguments beyond which the exponential may leave the range, and from which on the hyperbolic
// functions are half of it to the last bit.
constexpr double LARGE = 700.0;

// e^x w for a large x whose exponential alone may overflow: the part that does not, first.
__device__ __forceinline__ c128 scaled_exp(double x, double re, double im) {
    const double first = exp(LARGE), rest = exp(x - LARGE);
    return {first * (rest * re), first * (rest * im)};
}

FH_APART c128 complex_exp(c128 z) {
    if (z.im == 0) return {exp(z.re), z.im};
    if (!is_finite(z.im)) {
        if (z.re == infinity()) return {z.re, not_a_number()};
        if (z.re == -infinity()) return {0, 0};
        return {not_a_number(), not_a_number()};
    }
    const double sine = sin(z.im), cosine = cos(z.im);
    if (is_finite(z.re) && z.re > LARGE) return scaled_exp(z.re, cosine, sine);
    const double e = exp(z.re);
    return {e * cosine, e * sine};
}

// A sum and the error of its rounding, exactly (D. E. Knuth, TAOCP 4.2.2, theorem B).
__device__ __forceinline__ double two_sum(double a, double b, double& error) {
    const double sum = a + b;
    const double part = sum - a;
    error = (a - (sum - part)) + (b - part);
    return sum;
}

// ln |z| of magnitudes within range, the larger first.
__device__ __forceinline__ double log_magnitude(double larger, double smaller) {
    const double square = larger * larger, lesser = smaller * smaller;
    const double norm = square + lesser;
    if (!(norm >= 0.5 && norm < 3.0)) return 0.5 * log(norm);
    // Near the unit circle the logarithm is small: |z|^2 - 1 from exact squares and sums.
    const double square_error = fma(larger, larger, -square);
    const double lesser_error = fma(smaller, smaller, -lesser);
    double sum_error, excess_error, tail_error, low_error, high_error;
    const double sum = two_sum(square, lesser, sum_error);
    const double excess = two_sum(sum, -1.0, excess_error);
    const double tail = two_sum(square_error, lesser_error, tail_error);
    const double low = two_sum(sum_error, tail, low_error);
    const double high = two_sum(excess, low, high_error);
    const double rest = excess_error + high_error + low_error + tail_error;
    return 0.5 * log1p(high + rest);
}

FH_APART c128 complex_log(c128 z) {
    const double angle = atan2(z.im, z.re);
    double larger = fabs(z.re), smaller = fabs(z.im);
    if (is_infinite(larger) || is_infinite(smaller)) return {infinity(), angle};
    if (is_nan(larger) || is_nan(smaller)) return {not_a_number(), angle};
    if (!(larger > smaller)) {
        const double other = larger;
        larger = smaller;
        smaller = other;
    }
    // By powers of two, so that the squares stay in range and nothing is rounded.
    double shifted = 0;
    while (smaller != 0 && !(larger >= 1e-140 && larger < 1e140)) {
        const double shift = larger < 1.0 ? 512.0 : -512.0;
        const double scale = larger < 1.0 ? 0x1p512 : 0x1p-512;
        larger *= scale;
        smaller *= scale;
        shifted += shift;
    }
    const double ln = smaller == 0 ? log(larger) : log_magnitude(larger, smaller);
    return {shifted == 0 ? ln : ln - shifted * 0.69314718055994530942, angle};
}

FH_APART c128 complex_sqrt(c128 z) {
    if (is_infinite(z.im)) return {infinity(), z.im};
    if (is_infinite(z.re)) {
        const double other = is_nan(z.im) ? z.im : copysign(0.0, z.im);
        if (z.re > 0) return {z.re, other};
        return {fabs(other), copysign(infinity(), z.im)};
    }
    if (is_nan(z.re) || is_nan(z.im)) return {not_a_number(), not_a_number()};
    if (z.im == 0) {
        const double of_real = sqrt(fabs(z.re));
        if (z.re < 0) return {0, copysign(of_real, z.im)};
        return {of_real, z.im};
    }
    // The sum of magnitudes must neither overflow nor lose bits below the normal range.
    double scale = 1;
    const double larger = fmax(fabs(z.re), fabs(z.im));
    if (larger > 1e300) {
        z = {z.re * 0.0625, z.im * 0.0625};
        scale = 4;
    } else if (larger < 1e-290) {
        z = {z.re * 0x1p108, z.im * 0x1p108};
        scale = 0x1p-54;
    }
    const double half = 0.5 * hypot(z.re, z.im) + 0.5 * fabs(z.re);
    const double of_half = sqrt(half);
    const double other = 0.5 * (fabs(z.im) / of_half);
    if (z.re >= 0) return {of_half * scale, copysign(other, z.im) * scale};
    return {other * scale, copysign(of_half, z.im) * scale};
}

// The hyperbolic sine, or the cosine where `COSINE`.
template <bool COSINE>
FH_APART c128 hyperbolic(c128 z) {
    if (z.im == 0) {
        if (!COSINE) return {sinh(z.re), z.im};
        return {cosh(z.re), is_nan(z.re) ? z.im : z.im * copysign(1.0, z.re)};
    }
    if (!is_finite(z.im)) {
        if (COSINE) {
            if (z.re == 0) return {not_a_number(), z.re};
            if (is_infinite(z.re)) return {infinity(), not_a_number()};
        } else if (z.re == 0 || is_infinite(z.re)) {
            return {z.re, not_a_number()};
        }
        return {not_a_number(), not_a_number()};
    }
    const double sine = sin(z.im), cosine = cos(z.im);
    if (is_finite(z.re) && fabs(z.re) > LARGE) {
        const double sign = copysign(1.0, z.re);
        return COSINE ? scaled_exp(fabs(z.re), 0.5 * cosine, 0.5 * sign * sine)
                      : scaled_exp(fabs(z.re), 0.5 * sign * cosine, 0.5 * sine);
    }
    const double sh = sinh(z.re), ch = cosh(z.re);
    if (COSINE) return {ch * cosine, sh * sine};
    return {sh * cosine, ch * sine};
}

FH_APART c128 complex_tanh(c128 z) {
    if (is_infinite(z.re)) {
        const double sign = is_finite(z.im) ? sin(z.im) * cos(z.im) : z.im;
        return {copysign(1.0, z.re), copysign(0.0, sign)};
    }
    if (is_nan(z.re)) return {z.re, z.im == 0 ? z.im : not_a_number()};
    if (!is_finite(z.im)) return {z.re == 0 ? z.re : not_a_number(), not_a_number()};
    const double sine = sin(z.im), cosine = cos(z.im);
    // From 22 on, tanh is 1 to the last bit, and the squares below could overflow.
    if (fabs(z.re) > 22.0) {
        const double decay = exp(-2.0 * fabs(z.re));
        return {copysign(1.0, z.re), 4.0 * sine * cosine * decay};
    }
    const double sh = sinh(z.re), ch = cosh(z.re);
    const double norm = fma(sh, sh, cosine * cosine);
    return {sh * ch / norm, sine * cosine / norm};
}

FH_APART c128 complex_function(u32 operation, c128 z) {
    switch (operation) {
        case EXP: return complex_exp(z);
        case LOG: return complex_log(z);
        case SQRT: return complex_sqrt(z);
        case SIN: {
            const c128 turned = hyperbolic<false>(c128{-z.im, z.re});
            return {turned.im, -turned.re};
        }
        case COS: return hyperbolic<true>(c128{-z.im, z.re});
        default: return complex_tanh(z);
    }
}

__device__ __forceinline__ c128 widened(c64 z) { return {z.re, z.im}; }
__device__ __forceinline__ c64 narrowed(c128 z) { return {(float)z.re, (float)z.im}; }

// Twice the digits, rounded once; roots of single numbers are exact as they are.
__device__ __forceinline__ float function_of(u32 operation, float x) {
    return operation == SQRT ? sqrtf(x) : (float)real_function(operation, x);
}
__device__ __forceinline__ double function_of(u32 operation, double x) {
    return real_function(operation, x);
}
__device__ __forceinline__ c64 function_of(u32 operation, c64 z) {
    return narrowed(complex_function(operation, widened(z)));
}
__device__ __forceinline__ c128 function_of(u32 operation, c128 z) {
    return complex_function(operation, z);
}

template <class T>
__device__ __forceinline__ void function(const Unary& args) {
    const u32 index = thread_index<THREADS>();
    if (index >= args.shape.count) return;
    i64 at[2];
    places_of(args.shape, index, at);
    const T a = static_cast<const T*>(args.operands[0])[at[0]];
    static_cast<T*>(args.target)[at[1]] = function_of(args.operation, a);
}

// ------------------------------------------------------------------------------------- powers

FH_APART double real_power(double base, double exponent) { return pow(base, exponent); }

// An exponent without axes that is 2, -1 or 1/2 squares, inverts or takes the root.
__device__ __forceinline__ double power_of(double base, double exponent, bool alone) {
    if (alone && exponent == 2.0) return base * base;
    if (alone && exponent == -1.0) return 1.0 / base;
    if (alone && exponent == 0.5) return sqrt(base);
    return real_power(base, exponent);
}
__device__ __forceinline__ float power_of(float base, float exponent, bool alone) {
    if (alone && exponent == 2.0f) return base * base;
    if (alone && exponent == -1.0f) return 1.0f / base;
    if (alone && exponent == 0.5f) return sqrtf(base);
    return (float)real_power(base, exponent);
}

__device__ __forceinline__ c128 general_power(c128 base, c128 exponent) {
    return complex_exp(times_apart(exponent, complex_log(base)));
}
__device__ __forceinline__ c64 general_power(c64 base, c64 exponent) {
    return narrowed(general_power(widened(base), widened(exponent)));
}

// Complex numbers are raised to whole exponents below this magnitude by multiplication.
constexpr double MULTIPLIED = 100.0;

template <class T>
__device__ __forceinline__ Complex<T> power_of(Complex<T> base, Complex<T> exponent, bool alone) {
    if (alone && exponent.im == 0) {
        if (exponent.re == 2) return times(base, base);
        if (exponent.re == -1) return inverted(base);
        if (exponent.re == (T)0.5) return function_of(SQRT, base);
    }
    const Complex<T> one = {1, 0};
    if (exponent.re == 0 && exponent.im == 0) return one;
    if (base.re == 0 && base.im == 0) {
        if (exponent.re > 0) return {0, 0};
        return {(T)not_a_number(), (T)not_a_number()};
    }
    const double whole = exponent.re;
    if (exponent.im != 0 || trunc(whole) != whole || !(fabs(whole) < MULTIPLIED))
        return general_power(base, exponent);
    // By repeated squaring without fused products: from one, which decides signs of zeros, unless
    // two products suffice.
    u32 left = (u32)fabs(whole);
    Complex<T> product = one;
    switch (left) {
        case 1: product = base; break;
        case 2: product = times_apart(base, base); break;
        case 3: product = times_apart(base, times_apart(base, base)); break;
        default: {
            Complex<T> square = base;
            for (;;) {
                if (left & 1) product = times_apart(product, square);
                left >>= 1;
                if (left == 0) break;
                square = times_apart(square, square);
            }
        }
    }
    return exponent.re < 0 ? over(one, product) : product;
}

template <class T>
__device__ __forceinline__ void power(const Binary& args) {
    const u32 index = thread_index<THREADS>();
    if (index >= args.shape.count) return;
    i64 at[3];
    places_of(args.shape, index, at);
    const T base = static_cast<const T*>(args.operands[0])[at[0]];
    const T exponent = static_cast<const T*>(args.operands[1])[at[1]];
    static_cast<T*>(args.target)[at[2]] = power_of(base, exponent, args.detail != 0);
}

}  // namespace

FH_KERNEL(function_f32, THREADS, 2, Unary, function<float>)
FH_KERNEL(function_f64, THREADS, 2, Unary, function<double>)
FH_KERNEL(function_c64, THREADS, 2, Unary, function<c64>)
FH_KERNEL(function_c128, THREADS, 2, Unary, function<c128>)
FH_KERNEL(power_f32, THREADS, 2, Binary, power<float>)
FH_KERNEL(power_f64, THREADS, 2, Binary, power<double>)
FH_KERNEL(power_c64, THREADS, 2, Binary, power<c64>)
FH_KERNEL(power_c128, THREADS, 2, Binary, power<c128>)
