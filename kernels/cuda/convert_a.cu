// Base conversions from few primes that run on into pass A of the forward transforms of what they give:
// a thread lifts the residues that it then transforms. In FAST.
//
// A target's lift reads all sources anew, which few of them make worth while: it saves writing and
// reading what is lifted, and a launch.
//
// Grids: (tiles of 2^LB columns, targets, polynomials or their digits).

#include "convert.cuh"
#include "launch.cuh"
#include "ntt.cuh"

namespace {

// Residues that are lifted at once; the sums of more do not fit the registers.
constexpr int LIFTED = 4;
// Sums of products modulo one target: of each source, of the quotient and of the rest, which are fewer
// than FH_SUM_TERMS.
struct Sums {
    double hi[LIFTED], lo[LIFTED];

    __device__ __forceinline__ Sums() {
#pragma unroll
        for (int c = 0; c < LIFTED; ++c) hi[c] = FH_SUM_BASE, lo[c] = 0.0;
    }
    __device__ __forceinline__ void add(const double (&x)[LIFTED], u64 factor) {
#pragma unroll
        for (int c = 0; c < LIFTED; ++c) f64_sum_add(&hi[c], &lo[c], x[c], fh_from_bits(factor));
    }
    __device__ __forceinline__ double value(int c, const Prime& p) const {
        return f64_sum_reduce(hi[c], lo[c], p.p_f64, p.inv_p);
    }
};

// Gives EACH every source of LIFTED residues, centred, and at last their quotients; PLACE(c) is where
// in a limb residue c is.
template <class Place, class Each>
__device__ __forceinline__ void for_sources(const u64* source, const Prime* primes, u32 count,
                                            u32 log_n, Place place, Each each) {
    Quotient quotients[LIFTED];
    double values[LIFTED];
    for (u32 i = 0; i < count; ++i) {
        const u64* limb = source + ((u64)i << log_n);
#pragma unroll
        for (int c = 0; c < LIFTED; ++c)
            values[c] = quotients[c].add(__ldg(limb + place(c)), primes[i]);
        each(i, values);
    }
#pragma unroll
    for (int c = 0; c < LIFTED; ++c) values[c] = quotients[c].value();
    each(count, values);
}

// Asks for the twiddles, which are long on their way.
template <int LA>
__device__ __forceinline__ NearTwiddles fetch_forward(const Prime& prime, u32 log_n) {
    FH_SHARED(scratch);
    const NearTwiddles twiddles = fetch_twiddles<LA, F64Core>(scratch, Twiddles(prime.forward, log_n),
                                                              threadIdx.x, THREADS_A<LA>);
    copy_async_commit();
    return twiddles;
}

template <int LA>
__device__ __forceinline__ void transform_lifted(double (&x)[HELD], u64* target, const Prime& prime,
                                                 const NearTwiddles& twiddles, const TileA<LA>& tile) {
    FH_SHARED(scratch);
    const F64Core core(prime);
    copy_async_wait<0>();
    __syncthreads();
    forward_layers<LA, COLUMNS_A<LA>>(x, reinterpret_cast<double*>(scratch + NEAR_WORDS<LA, F64Core>),
                                      core, twiddles, tile.t, tile.column, OfBlock());
    store_columns(x, target, core, tile);
}

// factors: [digit][limbs][row]. A digit's targets are all limbs but its own.
template <int LA>
__device__ __forceinline__ void mod_up_a(const ModUp& args) {
    const u32 digit = blockIdx.z % args.digits, poly = blockIdx.z / args.digits;
    const Targets targets = targets_of(args, digit);
    // The last digit, which may have fewer primes of its own, has more targets.
    if (blockIdx.y >= targets.count) return;
    const u32 own = targets.own, count = targets.own_count, limb = targets.limb(blockIdx.y);
    const TileA<LA> tile(args.log_n - LA);
    const Prime& prime = args.primes[prime_of(args.basis, limb)];
    const NearTwiddles twiddles = fetch_forward<LA>(prime, args.log_n);
    const u64* source = args.source + poly * args.source_stride + ((u64)own << args.log_n);
    const u64* row = args.factors + ((u64)digit * args.basis.limbs + limb) * args.row;
    double x[HELD];
#pragma unroll
    for (int first = 0; first < HELD; first += LIFTED) {
        Sums sums;
        for_sources(source, args.primes + own, count, args.log_n,
                    [&](int c) { return tile.first(first + c); },
                    [&](u32 i, const double(&values)[LIFTED]) { sums.add(values, __ldg(row + i)); });
#pragma unroll
        for (int c = 0; c < LIFTED; ++c) x[first + c] = sums.value(c, prime);
    }
    transform_lifted<LA>(x, args.target + blockIdx.z * args.target_stride + ((u64)limb << args.log_n),
                         prime, twiddles, tile);
}

// factors: [limbs, then the dropped prime][row].
template <int LA>
__device__ __forceinline__ void mod_down_a(const ModDown& args) {
    const u32 limb = blockIdx.y;
    const TileA<LA> tile(args.log_n - LA);
    const Prime& prime = args.primes[prime_of(args.basis, limb)];
    const NearTwiddles twiddles = fetch_forward<LA>(prime, args.log_n);
    const Prime& q = args.primes[args.basis.limbs];
    const u64* source = args.source + blockIdx.z * args.source_stride;
    const u64* row = args.factors + (u64)limb * args.row;
    const u64* dropped_row = args.factors + (u64)args.basis.limbs * args.row;
    double x[HELD];
#pragma unroll
    for (int first = 0; first < HELD; first += LIFTED) {
        const auto place = [&](int c) { return tile.first(first + c); };
        Sums sums;
        if (args.dropped == 0) {
            for_sources(source, args.primes + args.special_first, args.specials, args.log_n, place,
                        [&](u32 i, const double(&values)[LIFTED]) { sums.add(values, __ldg(row + i)); });
        } else {
            Sums dropped;
            for_sources(source, args.primes + args.special_first, args.specials, args.log_n, place,
                        [&](u32 i, const double(&values)[LIFTED]) {
                            sums.add(values, __ldg(row + i));
                            dropped.add(values, __ldg(dropped_row + i));
                        });
            double rest[LIFTED];
#pragma unroll
            for (int c = 0; c < LIFTED; ++c) {
                const u64 word = __ldg(source + ((u64)args.specials << args.log_n) + place(c));
                rest[c] = rest_of(dropped.value(c, q), word, args.p_inverse, q);
            }
            sums.add(rest, __ldg(row + args.specials + 1));
        }
#pragma unroll
        for (int c = 0; c < LIFTED; ++c) x[first + c] = sums.value(c, prime);
    }
    transform_lifted<LA>(x, args.target + blockIdx.z * args.target_stride + ((u64)limb << args.log_n),
                         prime, twiddles, tile);
}

}  // namespace

// Blocks of 1024 or 768 threads together share a multiprocessor's registers, of fewer for other targets
// than sm_90, where that would spill.
template <int LA>
constexpr int RESIDENT_UP = (1024 - 256 * FEWER) / THREADS_A<LA>;
template <int LA>
constexpr int RESIDENT_DOWN = (LA == 9 ? 512 : 768 - 256 * FEWER) / THREADS_A<LA>;

#define CONVERT_A(LA)                                                                       \
    FH_KERNEL(mod_up_a_##LA##_fast, THREADS_A<LA>, RESIDENT_UP<LA>, ModUp, mod_up_a<LA>)     \
    FH_KERNEL(mod_down_a_##LA##_fast, THREADS_A<LA>, RESIDENT_DOWN<LA>, ModDown, mod_down_a<LA>)

CONVERT_A(5)
CONVERT_A(6)
CONVERT_A(7)
CONVERT_A(8)
CONVERT_A(9)
