// Residue arithmetic: nothing else, in the subset that C and CUDA C++ share.
//
// The same text is compiled for GPUs by NVRTC and for the host by the tests, which compare every
// function with exact integers at the edges of its range. Do not reorder or contract anything:
// exactness rests on the fused multiply-adds being where they are written.
//
// Two cores:
//   f64_*  residues of primes below 2^49.5 as doubles, exact through the fused multiply-add;
//          fast where the GPU has full FP64 units.
//   u64_*  residues of primes below 2^61 as 64-bit integers (Shoup 2001; Barrett 1986), for GPUs
//          with slow FP64 and for larger primes.
#ifndef FHELIUM_MODULAR_CUH
#define FHELIUM_MODULAR_CUH

#ifdef __CUDACC__
#define FH_INLINE static __device__ __forceinline__
typedef unsigned long long u64;
typedef long long i64;
#define FH_FMA(a, b, c) __fma_rn((a), (b), (c))
#define FH_MUL(a, b) __dmul_rn((a), (b))
#define FH_ADD(a, b) __dadd_rn((a), (b))
FH_INLINE u64 fh_mulhi(u64 a, u64 b) { return __umul64hi(a, b); }
FH_INLINE double fh_from_bits(u64 bits) { return __longlong_as_double((long long)bits); }
FH_INLINE u64 fh_to_bits(double x) { return (u64)__double_as_longlong(x); }
#else
#include <math.h>
#include <stdint.h>
#include <string.h>
#define FH_INLINE static inline
typedef uint64_t u64;
typedef int64_t i64;
#define FH_FMA(a, b, c) fma((a), (b), (c))
#define FH_MUL(a, b) ((a) * (b))
#define FH_ADD(a, b) ((a) + (b))
FH_INLINE u64 fh_mulhi(u64 a, u64 b) { return (u64)(((unsigned __int128)a * b) >> 64); }
FH_INLINE double fh_from_bits(u64 bits) { double x; memcpy(&x, &bits, 8); return x; }
FH_INLINE u64 fh_to_bits(double x) { u64 bits; memcpy(&bits, &x, 8); return bits; }
#endif

// 1.5 * 2^52: adding and subtracting it rounds any |x| <= 2^51 to the nearest integer.
#define FH_ROUND 6755399441055744.0
// 1.5 * 2^53: the same to the nearest even integer, for any |x| <= 2^52.
#define FH_ROUND_EVEN 13510798882111488.0
// 2^52: the integers [0, 2^52) are the low bits of the doubles [2^52, 2^53).
#define FH_TWO52 4503599627370496.0
#define FH_TWO52_BITS 0x4330000000000000ull
// 1.5 * 2^102: every double within 2^101 of it is a multiple of 2^50.
#define FH_SUM_BASE 7605903601369376408980219232256.0
// The products that one f64 sum takes.
#define FH_SUM_TERMS 13

// ---------------------------------------------------------------- FP64 core, p < 2^49.5

// An integer below 2^52 as a double.
FH_INLINE double f64_load(u64 x) { return FH_ADD(fh_from_bits(x | FH_TWO52_BITS), -FH_TWO52); }

// A canonical double, in [0, 2^52), as an integer.
FH_INLINE u64 f64_to_u64(double x) { return fh_to_bits(FH_ADD(x, FH_TWO52)) & 0xFFFFFFFFFFFFFull; }

// x mod p with |result| <= p (1/2 + |x / p| * 2^-53), for |x| <= 2^53 and |x / p| <= 2^51.
FH_INLINE double f64_reduce(double x, double p, double inv_p) {
    double q = FH_ADD(FH_FMA(x, inv_p, FH_ROUND), -FH_ROUND);
    return FH_FMA(-q, p, x);
}

// The canonical residue, in [0, p), of such an x.
FH_INLINE double f64_canonical(double x, double p, double inv_p) {
    double r = f64_reduce(x, p, inv_p);
    return r < 0.0 ? FH_ADD(r, p) : r;
}

// The same as an integer.
FH_INLINE u64 f64_store(double x, double p, double inv_p) {
    return f64_to_u64(f64_canonical(x, p, inv_p));
}

// The canonical residue, as an integer, of such an x with |x| < p.
FH_INLINE u64 f64_store_near(double x, double p) {
    return fh_to_bits(FH_ADD(x, x < 0.0 ? FH_ADD(FH_TWO52, p) : FH_TWO52)) & 0xFFFFFFFFFFFFFull;
}

// The residue in (-p/2, p/2) of one in [0, p), which may be of any odd p < 2^53.
FH_INLINE double f64_center(double x, double p) { return x > 0.5 * p ? FH_ADD(x, -p) : x; }

// x * w mod p, lazily: |x * w| <= p * 2^51, and |result| <= p (1/2 + |x w| / p * 2^-52 + 2^-49).
// With |w| <= p/2 (twiddles are kept centred) any |x| <= 2^52 will do, and four butterfly layers
// grow |x| <= p to less than 3.7 p, which still fits. Canonical x and w give |result| < 0.68 p.
FH_INLINE double f64_mul(double x, double w, double p, double inv_p) {
    double h = FH_MUL(x, w);
    double q = FH_ADD(FH_FMA(h, inv_p, FH_ROUND), -FH_ROUND);
    double l = FH_FMA(x, w, -h);
    return FH_ADD(FH_FMA(-q, p, h), l);
}

// Adds x * w, of magnitude at most 2^97, to the sum hi - FH_SUM_BASE + lo, which starts with
// hi = FH_SUM_BASE and |lo| <= p/2 and takes FH_SUM_TERMS products: hi stays a multiple of 2^50
// within 2^101 of its base, so that what each rounding leaves, at most 2^49, is exact in lo.
FH_INLINE void f64_sum_add(double* hi, double* lo, double x, double w) {
    double h = FH_FMA(x, w, *hi);
    double rest = FH_FMA(x, w, FH_ADD(*hi, -h));
    *hi = h;
    *lo = FH_ADD(*lo, rest);
}

// Such a sum mod p, reduced as by f64_reduce, if its products are of centred residues of p with
// integers of at most 2^48.5: then the quotient is below 2^52, the even integer nearest to it
// leaves less than 1.6 p, and that and lo together stay below 2^53.
FH_INLINE double f64_sum_reduce(double hi, double lo, double p, double inv_p) {
    double s = FH_ADD(hi, -FH_SUM_BASE);
    double q = FH_ADD(FH_FMA(s, inv_p, FH_ROUND_EVEN), -FH_ROUND_EVEN);
    return f64_reduce(FH_ADD(FH_FMA(-q, p, s), lo), p, inv_p);
}

// ---------------------------------------------------------------- 64-bit core, p < 2^61

FH_INLINE u64 u64_sub_once(u64 x, u64 p) { return x >= p ? x - p : x; }

// (a + b) mod p of canonical a and b.
FH_INLINE u64 u64_add(u64 a, u64 b, u64 p) { return u64_sub_once(a + b, p); }

// (a - b) mod p of canonical a and b.
FH_INLINE u64 u64_sub(u64 a, u64 b, u64 p) { return a >= b ? a - b : a + p - b; }

// x * w mod p in [0, 2p), for any x, canonical w and shoup = floor(w * 2^64 / p).
FH_INLINE u64 u64_mul_shoup_lazy(u64 x, u64 w, u64 shoup, u64 p) {
    return x * w - fh_mulhi(x, shoup) * p;
}

// x * w mod p, canonical.
FH_INLINE u64 u64_mul_shoup(u64 x, u64 w, u64 shoup, u64 p) {
    return u64_sub_once(u64_mul_shoup_lazy(x, w, shoup, p), p);
}

// Adds a * b to the 128-bit sum; the caller sees to it that it does not overflow.
FH_INLINE void u64_sum_add(u64* lo, u64* hi, u64 a, u64 b) {
    u64 product = a * b;
    *lo += product;
    *hi += fh_mulhi(a, b) + (*lo < product);
}

// (hi * 2^64 + lo) mod p, canonical, for any 128-bit value and p < 2^61, given the two words of
// floor(2^128 / p), as Barrett's reduction with a quotient that is at most two too small.
FH_INLINE u64 u64_reduce_wide(u64 lo, u64 hi, u64 p, u64 ratio_lo, u64 ratio_hi) {
    u64 carry = fh_mulhi(lo, ratio_lo);
    u64 mid_lo = lo * ratio_hi;
    u64 mid_hi = fh_mulhi(lo, ratio_hi);
    u64 sum = mid_lo + carry;
    u64 upper = mid_hi + (sum < mid_lo);
    u64 cross_lo = hi * ratio_lo;
    u64 cross_hi = fh_mulhi(hi, ratio_lo);
    u64 total = sum + cross_lo;
    u64 quotient = hi * ratio_hi + upper + cross_hi + (total < sum);
    u64 r = lo - quotient * p;
    r = u64_sub_once(r, p);
    return u64_sub_once(r, p);
}

// a * b / 2^64 mod p, canonical, for a b < 2^64 p and minus_inverse = -1/p mod 2^64 (P. Montgomery,
// "Modular multiplication without trial division", 1985).
FH_INLINE u64 u64_mul_montgomery(u64 a, u64 b, u64 p, u64 minus_inverse) {
    u64 lo = a * b;
    // lo + m p is a multiple of 2^64, which carries unless lo is zero.
    u64 carried = fh_mulhi(lo * minus_inverse, p) + (lo != 0);
    return u64_sub_once(fh_mulhi(a, b) + carried, p);
}

// x mod p, canonical, for any x.
FH_INLINE u64 u64_reduce(u64 x, u64 p, u64 ratio_hi) {
    return u64_sub_once(x - fh_mulhi(x, ratio_hi) * p, p);
}

// a * b mod p, canonical, for any a and b below 2^64.
FH_INLINE u64 u64_mul(u64 a, u64 b, u64 p, u64 ratio_lo, u64 ratio_hi) {
    return u64_reduce_wide(a * b, fh_mulhi(a, b), p, ratio_lo, ratio_hi);
}

// The canonical residue mod p of x in [0, q), taken in (-q/2, q/2), for an odd q.
FH_INLINE u64 u64_recenter(u64 x, u64 q, u64 p, u64 ratio_hi) {
    if (x <= q / 2) return u64_reduce(x, p, ratio_hi);
    u64 r = u64_reduce(q - x, p, ratio_hi);
    return r == 0 ? 0 : p - r;
}

#endif
