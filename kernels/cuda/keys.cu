// Evaluation keys between the form that the inner product takes and residues.
//
// Grids: (pairs of residues, limbs, digits); a thread does two neighbouring words in held order.

#include "launch.cuh"
#include "ntt.cuh"

namespace {

constexpr int THREADS = 256;

// The residues of one half of an evaluation key, from the form that hold_key gave it.
struct ReleaseKey {
    const Prime* primes;
    const u64* source;  // [digit][half][all primes][N], at that half
    u64* target;        // [digit][all primes][N]
    u64 source_stride;  // of one digit
    u64 target_stride;
    u32 log_n;
    u32 unused;
};
static_assert(sizeof(ReleaseKey) == 48, "src/kernels/keys.rs has the same layout");

template <int LB, Mode MODE>
__device__ __forceinline__ void release_key(const ReleaseKey& args) {
    const Prime& prime = args.primes[blockIdx.y];
    const u64 offset = (u64)blockIdx.y << args.log_n;
    const u64* source = args.source + blockIdx.z * args.source_stride + offset;
    u64* target = args.target + blockIdx.z * args.target_stride + offset;
    const u32 at = (blockIdx.x * THREADS + threadIdx.x) * 2;
    const u32 base = at & ~((1u << LB) - 1), within = at & ((1u << LB) - 1);
    const u32 h = within / (2 * ROW_THREADS<LB>) * 2, t = within % (2 * ROW_THREADS<LB>) / 2;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const u64 word = source[at + i];
        target[base + last_position<LB>(t, h + i)] =
            MODE == FAST ? f64_store(fh_from_bits(word), prime.p_f64, prime.inv_p)
                         : u64_mul_montgomery(word, 1, prime.p, prime.montgomery);
    }
}

}  // namespace

#define MODES(LB)                                                                        \
    FH_KERNEL(release_key_##LB##_fast, THREADS, 4, ReleaseKey, (release_key<LB, FAST>))  \
    FH_KERNEL(release_key_##LB##_wide, THREADS, 4, ReleaseKey, (release_key<LB, WIDE>))

MODES(5)
MODES(6)
MODES(7)
MODES(8)
