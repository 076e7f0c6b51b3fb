// Small polynomials and uniform ones from their ChaCha20 streams, as fhelium-ckks' draws.rs says, and
// small ones to residues.

#include "launch.cuh"

namespace {

constexpr int THREADS = 256;

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

// The sum of the counts of all threads before this one; `total` of all, WARPS * 32 threads. They
// have a barrier before they call it again.
template <int WARPS>
__device__ __forceinline__ u32 sum_before(u32 count, u64* sums, u32& total) {
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 end = count;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const u32 before = __shfl_up_sync(FULL, end, step);
        if (lane >= step) end += before;
    }
    if (lane == 31) sums[warp] = end;
    __syncthreads();
    u32 place = end - count;
    total = 0;
#pragma unroll
    for (int i = 0; i < WARPS; ++i) {
        const u32 sum = (u32)sums[i];
        if (i < warp) place += sum;
        total += sum;
    }
    return place;
}

// Small polynomials of groups of members, each from its own stream. What a thread does and where it
// writes does not depend on their coefficients.
struct Small {
    signed char* target;  // [group][member][N]
    u64 key[4];
    u64 first_stream;
    u64 group_step;
    u32 members;
    u32 first_member;  // of those that the grid counts from here on
    u32 log_n;
    u32 unused;
    u64 tails[29];  // of the Gaussian, see fhelium-ckks' sampler.rs
};
static_assert(sizeof(Small) == 304, "src/kernels/sample.rs has the same layout");

__device__ __forceinline__ void small_block(u64 (&words)[BLOCK_WORDS], const Small& args, u64 block,
                                            u32 group, u32 member) {
    chacha20(words, args.key, block, args.first_stream + group * args.group_step + member);
}
__device__ __forceinline__ signed char* small_target(const Small& args, u32 group, u32 member) {
    return args.target + ((u64)(group * args.members + member) << args.log_n);
}

// Discrete Gaussians by inversion, a word for each. Grid: (tiles, groups, members).
__device__ __forceinline__ void gaussian(const Small& args) {
    const u32 block = blockIdx.x * THREADS + threadIdx.x;
    const u32 group = blockIdx.y, member = args.first_member + blockIdx.z;
    if (block >= 1u << args.log_n >> 3) return;
    u64 words[BLOCK_WORDS], magnitudes[BLOCK_WORDS] = {}, packed = 0;
    small_block(words, args, block, group, member);
#pragma unroll 1
    for (int k = 0; k < 29; ++k) {
        const u64 tail = args.tails[k];
#pragma unroll
        for (int i = 0; i < BLOCK_WORDS; ++i) magnitudes[i] += ((words[i] >> 1) - tail) >> 63;
    }
#pragma unroll
    for (int i = 0; i < BLOCK_WORDS; ++i) {
        const u64 sign = words[i] & 1;
        packed |= (((magnitudes[i] ^ (0 - sign)) + sign) & 0xFF) << (8 * i);
    }
    reinterpret_cast<u64*>(small_target(args, group, member))[block] = packed;
}

constexpr int TERNARY_THREADS = 128;
constexpr int BLOCK_VALUES = 32 * BLOCK_WORDS;  // at most, of a block of the key stream

// Ternary values, two bits for each, by rejection. A block makes a polynomial: in each round every
// thread makes one block of the key stream, and what is kept goes behind what earlier threads and
// rounds kept. Grid: (1, groups).
__device__ __forceinline__ void ternary(const Small& args) {
    FH_SHARED(scratch);
    constexpr int WARPS = TERNARY_THREADS / 32;
    u64* sums = scratch;  // WARPS
    signed char* kept = reinterpret_cast<signed char*>(scratch + WARPS);
    const u32 group = blockIdx.y, n = 1u << args.log_n;
    signed char* target = small_target(args, group, args.first_member);
    u32 filled = 0;
    for (u64 block = threadIdx.x; filled < n; block += TERNARY_THREADS) {
        u64 words[BLOCK_WORDS];
        small_block(words, args, block, group, args.first_member);
        u32 count = BLOCK_VALUES, total;
#pragma unroll
        for (int i = 0; i < BLOCK_WORDS; ++i)
            count -= __popcll(words[i] & words[i] >> 1 & 0x5555555555555555ull);
        u32 place = sum_before<WARPS>(count, sums, total);
#pragma unroll
        for (int i = 0; i < BLOCK_WORDS; ++i)
#pragma unroll 1
            for (int shift = 0; shift < 64; shift += 2) {
                const int pattern = (int)(words[i] >> shift & 3);
                if (pattern != 3) kept[place++] = (signed char)(pattern - 1);
            }
        __syncthreads();
        if (total > n - filled) total = n - filled;
        for (u32 i = threadIdx.x; i < total; i += TERNARY_THREADS) target[filled + i] = kept[i];
        filled += total;
    }
}

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

// Uniform residues, by rejection. A block makes one limb, in rounds as for ternary values. Grid: (1,
// limbs, polynomials).
struct Uniform {
    const Prime* primes;
    const u64* seeds;  // of each polynomial, four words each, or null for one that all share
    u64* target;       // [polynomial][limbs][N]
    u64 seed[4];
    u64 target_stride;
    u64 stream;        // of polynomial 0 and prime 0
    u64 stream_step;   // from one polynomial to the next
    Basis basis;
    u32 log_n;
    u32 unused;
};
static_assert(sizeof(Uniform) == 104, "src/kernels/sample.rs has the same layout");

__device__ __forceinline__ void uniform(const Uniform& args) {
    FH_SHARED(scratch);
    u64* kept = scratch;  // THREADS * BLOCK_WORDS
    u64* sums = scratch + THREADS * BLOCK_WORDS;  // THREADS / 32
    const u32 index = prime_of(args.basis, blockIdx.y);
    const u64 p = args.primes[index].p;
    const u64 mask = ~0ull >> __clzll((long long)p);
    u64 key[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        key[i] = args.seeds == nullptr ? args.seed[i] : args.seeds[4 * blockIdx.z + i];
    const u64 stream = args.stream + blockIdx.z * args.stream_step + index;
    u64* target = args.target + blockIdx.z * args.target_stride + ((u64)blockIdx.y << args.log_n);
    const u32 n = 1u << args.log_n;
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
        u32 total, place = sum_before<THREADS / 32>(count, sums, total);
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

FH_KERNEL(sample_gaussian, THREADS, 4, Small, (gaussian))
FH_KERNEL(sample_ternary, TERNARY_THREADS, 4, Small, (ternary))
FH_KERNEL(lift_small, THREADS, 4, Lift, (lift))
FH_KERNEL(uniform_from_seed, THREADS, 4, Uniform, (uniform))
