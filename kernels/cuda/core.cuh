// The two arithmetic cores behind one interface, and the constants of a prime.
//
// A kernel is instantiated for a Mode: FAST where every prime of the parameters is below 2^49.5
// and the device has full FP64 units, WIDE otherwise.
//
// Between the kernels of one operation residues keep whatever form is cheapest ("internal"): in
// FAST the bits of a lazily reduced double, in WIDE integers, lazy within a transform. Values that
// leave an operation are canonical integers.
#ifndef FHELIUM_CORE_CUH
#define FHELIUM_CORE_CUH

#include "modular.cuh"

typedef unsigned int u32;

enum Mode { FAST, WIDE };

// A fixed factor: a centred double's bits and nothing, or an integer and its Shoup word.
struct Factor {
    u64 w;
    u64 shoup;
};

// Neighbouring words, 16 bytes at once: the first has an even index.
struct Pair {
    u64 x, y;
};
__device__ __forceinline__ Pair load_pair(const u64* source) {
    const ulonglong2 both = *reinterpret_cast<const ulonglong2*>(source);
    return Pair{both.x, both.y};
}
__device__ __forceinline__ void store_pair(u64* target, u64 x, u64 y) {
    *reinterpret_cast<ulonglong2*>(target) = make_ulonglong2(x, y);
}

// One prime's constants. src/tables/mod.rs lays out the same bytes.
struct Prime {
    double p_f64;
    double inv_p;
    u64 p;
    u64 ratio_lo;  // floor((2^128 - 1) / p)
    u64 ratio_hi;
    u64 montgomery;  // -1/p modulo 2^64
    const u64* forward;  // twiddles, see ntt.cuh, as Factor::w; in WIDE then their Shoup words
    const u64* inverse;  // their inverses
};
static_assert(sizeof(Prime) == 64, "src/tables/mod.rs has the same layout");
constexpr u32 PRIME_WORDS = sizeof(Prime) / sizeof(u64);

// Residues of primes below 2^49.5 as lazily reduced doubles; "tidy" is |x| <= 0.51 p.
struct F64Core {
    typedef double T;
    typedef double W;
    double p, inv_p;
    bool tight;  // whether residues may outgrow the core within a transform, inverse within a pass

    __device__ __forceinline__ explicit F64Core(const Prime& q)
        : p(q.p_f64), inv_p(q.inv_p), tight(q.p >> 42 != 0) {}
    __device__ __forceinline__ T zero() const { return 0.0; }
    __device__ __forceinline__ T load(u64 x) const { return f64_load(x); }
    __device__ __forceinline__ u64 store(T x) const { return f64_store(x, p, inv_p); }
    __device__ __forceinline__ T load_lazy(u64 x) const { return fh_from_bits(x); }
    __device__ __forceinline__ u64 store_lazy(T x) const { return fh_to_bits(x); }
    __device__ __forceinline__ u64 store_canonical_lazy(T x) const {
        return fh_to_bits(f64_canonical(x, p, inv_p));
    }
    // What stands for a residue in (-p/2, p/2), and as such for one of any other prime.
    typedef double Centred;
    __device__ __forceinline__ Centred center(T x) const {
        return f64_center(f64_canonical(x, p, inv_p), p);
    }
    // Of one of q: within p.
    __device__ __forceinline__ T recenter(Centred x, const Prime& q) const {
        return q.p_f64 <= 2.0 * p ? x : f64_reduce(x, p, inv_p);
    }
    __device__ __forceinline__ T reduce(T x) const { return f64_reduce(x, p, inv_p); }
    __device__ __forceinline__ T tidy(T x) const { return f64_reduce(x, p, inv_p); }
    // Canonical, of what `mul` gives of at most 4.1 p, or of at most 14 p where that is not tight: it is
    // below 0.9 p.
    __device__ __forceinline__ u64 store_product(T x) const { return f64_store_near(x, p); }
    // Of a canonical or tidy residue and what a forward transform leaves, for `mul` to take.
    __device__ __forceinline__ T sub_lazy(T a, T b) const { return FH_ADD(a, -b); }
    static constexpr u32 TWIDDLE_WORDS = 1;
    template <class Table>
    __device__ __forceinline__ W twiddle(const Table& table, u32 i) const {
        return fh_from_bits(table.word(i));
    }
    // Entries i and i + 1, for an even i.
    template <class Table>
    __device__ __forceinline__ void twiddles(W& w0, W& w1, const Table& table, u32 i) const {
        const ulonglong2 pair = table.pair(i);
        w0 = fh_from_bits(pair.x);
        w1 = fh_from_bits(pair.y);
    }
    // What a table holds of a thread's two groups of pass B's last step: w(2 i) of each. Since
    // w(2 i)^2 = w(i) and w(2 i + 1) = w(2 i) w(1), that is all; the others are below 0.55 p.
    static constexpr u32 ROW_WORDS_HELD = 2;
    static constexpr bool NEAR_ROWS = true;
    template <u32 ROW_THREADS, class Table>
    __device__ __forceinline__ void row_twiddles(W (&w)[2][3], const Table& table, u32 t) const {
        twiddles(w[0][1], w[1][1], table, table.origin() + 2 * t);
        const W quarter = fh_from_bits(table.quarter());
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            w[e][0] = mul(w[e][1], w[e][1]);
            w[e][2] = mul(w[e][1], quarter);
        }
    }
    __device__ __forceinline__ W factor(const Factor& f) const { return fh_from_bits(f.w); }
    __device__ __forceinline__ T mul(T x, W w) const { return f64_mul(x, w, p, inv_p); }
    // Of canonical or tidy residues: below 0.68 p.
    __device__ __forceinline__ T product(T a, T b) const { return f64_mul(a, b, p, inv_p); }
    // By a word of an evaluation key, which is a centred double.
    __device__ __forceinline__ T key_product(T x, u64 key) const {
        return mul(x, fh_from_bits(key));
    }
    __device__ __forceinline__ T add(T a, T b) const { return FH_ADD(a, b); }
    __device__ __forceinline__ T sub(T a, T b) const { return FH_ADD(a, -b); }
    __device__ __forceinline__ void forward(T& u, T& v, W w) const {
        T t = mul(v, w);
        v = FH_ADD(u, -t);
        u = FH_ADD(u, t);
    }
    __device__ __forceinline__ void inverse(T& u, T& v, W w) const {
        T d = FH_ADD(u, -v);
        u = FH_ADD(u, v);
        v = mul(d, w);
    }
};

// Residues of primes below 2^61 as integers: Harvey's lazy butterflies ("Faster arithmetic for
// number-theoretic transforms", 2014), forward in [0, 4p), inverse in [0, 2p); "tidy" is canonical.
struct U64Core {
    typedef u64 T;
    typedef Factor W;
    u64 p, p2, ratio_lo, ratio_hi, montgomery;
    static constexpr bool tight = false;

    __device__ __forceinline__ explicit U64Core(const Prime& q)
        : p(q.p),
          p2(2 * q.p),
          ratio_lo(q.ratio_lo),
          ratio_hi(q.ratio_hi),
          montgomery(q.montgomery) {}
    __device__ __forceinline__ T zero() const { return 0; }
    __device__ __forceinline__ T load(u64 x) const { return x; }
    __device__ __forceinline__ u64 store(T x) const { return tidy(x); }
    __device__ __forceinline__ T load_lazy(u64 x) const { return x; }
    __device__ __forceinline__ u64 store_lazy(T x) const { return x; }
    __device__ __forceinline__ u64 store_canonical_lazy(T x) const { return tidy(x); }
    typedef u64 Centred;  // canonical
    __device__ __forceinline__ Centred center(T x) const { return tidy(x); }
    __device__ __forceinline__ T recenter(Centred x, const Prime& q) const {
        return u64_recenter(x, q.p, p, ratio_hi);
    }
    __device__ __forceinline__ T reduce(T x) const { return x; }
    __device__ __forceinline__ T tidy(T x) const { return u64_sub_once(u64_sub_once(x, p2), p); }
    __device__ __forceinline__ u64 store_product(T x) const { return u64_sub_once(x, p); }
    __device__ __forceinline__ T sub_lazy(T a, T b) const { return sub(a, tidy(b)); }
    static constexpr u32 TWIDDLE_WORDS = 2;
    template <class Table>
    __device__ __forceinline__ W twiddle(const Table& table, u32 i) const {
        return Factor{table.word(i), table.word(table.words + i)};
    }
    template <class Table>
    __device__ __forceinline__ void twiddles(W& w0, W& w1, const Table& table, u32 i) const {
        const ulonglong2 pair = table.pair(i), shoup = table.pair(table.words + i);
        w0 = Factor{pair.x, shoup.x};
        w1 = Factor{pair.y, shoup.y};
    }
    // A table holds all of them: of each group nothing, w(i), w(2 i), w(2 i + 1).
    static constexpr u32 ROW_WORDS_HELD = 8;
    static constexpr bool NEAR_ROWS = false;
    template <u32 ROW_THREADS, class Table>
    __device__ __forceinline__ void row_twiddles(W (&w)[2][3], const Table& table, u32 t) const {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const u32 first = table.origin() + 2 * e * (2 * ROW_THREADS) + 2 * t;
            w[e][0] = twiddle(table, first + 1);
            twiddles(w[e][1], w[e][2], table, first + 2 * ROW_THREADS);
        }
    }
    __device__ __forceinline__ W factor(const Factor& f) const { return f; }
    __device__ __forceinline__ T mul(T x, W w) const {
        return u64_mul_shoup_lazy(x, w.w, w.shoup, p);
    }
    __device__ __forceinline__ T product(T a, T b) const {
        return u64_mul(a, b, p, ratio_lo, ratio_hi);
    }
    // By a word of an evaluation key, which is a residue times 2^64.
    __device__ __forceinline__ T key_product(T x, u64 key) const {
        return u64_mul_montgomery(x, key, p, montgomery);
    }
    // Of canonical residues, as all tidy ones and products are.
    __device__ __forceinline__ T add(T a, T b) const { return u64_add(a, b, p); }
    __device__ __forceinline__ T sub(T a, T b) const { return u64_sub(a, b, p); }
    __device__ __forceinline__ void forward(T& u, T& v, W w) const {
        T a = u64_sub_once(u, p2);
        T t = mul(v, w);
        u = a + t;
        v = a + p2 - t;
    }
    __device__ __forceinline__ void inverse(T& u, T& v, W w) const {
        T d = u + p2 - v;
        u = u64_sub_once(u + v, p2);
        v = mul(d, w);
    }
};

// Under X -> X^g, index j of the image is index automorphism_source(g, j) of the argument, both
// transformed: value j is at psi^(2 bitrev(j) + 1).
__device__ __forceinline__ u32 automorphism_source(u32 g, u32 j, u32 log_n) {
    u32 exponent = 2 * (__brev(j) >> (32 - log_n)) + 1;
    u32 image = (g * exponent) & ((2u << log_n) - 1);
    return __brev(image >> 1) >> (32 - log_n);
}

template <Mode MODE>
struct CoreOf;
template <>
struct CoreOf<FAST> {
    typedef F64Core type;
};
template <>
struct CoreOf<WIDE> {
    typedef U64Core type;
};

// Which prime limb i of a polynomial is of: a level's primes are the first `split`, and `skip`
// primes that the level no longer has lie before the special ones.
struct Basis {
    u32 first;
    u32 split;
    u32 skip;
    u32 limbs;
};

__device__ __forceinline__ u32 prime_of(const Basis& basis, u32 limb) {
    return basis.first + limb + (limb < basis.split ? 0 : basis.skip);
}

// Polynomials of an operand: words from one batch element or part to the next.
struct Operand {
    const u64* data;
    u64 batch_stride;
    u64 part_stride;
};

#endif
