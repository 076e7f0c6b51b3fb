// Key switching: the inner product of a polynomial's digits with a key, fused with the transforms
// before and after it, and the last step of mod-downs and rescales.
//
// Hybrid key switching (K. Han, D. Ki, "Better Bootstrapping for Approximate Homomorphic
// Encryption", CT-RSA 2020). Grids: (tiles of 2^LA rows, limbs, items); an item is one batch
// element under one key, and hoisted rotations have as many keys as rotations.

#include "launch.cuh"
#include "ntt.cuh"

namespace {

// Keys and results that one launch serves.
constexpr int KEYS = 16;

// What is added to a key switch's result: two parts of a ciphertext, or of the tensor product of
// two, which then is computed here rather than stored.
struct Added {
    Operand a;
    Operand b;
    u32 parts;   // parts of `a` to add: 0, 1 or 2
    u32 tensor;  // not 0: the product of a and b
};

template <class Core>
__device__ __forceinline__ typename Core::T added_at(const Core& core, const Added& added,
                                                     u32 batch, u32 part, u64 at) {
    const u64* a = added.a.data + batch * added.a.batch_stride + at;
    if (added.tensor == 0) return core.load(a[part * added.a.part_stride]);
    const u64* b = added.b.data + batch * added.b.batch_stride + at;
    if (part == 0) return core.product(core.load(*a), core.load(*b));
    return core.add(core.product(core.load(*a), core.load(b[added.b.part_stride])),
                    core.product(core.load(a[added.a.part_stride]), core.load(*b)));
}

__device__ __forceinline__ void load_two(const u64* source, u64& x, u64& y) {
    ulonglong2 both = *reinterpret_cast<const ulonglong2*>(source);
    x = both.x, y = both.y;
}
__device__ __forceinline__ void store_two(u64* target, u64 x, u64 y) {
    *reinterpret_cast<ulonglong2*>(target) = make_ulonglong2(x, y);
}

struct Inner {
    const Prime* primes;
    const u64* extended;  // [batch][digit][limbs][N]: after pass A, or whole digits in held order
    u64 extended_stride;  // of one digit
    Operand own;          // the polynomial itself, whose limbs are those of its digits
    Operand own_factor;   // PRODUCT: what it is multiplied by
    u64* kept;            // [item][half][level limbs less dropped][N], held order
    u64* special;         // [item][half][specials, then the dropped limb][N], after pass B
    u64 kept_stride;      // of one half
    u64 special_stride;
    Added added;       // to the dropped limb only
    Factor p_dropped;  // P modulo the dropped prime
    Basis basis;
    u32 log_n;
    u32 digits;
    u32 digit_size;
    u32 digit_limbs;
    u32 key_limbs;  // limbs of a key: all primes
    u32 dropped;    // 1: the level's last limb is not kept but transformed back with the special ones
    u32 batch;
    u32 unused;
    const u64* keys[KEYS];  // each [digit][half][all primes][N], held order
};
static_assert(sizeof(Inner) == 352, "src/kernels/switch.rs has the same layout");

enum Digits { TRANSFORM, PRODUCT, WHOLE };

template <int LB, Digits DIGITS, Mode MODE>
__device__ __forceinline__ void inner(const Inner& args) {
    FH_SHARED(scratch);
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const u32 prime_index = prime_of(args.basis, blockIdx.y);
    const Prime& prime = args.primes[prime_index];
    const Core core(prime);
    const TileB<LB> tile(scratch);
    const u32 limb = blockIdx.y, item = blockIdx.z;
    const u32 batch = item % args.batch;
    const u64 n = 1ull << args.log_n;
    const u64* key = args.keys[item / args.batch] + prime_index * n;
    const u64 half_words = args.key_limbs * n;
    const bool of_level = limb < args.digit_limbs;
    T sum_b[HELD], sum_a[HELD];
#pragma unroll
    for (int h = 0; h < HELD; ++h) sum_b[h] = sum_a[h] = core.zero();
    for (u32 digit = 0; digit < args.digits; ++digit) {
        const u64* extended =
            args.extended + (batch * args.digits + digit) * args.extended_stride + limb * n;
        T x[HELD];
        if constexpr (DIGITS == WHOLE) {
#pragma unroll
            for (int h = 0; h < HELD; h += 2) {
                u64 first, second;
                load_two(extended + tile.held(h), first, second);
                x[h] = core.load_lazy(first);
                x[h + 1] = core.load_lazy(second);
            }
        } else if (of_level && limb / args.digit_size == digit) {
            const u64* own = args.own.data + batch * args.own.batch_stride + limb * n;
            const u64* factor =
                args.own_factor.data + batch * args.own_factor.batch_stride + limb * n;
            gather_row<LB, Core>(x, tile, [&](u32 at) {
                T value = core.load(own[at]);
                if constexpr (DIGITS == PRODUCT) value = core.product(value, core.load(factor[at]));
                return value;
            });
        } else {
            forward_row<LB>(x, core, prime, args.log_n, tile,
                            [&](u32 at) { return core.load_lazy(extended[at]); });
#pragma unroll
            for (int h = 0; h < HELD; ++h) x[h] = core.tidy(x[h]);
        }
        const u64* key_b = key + digit * 2 * half_words;
        const u64* key_a = key_b + half_words;
#pragma unroll
        for (int h = 0; h < HELD; h += 2) {
            u64 first, second;
            load_two(key_b + tile.held(h), first, second);
            sum_b[h] = core.add(sum_b[h], core.key_product(x[h], first));
            sum_b[h + 1] = core.add(sum_b[h + 1], core.key_product(x[h + 1], second));
        }
#pragma unroll
        for (int h = 0; h < HELD; h += 2) {
            u64 first, second;
            load_two(key_a + tile.held(h), first, second);
            sum_a[h] = core.add(sum_a[h], core.key_product(x[h], first));
            sum_a[h + 1] = core.add(sum_a[h + 1], core.key_product(x[h + 1], second));
        }
        // Six products of 0.68 p stay below 4.1 p.
        if (digit % 6 == 5) {
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                sum_b[h] = core.tidy(sum_b[h]);
                sum_a[h] = core.tidy(sum_a[h]);
            }
        }
    }
#pragma unroll
    for (int h = 0; h < HELD; ++h) {
        sum_b[h] = core.tidy(sum_b[h]);
        sum_a[h] = core.tidy(sum_a[h]);
    }
    const u32 kept_limbs = args.digit_limbs - args.dropped;
    if (limb < kept_limbs) {
        u64* kept = args.kept + item * 2 * args.kept_stride + limb * n;
#pragma unroll
        for (int h = 0; h < HELD; h += 2) {
            store_two(kept + tile.held(h), core.store_lazy(sum_b[h]), core.store_lazy(sum_b[h + 1]));
            store_two(kept + args.kept_stride + tile.held(h), core.store_lazy(sum_a[h]),
                      core.store_lazy(sum_a[h + 1]));
        }
        return;
    }
    u32 place = limb - args.digit_limbs;
    if (of_level) {
        place = args.basis.limbs - args.digit_limbs;
        const auto p = core.factor(args.p_dropped);
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            if (part >= args.added.parts) continue;
            T(&sum)[HELD] = part == 0 ? sum_b : sum_a;
            T x[HELD];
            gather_row<LB, Core>(x, tile, [&](u32 at) {
                return added_at(core, args.added, batch, part, limb * n + at);
            });
#pragma unroll
            for (int h = 0; h < HELD; ++h)
                sum[h] = core.tidy(core.add(sum[h], core.tidy(core.mul(x[h], p))));
        }
    }
    u64* special = args.special + item * 2 * args.special_stride + place * n;
    inverse_row<LB>(sum_b, special, core, prime, args.log_n, tile);
    inverse_row<LB>(sum_a, special + args.special_stride, core, prime, args.log_n, tile);
}

// The digits of a polynomial, all of them, in held order: for several keys to share.
struct Whole {
    const Prime* primes;
    u64* extended;  // [batch][digit][limbs][N], after pass A; replaced
    u64 extended_stride;
    Operand own;
    Basis basis;
    u32 log_n;
    u32 digits;
    u32 digit_size;
    u32 digit_limbs;
};
static_assert(sizeof(Whole) == 80, "src/kernels/switch.rs has the same layout");

template <int LB, Mode MODE>
__device__ __forceinline__ void whole(const Whole& args) {
    FH_SHARED(scratch);
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const Prime& prime = args.primes[prime_of(args.basis, blockIdx.y)];
    const Core core(prime);
    const TileB<LB> tile(scratch);
    const u32 limb = blockIdx.y;
    const u32 batch = blockIdx.z / args.digits, digit = blockIdx.z % args.digits;
    const u64 offset = (u64)limb << args.log_n;
    u64* extended = args.extended + blockIdx.z * args.extended_stride + offset;
    T x[HELD];
    if (limb < args.digit_limbs && limb / args.digit_size == digit) {
        const u64* own = args.own.data + batch * args.own.batch_stride + offset;
        gather_row<LB, Core>(x, tile, [&](u32 at) { return core.load(own[at]); });
    } else {
        forward_row<LB>(x, core, prime, args.log_n, tile,
                        [&](u32 at) { return core.load_lazy(extended[at]); });
    }
#pragma unroll
    for (int h = 0; h < HELD; h += 2)
        store_two(extended + tile.held(h), core.store_lazy(core.tidy(x[h])),
                  core.store_lazy(core.tidy(x[h + 1])));
}

// The factors of the last step, by limb.
struct Closing {
    Factor moved;  // of what was kept less what was moved
    Factor added;  // of what is added
};

// target = (kept - moved) closing.moved + added closing.added, under an automorphism.
struct Finish {
    const Prime* primes;
    const Closing* closing;
    const u64* moved;  // [polynomial][limbs][N], after pass A
    const u64* kept;   // [polynomial][limbs][N], held order; null for zero
    u64 moved_stride;
    u64 kept_stride;
    Added added;
    u64 target_batch_stride;
    u64 target_part_stride;
    Basis basis;
    u32 log_n;
    u32 batch;
    u32 parts;        // polynomials of an item
    u32 polynomials;  // items times parts
    u32 scaled;       // 0: closing.added is one
    u32 unused;
    u64* targets[KEYS];
    // X -> X^g and its inverse; 1 for none.
    u32 galois[KEYS];
    u32 galois_inverse[KEYS];
};
static_assert(sizeof(Finish) == 416, "src/kernels/switch.rs has the same layout");

template <int LB, Mode MODE>
__device__ __forceinline__ void finish(const Finish& args) {
    FH_SHARED(scratch);
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const Prime& prime = args.primes[prime_of(args.basis, blockIdx.y)];
    const Core core(prime);
    const TileB<LB> tile(scratch);
    const u32 limb = blockIdx.y;
    const u64 offset = (u64)limb << args.log_n;
    const auto factor = core.factor(args.closing[limb].moved);
    for (u32 poly = blockIdx.z; poly < args.polynomials; poly += gridDim.z) {
        const u32 item = poly / args.parts, part = poly % args.parts;
        const u32 key = item / args.batch, batch = item % args.batch;
        const u64* moved = args.moved + poly * args.moved_stride + offset;
        u64* target = args.targets[key] + batch * args.target_batch_stride +
                      part * args.target_part_stride + offset;
        T x[HELD];
        forward_row<LB>(x, core, prime, args.log_n, tile,
                        [&](u32 at) { return core.load_lazy(moved[at]); });
        if (args.kept != nullptr) {
            const u64* kept = args.kept + poly * args.kept_stride + offset;
#pragma unroll
            for (int h = 0; h < HELD; h += 2) {
                u64 first, second;
                load_two(kept + tile.held(h), first, second);
                x[h] = core.sub(core.load_lazy(first), core.tidy(x[h]));
                x[h + 1] = core.sub(core.load_lazy(second), core.tidy(x[h + 1]));
            }
        } else {
#pragma unroll
            for (int h = 0; h < HELD; ++h) x[h] = core.sub(core.zero(), core.tidy(x[h]));
        }
#pragma unroll
        for (int h = 0; h < HELD; ++h) x[h] = core.mul(x[h], factor);
        const auto with_added = [&](u32 at, T value) {
            if (part >= args.added.parts) return value;
            T other = added_at(core, args.added, batch, part, offset + at);
            if (args.scaled != 0) other = core.mul(other, core.factor(args.closing[limb].added));
            return core.add(core.tidy(value), core.tidy(other));
        };
        const u32 galois = args.galois[key];
        if (galois == 1) {
            scatter_row<LB, Core>(x, tile, [&](u32 at, T value) {
                target[at] = core.store(with_added(at, value));
            });
            continue;
        }
        // The automorphism maps rows to rows: add in place, then permute within the row.
        T* shared = tile.template row_of<T>();
        scatter_row<LB, Core>(x, tile, [&](u32 at, T value) {
            shared[slot<1>(at - tile.base, 0)] = with_added(at, value);
        });
        const u32 base = automorphism_source(args.galois_inverse[key], tile.base, args.log_n) >> LB << LB;
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            u32 at = base + first_position<LB>(tile.t, h);
            u32 from = automorphism_source(galois, at, args.log_n) & ((1u << LB) - 1);
            target[at] = core.store(shared[slot<1>(from, 0)]);
        }
        __syncwarp();
    }
}

}  // namespace

// The inner product holds 48 residues a thread; three blocks on a multiprocessor keep it fed.
#define FH_INNER(NAME, THREADS, BODY)                        \
    extern "C" __global__ void __launch_bounds__(THREADS, 3) \
        NAME(const __grid_constant__ Inner args) {           \
        BODY(args);                                          \
    }

#define SWITCH(LB)                                                                   \
    FH_INNER(inner_##LB##_transform_fast, THREADS_B<LB>, (inner<LB, TRANSFORM, FAST>)) \
    FH_INNER(inner_##LB##_product_fast, THREADS_B<LB>, (inner<LB, PRODUCT, FAST>))   \
    FH_INNER(inner_##LB##_whole_fast, THREADS_B<LB>, (inner<LB, WHOLE, FAST>))       \
    FH_INNER(inner_##LB##_transform_wide, THREADS_B<LB>, (inner<LB, TRANSFORM, WIDE>)) \
    FH_INNER(inner_##LB##_product_wide, THREADS_B<LB>, (inner<LB, PRODUCT, WIDE>))   \
    FH_INNER(inner_##LB##_whole_wide, THREADS_B<LB>, (inner<LB, WHOLE, WIDE>))       \
    FH_KERNEL(whole_##LB##_fast, THREADS_B<LB>, Whole, (whole<LB, FAST>))            \
    FH_KERNEL(whole_##LB##_wide, THREADS_B<LB>, Whole, (whole<LB, WIDE>))            \
    FH_KERNEL(finish_##LB##_fast, THREADS_B<LB>, Finish, (finish<LB, FAST>))         \
    FH_KERNEL(finish_##LB##_wide, THREADS_B<LB>, Finish, (finish<LB, WIDE>))

SWITCH(5)
SWITCH(6)
SWITCH(7)
SWITCH(8)
