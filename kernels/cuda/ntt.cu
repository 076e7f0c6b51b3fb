// Transforms by themselves: pass A and pass B, forward and inverse.
//
// Grids: pass A (tiles of 2^LB columns, limbs, polynomials); pass B (tiles of 2^LA rows, limbs,
// blocks that share the polynomials, so that one block's twiddles serve several).

#include "launch.cuh"
#include "rows.cuh"

namespace {

// Residues that a thread of pass A holds, as a power of two, and the threads of its blocks. More of them
// trade less, which was the faster at N = 2^16.
template <int LA, Mode MODE>
constexpr int LOG_A = LA == 8 && MODE == FAST ? LOG_MANY : LOG_HELD;
template <int LA, Mode MODE>
constexpr u32 BLOCK_A = COLUMNS_A<LA> << (LA - LOG_A<LA, MODE>);

struct ForwardA {
    const Prime* primes;
    const u64* source;
    u64* target;
    u64 source_stride;  // words from one polynomial to the next
    u64 target_stride;
    Basis basis;
    u32 log_n;
    u32 digit_size;  // not 0: polynomial p leaves out the limbs of digit p % digits
    u32 digits;
    u32 digit_limbs;  // limbs that belong to digits: the level's
};
static_assert(sizeof(ForwardA) == 72, "src/kernels/ntt.rs has the same layout");

enum Source { CANONICAL, INTERNAL };

template <int LA, Source SOURCE, Mode MODE>
__device__ __forceinline__ void forward_a(const ForwardA& args) {
    FH_SHARED(scratch);
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const u32 limb = blockIdx.y;
    if (args.digit_size != 0 && limb < args.digit_limbs &&
        limb / args.digit_size == blockIdx.z % args.digits)
        return;
    const Prime& prime = args.primes[prime_of(args.basis, limb)];
    const Core core(prime);
    constexpr int LOG = LOG_A<LA, MODE>, H = 1 << LOG;
    const TileA<LA, COLUMNS_A<LA>, LOG> tile(args.log_n - LA);
    const u64 offset = (u64)limb << args.log_n;
    const u64* source = args.source + (u64)blockIdx.z * args.source_stride + offset;
    u64* target = args.target + (u64)blockIdx.z * args.target_stride + offset;
    u64 words[H];
#pragma unroll
    for (int h = 0; h < H; ++h) words[h] = source[tile.first(h)];
    const NearTwiddles twiddles = fetch_twiddles<LA, Core>(
        scratch, Twiddles(prime.forward, args.log_n), threadIdx.x, BLOCK_A<LA, MODE>);
    copy_async_commit();
    T x[H];
#pragma unroll
    for (int h = 0; h < H; ++h)
        x[h] = SOURCE == INTERNAL ? core.load_lazy(words[h]) : core.load(words[h]);
    copy_async_wait<0>();
    __syncthreads();
    forward_layers<LA, COLUMNS_A<LA>>(x, reinterpret_cast<T*>(scratch + NEAR_WORDS<LA, Core>), core,
                                      twiddles, tile.t, tile.column, OfBlock());
    store_columns(x, target, core, tile);
}

struct InverseA {
    const Prime* primes;
    const Scale* scales;  // by prime
    const u64* source;
    u64* target;
    u64 source_stride;
    u64 target_stride;
    Basis basis;
    u32 log_n;
    u32 log_b;
};
static_assert(sizeof(InverseA) == 72, "src/kernels/ntt.rs has the same layout");

enum Result { INTEGERS, DOUBLES };

template <int LA, Result RESULT, Mode MODE>
__device__ __forceinline__ void inverse_a(const InverseA& args) {
    FH_SHARED(scratch);
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const u32 index = prime_of(args.basis, blockIdx.y);
    const Prime& prime = args.primes[index];
    const u64 offset = (u64)blockIdx.y << args.log_n;
    const Core core(prime);
    constexpr int LOG = LOG_A<LA, MODE>, H = 1 << LOG;
    const TileA<LA, COLUMNS_A<LA>, LOG> tile(args.log_b);
    const u64* source = args.source + (u64)blockIdx.z * args.source_stride + offset;
    u64* target = args.target + (u64)blockIdx.z * args.target_stride + offset;
    T x[H];
#pragma unroll
    for (int h = 0; h < H; ++h) x[h] = core.load_lazy(source[tile.last(h)]);
    const NearTwiddles twiddles = fetch_twiddles<LA, Core>(
        scratch, Twiddles(prime.inverse, args.log_n), threadIdx.x, BLOCK_A<LA, MODE>);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    inverse_layers<LA, COLUMNS_A<LA>, 1>(x, reinterpret_cast<T*>(scratch + NEAR_WORDS<LA, Core>), core,
                                         twiddles, tile.t, tile.column, OfBlock());
    scaled_layer<LA>(x, core, args.scales[index]);
#pragma unroll
    for (int h = 0; h < H; ++h) {
        u64 at = tile.first(h);
        target[at] = RESULT == DOUBLES ? core.store_canonical_lazy(x[h]) : core.store(x[h]);
    }
}

struct PassB {
    const Prime* primes;
    const u64* source;
    const u64* factor;  // PRODUCTS: what the source is multiplied by first
    u64* target;
    u64 source_stride;
    u64 factor_stride;
    u64 target_stride;
    Basis basis;
    u32 log_n;
    u32 polynomials;
};
static_assert(sizeof(PassB) == 80, "src/kernels/ntt.rs has the same layout");

template <int LB, Mode MODE>
__device__ __forceinline__ void forward_b(const PassB& args) {
    FH_SHARED(scratch);
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const Prime& prime = args.primes[prime_of(args.basis, blockIdx.y)];
    const Core core(prime);
    const TileB<LB> tile(scratch);
    auto twiddles = fetch_row<LB, Core>(prime.forward, args.log_n, tile);
    follow_previous_launch();
    const u64 offset = (u64)blockIdx.y << args.log_n;
    for (u32 poly = blockIdx.z; poly < args.polynomials; poly += gridDim.z) {
        const u64* source = args.source + (u64)poly * args.source_stride + offset;
        u64* target = args.target + (u64)poly * args.target_stride + offset;
        fetch_residues(source, tile);
        copy_async_commit();
        await_row<0>(twiddles);
        T x[HELD];
        take_residues(x, core, tile);
        forward_row(x, core, twiddles, tile);
        pair_row<LB, Core>(x, tile, [&](int, u64 at, T first, T second) {
            store_pair(target + at, core.store(first), core.store(second));
        });
    }
}

// What pass B of an inverse transform reads: canonical residues, products of two, or tidy residues
// in held order.
enum Rows { RESIDUES, PRODUCTS, HELD_ROWS };

template <int LB, Rows ROWS, Mode MODE>
__device__ __forceinline__ void inverse_b(const PassB& args) {
    FH_SHARED(scratch);
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const Prime& prime = args.primes[prime_of(args.basis, blockIdx.y)];
    const Core core(prime);
    const TileB<LB> tile(scratch);
    auto twiddles = fetch_row<LB, Core>(prime.inverse, args.log_n, tile);
    follow_previous_launch();
    const u64 offset = (u64)blockIdx.y << args.log_n;
    for (u32 poly = blockIdx.z; poly < args.polynomials; poly += gridDim.z) {
        const u64* source = args.source + (u64)poly * args.source_stride + offset;
        const u64* factor = args.factor + (u64)poly * args.factor_stride + offset;
        T x[HELD];
        if constexpr (ROWS == RESIDUES) {
            fetch_residues(source, tile);
        } else if constexpr (ROWS == PRODUCTS) {
            gather_row<LB, Core>(x, tile, [&](u64 at) {
                return core.product(core.load(source[at]), core.load(factor[at]));
            });
        } else {
#pragma unroll
            for (int h = 0; h < HELD; h += 2) {
                const Pair words = load_pair(source + tile.held(h));
                x[h] = core.load_lazy(words.x);
                x[h + 1] = core.load_lazy(words.y);
            }
        }
        copy_async_commit();
        await_row<0>(twiddles);
        if constexpr (ROWS == RESIDUES) take_last(x, core, tile);
        inverse_row(x, args.target + (u64)poly * args.target_stride + offset, core, twiddles, tile);
    }
}

}  // namespace

// Blocks on a multiprocessor: 1536 threads of pass A, fewer where that would spill; 1024 of pass B.
template <int LA, Mode MODE>
constexpr int TOGETHER_A = LOG_A<LA, MODE> == LOG_MANY ? 1024 : LA <= 7 ? 1152 : 1536;
template <int LA, Mode MODE>
constexpr int RESIDENT_A = RESIDENT<MODE, TOGETHER_A<LA, MODE>, 1024 - 128 * FEWER> / BLOCK_A<LA, MODE>;
template <int LB, Mode MODE>
constexpr int RESIDENT_B = RESIDENT<MODE, 1024, 640> / THREADS_B<LB>;

#define PASS_A(LA, SUFFIX, MODE)                                                                       \
    FH_KERNEL(forward_a_##LA##_canonical_##SUFFIX, (BLOCK_A<LA, MODE>), (RESIDENT_A<LA, MODE>), ForwardA, \
              (forward_a<LA, CANONICAL, MODE>))                                                        \
    FH_KERNEL(inverse_a_##LA##_integers_##SUFFIX, (BLOCK_A<LA, MODE>), (RESIDENT_A<LA, MODE>), InverseA, \
              (inverse_a<LA, INTEGERS, MODE>))

// Between kernels only the FP64 core has a form of its own.
#define PASS_A_INTERNAL(LA)                                                                            \
    FH_KERNEL(forward_a_##LA##_internal_fast, (BLOCK_A<LA, FAST>), (RESIDENT_A<LA, FAST>), ForwardA,   \
              (forward_a<LA, INTERNAL, FAST>))                                                         \
    FH_KERNEL(inverse_a_##LA##_doubles_fast, (BLOCK_A<LA, FAST>), (RESIDENT_A<LA, FAST>), InverseA,    \
              (inverse_a<LA, DOUBLES, FAST>))

#define PASS_B(LB, SUFFIX, MODE)                                                              \
    FH_EARLY_KERNEL(forward_b_##LB##_##SUFFIX, THREADS_B<LB>, (RESIDENT_B<LB, MODE>), PassB,        \
              (forward_b<LB, MODE>))                                                          \
    FH_EARLY_KERNEL(inverse_b_##LB##_residues_##SUFFIX, THREADS_B<LB>, (RESIDENT_B<LB, MODE>), PassB, \
              (inverse_b<LB, RESIDUES, MODE>))                                                \
    FH_EARLY_KERNEL(inverse_b_##LB##_products_##SUFFIX, THREADS_B<LB>, (RESIDENT_B<LB, MODE>), PassB, \
              (inverse_b<LB, PRODUCTS, MODE>))                                                \
    FH_EARLY_KERNEL(inverse_b_##LB##_held_##SUFFIX, THREADS_B<LB>, (RESIDENT_B<LB, MODE>), PassB,   \
              (inverse_b<LB, HELD_ROWS, MODE>))

#define FOR_EACH(SUFFIX, MODE)     \
    PASS_A(5, SUFFIX, MODE) \
    PASS_A(6, SUFFIX, MODE) \
    PASS_A(7, SUFFIX, MODE) \
    PASS_A(8, SUFFIX, MODE) \
    PASS_A(9, SUFFIX, MODE) \
    PASS_B(5, SUFFIX, MODE)        \
    PASS_B(7, SUFFIX, MODE)        \
    PASS_B(8, SUFFIX, MODE)

FOR_EACH(fast, FAST)
FOR_EACH(wide, WIDE)
PASS_A_INTERNAL(5)
PASS_A_INTERNAL(6)
PASS_A_INTERNAL(7)
PASS_A_INTERNAL(8)
PASS_A_INTERNAL(9)
