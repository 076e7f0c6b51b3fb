// Pass B of the transforms of ntt.cuh: rows, each of which some threads of one warp hold, with their twiddles.
#ifndef FHELIUM_ROWS_CUH
#define FHELIUM_ROWS_CUH

#include "ntt.cuh"

template <int LB>
constexpr int THREADS_B = 128;
template <int LB>
constexpr u32 ROW_THREADS = 1u << (LB - LOG_HELD);
template <int LB>
constexpr u32 ROWS_B = THREADS_B<LB> / ROW_THREADS<LB>;

// Words of a row in shared memory: its residues with their padding, then its twiddles.
template <int LB>
constexpr u32 ROW_RESIDUES = (1u << LB) + (LB < 7 ? 6 : 32);
template <int LB>
constexpr u32 ROW_WORDS = ROW_RESIDUES<LB> + (1u << (LB - 1));

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
    // Index of the pair g that pair_row gives this thread: it holds 4 neighbours in each half of the row.
    __device__ __forceinline__ u64 pair(int g) const {
        return (base + (8 * (t / 2) + 2 * (t % 2))) + (u64)((g / 2 << (LB - 1)) + g % 2 * 4);
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

// From last positions to STORE(g, index in limb, two neighbours), g below HELD / 2: neighbouring threads
// exchange halves of what they hold, so that both together store whole sectors.
template <int LB, class Core, class Store>
__device__ __forceinline__ void pair_row(
    const typename Core::T (&x)[HELD], const TileB<LB>& tile, Store store) {
    typedef typename Core::T T;
    const bool odd = tile.t % 2 != 0;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        const T *own = x + 4 * e;
        const T from_x = __shfl_xor_sync(~0u, odd ? own[0] : own[2], 1);
        const T from_y = __shfl_xor_sync(~0u, odd ? own[1] : own[3], 1);
        store(2 * e, tile.pair(2 * e), odd ? from_x : own[0], odd ? from_y : own[1]);
        store(2 * e + 1, tile.pair(2 * e + 1), odd ? own[2] : from_x, odd ? own[3] : from_y);
    }
}

// A row's twiddles where they are in memory: of the sub-transform below `root`, then, from `origin` on,
// its last step's.
struct FarRow : Twiddles {
    const u64* const* place;
    u32 root_, origin_;
    template <int LB>
    __device__ __forceinline__ FarRow(const u64* const& table, u32 log_n, const TileB<LB>& tile,
                                      u32 words_held)
        : Twiddles(table, log_n),
          place(&table),
          root_((1u << (log_n - LB)) + tile.row),
          origin_((1u << (log_n - 2)) + tile.row * (ROW_THREADS<LB> * words_held)) {}
    __device__ __forceinline__ u32 root() const { return root_; }
    __device__ __forceinline__ u32 origin() const { return origin_; }
};
// The same in shared memory, of a core that has one word for each, like those of a whole transform; the
// word that is none's is the first of all.
template <int LB>
struct NearRow : NearTwiddles {
    __device__ __forceinline__ explicit NearRow(const u64* table) : NearTwiddles{table, 1u << (LB - 2)} {}
    __device__ __forceinline__ u32 origin() const { return words; }
    __device__ __forceinline__ u64 quarter() const { return table[0]; }
};
template <int LB, bool NEAR>
struct RowOf {
    typedef FarRow type;
};
template <int LB>
struct RowOf<LB, true> {
    typedef NearRow<LB> type;
};
template <int LB, class Core>
using Row = typename RowOf<LB, Core::NEAR_ROWS>::type;

// Has a row's threads copy its twiddles there.
template <int LB, class Core>
__device__ __forceinline__ Row<LB, Core> fetch_row(const u64* const& table, u32 log_n,
                                                   const TileB<LB>& tile, bool wanted = true) {
    const FarRow far(table, log_n, tile, Core::ROW_WORDS_HELD);
    if constexpr (Core::NEAR_ROWS) {
        u64* near = tile.shared + ROW_RESIDUES<LB>;
        if (!wanted) return NearRow<LB>(near);
        if (tile.t == 0) {
            copy_async_8(near, far.table + 1);
            copy_async_8(near + 1, far.table + far.root());
        } else {
            const u32 layer = 32 - __clz(tile.t), within = 2 * tile.t - (1u << layer);
            copy_async_16(near + 2 * tile.t, far.table + (far.root() << layer) + within);
        }
        copy_async_16(near + (1u << (LB - 2)) + 2 * tile.t, far.table + far.origin() + 2 * tile.t);
        return NearRow<LB>(near);
    } else {
        return far;
    }
}

// Waits for a row's copies but those of the last LATER groups.
template <int LATER, int LB>
__device__ __forceinline__ void await_row(NearRow<LB>&) {
    copy_async_wait<LATER>();
    __syncwarp();
}
// Those in memory are read anew for every transform, as the compiler sees by where they are: it would keep
// more of them than there are registers.
template <int LATER>
__device__ __forceinline__ void await_row(FarRow& row) {
    copy_async_wait<LATER>();
    __syncwarp();
    row.table = *row.place;
}

// The forward pass B of lazy residues in first positions, to last positions.
template <int LB, class Core, class Table>
__device__ __forceinline__ void forward_row(
    typename Core::T (&x)[HELD], const Core& core, const Table& twiddles, const TileB<LB>& tile) {
    forward_layers<LB, 1>(x, tile.template row_of<typename Core::T>(), core, twiddles, tile.t, 0, OfWarp());
    __syncwarp();
}

// Has a row's threads copy the residues that SOURCE has of it in natural order to where they trade them.
template <int LB>
__device__ __forceinline__ void fetch_residues(const u64* source, const TileB<LB>& tile) {
#pragma unroll
    for (int h = 0; h < HELD; ++h)
        copy_async_8(&at_first<LB, 1>(tile.shared, tile.t, h), source + tile.first(h));
}

// Canonical ones, once they are there, in last positions.
template <int LB, class Core>
__device__ __forceinline__ void take_last(
    typename Core::T (&x)[HELD], const Core& core, const TileB<LB>& tile) {
#pragma unroll
    for (int h = 0; h < HELD; ++h) x[h] = core.load(at_last<LB, 1>(tile.shared, tile.t, h));
    __syncwarp();
}

// Lazy ones, in first positions.
template <int LB, class Core>
__device__ __forceinline__ void take_residues(
    typename Core::T (&x)[HELD], const Core& core, const TileB<LB>& tile) {
#pragma unroll
    for (int h = 0; h < HELD; ++h) x[h] = core.load_lazy(at_first<LB, 1>(tile.shared, tile.t, h));
    __syncwarp();
}

// Asks for a row of SOURCE.
template <int LB>
__device__ __forceinline__ void prefetch_row(const u64* source, const TileB<LB>& tile) {
    if (tile.t < (1u << LB) / LINE_WORDS) prefetch_line(source + tile.base + tile.t * LINE_WORDS);
}
// Gives up a row of SOURCE, which all its threads have read and nothing reads again.
template <int LB>
__device__ __forceinline__ void discard_row(const u64* source, const TileB<LB>& tile) {
    if (tile.t < (1u << LB) / LINE_WORDS) discard_line(source + tile.base + tile.t * LINE_WORDS);
}

// The inverse pass B of tidy residues in last positions, stored lazily in natural order.
template <int LB, class Core, class Table>
__device__ __forceinline__ void inverse_row(
    typename Core::T (&x)[HELD], u64* target, const Core& core, const Table& twiddles,
    const TileB<LB>& tile) {
    inverse_layers<LB, 1, 0>(x, tile.template row_of<typename Core::T>(), core, twiddles, tile.t, 0,
                             OfWarp());
#pragma unroll
    for (int h = 0; h < HELD; ++h)
        target[tile.first(h)] = core.store_lazy(core.reduce(x[h]));
    __syncwarp();
}

#endif
