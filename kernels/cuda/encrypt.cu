// Encryption and decryption, residue by residue, on polynomials that are transformed.
//
// Grids: (pairs of residues, limbs, batch elements); a thread does two neighbouring residues.

#include "launch.cuh"

namespace {

constexpr int THREADS = 256;

template <class Core>
__device__ __forceinline__ void load_values(typename Core::T (&x)[2], const Core& core,
                                            const u64* source) {
    const Pair pair = load_pair(source);
    x[0] = core.load(pair.x), x[1] = core.load(pair.y);
}

// All polynomials have the ciphertext's limbs but the key's, whose halves have key_limbs.
struct Encrypt {
    const Prime* primes;
    const u64* small;    // public: u, e_0 and e_1 of each item; secret: e of each item
    const u64* key;      // public: b, then a; secret: s
    const u64* message;  // null for zero
    u64* target;         // [item][2][limbs][N]; secret: the second part is given
    Basis basis;
    u32 log_n;
    u32 key_limbs;
};
static_assert(sizeof(Encrypt) == 64, "src/kernels/encrypt.rs has the same layout");

// (b u + e_0 + m, a u + e_1).
template <Mode MODE>
__device__ __forceinline__ void encrypt_public(const Encrypt& args) {
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const Core core(args.primes[prime_of(args.basis, blockIdx.y)]);
    const u64 at = ((u64)blockIdx.y << args.log_n) + (blockIdx.x * THREADS + threadIdx.x) * 2;
    const u64 words = (u64)args.basis.limbs << args.log_n;
    const u64* small = args.small + blockIdx.z * 3 * words + at;
    u64* target = args.target + blockIdx.z * 2 * words + at;
    T u[2], errors[2][2], halves[2][2], message[2];
    load_values(u, core, small);
    load_values(message, core, args.message + blockIdx.z * words + at);
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        load_values(errors[part], core, small + (part + 1) * words);
        load_values(halves[part], core, args.key + ((u64)part * args.key_limbs << args.log_n) + at);
    }
    u64 first[2], second[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const T masked = core.add(core.product(halves[0][i], u[i]), errors[0][i]);
        first[i] = core.store(core.add(masked, message[i]));
        second[i] = core.store(core.add(core.product(halves[1][i], u[i]), errors[1][i]));
    }
    store_pair(target, first[0], first[1]);
    store_pair(target + words, second[0], second[1]);
}

// (e + m - a s, a); without a message it is a public key.
template <Mode MODE>
__device__ __forceinline__ void encrypt_secret(const Encrypt& args) {
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const Core core(args.primes[prime_of(args.basis, blockIdx.y)]);
    const u64 at = ((u64)blockIdx.y << args.log_n) + (blockIdx.x * THREADS + threadIdx.x) * 2;
    const u64 words = (u64)args.basis.limbs << args.log_n;
    u64* target = args.target + blockIdx.z * 2 * words + at;
    T error[2], a[2], s[2], message[2] = {core.zero(), core.zero()};
    load_values(error, core, args.small + blockIdx.z * words + at);
    load_values(a, core, target + words);
    load_values(s, core, args.key + at);
    if (args.message != nullptr)
        load_values(message, core, args.message + blockIdx.z * words + at);
    u64 first[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
        first[i] =
            core.store(core.sub(core.add(error[i], message[i]), core.product(a[i], s[i])));
    store_pair(target, first[0], first[1]);
}

struct Decrypt {
    const Prime* primes;
    const u64* source;  // [item][parts][limbs][N]
    const u64* secret;  // [limbs][N]
    u64* target;        // [item][limbs][N]
    Basis basis;
    u32 log_n;
    u32 parts;
};
static_assert(sizeof(Decrypt) == 56, "src/kernels/encrypt.rs has the same layout");

// c_0 + c_1 s + c_2 s^2, by Horner's rule.
template <Mode MODE>
__device__ __forceinline__ void decrypt(const Decrypt& args) {
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const Core core(args.primes[prime_of(args.basis, blockIdx.y)]);
    const u64 at = ((u64)blockIdx.y << args.log_n) + (blockIdx.x * THREADS + threadIdx.x) * 2;
    const u64 words = (u64)args.basis.limbs << args.log_n;
    const u64* source = args.source + blockIdx.z * args.parts * words + at;
    T s[2], sum[2], part[2];
    load_values(s, core, args.secret + at);
    load_values(sum, core, source + (args.parts - 1) * words);
    for (u32 index = args.parts - 1; index-- > 0;) {
        load_values(part, core, source + index * words);
#pragma unroll
        for (int i = 0; i < 2; ++i)
            sum[i] = core.tidy(core.add(core.product(sum[i], s[i]), part[i]));
    }
    store_pair(args.target + blockIdx.z * words + at, core.store(sum[0]), core.store(sum[1]));
}

}  // namespace

#define MODES(MODE, SUFFIX)                                                            \
    FH_KERNEL(encrypt_public_##SUFFIX, THREADS, 4, Encrypt, (encrypt_public<MODE>)) \
    FH_KERNEL(encrypt_secret_##SUFFIX, THREADS, 4, Encrypt, (encrypt_secret<MODE>)) \
    FH_KERNEL(decrypt_##SUFFIX, THREADS, 4, Decrypt, (decrypt<MODE>))

MODES(FAST, fast)
MODES(WIDE, wide)
