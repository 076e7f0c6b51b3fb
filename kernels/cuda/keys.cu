// Evaluation keys: from their parts, and to and from the form that the inner product takes, which
// is in held order, as centred doubles or residues times 2^64.
//
// Grids: (pairs of residues, limbs, digits); a thread does two neighbouring words in held order.

#include "launch.cuh"
#include "rows.cuh"

namespace {

constexpr int THREADS = 256;

// A thread's two words in held order, and the residues that they stand for.
template <int LB>
struct HeldPair {
    u32 at, base, h, t;
    __device__ __forceinline__ HeldPair() : at((blockIdx.x * THREADS + threadIdx.x) * 2) {
        const u32 within = at & ((1u << LB) - 1);
        base = at - within;
        h = within / (2 * ROW_THREADS<LB>) * 2;
        t = within % (2 * ROW_THREADS<LB>) / 2;
    }
    __device__ __forceinline__ u32 residue(int i) const {
        return base + last_position<LB>(t, h + i);
    }
};

// A residue as a word of a key.
template <Mode MODE>
__device__ __forceinline__ u64 hold(u64 residue, const Prime& prime) {
    if constexpr (MODE == FAST) return fh_to_bits(f64_center(f64_load(residue), prime.p_f64));
    // 2^64 mod p is 2^64 - floor(2^64 / p) p.
    return u64_mul(residue, 0 - prime.ratio_hi * prime.p, prime.p, prime.ratio_lo, prime.ratio_hi);
}

// One half of a key.
struct HoldKey {
    const Prime* primes;
    const u64* source;  // hold: [digit][all primes][N]; release: [digit][half][all primes][N]
    u64* target;        // the other of these, at the half
    u64 source_stride;  // of one digit
    u64 target_stride;
    u32 log_n;
    u32 unused;
};
static_assert(sizeof(HoldKey) == 48, "src/kernels/keys.rs has the same layout");

template <int LB, Mode MODE>
__device__ __forceinline__ void hold_key(const HoldKey& args) {
    const Prime& prime = args.primes[blockIdx.y];
    const u64 offset = (u64)blockIdx.y << args.log_n;
    const u64* source = args.source + blockIdx.z * args.source_stride + offset;
    u64* target = args.target + blockIdx.z * args.target_stride + offset;
    const HeldPair<LB> pair;
#pragma unroll
    for (int i = 0; i < 2; ++i) target[pair.at + i] = hold<MODE>(source[pair.residue(i)], prime);
}

template <int LB, Mode MODE>
__device__ __forceinline__ void release_key(const HoldKey& args) {
    const Prime& prime = args.primes[blockIdx.y];
    const u64 offset = (u64)blockIdx.y << args.log_n;
    const u64* source = args.source + blockIdx.z * args.source_stride + offset;
    u64* target = args.target + blockIdx.z * args.target_stride + offset;
    const HeldPair<LB> pair;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const u64 word = source[pair.at + i];
        target[pair.residue(i)] = MODE == FAST
                                      ? f64_store(fh_from_bits(word), prime.p_f64, prime.inv_p)
                                      : u64_mul_montgomery(word, 1, prime.p, prime.montgomery);
    }
}

// b_j = -a_j t + e_j + P g_j s', and a_j: for relinearization t = s and s' = s^2, for the
// automorphism X -> X^g, s' = s and t = s under its inverse.
struct MakeKey {
    const Prime* primes;
    const u64* special;  // P by prime
    const u64* errors;   // [digit][all primes][N], transformed
    const u64* uniform;  // [digit][all primes][N]
    const u64* secret;   // [all primes][N]
    u64* target;         // [digit][half][all primes][N]
    u32 limbs;
    u32 level_primes;
    u32 digit_size;
    u32 galois_inverse;  // 0 for relinearization
    u32 log_n;
    u32 unused;
};
static_assert(sizeof(MakeKey) == 72, "src/kernels/keys.rs has the same layout");

template <int LB, Mode MODE>
__device__ __forceinline__ void make_key(const MakeKey& args) {
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const u32 limb = blockIdx.y, digit = blockIdx.z;
    const Prime& prime = args.primes[limb];
    const Core core(prime);
    const u64 offset = (u64)limb << args.log_n, half = (u64)args.limbs << args.log_n;
    const u64* errors = args.errors + digit * half + offset;
    const u64* uniform = args.uniform + digit * half + offset;
    const u64* secret = args.secret + offset;
    u64* target = args.target + 2 * digit * half + offset;
    const bool own = limb < args.level_primes && limb / args.digit_size == digit;
    const T special = own ? core.load(args.special[limb]) : core.zero();
    const HeldPair<LB> pair;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const u32 at = pair.residue(i);
        const T s = core.load(secret[at]);
        T source = s, under = s;
        if (args.galois_inverse == 0)
            source = core.tidy(core.product(s, s));
        else
            under = core.load(secret[automorphism_source(args.galois_inverse, at, args.log_n)]);
        const u64 a = uniform[at];
        const T difference =
            core.sub(core.load(errors[at]), core.tidy(core.product(core.load(a), under)));
        const u64 b = core.store(core.add(difference, core.product(source, special)));
        target[pair.at + i] = hold<MODE>(b, prime);
        target[half + pair.at + i] = hold<MODE>(a, prime);
    }
}

}  // namespace

#define MODES(LB, SUFFIX, MODE)                                                        \
    FH_KERNEL(hold_key_##LB##_##SUFFIX, THREADS, 4, HoldKey, (hold_key<LB, MODE>))       \
    FH_KERNEL(release_key_##LB##_##SUFFIX, THREADS, 4, HoldKey, (release_key<LB, MODE>)) \
    FH_KERNEL(make_key_##LB##_##SUFFIX, THREADS, 4, MakeKey, (make_key<LB, MODE>))

MODES(5, fast, FAST)
MODES(7, fast, FAST)
MODES(8, fast, FAST)
MODES(5, wide, WIDE)
MODES(7, wide, WIDE)
MODES(8, wide, WIDE)
