// Sums along a batch axis.
//
// Grid: (pairs of residues, limbs, polynomials of the result); a thread does two neighbouring
// residues.

#include "launch.cuh"

namespace {

constexpr int THREADS = 256;

struct BatchSum {
    const Prime* primes;
    const u64* source;  // [outer][extent][inner][part][limb][N]
    u64* target;        // [outer][inner][part][limb][N]
    u64 polynomial;     // words from one polynomial to the next
    u32 extent;
    u32 inner;  // polynomials within one place of the summed axis
    u32 log_n;
    u32 unused;
    Basis basis;
};
static_assert(sizeof(BatchSum) == 64, "src/kernels/batch.rs has the same layout");

__device__ __forceinline__ void sum_places(const BatchSum& args) {
    const u64 at = ((u64)blockIdx.y << args.log_n) + (u64)(blockIdx.x * THREADS + threadIdx.x) * 2;
    const u64 p = args.primes[prime_of(args.basis, blockIdx.y)].p;
    const u32 outer = blockIdx.z / args.inner, inner = blockIdx.z % args.inner;
    const u64* source = args.source + ((u64)outer * args.extent * args.inner + inner) * args.polynomial + at;
    const u64 step = (u64)args.inner * args.polynomial;
    ulonglong2 sum = *reinterpret_cast<const ulonglong2*>(source);
    for (u32 place = 1; place < args.extent; ++place) {
        const ulonglong2 term = *reinterpret_cast<const ulonglong2*>(source + place * step);
        sum.x = u64_add(sum.x, term.x, p);
        sum.y = u64_add(sum.y, term.y, p);
    }
    *reinterpret_cast<ulonglong2*>(args.target + blockIdx.z * args.polynomial + at) = sum;
}

}  // namespace

FH_KERNEL(batch_sum, THREADS, 4, BatchSum, sum_places)
