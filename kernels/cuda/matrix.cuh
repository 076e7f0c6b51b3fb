// Base conversion as a product of matrices on the FP64 tensor cores (sm_80 and later), exactly.
//
// The lift of a coefficient modulo p is the sum of y_i M_i over sources i, M_i = Q/q_i mod p, and
// of -v Q. Each y is cut into y1 2^25 + y0 and each multiplier M, as well as M 2^25 mod p, into
// m1 2^25 + m0, all pieces centred: then the sum is H 2^25 + L mod p, H and L being sums of
// products of pieces, integers of at most 2^48 each. Up to 32 of them stay within 2^53, where
// double precision is exact in any order.
#ifndef FHELIUM_MATRIX_CUH
#define FHELIUM_MATRIX_CUH

#include "core.cuh"

// Pieces in one step of the matrix unit, steps that it takes at once, targets and coefficients of one
// tile.
constexpr int STEP = 4, GROUP = 4, TILE_TARGETS = 8, TILE_COEFFICIENTS = 32;

// A warp's tile: for each half (H, L) four 8 x 8 products. Lane l holds, of target l / 4 and of the
// eight coefficients of each product, 2 (l % 4) and the next.
struct Tile {
    double sums[2][4][2];
};

#ifdef __CUDACC__

// Adds the products of GROUP steps. Lane l brings, for each step, the multiplier's pieces m1 and m0
// of target l / 4 and piece l % 4, and piece l % 4 of coefficient l / 4 of each product. Where the
// matrix unit takes sixteen rows, the first eight are the m1 and the others the m0.
__device__ __forceinline__ void multiply_steps(Tile& tile, const double (&m)[GROUP][2],
                                               const double (&pieces)[GROUP][4]) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        double(&high)[2] = tile.sums[0][j];
        double(&low)[2] = tile.sums[1][j];
#if __CUDA_ARCH__ >= 900
        asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, "
            "{%0, %1, %2, %3};"
            : "+d"(high[0]), "+d"(high[1]), "+d"(low[0]), "+d"(low[1])
            : "d"(m[0][0]), "d"(m[0][1]), "d"(m[1][0]), "d"(m[1][1]), "d"(m[2][0]), "d"(m[2][1]),
              "d"(m[3][0]), "d"(m[3][1]), "d"(pieces[0][j]), "d"(pieces[1][j]),
              "d"(pieces[2][j]), "d"(pieces[3][j]));
#else
#pragma unroll
        for (int step = 0; step < GROUP; ++step) {
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

void multiply_step(Tile& tile, double m1, double m0, const double (&pieces)[4]);

inline void multiply_steps(Tile& tile, const double (&m)[GROUP][2],
                           const double (&pieces)[GROUP][4]) {
    for (int step = 0; step < GROUP; ++step)
        multiply_step(tile, m[step][0], m[step][1], pieces[step]);
}

#endif

// y = hi 2^25 + lo, both centred, for an integer |y| <= 2^51.
__device__ __forceinline__ void cut(double y, double& hi, double& lo) {
    hi = FH_ADD(FH_FMA(y, 1.0 / 33554432.0, FH_ROUND), -FH_ROUND);
    lo = FH_FMA(-hi, 33554432.0, y);
}

// H 2^25 + L modulo p, reduced.
__device__ __forceinline__ double join(double high, double low, const Prime& p) {
    const double two25 = f64_reduce(33554432.0, p.p_f64, p.inv_p);
    return f64_reduce(FH_ADD(f64_mul(high, two25, p.p_f64, p.inv_p), low), p.p_f64, p.inv_p);
}

#endif
