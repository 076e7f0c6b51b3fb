// The last step of a mod-down: the second pass of a transform, the division and the automorphism in one.
//
// Grids: (tiles of 2^LA rows, limbs, blocks that share the polynomials).

#include "async.cuh"
#include "launch.cuh"
#include "rows.cuh"
#include "switch.cuh"

namespace {

// target = (kept - moved) / P, under an automorphism; kept holds P times what is added. Polynomials are the
// two parts of items, which are batch elements under keys.
struct Finish {
    const Prime* primes;
    const Factor* closing;  // what the difference is multiplied by, by limb
    const u64* moved;       // [polynomial][limbs][N], after pass A
    const u64* kept;        // [polynomial][limbs][N], held order
    u64 moved_stride;
    u64 kept_stride;
    u64 target_batch_stride;
    u64 target_part_stride;
    Basis basis;
    u32 log_n;
    u32 batch;
    u32 polynomials;
    u32 unused;
    u64* targets[KEYS];
    // X -> X^g and its inverse; 1 for none.
    u32 galois[KEYS];
    u32 galois_inverse[KEYS];
};
static_assert(sizeof(Finish) == 352, "src/kernels/switch.rs has the same layout");

template <int LB, Mode MODE>
__device__ __forceinline__ void finish(const Finish& args) {
    FH_SHARED(scratch);
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const Prime& prime = args.primes[prime_of(args.basis, blockIdx.y)];
    const Core core(prime);
    const TileB<LB> tile(scratch);
    const u64 offset = (u64)blockIdx.y << args.log_n;
    const auto factor = core.factor(args.closing[blockIdx.y]);
    auto twiddles = fetch_row<LB, Core>(prime.forward, args.log_n, tile);
    T* shared = tile.template row_of<T>();
    u64* ahead = scratch + ROWS_B<LB> * ROW_WORDS<LB> + 2 * threadIdx.x;
    for (u32 poly = blockIdx.z; poly < args.polynomials; poly += gridDim.z) {
        const u32 item = poly / 2, part = poly % 2, key = item / args.batch, batch = item % args.batch;
        const u64* kept = args.kept + poly * args.kept_stride + offset;
        u64* target = args.targets[key] + batch * args.target_batch_stride +
                      part * args.target_part_stride + offset;
        const u64* moved = args.moved + poly * args.moved_stride + offset;
        fetch_residues(moved, tile);
        copy_async_commit();
        // On their way while the transform runs; each thread reads only what it copied itself.
#pragma unroll
        for (int h = 0; h < HELD; h += 2)
            copy_async_16_once(ahead + h * THREADS_B<LB>, kept + tile.held(h));
        copy_async_commit();
        await_row<1>(twiddles);
        T x[HELD];
        take_residues(x, core, tile);
        forward_row(x, core, twiddles, tile);
        copy_async_wait<0>();
#pragma unroll
        for (int h = 0; h < HELD; h += 2) {
            const Pair words = load_pair(ahead + h * THREADS_B<LB>);
            x[h] = core.mul(core.sub_lazy(core.load_lazy(words.x), x[h]), factor);
            x[h + 1] = core.mul(core.sub_lazy(core.load_lazy(words.y), x[h + 1]), factor);
        }
        __syncwarp();
        discard_row(moved, tile);
        discard_row(kept, tile);
        const u32 galois = args.galois[key];
        if (galois == 1) {
            pair_row<LB, Core>(x, tile, [&](int, u64 at, T first, T second) {
                store_pair(target + at, core.store_product(first), core.store_product(second));
            });
            continue;
        }
        // The automorphism maps rows to rows, and permutes within them.
#pragma unroll
        for (int h = 0; h < HELD; ++h) at_last<LB, 1>(shared, tile.t, h) = x[h];
        __syncwarp();
        const u32 base =
            automorphism_source(args.galois_inverse[key], (u32)tile.base, args.log_n) >> LB << LB;
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            const u32 at = base + first_position<LB>(tile.t, h);
            const u32 from = automorphism_source(galois, at, args.log_n) & ((1u << LB) - 1);
            target[at] = core.store_product(shared[slot<LB, 1>(from)]);
        }
        __syncwarp();
    }
}

}  // namespace

#define FINISH(LB, SUFFIX, MODE)                                                       \
    FH_KERNEL(finish_##LB##_##SUFFIX, THREADS_B<LB>, (RESIDENT<MODE, 8, 6>), Finish, \
              (finish<LB, MODE>))

FINISH(5, fast, FAST)
FINISH(7, fast, FAST)
FINISH(8, fast, FAST)
FINISH(5, wide, WIDE)
FINISH(7, wide, WIDE)
FINISH(8, wide, WIDE)
