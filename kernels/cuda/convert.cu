// Base conversion: coefficients from one set of primes to another, by their exact centred lift.
//
// S. Halevi, Y. Polyakov, V. Shoup, "An Improved RNS Variant of the BFV Homomorphic Encryption
// Scheme", CT-RSA 2019, section 2.2. The sources come already multiplied by (Q/q_i)^-1. The
// quotient v is summed in double precision with the host's very operations, in its order, so that
// both round alike; all else is exact.
//
// Grids: (pairs of coefficients, chunks of targets, polynomials). A thread converts two
// neighbouring coefficients to every target of its chunk.

#include "launch.cuh"

namespace {

constexpr int THREADS = 128;
// What a sum of 64-bit products takes before it is reduced.
constexpr u32 WIDE_TERMS = 32;

struct Pair {
    u64 x, y;
};

__device__ __forceinline__ Pair load_pair(const u64* source) {
    ulonglong2 both = *reinterpret_cast<const ulonglong2*>(source);
    return Pair{both.x, both.y};
}
__device__ __forceinline__ void store_pair(u64* target, u64 x, u64 y) {
    *reinterpret_cast<ulonglong2*>(target) = make_ulonglong2(x, y);
}

// Two coefficients over the source primes: y_i, centred in FAST, and the quotient v that goes with
// that. COUNT sources in registers; 0 leaves them in memory.
template <int COUNT, Mode MODE>
struct Sources;

template <int COUNT>
struct Sources<COUNT, FAST> {
    double y[COUNT == 0 ? 1 : COUNT][2], v[2];
    const u64* words;
    const Prime* primes;
    u32 count, log_n;

    static __device__ __forceinline__ double take(u64 word, const Prime& q, double& sum, double& above) {
        double canonical = fh_from_bits(word);
        sum = FH_ADD(sum, FH_MUL(canonical, q.inv_p));
        double centred = f64_center(canonical, q.p_f64);
        if (centred < 0.0) above = FH_ADD(above, 1.0);
        return centred;
    }
    __device__ __forceinline__ void open(const u64* source, const Prime* q, u32 sources, u32 n) {
        words = source, primes = q, count = sources, log_n = n;
        double sum[2] = {0.0, 0.0}, above[2] = {0.0, 0.0};
        if constexpr (COUNT == 0) {
            for (u32 i = 0; i < count; ++i) {
                Pair pair = load_pair(words + ((u64)i << log_n));
                take(pair.x, primes[i], sum[0], above[0]);
                take(pair.y, primes[i], sum[1], above[1]);
            }
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                y[i][0] = y[i][1] = 0.0;
                if (i < count) {
                    Pair pair = load_pair(words + ((u64)i << log_n));
                    y[i][0] = take(pair.x, primes[i], sum[0], above[0]);
                    y[i][1] = take(pair.y, primes[i], sum[1], above[1]);
                }
            }
        }
#pragma unroll
        for (int c = 0; c < 2; ++c)
            v[c] = FH_ADD(FH_ADD(FH_ADD(sum[c], FH_ROUND), -FH_ROUND), -above[c]);
    }
    // The lift modulo p, plus extra[c] times the factor that follows the row's; reduced doubles.
    // A row holds the factor of each source, zeros up to COUNT, that of v, and that of the extra.
    __device__ __forceinline__ void lift(double (&out)[2], const u64* row, const Prime& p,
                                         const double (&extra)[2], bool has_extra) const {
        double hi[2] = {FH_SUM_BASE, FH_SUM_BASE}, lo[2] = {0.0, 0.0};
        const u32 length = COUNT == 0 ? count : COUNT;
        if constexpr (COUNT == 0) {
            double ignored = 0.0;
            for (u32 i = 0; i < count; ++i) {
                if (i != 0 && i % 10 == 0) fold(hi, lo, p);
                Pair pair = load_pair(words + ((u64)i << log_n));
                double w = fh_from_bits(row[i]);
                f64_sum_add(&hi[0], &lo[0], take(pair.x, primes[i], ignored, ignored), w);
                f64_sum_add(&hi[1], &lo[1], take(pair.y, primes[i], ignored, ignored), w);
            }
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                if (i == 8 && COUNT + 2 > FH_SUM_TERMS) fold(hi, lo, p);
                double w = fh_from_bits(row[i]);
                f64_sum_add(&hi[0], &lo[0], y[i][0], w);
                f64_sum_add(&hi[1], &lo[1], y[i][1], w);
            }
        }
        double w = fh_from_bits(row[length]);
        double u = has_extra ? fh_from_bits(row[length + 1]) : 0.0;
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            f64_sum_add(&hi[c], &lo[c], v[c], w);
            if (has_extra) f64_sum_add(&hi[c], &lo[c], extra[c], u);
            out[c] = f64_sum_reduce(hi[c], lo[c], p.p_f64, p.inv_p);
        }
    }
    static __device__ __forceinline__ void fold(double (&hi)[2], double (&lo)[2], const Prime& p) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            lo[c] = f64_sum_reduce(hi[c], lo[c], p.p_f64, p.inv_p);
            hi[c] = FH_SUM_BASE;
        }
    }
};

template <int COUNT>
struct Sources<COUNT, WIDE> {
    u64 y[COUNT == 0 ? 1 : COUNT][2], v[2];
    const u64* words;
    u32 count, log_n;

    __device__ __forceinline__ void open(const u64* source, const Prime* primes, u32 sources, u32 n) {
        words = source, count = sources, log_n = n;
        double sum[2] = {0.0, 0.0};
        if constexpr (COUNT == 0) {
            for (u32 i = 0; i < count; ++i) {
                Pair pair = load_pair(words + ((u64)i << log_n));
                sum[0] = FH_ADD(sum[0], FH_MUL((double)pair.x, primes[i].inv_p));
                sum[1] = FH_ADD(sum[1], FH_MUL((double)pair.y, primes[i].inv_p));
            }
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                y[i][0] = y[i][1] = 0;
                if (i < count) {
                    Pair pair = load_pair(words + ((u64)i << log_n));
                    y[i][0] = pair.x;
                    y[i][1] = pair.y;
                    sum[0] = FH_ADD(sum[0], FH_MUL((double)pair.x, primes[i].inv_p));
                    sum[1] = FH_ADD(sum[1], FH_MUL((double)pair.y, primes[i].inv_p));
                }
            }
        }
#pragma unroll
        for (int c = 0; c < 2; ++c) v[c] = (u64)FH_ADD(FH_ADD(sum[c], FH_ROUND), -FH_ROUND);
    }
    // As in FAST, canonical.
    __device__ __forceinline__ void lift(u64 (&out)[2], const u64* row, const Prime& p,
                                         const u64 (&extra)[2], bool has_extra) const {
        u64 lo[2] = {0, 0}, hi[2] = {0, 0};
        const u32 length = COUNT == 0 ? count : COUNT;
        if constexpr (COUNT == 0) {
            for (u32 i = 0; i < count; ++i) {
                if (i != 0 && i % WIDE_TERMS == 0) fold(lo, hi, p);
                Pair pair = load_pair(words + ((u64)i << log_n));
                u64_sum_add(&lo[0], &hi[0], pair.x, row[i]);
                u64_sum_add(&lo[1], &hi[1], pair.y, row[i]);
            }
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                u64_sum_add(&lo[0], &hi[0], y[i][0], row[i]);
                u64_sum_add(&lo[1], &hi[1], y[i][1], row[i]);
            }
        }
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            u64_sum_add(&lo[c], &hi[c], v[c], row[length]);
            if (has_extra) u64_sum_add(&lo[c], &hi[c], extra[c], row[length + 1]);
            out[c] = u64_reduce_wide(lo[c], hi[c], p.p, p.ratio_lo, p.ratio_hi);
        }
    }
    static __device__ __forceinline__ void fold(u64 (&lo)[2], u64 (&hi)[2], const Prime& p) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            lo[c] = u64_reduce_wide(lo[c], hi[c], p.p, p.ratio_lo, p.ratio_hi);
            hi[c] = 0;
        }
    }
};

// Each digit of a polynomial to the level's other primes and the special ones.
struct ModUp {
    const Prime* primes;
    const u64* source;   // [polynomial][level limbs][N]
    u64* target;         // [polynomial][digit][limbs][N], a digit's own limbs left alone
    const u64* factors;  // [digit][limbs][sources + 1]
    u64 source_stride;
    u64 target_stride;  // of one digit
    Basis basis;
    u32 log_n;
    u32 digits;
    u32 digit_size;
    u32 digit_limbs;  // the level's
    u32 chunk;        // targets a block serves
    u32 row;          // words in a row of factors
};
static_assert(sizeof(ModUp) == 88, "src/kernels/convert.rs has the same layout");

// A block's rows of factors, in shared memory.
__device__ __forceinline__ void load_rows(u64* shared, const u64* factors, u32 words) {
    for (u32 i = threadIdx.x; i < words; i += THREADS) shared[i] = __ldg(factors + i);
    __syncthreads();
}

template <int COUNT, Mode MODE>
__device__ __forceinline__ void mod_up(const ModUp& args) {
    FH_SHARED(rows);
    const u32 at = (blockIdx.x * THREADS + threadIdx.x) * 2;
    const u32 digit = blockIdx.z % args.digits, poly = blockIdx.z / args.digits;
    const u32 start = blockIdx.y * args.chunk;
    const u32 end = min(start + args.chunk, args.basis.limbs);
    const u32 own = digit * args.digit_size;
    const u32 count = min(args.digit_size, args.digit_limbs - own);
    load_rows(rows, args.factors + ((u64)digit * args.basis.limbs + start) * args.row,
              (end - start) * args.row);
    Sources<COUNT, MODE> sources;
    sources.open(args.source + poly * args.source_stride + ((u64)own << args.log_n) + at,
                 args.primes + own, count, args.log_n);
    u64* target = args.target + blockIdx.z * args.target_stride + at;
    for (u32 limb = start; limb < end; ++limb) {
        if (limb - own < count) continue;
        const Prime& prime = args.primes[prime_of(args.basis, limb)];
        const u64* row = rows + (limb - start) * args.row;
        u64* out = target + ((u64)limb << args.log_n);
        if constexpr (MODE == FAST) {
            double lifted[2];
            const double none[2] = {0.0, 0.0};
            sources.lift(lifted, row, prime, none, false);
            store_pair(out, fh_to_bits(lifted[0]), fh_to_bits(lifted[1]));
        } else {
            u64 lifted[2];
            const u64 none[2] = {0, 0};
            sources.lift(lifted, row, prime, none, false);
            store_pair(out, lifted[0], lifted[1]);
        }
    }
}

// The special limbs of a polynomial over QP to the level's primes: what a mod-down subtracts. With
// a rescale merged in, the source has one limb more, of the prime q that the rescale drops, and
// what is subtracted has P r added, r being the centred residue modulo q of the mod-down's result:
// rounded twice as the two operations are, in one conversion.
struct ModDown {
    const Prime* primes;
    const u64* source;   // [polynomial][specials, then the dropped limb][N]
    u64* target;         // [polynomial][limbs][N]
    const u64* factors;  // [limbs, then the dropped prime][sources + 2]
    u64 source_stride;
    u64 target_stride;
    Factor p_inverse;  // 1/P modulo the dropped prime
    Basis basis;       // of the target
    u32 log_n;
    u32 special_first;  // index of the first special prime
    u32 specials;
    u32 dropped;  // 1 with a rescale, whose prime is the one behind the target's limbs
    u32 chunk;
    u32 row;
};
static_assert(sizeof(ModDown) == 104, "src/kernels/convert.rs has the same layout");

template <int COUNT, Mode MODE>
__device__ __forceinline__ void mod_down(const ModDown& args) {
    FH_SHARED(rows);
    const u32 at = (blockIdx.x * THREADS + threadIdx.x) * 2;
    const u32 start = blockIdx.y * args.chunk;
    const u32 end = min(start + args.chunk, args.basis.limbs);
    u64* dropped_row = rows + args.chunk * args.row;
    if (args.dropped != 0)
        for (u32 i = threadIdx.x; i < args.row; i += THREADS)
            dropped_row[i] = __ldg(args.factors + (u64)args.basis.limbs * args.row + i);
    load_rows(rows, args.factors + (u64)start * args.row, (end - start) * args.row);
    const u64* source = args.source + blockIdx.z * args.source_stride + at;
    Sources<COUNT, MODE> sources;
    sources.open(source, args.primes + args.special_first, args.specials, args.log_n);
    const Prime& q = args.primes[args.basis.limbs];
    u64* target = args.target + blockIdx.z * args.target_stride + at;
    if constexpr (MODE == FAST) {
        double rest[2] = {0.0, 0.0}, lifted[2];
        if (args.dropped != 0) {
            Pair last = load_pair(source + ((u64)args.specials << args.log_n));
            sources.lift(lifted, dropped_row, q, rest, false);
            const double w = fh_from_bits(args.p_inverse.w);
            const double x[2] = {fh_from_bits(last.x), fh_from_bits(last.y)};
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                double r = f64_mul(FH_ADD(x[c], -lifted[c]), w, q.p_f64, q.inv_p);
                rest[c] = f64_center(f64_canonical(r, q.p_f64, q.inv_p), q.p_f64);
            }
        }
        for (u32 limb = start; limb < end; ++limb) {
            sources.lift(lifted, rows + (limb - start) * args.row, args.primes[limb], rest,
                         args.dropped != 0);
            store_pair(target + ((u64)limb << args.log_n), fh_to_bits(lifted[0]),
                       fh_to_bits(lifted[1]));
        }
    } else {
        u64 rest[2] = {0, 0}, lifted[2];
        if (args.dropped != 0) {
            Pair last = load_pair(source + ((u64)args.specials << args.log_n));
            sources.lift(lifted, dropped_row, q, rest, false);
            const u64 x[2] = {last.x, last.y};
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                u64 difference = u64_sub(x[c], lifted[c], q.p);
                rest[c] = u64_mul_shoup(difference, args.p_inverse.w, args.p_inverse.shoup, q.p);
            }
        }
        for (u32 limb = start; limb < end; ++limb) {
            const Prime& prime = args.primes[limb];
            u64 extra[2];
#pragma unroll
            for (int c = 0; c < 2; ++c)
                extra[c] = u64_recenter(rest[c], q.p, prime.p, prime.ratio_hi);
            sources.lift(lifted, rows + (limb - start) * args.row, prime, extra, args.dropped != 0);
            store_pair(target + ((u64)limb << args.log_n), lifted[0], lifted[1]);
        }
    }
}

}  // namespace

#define CONVERT(COUNT, SUFFIX, MODE)                                                           \
    FH_KERNEL(mod_up_##COUNT##_##SUFFIX, THREADS, 4, ModUp, (mod_up<COUNT, MODE>))                \
    FH_KERNEL(mod_down_##COUNT##_##SUFFIX, THREADS, 4, ModDown, (mod_down<COUNT, MODE>))

CONVERT(1, fast, FAST)
CONVERT(2, fast, FAST)
CONVERT(3, fast, FAST)
CONVERT(4, fast, FAST)
CONVERT(5, fast, FAST)
CONVERT(6, fast, FAST)
CONVERT(7, fast, FAST)
CONVERT(8, fast, FAST)
CONVERT(10, fast, FAST)
CONVERT(12, fast, FAST)
CONVERT(14, fast, FAST)
CONVERT(16, fast, FAST)
CONVERT(0, fast, FAST)
CONVERT(2, wide, WIDE)
CONVERT(4, wide, WIDE)
CONVERT(8, wide, WIDE)
CONVERT(0, wide, WIDE)
