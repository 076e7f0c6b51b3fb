// Base conversions of whole columns: pass A of the inverse transforms of the sources, the conversion as a
// product of matrices, and pass A of the forward transforms of what it gives, in one kernel, whose block
// holds its columns over all sources in shared memory. In FAST.
//
// Grids: (tiles of columns, shares of the targets, polynomials or their digits); a share transforms the
// sources anew.

#include "async.cuh"
#include "convert.cuh"
#include "launch.cuh"
#include "matrix.cuh"
#include "ntt.cuh"

namespace {

// Coefficients of a limb that a block holds, one for each thread; a group of threads transforms one limb,
// and a tile of targets has one for each group.
constexpr u32 COEFFICIENTS = 1024, GROUP_THREADS = COEFFICIENTS / HELD;
static_assert(COEFFICIENTS / GROUP_THREADS == TILE_TARGETS, "a group for each target");
// Words of a row in shared memory: of a source, and of a target, padded for pairs from two lanes' rows.
constexpr u32 SOURCE_ROW = PADDED_ROW<COEFFICIENTS>, TARGET_ROW = COEFFICIENTS + 8;
// Of a group's twiddles, and of a target's multipliers, padded likewise.
constexpr u32 TWIDDLES = 256;
__device__ __forceinline__ u32 multiplier_row(u32 pieces) { return 2 * pieces + 8; }

template <int LA>
constexpr int COLUMNS = COEFFICIENTS >> LA;

// What a block keeps at hand, in this order.
struct Near {
    u64* targets;      // a row for each group
    u64* twiddles;     // of each group
    u64* multipliers;  // of a tile's targets
    u64* primes;
    u64* sources;

    __device__ __forceinline__ Near(u64* shared, u32 pieces, u32 primes_count)
        : targets(shared),
          twiddles(targets + TILE_TARGETS * TARGET_ROW),
          multipliers(twiddles + TILE_TARGETS * TWIDDLES),
          primes(multipliers + TILE_TARGETS * multiplier_row(pieces)),
          sources(primes + primes_count * PRIME_WORDS) {}
};

// A thread's place: its group, and its part of the group's columns.
template <int LA>
struct Place {
    u32 group, thread;
    TileA<LA, COLUMNS<LA>> tile;
    OfGroup<GROUP_THREADS> trade;

    __device__ __forceinline__ explicit Place(u32 log_n)
        : group(threadIdx.x / GROUP_THREADS),
          thread(threadIdx.x % GROUP_THREADS),
          tile(log_n - LA, thread),
          trade{1 + group} {}
    // Of a row, in first and last positions.
    __device__ __forceinline__ double& first(double* row, int h) const {
        return at_first<LA, COLUMNS<LA>>(row, tile.t, h, tile.column);
    }
    __device__ __forceinline__ double& last(double* row, int h) const {
        return at_last<LA, COLUMNS<LA>>(row, tile.t, h, tile.column);
    }
    // Has the group fetch its columns of a limb, each thread pairs of neighbours.
    __device__ __forceinline__ void fetch_limb(u64* row, const u64* limb) const {
        constexpr u32 PAIRS = COLUMNS<LA> / 2, STRIDE = GROUP_THREADS / PAIRS;
        const u32 column = thread % PAIRS * 2;
        limb += blockIdx.x * COLUMNS<LA> + column;
#pragma unroll
        for (int i = 0; i < HELD / 2; ++i) {
            const u32 position = i * STRIDE + thread / PAIRS;
            copy_async_16(row + slot<LA, COLUMNS<LA>>(position, column),
                          limb + ((u64)position << tile.log_b));
        }
    }
    // And a prime's twiddles of pass A.
    __device__ __forceinline__ NearTwiddles twiddles(u64* near, const u64* table, u32 log_n) const {
        return fetch_twiddles<LA, F64Core>(near, Twiddles(table, log_n), thread, GROUP_THREADS);
    }
};

// The primes' constants, at hand after a barrier.
__device__ __forceinline__ const Prime* fetch_primes(u64* near, const Prime* primes, u32 count) {
    const u64* words = reinterpret_cast<const u64*>(primes);
    for (u32 i = threadIdx.x; i < count * PRIME_WORDS; i += COEFFICIENTS) near[i] = __ldg(words + i);
    return reinterpret_cast<const Prime*>(near);
}

// Pass A of the inverse transforms of `count` limbs, to canonical doubles in rows; PRIME(i) is the index
// of limb i's prime. The limbs come first, as the longest on their way.
template <int LA, class PrimeAt>
__device__ __forceinline__ const Prime* transform_sources(
    const Near& near, const u64* source, u32 count, const Prime* far_primes, u32 primes_count,
    const Scale* scales, u32 log_n, const Place<LA>& place, PrimeAt prime_at) {
    const auto& tile = place.tile;
    // The rows of targets are free as yet: there twiddles wait, and behind them scales.
    constexpr u32 CONSTANTS = TWIDDLES + 8;
    u64* constants = near.targets + place.group * TARGET_ROW;
    const auto fetch_limb = [&](u32 limb) {
        if (limb < count)
            place.fetch_limb(near.sources + limb * SOURCE_ROW, source + ((u64)limb << log_n));
    };
    fetch_limb(place.group);
    const Prime* primes = fetch_primes(near.primes, far_primes, primes_count);
    __syncthreads();
    const auto fetch_constants = [&](u32 limb) {
        if (limb < count) {
            u64* own = constants + limb / TILE_TARGETS * CONSTANTS;
            const u32 index = prime_at(limb);
            place.twiddles(own, primes[index].inverse, log_n);
            const u64* scale = reinterpret_cast<const u64*>(scales + index);
            if (place.thread < 2) copy_async_16(own + TWIDDLES + 2 * place.thread, scale + 2 * place.thread);
        }
        copy_async_commit();
    };
    fetch_constants(place.group);
#pragma unroll 1
    for (u32 limb = place.group; limb < count; limb += TILE_TARGETS) {
        fetch_limb(limb + TILE_TARGETS);
        fetch_constants(limb + TILE_TARGETS);
        copy_async_wait<1>();
        place.trade();
        const u64* own = constants + limb / TILE_TARGETS * CONSTANTS;
        const F64Core core(primes[prime_at(limb)]);
        double* row = reinterpret_cast<double*>(near.sources + limb * SOURCE_ROW);
        double x[HELD];
#pragma unroll
        for (int h = 0; h < HELD; ++h) x[h] = place.last(row, h);
        inverse_layers<LA, COLUMNS<LA>, 1>(x, row, core, NearTwiddles{own, 0},
                                           tile.t, tile.column, place.trade);
        scaled_layer<LA>(x, core, *reinterpret_cast<const Scale*>(own + TWIDDLES));
#pragma unroll
        for (int h = 0; h < HELD; ++h)
            place.first(row, h) = fh_from_bits(core.store_canonical_lazy(x[h]));
    }
    __syncthreads();
    return primes;
}

// Converts the cut sources to a share of the targets, and does pass A of the forward transforms there.
template <int LA>
__device__ __forceinline__ void transform_targets(
    const Near& near, const u64* factors, u32 pieces, u64* target, const Prime* primes,
    const Basis& basis, const Targets& targets, u32 chunk, u32 log_n, const Place<LA>& place) {
    const auto& tile = place.tile;
    const u32 end = min((blockIdx.y + 1) * chunk, targets.tiles());
    double* own = reinterpret_cast<double*>(near.targets + place.group * TARGET_ROW);
    // Of a tile; factors are [limbs][pieces] of m1, m0.
    const auto fetch_multipliers = [&](u32 i) {
        const u32 of_tile = threadIdx.x / pieces, piece = threadIdx.x % pieces;
        const u32 index = i * TILE_TARGETS + of_tile;
        if (i < end && of_tile < TILE_TARGETS && index < targets.count)
            copy_async_16(near.multipliers + of_tile * multiplier_row(pieces) + 2 * piece,
                          factors + ((u64)targets.limb(index) * pieces + piece) * 2);
        copy_async_commit();
    };
    fetch_multipliers(blockIdx.y * chunk);
    copy_async_wait<0>();
    __syncthreads();
#pragma unroll 1
    for (u32 i = blockIdx.y * chunk; i < end; ++i) {
        const u32 index = i * TILE_TARGETS + place.group;
        const u32 limb = targets.limb(min(index, targets.count - 1));
        const Prime& prime = primes[prime_of(basis, limb)];
        const NearTwiddles twiddles =
            place.twiddles(near.twiddles + place.group * TWIDDLES, prime.forward, log_n);
        copy_async_commit();
        multiply_tile<SOURCE_ROW>(
            near.sources, pieces, i, primes, basis, targets,
            [&](u32 of_tile, u32) { return near.multipliers + of_tile * multiplier_row(pieces); },
            [&](u32 of_tile, u32, u32 coefficient, u64 x, u64 y) {
                store_pair(near.targets + of_tile * TARGET_ROW + coefficient, x, y);
            });
        copy_async_wait<0>();
        __syncthreads();
        fetch_multipliers(i + 1);
        if (index < targets.count) {
            const F64Core core(prime);
            double x[HELD];
#pragma unroll
            for (int h = 0; h < HELD; ++h) x[h] = place.first(own, h);
            forward_layers<LA, COLUMNS<LA>>(x, own, core, twiddles,
                                            tile.t, tile.column, place.trade);
            store_columns(x, target + ((u64)limb << log_n), core, tile);
        }
        copy_async_wait<0>();
        __syncthreads();
    }
}

template <int LA>
__device__ __forceinline__ void mod_up_columns(const ModUp& args) {
    FH_SHARED(shared);
    const u32 digit = blockIdx.z % args.digits, poly = blockIdx.z / args.digits;
    const Targets targets = targets_of(args, digit);
    // Digits of fewer primes have more targets.
    if (blockIdx.y * args.chunk >= targets.tiles()) return;
    const u32 count = args.basis.skip + args.basis.limbs;
    const Near near(shared, args.row, count);
    const Place<LA> place(args.log_n);
    const Prime* primes = transform_sources<LA>(
        near, args.source + poly * args.source_stride + ((u64)targets.own << args.log_n),
        targets.own_count, args.primes, count, args.scales, args.log_n, place,
        [&](u32 limb) { return targets.own + limb; });
    pack_up<SOURCE_ROW>(near.sources + threadIdx.x, primes, args.row, targets);
    transform_targets<LA>(near, args.factors + (u64)digit * args.basis.limbs * (2 * args.row), args.row,
                          args.target + blockIdx.z * args.target_stride, primes, args.basis, targets,
                          args.chunk, args.log_n, place);
}

template <int LA>
__device__ __forceinline__ void mod_down_columns(const ModDown& args) {
    FH_SHARED(shared);
    const u32 count = args.special_first + args.specials;
    const Near near(shared, args.row, count);
    const Place<LA> place(args.log_n);
    const Prime* primes = transform_sources<LA>(
        near, args.source + blockIdx.z * args.source_stride, args.specials + args.dropped, args.primes,
        count, args.scales, args.log_n, place, [&](u32 limb) {
            return limb < args.specials ? args.special_first + limb : args.basis.limbs;
        });
    pack_down<SOURCE_ROW>(near.sources + threadIdx.x, primes, args);
    transform_targets<LA>(near, args.factors, args.row, args.target + blockIdx.z * args.target_stride,
                          primes, args.basis, targets_of(args), args.chunk, args.log_n, place);
}

}  // namespace

#define CONVERT_COLUMNS(LA)                                                                  \
    FH_KERNEL(mod_up_columns_##LA##_fast, COEFFICIENTS, 1, ModUp, mod_up_columns<LA>)         \
    FH_KERNEL(mod_down_columns_##LA##_fast, COEFFICIENTS, 1, ModDown, mod_down_columns<LA>)

CONVERT_COLUMNS(5)
CONVERT_COLUMNS(6)
CONVERT_COLUMNS(7)
CONVERT_COLUMNS(8)
