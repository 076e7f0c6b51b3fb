// Negacyclic number-theoretic transforms in two passes over memory, as device functions that the
// kernels combine with what comes before and after a transform.
//
// A row of N residues is seen as a matrix of 2^LA rows and 2^LB columns. Pass A does the first LA
// layers, down the columns; pass B the last LB, along the rows; the inverse runs B, then A. Within
// a pass each thread holds 8 residues, or 16, does up to three layers on them in registers, or four, and
// trades them with its neighbours through shared memory. The order is Longa and Naehrig's ("Speeding up
// the number theoretic transform", CANS 2016): the powers of psi are merged into the twiddles,
// and output j is the value at psi^(2 bitrev(j) + 1).
//
// A prime's twiddles w(i) = psi^bitrev(i) stand in natural order for the layers before pass B's last
// step, i < N/4, and then for that step, which always has two layers, by row and thread: what a core
// makes the six twiddles of its two groups from, in an order in which a warp reads whole lines 16
// bytes a thread.
//
// Bounds of the FP64 core, which wants |x| <= 2^52. Of a prime above 2^42: a step starts with
// |x| <= p, grows by at most 0.77 p a layer forward, doubles sums inverse (which are therefore reduced
// after two layers), and ends reduced, but for the last of a forward transform: |x| <= 2.4 p. A smaller
// one goes without through a whole forward transform, of at most 17 layers: |x| <= 13 p; inverse through
// a pass of at most nine, which ends reduced: 2^9 p.
#ifndef FHELIUM_NTT_CUH
#define FHELIUM_NTT_CUH

#include "async.cuh"
#include "core.cuh"

constexpr int LOG_HELD = 3, HELD = 8;  // residues a thread holds
constexpr int LOG_MANY = 4, MANY = 16;  // where it holds more: a pass of up to eight layers has one trade less
template <int H>
constexpr int LOG_OF = H == MANY ? LOG_MANY : LOG_HELD;

// The layers of one sub-transform of size 2^L, split into steps of at most LOG.
template <int L, int LOG = LOG_HELD>
struct Steps {
    static constexpr int COUNT = L <= 2 * LOG ? 2 : 3;
    static constexpr int LAST = COUNT - 1;
    __device__ static constexpr int size(int step) {
        return step == 0 ? LOG : (COUNT == 2 ? L - LOG : (L - LOG + 2 - step) / 2);
    }
    __device__ static constexpr int first(int step) {
        int layer = 0;
        for (int s = 0; s < step; ++s) layer += size(s);
        return layer;
    }
};

// Position in the sub-transform of the residue that thread t holds at index h, in the step that
// does layers S0 ... S0 + K - 1.
template <int L, int S0, int K, int LOG = LOG_HELD>
__device__ __forceinline__ u32 position(u32 t, int h) {
    constexpr int M = L - S0 - K;
    u32 other = ((u32)(h >> K) << (L - LOG)) + t;
    u32 radix = h & ((1 << K) - 1);
    return ((other >> M) << (K + M)) | (radix << M) | (other & ((1u << M) - 1));
}

// Before the first step and after the last.
template <int L, int LOG = LOG_HELD>
__device__ __forceinline__ u32 first_position(u32 t, int h) {
    return position<L, 0, Steps<L, LOG>::size(0), LOG>(t, h);
}
template <int L, int LOG = LOG_HELD>
__device__ __forceinline__ u32 last_position(u32 t, int h) {
    typedef Steps<L, LOG> S;
    return position<L, S::first(S::LAST), S::size(S::LAST), LOG>(t, h);
}

// A prime's twiddles of one direction.
struct Twiddles {
    const u64* table;
    u32 words;  // in WIDE's table; the Shoup words follow

    __device__ __forceinline__ Twiddles(const u64* table, u32 log_n)
        : table(table), words((1u << log_n) + (1u << (log_n - 2))) {}
    __device__ __forceinline__ u64 word(u32 i) const { return __ldg(table + i); }
    __device__ __forceinline__ ulonglong2 pair(u32 i) const {
        return __ldg(reinterpret_cast<const ulonglong2*>(table + i));
    }
};
// Those of pass A, in shared memory.
struct NearTwiddles {
    const u64* table;
    u32 words;

    __device__ __forceinline__ u32 root() const { return 1; }
    __device__ __forceinline__ u64 word(u32 i) const { return table[i]; }
    __device__ __forceinline__ ulonglong2 pair(u32 i) const {
        return *reinterpret_cast<const ulonglong2*>(table + i);
    }
};
template <int LA, class Core>
constexpr u32 NEAR_WORDS = Core::TWIDDLE_WORDS << LA;

// Has so many threads fetch them: they are there once all have waited for their copies, and for each other.
template <int LA, class Core>
__device__ __forceinline__ NearTwiddles fetch_twiddles(u64* near, const Twiddles& far, u32 thread,
                                                       u32 threads) {
    for (u32 i = 2 * thread; i < NEAR_WORDS<LA, Core>; i += 2 * threads)
        copy_async_16(near + i, far.table + (i >> LA) * far.words + (i & ((1u << LA) - 1)));
    return NearTwiddles{near, 1u << LA};
}

// The twiddle of butterfly group `g` of layer S0 + LAYER among the e-th residues of thread t, for
// the sub-transform below `root`.
template <int L, int S0, int K, int LAYER, int LOG>
__device__ __forceinline__ u32 twiddle_index(u32 root, u32 t, int e, int g) {
    constexpr int M = L - S0 - K;
    const u32 high = (((u32)e << (L - LOG)) + t) >> M;
    return (root << (S0 + LAYER)) + ((high << LAYER) | (u32)g);
}

// One layer's butterflies, forward or inverse; after the second of a step inverse, before they can
// outgrow the core's range, the sums are reduced.
template <int L, int S0, int K, int LAYER, bool FORWARD, int H, class Core, class Table>
__device__ __forceinline__ void layer(
    typename Core::T (&x)[H], const Core& core, const Table& twiddles, u32 t) {
    constexpr int HALF = 1 << (K - 1 - LAYER);
    typename Core::W w[2];
#pragma unroll
    for (int b = 0; b < H / 2; ++b) {
        const int i = b / HALF * (2 * HALF) + b % HALF;
        const int e = i >> K, g = (i & ((1 << K) - 1)) >> (K - LAYER);
        if (b % HALF == 0) {
            const u32 at = twiddle_index<L, S0, K, LAYER, LOG_OF<H>>(twiddles.root(), t, e, g);
            if (LAYER == 0)
                w[0] = core.twiddle(twiddles, at);
            else if (g % 2 == 0)
                core.twiddles(w[0], w[1], twiddles, at);
        }
        if constexpr (FORWARD) {
            core.forward(x[i], x[i + HALF], w[g % 2]);
        } else {
            core.inverse(x[i], x[i + HALF], w[g % 2]);
            if (LAYER == K - 2 && core.tight) x[i] = core.reduce(x[i]);
        }
    }
}

// Between the steps of a transform, where the prime leaves no room to go on without.
template <int H, class Core>
__device__ __forceinline__ void reduce_all(typename Core::T (&x)[H], const Core& core) {
    if (!core.tight) return;
#pragma unroll
    for (int h = 0; h < H; ++h) x[h] = core.reduce(x[h]);
}

// Layers S0 ... S0 + K - 1, not reduced behind the last.
template <int L, int S0, int K, int H, class Core, class Table>
__device__ __forceinline__ void forward_step(
    typename Core::T (&x)[H], const Core& core, const Table& twiddles, u32 t) {
    layer<L, S0, K, 0, true>(x, core, twiddles, t);
    if constexpr (K > 1) layer<L, S0, K, 1, true>(x, core, twiddles, t);
    if constexpr (K > 2) layer<L, S0, K, 2, true>(x, core, twiddles, t);
    if constexpr (K > 3) layer<L, S0, K, 3, true>(x, core, twiddles, t);
}

// The same layers, last first; TOP is 1 to leave layer 0 of the transform to the caller.
template <int L, int S0, int K, int TOP, int H, class Core, class Table>
__device__ __forceinline__ void inverse_step(
    typename Core::T (&x)[H], const Core& core, const Table& twiddles, u32 t) {
    if constexpr (K > 3) layer<L, S0, K, 3, false>(x, core, twiddles, t);
    if constexpr (K > 2) layer<L, S0, K, 2, false>(x, core, twiddles, t);
    if constexpr (K > 1) layer<L, S0, K, 1, false>(x, core, twiddles, t);
    if constexpr (TOP == 0) layer<L, S0, K, 0, false>(x, core, twiddles, t);
}

// The last step of a row, two layers, forward; inverse the first.
template <int L, bool FORWARD, class Core, class Table>
__device__ __forceinline__ void row_step(
    typename Core::T (&x)[HELD], const Core& core, const Table& twiddles, u32 t) {
    static_assert(Steps<L>::size(Steps<L>::COUNT - 1) == 2, "the table's last step");
    // Of each group w(i), w(2 i) and w(2 i + 1).
    typename Core::W w[2][3];
    core.template row_twiddles<1u << (L - LOG_HELD)>(w, twiddles, t);
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        const int i = 4 * e;
        if constexpr (FORWARD) {
            core.forward(x[i], x[i + 2], w[e][0]);
            core.forward(x[i + 1], x[i + 3], w[e][0]);
            core.forward(x[i], x[i + 1], w[e][1]);
            core.forward(x[i + 2], x[i + 3], w[e][2]);
        } else {
            core.inverse(x[i], x[i + 1], w[e][1]);
            core.inverse(x[i + 2], x[i + 3], w[e][2]);
            core.inverse(x[i], x[i + 2], w[e][0]);
            core.inverse(x[i + 1], x[i + 3], w[e][0]);
            if (core.tight) {
                x[i] = core.reduce(x[i]);
                x[i + 1] = core.reduce(x[i + 1]);
            }
        }
    }
}

// Where a residue of the sub-transform waits between steps. The threads of half a warp, which trade 8 bytes
// each at once, shall all be at other banks: neighbours are exchanged, in columns, where a bank's width holds
// several, and in rows; these have padding, too. Short rows have that alone, and some conflicts.
template <int L, int COLUMNS, int LOG = LOG_HELD>
__device__ __forceinline__ u32 exchanged(u32 position) {
    constexpr int LAST = Steps<L, LOG>::size(Steps<L, LOG>::LAST), APART = LAST > 2 ? LAST : 2;
    return position ^ (position >> (COLUMNS == 1 ? 4 : APART) & 3);
}
template <int L, int COLUMNS>
__device__ __forceinline__ u32 slot(u32 position, u32 column = 0) {
    if (COLUMNS > 1) return exchanged<L, COLUMNS>(position) * COLUMNS + column;
    if (L < 7) return position + 3 * (position >> 4);
    return exchanged<L, 1>(position) + 4 * (position >> (L - 3));
}

// The same of position<L, S0, K>(t, h), whose parts of t and h have no bits in common: all but the exchanged
// bits of h is a constant, added last, so that it is one in the machine's addresses, too.
template <int L, int S0, int K, int COLUMNS, int LOG = LOG_HELD, class T>
__device__ __forceinline__ T& at_slot(T* shared, u32 t, int h, u32 column) {
    const u32 of_t = position<L, S0, K, LOG>(t, 0), of_h = position<L, S0, K, LOG>(0, h);
    const u32 low = exchanged<L, COLUMNS, LOG>(of_h) & 3;
    if constexpr (COLUMNS > 1) {
        return (shared + ((exchanged<L, COLUMNS, LOG>(of_t) ^ low) * COLUMNS + column))[(of_h & ~3u) *
                                                                                        COLUMNS];
    } else if constexpr (L < 7) {
        return (shared + slot<L, 1>(of_t))[slot<L, 1>(of_h)];
    } else {
        return (shared + (slot<L, 1>(of_t) ^ low))[slot<L, 1>(of_h) & ~3u];
    }
}
template <int L, int COLUMNS, class T>
__device__ __forceinline__ T& at_first(T* shared, u32 t, int h, u32 column = 0) {
    return at_slot<L, 0, Steps<L>::size(0), COLUMNS>(shared, t, h, column);
}
template <int L, int COLUMNS, class T>
__device__ __forceinline__ T& at_last(T* shared, u32 t, int h, u32 column = 0) {
    typedef Steps<L> S;
    return at_slot<L, S::first(S::LAST), S::size(S::LAST), COLUMNS>(shared, t, h, column);
}

template <int L, int S0, int K, int COLUMNS, class T, int H>
__device__ __forceinline__ void put(T* shared, const T (&x)[H], u32 t, u32 column) {
#pragma unroll
    for (int h = 0; h < H; ++h) at_slot<L, S0, K, COLUMNS, LOG_OF<H>>(shared, t, h, column) = x[h];
}

template <int L, int S0, int K, int COLUMNS, class T, int H>
__device__ __forceinline__ void take(const T* shared, T (&x)[H], u32 t, u32 column) {
#pragma unroll
    for (int h = 0; h < H; ++h) x[h] = at_slot<L, S0, K, COLUMNS, LOG_OF<H>>(shared, t, h, column);
}

#ifdef __CUDACC__
// Waits for the other threads of a group, of whole warps; groups have numbers from 1 to 15.
__device__ __forceinline__ void sync_group(u32 group, u32 threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(group), "r"(threads) : "memory");
}
#endif

// How the threads that trade with each other wait for each other: a warp's, of a row of pass B; a
// block's; or a group of a block's.
struct OfWarp {
    __device__ __forceinline__ void operator()() const { __syncwarp(); }
};
struct OfBlock {
    __device__ __forceinline__ void operator()() const { __syncthreads(); }
};
template <u32 THREADS>
struct OfGroup {
    u32 group;
    __device__ __forceinline__ void operator()() const { sync_group(group, THREADS); }
};

// The last step of a pass; one column is a row of pass B.
template <int L, int S0, int K, int COLUMNS, int H, class Core, class Table>
__device__ __forceinline__ void last_forward_step(
    typename Core::T (&x)[H], const Core& core, const Table& twiddles, u32 t) {
    if constexpr (COLUMNS == 1)
        row_step<L, true>(x, core, twiddles, t);
    else
        forward_step<L, S0, K>(x, core, twiddles, t);
}
template <int L, int S0, int K, int COLUMNS, int H, class Core, class Table>
__device__ __forceinline__ void last_inverse_step(
    typename Core::T (&x)[H], const Core& core, const Table& twiddles, u32 t) {
    if constexpr (COLUMNS == 1)
        row_step<L, false>(x, core, twiddles, t);
    else
        inverse_step<L, S0, K, 0>(x, core, twiddles, t);
}

// From first to last positions, not reduced behind the last layer.
template <int L, int COLUMNS, int H, class Core, class Table, class Trade>
__device__ __forceinline__ void forward_layers(
    typename Core::T (&x)[H], typename Core::T* shared, const Core& core,
    const Table& twiddles, u32 t, u32 column, Trade trade) {
    typedef Steps<L, LOG_OF<H>> S;
    constexpr int K0 = S::size(0), K1 = S::size(1);
    forward_step<L, 0, K0>(x, core, twiddles, t);
    reduce_all(x, core);
    put<L, 0, K0, COLUMNS>(shared, x, t, column);
    trade();
    take<L, K0, K1, COLUMNS>(shared, x, t, column);
    if constexpr (S::COUNT == 2) {
        last_forward_step<L, K0, K1, COLUMNS>(x, core, twiddles, t);
    } else {
        constexpr int K2 = S::size(2);
        forward_step<L, K0, K1>(x, core, twiddles, t);
        reduce_all(x, core);
        trade();
        put<L, K0, K1, COLUMNS>(shared, x, t, column);
        trade();
        take<L, K0 + K1, K2, COLUMNS>(shared, x, t, column);
        last_forward_step<L, K0 + K1, K2, COLUMNS>(x, core, twiddles, t);
    }
}

// From last to first positions.
template <int L, int COLUMNS, int TOP, int H, class Core, class Table, class Trade>
__device__ __forceinline__ void inverse_layers(
    typename Core::T (&x)[H], typename Core::T* shared, const Core& core,
    const Table& twiddles, u32 t, u32 column, Trade trade) {
    typedef Steps<L, LOG_OF<H>> S;
    constexpr int K0 = S::size(0), K1 = S::size(1);
    if constexpr (S::COUNT == 2) {
        last_inverse_step<L, K0, K1, COLUMNS>(x, core, twiddles, t);
    } else {
        constexpr int K2 = S::size(2);
        last_inverse_step<L, K0 + K1, K2, COLUMNS>(x, core, twiddles, t);
        reduce_all(x, core);
        put<L, K0 + K1, K2, COLUMNS>(shared, x, t, column);
        trade();
        take<L, K0, K1, COLUMNS>(shared, x, t, column);
        trade();
        inverse_step<L, K0, K1, 0>(x, core, twiddles, t);
    }
    reduce_all(x, core);
    put<L, K0, K1, COLUMNS>(shared, x, t, column);
    trade();
    take<L, 0, K0, COLUMNS>(shared, x, t, column);
    inverse_step<L, 0, K0, TOP>(x, core, twiddles, t);
}

// Columns a block of pass A works on: enough for whole sectors of memory and a full block.
template <int LA>
constexpr int COLUMNS_A = LA == 5 ? 32 : (LA == 6 ? 16 : 8);
template <int LA>
constexpr int THREADS_A = (1 << (LA - LOG_HELD)) * COLUMNS_A<LA>;

// A thread's part of some columns of a limb, those of its block. What is the same for every index h
// of a thread comes first in sums, and all in 64 bits: then addresses differ by constants.
template <int LA, int COLUMNS = COLUMNS_A<LA>, int LOG = LOG_HELD>
struct TileA {
    u32 column, t, base, log_b;
    __device__ __forceinline__ explicit TileA(u32 log_b, u32 thread = threadIdx.x)
        : column(thread % COLUMNS),
          t(thread / COLUMNS),
          base(blockIdx.x * COLUMNS + column),
          log_b(log_b) {}
    // Indices into the residues of the limb, of those in first and in last positions.
    __device__ __forceinline__ u64 first(int h) const {
        return at(first_position<LA, LOG>(t, 0), first_position<LA, LOG>(0, h));
    }
    __device__ __forceinline__ u64 last(int h) const {
        return at(last_position<LA, LOG>(t, 0), last_position<LA, LOG>(0, h));
    }
    __device__ __forceinline__ u64 at(u32 of_t, u32 of_h) const {
        return (u64)((of_t << log_b) + base) + ((u64)of_h << log_b);
    }
};

// What a forward pass A leaves in last positions, stored lazily in natural order.
template <int H, class Core, class Tile>
__device__ __forceinline__ void store_columns(
    typename Core::T (&x)[H], u64* target, const Core& core, const Tile& tile) {
    reduce_all(x, core);
#pragma unroll
    for (int h = 0; h < H; ++h) target[tile.last(h)] = core.store_lazy(x[h]);
}

// The constants of an inverse transform's last layer: 1/N times what the result is scaled by, and
// that times the layer's twiddle.
struct Scale {
    Factor sum;
    Factor difference;
};

// That layer, which inverse_layers leaves out with TOP = 1: its one twiddle takes the scaling in.
template <int LA, int H, class Core>
__device__ __forceinline__ void scaled_layer(
    typename Core::T (&x)[H], const Core& core, const Scale& scale) {
    const auto sum = core.factor(scale.sum);
    const auto difference = core.factor(scale.difference);
    constexpr int HALF = 1 << (Steps<LA, LOG_OF<H>>::size(0) - 1);
#pragma unroll
    for (int h = 0; h < H; ++h) {
        if ((h & HALF) != 0) continue;
        typename Core::T u = x[h], v = x[h + HALF];
        core.inverse(u, v, difference);
        x[h] = core.mul(u, sum);
        x[h + HALF] = v;
    }
}

#endif
