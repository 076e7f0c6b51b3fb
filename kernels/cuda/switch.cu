// Key switching: the inner product of a polynomial's digits with a key, fused with the transforms
// before and after it.
//
// Hybrid key switching (K. Han, D. Ki, "Better Bootstrapping for Approximate Homomorphic
// Encryption", CT-RSA 2020). Grids: (tiles of 2^LA rows, limbs, items); an item is one batch
// element under one key, and hoisted rotations have as many keys as rotations.

#include "async.cuh"
#include "launch.cuh"
#include "rows.cuh"
#include "switch.cuh"

namespace {

struct Inner {
    const Prime* primes;
    const u64* extended;  // [batch][digit][limbs][N]: after pass A, or WHOLE, in held order
    u64 extended_stride;  // of one digit
    Operand own;          // the polynomial itself, whose limbs are those of its digits
    Operand own_factor;   // what it is multiplied by; null for nothing
    u64* kept;            // [item][half][level limbs less dropped][N], held order
    u64* special;         // [item][half][specials, then the dropped limb][N], after pass B of their
                          // inverse transforms; from the flat kernel before, in held order
    u64 kept_stride;      // of one half
    u64 special_stride;
    Added added;
    const Factor* special_products;  // P modulo the level's primes, which what is added is multiplied by
    Basis basis;
    u32 log_n;
    u32 digits;
    u32 digit_size;
    u32 digit_limbs;
    u32 key_limbs;  // limbs of a key: all primes
    u32 dropped;    // 1: the level's last limb is not kept but transformed back with the special ones
    u32 batch;
    u32 key_count;
    const u64* keys[KEYS];  // each [digit][half][all primes][N], held order
};
static_assert(sizeof(Inner) == 344, "src/kernels/switch.rs has the same layout");

// Adds a digit's products with a key to the two sums.
template <int LB, class Core, class Key>
__device__ __forceinline__ void add_products(
    typename Core::T (&sum_b)[HELD], typename Core::T (&sum_a)[HELD],
    const typename Core::T (&x)[HELD], const Core& core, Key key) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int h = 0; h < HELD; h += 2) {
            const Pair words = key(half, h);
            typename Core::T(&sum)[HELD] = half == 0 ? sum_b : sum_a;
            sum[h] = core.add(sum[h], core.key_product(x[h], words.x));
            sum[h + 1] = core.add(sum[h + 1], core.key_product(x[h + 1], words.y));
        }
    }
}

// Adds P times what is added, which the division by P at the end of the mod-down leaves as it is:
// VALUE(part, h) is its residue in first position h.
template <int LB, class Core, class Value>
__device__ __forceinline__ void add_parts(
    typename Core::T (&sum_b)[HELD], typename Core::T (&sum_a)[HELD], const Core& core, u32 parts,
    const Factor& special_product, const TileB<LB>& tile, Value value) {
    typedef typename Core::T T;
    const auto p = core.factor(special_product);
    T* shared = tile.template row_of<T>();
#pragma unroll
    for (u32 part = 0; part < 2; ++part) {
        if (part >= parts) continue;
        T(&sum)[HELD] = part == 0 ? sum_b : sum_a;
        // Few at once: the registers are full of sums.
#pragma unroll 2
        for (int h = 0; h < HELD; ++h)
            at_first<LB, 1>(shared, tile.t, h) =
                core.tidy(core.mul(value(part, h), p));
        __syncwarp();
#pragma unroll
        for (int h = 0; h < HELD; ++h)
            sum[h] = core.add(sum[h], at_last<LB, 1>(shared, tile.t, h));
        __syncwarp();
    }
}

// What an inner product reads of a digit: what pass A left, or the WHOLE transform.
enum Digits { AFTER_A, WHOLE };

// The products of digits with keys, of the last limbs of the basis. In FAST the digit's words and the key's
// are on their way to shared memory while the transform runs; each thread reads only what it copied itself.
template <int LB, Digits DIGITS, Mode MODE>
__device__ __forceinline__ void inner(const Inner& args) {
    FH_SHARED(scratch);
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    constexpr bool AHEAD = MODE == FAST;
    // The limbs that are transformed back take longest: they start first.
    const u32 limb = args.basis.limbs - 1 - blockIdx.y, item = blockIdx.z;
    const u32 prime_index = prime_of(args.basis, limb);
    const Prime& prime = args.primes[prime_index];
    const Core core(prime);
    const TileB<LB> tile(scratch);
    const u32 batch = item % args.batch;
    const u64 n = 1ull << args.log_n;
    const u64* key = args.keys[item / args.batch] + prime_index * n;
    const u64 half_words = args.key_limbs * n;
    const bool of_level = limb < args.digit_limbs;
    const u32 own_digit = of_level ? limb / args.digit_size : args.digits;
    const u64* own = args.own.data + batch * args.own.batch_stride + limb * n;
    const u64* extended = args.extended + batch * args.digits * args.extended_stride + limb * n;

    u64* ahead = scratch + ROWS_B<LB> * ROW_WORDS<LB> + threadIdx.x;
    u64* pairs_ahead = ahead + threadIdx.x;
    u64* keys_ahead = pairs_ahead + HELD * THREADS_B<LB>;
    const auto fetch_digit = [&](u32 digit) {
        if constexpr (DIGITS == WHOLE) {
#pragma unroll
            for (int h = 0; h < HELD; h += 2)
                copy_async_16(pairs_ahead + h * THREADS_B<LB>,
                              extended + digit * args.extended_stride + tile.held(h));
            return;
        }
        const u64* source = digit == own_digit ? own : extended + digit * args.extended_stride;
#pragma unroll
        for (int h = 0; h < HELD; ++h)
            copy_async_8(ahead + h * THREADS_B<LB>, source + tile.first(h));
    };
    auto twiddles = fetch_row<LB, Core>(prime.forward, args.log_n, tile, DIGITS == AFTER_A);
    copy_async_commit();
    if (AHEAD) {
        fetch_digit(0);
        copy_async_commit();
        // What is added is read last.
        if (of_level) {
            const Added& added = args.added;
            const u64* a = added.a.data + batch * added.a.batch_stride + limb * n;
            const u64* b = added.b.data + batch * added.b.batch_stride + limb * n;
            if (added.parts > 0) prefetch_row(a, tile);
            if (added.tensor != 0) {
                prefetch_row(b, tile);
                prefetch_row(b + added.b.part_stride, tile);
            } else if (added.parts > 1) {
                prefetch_row(a + added.a.part_stride, tile);
            }
        }
    }
    T sum_b[HELD], sum_a[HELD];
#pragma unroll
    for (int h = 0; h < HELD; ++h) sum_b[h] = sum_a[h] = core.zero();
    for (u32 digit = 0; digit < args.digits; ++digit) {
        const u64* key_b = key + digit * 2 * half_words;
        const u64* digit_words = extended + digit * args.extended_stride;
        if (AHEAD) {
            __syncwarp();
#pragma unroll
            for (int h = 0; h < HELD; h += 2) {
                copy_async_16_once(keys_ahead + h * THREADS_B<LB>, key_b + tile.held(h));
                copy_async_16_once(keys_ahead + (HELD + h) * THREADS_B<LB>,
                              key_b + half_words + tile.held(h));
            }
            copy_async_commit();
            await_row<1>(twiddles);
        }
        T x[HELD];
        if constexpr (DIGITS == WHOLE) {
#pragma unroll
            for (int h = 0; h < HELD; h += 2) {
                const Pair words =
                    load_pair(AHEAD ? pairs_ahead + h * THREADS_B<LB> : digit_words + tile.held(h));
                x[h] = core.load_lazy(words.x);
                x[h + 1] = core.load_lazy(words.y);
            }
        } else if (digit == own_digit) {
            const u64* factor =
                args.own_factor.data + batch * args.own_factor.batch_stride + limb * n;
            T* shared = tile.template row_of<T>();
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                const u64 at = tile.first(h);
                T value = core.load(AHEAD ? ahead[h * THREADS_B<LB>] : own[at]);
                if (args.own_factor.data != nullptr)
                    value = core.product(value, core.load(factor[at]));
                at_first<LB, 1>(shared, tile.t, h) = value;
            }
            __syncwarp();
#pragma unroll
            for (int h = 0; h < HELD; ++h)
                x[h] = at_last<LB, 1>(shared, tile.t, h);
            __syncwarp();
        } else {
            if constexpr (AHEAD) {
#pragma unroll
                for (int h = 0; h < HELD; ++h) x[h] = core.load_lazy(ahead[h * THREADS_B<LB>]);
            } else {
                fetch_residues(digit_words, tile);
                copy_async_commit();
                await_row<0>(twiddles);
                take_residues(x, core, tile);
            }
            forward_row(x, core, twiddles, tile);
            if (args.key_count == 1) discard_row(digit_words, tile);
        }
        if constexpr (AHEAD) {
            if (digit + 1 < args.digits) fetch_digit(digit + 1);
            copy_async_commit();
            copy_async_wait<1>();
            add_products<LB>(sum_b, sum_a, x, core, [&](int half, int h) {
                return load_pair(keys_ahead + (half * HELD + h) * THREADS_B<LB>);
            });
        } else {
            add_products<LB>(sum_b, sum_a, x, core, [&](int half, int h) {
                return load_pair(key_b + half * half_words + tile.held(h));
            });
        }
        // Six products of 0.72 p, and what is added, stay below 6 p.
        if (digit % 6 == 5) {
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                sum_b[h] = core.tidy(sum_b[h]);
                sum_a[h] = core.tidy(sum_a[h]);
            }
        }
    }
    if (of_level && args.added.parts != 0) {
        const Added& added = args.added;
        const u64* a = added.a.data + batch * added.a.batch_stride + limb * n;
        const u64* b = added.b.data + batch * added.b.batch_stride + limb * n;
        if constexpr (AHEAD) {
            // The operands come at once to where words of digits and keys were; the fourth of a
            // product, which was read not long ago, as it is needed.
            const auto fetched = [&](int which, int h) -> u64& {
                if (DIGITS == AFTER_A && which == 0) return ahead[h * THREADS_B<LB>];
                return which == 0 ? pairs_ahead[(h & ~1) * THREADS_B<LB> + (h & 1)]
                                  : keys_ahead[((which - 1) * HELD + (h & ~1)) * THREADS_B<LB> + (h & 1)];
            };
            const auto fetch = [&](int which, const u64* source) {
#pragma unroll
                for (int h = 0; h < HELD; ++h)
                    copy_async_8(&fetched(which, h), source + tile.first(h));
            };
            fetch(0, a);
            if (added.tensor != 0) {
                fetch(1, b);
                fetch(2, b + added.b.part_stride);
            } else if (added.parts > 1) {
                fetch(1, a + added.a.part_stride);
            }
            copy_async_commit();
            copy_async_wait<0>();
            add_parts<LB>(sum_b, sum_a, core, added.parts, args.special_products[limb], tile,
                          [&](u32 part, int h) {
                const T a0 = core.load(fetched(0, h)), b0 = core.load(fetched(1, h));
                if (added.tensor == 0) return part == 0 ? a0 : b0;
                if (part == 0) return core.product(a0, b0);
                const T a1 = core.load(__ldg(a + added.a.part_stride + tile.first(h)));
                return core.add(core.product(a0, core.load(fetched(2, h))), core.product(a1, b0));
            });
        } else {
            add_parts<LB>(sum_b, sum_a, core, added.parts, args.special_products[limb], tile,
                          [&](u32 part, int h) {
                return added_at(core, added, batch, part,
                                limb * n + tile.first(h));
            });
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
            store_pair(kept + tile.held(h), core.store_lazy(sum_b[h]), core.store_lazy(sum_b[h + 1]));
            store_pair(kept + args.kept_stride + tile.held(h), core.store_lazy(sum_a[h]),
                      core.store_lazy(sum_a[h + 1]));
        }
        return;
    }
    const u32 place = of_level ? args.basis.limbs - args.digit_limbs : limb - args.digit_limbs;
    u64* special = args.special + item * 2 * args.special_stride + place * n;
    auto inverse = fetch_row<LB, Core>(prime.inverse, args.log_n, tile);
    copy_async_commit();
    await_row<0>(inverse);
    // Once in the code for both halves: the second moves to where the first was.
#pragma unroll 1
    for (u32 half = 0; half < 2; ++half) {
        inverse_row(sum_b, special + half * args.special_stride, core, inverse, tile);
#pragma unroll
        for (int h = 0; h < HELD; ++h) sum_b[h] = sum_a[h];
    }
}

// The digits of a polynomial, all of them, in held order: for several keys to share, or where the
// inner product's blocks would be too few.
struct Whole {
    const Prime* primes;
    u64* extended;  // [batch][digit][limbs][N], after pass A; replaced
    u64 extended_stride;
    Operand own;
    Operand own_factor;  // what the polynomial is multiplied by; null for nothing
    Basis basis;
    u32 log_n;
    u32 digits;
    u32 digit_size;
    u32 digit_limbs;
};
static_assert(sizeof(Whole) == 104, "src/kernels/switch.rs has the same layout");

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
        const u64* factor = args.own_factor.data + batch * args.own_factor.batch_stride + offset;
        if (args.own_factor.data != nullptr) {
            gather_row<LB, Core>(x, tile, [&](u64 at) {
                return core.product(core.load(__ldg(own + at)), core.load(__ldg(factor + at)));
            });
        } else {
            gather_row<LB, Core>(x, tile, [&](u64 at) { return core.load(__ldg(own + at)); });
        }
    } else {
        fetch_residues(extended, tile);
        auto twiddles = fetch_row<LB, Core>(prime.forward, args.log_n, tile);
        copy_async_commit();
        await_row<0>(twiddles);
        take_residues(x, core, tile);
        forward_row(x, core, twiddles, tile);
    }
#pragma unroll
    for (int h = 0; h < HELD; h += 2)
        store_pair(extended + tile.held(h), core.store_lazy(x[h]), core.store_lazy(x[h + 1]));
}

// Digits that a thread of the flat inner product keeps for all its keys.
constexpr int CACHED = 8;
constexpr int FLAT_THREADS = 256;

// The products of whole digits with keys, residue by residue, of the first limbs of the basis; a thread does
// two neighbours under every gridDim.z / batch-th key. Grid: (pairs of residues, limbs, batch elements times
// shares).
template <int LB, Mode MODE>
__device__ __forceinline__ void inner_flat(const Inner& args) {
    typedef typename CoreOf<MODE>::type Core;
    typedef typename Core::T T;
    const u32 limb = blockIdx.y, batch = blockIdx.z % args.batch;
    const u32 prime_index = prime_of(args.basis, limb);
    const Prime& prime = args.primes[prime_index];
    const Core core(prime);
    const u64 n = 1ull << args.log_n;
    const u32 at = (blockIdx.x * FLAT_THREADS + threadIdx.x) * 2;
    const u64* extended =
        args.extended + batch * args.digits * args.extended_stride + limb * n + at;
    const u64 half_words = args.key_limbs * n;
    const bool of_level = limb < args.digit_limbs;
    const u32 kept_limbs = args.digit_limbs - args.dropped;
    // What is added, the same for every key.
    T added[2][2] = {{core.zero(), core.zero()}, {core.zero(), core.zero()}};
    if (of_level) {
        const auto p = core.factor(args.special_products[limb]);
        const u32 within = at & ((1u << LB) - 1), base = at - within;
        const u32 h = within / (2 * ROW_THREADS<LB>) * 2, t = within % (2 * ROW_THREADS<LB>) / 2;
#pragma unroll
        for (u32 part = 0; part < 2; ++part) {
            if (part >= args.added.parts) continue;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const T other = added_at(core, args.added, batch, part,
                                         limb * n + base + last_position<LB>(t, h + i));
                added[part][i] = core.tidy(core.mul(other, p));
            }
        }
    }
    T cached[CACHED][2];
#pragma unroll
    for (int digit = 0; digit < CACHED; ++digit) {
        Pair words = {0, 0};
        if (digit < args.digits) words = load_pair(extended + digit * args.extended_stride);
        cached[digit][0] = core.load_lazy(words.x);
        cached[digit][1] = core.load_lazy(words.y);
    }
    for (u32 index = blockIdx.z / args.batch; index < args.key_count;
         index += gridDim.z / args.batch) {
        const u64* key = args.keys[index] + prime_index * n + at;
        const u32 item = index * args.batch + batch;
        T sums[2][2] = {{added[0][0], added[0][1]}, {added[1][0], added[1][1]}};
        const auto add = [&](u32 digit, T x, T y) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const ulonglong2 words = __ldg(reinterpret_cast<const ulonglong2*>(
                    key + (2 * digit + half) * half_words));
                sums[half][0] = core.add(sums[half][0], core.key_product(x, words.x));
                sums[half][1] = core.add(sums[half][1], core.key_product(y, words.y));
            }
        };
        const auto tidy = [&] {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                sums[half][0] = core.tidy(sums[half][0]);
                sums[half][1] = core.tidy(sums[half][1]);
            }
        };
#pragma unroll
        for (int digit = 0; digit < CACHED; ++digit) {
            if (digit < args.digits) add(digit, cached[digit][0], cached[digit][1]);
            if (digit % 6 == 5) tidy();
        }
        for (u32 digit = CACHED; digit < args.digits; ++digit) {
            const Pair words = load_pair(extended + digit * args.extended_stride);
            add(digit, core.load_lazy(words.x), core.load_lazy(words.y));
            if (digit % 4 == 3) tidy();
        }
        tidy();
        u64* target;
        u64 stride;
        if (limb < kept_limbs) {
            stride = args.kept_stride;
            target = args.kept + item * 2 * stride + limb * n + at;
        } else {
            stride = args.special_stride;
            const u32 place = of_level ? args.basis.limbs - args.digit_limbs : limb - args.digit_limbs;
            target = args.special + item * 2 * stride + place * n + at;
        }
#pragma unroll
        for (int half = 0; half < 2; ++half)
            store_pair(target + half * stride, core.store_lazy(sums[half][0]),
                      core.store_lazy(sums[half][1]));
    }
}

}  // namespace

// The inner product holds 24 residues a thread. In FAST it is as dense for every target: with room for
// more registers the compiler of sm_80 to sm_89 spills some.
#define SWITCH(LB, SUFFIX, MODE)                                                              \
    FH_KERNEL(inner_##LB##_fused_##SUFFIX, THREADS_B<LB>, (RESIDENT<MODE, 5 + FEWER, 3>), Inner, \
              (inner<LB, AFTER_A, MODE>))                                                     \
    FH_KERNEL(inner_##LB##_whole_##SUFFIX, THREADS_B<LB>, (RESIDENT<MODE, 5 + FEWER, 3>), Inner, \
              (inner<LB, WHOLE, MODE>))                                                       \
    FH_KERNEL(inner_##LB##_flat_##SUFFIX, FLAT_THREADS, (RESIDENT<MODE, 3, 2>), Inner,        \
              (inner_flat<LB, MODE>))                                                         \
    FH_KERNEL(whole_##LB##_##SUFFIX, THREADS_B<LB>, (RESIDENT<MODE, 8, 6>), Whole, (whole<LB, MODE>))

SWITCH(5, fast, FAST)
SWITCH(7, fast, FAST)
SWITCH(8, fast, FAST)
SWITCH(5, wide, WIDE)
SWITCH(7, wide, WIDE)
SWITCH(8, wide, WIDE)
