// The last step of mod-downs and rescales: the second pass of a transform, the division, the addition
// and the automorphism in one.
//
// Grids: (tiles of 2^LA rows, limbs, items or polynomials); an item is two parts of one batch element
// under one key.

#include "launch.cuh"
#include "ntt.cuh"
#include "switch.cuh"

namespace {

// The factors of the last step, by limb.
struct Closing {
    Factor moved;  // of what was kept less what was moved
    Factor added;  // of what is added
};

// target = (kept - moved) closing.moved + added closing.added, under an automorphism.
struct Finish {
    const Prime* primes;
    const Closing* closing;
    const u64* moved;  // [polynomial][limbs][N], after pass A
    const u64* kept;   // [polynomial][limbs][N], held order; a rescale has none
    u64 moved_stride;
    u64 kept_stride;
    Added added;
    u64 target_batch_stride;
    u64 target_part_stride;
    Basis basis;
    u32 log_n;
    u32 batch;
    u32 parts;        // polynomials of an item
    u32 polynomials;  // items times parts
    u32 scaled;       // 0: closing.added is one
    u32 unused;
    u64* targets[KEYS];
    // X -> X^g and its inverse; 1 for none.
    u32 galois[KEYS];
    u32 galois_inverse[KEYS];
};
static_assert(sizeof(Finish) == 416, "src/kernels/switch.rs has the same layout");

// The last step of a rescale: polynomial by polynomial, added is the operand itself.
template <int LB, Mode MODE>
__device__ __forceinline__ void finish_rescale(const Finish& args) {
    FH_SHARED(scratch);
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const Prime& prime = args.primes[prime_of(args.basis, blockIdx.y)];
    const Core core(prime);
    const TileB<LB> tile(scratch);
    const u64 offset = (u64)blockIdx.y << args.log_n;
    // Both factors are 1/q.
    const auto factor = core.factor(args.closing[blockIdx.y].moved);
    for (u32 poly = blockIdx.z; poly < args.polynomials; poly += gridDim.z) {
        const u32 batch = poly / args.parts, part = poly % args.parts;
        const u64* operand = args.added.a.data + batch * args.added.a.batch_stride +
                             part * args.added.a.part_stride + offset;
        u64* target = args.targets[0] + batch * args.target_batch_stride +
                      part * args.target_part_stride + offset;
        T x[HELD];
        load_row(x, core, args.moved + poly * args.moved_stride + offset, tile);
        forward_row(x, core, prime, args.log_n, tile);
        scatter_row<LB, Core>(x, tile, [&](u32 at, T value) {
            const T difference = core.sub(core.load(__ldg(operand + at)), core.tidy(value));
            target[at] = core.store(core.mul(difference, factor));
        });
    }
}

// The last step of a mod-down: PARTS of an item's two in one block, both to share what they read, or
// one where the blocks would be too few.
template <int LB, int PARTS, Mode MODE>
__device__ __forceinline__ void finish_switch(const Finish& args) {
    FH_SHARED(scratch);
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const Prime& prime = args.primes[prime_of(args.basis, blockIdx.y)];
    const Core core(prime);
    const TileB<LB> tile(scratch);
    // A second part has its own rows in shared memory.
    const TileB<LB> second(scratch + (PARTS - 1) * ROWS_B<LB> * ROW_WORDS<LB>);
    const u64 offset = (u64)blockIdx.y << args.log_n;
    const u32 item = PARTS == 2 ? blockIdx.z : blockIdx.z / 2;
    const u32 first_part = PARTS == 2 ? 0 : blockIdx.z % 2;
    const u32 key = item / args.batch, batch = item % args.batch;
    const auto factor = core.factor(args.closing[blockIdx.y].moved);
    const auto added_factor = core.factor(args.closing[blockIdx.y].added);
    const u64* moved = args.moved + (2 * item + first_part) * args.moved_stride + offset;
    const u64* kept = args.kept + (2 * item + first_part) * args.kept_stride + offset;
    T x[PARTS][HELD];
#pragma unroll
    for (int part = 0; part < PARTS; ++part)
        load_row(x[part], core, moved + part * args.moved_stride, tile);
    T* shared[2] = {tile.template row_of<T>(), second.template row_of<T>()};
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
        forward_row(x[part], core, prime, args.log_n, part == 0 ? tile : second);
#pragma unroll
        for (int h = 0; h < HELD; h += 2) {
            u64 words[2];
            load_two(kept + part * args.kept_stride + tile.held(h), words[0], words[1]);
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const T difference = core.sub(core.load_lazy(words[i]), core.tidy(x[part][h + i]));
                shared[part][slot<1>(last_position<LB>(tile.t, h + i), 0)] =
                    core.mul(difference, factor);
            }
        }
    }
    __syncwarp();
    const u64* a = args.added.a.data + batch * args.added.a.batch_stride + offset + tile.base;
    const u64* b = args.added.b.data + batch * args.added.b.batch_stride + offset + tile.base;
    // All of what is added is loaded before anything is stored: no branch may stand between the
    // loads, or each would wait for the one before.
    T other[PARTS][HELD];
    if (args.added.tensor != 0) {
        const u64* a1 = a + args.added.a.part_stride;
        const u64* b1 = b + args.added.b.part_stride;
        if (PARTS == 1 && first_part == 0) {
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                const u32 at = first_position<LB>(tile.t, h);
                other[0][h] = core.product(core.load(__ldg(a + at)), core.load(__ldg(b + at)));
            }
        } else {
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                const u32 at = first_position<LB>(tile.t, h);
                const T x0 = core.load(__ldg(a + at)), x1 = core.load(__ldg(a1 + at));
                const T y0 = core.load(__ldg(b + at)), y1 = core.load(__ldg(b1 + at));
                if (PARTS == 2) other[0][h] = core.product(x0, y0);
                other[PARTS - 1][h] = core.add(core.product(x0, y1), core.product(x1, y0));
            }
        }
    } else {
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            const u32 of = first_part + part;
            if (of >= args.added.parts) continue;
#pragma unroll
            for (int h = 0; h < HELD; ++h)
                other[part][h] = core.load(
                    __ldg(a + of * args.added.a.part_stride + first_position<LB>(tile.t, h)));
        }
    }
    u64* target = args.targets[key] + batch * args.target_batch_stride +
                  first_part * args.target_part_stride + offset;
    const u32 galois = args.galois[key];
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
        if (first_part + part < args.added.parts) {
            if (args.scaled != 0) {
#pragma unroll
                for (int h = 0; h < HELD; ++h) other[part][h] = core.mul(other[part][h], added_factor);
            }
#pragma unroll
            for (int h = 0; h < HELD; ++h)
                other[part][h] = core.add(
                    core.tidy(shared[part][slot<1>(first_position<LB>(tile.t, h), 0)]),
                    core.tidy(other[part][h]));
        } else {
#pragma unroll
            for (int h = 0; h < HELD; ++h)
                other[part][h] = shared[part][slot<1>(first_position<LB>(tile.t, h), 0)];
        }
        if (galois == 1) {
#pragma unroll
            for (int h = 0; h < HELD; ++h)
                target[part * args.target_part_stride + tile.base + first_position<LB>(tile.t, h)] =
                    core.store(other[part][h]);
            continue;
        }
        // The automorphism maps rows to rows, and permutes within them.
#pragma unroll
        for (int h = 0; h < HELD; ++h)
            shared[part][slot<1>(first_position<LB>(tile.t, h), 0)] = other[part][h];
        __syncwarp();
        const u32 base =
            automorphism_source(args.galois_inverse[key], tile.base, args.log_n) >> LB << LB;
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            const u32 at = base + first_position<LB>(tile.t, h);
            const u32 from = automorphism_source(galois, at, args.log_n) & ((1u << LB) - 1);
            target[part * args.target_part_stride + at] = core.store(shared[part][slot<1>(from, 0)]);
        }
    }
}

}  // namespace

// The last step of a mod-down holds 16 residues a thread, or 8.
#define FINISH(LB, SUFFIX, MODE)                                                              \
    FH_KERNEL(finish_##LB##_both_##SUFFIX, THREADS_B<LB>, (RESIDENT<MODE, 5, 4>), Finish,     \
              (finish_switch<LB, 2, MODE>))                                                   \
    FH_KERNEL(finish_##LB##_part_##SUFFIX, THREADS_B<LB>, (RESIDENT<MODE, 8, 6>), Finish,     \
              (finish_switch<LB, 1, MODE>))                                                   \
    FH_KERNEL(finish_##LB##_rescale_##SUFFIX, THREADS_B<LB>, (RESIDENT<MODE, 8, 6>), Finish,  \
              (finish_rescale<LB, MODE>))

FINISH(5, fast, FAST)
FINISH(7, fast, FAST)
FINISH(8, fast, FAST)
FINISH(5, wide, WIDE)
FINISH(7, wide, WIDE)
FINISH(8, wide, WIDE)
