// Negacyclic number-theoretic transforms in two passes over memory, as device functions that the
// kernels combine with what comes before and after a transform.
//
// A row of N residues is seen as a matrix of 2^LA rows and 2^LB columns. Pass A does the first LA
// layers, down the columns; pass B the last LB, along the rows; the inverse runs B, then A. Within
// a pass each thread holds 16 residues, does up to four layers on them in registers, and trades
// them with its neighbours through shared memory. The order is Longa and Naehrig's ("Speeding up
// the number theoretic transform", CANS 2016): the powers of psi are merged into the twiddles,
// and output j is the value at psi^(2 bitrev(j) + 1).
//
// Bounds of the FP64 core: a step starts with |x| <= p, grows by at most 0.7 p a layer forward,
// doubles sums inverse (which are therefore reduced after two layers), and ends reduced.
#ifndef FHELIUM_NTT_CUH
#define FHELIUM_NTT_CUH

#include "core.cuh"

constexpr int HELD = 16;  // residues a thread holds

// The layers of one sub-transform of size 2^L, split into steps of at most four.
template <int L>
struct Steps {
    static constexpr int COUNT = L <= 4 ? 1 : (L <= 8 ? 2 : 3);
    __device__ static constexpr int size(int step) {
        return L == 9 ? 3 : (step == 0 ? (L + 1) / 2 : L / 2);
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
    u32 other = ((u32)(h >> K) << (L - 4)) + t;
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

// The twiddle of butterfly group `g` of layer S0 + LAYER, for the sub-transform below `root`.
template <int L, int S0, int K, int LAYER>
__device__ __forceinline__ u32 twiddle_index(u32 root, u32 t, int e, int g) {
    constexpr int M = L - S0 - K;
    u32 high = (((u32)e << (L - 4)) + t) >> M;
    return (root << (S0 + LAYER)) + ((high << LAYER) | (u32)g);
}

template <int L, int S0, int K, int LAYER, class Core>
__device__ __forceinline__ void forward_layer(
    typename Core::T (&x)[HELD], const Core& core, const u64* twiddles, u32 n, u32 root, u32 t) {
    constexpr int HALF = 1 << (K - 1 - LAYER);
    typename Core::W w;
#pragma unroll
    for (int b = 0; b < HELD / 2; ++b) {
        const int i = b / HALF * (2 * HALF) + b % HALF;
        if (b % HALF == 0)
            w = core.twiddle(twiddles, n, twiddle_index<L, S0, K, LAYER>(
                root, t, i >> K, (i & ((1 << K) - 1)) >> (K - LAYER)));
        core.forward(x[i], x[i + HALF], w);
    }
}

template <int L, int S0, int K, int LAYER, class Core>
__device__ __forceinline__ void inverse_layer(
    typename Core::T (&x)[HELD], const Core& core, const u64* twiddles, u32 n, u32 root, u32 t) {
    constexpr int HALF = 1 << (K - 1 - LAYER);
    typename Core::W w;
#pragma unroll
    for (int b = 0; b < HELD / 2; ++b) {
        const int i = b / HALF * (2 * HALF) + b % HALF;
        if (b % HALF == 0)
            w = core.twiddle(twiddles, n, twiddle_index<L, S0, K, LAYER>(
                root, t, i >> K, (i & ((1 << K) - 1)) >> (K - LAYER)));
        core.inverse(x[i], x[i + HALF], w);
        // The second layer's sums, before they can outgrow the core's range.
        if (LAYER == K - 2) x[i] = core.reduce(x[i]);
    }
}

// Layers S0 ... S0 + K - 1; the residues end reduced.
template <int L, int S0, int K, class Core>
__device__ __forceinline__ void forward_step(
    typename Core::T (&x)[HELD], const Core& core, const u64* twiddles, u32 n, u32 root, u32 t) {
    forward_layer<L, S0, K, 0>(x, core, twiddles, n, root, t);
    forward_layer<L, S0, K, 1>(x, core, twiddles, n, root, t);
    if constexpr (K > 2) forward_layer<L, S0, K, 2>(x, core, twiddles, n, root, t);
    if constexpr (K > 3) forward_layer<L, S0, K, 3>(x, core, twiddles, n, root, t);
#pragma unroll
    for (int h = 0; h < HELD; ++h) x[h] = core.reduce(x[h]);
}

// The same layers, last first; TOP is 1 to leave layer 0 of the transform to the caller.
template <int L, int S0, int K, int TOP, class Core>
__device__ __forceinline__ void inverse_step(
    typename Core::T (&x)[HELD], const Core& core, const u64* twiddles, u32 n, u32 root, u32 t) {
    if constexpr (K > 3) inverse_layer<L, S0, K, 3>(x, core, twiddles, n, root, t);
    if constexpr (K > 2) inverse_layer<L, S0, K, 2>(x, core, twiddles, n, root, t);
    inverse_layer<L, S0, K, 1>(x, core, twiddles, n, root, t);
    if constexpr (TOP == 0) inverse_layer<L, S0, K, 0>(x, core, twiddles, n, root, t);
}

// Where a residue of the sub-transform waits between steps; the padding spreads the banks.
template <int COLUMNS>
__device__ __forceinline__ u32 slot(u32 position, u32 column) {
    return COLUMNS == 1 ? position + (position >> 4) : position * COLUMNS + column;
}

template <int L, int S0, int K, int COLUMNS, class T>
__device__ __forceinline__ void put(T* shared, const T (&x)[HELD], u32 t, u32 column) {
#pragma unroll
    for (int h = 0; h < HELD; ++h) shared[slot<COLUMNS>(position<L, S0, K>(t, h), column)] = x[h];
}

template <int L, int S0, int K, int COLUMNS, class T>
__device__ __forceinline__ void take(const T* shared, T (&x)[HELD], u32 t, u32 column) {
#pragma unroll
    for (int h = 0; h < HELD; ++h) x[h] = shared[slot<COLUMNS>(position<L, S0, K>(t, h), column)];
}

// The threads that trade with each other: a row of pass B lies within a warp.
template <int COLUMNS>
__device__ __forceinline__ void trade() {
    if constexpr (COLUMNS == 1)
        __syncwarp();
    else
        __syncthreads();
}

// From first to last positions.
template <int L, int COLUMNS, class Core>
__device__ __forceinline__ void forward_layers(
    typename Core::T (&x)[HELD], typename Core::T* shared, const Core& core, const u64* twiddles,
    u32 n, u32 root, u32 t, u32 column) {
    constexpr int K0 = Steps<L>::size(0), K1 = Steps<L>::size(1);
    forward_step<L, 0, K0>(x, core, twiddles, n, root, t);
    put<L, 0, K0, COLUMNS>(shared, x, t, column);
    trade<COLUMNS>();
    take<L, K0, K1, COLUMNS>(shared, x, t, column);
    forward_step<L, K0, K1>(x, core, twiddles, n, root, t);
    if constexpr (Steps<L>::COUNT == 3) {
        constexpr int K2 = Steps<L>::size(2);
        trade<COLUMNS>();
        put<L, K0, K1, COLUMNS>(shared, x, t, column);
        trade<COLUMNS>();
        take<L, K0 + K1, K2, COLUMNS>(shared, x, t, column);
        forward_step<L, K0 + K1, K2>(x, core, twiddles, n, root, t);
    }
}

// From last to first positions.
template <int L, int COLUMNS, int TOP, class Core>
__device__ __forceinline__ void inverse_layers(
    typename Core::T (&x)[HELD], typename Core::T* shared, const Core& core, const u64* twiddles,
    u32 n, u32 root, u32 t, u32 column) {
    constexpr int K0 = Steps<L>::size(0), K1 = Steps<L>::size(1);
    if constexpr (Steps<L>::COUNT == 3) {
        constexpr int K2 = Steps<L>::size(2);
        inverse_step<L, K0 + K1, K2, 0>(x, core, twiddles, n, root, t);
#pragma unroll
        for (int h = 0; h < HELD; ++h) x[h] = core.reduce(x[h]);
        put<L, K0 + K1, K2, COLUMNS>(shared, x, t, column);
        trade<COLUMNS>();
        take<L, K0, K1, COLUMNS>(shared, x, t, column);
        trade<COLUMNS>();
    }
    inverse_step<L, K0, K1, 0>(x, core, twiddles, n, root, t);
#pragma unroll
    for (int h = 0; h < HELD; ++h) x[h] = core.reduce(x[h]);
    put<L, K0, K1, COLUMNS>(shared, x, t, column);
    trade<COLUMNS>();
    take<L, 0, K0, COLUMNS>(shared, x, t, column);
    inverse_step<L, 0, K0, TOP>(x, core, twiddles, n, root, t);
}

// ------------------------------------------------------------------------------- pass A

// Columns a block of pass A works on: enough for whole memory lines and a full block.
template <int LA>
constexpr int COLUMNS_A = LA <= 6 ? 32 : (LA <= 8 ? 16 : 8);
template <int LA>
constexpr int THREADS_A = (1 << (LA - 4)) * COLUMNS_A<LA>;

// This thread's part of a block of pass A.
template <int LA>
struct TileA {
    u32 column, t, base, log_b;
    __device__ __forceinline__ explicit TileA(u32 log_b)
        : column(threadIdx.x % COLUMNS_A<LA>),
          t(threadIdx.x / COLUMNS_A<LA>),
          base(blockIdx.x * COLUMNS_A<LA> + column),
          log_b(log_b) {}
    // Index into the residues of the limb.
    __device__ __forceinline__ u32 at(u32 position) const { return (position << log_b) + base; }
};

// -------------------------------------------------------------------------------- pass B

template <int LB>
constexpr int THREADS_B = LB == 5 ? 64 : 128;
template <int LB>
constexpr u32 ROW_THREADS = 1u << (LB - 4);
template <int LB>
constexpr u32 ROWS_B = THREADS_B<LB> / ROW_THREADS<LB>;

// This thread's part of a block of pass B: one row of a limb.
template <int LB>
struct TileB {
    u32 t, row, base;
    u64* shared;
    __device__ __forceinline__ explicit TileB(u64* scratch)
        : t(threadIdx.x % ROW_THREADS<LB>),
          row(blockIdx.x * ROWS_B<LB> + threadIdx.x / ROW_THREADS<LB>),
          base(row << LB),
          shared(scratch + (threadIdx.x / ROW_THREADS<LB>) * ((1u << LB) + (1u << (LB - 4)))) {}

    template <class T>
    __device__ __forceinline__ T* row_of() const {
        return reinterpret_cast<T*>(shared);
    }
    // Where "held order" keeps index h of this thread, h even: a row's residues in the order in
    // which the threads hold them after the last step, two by two, so that a warp moves whole
    // lines 16 bytes a thread.
    __device__ __forceinline__ u32 held(int h) const {
        return base + (u32)(h >> 1) * (2 * ROW_THREADS<LB>) + 2 * t;
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
        u32 at = first_position<LB>(tile.t, h);
        shared[slot<1>(at, 0)] = load(tile.base + at);
    }
    __syncwarp();
#pragma unroll
    for (int h = 0; h < HELD; ++h) x[h] = shared[slot<1>(last_position<LB>(tile.t, h), 0)];
    __syncwarp();
}

// From last positions to STORE(index in limb, residue) in natural order.
template <int LB, class Core, class Store>
__device__ __forceinline__ void scatter_row(
    const typename Core::T (&x)[HELD], const TileB<LB>& tile, Store store) {
    typedef typename Core::T T;
    T* shared = tile.template row_of<T>();
    __syncwarp();
#pragma unroll
    for (int h = 0; h < HELD; ++h) shared[slot<1>(last_position<LB>(tile.t, h), 0)] = x[h];
    __syncwarp();
#pragma unroll
    for (int h = 0; h < HELD; ++h) {
        u32 at = first_position<LB>(tile.t, h);
        store(tile.base + at, shared[slot<1>(at, 0)]);
    }
    __syncwarp();
}

// The forward pass B of the row that LOAD(index in limb) gives lazily.
template <int LB, class Core, class Load>
__device__ __forceinline__ void forward_row(
    typename Core::T (&x)[HELD], const Core& core, const Prime& prime, u32 log_n,
    const TileB<LB>& tile, Load load) {
#pragma unroll
    for (int h = 0; h < HELD; ++h) x[h] = load(tile.base + first_position<LB>(tile.t, h));
    u32 n = 1u << log_n;
    forward_layers<LB, 1>(x, tile.template row_of<typename Core::T>(), core, prime.forward, n,
                          (n >> LB) + tile.row, tile.t, 0);
    __syncwarp();
}

// The inverse pass B of tidy residues in last positions, stored lazily in natural order.
template <int LB, class Core>
__device__ __forceinline__ void inverse_row(
    typename Core::T (&x)[HELD], u64* target, const Core& core, const Prime& prime, u32 log_n,
    const TileB<LB>& tile) {
    u32 n = 1u << log_n;
    inverse_layers<LB, 1, 0>(x, tile.template row_of<typename Core::T>(), core, prime.inverse, n,
                             (n >> LB) + tile.row, tile.t, 0);
#pragma unroll
    for (int h = 0; h < HELD; ++h)
        target[tile.base + first_position<LB>(tile.t, h)] = core.store_lazy(core.reduce(x[h]));
    __syncwarp();
}

#endif
