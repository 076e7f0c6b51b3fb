// A rescale after pass B of the dropped limb's inverse transform. First pass A of that and, from the threads'
// registers, pass A of the forward transforms of what it leaves modulo the other primes; then their pass B
// and the division.
//
// Blocks do pieces of 1024 residues, or 2048 where that many make whole sectors of columns. Grids: (pieces,
// shares of the limbs or limbs, polynomials); a share transforms the dropped limb anew.

#include "async.cuh"
#include "launch.cuh"
#include "ntt.cuh"

namespace {

// Threads of a block of pass A, and its columns.
template <int LA>
constexpr u32 THREADS = LA <= 8 ? 128 : 256;
template <int LA>
constexpr int COLUMNS = THREADS<LA> * HELD >> LA;

struct Rescale {
    const Prime* primes;
    const Scale* scales;    // by prime
    const Factor* closing;  // 1/q modulo the other primes
    const u64* dropped;     // [polynomial][N], after pass B
    u64* moved;             // [polynomial][limbs][N], for what lies between the passes
    Operand operand;
    u64* target;
    u64 target_batch_stride;
    u64 target_part_stride;
    u32 log_n;
    u32 limbs;  // of the result: the dropped prime q is behind theirs
    u32 parts;
    u32 polynomials;  // items times parts
    u32 chunk;        // limbs of a share
    u32 unused;
};
static_assert(sizeof(Rescale) == 112, "src/kernels/rescale.rs has the same layout");

template <int LA, Mode MODE>
__device__ __forceinline__ void rescale_a(const Rescale& args) {
    FH_SHARED(scratch);
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    constexpr u32 NEAR = NEAR_WORDS<LA, Core>;
    T* shared = reinterpret_cast<T*>(scratch + 2 * NEAR);
    const TileA<LA, COLUMNS<LA>> tile(args.log_n - LA);
    const u32 start = blockIdx.y * args.chunk, end = min(start + args.chunk, args.limbs);
    // The twiddles of one transform are on their way while the one before runs.
    u32 turn = 0;
    const auto fetch = [&](const u64* table) {
        const NearTwiddles twiddles = fetch_twiddles<LA, Core>(
            scratch + turn * NEAR, Twiddles(table, args.log_n), threadIdx.x, THREADS<LA>);
        turn ^= 1;
        copy_async_commit();
        return twiddles;
    };
    const Prime& q = args.primes[args.limbs];
    const u64* dropped = args.dropped + ((u64)blockIdx.z << args.log_n);
    u64 rest[HELD];
#pragma unroll
    for (int h = 0; h < HELD; ++h) rest[h] = dropped[tile.last(h)];
    const NearTwiddles inverse = fetch(q.inverse);
    NearTwiddles twiddles = fetch(args.primes[start].forward);
    {
        const Core core(q);
        T x[HELD];
#pragma unroll
        for (int h = 0; h < HELD; ++h) x[h] = core.load_lazy(rest[h]);
        copy_async_wait<1>();
        __syncthreads();
        inverse_layers<LA, COLUMNS<LA>, 1>(x, shared, core, inverse, 1, 0, tile.t, tile.column, OfBlock());
        scaled_layer<LA>(x, core, args.scales[args.limbs]);
#pragma unroll
        for (int h = 0; h < HELD; ++h) rest[h] = core.store(x[h]);
    }
    u64* moved = args.moved + (((u64)blockIdx.z * args.limbs + start) << args.log_n);
    const u64* next = args.primes[min(start + 1, args.limbs)].forward;
#pragma unroll 1
    for (u32 limb = start; limb < end; ++limb) {
        const Core core(args.primes[limb]);
        T x[HELD];
#pragma unroll
        for (int h = 0; h < HELD; ++h) x[h] = core.recenter(rest[h], q);
        const NearTwiddles now = twiddles;
        copy_async_wait<0>();
        __syncthreads();
        twiddles = fetch(next);
        next = args.primes[min(limb + 2, args.limbs)].forward;
        forward_layers<LA, COLUMNS<LA>>(x, shared, core, now, 1, 0, tile.t, tile.column, OfBlock());
#pragma unroll
        for (int h = 0; h < HELD; ++h) moved[tile.last(h)] = core.store_lazy(core.reduce(x[h]));
        moved += 1ull << args.log_n;
    }
    copy_async_wait<0>();
}

// target = (operand - moved) / q.
template <int LB, Mode MODE>
__device__ __forceinline__ void rescale_b(const Rescale& args) {
    FH_SHARED(scratch);
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const u32 limb = blockIdx.y, poly = blockIdx.z;
    const Prime& prime = args.primes[limb];
    const Core core(prime);
    const TileB<LB> tile(scratch);
    const u32 batch = poly / args.parts, part = poly % args.parts;
    const u64 offset = (u64)limb << args.log_n;
    const u64* operand = args.operand.data + batch * args.operand.batch_stride +
                         part * args.operand.part_stride + offset;
    // On its way while the transform runs; each thread reads only what it copied itself.
    u64* ahead = scratch + ROWS_B<LB> * ROW_WORDS<LB> + threadIdx.x;
#pragma unroll
    for (int h = 0; h < HELD; ++h) copy_async_8(ahead + h * THREADS_B<LB>, operand + tile.first(h));
    copy_async_commit();
    T x[HELD];
    load_row(x, core, args.moved + (((u64)poly * args.limbs) << args.log_n) + offset, tile);
    const auto factor = core.factor(args.closing[limb]);
    forward_row(x, core, prime, args.log_n, tile);
    copy_async_wait<0>();
    u64* target = args.target + batch * args.target_batch_stride + part * args.target_part_stride + offset;
    scatter_row<LB, Core>(x, tile, [&](int h, u64 at, T moved) {
        const T difference = core.sub(core.load(ahead[h * THREADS_B<LB>]), core.tidy(moved));
        target[at] = core.store(core.mul(difference, factor));
    });
}

}  // namespace

// 1024 threads on a multiprocessor, fewer with integers.
template <int LA, Mode MODE>
constexpr int RESIDENT_A = RESIDENT<MODE, 8, 5> * 128 / THREADS<LA>;

#define RESCALE_A(LA, SUFFIX, MODE)                                                        \
    FH_KERNEL(rescale_a_##LA##_##SUFFIX, THREADS<LA>, (RESIDENT_A<LA, MODE>), Rescale, \
              (rescale_a<LA, MODE>))
#define RESCALE_B(LB, SUFFIX, MODE)                                                         \
    FH_KERNEL(rescale_b_##LB##_##SUFFIX, THREADS_B<LB>, (RESIDENT<MODE, 8, 6>), Rescale, \
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
