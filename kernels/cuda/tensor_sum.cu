// Sums of clear tensors over axes, in the order of crates/fhelium-runtime/src/tensor/reduction.rs,
// which is numpy's: a result adds runs one after another, and a run is added pairwise (P. Linz,
// "Accurate floating-point summation", CACM 1970), split in halves down to leaves of eight running
// sums.
//
// Short runs, of one leaf, are a thread's work together with their result (sum). Of longer ones each
// thread adds a leaf, and blocks walk up the tree of halves, BLOCK_LEVELS at a time (runs); then the
// runs are added (fold).

#include "tensor.cuh"

namespace {

constexpr u32 BLOCK_LEVELS = 8;
static_assert(1 << BLOCK_LEVELS == THREADS, "a thread for each of a block's leaves");

template <class T>
struct Sums {
    const T* source;
    T* target;  // of results, or of what is still to be added of each run: [result][run][block]
    Strided<2> results;  // places of a result's first element, and of the result
    Strided<1> sequence;  // its runs' first elements
    Strided<1> run;  // a run's elements
    u32 chunks;  // runs of one axis: every chunks-th has `last` elements
    u32 last;
    u32 depth;  // levels of the tree below which only leaves are; in `runs`, of what is left of it
    u32 leaves;  // whether the source holds elements, or what deeper levels gave
};

// ------------------------------------------------------------------------------------ leaves

// A run's leaf holds at most this many elements, and as many running sums as `lanes`.
template <class T>
struct Pairwise {
    static constexpr u32 LEAF = 128, LANES = 8;
    __device__ __forceinline__ static u32 left(u32 length) {
        const u32 half = length / 2;
        return half - half % 8;
    }
};
// Numbers of two parts: half of it, since numpy counts parts.
template <class R>
struct Pairwise<Complex<R>> {
    static constexpr u32 LEAF = 64, LANES = 4;
    __device__ __forceinline__ static u32 left(u32 length) { return (length - length % 8) / 2; }
};

// Not inlined, and loops below not unrolled: a leaf reads elements in many places.
FH_APART i64 place_of(const Strided<1>& shape, u32 index) {
    i64 place[1];
    places_of(shape, index, place);
    return place[0];
}

template <class T>
__device__ __forceinline__ T element(const Sums<T>& args, i64 base, u32 index) {
    if (args.run.rank > 1) return args.source[base + place_of(args.run, index)];
    return args.source[base + (i64)index * args.run.strides[0][0]];
}

// The sum of `length` elements of the run at `base`, from `start` on.
template <class T>
FH_APART T leaf(const Sums<T>& args, i64 base, u32 start, u32 length) {
    constexpr u32 LANES = Pairwise<T>::LANES;
    const u32 grouped = length - length % LANES;
    T sum = {};
    if (grouped != 0) {
        T sums[LANES];
#pragma unroll
        for (u32 lane = 0; lane < LANES; ++lane) sums[lane] = element(args, base, start + lane);
#pragma unroll 1
        for (u32 at = LANES; at < grouped; at += LANES) {
#pragma unroll
            for (u32 lane = 0; lane < LANES; ++lane)
                sums[lane] = plus(sums[lane], element(args, base, start + at + lane));
        }
#pragma unroll
        for (u32 width = 1; width < LANES; width *= 2) {
#pragma unroll
            for (u32 lane = 0; lane < LANES; lane += 2 * width)
                sums[lane] = plus(sums[lane], sums[lane + width]);
        }
        sum = sums[0];
    }
#pragma unroll 1
    for (u32 at = grouped; at < length; ++at) sum = plus(sum, element(args, base, start + at));
    return sum;
}

template <class T>
__device__ __forceinline__ u32 run_length(const Sums<T>& args, u32 run) {
    return run % args.chunks == args.chunks - 1 ? args.last : args.run.count;
}

// Grid: (results). Runs of one leaf each.
template <class T>
__device__ __forceinline__ void sum(const Sums<T>& args) {
    const u32 index = thread_index<THREADS>();
    if (index >= args.results.count) return;
    i64 at[2];
    places_of(args.results, index, at);
    T total = {};
#pragma unroll 1
    for (u32 run = 0; run < args.sequence.count; ++run) {
        const i64 base = at[0] + place_of(args.sequence, run);
        total = plus(total, leaf(args, base, 0, run_length(args, run)));
    }
    args.target[at[1]] = total;
}

// -------------------------------------------------------------------------------------- trees

// Follows `levels` turns, the highest bit of `path` first, from a run of `length` elements. Gives
// whether there is such a node; where the run ends in a leaf before, only the path that turns left
// from there on is one.
template <class T>
__device__ __forceinline__ bool node(u32 path, u32 levels, u32& start, u32& length) {
    start = 0;
#pragma unroll 1
    for (u32 level = levels; level-- > 0;) {
        const u32 turns = path & ((2u << level) - 1);
        if (length <= Pairwise<T>::LEAF) return turns == 0;
        const u32 left = Pairwise<T>::left(length);
        if (turns >> level) {
            start += left;
            length -= left;
        } else {
            length = left;
        }
    }
    return true;
}

// Whether the node that `path` turns to has halves.
template <class T>
__device__ __forceinline__ bool has_halves(u32 path, u32 levels, u32 length) {
#pragma unroll 1
    for (u32 level = levels; level-- > 0;) {
        if (length <= Pairwise<T>::LEAF) return false;
        const u32 left = Pairwise<T>::left(length);
        length = path >> level & 1 ? length - left : left;
    }
    return length > Pairwise<T>::LEAF;
}

// Grid: (blocks of a run, fastest, times runs, times results). Adds BLOCK_LEVELS levels of the tree.
template <class T>
__device__ __forceinline__ void runs(const Sums<T>& args) {
    FH_SHARED(memory);
    T* values = reinterpret_cast<T*>(memory);
    const u32 log_blocks = args.depth > BLOCK_LEVELS ? args.depth - BLOCK_LEVELS : 0;
    const u32 row = blockIdx.x >> log_blocks;
    const u32 run = row % args.sequence.count, result = row / args.sequence.count;
    const u32 slot = (blockIdx.x & ((1u << log_blocks) - 1)) * THREADS + threadIdx.x;
    const u32 whole = run_length(args, run);
    if (slot < 1u << args.depth) {
        if (args.leaves) {
            u32 start, length = whole;
            if (node<T>(slot, args.depth, start, length)) {
                i64 at[2];
                places_of(args.results, result, at);
                const i64 base = at[0] + place_of(args.sequence, run);
                values[threadIdx.x] = leaf(args, base, start, length);
            }
        } else {
            values[threadIdx.x] = args.source[((u64)row << args.depth) + slot];
        }
    }
#pragma unroll 1
    for (u32 level = args.depth; level-- > log_blocks;) {
        __syncthreads();
        const u32 width = 1u << (args.depth - 1 - level);
        if (threadIdx.x % (2 * width) == 0 && slot < 1u << args.depth &&
            has_halves<T>(slot / (2 * width), level, whole))
            values[threadIdx.x] = plus(values[threadIdx.x], values[threadIdx.x + width]);
    }
    if (threadIdx.x == 0) args.target[blockIdx.x] = values[0];
}

// Grid: (results). Adds what each run gave.
template <class T>
__device__ __forceinline__ void fold(const Sums<T>& args) {
    const u32 index = thread_index<THREADS>();
    if (index >= args.results.count) return;
    i64 at[2];
    places_of(args.results, index, at);
    const T* given = args.source + (u64)index * args.sequence.count;
    T total = {};
    for (u32 run = 0; run < args.sequence.count; ++run) total = plus(total, given[run]);
    args.target[at[1]] = total;
}

static_assert(sizeof(Sums<double>) == 496, "src/kernels/tensor.rs has the same layout");

}  // namespace

#define SUMS(NAME, T)                                   \
    FH_KERNEL(sum_##NAME, THREADS, 4, Sums<T>, sum<T>)   \
    FH_KERNEL(runs_##NAME, THREADS, 4, Sums<T>, runs<T>) \
    FH_KERNEL(fold_##NAME, THREADS, 4, Sums<T>, fold<T>)
SUMS(i64, i64)
SUMS(f32, float)
SUMS(f64, double)
SUMS(c64, c64)
SUMS(c128, c128)
