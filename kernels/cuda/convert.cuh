// Base conversion: what its kernels share.
//
// Coefficients go from one set of primes to another by their exact centred lift: S. Halevi,
// Y. Polyakov, V. Shoup, "An Improved RNS Variant of the BFV Homomorphic Encryption Scheme",
// CT-RSA 2019, section 2.2. The sources come already multiplied by (Q/q_i)^-1. The quotient v is
// summed in double precision with the host's very operations, in its order, so that both round
// alike; all else is exact.
#ifndef FHELIUM_CONVERT_CUH
#define FHELIUM_CONVERT_CUH

#include "core.cuh"
#include "ntt.cuh"

// Targets of one tile of a product of matrices.
constexpr int TILE_TARGETS = 8;

// The quotient v of one coefficient whose sources are canonical doubles, less what centring them
// takes off: v with the centred sources.
struct Quotient {
    double sum = 0.0, above = 0.0;

    // Takes the next source's word, and returns it centred.
    __device__ __forceinline__ double add(u64 word, const Prime& q) {
        const double canonical = fh_from_bits(word);
        sum = FH_ADD(sum, FH_MUL(canonical, q.inv_p));
        const double centred = f64_center(canonical, q.p_f64);
        if (centred < 0.0) above = FH_ADD(above, 1.0);
        return centred;
    }
    __device__ __forceinline__ double value() const {
        return FH_ADD(FH_ADD(FH_ADD(sum, FH_ROUND), -FH_ROUND), -above);
    }
};

// Each digit of a polynomial to the level's other primes and the special ones.
struct ModUp {
    const Prime* primes;
    const u64* source;   // [polynomial][level limbs][N]
    u64* target;         // [polynomial][digit][limbs][N], a digit's own limbs left alone
    const u64* factors;  // [digit][limbs][row], or matrices
    const Scale* scales;  // for kernels that transform the sources back, by prime
    u64 source_stride;
    u64 target_stride;  // of one digit
    Basis basis;
    u32 log_n;
    u32 digits;
    u32 digit_size;
    u32 digit_limbs;  // the level's
    u32 chunk;        // targets a block serves, tiles of them for matrices
    u32 row;          // words in a row of factors
};
static_assert(sizeof(ModUp) == 96, "src/kernels/convert.rs has the same layout");

// The special limbs of a polynomial over QP to the level's primes: what a mod-down subtracts. With
// a rescale merged in, the source has one limb more, of the prime q that the rescale drops, and
// what is subtracted has P r added, r being the centred residue modulo q of the mod-down's result:
// rounded twice as the two operations are, in one conversion.
struct ModDown {
    const Prime* primes;
    const u64* source;   // [polynomial][specials, then the dropped limb][N]
    u64* target;         // [polynomial][limbs][N]
    const u64* factors;  // [limbs, then the dropped prime][row], or matrices
    const u64* rest_factors;  // matrices only: those rows
    const Scale* scales;      // for kernels that transform the sources back, by prime
    u64 source_stride;
    u64 target_stride;
    Factor p_inverse;  // 1/P modulo the dropped prime
    Basis basis;       // of the target
    u32 log_n;
    u32 special_first;  // index of the first special prime
    u32 specials;
    u32 dropped;  // 1 with a rescale, whose prime is the one behind the target's limbs
    u32 chunk;
    u32 row;
};
static_assert(sizeof(ModDown) == 120, "src/kernels/convert.rs has the same layout");

// The limbs that a conversion gives: a digit's are all but its own.
struct Targets {
    u32 own, own_count, count;

    // Of products of matrices.
    __device__ __forceinline__ u32 tiles() const { return (count + TILE_TARGETS - 1) / TILE_TARGETS; }
    __device__ __forceinline__ u32 limb(u32 target) const {
        return target < own ? target : target + own_count;
    }
};
__device__ __forceinline__ Targets targets_of(const ModUp& args, u32 digit) {
    const u32 own = digit * args.digit_size, count = min(args.digit_size, args.digit_limbs - own);
    return Targets{own, count, args.basis.limbs - count};
}
__device__ __forceinline__ Targets targets_of(const ModDown& args) {
    return Targets{args.basis.limbs, 0, args.basis.limbs};
}

// The rest that a rescale leaves, centred: what the mod-down's result is modulo the dropped prime q,
// from the lift modulo q and the dropped limb's word.
__device__ __forceinline__ double rest_of(double lifted, u64 word, const Factor& p_inverse, const Prime& q) {
    const double difference = FH_ADD(fh_from_bits(word), -lifted);
    const double r = f64_mul(difference, fh_from_bits(p_inverse.w), q.p_f64, q.inv_p);
    return f64_center(f64_canonical(r, q.p_f64, q.inv_p), q.p_f64);
}

#endif
