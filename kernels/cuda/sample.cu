// Small polynomials to residues, and uniform residues from a seed.

#include "launch.cuh"

namespace {

constexpr int THREADS = 256;

// Small signed coefficients as residues of every prime. Grid: (pairs, limbs, polynomials).
struct Lift {
    const Prime* primes;
    const signed char* source;  // [polynomial][N]
    u64* target;                // [polynomial][limbs][N]
    u64 target_stride;
    Basis basis;
    u32 log_n;
    u32 unused;
};
static_assert(sizeof(Lift) == 56, "src/kernels/sample.rs has the same layout");

__device__ __forceinline__ void lift(const Lift& args) {
    const u32 at = (blockIdx.x * THREADS + threadIdx.x) * 2;
    const u64 p = args.primes[prime_of(args.basis, blockIdx.y)].p;
    const signed char* source = args.source + ((u64)blockIdx.z << args.log_n) + at;
    u64 residues[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const i64 value = source[i];
        residues[i] = (u64)(value + ((value >> 63) & (i64)p));
    }
    u64* target = args.target + blockIdx.z * args.target_stride + ((u64)blockIdx.y << args.log_n);
    *reinterpret_cast<ulonglong2*>(target + at) = make_ulonglong2(residues[0], residues[1]);
}

// Uniform residues, by rejection, as fhelium-ckks' sampler draws them. A block makes one limb:
// in each round every thread makes one block of the key stream, and what is kept goes behind what
// earlier threads and rounds kept. Grid: (1, limbs, polynomials).
struct Uniform {
    const Prime* primes;
    const u64* seeds;  // four words each
    u64* target;       // [polynomial][limbs][N]
    u64 seed_stride;   // words from one polynomial's seed to the next: 0 for one seed
    u64 target_stride;
    u64 stream;        // of polynomial 0 and prime 0
    u64 stream_step;   // from one polynomial to the next
    Basis basis;
    u32 log_n;
    u32 unused;
};
static_assert(sizeof(Uniform) == 80, "src/kernels/sample.rs has the same layout");

__device__ __forceinline__ u32 rotate(u32 x, int bits) { return x << bits | x >> (32 - bits); }

__device__ __forceinline__ void quarter_round(u32& a, u32& b, u32& c, u32& d) {
    a += b, d = rotate(d ^ a, 16);
    c += d, b = rotate(b ^ c, 12);
    a += b, d = rotate(d ^ a, 8);
    c += d, b = rotate(b ^ c, 7);
}

constexpr int BLOCK_WORDS = 8;

// A block of the ChaCha20 key stream (D. J. Bernstein, "ChaCha, a variant of Salsa20", 2008) with a
// 64-bit block number and a 64-bit stream number.
__device__ __forceinline__ void chacha20(u64 (&words)[BLOCK_WORDS], const u64 (&key)[4], u64 block,
                                         u64 stream) {
    u32 start[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
#pragma unroll
    for (int i = 0; i < 4; ++i) start[4 + 2 * i] = (u32)key[i], start[5 + 2 * i] = (u32)(key[i] >> 32);
    start[12] = (u32)block, start[13] = (u32)(block >> 32);
    start[14] = (u32)stream, start[15] = (u32)(stream >> 32);
    u32 x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) x[i] = start[i];
#pragma unroll 2
    for (int round = 0; round < 10; ++round) {
#pragma unroll
        for (int i = 0; i < 4; ++i) quarter_round(x[i], x[4 + i], x[8 + i], x[12 + i]);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            quarter_round(x[i], x[4 + (i + 1) % 4], x[8 + (i + 2) % 4], x[12 + (i + 3) % 4]);
    }
#pragma unroll
    for (int i = 0; i < BLOCK_WORDS; ++i)
        words[i] = (u64)(x[2 * i] + start[2 * i]) | (u64)(x[2 * i + 1] + start[2 * i + 1]) << 32;
}

constexpr u32 FULL = 0xFFFFFFFFu;
constexpr int WARPS = THREADS / 32;

__device__ __forceinline__ void uniform(const Uniform& args) {
    FH_SHARED(scratch);
    u64* kept = scratch;  // THREADS * BLOCK_WORDS
    u64* sums = scratch + THREADS * BLOCK_WORDS;  // WARPS
    const u32 index = prime_of(args.basis, blockIdx.y);
    const u64 p = args.primes[index].p;
    const u64 mask = ~0ull >> __clzll((long long)p);
    const u64* seed = args.seeds + blockIdx.z * args.seed_stride;
    const u64 key[4] = {seed[0], seed[1], seed[2], seed[3]};
    const u64 stream = args.stream + blockIdx.z * args.stream_step + index;
    u64* target = args.target + blockIdx.z * args.target_stride + ((u64)blockIdx.y << args.log_n);
    const u32 n = 1u << args.log_n, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 filled = 0;
    for (u64 block = threadIdx.x; filled < n; block += THREADS) {
        u64 words[BLOCK_WORDS];
        chacha20(words, key, block, stream);
        u32 count = 0;
#pragma unroll
        for (int i = 0; i < BLOCK_WORDS; ++i) {
            words[i] &= mask;
            count += words[i] < p;
        }
        // Where this thread's words go: behind those of all threads before it.
        u32 end = count;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const u32 before = __shfl_up_sync(FULL, end, step);
            if (lane >= step) end += before;
        }
        if (lane == 31) sums[warp] = end;
        __syncthreads();
        u32 total = 0, place = end - count;
#pragma unroll
        for (int i = 0; i < WARPS; ++i) {
            const u32 sum = (u32)sums[i];
            if (i < warp) place += sum;
            total += sum;
        }
#pragma unroll
        for (int i = 0; i < BLOCK_WORDS; ++i)
            if (words[i] < p) kept[place++] = words[i];
        __syncthreads();
        if (total > n - filled) total = n - filled;
        for (u32 i = threadIdx.x; i < total; i += THREADS) target[filled + i] = kept[i];
        filled += total;
    }
}

}  // namespace

FH_KERNEL(lift_small, THREADS, 4, Lift, (lift))
FH_KERNEL(uniform_from_seed, THREADS, 4, Uniform, (uniform))
