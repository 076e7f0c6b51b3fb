//! The double-precision kernels with AVX-512 F, DQ and VL: eight lanes.

use std::arch::x86_64::*;

use super::base_conversion::implement_convert;
use super::error::ArithError;
use super::fp64::{Fp64Field, Fp64Transform, Lanes};
use super::kernels::implement_kernels;
use super::modulus::Modulus;
use super::tier::Tier;

/// Proof that the CPU has AVX-512 F, DQ and VL.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    /// The proof, on a CPU that has the instructions.
    pub fn new() -> Option<Self> {
        Tier::Avx512.is_available().then_some(Self(()))
    }
}

/// One unsafe block around the intrinsics of a method.
macro_rules! simd {
    ($($body:tt)*) => {
        // SAFETY: `self` exists only on a CPU that has AVX-512 F, DQ and VL, and every pointer
        // comes from a reference to eight values.
        unsafe { $($body)* }
    };
}

impl Lanes<8> for Avx512 {
    type Float = __m512d;
    type Int = __m512i;

    #[inline(always)]
    fn load(self, values: &[u64; 8]) -> __m512i {
        simd! { _mm512_loadu_si512(values.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, values: __m512i, out: &mut [u64; 8]) {
        simd! { _mm512_storeu_si512(out.as_mut_ptr().cast(), values) }
    }

    #[inline(always)]
    fn load_float(self, values: &[f64; 8]) -> __m512d {
        simd! { _mm512_loadu_pd(values.as_ptr()) }
    }

    #[inline(always)]
    fn store_float(self, values: __m512d, out: &mut [u64; 8]) {
        simd! { _mm512_storeu_pd(out.as_mut_ptr().cast(), values) }
    }

    #[inline(always)]
    fn as_float(self, bits: __m512i) -> __m512d {
        simd! { _mm512_castsi512_pd(bits) }
    }

    #[inline(always)]
    fn splat(self, value: f64) -> __m512d {
        simd! { _mm512_set1_pd(value) }
    }

    #[inline(always)]
    fn splat_int(self, value: u64) -> __m512i {
        simd! { _mm512_set1_epi64(value as i64) }
    }

    #[inline(always)]
    fn add(self, a: __m512d, b: __m512d) -> __m512d {
        simd! { _mm512_add_pd(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: __m512d, b: __m512d) -> __m512d {
        simd! { _mm512_sub_pd(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m512d, b: __m512d) -> __m512d {
        simd! { _mm512_mul_pd(a, b) }
    }

    #[inline(always)]
    fn mul_add(self, a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        simd! { _mm512_fmadd_pd(a, b, c) }
    }

    #[inline(always)]
    fn mul_sub(self, a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        simd! { _mm512_fmsub_pd(a, b, c) }
    }

    #[inline(always)]
    fn neg_mul_add(self, a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        simd! { _mm512_fnmadd_pd(a, b, c) }
    }

    #[inline(always)]
    fn round(self, a: __m512d) -> __m512d {
        simd! { _mm512_roundscale_pd::<_MM_FROUND_TO_NEAREST_INT>(a) }
    }

    #[inline(always)]
    fn sub_if_above(self, a: __m512d, limit: __m512d, b: __m512d) -> __m512d {
        simd! { _mm512_mask_sub_pd(a, _mm512_cmp_pd_mask::<_CMP_GT_OQ>(a, limit), a, b) }
    }

    #[inline(always)]
    fn to_float(self, a: __m512i) -> __m512d {
        simd! { _mm512_cvtepi64_pd(a) }
    }

    #[inline(always)]
    fn to_canonical(self, a: __m512d, p: u64) -> __m512i {
        simd! {
            let a = _mm512_cvtpd_epi64(a);
            _mm512_min_epu64(a, _mm512_add_epi64(a, _mm512_set1_epi64(p as i64)))
        }
    }

    #[inline(always)]
    fn permute(self, a: __m512i, indices: &[u32; 8]) -> Option<__m512i> {
        simd! {
            let indices = _mm512_cvtepu32_epi64(_mm256_loadu_si256(indices.as_ptr().cast()));
            let first = _mm512_broadcastq_epi64(_mm512_castsi512_si128(indices));
            let differences = _mm512_xor_si512(indices, first);
            let apart = _mm512_test_epi64_mask(differences, _mm512_set1_epi64(!7));
            (apart == 0).then(|| _mm512_permutexvar_epi64(indices, a))
        }
    }

    #[inline(always)]
    fn add_int(self, a: __m512i, b: __m512i) -> __m512i {
        simd! { _mm512_add_epi64(a, b) }
    }

    #[inline(always)]
    fn sub_int(self, a: __m512i, b: __m512i) -> __m512i {
        simd! { _mm512_sub_epi64(a, b) }
    }

    #[inline(always)]
    fn unless_wrapped(self, b: __m512i, a: __m512i) -> __m512i {
        simd! { _mm512_min_epu64(a, b) }
    }

    // With a = a0..a7 and b likewise: layer 0 gives a0..a3 b0..b3 and a4..a7 b4..b7, layer 1
    // a0 a1 b0 b1 a4 a5 b4 b5 and a2 a3 b2 b3 a6 a7 b6 b7, layer 2 a0 a2 b0 b2 a4 a6 b4 b6 and
    // a1 a3 b1 b3 a5 a7 b5 b7. Layers 0 and 2 undo themselves.

    #[inline(always)]
    fn split(self, layer: u32, a: __m512d, b: __m512d) -> (__m512d, __m512d) {
        simd! {
            match layer {
                0 => (_mm512_shuffle_f64x2::<0x44>(a, b), _mm512_shuffle_f64x2::<0xee>(a, b)),
                1 => (_mm512_shuffle_f64x2::<0x88>(a, b), _mm512_shuffle_f64x2::<0xdd>(a, b)),
                _ => (_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b)),
            }
        }
    }

    #[inline(always)]
    fn unsplit(self, layer: u32, a: __m512d, b: __m512d) -> (__m512d, __m512d) {
        if layer == 1 {
            self.interleave(a, b)
        } else {
            self.split(layer, a, b)
        }
    }

    #[inline(always)]
    fn join(self, a: __m512d, b: __m512d) -> (__m512d, __m512d) {
        let (a, b) = self.split(2, a, b);
        let (a, b) = self.interleave(a, b);
        self.split(0, a, b)
    }

    #[inline(always)]
    fn unjoin(self, a: __m512d, b: __m512d) -> (__m512d, __m512d) {
        let (a, b) = self.split(0, a, b);
        let (a, b) = self.split(1, a, b);
        self.split(2, a, b)
    }
}

impl Avx512 {
    /// The pairs of lanes of `a` and `b` in turn: a0 a1 b0 b1 a2 a3 b2 b3 and the rest alike.
    #[inline(always)]
    fn interleave(self, a: __m512d, b: __m512d) -> (__m512d, __m512d) {
        simd! {
            let low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
            let high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
            (_mm512_permutex2var_pd(a, low, b), _mm512_permutex2var_pd(a, high, b))
        }
    }
}

/// The AVX-512 kernels of one prime and ring degree.
#[derive(Debug)]
pub(super) struct Avx512Kernels {
    field: Fp64Field<Avx512>,
    transform: Fp64Transform<Avx512, 8>,
}

impl Avx512Kernels {
    pub fn new(proof: Avx512, n: usize, modulus: Modulus) -> Result<Self, ArithError> {
        let field = Fp64Field::new(proof, modulus);
        Ok(Self {
            field,
            transform: Fp64Transform::new(field, n, modulus)?,
        })
    }
}

implement_kernels!(
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
    Avx512Kernels, Fp64Field<Avx512>, Fp64Transform<Avx512, 8>, 8
);

implement_convert!(
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
    Fp64Field<Avx512>, 8
);
