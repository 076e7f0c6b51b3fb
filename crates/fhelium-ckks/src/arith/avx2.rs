//! The double-precision kernels with AVX2 and FMA: four lanes.

use std::arch::x86_64::*;

use super::base_conversion::implement_convert;
use super::error::ArithError;
use super::fp64::{Fp64Field, Fp64Transform, Lanes};
use super::kernels::implement_kernels;
use super::modulus::Modulus;
use super::tier::Tier;

/// Proof that the CPU has AVX2 and FMA.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// The proof, on a CPU that has the instructions.
    pub fn new() -> Option<Self> {
        Tier::Avx2.is_available().then_some(Self(()))
    }
}

/// One unsafe block around the intrinsics of a method.
macro_rules! simd {
    ($($body:tt)*) => {
        // SAFETY: `self` exists only on a CPU that has AVX2 and FMA, and every pointer comes from a
        // reference to four values.
        unsafe { $($body)* }
    };
}

/// 2^52: its lowest mantissa bit has the weight 1.
const INTEGER_BASE: f64 = 4_503_599_627_370_496.0;

impl Lanes<4> for Avx2 {
    type Float = __m256d;
    type Int = __m256i;

    #[inline(always)]
    fn load(self, values: &[u64; 4]) -> __m256i {
        simd! { _mm256_loadu_si256(values.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, values: __m256i, out: &mut [u64; 4]) {
        simd! { _mm256_storeu_si256(out.as_mut_ptr().cast(), values) }
    }

    #[inline(always)]
    fn load_float(self, values: &[f64; 4]) -> __m256d {
        simd! { _mm256_loadu_pd(values.as_ptr()) }
    }

    #[inline(always)]
    fn store_float(self, values: __m256d, out: &mut [u64; 4]) {
        simd! { _mm256_storeu_pd(out.as_mut_ptr().cast(), values) }
    }

    #[inline(always)]
    fn as_float(self, bits: __m256i) -> __m256d {
        simd! { _mm256_castsi256_pd(bits) }
    }

    #[inline(always)]
    fn splat(self, value: f64) -> __m256d {
        simd! { _mm256_set1_pd(value) }
    }

    #[inline(always)]
    fn splat_int(self, value: u64) -> __m256i {
        simd! { _mm256_set1_epi64x(value as i64) }
    }

    #[inline(always)]
    fn add(self, a: __m256d, b: __m256d) -> __m256d {
        simd! { _mm256_add_pd(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: __m256d, b: __m256d) -> __m256d {
        simd! { _mm256_sub_pd(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m256d, b: __m256d) -> __m256d {
        simd! { _mm256_mul_pd(a, b) }
    }

    #[inline(always)]
    fn mul_add(self, a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        simd! { _mm256_fmadd_pd(a, b, c) }
    }

    #[inline(always)]
    fn mul_sub(self, a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        simd! { _mm256_fmsub_pd(a, b, c) }
    }

    #[inline(always)]
    fn neg_mul_add(self, a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        simd! { _mm256_fnmadd_pd(a, b, c) }
    }

    #[inline(always)]
    fn round(self, a: __m256d) -> __m256d {
        simd! { _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) }
    }

    #[inline(always)]
    fn sub_if_above(self, a: __m256d, limit: __m256d, b: __m256d) -> __m256d {
        simd! {
            let above = _mm256_cmp_pd::<_CMP_GT_OQ>(a, limit);
            _mm256_sub_pd(a, _mm256_and_pd(above, b))
        }
    }

    #[inline(always)]
    fn to_float(self, a: __m256i) -> __m256d {
        simd! {
            let base = _mm256_set1_pd(INTEGER_BASE);
            _mm256_sub_pd(_mm256_or_pd(_mm256_castsi256_pd(a), base), base)
        }
    }

    #[inline(always)]
    fn to_canonical(self, a: __m256d, p: u64) -> __m256i {
        simd! {
            let base = _mm256_set1_pd(INTEGER_BASE);
            let above = _mm256_set1_pd(f64::from_bits(INTEGER_BASE.to_bits() + p));
            let base_or_more = _mm256_blendv_pd(base, above, a);
            _mm256_castpd_si256(_mm256_xor_pd(_mm256_add_pd(a, base_or_more), base))
        }
    }

    #[inline(always)]
    fn permute(self, a: __m256i, indices: &[u32; 4]) -> Option<__m256i> {
        simd! {
            let indices = _mm256_cvtepu32_epi64(_mm_loadu_si128(indices.as_ptr().cast()));
            let first = _mm256_broadcastq_epi64(_mm256_castsi256_si128(indices));
            let differences = _mm256_xor_si256(indices, first);
            if _mm256_testz_si256(differences, _mm256_set1_epi64x(!3)) == 0 {
                return None;
            }
            // AVX2 permutes 32-bit halves: lane i is the halves 2i and 2i + 1.
            let low = _mm256_slli_epi64::<1>(indices);
            let high = _mm256_add_epi64(_mm256_slli_epi64::<32>(low), _mm256_set1_epi64x(1 << 32));
            Some(_mm256_permutevar8x32_epi32(a, _mm256_or_si256(low, high)))
        }
    }

    #[inline(always)]
    fn add_int(self, a: __m256i, b: __m256i) -> __m256i {
        simd! { _mm256_add_epi64(a, b) }
    }

    #[inline(always)]
    fn sub_int(self, a: __m256i, b: __m256i) -> __m256i {
        simd! { _mm256_sub_epi64(a, b) }
    }

    #[inline(always)]
    fn unless_wrapped(self, b: __m256i, a: __m256i) -> __m256i {
        simd! {
            let (a, b) = (_mm256_castsi256_pd(a), _mm256_castsi256_pd(b));
            _mm256_castpd_si256(_mm256_blendv_pd(b, a, b))
        }
    }

    // With a = a0..a3 and b likewise: layer 0 gives a0 a1 b0 b1 and a2 a3 b2 b3, layer 1 gives
    // a0 a2 b0 b2 and a1 a3 b1 b3. Each undoes itself.

    #[inline(always)]
    fn split(self, layer: u32, a: __m256d, b: __m256d) -> (__m256d, __m256d) {
        simd! {
            if layer == 0 {
                (_mm256_permute2f128_pd::<0x20>(a, b), _mm256_permute2f128_pd::<0x31>(a, b))
            } else {
                (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b))
            }
        }
    }

    #[inline(always)]
    fn unsplit(self, layer: u32, a: __m256d, b: __m256d) -> (__m256d, __m256d) {
        self.split(layer, a, b)
    }

    #[inline(always)]
    fn join(self, a: __m256d, b: __m256d) -> (__m256d, __m256d) {
        let (a, b) = self.split(1, a, b);
        self.split(0, a, b)
    }

    #[inline(always)]
    fn unjoin(self, a: __m256d, b: __m256d) -> (__m256d, __m256d) {
        let (a, b) = self.split(0, a, b);
        self.split(1, a, b)
    }
}

/// The AVX2 kernels of one prime and ring degree.
#[derive(Debug)]
pub(super) struct Avx2Kernels {
    field: Fp64Field<Avx2>,
    transform: Fp64Transform<Avx2, 4>,
}

impl Avx2Kernels {
    pub fn new(proof: Avx2, n: usize, modulus: Modulus) -> Result<Self, ArithError> {
        let field = Fp64Field::new(proof, modulus);
        Ok(Self {
            field,
            transform: Fp64Transform::new(field, n, modulus)?,
        })
    }
}

implement_kernels!(
    #[target_feature(enable = "avx2,fma")]
    Avx2Kernels, Fp64Field<Avx2>, Fp64Transform<Avx2, 4>, 4
);

implement_convert!(
    #[target_feature(enable = "avx2,fma")]
    Fp64Field<Avx2>, 4
);
