// A rescale between its pass B of the inverse transform and its last step: the dropped limb's pass A of the
// inverse transform, and pass A of the forward transforms of what it leaves modulo the other primes.
//
// Grid: (tiles of 2^LB columns, shares of the targets, polynomials); a share transforms the dropped limb
// anew.

#include "launch.cuh"
#include "ntt.cuh"

namespace {

struct RescaleA {
    const Prime* primes;
    const Scale* scales;  // by prime
    const u64* source;    // [polynomial][N], after pass B
    u64* target;          // [polynomial][targets][N]
    u64 source_stride;
    u64 target_stride;
    u32 log_n;
    u32 dropped;  // index of the dropped prime; the targets are those before it
    u32 chunk;    // targets of a share
    u32 unused;
};
static_assert(sizeof(RescaleA) == 64, "src/kernels/ntt.rs has the same layout");

template <int LA, Mode MODE>
__device__ __forceinline__ void rescale_a(const RescaleA& args) {
    FH_SHARED(scratch);
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    constexpr u32 NEAR = NEAR_WORDS<LA, Core>;
    T* shared = reinterpret_cast<T*>(scratch + 2 * NEAR);
    const TileA<LA> tile(args.log_n - LA);
    const u64* source = args.source + (u64)blockIdx.z * args.source_stride;
    const u32 start = blockIdx.y * args.chunk, end = min(start + args.chunk, args.dropped);
    // The twiddles of one transform are on their way while the one before runs.
    u32 turn = 0;
    const auto fetch = [&](const u64* table) {
        const NearTwiddles twiddles = fetch_twiddles<LA, Core>(
            scratch + turn * NEAR, Twiddles(table, args.log_n), threadIdx.x, THREADS_A<LA>);
        turn ^= 1;
        copy_async_commit();
        return twiddles;
    };
    const Prime& dropped = args.primes[args.dropped];
    u64 rest[HELD];
#pragma unroll
    for (int h = 0; h < HELD; ++h) rest[h] = source[tile.last(h)];
    const NearTwiddles inverse = fetch(dropped.inverse);
    NearTwiddles twiddles = fetch(args.primes[start].forward);
    {
        const Core core(dropped);
        T x[HELD];
#pragma unroll
        for (int h = 0; h < HELD; ++h) x[h] = core.load_lazy(rest[h]);
        copy_async_wait<1>();
        __syncthreads();
        inverse_layers<LA, COLUMNS_A<LA>, 1>(x, shared, core, inverse, 1, 0, tile.t, tile.column,
                                             OfBlock());
        scaled_layer<LA>(x, core, args.scales[args.dropped]);
#pragma unroll
        for (int h = 0; h < HELD; ++h) rest[h] = core.store(x[h]);
    }
    u64* out = args.target + (u64)blockIdx.z * args.target_stride + ((u64)start << args.log_n);
    const u64* next = args.primes[min(start + 1, args.dropped)].forward;
#pragma unroll 1
    for (u32 limb = start; limb < end; ++limb) {
        const Core core(args.primes[limb]);
        T x[HELD];
#pragma unroll
        for (int h = 0; h < HELD; ++h) x[h] = core.recenter(rest[h], dropped);
        const NearTwiddles now = twiddles;
        copy_async_wait<0>();
        __syncthreads();
        twiddles = fetch(next);
        next = args.primes[min(limb + 2, args.dropped)].forward;
        forward_layers<LA, COLUMNS_A<LA>>(x, shared, core, now, 1, 0, tile.t, tile.column, OfBlock());
#pragma unroll
        for (int h = 0; h < HELD; ++h) out[tile.last(h)] = core.store_lazy(core.reduce(x[h]));
        out += 1ull << args.log_n;
    }
    copy_async_wait<0>();
}

}  // namespace

// 1024 threads on a multiprocessor, and 640 with integers.
template <int LA, Mode MODE>
constexpr int RESIDENT_RESCALE = RESIDENT<MODE, 1024, 640> / THREADS_A<LA>;

#define RESCALE(LA, SUFFIX, MODE)                                                                \
    FH_KERNEL(rescale_a_##LA##_##SUFFIX, THREADS_A<LA>, (RESIDENT_RESCALE<LA, MODE>), RescaleA, \
              (rescale_a<LA, MODE>))

RESCALE(5, fast, FAST)
RESCALE(6, fast, FAST)
RESCALE(7, fast, FAST)
RESCALE(8, fast, FAST)
RESCALE(9, fast, FAST)
RESCALE(5, wide, WIDE)
RESCALE(6, wide, WIDE)
RESCALE(7, wide, WIDE)
RESCALE(8, wide, WIDE)
RESCALE(9, wide, WIDE)
