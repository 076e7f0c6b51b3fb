//! The conversion's arithmetic, written once for every core.

use std::fmt;

use crate::arith::error::ArithError;
use crate::arith::field::{Field, load, store};
use crate::arith::modulus::Modulus;
use crate::arith::scalar::ScalarField;

/// A conversion that runs on one core.
pub(crate) trait Convert: fmt::Debug + Send + Sync {
    /// Fills the target limbs that this conversion serves. Numbers of limbs and lengths fit.
    fn convert(&self, from: &[&[u64]], to: &mut [&mut [u64]]);
}

/// From all source primes to some of the target primes.
#[derive(Debug)]
pub(crate) struct Conversion<F> {
    sources: Vec<Source<F>>,
    targets: Vec<Target<F>>,
}

#[derive(Debug)]
struct Source<F> {
    field: F,
    /// (Q / q_i)^-1 modulo q_i.
    inverse: u64,
    /// 1 / q_i.
    reciprocal: f64,
}

#[derive(Debug)]
struct Target<F> {
    field: F,
    /// The limb's place among all target limbs.
    limb: usize,
    /// -Q modulo p_j.
    minus_q: u64,
    /// Q / q_i modulo p_j for each source prime, as a term of the field.
    factors: Vec<u64>,
}

/// How many terms of all source primes one step holds: 16 KiB, half a level-1 cache.
const SCRATCH: usize = 2048;

/// How many vectors of a target limb one step keeps in registers.
const VECTORS: usize = 4;

impl<F> Conversion<F> {
    /// `to` holds places among all target limbs and their primes.
    pub fn new<const W: usize>(
        from: &[Modulus],
        to: &[(usize, Modulus)],
        field: impl Fn(Modulus) -> F,
    ) -> Result<Self, ArithError>
    where
        F: Field<W>,
    {
        let product_except = |skip: Option<usize>, p: Modulus| {
            let others = from.iter().enumerate().filter(|&(i, _)| Some(i) != skip);
            others.fold(1, |product, (_, q)| p.mul(product, p.reduce(q.value())))
        };
        let source = |(i, &q): (usize, &Modulus)| {
            let inverse = q.inverse(product_except(Some(i), q));
            Ok(Source {
                field: field(q),
                inverse: inverse.map_err(|_| ArithError::RepeatedPrime { value: q.value() })?,
                reciprocal: 1.0 / q.value() as f64,
            })
        };
        let target = |&(limb, p): &(usize, Modulus)| {
            let field = field(p);
            let factor = |i| field.term_bits(product_except(Some(i), p));
            Target {
                field,
                limb,
                minus_q: field.term_bits(p.neg(product_except(None, p))),
                factors: (0..from.len()).map(factor).collect(),
            }
        };
        Ok(Self {
            sources: from
                .iter()
                .enumerate()
                .map(source)
                .collect::<Result<_, _>>()?,
            targets: to.iter().map(target).collect(),
        })
    }

    #[inline(always)]
    pub fn run<const W: usize>(&self, from: &[&[u64]], to: &mut [&mut [u64]])
    where
        F: Field<W>,
    {
        let sources = self.sources.len();
        // A row of scratch for each source prime, and one for the quotients v.
        let row = (SCRATCH / W / (sources + 1))
            .next_multiple_of(VECTORS)
            .max(VECTORS);
        let mut scratch = vec![[0; W]; (sources + 1) * row];
        let vectors = from[0].len().div_ceil(W);
        let mut inverses = Vec::with_capacity(sources);
        for source in &self.sources {
            inverses.push(source.field.constant(source.inverse));
        }
        for start in (0..vectors).step_by(row) {
            let count = row.min(vectors - start);
            self.scale(from, &inverses, start, count, row, &mut scratch);
            for target in &self.targets {
                let out = &mut to[target.limb][start * W..];
                let mut vector = 0;
                while vector + VECTORS <= count {
                    target.combine::<W, VECTORS>(&scratch, row, vector, out);
                    vector += VECTORS;
                }
                while vector < count {
                    target.combine::<W, 1>(&scratch, row, vector, out);
                    vector += 1;
                }
            }
        }
    }

    /// y_i for each source prime, and v in the last row.
    #[inline(always)]
    fn scale<const W: usize>(
        &self,
        from: &[&[u64]],
        inverses: &[F::Constant],
        start: usize,
        count: usize,
        row: usize,
        scratch: &mut [[u64; W]],
    ) where
        F: Field<W>,
    {
        for vector in 0..count {
            let mut quotient = self.sources[0].field.zero_real();
            let sources = self.sources.iter().zip(inverses).zip(from);
            for (i, ((source, &inverse), limb)) in sources.enumerate() {
                let f = source.field;
                let y = f.term(f.mul_constant(load(f, limb, start + vector), inverse));
                f.store_term(y, &mut scratch[i * row + vector]);
                quotient = f.add_quotient(quotient, y, source.reciprocal);
            }
            let f = self.sources[0].field;
            let last = self.sources.len() * row;
            f.store_term(f.round_to_term(quotient), &mut scratch[last + vector]);
        }
    }
}

impl<F> Target<F> {
    /// sum y_i (Q / q_i) - v Q for `COUNT` vectors.
    #[inline(always)]
    fn combine<const W: usize, const COUNT: usize>(
        &self,
        scratch: &[[u64; W]],
        row: usize,
        vector: usize,
        out: &mut [u64],
    ) where
        F: Field<W>,
    {
        let f = self.field;
        let mut sums = [f.sum(f.splat(0)); COUNT];
        let factors = self.factors.iter().chain([&self.minus_q]);
        for ((index, &factor), terms) in factors.enumerate().zip(scratch.chunks_exact(row)) {
            if index != 0 && index % F::SUM_TERMS == 0 {
                for sum in &mut sums {
                    *sum = f.fold(*sum);
                }
            }
            let factor = f.splat_term(factor);
            for (sum, term) in sums.iter_mut().zip(&terms[vector..vector + COUNT]) {
                *sum = f.accumulate(*sum, f.load_term(term), factor);
            }
        }
        for (index, sum) in sums.into_iter().enumerate() {
            store(f, f.finish(sum), out, vector + index);
        }
    }
}

/// Implements [`Convert`] for one field, compiled under the given attributes.
///
/// # Safety
/// As for `implement_kernels`: a value of the field may exist only on a CPU that has the features
/// which the attributes name.
macro_rules! implement_convert {
    ($(#[$features:meta])* $field:ty, $width:literal) => {
        impl $crate::arith::base_conversion::Convert
            for $crate::arith::base_conversion::Conversion<$field>
        {
            fn convert(&self, from: &[&[u64]], to: &mut [&mut [u64]]) {
                $(#[$features])*
                unsafe fn run(
                    conversion: &$crate::arith::base_conversion::Conversion<$field>,
                    from: &[&[u64]],
                    to: &mut [&mut [u64]],
                ) {
                    conversion.run::<$width>(from, to);
                }
                // SAFETY: a field of this type exists only where the CPU has the features.
                unsafe { run(self, from, to) }
            }
        }
    };
}
pub(crate) use implement_convert;

implement_convert!(ScalarField, 1);
