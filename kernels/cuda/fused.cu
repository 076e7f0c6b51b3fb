// Sums, differences and multiples of several ciphertexts and plaintexts at once: a straight-line
// program that every thread runs over its residues.
//
// Grid: (pairs of residues, limbs, batch elements); a thread does two neighbouring residues of every
// part, so that a plaintext is read once for all of them. All threads take the same steps, so that no
// branch diverges; what a step reads from memory is asked for while the one before it is computed.

#include "launch.cuh"

namespace {

constexpr int THREADS = 128;
constexpr u32 OPERANDS = 64;
constexpr u32 RESULTS = 8;
constexpr u32 STEPS = 128;
constexpr u32 INTEGERS = 16;

// A step is an action, a register, a value and a factor, a byte each from the lowest.
enum Action : u32 { SET, ADD, SUBTRACT, NEGATE, MULTIPLY, GIVE };
// A value or factor is an operand's number, or one of these and a number; a result's is its own.
constexpr u32 REGISTER = 0x80;
constexpr u32 INTEGER = 0xC0;
constexpr u32 NONE = 0xFF;

struct Fused {
    const Prime* primes;
    const u64* operands[OPERANDS];
    u64* results[RESULTS];
    i64 integers[INTEGERS];
    u32 shapes[OPERANDS];  // limbs, in bits 16 to 23 parts, above whether each batch element has its own
    u32 steps[STEPS];
    Basis basis;
    u32 result_parts;  // four bits each
    u32 count;
    u32 log_n;
    u32 unused;
};
static_assert(sizeof(Fused) == 1512, "src/kernels/fused.rs has the same layout");

// What a step reads from memory.
template <int PARTS>
struct Words {
    Pair value[PARTS];
    Pair factor;
};

struct Place {
    u32 item, limb, residue;
};

__device__ __forceinline__ const u64* operand(const Fused& args, u32 number, const Place& place) {
    const u32 shape = args.shapes[number];
    const u64 limbs = shape & 0xFFFF, parts = shape >> 16 & 0xFF;
    const u64 limb = (shape >> 24 ? place.item : 0) * parts * limbs + place.limb;
    return args.operands[number] + (limb << args.log_n) + place.residue;
}

template <int PARTS>
__device__ __forceinline__ Words<PARTS> fetch(const Fused& args, u32 step, const Place& place) {
    const u32 action = step & 0xFF, value = step >> 16 & 0xFF, factor = step >> 24;
    Words<PARTS> words;
#pragma unroll
    for (int part = 0; part < PARTS; ++part) words.value[part] = Pair{0, 0};
    words.factor = Pair{0, 0};
    if (action <= SUBTRACT && value < REGISTER) {
        const u64* source = operand(args, value, place);
        const u32 shape = args.shapes[value];
        const u64 stride = (u64)(shape & 0xFFFF) << args.log_n;
        const u32 parts = shape >> 16 & 0xFF;
#pragma unroll
        for (int part = 0; part < PARTS; ++part)
            if (part < parts) words.value[part] = load_pair(source + part * stride);
    }
    if (factor < REGISTER) words.factor = load_pair(operand(args, factor, place));
    return words;
}

// The residue of an integer.
__device__ __forceinline__ u64 residue_of(i64 integer, const Prime& prime) {
    // The magnitude as unsigned, so that the least integer has one.
    const u64 magnitude = integer < 0 ? 0 - (u64)integer : (u64)integer;
    const u64 residue = u64_reduce(magnitude, prime.p, prime.ratio_hi);
    return integer < 0 && residue != 0 ? prime.p - residue : residue;
}

// Registers hold residues in the core's form: canonical integers, or doubles within [-p, p].
template <int REGISTERS, int PARTS, Mode MODE>
__device__ __forceinline__ void fused(const Fused& args) {
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const Place place{blockIdx.z, blockIdx.y, (blockIdx.x * THREADS + threadIdx.x) * 2};
    const Prime& prime = args.primes[prime_of(args.basis, place.limb)];
    const Core core(prime);
    T registers[REGISTERS][PARTS][2];
#pragma unroll
    for (int r = 0; r < REGISTERS; ++r)
#pragma unroll
        for (int part = 0; part < PARTS; ++part)
            registers[r][part][0] = registers[r][part][1] = core.zero();
    Words<PARTS> next = fetch<PARTS>(args, args.steps[0], place);
    for (u32 s = 0; s < args.count; ++s) {
        const u32 step = args.steps[s];
        const Words<PARTS> words = next;
        if (s + 1 < args.count) next = fetch<PARTS>(args, args.steps[s + 1], place);
        const u32 action = step & 0xFF, at = step >> 8 & 0xFF;
        const u32 value = step >> 16 & 0xFF, factor = step >> 24;
        T own[PARTS][2], term[PARTS][2], by[2];
#pragma unroll
        for (int part = 0; part < PARTS; ++part)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                own[part][i] = registers[0][part][i];
                term[part][i] = core.load(i == 0 ? words.value[part].x : words.value[part].y);
            }
        by[0] = core.load(words.factor.x);
        by[1] = core.load(words.factor.y);
        // Registers are told apart by comparisons, since an index would put them into memory.
#pragma unroll
        for (int r = 0; r < REGISTERS; ++r)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
#pragma unroll
                for (int part = 0; part < PARTS; ++part) {
                    if (at == r) own[part][i] = registers[r][part][i];
                    if (value == REGISTER + r) term[part][i] = registers[r][part][i];
                }
                if (factor == REGISTER + r) by[i] = registers[r][0][i];
            }
        if (action == GIVE) {
            const u32 parts = args.result_parts >> 4 * value & 0xF;
            const u64 limb = (u64)place.item * parts * args.basis.limbs + place.limb;
            u64* target = args.results[value] + (limb << args.log_n) + place.residue;
#pragma unroll
            for (int part = 0; part < PARTS; ++part)
                if (part < parts)
                    *reinterpret_cast<ulonglong2*>(
                        target + ((u64)part * args.basis.limbs << args.log_n)) =
                        make_ulonglong2(core.store(own[part][0]), core.store(own[part][1]));
            continue;
        }
        if (factor >= INTEGER && factor != NONE)
            by[0] = by[1] = core.load(residue_of(args.integers[factor - INTEGER], prime));
#pragma unroll
        for (int part = 0; part < PARTS; ++part)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                T x = action <= SUBTRACT ? term[part][i] : own[part][i];
                if (factor != NONE) x = core.product(x, by[i]);
                if (action == ADD) x = core.reduce(core.add(own[part][i], x));
                if (action == SUBTRACT) x = core.reduce(core.sub(own[part][i], x));
                if (action == NEGATE) x = core.sub(core.zero(), x);
#pragma unroll
                for (int r = 0; r < REGISTERS; ++r)
                    if (at == r) registers[r][part][i] = x;
            }
    }
}

}  // namespace

// Blocks are as many as leave a thread the registers that it holds residues in.
#define PROGRAMS(MODE, SUFFIX)                                                                      \
    FH_KERNEL(fused_1_2_##SUFFIX, THREADS, (RESIDENT<MODE, 8, 8>), Fused, (fused<1, 2, MODE>))      \
    FH_KERNEL(fused_1_3_##SUFFIX, THREADS, (RESIDENT<MODE, 7, 7>), Fused, (fused<1, 3, MODE>))      \
    FH_KERNEL(fused_4_2_##SUFFIX, THREADS, (RESIDENT<MODE, 6, 5>), Fused, (fused<4, 2, MODE>))      \
    FH_KERNEL(fused_4_3_##SUFFIX, THREADS, (RESIDENT<MODE, 4, 4>), Fused, (fused<4, 3, MODE>))

PROGRAMS(FAST, fast)
PROGRAMS(WIDE, wide)
