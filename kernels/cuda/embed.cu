// The canonical embedding: messages to real coefficients and back, by a complex transform of length
// M = N/2, as fhelium-ckks' encoding/embedding.rs says.
//
// The transform is taken apart as R x C points, R = 2^ceil(log M / 2) (D. H. Bailey, "FFTs in
// external or hierarchical memory", 1990): for index a = C a1 + a2 and result b = b1 + R b2, columns
// of R points over a1, then the factor w^(a2 b1), then rows of C points over a2.
//
// Rounding. With u = 2^-53, a product costs 2u (C.-P. Jeannerod et al., "Error bounds on complex
// floating-point multiplication with an FMA", 2017), a sum u, and the tables are off by at most 10u:
// a layer of butterflies changes the 2-norm of what it should give by at most 13u of it, the products
// between and around the passes by at most 12u each, the last factor by u. So the result is within
// (13 log2 M + 37) u of its 2-norm.
//
// Grids: (tiles of LANES columns or rows, items).

#include "message.cuh"

namespace {

constexpr u32 THREADS = 256;
constexpr u32 LANES = 4;  // columns or rows of a block

struct __align__(16) Complex {
    double re, im;
};

__device__ __forceinline__ Complex conjugate(const Complex& x) { return Complex{x.re, -x.im}; }
__device__ __forceinline__ Complex times(const Complex& x, const Complex& w) {
    return Complex{FH_FMA(x.re, w.re, -FH_MUL(x.im, w.im)), FH_FMA(x.re, w.im, FH_MUL(x.im, w.re))};
}

// The tables of one ring degree.
struct Embedding {
    const Complex* twist;  // zeta^k, k < M
    const Complex* roots;  // exp(2 pi i k / M), k < M
    const u32* slots;      // the slot of index t of the transform
    u32 log_m;
    u32 unused;
    __device__ __forceinline__ u32 log_r() const { return (log_m + 1) / 2; }
    __device__ __forceinline__ u32 log_c() const { return log_m / 2; }
    // A root of unity to the given power, or its conjugate.
    template <bool TO_SLOTS>
    __device__ __forceinline__ Complex root(u32 power) const {
        const Complex w = roots[power];
        return TO_SLOTS ? w : conjugate(w);
    }
};

// Transforms 2^LOG points for each lane, tile[point][lane], in place, the results in bit-reversed
// order (W. M. Gentleman, G. Sande, "Fast Fourier transforms: for fun and profit", 1966).
template <bool TO_SLOTS>
__device__ __forceinline__ void transform(Complex* tile, const Embedding& embedding, u32 log) {
    const u32 lane = threadIdx.x % LANES;
    for (u32 log_half = log; log_half-- > 0;) {
        const u32 half = 1u << log_half;
        for (u32 b = threadIdx.x / LANES; b < 1u << (log - 1); b += THREADS / LANES) {
            const u32 j = b & (half - 1);
            Complex* u = tile + (2 * (b - j) + j) * LANES + lane;
            Complex* v = u + half * LANES;
            const Complex x = *u, y = *v;
            const Complex w = embedding.template root<TO_SLOTS>(j << (embedding.log_m - log_half - 1));
            *u = Complex{FH_ADD(x.re, y.re), FH_ADD(x.im, y.im)};
            *v = times(Complex{FH_ADD(x.re, -y.re), FH_ADD(x.im, -y.im)}, w);
        }
        __syncthreads();
    }
}

__device__ __forceinline__ u32 bit_reversed(u32 index, u32 log) { return __brev(index) >> (32 - log); }

struct Columns {
    Embedding embedding;
    const double* source;  // messages of `count` values, or coefficients [item][2][M]
    Complex* target;       // [item][M]
    Check check;           // of messages
    u32 count;
    u32 complex;  // whether messages are
};
static_assert(sizeof(Columns) == 88, "src/kernels/embed.rs has the same layout");

template <bool TO_SLOTS>
__device__ __forceinline__ void columns(const Columns& args) {
    FH_SHARED(scratch);
    Complex* tile = reinterpret_cast<Complex*>(scratch);
    const Embedding& embedding = args.embedding;
    const u32 log_r = embedding.log_r(), log_c = embedding.log_c(), m = 1u << embedding.log_m;
    const u32 lane = threadIdx.x % LANES, column = blockIdx.x * LANES + lane;
    for (u32 row = threadIdx.x / LANES; row < 1u << log_r; row += THREADS / LANES) {
        const u32 at = (row << log_c) + column;
        Complex value = Complex{0.0, 0.0};
        if constexpr (TO_SLOTS) {
            const double* coefficients = args.source + (u64)blockIdx.y * 2 * m;
            value = times(Complex{coefficients[at], coefficients[at + m]}, embedding.twist[at]);
        } else {
            const u32 slot = embedding.slots[at];
            const u64 entry = (u64)blockIdx.y * args.count + slot;
            if (slot < args.count) {
                value = args.complex != 0 ? reinterpret_cast<const Complex*>(args.source)[entry]
                                          : Complex{args.source[entry], 0.0};
                check_value(args.check, entry, value.re, value.im);
            }
        }
        tile[row * LANES + lane] = value;
    }
    __syncthreads();
    transform<TO_SLOTS>(tile, embedding, log_r);
    Complex* target = args.target + (u64)blockIdx.y * m;
    for (u32 row = threadIdx.x / LANES; row < 1u << log_r; row += THREADS / LANES)
        target[(row << log_c) + column] = times(tile[bit_reversed(row, log_r) * LANES + lane],
                                                embedding.template root<TO_SLOTS>(row * column));
}

struct Rows {
    Embedding embedding;
    const Complex* source;  // [item][M]
    double* target;         // coefficients [item][2][M], or slots [item][M]
    double factor;          // of the coefficients
    u32 complex;            // whether slots are; else their real parts
    u32 unused;
};
static_assert(sizeof(Rows) == 64, "src/kernels/embed.rs has the same layout");

template <bool TO_SLOTS>
__device__ __forceinline__ void rows(const Rows& args) {
    FH_SHARED(scratch);
    Complex* tile = reinterpret_cast<Complex*>(scratch);
    const Embedding& embedding = args.embedding;
    const u32 log_r = embedding.log_r(), log_c = embedding.log_c(), m = 1u << embedding.log_m;
    const Complex* source = args.source + (u64)blockIdx.y * m + ((u64)blockIdx.x * LANES << log_c);
    for (u32 i = threadIdx.x; i < LANES << log_c; i += THREADS)
        tile[(i & ((1u << log_c) - 1)) * LANES + (i >> log_c)] = source[i];
    __syncthreads();
    transform<TO_SLOTS>(tile, embedding, log_c);
    const u32 lane = threadIdx.x % LANES;
    for (u32 i = threadIdx.x / LANES; i < 1u << log_c; i += THREADS / LANES) {
        const Complex value = tile[bit_reversed(i, log_c) * LANES + lane];
        const u32 at = blockIdx.x * LANES + lane + (i << log_r);
        if constexpr (TO_SLOTS) {
            const u64 slot = (u64)blockIdx.y * m + embedding.slots[at];
            if (args.complex != 0)
                reinterpret_cast<Complex*>(args.target)[slot] = value;
            else
                args.target[slot] = value.re;
        } else {
            const Complex untwisted = times(value, conjugate(embedding.twist[at]));
            double* target = args.target + (u64)blockIdx.y * 2 * m + at;
            target[0] = FH_MUL(untwisted.re, args.factor);
            target[m] = FH_MUL(untwisted.im, args.factor);
        }
    }
}

}  // namespace

FH_KERNEL(columns_to_coefficients, THREADS, 4, Columns, (columns<false>))
FH_KERNEL(columns_to_slots, THREADS, 4, Columns, (columns<true>))
FH_KERNEL(rows_to_coefficients, THREADS, 4, Rows, (rows<false>))
FH_KERNEL(rows_to_slots, THREADS, 4, Rows, (rows<true>))
