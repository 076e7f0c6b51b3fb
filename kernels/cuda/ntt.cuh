// Negacyclic number-theoretic transforms in two passes over memory, as device functions that the
// kernels combine with what comes before and after a transform.
//
// A row of N residues is seen as a matrix of 2^LA rows and 2^LB columns. Pass A does the first LA
// layers, down the columns; pass B the last LB, along the rows; the inverse runs B, then A. Within
// a pass each thread holds 8 residues, does up to three layers on them in registers, and trades
// them with its neighbours through shared memory. The order is Longa and Naehrig's ("Speeding up
// the number theoretic transform", CANS 2016): the powers of psi are merged into the twiddles,
// and output j is the value at psi^(2 bitrev(j) + 1).
//
// A prime's twiddles w(i) = psi^bitrev(i) stand in natural order for the layers before pass B's last
// step, i < N/4, and then for that step, which always has two layers, by row and thread: what a core
// makes the six twiddles of its two groups from, in an order in which a warp reads whole lines 16
// bytes a thread.
//
// Bounds of the FP64 core, which wants |x| <= 2^52. Of a prime above 2^42: a step starts with
// |x| <= p, grows by at most 0.7 p a layer forward, doubles sums inverse (which are therefore reduced
// after two layers), and ends reduced. Of a smaller one a whole pass, of at most nine layers, goes
// without: |x| <= 7 p forward, 2^9 p inverse. Passes end reduced.
#ifndef FHELIUM_NTT_CUH
#define FHELIUM_NTT_CUH

#include "async.cuh"
#include "core.cuh"

constexpr int LOG_HELD = 3, HELD = 8;  // residues a thread holds

// The layers of one sub-transform of size 2^L, split into steps of at most three.
template <int L>
struct Steps {
    static constexpr int COUNT = L <= 6 ? 2 : 3;
    __device__ static constexpr int size(int step) {
        return step == 0 ? 3 : (COUNT == 2 ? L - 3 : (step == 1 ? (L - 2) / 2 : (L - 3) / 2));
    }
    __device__ static constexpr int first(int step) {
        int layer = 0;
        for (int s = 0; s < step; ++s) layer += size(s);
        return layer;
    }
};

// Position in the sub-transform of the residue that thread t holds at index h, in the step that
// does layers S0 ... S0 + K - 1.
template <int L, int S0, int K>
__device__ __forceinline__ u32 position(u32 t, int h) {
    constexpr int M = L - S0 - K;
    u32 other = ((u32)(h >> K) << (L - LOG_HELD)) + t;
    u32 radix = h & ((1 << K) - 1);
    return ((other >> M) << (K + M)) | (radix << M) | (other & ((1u << M) - 1));
}

// Before the first step and after the last.
template <int L>
__device__ __forceinline__ u32 first_position(u32 t, int h) {
    return position<L, 0, Steps<L>::size(0)>(t, h);
}
template <int L>
__device__ __forceinline__ u32 last_position(u32 t, int h) {
    constexpr int LAST = Steps<L>::COUNT - 1;
    return position<L, Steps<L>::first(LAST), Steps<L>::size(LAST)>(t, h);
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
template <int L, int S0, int K, int LAYER>
__device__ __forceinline__ u32 twiddle_index(u32 root, u32 t, int e, int g) {
    constexpr int M = L - S0 - K;
    const u32 high = (((u32)e << (L - LOG_HELD)) + t) >> M;
    return (root << (S0 + LAYER)) + ((high << LAYER) | (u32)g);
}

// One layer's butterflies, forward or inverse; after the second of a step inverse, before they can
// outgrow the core's range, the sums are reduced.
template <int L, int S0, int K, int LAYER, bool FORWARD, class Core, class Table>
__device__ __forceinline__ void layer(
    typename Core::T (&x)[HELD], const Core& core, const Table& twiddles, u32 root, u32 t) {
    constexpr int HALF = 1 << (K - 1 - LAYER);
    typename Core::W w[2];
#pragma unroll
    for (int b = 0; b < HELD / 2; ++b) {
        const int i = b / HALF * (2 * HALF) + b % HALF;
        const int e = i >> K, g = (i & ((1 << K) - 1)) >> (K - LAYER);
        if (b % HALF == 0) {
            const u32 at = twiddle_index<L, S0, K, LAYER>(root, t, e, g);
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

// Between the steps of a pass, where the prime leaves no room to go on without.
template <class Core>
__device__ __forceinline__ void reduce_all(typename Core::T (&x)[HELD], const Core& core) {
    if (!core.tight) return;
#pragma unroll
    for (int h = 0; h < HELD; ++h) x[h] = core.reduce(x[h]);
}

// Layers S0 ... S0 + K - 1, not reduced behind the last.
template <int L, int S0, int K, class Core, class Table>
__device__ __forceinline__ void forward_step(
    typename Core::T (&x)[HELD], const Core& core, const Table& twiddles, u32 root, u32 t) {
    layer<L, S0, K, 0, true>(x, core, twiddles, root, t);
    layer<L, S0, K, 1, true>(x, core, twiddles, root, t);
    if constexpr (K > 2) layer<L, S0, K, 2, true>(x, core, twiddles, root, t);
}

// The same layers, last first; TOP is 1 to leave layer 0 of the transform to the caller.
template <int L, int S0, int K, int TOP, class Core, class Table>
__device__ __forceinline__ void inverse_step(
    typename Core::T (&x)[HELD], const Core& core, const Table& twiddles, u32 root, u32 t) {
    if constexpr (K > 2) layer<L, S0, K, 2, false>(x, core, twiddles, root, t);
    layer<L, S0, K, 1, false>(x, core, twiddles, root, t);
    if constexpr (TOP == 0) layer<L, S0, K, 0, false>(x, core, twiddles, root, t);
}

// The last step of a row, two layers, forward; inverse the first. Its twiddles start at `origin`.
template <int L, bool FORWARD, class Core, class Table>
__device__ __forceinline__ void row_step(
    typename Core::T (&x)[HELD], const Core& core, const Table& twiddles, u32 origin, u32 t) {
    static_assert(Steps<L>::size(Steps<L>::COUNT - 1) == 2, "the table's last step");
    // Of each group w(i), w(2 i) and w(2 i + 1).
    typename Core::W w[2][3];
    core.template row_twiddles<1u << (L - LOG_HELD)>(w, twiddles, origin, t);
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

// Where a residue of the sub-transform waits between steps. The banks are spread by padding in a row;
// in columns, where a bank's width holds several, by exchanging neighbours.
__device__ __forceinline__ u32 exchanged(u32 position) { return position ^ (position >> 2 & 3); }
template <int COLUMNS>
__device__ __forceinline__ u32 slot(u32 position, u32 column) {
    return COLUMNS == 1 ? position + 3 * (position >> 4) : exchanged(position) * COLUMNS + column;
}

// The same of position<L, S0, K>(t, h), whose parts of t and h have no bits in common: all but the exchanged
// bits of h is a constant, added last, so that it is one in the machine's addresses, too.
template <int L, int S0, int K, int COLUMNS, class T>
__device__ __forceinline__ T& at_slot(T* shared, u32 t, int h, u32 column) {
    const u32 of_t = position<L, S0, K>(t, 0), of_h = position<L, S0, K>(0, h);
    if constexpr (COLUMNS == 1) {
        return (shared + slot<1>(of_t, 0))[slot<1>(of_h, 0)];
    } else {
        const u32 low = exchanged(of_h) & 3, high = exchanged(of_h) & ~3u;
        return (shared + ((exchanged(of_t) ^ low) * COLUMNS + column))[high * COLUMNS];
    }
}
template <int L, int COLUMNS, class T>
__device__ __forceinline__ T& at_first(T* shared, u32 t, int h, u32 column = 0) {
    return at_slot<L, 0, Steps<L>::size(0), COLUMNS>(shared, t, h, column);
}
template <int L, int COLUMNS, class T>
__device__ __forceinline__ T& at_last(T* shared, u32 t, int h, u32 column = 0) {
    constexpr int LAST = Steps<L>::COUNT - 1;
    return at_slot<L, Steps<L>::first(LAST), Steps<L>::size(LAST), COLUMNS>(shared, t, h, column);
}

template <int L, int S0, int K, int COLUMNS, class T>
__device__ __forceinline__ void put(T* shared, const T (&x)[HELD], u32 t, u32 column) {
#pragma unroll
    for (int h = 0; h < HELD; ++h) at_slot<L, S0, K, COLUMNS>(shared, t, h, column) = x[h];
}

template <int L, int S0, int K, int COLUMNS, class T>
__device__ __forceinline__ void take(const T* shared, T (&x)[HELD], u32 t, u32 column) {
#pragma unroll
    for (int h = 0; h < HELD; ++h) x[h] = at_slot<L, S0, K, COLUMNS>(shared, t, h, column);
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
template <int L, int S0, int K, int COLUMNS, class Core, class Table>
__device__ __forceinline__ void last_forward_step(
    typename Core::T (&x)[HELD], const Core& core, const Table& twiddles, u32 root, u32 origin,
    u32 t) {
    if constexpr (COLUMNS == 1)
        row_step<L, true>(x, core, twiddles, origin, t);
    else
        forward_step<L, S0, K>(x, core, twiddles, root, t);
}
template <int L, int S0, int K, int COLUMNS, class Core, class Table>
__device__ __forceinline__ void last_inverse_step(
    typename Core::T (&x)[HELD], const Core& core, const Table& twiddles, u32 root, u32 origin,
    u32 t) {
    if constexpr (COLUMNS == 1)
        row_step<L, false>(x, core, twiddles, origin, t);
    else
        inverse_step<L, S0, K, 0>(x, core, twiddles, root, t);
}

// From first to last positions, not reduced behind the last layer.
template <int L, int COLUMNS, class Core, class Table, class Trade>
__device__ __forceinline__ void forward_layers(
    typename Core::T (&x)[HELD], typename Core::T* shared, const Core& core,
    const Table& twiddles, u32 root, u32 origin, u32 t, u32 column, Trade trade) {
    constexpr int K0 = Steps<L>::size(0), K1 = Steps<L>::size(1);
    forward_step<L, 0, K0>(x, core, twiddles, root, t);
    reduce_all(x, core);
    put<L, 0, K0, COLUMNS>(shared, x, t, column);
    trade();
    take<L, K0, K1, COLUMNS>(shared, x, t, column);
    if constexpr (Steps<L>::COUNT == 2) {
        last_forward_step<L, K0, K1, COLUMNS>(x, core, twiddles, root, origin, t);
    } else {
        constexpr int K2 = Steps<L>::size(2);
        forward_step<L, K0, K1>(x, core, twiddles, root, t);
        reduce_all(x, core);
        trade();
        put<L, K0, K1, COLUMNS>(shared, x, t, column);
        trade();
        take<L, K0 + K1, K2, COLUMNS>(shared, x, t, column);
        last_forward_step<L, K0 + K1, K2, COLUMNS>(x, core, twiddles, root, origin, t);
    }
}

// From last to first positions.
template <int L, int COLUMNS, int TOP, class Core, class Table, class Trade>
__device__ __forceinline__ void inverse_layers(
    typename Core::T (&x)[HELD], typename Core::T* shared, const Core& core,
    const Table& twiddles, u32 root, u32 origin, u32 t, u32 column, Trade trade) {
    constexpr int K0 = Steps<L>::size(0), K1 = Steps<L>::size(1);
    if constexpr (Steps<L>::COUNT == 2) {
        last_inverse_step<L, K0, K1, COLUMNS>(x, core, twiddles, root, origin, t);
    } else {
        constexpr int K2 = Steps<L>::size(2);
        last_inverse_step<L, K0 + K1, K2, COLUMNS>(x, core, twiddles, root, origin, t);
        reduce_all(x, core);
        put<L, K0 + K1, K2, COLUMNS>(shared, x, t, column);
        trade();
        take<L, K0, K1, COLUMNS>(shared, x, t, column);
        trade();
        inverse_step<L, K0, K1, 0>(x, core, twiddles, root, t);
    }
    reduce_all(x, core);
    put<L, K0, K1, COLUMNS>(shared, x, t, column);
    trade();
    take<L, 0, K0, COLUMNS>(shared, x, t, column);
    inverse_step<L, 0, K0, TOP>(x, core, twiddles, root, t);
}

// ------------------------------------------------------------------------------- pass A

// Columns a block of pass A works on: enough for whole sectors of memory and a full block.
template <int LA>
constexpr int COLUMNS_A = LA == 5 ? 32 : (LA == 6 ? 16 : 8);
template <int LA>
constexpr int THREADS_A = (1 << (LA - LOG_HELD)) * COLUMNS_A<LA>;

// A thread's part of some columns of a limb, those of its block. What is the same for every index h
// of a thread comes first in sums, and all in 64 bits: then addresses differ by constants.
template <int LA, int COLUMNS = COLUMNS_A<LA>>
struct TileA {
    u32 column, t, base, log_b;
    __device__ __forceinline__ explicit TileA(u32 log_b, u32 thread = threadIdx.x)
        : column(thread % COLUMNS),
          t(thread / COLUMNS),
          base(blockIdx.x * COLUMNS + column),
          log_b(log_b) {}
    // Indices into the residues of the limb, of those in first and in last positions.
    __device__ __forceinline__ u64 first(int h) const {
        return at(first_position<LA>(t, 0), first_position<LA>(0, h));
    }
    __device__ __forceinline__ u64 last(int h) const {
        return at(last_position<LA>(t, 0), last_position<LA>(0, h));
    }
    __device__ __forceinline__ u64 at(u32 of_t, u32 of_h) const {
        return (u64)((of_t << log_b) + base) + ((u64)of_h << log_b);
    }
};

// The constants of an inverse transform's last layer: 1/N times what the result is scaled by, and
// that times the layer's twiddle.
struct Scale {
    Factor sum;
    Factor difference;
};

// That layer, which inverse_layers leaves out with TOP = 1: its one twiddle takes the scaling in.
template <int LA, class Core>
__device__ __forceinline__ void scaled_layer(
    typename Core::T (&x)[HELD], const Core& core, const Scale& scale) {
    const auto sum = core.factor(scale.sum);
    const auto difference = core.factor(scale.difference);
    constexpr int HALF = 1 << (Steps<LA>::size(0) - 1);
#pragma unroll
    for (int h = 0; h < HELD; ++h) {
        if ((h & HALF) != 0) continue;
        typename Core::T u = x[h], v = x[h + HALF];
        core.inverse(u, v, difference);
        x[h] = core.mul(u, sum);
        x[h + HALF] = v;
    }
}

// -------------------------------------------------------------------------------- pass B

template <int LB>
constexpr int THREADS_B = 128;
template <int LB>
constexpr u32 ROW_THREADS = 1u << (LB - LOG_HELD);
template <int LB>
constexpr u32 ROWS_B = THREADS_B<LB> / ROW_THREADS<LB>;

// Words of a row in shared memory, padding counted.
template <int LB>
constexpr u32 ROW_WORDS = (19u << (LB - 4)) - (LB < 7 ? 0 : 2);

// This thread's part of a block of pass B: one row of a limb.
template <int LB>
struct TileB {
    u32 t, row;
    u64 base;
    u64* shared;
    __device__ __forceinline__ explicit TileB(u64* scratch)
        : t(threadIdx.x % ROW_THREADS<LB>),
          row(blockIdx.x * ROWS_B<LB> + threadIdx.x / ROW_THREADS<LB>),
          base((u64)row << LB),
          shared(scratch + (threadIdx.x / ROW_THREADS<LB>) * ROW_WORDS<LB>) {}

    template <class T>
    __device__ __forceinline__ T* row_of() const {
        return reinterpret_cast<T*>(shared);
    }
    // Index into the residues of the limb, of those in first positions.
    __device__ __forceinline__ u64 first(int h) const {
        return (base + first_position<LB>(t, 0)) + (u64)first_position<LB>(0, h);
    }
    // Where "held order" keeps index h of this thread, h even: a row's residues in the order in
    // which the threads hold them after the last step, two by two, so that a warp moves whole
    // lines 16 bytes a thread.
    __device__ __forceinline__ u64 held(int h) const {
        return (base + 2 * t) + (u64)((h >> 1) * (2 * ROW_THREADS<LB>));
    }
};

// Reads a row in natural order and gives it in last positions; LOAD(index in limb) is a residue.
template <int LB, class Core, class Load>
__device__ __forceinline__ void gather_row(
    typename Core::T (&x)[HELD], const TileB<LB>& tile, Load load) {
    typedef typename Core::T T;
    T* shared = tile.template row_of<T>();
#pragma unroll
    for (int h = 0; h < HELD; ++h) {
        at_first<LB, 1>(shared, tile.t, h) = load(tile.first(h));
    }
    __syncwarp();
#pragma unroll
    for (int h = 0; h < HELD; ++h) x[h] = at_last<LB, 1>(shared, tile.t, h);
    __syncwarp();
}

// From last positions to STORE(h of first positions, index in limb, residue) in natural order.
template <int LB, class Core, class Store>
__device__ __forceinline__ void scatter_row(
    const typename Core::T (&x)[HELD], const TileB<LB>& tile, Store store) {
    typedef typename Core::T T;
    T* shared = tile.template row_of<T>();
    __syncwarp();
#pragma unroll
    for (int h = 0; h < HELD; ++h) at_last<LB, 1>(shared, tile.t, h) = x[h];
    __syncwarp();
#pragma unroll
    for (int h = 0; h < HELD; ++h) store(h, tile.first(h), at_first<LB, 1>(shared, tile.t, h));
    __syncwarp();
}

// Where the twiddles of a row's last step start, given the words of one for each thread.
template <int LB, class Core>
__device__ __forceinline__ u32 row_origin(const TileB<LB>& tile, u32 log_n) {
    return (1u << (log_n - 2)) + tile.row * (ROW_THREADS<LB> * Core::ROW_WORDS_HELD);
}

// The forward pass B of lazy residues in first positions, to last positions.
template <int LB, class Core>
__device__ __forceinline__ void forward_row(
    typename Core::T (&x)[HELD], const Core& core, const Prime& prime, u32 log_n,
    const TileB<LB>& tile) {
    forward_layers<LB, 1>(x, tile.template row_of<typename Core::T>(), core,
                          Twiddles(prime.forward, log_n), (1u << (log_n - LB)) + tile.row,
                          row_origin<LB, Core>(tile, log_n), tile.t, 0, OfWarp());
    __syncwarp();
}

// A row that SOURCE points to, lazy residues in natural order, in first positions.
template <int LB, class Core>
__device__ __forceinline__ void load_row(
    typename Core::T (&x)[HELD], const Core& core, const u64* source, const TileB<LB>& tile) {
#pragma unroll
    for (int h = 0; h < HELD; ++h)
        x[h] = core.load_lazy(source[tile.first(h)]);
}

// The inverse pass B of tidy residues in last positions, stored lazily in natural order.
template <int LB, class Core>
__device__ __forceinline__ void inverse_row(
    typename Core::T (&x)[HELD], u64* target, const Core& core, const Prime& prime, u32 log_n,
    const TileB<LB>& tile) {
    inverse_layers<LB, 1, 0>(x, tile.template row_of<typename Core::T>(), core,
                             Twiddles(prime.inverse, log_n),
                             (1u << (log_n - LB)) + tile.row, row_origin<LB, Core>(tile, log_n), tile.t, 0,
                             OfWarp());
#pragma unroll
    for (int h = 0; h < HELD; ++h)
        target[tile.first(h)] = core.store_lazy(core.reduce(x[h]));
    __syncwarp();
}

#endif
