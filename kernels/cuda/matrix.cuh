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

#include "core.cuh"

// Pieces in one step of the matrix unit, the most steps that it takes at once, targets of one tile, and
// the coefficients of one of its products.
constexpr int STEP = 4, GROUP = 4, TILE_TARGETS = 8, PRODUCT_COEFFICIENTS = 8;

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

// A lane's multipliers of some steps, from a target's row.
template <int STEPS>
__device__ __forceinline__ void load_multipliers(double (&m)[STEPS][2], const u64* row, u32 first_step) {
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
        const u32 piece = (first_step + s) * STEP + threadIdx.x % 4;
        const ulonglong2 both = __ldg(reinterpret_cast<const ulonglong2*>(row + 2 * piece));
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

// H 2^25 + L modulo p, reduced, given 2^25 modulo p.
__device__ __forceinline__ double two25_of(const Prime& p) {
    return f64_reduce(33554432.0, p.p_f64, p.inv_p);
}
__device__ __forceinline__ double join(double high, double low, double two25, double p, double inv_p) {
    return f64_reduce(FH_ADD(f64_mul(high, two25, p, inv_p), low), p, inv_p);
}

#endif
