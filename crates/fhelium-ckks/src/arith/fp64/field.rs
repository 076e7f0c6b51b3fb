//! `W` residues at a time in double precision.

use super::Lanes;
use crate::arith::field::{Field, ROUND};
use crate::arith::modulus::Modulus;

/// Where a sum of products starts: 8 products below 2^99 stay in the same binade, so that every
/// partial sum has the same unit in the last place, 2^50.
const SUM_BASE: f64 = 5_070_602_400_912_917_605_986_812_821_504.0;

/// A double-precision core's view of one prime below 2^49.5.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fp64Field<L> {
    pub lanes: L,
    pub p: f64,
    /// p as an integer.
    pub p_int: u64,
    /// 1 / p, rounded.
    pub reciprocal: f64,
}

/// A factor w and w / p.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Factor<V> {
    pub w: V,
    pub quotient: V,
}

impl<L> Fp64Field<L> {
    pub fn new(lanes: L, modulus: Modulus) -> Self {
        let p = modulus.value() as f64;
        Self {
            lanes,
            p,
            p_int: modulus.value(),
            reciprocal: 1.0 / p,
        }
    }

    /// The factor w as a double in (-p/2, p/2).
    pub fn balanced(self, w: u64) -> f64 {
        let w = w as f64;
        if w > self.p / 2.0 { w - self.p } else { w }
    }

    /// A factor and its quotient, in every lane.
    #[inline(always)]
    pub fn factor<const W: usize>(self, w: f64) -> Factor<L::Float>
    where
        L: Lanes<W>,
    {
        let w = self.lanes.splat(w);
        Factor {
            w,
            quotient: self.lanes.mul(w, self.lanes.splat(self.reciprocal)),
        }
    }

    /// The nearest integer to a b, for |a b| <= 2^51.
    #[inline(always)]
    fn rounded_product<const W: usize>(self, a: L::Float, b: L::Float) -> L::Float
    where
        L: Lanes<W>,
    {
        let round = self.lanes.splat(ROUND);
        self.lanes.sub(self.lanes.mul_add(a, b, round), round)
    }

    /// a w modulo p for a balanced factor and an integer |a| <= B p, B <= 5.6: below
    /// (0.5 + 0.089 B) p in magnitude.
    ///
    /// The quotient is off by the error of w / p, which is at most 2 units of 2^-53 in 1/2, times
    /// B p: by 2^-53 B p < 0.089 B.
    #[inline(always)]
    pub fn mul_factor<const W: usize>(self, a: L::Float, w: Factor<L::Float>) -> L::Float
    where
        L: Lanes<W>,
    {
        let l = self.lanes;
        let quotient = self.rounded_product(a, w.quotient);
        let high = l.mul(a, w.w);
        let low = l.mul_sub(a, w.w, high);
        l.add(l.neg_mul_add(quotient, l.splat(self.p), high), low)
    }

    /// The balanced residue of an integer |a| <= 2^53: at most p/2, and a rounding error of the
    /// quotient beyond it, in magnitude.
    #[inline(always)]
    pub fn reduce<const W: usize>(self, a: L::Float) -> L::Float
    where
        L: Lanes<W>,
    {
        let quotient = self.rounded_product(a, self.lanes.splat(self.reciprocal));
        self.lanes
            .neg_mul_add(quotient, self.lanes.splat(self.p), a)
    }

    /// a b modulo p for two doubles in [0, p): below 0.68 p in magnitude.
    #[inline(always)]
    fn mul_balanced<const W: usize>(self, a: L::Float, b: L::Float) -> L::Float
    where
        L: Lanes<W>,
    {
        let l = self.lanes;
        let high = l.mul(a, b);
        let low = l.mul_sub(a, b, high);
        let quotient = self.rounded_product(high, l.splat(self.reciprocal));
        l.add(l.neg_mul_add(quotient, l.splat(self.p), high), low)
    }

    /// An integer-valued double in (-p, p) as a canonical residue.
    #[inline(always)]
    pub fn canonical<const W: usize>(self, a: L::Float) -> L::Int
    where
        L: Lanes<W>,
    {
        self.lanes.to_canonical(a, self.p_int)
    }

    #[inline(always)]
    fn splat_p<const W: usize>(self) -> L::Int
    where
        L: Lanes<W>,
    {
        self.lanes.splat_int(self.p_int)
    }
}

/// An unreduced sum of products: `high - SUM_BASE + low`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fp64Sum<V> {
    high: V,
    low: V,
}

impl<L: Lanes<W>, const W: usize> Field<W> for Fp64Field<L> {
    type Vector = L::Int;
    type Constant = Factor<L::Float>;
    type Term = L::Float;
    type Sum = Fp64Sum<L::Float>;
    type Real = L::Float;
    type Other = [L::Float; 2];

    const SUM_TERMS: usize = 8;

    #[inline(always)]
    fn load(self, residues: &[u64; W]) -> L::Int {
        self.lanes.load(residues)
    }

    #[inline(always)]
    fn store(self, a: L::Int, residues: &mut [u64; W]) {
        self.lanes.store(a, residues);
    }

    #[inline(always)]
    fn constant(self, w: u64) -> Factor<L::Float> {
        self.factor(self.balanced(w))
    }

    #[inline(always)]
    fn splat(self, w: u64) -> L::Int {
        self.lanes.splat_int(w)
    }

    #[inline(always)]
    fn add(self, a: L::Int, b: L::Int) -> L::Int {
        let sum = self.lanes.add_int(a, b);
        self.lanes
            .unless_wrapped(self.lanes.sub_int(sum, self.splat_p()), sum)
    }

    #[inline(always)]
    fn sub(self, a: L::Int, b: L::Int) -> L::Int {
        let difference = self.lanes.sub_int(a, b);
        self.lanes
            .unless_wrapped(difference, self.lanes.add_int(difference, self.splat_p()))
    }

    #[inline(always)]
    fn mul(self, a: L::Int, b: L::Int) -> L::Int {
        self.canonical(self.mul_balanced(self.lanes.to_float(a), self.lanes.to_float(b)))
    }

    #[inline(always)]
    fn mul_constant(self, a: L::Int, w: Factor<L::Float>) -> L::Int {
        self.canonical(self.mul_factor(self.lanes.to_float(a), w))
    }

    #[inline(always)]
    fn term(self, a: L::Int) -> L::Float {
        self.lanes.to_float(a)
    }

    #[inline(always)]
    fn sum(self, first: L::Int) -> Fp64Sum<L::Float> {
        Fp64Sum {
            high: self.lanes.splat(SUM_BASE),
            low: self.lanes.to_float(first),
        }
    }

    /// The rounded sum's rest, at most 2^49 in magnitude, is exact: after 8 products and a first
    /// residue the low part is below 2^52 + 2^50.
    #[inline(always)]
    fn accumulate(self, sum: Fp64Sum<L::Float>, a: L::Float, b: L::Float) -> Fp64Sum<L::Float> {
        let l = self.lanes;
        let high = l.mul_add(a, b, sum.high);
        let rest = l.mul_add(a, b, l.sub(sum.high, high));
        Fp64Sum {
            high,
            low: l.add(sum.low, rest),
        }
    }

    #[inline(always)]
    fn fold(self, sum: Fp64Sum<L::Float>) -> Fp64Sum<L::Float> {
        Fp64Sum {
            high: self.lanes.splat(SUM_BASE),
            low: self.reduce_sum(sum),
        }
    }

    #[inline(always)]
    fn finish(self, sum: Fp64Sum<L::Float>) -> L::Int {
        self.canonical(self.reduce_sum(sum))
    }

    #[inline(always)]
    fn term_bits(self, w: u64) -> u64 {
        (w as f64).to_bits()
    }

    #[inline(always)]
    fn splat_term(self, bits: u64) -> L::Float {
        self.lanes.splat(f64::from_bits(bits))
    }

    #[inline(always)]
    fn load_term(self, bits: &[u64; W]) -> L::Float {
        self.lanes.as_float(self.lanes.load(bits))
    }

    #[inline(always)]
    fn store_term(self, a: L::Float, bits: &mut [u64; W]) {
        self.lanes.store_float(a, bits);
    }

    #[inline(always)]
    fn zero_real(self) -> L::Float {
        self.lanes.splat(0.0)
    }

    #[inline(always)]
    fn load_real(self, bits: &[u64; W]) -> L::Float {
        self.lanes.as_float(self.lanes.load(bits))
    }

    #[inline(always)]
    fn store_real(self, a: L::Float, bits: &mut [u64; W]) {
        self.lanes.store_float(a, bits);
    }

    #[inline(always)]
    fn add_quotient(self, sum: L::Float, a: L::Float, factor: f64) -> L::Float {
        self.lanes
            .add(sum, self.lanes.mul(a, self.lanes.splat(factor)))
    }

    #[inline(always)]
    fn round_to_term(self, a: L::Float) -> L::Float {
        let round = self.lanes.splat(ROUND);
        self.lanes.sub(self.lanes.add(a, round), round)
    }

    /// The quotient is below 2^62 / 2^9 for a prime that suits degree 256, and off by less than
    /// 0.6.
    #[inline(always)]
    fn round(self, a: &[f64; W], factor: f64) -> L::Int {
        let l = self.lanes;
        // Adding zero turns -0 to 0.
        let integer = l.add(
            l.round(l.mul(l.load_float(a), l.splat(factor))),
            l.splat(0.0),
        );
        self.canonical(self.reduce(integer))
    }

    #[inline(always)]
    fn gather(self, src: &[u64], indices: &[u32; W]) -> Option<L::Int> {
        let group = src.as_chunks::<W>().0.get(indices[0] as usize / W)?;
        self.lanes.permute(self.lanes.load(group), indices)
    }

    #[inline(always)]
    fn other(self, q: Modulus) -> [L::Float; 2] {
        let q = q.value() as f64;
        [self.lanes.splat(q / 2.0), self.lanes.splat(q)]
    }

    #[inline(always)]
    fn center(self, a: L::Int, [half, q]: [L::Float; 2]) -> L::Int {
        let centered = self.lanes.sub_if_above(self.lanes.to_float(a), half, q);
        self.canonical(self.reduce(centered))
    }
}

impl<L> Fp64Field<L> {
    /// The balanced residue of a sum.
    ///
    /// The high part is below 2^102, so its quotient is below 2^52.5 and off by less than 2: the
    /// remainder, below 2 p < 2^51, is exact, and so is its sum with the low part.
    #[inline(always)]
    fn reduce_sum<const W: usize>(self, sum: Fp64Sum<L::Float>) -> L::Float
    where
        L: Lanes<W>,
    {
        let l = self.lanes;
        let high = l.sub(sum.high, l.splat(SUM_BASE));
        let quotient = l.round(l.mul(high, l.splat(self.reciprocal)));
        let remainder = l.neg_mul_add(quotient, l.splat(self.p), high);
        self.reduce(l.add(remainder, sum.low))
    }
}
