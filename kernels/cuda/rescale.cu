// A rescale: pass B of the dropped limb's inverse transform; its pass A and, from the threads' registers,
// pass A of the forward transforms of what it leaves modulo the other primes; then their pass B and the
// division, which begins with the limbs that are there.
//
// Threads of passes A hold 16 residues, and their blocks do pieces of 2048, whose columns fill whole sectors of
// memory; of 1024 where they do five layers.
// Grids: (tiles of 2^LA rows or pieces, limbs or shares of them, polynomials); a share transforms the dropped
// limb anew.

#include "async.cuh"
#include "launch.cuh"
#include "ready.cuh"
#include "rows.cuh"

namespace {

// Threads of a block of passes A, and its columns.
template <int LA>
constexpr u32 THREADS = LA == 5 ? 64 : 128;
template <int LA>
constexpr int COLUMNS = THREADS<LA> * MANY >> LA;

struct Rescale {
    const Prime* primes;
    const Scale* scales;    // by prime
    const Factor* closing;  // 1/q modulo the other primes
    u64* dropped;           // [polynomial][N], between the passes
    u64* moved;             // [polynomial][limbs][N], between the passes
    u32* ready;             // [polynomial][share]: pieces of `moved` that are done
    const u64* source;
    u64* target;
    u64 source_stride;  // words from one polynomial to the next
    u64 target_stride;
    u32 log_n;
    u32 limbs;   // of the result: the dropped prime q is behind theirs
    u32 pieces;  // of a polynomial, in passes A
    u32 shares;  // of the limbs, in passes A
};
static_assert(sizeof(Rescale) == 96, "src/kernels/rescale.rs has the same layout");

// The limbs of a share: all shares have equally many, up to one, and the first, which is awaited first, no more
// than others.
struct Share {
    u32 first, count;
    __device__ __forceinline__ Share(const Rescale& args, u32 share)
        : first(start(args, share)), count(start(args, share + 1) - first) {}
    __device__ __forceinline__ static u32 start(const Rescale& args, u32 share) {
        return share * args.limbs / args.shares;
    }
    // That of a limb.
    __device__ __forceinline__ static u32 of(const Rescale& args, u32 limb) {
        return ((limb + 1) * args.shares - 1) / args.limbs;
    }
};

// Pass B of the inverse transforms of the dropped limb.
template <int LB, Mode MODE>
__device__ __forceinline__ void rescale_inverse_b(const Rescale& args) {
    FH_SHARED(scratch);
    typedef typename CoreOf<MODE>::type Core;
    const u32 poly = blockIdx.z;
    const Prime& prime = args.primes[args.limbs];
    const Core core(prime);
    const TileB<LB> tile(scratch);
    auto twiddles = fetch_row<LB, Core>(prime.inverse, args.log_n, tile);
    follow_previous_launch();
    fetch_residues(args.source + poly * args.source_stride + ((u64)args.limbs << args.log_n), tile);
    copy_async_commit();
    if (blockIdx.x == 0) {
        for (u32 share = threadIdx.x; share < args.shares; share += THREADS_B<LB>)
            args.ready[poly * args.shares + share] = 0;
    }
    await_row<0>(twiddles);
    typename Core::T x[HELD];
    take_last(x, core, tile);
    inverse_row(x, args.dropped + ((u64)poly << args.log_n), core, twiddles, tile);
}

template <int LA, Mode MODE>
__device__ __forceinline__ void rescale_a(const Rescale& args) {
    FH_SHARED(scratch);
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    constexpr u32 NEAR = NEAR_WORDS<LA, Core>;
    T* shared = reinterpret_cast<T*>(scratch + 2 * NEAR);
    // The primes of the share, then the dropped one and its scale.
    u64* constants = scratch + 2 * NEAR + THREADS<LA> * MANY;
    const Prime* primes = reinterpret_cast<const Prime*>(constants);
    const TileA<LA, COLUMNS<LA>, LOG_MANY> tile(args.log_n - LA);
    const Share share(args, blockIdx.y);
    const u32 start = share.first, count = share.count;
    // The twiddles of one transform are on their way while the one before runs.
    const auto twiddles = [&](u32 turn) { return NearTwiddles{scratch + turn * NEAR, 1u << LA}; };
    const auto fetch = [&](u32 turn, const u64* table) {
        fetch_twiddles<LA, Core>(scratch + turn * NEAR, Twiddles(table, args.log_n), threadIdx.x,
                                 THREADS<LA>);
        copy_async_commit();
    };
    const auto fetch_constants = [&](u64* near, const void* from, u32 words) {
        const u64* far = reinterpret_cast<const u64*>(from);
        for (u32 i = 2 * threadIdx.x; i < words; i += 2 * THREADS<LA>) copy_async_16(near + i, far + i);
    };
    fetch_constants(constants, args.primes + start, count * PRIME_WORDS);
    fetch_constants(constants + count * PRIME_WORDS, args.primes + args.limbs, PRIME_WORDS);
    fetch_constants(constants + (count + 1) * PRIME_WORDS, args.scales + args.limbs, sizeof(Scale) / 8);
    const u64* dropped = args.dropped + ((u64)blockIdx.z << args.log_n);
    fetch(1, args.primes[args.limbs].inverse);
    fetch(0, args.primes[start].forward);
    // In this order, as ready.cuh says.
    await_previous_launch();
    let_next_launch();
    u64 words[MANY];
#pragma unroll
    for (int h = 0; h < MANY; ++h) words[h] = dropped[tile.last(h)];
    copy_async_wait<1>();
    __syncthreads();
    const Prime& q = primes[count];
    typename Core::Centred rest[MANY];
    {
        const Core core(q);
        T x[MANY];
#pragma unroll
        for (int h = 0; h < MANY; ++h) x[h] = core.load_lazy(words[h]);
        inverse_layers<LA, COLUMNS<LA>, 1>(x, shared, core, twiddles(1), tile.t, tile.column, OfBlock());
        scaled_layer<LA>(x, core, *reinterpret_cast<const Scale*>(primes + count + 1));
#pragma unroll
        for (int h = 0; h < MANY; ++h) rest[h] = core.center(x[h]);
    }
    u64* moved = args.moved + (((u64)blockIdx.z * args.limbs + start) << args.log_n);
#pragma unroll 1
    for (u32 i = 0; i < count; ++i) {
        const Core core(primes[i]);
        T x[MANY];
#pragma unroll
        for (int h = 0; h < MANY; ++h) x[h] = core.recenter(rest[h], q);
        copy_async_wait<0>();
        __syncthreads();
        // After the last those of the dropped prime, which none uses.
        fetch((i + 1) % 2, primes[i + 1].forward);
        forward_layers<LA, COLUMNS<LA>>(x, shared, core, twiddles(i % 2), tile.t, tile.column,
                                        OfBlock());
        store_columns(x, moved, core, tile);
        moved += 1ull << args.log_n;
    }
    copy_async_wait<0>();
    announce(args.ready + blockIdx.z * args.shares + blockIdx.y);
}

// target = (source - moved) / q.
template <int LB, Mode MODE>
__device__ __forceinline__ void rescale_b(const Rescale& args) {
    FH_SHARED(scratch);
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const u32 limb = blockIdx.y, poly = blockIdx.z;
    const Prime& prime = args.primes[limb];
    const Core core(prime);
    const auto factor = core.factor(args.closing[limb]);
    const TileB<LB> tile(scratch);
    const u64 offset = (u64)limb << args.log_n;
    const u64* source = args.source + poly * args.source_stride + offset;
    prefetch_row(source, tile);
    let_next_launch();
    await_count(args.ready + poly * args.shares + Share::of(args, limb), args.pieces);
    const u64* moved = args.moved + (((u64)poly * args.limbs) << args.log_n) + offset;
    fetch_residues(moved, tile);
    auto twiddles = fetch_row<LB, Core>(prime.forward, args.log_n, tile);
    copy_async_commit();
    // On its way while the transform runs; each thread reads only what it copied itself.
    u64* ahead = scratch + ROWS_B<LB> * ROW_WORDS<LB> + 2 * threadIdx.x;
#pragma unroll
    for (int g = 0; g < HELD / 2; ++g)
        copy_async_16_once(ahead + 2 * g * THREADS_B<LB>, source + tile.pair(g));
    copy_async_commit();
    await_row<1>(twiddles);
    T x[HELD];
    take_residues(x, core, tile);
    forward_row(x, core, twiddles, tile);
    discard_row(moved, tile);
    copy_async_wait<0>();
    u64* target = args.target + poly * args.target_stride + offset;
    const auto divided = [&](u64 word, T x) {
        return core.store_product(core.mul(core.sub_lazy(core.load(word), x), factor));
    };
    pair_row<LB, Core>(x, tile, [&](int g, u64 at, T first, T second) {
        const Pair words = load_pair(ahead + 2 * g * THREADS_B<LB>);
        store_pair_once(target + at, divided(words.x, first), divided(words.y, second));
    });
    // All of the launch before is over when this one is.
    await_previous_launch();
}

}  // namespace

// 512 threads on a multiprocessor, fewer with integers.
template <int LA, Mode MODE>
constexpr int RESIDENT_A = RESIDENT<MODE, 4, 3> * 128 / THREADS<LA>;

#define RESCALE_A(LA, SUFFIX, MODE)                                                        \
    FH_EARLY_KERNEL(rescale_a_##LA##_##SUFFIX, THREADS<LA>, (RESIDENT_A<LA, MODE>), Rescale, \
              (rescale_a<LA, MODE>))
#define RESCALE_B(LB, SUFFIX, MODE)                                                              \
    FH_EARLY_KERNEL(rescale_inverse_b_##LB##_##SUFFIX, THREADS_B<LB>, (RESIDENT<MODE, 8, 5>), Rescale, \
              (rescale_inverse_b<LB, MODE>))                                                         \
    FH_EARLY_KERNEL(rescale_b_##LB##_##SUFFIX, THREADS_B<LB>, (RESIDENT<MODE, 8, 6>), Rescale, \
              (rescale_b<LB, MODE>))
#define FOR_EACH(SUFFIX, MODE) \
    RESCALE_A(5, SUFFIX, MODE) \
    RESCALE_A(6, SUFFIX, MODE) \
    RESCALE_A(7, SUFFIX, MODE) \
    RESCALE_A(8, SUFFIX, MODE) \
    RESCALE_A(9, SUFFIX, MODE) \
    RESCALE_B(5, SUFFIX, MODE) \
    RESCALE_B(7, SUFFIX, MODE) \
    RESCALE_B(8, SUFFIX, MODE)

FOR_EACH(fast, FAST)
FOR_EACH(wide, WIDE)
