// Residue by residue: sums, products with plaintexts and integers, the tensor product.
//
// Grids: (pairs of residues, limbs, polynomials); a thread does two neighbouring residues.

#include "launch.cuh"

namespace {

constexpr int THREADS = 256;

__device__ __forceinline__ u32 residue_pair() {
    return (blockIdx.x * THREADS + threadIdx.x) * 2;
}

// Two operands to one result; polynomial p is part p % parts of batch element p / parts.
struct Binary {
    const Prime* primes;
    Operand a;
    Operand b;
    u64* target;
    u64 target_batch_stride;
    u64 target_part_stride;
    Basis basis;
    u32 log_n;
    u32 parts;
    u32 a_parts;  // an operand's parts beyond its own are zero
    u32 b_parts;
};
static_assert(sizeof(Binary) == 112, "src/kernels/elementwise.rs has the same layout");

__device__ __forceinline__ Pair operand_pair(const Operand& operand, u32 parts, u32 batch, u32 part,
                                             u64 at) {
    if (part >= parts) return Pair{0, 0};
    return load_pair(operand.data + batch * operand.batch_stride + part * operand.part_stride + at);
}

template <bool SUBTRACT>
__device__ __forceinline__ void sum(const Binary& args) {
    const u32 batch = blockIdx.z / args.parts, part = blockIdx.z % args.parts;
    const u64 at = ((u64)blockIdx.y << args.log_n) + residue_pair();
    const u64 p = args.primes[prime_of(args.basis, blockIdx.y)].p;
    const Pair a = operand_pair(args.a, args.a_parts, batch, part, at);
    const Pair b = operand_pair(args.b, args.b_parts, batch, part, at);
    u64* target = args.target + batch * args.target_batch_stride + part * args.target_part_stride + at;
    if constexpr (SUBTRACT)
        store_pair(target, u64_sub(a.x, b.x, p), u64_sub(a.y, b.y, p));
    else
        store_pair(target, u64_add(a.x, b.x, p), u64_add(a.y, b.y, p));
}

// Every part of `a` by the one part of `b`.
template <Mode MODE>
__device__ __forceinline__ void product(const Binary& args) {
    typedef typename CoreOf<MODE>::type Core;
    const u32 batch = blockIdx.z / args.parts, part = blockIdx.z % args.parts;
    const u64 at = ((u64)blockIdx.y << args.log_n) + residue_pair();
    const Core core(args.primes[prime_of(args.basis, blockIdx.y)]);
    const Pair a = operand_pair(args.a, args.a_parts, batch, part, at);
    const Pair b = operand_pair(args.b, args.b_parts, batch, 0, at);
    u64* target = args.target + batch * args.target_batch_stride + part * args.target_part_stride + at;
    store_pair(target, core.store_product(core.product(core.load(a.x), core.load(b.x))),
               core.store_product(core.product(core.load(a.y), core.load(b.y))));
}

// (a0, a1) times (b0, b1): three parts.
template <Mode MODE>
__device__ __forceinline__ void tensor(const Binary& args) {
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const u32 batch = blockIdx.z;
    const u64 at = ((u64)blockIdx.y << args.log_n) + residue_pair();
    const Core core(args.primes[prime_of(args.basis, blockIdx.y)]);
    const Pair words[4] = {
        operand_pair(args.a, 2, batch, 0, at), operand_pair(args.a, 2, batch, 1, at),
        operand_pair(args.b, 2, batch, 0, at), operand_pair(args.b, 2, batch, 1, at)};
    u64 c0[2], c1[2], c2[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const T a0 = core.load(i == 0 ? words[0].x : words[0].y);
        const T a1 = core.load(i == 0 ? words[1].x : words[1].y);
        const T b0 = core.load(i == 0 ? words[2].x : words[2].y);
        const T b1 = core.load(i == 0 ? words[3].x : words[3].y);
        c0[i] = core.store_product(core.product(a0, b0));
        c1[i] = core.store(core.add(core.product(a0, b1), core.product(a1, b0)));
        c2[i] = core.store_product(core.product(a1, b1));
    }
    u64* target = args.target + batch * args.target_batch_stride + at;
    store_pair(target, c0[0], c0[1]);
    store_pair(target + args.target_part_stride, c1[0], c1[1]);
    store_pair(target + 2 * args.target_part_stride, c2[0], c2[1]);
}

struct Multiple {
    const Prime* primes;
    Operand a;
    u64* target;
    u64 target_batch_stride;
    u64 target_part_stride;
    i64 factor;
    Basis basis;
    u32 log_n;
    u32 parts;
};
static_assert(sizeof(Multiple) == 88, "src/kernels/elementwise.rs has the same layout");

template <Mode MODE>
__device__ __forceinline__ void multiple(const Multiple& args) {
    typedef typename CoreOf<MODE>::type Core;
    const u32 batch = blockIdx.z / args.parts, part = blockIdx.z % args.parts;
    const u64 at = ((u64)blockIdx.y << args.log_n) + residue_pair();
    const Prime& prime = args.primes[prime_of(args.basis, blockIdx.y)];
    const Core core(prime);
    // The magnitude as unsigned, so that the least integer has one.
    const u64 magnitude = args.factor < 0 ? 0 - (u64)args.factor : (u64)args.factor;
    u64 residue = u64_reduce(magnitude, prime.p, prime.ratio_hi);
    if (args.factor < 0 && residue != 0) residue = prime.p - residue;
    const Pair a = operand_pair(args.a, args.parts, batch, part, at);
    const auto w = core.load(residue);
    u64* target = args.target + batch * args.target_batch_stride + part * args.target_part_stride + at;
    store_pair(target, core.store_product(core.product(core.load(a.x), w)),
               core.store_product(core.product(core.load(a.y), w)));
}

}  // namespace

FH_KERNEL(add, THREADS, 4, Binary, (sum<false>))
FH_KERNEL(subtract, THREADS, 4, Binary, (sum<true>))

#define MODES(MODE, SUFFIX)                                               \
    FH_KERNEL(product_##SUFFIX, THREADS, 4, Binary, (product<MODE>))         \
    FH_KERNEL(tensor_##SUFFIX, THREADS, 4, Binary, (tensor<MODE>))           \
    FH_KERNEL(multiple_##SUFFIX, THREADS, 4, Multiple, (multiple<MODE>))

MODES(FAST, fast)
MODES(WIDE, wide)
