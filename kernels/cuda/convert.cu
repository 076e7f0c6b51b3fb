// Base conversions by themselves; convert_a.cu and convert_columns.cu have those with transforms.
//
// Grids: (tiles of coefficients, chunks of targets, polynomials). In FAST the sums are products of
// matrices, see matrix.cuh, where the sources are few enough for them; else a thread converts two
// neighbouring coefficients to every target of its chunk.

#include "async.cuh"
#include "convert.cuh"
#include "launch.cuh"
#include "matrix.cuh"

namespace {

constexpr int THREADS = 128;
// What a sum of 64-bit products takes before it is reduced.
constexpr u32 WIDE_TERMS = 32;

// Two coefficients over the source primes, and their quotients. COUNT sources in registers; 0
// leaves them in memory.
template <int COUNT, Mode MODE>
struct Sources;

template <>
struct Sources<0, FAST> {
    double v[2];
    const u64* words;
    const Prime* primes;
    u32 count, log_n;

    __device__ __forceinline__ void open(const u64* source, const Prime* q, u32 sources, u32 n) {
        words = source, primes = q, count = sources, log_n = n;
        Quotient quotient[2];
        for (u32 i = 0; i < count; ++i) {
            Pair pair = load_pair(words + ((u64)i << log_n));
            quotient[0].add(pair.x, primes[i]);
            quotient[1].add(pair.y, primes[i]);
        }
        v[0] = quotient[0].value();
        v[1] = quotient[1].value();
    }
    // The lift modulo p, plus extra[c] times the factor that follows the row's; reduced doubles.
    // A row holds the factor of each source, that of v, and that of the extra.
    __device__ __forceinline__ void lift(double (&out)[2], const u64* row, const Prime& p,
                                         const double (&extra)[2], bool has_extra) const {
        double hi[2] = {FH_SUM_BASE, FH_SUM_BASE}, lo[2] = {0.0, 0.0};
        for (u32 i = 0; i < count; ++i) {
            if (i != 0 && i % 10 == 0) {
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    lo[c] = f64_sum_reduce(hi[c], lo[c], p.p_f64, p.inv_p);
                    hi[c] = FH_SUM_BASE;
                }
            }
            Pair pair = load_pair(words + ((u64)i << log_n));
            double w = fh_from_bits(row[i]);
            const double q = primes[i].p_f64;
            f64_sum_add(&hi[0], &lo[0], f64_center(fh_from_bits(pair.x), q), w);
            f64_sum_add(&hi[1], &lo[1], f64_center(fh_from_bits(pair.y), q), w);
        }
        double w = fh_from_bits(row[count]);
        double u = has_extra ? fh_from_bits(row[count + 1]) : 0.0;
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            f64_sum_add(&hi[c], &lo[c], v[c], w);
            if (has_extra) f64_sum_add(&hi[c], &lo[c], extra[c], u);
            out[c] = f64_sum_reduce(hi[c], lo[c], p.p_f64, p.inv_p);
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
            rest[0] = rest_of(lifted[0], last.x, args.p_inverse, q);
            rest[1] = rest_of(lifted[1], last.y, args.p_inverse, q);
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

// ------------------------------------------------------------------------------- matrices

// Coefficients of a block, one for each thread.
constexpr u32 COEFFICIENTS = 128, SOURCE_ROW = PADDED_ROW<COEFFICIENTS>;

// Fetches a thread's coefficient over `count` sources, all at once.
__device__ __forceinline__ void fetch_sources(u64* own, const u64* source, u32 count, u32 log_n) {
    for (u32 i = 0; i < count; ++i)
        copy_async_8(own + i * SOURCE_ROW, source + ((u64)i << log_n));
    copy_async_commit();
    copy_async_wait<0>();
}

__device__ __forceinline__ void mod_up_matrix(const ModUp& args) {
    FH_SHARED(sources);
    const u32 digit = blockIdx.z % args.digits, poly = blockIdx.z / args.digits;
    const Targets targets = targets_of(args, digit);
    const u32 tiles = targets.tiles(), end = min((blockIdx.y + 1) * args.chunk, tiles);
    // Digits of fewer primes have more targets.
    if (blockIdx.y * args.chunk >= end) return;
    u64* own = sources + threadIdx.x;
    fetch_sources(own,
                  args.source + poly * args.source_stride + ((u64)targets.own << args.log_n) +
                      blockIdx.x * COEFFICIENTS + threadIdx.x,
                  targets.own_count, args.log_n);
    pack_up<SOURCE_ROW>(own, args.primes, args.row, targets);
    __syncwarp();
    const u64* factors = args.factors + (u64)digit * args.basis.limbs * (2 * args.row);
    u64* target = args.target + blockIdx.z * args.target_stride + blockIdx.x * COEFFICIENTS;
#pragma unroll 1
    for (u32 tile = blockIdx.y * args.chunk; tile < end; ++tile)
        multiply_tile<SOURCE_ROW>(
            sources, args.row, tile, args.primes, args.basis, targets,
            [&](u32, u32 limb) { return factors + (u64)limb * (2 * args.row); },
            [&](u32, u32 limb, u32 coefficient, u64 x, u64 y) {
                store_pair(target + ((u64)limb << args.log_n) + coefficient, x, y);
            });
}

__device__ __forceinline__ void mod_down_matrix(const ModDown& args) {
    FH_SHARED(sources);
    const u64* source = args.source + blockIdx.z * args.source_stride +
                        blockIdx.x * COEFFICIENTS + threadIdx.x;
    u64* own = sources + threadIdx.x;
    fetch_sources(own, source, args.specials + args.dropped, args.log_n);
    pack_down<SOURCE_ROW>(own, args.primes, args);
    __syncwarp();
    u64* target = args.target + blockIdx.z * args.target_stride + blockIdx.x * COEFFICIENTS;
    const Targets targets = targets_of(args);
    const u32 end = min((blockIdx.y + 1) * args.chunk, targets.tiles());
#pragma unroll 1
    for (u32 tile = blockIdx.y * args.chunk; tile < end; ++tile)
        multiply_tile<SOURCE_ROW>(
            sources, args.row, tile, args.primes, args.basis, targets,
            [&](u32, u32 limb) { return args.factors + (u64)limb * (2 * args.row); },
            [&](u32, u32 limb, u32 coefficient, u64 x, u64 y) {
                store_pair(target + ((u64)limb << args.log_n) + coefficient, x, y);
            });
}

}  // namespace

#define CONVERT(COUNT, SUFFIX, MODE)                                               \
    FH_KERNEL(mod_up_##COUNT##_##SUFFIX, THREADS, 4, ModUp, (mod_up<COUNT, MODE>)) \
    FH_KERNEL(mod_down_##COUNT##_##SUFFIX, THREADS, 4, ModDown, (mod_down<COUNT, MODE>))

FH_KERNEL(mod_up_matrix_fast, COEFFICIENTS, 8 - FEWER, ModUp, mod_up_matrix)
FH_KERNEL(mod_down_matrix_fast, COEFFICIENTS, 8 - FEWER, ModDown, mod_down_matrix)
CONVERT(0, fast, FAST)
CONVERT(2, wide, WIDE)
CONVERT(4, wide, WIDE)
CONVERT(8, wide, WIDE)
CONVERT(0, wide, WIDE)
