// Real coefficients to the residues of the nearest integers and back, exactly, at scales of any
// size, as fhelium-ckks' encoding/rounding.rs and encoding/lift.rs do; and constants.

#include "message.cuh"

namespace {

constexpr int THREADS = 256;

// 2^exponent, for -1000 to 1000.
__device__ __forceinline__ double power_of_two(int exponent) {
    return fh_from_bits((u64)(1023 + exponent) << 52);
}

// value * 2^exponent, rounded once unless the result is subnormal.
__device__ __forceinline__ double times_power_of_two(double value, int exponent) {
    // Zeros and infinities stay.
    while (value != 0.0 && (exponent < -1000 || exponent > 1000) && value - value == 0.0) {
        const int step = exponent < 0 ? -1000 : 1000;
        value = FH_MUL(value, power_of_two(step));
        exponent -= step;
    }
    return FH_MUL(value, power_of_two(exponent < -1000 ? -1000 : (exponent > 1000 ? 1000 : exponent)));
}

// The residue of a signed integer of magnitude below 2^63.
__device__ __forceinline__ u64 residue_of(i64 value, const Prime& prime) {
    const u64 magnitude = value < 0 ? 0 - (u64)value : (u64)value;
    const u64 r = u64_reduce(magnitude, prime.p, prime.ratio_hi);
    return value < 0 && r != 0 ? prime.p - r : r;
}

// Grid: (pairs of residues, limbs, items).
struct Round {
    const Prime* primes;
    const double* source;  // [item][N]
    u64* target;           // [item][limbs][N]
    double factor;         // 2^exponent where that is a float
    Basis basis;
    int exponent;
    u32 exact;  // not 0: integers may be beyond 2^62
    u32 log_n;
    u32 unused;
};
static_assert(sizeof(Round) == 64, "src/kernels/embed.rs has the same layout");

// The residue of the integer nearest to value * 2^exponent, which may be of any size: past 2^53 it
// is the value's mantissa times a power of two.
__device__ __forceinline__ u64 exact_residue(double value, int exponent, const Prime& prime) {
    const u64 bits = fh_to_bits(value), fraction = bits & 0xFFFFFFFFFFFFFull;
    const int biased = (int)(bits >> 52 & 0x7FF);
    const u64 mantissa = biased == 0 ? fraction : fraction | 1ull << 52;
    const int shift = (biased == 0 ? -1074 : biased - 1075) + exponent;
    if (shift < 0) return residue_of(__double2ll_rn(times_power_of_two(value, exponent)), prime);
    u64 power = 1;
#pragma unroll 1
    for (int bit = 31 - __clz(shift | 1); bit >= 0; --bit) {
        power = u64_mul(power, power, prime.p, prime.ratio_lo, prime.ratio_hi);
        if (shift >> bit & 1) power = u64_add(power, power, prime.p);
    }
    const u64 r = u64_mul(mantissa, power, prime.p, prime.ratio_lo, prime.ratio_hi);
    return bits >> 63 != 0 && r != 0 ? prime.p - r : r;
}

__device__ __forceinline__ void round_to_residues(const Round& args) {
    const u32 at = (blockIdx.x * THREADS + threadIdx.x) * 2;
    const Prime& prime = args.primes[prime_of(args.basis, blockIdx.y)];
    const double* source = args.source + ((u64)blockIdx.z << args.log_n) + at;
    u64 residues[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
        residues[i] = args.exact != 0
                          ? exact_residue(source[i], args.exponent, prime)
                          : residue_of(__double2ll_rn(FH_MUL(source[i], args.factor)), prime);
    const u64 polynomial = (u64)blockIdx.z * args.basis.limbs + blockIdx.y;
    *reinterpret_cast<ulonglong2*>(args.target + (polynomial << args.log_n) + at) =
        make_ulonglong2(residues[0], residues[1]);
}

// The residues of a constant that only the device has seen, a pair for each limb: those of the
// polynomial round(re scale) + round(im scale) X^(N/2), as fhelium-ckks' encoding/constant.rs says.
// Grid: (limbs); a thread does one.
struct ConstantResidues {
    const Prime* primes;
    const double* source;  // one number, or two where it is complex
    const u64* roots;      // a square root of -1 modulo each prime
    u64* target;           // [limb][2]
    Check check;
    double mantissa;  // of the scale
    int exponent;     // of the scale
    u32 limbs;
    u32 complex;
    u32 unused;
};
static_assert(sizeof(ConstantResidues) == 88, "src/kernels/embed.rs has the same layout");

__device__ __forceinline__ void constant_residues(const ConstantResidues& args) {
    const u32 limb = blockIdx.x * THREADS + threadIdx.x;
    if (limb >= args.limbs) return;
    const double re = args.source[0], im = args.complex != 0 ? args.source[1] : 0.0;
    if (limb == 0) check_value(args.check, 0, re, im);
    const Prime& prime = args.primes[limb];
    const u64 real = exact_residue(FH_MUL(re, args.mantissa), args.exponent, prime);
    const u64 turned = exact_residue(FH_MUL(im, args.mantissa), args.exponent, prime);
    const u64 imaginary = u64_mul(turned, args.roots[limb], prime.p, prime.ratio_lo, prime.ratio_hi);
    args.target[2 * limb] = u64_add(real, imaginary, prime.p);
    args.target[2 * limb + 1] = u64_sub(real, imaginary, prime.p);
}

// A constant's residues: one in the first half of a limb, one in the second. Grid: (pairs, limbs).
struct Constant {
    const u64* residues;  // [limb][2]
    u64* target;          // [limb][N]
    u32 log_n;
    u32 unused;
};
static_assert(sizeof(Constant) == 24, "src/kernels/embed.rs has the same layout");

__device__ __forceinline__ void constant(const Constant& args) {
    const u32 at = (blockIdx.x * THREADS + threadIdx.x) * 2;
    const u64 residue = args.residues[2 * blockIdx.y + (at >> (args.log_n - 1))];
    *reinterpret_cast<ulonglong2*>(args.target + ((u64)blockIdx.y << args.log_n) + at) =
        make_ulonglong2(residue, residue);
}

// Grid: (coefficients, items).
struct Centre {
    const Prime* primes;
    u64* residues;        // [item][limbs][N], which are lost
    double* target;       // [item][N]
    const u64* inverses;  // 1 / (q_0 ... q_(i-1)) modulo q_i
    const u64* product;   // of the primes: words from the least on
    double mantissa;      // of the scale
    int exponent;         // of the scale
    u32 limbs;
    u32 log_n;
    u32 unused;
};
static_assert(sizeof(Centre) == 64, "src/kernels/embed.rs has the same layout");

// Residues, and then words, of one coefficient, N apart.
struct Strided {
    u64* first;
    u32 log_n;
    __device__ __forceinline__ u64& operator[](u32 index) const {
        return first[(u64)index << log_n];
    }
};

// An integer as value * 2^exponent, rounded once.
struct Lifted {
    double value;
    int exponent;
};

// Words from the most significant that is not zero on to a float; WORD(i) is word i of so many. What
// is cut off only matters for a tie.
template <class Word>
__device__ __forceinline__ Lifted to_float(u32 count, Word word) {
    u32 top = count;
    while (top > 0 && word(top - 1) == 0) --top;
    if (top == 0) return Lifted{0.0, 0};
    const u64 high = word(top - 1), low = top > 1 ? word(top - 2) : 0;
    const int shift = __clzll((long long)high);
    u64 leading = shift == 0 ? high : high << shift | low >> (64 - shift);
    u64 cut = low << shift;
    for (u32 i = 0; i + 2 < top; ++i) cut |= word(i);
    leading |= cut != 0;
    return Lifted{(double)leading, 64 * ((int)top - 1) - shift};
}

// The integer that the first two primes tell, if the others confirm it.
__device__ __forceinline__ bool centred_pair(Lifted& lifted, const Centre& args,
                                             const Strided& residues) {
    const Prime& p = args.primes[0];
    const Prime& q = args.primes[1];
    const u64 first = residues[0];
    const u64 difference = u64_sub(residues[1], u64_reduce(first, q.p, q.ratio_hi), q.p);
    const u64 digit = u64_mul(difference, args.inverses[1], q.p, q.ratio_lo, q.ratio_hi);
    u64 words[2] = {first, 0};
    u64_sum_add(&words[0], &words[1], digit, p.p);
    const u64 product_lo = p.p * q.p, product_hi = fh_mulhi(p.p, q.p);
    const u64 rest_lo = product_lo - words[0];
    const u64 rest_hi = product_hi - words[1] - (product_lo < words[0]);
    const bool negative = words[1] > rest_hi || (words[1] == rest_hi && words[0] > rest_lo);
    if (negative) words[0] = rest_lo, words[1] = rest_hi;
    bool confirmed = true;
#pragma unroll 1
    for (u32 i = 2; i < args.limbs; ++i) {
        const Prime& other = args.primes[i];
        const u64 r = u64_reduce_wide(words[0], words[1], other.p, other.ratio_lo, other.ratio_hi);
        confirmed = confirmed && residues[i] == (negative && r != 0 ? other.p - r : r);
    }
    lifted = to_float(2, [&](u32 i) { return words[i]; });
    if (negative) lifted.value = -lifted.value;
    return confirmed;
}

// Garner's mixed-radix reconstruction, in place: digits replace residues from the first on, words
// replace digits from the last on.
__device__ __forceinline__ Lifted centred_words(const Centre& args, const Strided& residues) {
    const u32 limbs = args.limbs;
#pragma unroll 1
    for (u32 i = 1; i < limbs; ++i) {
        const Prime& q = args.primes[i];
        u64 known = 0;
#pragma unroll 1
        for (u32 j = i; j-- > 0;) {
            const u64 radix = u64_reduce(args.primes[j].p, q.p, q.ratio_hi);
            known = u64_add(u64_mul(known, radix, q.p, q.ratio_lo, q.ratio_hi),
                            u64_reduce(residues[j], q.p, q.ratio_hi), q.p);
        }
        residues[i] = u64_mul(u64_sub(residues[i], known, q.p), args.inverses[i], q.p, q.ratio_lo,
                              q.ratio_hi);
    }
#pragma unroll 1
    for (u32 i = limbs; i-- > 0;) {
        u64 carry = residues[i];
#pragma unroll 1
        for (u32 word = limbs - 1; word > i; --word) {
            u64 lo = carry, hi = 0;
            u64_sum_add(&lo, &hi, residues[word], args.primes[i].p);
            residues[word] = lo;
            carry = hi;
        }
        residues[i] = carry;
    }
    const auto word = [&](u32 i) { return residues[limbs - 1 - i]; };
    // The product less the value, and which of both is larger: the last word that differs tells.
    bool negative = false;
    u64 borrow = 0;
    const auto subtract = [&](u32 i) {
        const u64 minuend = args.product[i], subtrahend = word(i);
        const u64 rest = minuend - subtrahend - borrow;
        borrow = minuend < subtrahend || (minuend == subtrahend && borrow != 0);
        return rest;
    };
    for (u32 i = 0; i < limbs; ++i) {
        const u64 rest = subtract(i);
        if (rest != word(i)) negative = word(i) > rest;
    }
    borrow = 0;
    if (negative)
        for (u32 i = 0; i < limbs; ++i) residues[limbs - 1 - i] = subtract(i);
    Lifted lifted = to_float(limbs, word);
    if (negative) lifted.value = -lifted.value;
    return lifted;
}

// The centred integer of each coefficient over the scale. Mostly the first prime tells it and the
// others confirm.
__device__ __forceinline__ void centre(const Centre& args) {
    const u32 k = blockIdx.x * THREADS + threadIdx.x;
    const u64 item = blockIdx.y;
    const Strided residues = {args.residues + (item * args.limbs << args.log_n) + k, args.log_n};
    const u64 first = residues[0], p = args.primes[0].p;
    const i64 small = first > p / 2 ? (i64)first - (i64)p : (i64)first;
    bool confirmed = true;
    for (u32 i = 1; i < args.limbs; ++i)
        confirmed = confirmed & (residues[i] == residue_of(small, args.primes[i]));
    Lifted lifted = {(double)small, 0};
    if (!confirmed && !centred_pair(lifted, args, residues)) lifted = centred_words(args, residues);
    args.target[(item << args.log_n) + k] =
        times_power_of_two(lifted.value / args.mantissa, lifted.exponent - args.exponent);
}

}  // namespace

FH_KERNEL(round_coefficients, THREADS, 4, Round, (round_to_residues))
FH_KERNEL(residues_of_constant, THREADS, 4, ConstantResidues, (constant_residues))
FH_KERNEL(fill_constant, THREADS, 4, Constant, (constant))
FH_KERNEL(centre_coefficients, THREADS, 4, Centre, (centre))
