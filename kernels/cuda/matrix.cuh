// Base conversion as a product of matrices on the FP64 tensor cores (sm_80 and later), exactly.
//
// The lift of a coefficient modulo p is the sum of y_i M_i over sources i, M_i = Q/q_i mod p, and
// of -v Q, to which a merged rescale adds its rest times Q: one more source, the rest less v, with
// the multiplier Q. Each y is cut into y1 2^25 + y0 and each multiplier M, as well as M 2^25 mod p,
// into m1 2^25 + m0, all pieces centred: then the sum is H 2^25 + L mod p, H and L being sums of
// products of pieces, integers of at most 2^48 each. Up to 32 of them stay within 2^53, where
// double precision is exact in any order.
//
// Pieces come in eights: the low ones of four sources, then their high ones, so that a lane of a
// warp cuts whole sources. A target has a row of multipliers: m1 and m0 of each piece.
#ifndef FHELIUM_MATRIX_CUH
#define FHELIUM_MATRIX_CUH

#include "convert.cuh"

// Pieces in one step of the matrix unit, the most steps that it takes at once, and the coefficients of
// one of its products.
constexpr int STEP = 4, GROUP = 4, PRODUCT_COEFFICIENTS = 8;

// A warp's tile: for each half (H, L) several 8 x 8 products. Lane l holds, of target l / 4 and of
// the eight coefficients of each product, 2 (l % 4) and the next.
template <int PRODUCTS>
struct Tile {
    double sums[2][PRODUCTS][2];
};

#ifdef __CUDACC__

// Adds the products of four steps or two. Lane l brings, for each step, the multiplier's pieces m1 and m0
// of target l / 4 and piece l % 4, and piece l % 4 of coefficient l / 4 of each product. Where the
// matrix unit takes sixteen rows, the first eight are the m1 and the others the m0.
template <int STEPS, int PRODUCTS>
__device__ __forceinline__ void multiply_steps(Tile<PRODUCTS>& tile, const double (&m)[STEPS][2],
                                               const double (&pieces)[STEPS][PRODUCTS]) {
#pragma unroll
    for (int j = 0; j < PRODUCTS; ++j) {
        double(&high)[2] = tile.sums[0][j];
        double(&low)[2] = tile.sums[1][j];
#if __CUDA_ARCH__ >= 900
        if constexpr (STEPS == 4)
            asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
                "{%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, "
                "{%0, %1, %2, %3};"
                : "+d"(high[0]), "+d"(high[1]), "+d"(low[0]), "+d"(low[1])
                : "d"(m[0][0]), "d"(m[0][1]), "d"(m[1][0]), "d"(m[1][1]), "d"(m[2][0]),
                  "d"(m[2][1]), "d"(m[3][0]), "d"(m[3][1]), "d"(pieces[0][j]), "d"(pieces[1][j]),
                  "d"(pieces[2][j]), "d"(pieces[3][j]));
        else
            asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
                "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+d"(high[0]), "+d"(high[1]), "+d"(low[0]), "+d"(low[1])
                : "d"(m[0][0]), "d"(m[0][1]), "d"(m[1][0]), "d"(m[1][1]), "d"(pieces[0][j]),
                  "d"(pieces[1][j]));
#else
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+d"(high[0]), "+d"(high[1])
                : "d"(m[step][0]), "d"(pieces[step][j]));
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+d"(low[0]), "+d"(low[1])
                : "d"(m[step][1]), "d"(pieces[step][j]));
        }
#endif
    }
}

#else

// One product of one step.
void multiply_step(double (&high)[2], double (&low)[2], double m1, double m0, double piece);

template <int STEPS, int PRODUCTS>
inline void multiply_steps(Tile<PRODUCTS>& tile, const double (&m)[STEPS][2],
                           const double (&pieces)[STEPS][PRODUCTS]) {
    for (int j = 0; j < PRODUCTS; ++j)
        for (int step = 0; step < STEPS; ++step)
            multiply_step(tile.sums[0][j], tile.sums[1][j], m[step][0], m[step][1], pieces[step][j]);
}

#endif

// A target's multipliers of some steps, of which a lane has a piece each.
template <int STEPS>
__device__ __forceinline__ void load_multipliers(double (&m)[STEPS][2], const u64* row, u32 first_step) {
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
        const u32 piece = (first_step + s) * STEP + threadIdx.x % 4;
        const ulonglong2 both = *reinterpret_cast<const ulonglong2*>(row + 2 * piece);
        m[s][0] = fh_from_bits(both.x);
        m[s][1] = fh_from_bits(both.y);
    }
}

// An integer |y| <= 2^51 as hi 2^25 + lo, both centred, each with 2^31 added in half a word.
__device__ __forceinline__ u64 pack(double y) {
    const double rounded = FH_FMA(y, 1.0 / 33554432.0, FH_ROUND);
    const double lo = FH_FMA(-FH_ADD(rounded, -FH_ROUND), 33554432.0, y);
    // The low bits of FH_ROUND + x are those of the integer x.
    const u64 low = (u32)fh_to_bits(FH_ADD(lo, FH_ROUND)), high = (u32)fh_to_bits(rounded);
    return (high << 32 | low) ^ 0x8000000080000000ull;
}
__device__ __forceinline__ void unpack(u64 word, double& hi, double& lo) {
    const double zero = FH_TWO52 + 2147483648.0;
    lo = FH_ADD(fh_from_bits(FH_TWO52_BITS | (word & 0xFFFFFFFFull)), -zero);
    hi = FH_ADD(fh_from_bits(FH_TWO52_BITS | word >> 32), -zero);
}

// H 2^25 + L modulo p, reduced. Since the multipliers are below p/2, the quotient is below 2^30; what it
// leaves of H 2^25 is about -L, and like L, whose larger pieces meet smaller ones, below 2^53: exact.
__device__ __forceinline__ double join(double high, double low, double p, double inv_p) {
    const double two25 = 33554432.0;
    const double q = FH_ADD(FH_FMA(FH_FMA(high, two25, low), inv_p, FH_ROUND), -FH_ROUND);
    return FH_ADD(FH_FMA(-q, p, FH_MUL(high, two25)), low);
}

// The sources of a block stand in shared memory, a row each, padded for its banks.
template <u32 COEFFICIENTS>
constexpr u32 PADDED_ROW = COEFFICIENTS + 4;
// Products that a warp computes at once: more would fill the registers, and fewer warps run.
constexpr int PRODUCTS = 2;
constexpr u32 AT_ONCE = PRODUCTS * PRODUCT_COEFFICIENTS;

// The last source of a thread's coefficient, and nothing in the rows of sources that are not there.
template <u32 ROW>
__device__ __forceinline__ void pack_last(u64* own, u32 count, double last, u32 rows) {
    own[count * ROW] = pack(last);
    for (u32 i = count + 1; i < rows; ++i) own[i * ROW] = pack(0.0);
}

// Cuts a thread's coefficient over a digit's primes, canonical doubles, in place.
template <u32 ROW>
__device__ __forceinline__ void pack_up(u64* own, const Prime* primes, u32 pieces, const Targets& targets) {
    Quotient quotient;
#pragma unroll 2
    for (u32 i = 0; i < targets.own_count; ++i)
        own[i * ROW] = pack(quotient.add(own[i * ROW], primes[targets.own + i]));
    pack_last<ROW>(own, targets.own_count, -quotient.value(), pieces / 2);
}

// The same over the special primes, behind which the dropped limb's word stands if there is one.
template <u32 ROW>
__device__ __forceinline__ void pack_down(u64* own, const Prime* primes, const ModDown& args) {
    const Prime* specials = primes + args.special_first;
    const u64* rest_row = args.rest_factors + (u64)args.basis.limbs * (args.specials + 2);
    const Prime& q = primes[args.basis.limbs];
    Quotient quotient;
    double hi = FH_SUM_BASE, lo = 0.0;
#pragma unroll 4
    for (u32 i = 0; i < args.specials; ++i) {
        const double y = quotient.add(own[i * ROW], specials[i]);
        own[i * ROW] = pack(y);
        if (args.dropped == 0) continue;
        if (i == 10) {
            lo = f64_sum_reduce(hi, lo, q.p_f64, q.inv_p);
            hi = FH_SUM_BASE;
        }
        f64_sum_add(&hi, &lo, y, fh_from_bits(__ldg(rest_row + i)));
    }
    double last = -quotient.value();
    if (args.dropped != 0) {
        f64_sum_add(&hi, &lo, quotient.value(), fh_from_bits(__ldg(rest_row + args.specials)));
        const double lifted = f64_sum_reduce(hi, lo, q.p_f64, q.inv_p);
        last = FH_ADD(last, rest_of(lifted, own[args.specials * ROW], args.p_inverse, q));
    }
    pack_last<ROW>(own, args.specials, last, args.row / 2);
}

// Adds the products of some steps; two have four sources, of which a lane has one.
template <u32 ROW, int STEPS>
__device__ __forceinline__ void multiply_sources(Tile<PRODUCTS>& tile, const u64* column,
                                                 const u64* multipliers, u32 step) {
    double m[STEPS][2], values[STEPS][PRODUCTS];
    load_multipliers(m, multipliers, step);
#pragma unroll
    for (int s = 0; s < STEPS; s += 2) {
#pragma unroll
        for (int j = 0; j < PRODUCTS; ++j)
            unpack(column[s / 2 * STEP * ROW + PRODUCT_COEFFICIENTS * j], values[s + 1][j],
                   values[s][j]);
    }
    multiply_steps(tile, m, values);
}

// A warp's tile of targets, from its coefficients' sources, cut. MULTIPLIERS(target of the tile, limb) is
// the target's row. STORE(target of the tile, limb, index of coefficient in the block, two reduced doubles),
// of which four lanes together fill whole sectors.
template <u32 ROW, class Multipliers, class Store>
__device__ __forceinline__ void multiply_tile(const u64* sources, u32 pieces, u32 tile_index,
                                              const Prime* primes, const Basis& basis,
                                              const Targets& targets, Multipliers multipliers,
                                              Store store) {
    const u32 lane = threadIdx.x % 32;
    const u32 target = tile_index * TILE_TARGETS + lane / 4;
    // A tile may hang over; what is computed there is not stored.
    const u32 limb = targets.limb(min(target, targets.count - 1));
    const u64* row = multipliers(lane / 4, limb);
    const u32 warp_first = threadIdx.x / 32 * 32;
#pragma unroll 1
    for (u32 first = warp_first; first < warp_first + 32; first += AT_ONCE) {
        Tile<PRODUCTS> tile = {};
        const u64* column = sources + (lane % 4) * ROW + first + lane / 4;
        const u32 steps = pieces / STEP;
        u32 step = 0;
#pragma unroll 1
        for (; step + GROUP <= steps; step += GROUP)
            multiply_sources<ROW, GROUP>(tile, column + step / 2 * STEP * ROW, row, step);
        if (step < steps)
            multiply_sources<ROW, GROUP / 2>(tile, column + step / 2 * STEP * ROW, row, step);
        if (target >= targets.count) continue;
        const Prime& prime = primes[prime_of(basis, limb)];
        const double p = prime.p_f64, inv_p = prime.inv_p;
#pragma unroll
        for (int j = 0; j < PRODUCTS; ++j) {
            u64 words[2];
#pragma unroll
            for (int i = 0; i < 2; ++i)
                words[i] = fh_to_bits(join(tile.sums[0][j][i], tile.sums[1][j][i], p, inv_p));
            store(lane / 4, limb, first + PRODUCT_COEFFICIENTS * j + lane % 4 * 2, words[0], words[1]);
        }
    }
}

#endif
