//! The conversion's arithmetic, written once for every core.

use std::fmt;
use std::ops::Range;

use crate::arith::error::ArithError;
use crate::arith::field::{Field, load, store};
use crate::arith::modulus::Modulus;
use crate::arith::pointwise;
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
    modulus: Modulus,
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
    /// Q / q_i modulo p_j for each source prime and -Q modulo p_j, as terms of the field.
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
                modulus: q,
                inverse: inverse.map_err(|_| ArithError::RepeatedPrime { value: q.value() })?,
                reciprocal: 1.0 / q.value() as f64,
            })
        };
        let target = |&(limb, p): &(usize, Modulus)| {
            let field = field(p);
            let factors = (0..from.len()).map(|i| product_except(Some(i), p));
            let factors = factors.chain([p.neg(product_except(None, p))]);
            Target {
                field,
                limb,
                factors: factors.map(|w| field.term_bits(w)).collect(),
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
        if let [source] = &self.sources[..] {
            for target in &self.targets {
                pointwise::reduce(target.field, to[target.limb], from[0], source.modulus);
            }
            return;
        }
        let sources = self.sources.len();
        // A row of scratch for each source prime, and one for the quotients v.
        let row = (SCRATCH / W / (sources + 1))
            .next_multiple_of(VECTORS)
            .max(VECTORS);
        let mut scratch = vec![[0; W]; (sources + 1) * row];
        let mut inverses = Vec::with_capacity(sources);
        for source in &self.sources {
            inverses.push(source.field.constant(source.inverse));
        }
        let len = from[0].len();
        let whole = len / W;
        for start in (0..whole).step_by(row) {
            let count = row.min(whole - start);
            self.scale::<W, false>(from, &inverses, start..start + count, row, &mut scratch);
            for target in &self.targets {
                let out = &mut *to[target.limb];
                let blocked = count / VECTORS * VECTORS;
                for vector in (0..blocked).step_by(VECTORS) {
                    let place = Place {
                        limb: start + vector,
                        scratch: vector,
                        row,
                    };
                    target.combine::<W, VECTORS, false>(&scratch, place, out);
                }
                for vector in blocked..count {
                    let place = Place {
                        limb: start + vector,
                        scratch: vector,
                        row,
                    };
                    target.combine::<W, 1, false>(&scratch, place, out);
                }
            }
        }
        if !len.is_multiple_of(W) {
            let place = Place {
                limb: 0,
                scratch: 0,
                row,
            };
            self.scale::<W, true>(from, &inverses, 0..1, row, &mut scratch);
            for target in &self.targets {
                target.combine::<W, 1, true>(&scratch, place, to[target.limb]);
            }
        }
    }

    /// A row of y_i for each source prime, and of v in the last row.
    #[inline(always)]
    fn scale<const W: usize, const REST: bool>(
        &self,
        from: &[&[u64]],
        inverses: &[F::Constant],
        vectors: Range<usize>,
        row: usize,
        scratch: &mut [[u64; W]],
    ) where
        F: Field<W>,
    {
        let (rows, quotients) = scratch.split_at_mut(self.sources.len() * row);
        let quotients = &mut quotients[..vectors.len()];
        let f = self.sources[0].field;
        for quotient in quotients.iter_mut() {
            f.store_real(f.zero_real(), quotient);
        }
        let sources = self.sources.iter().zip(inverses).zip(from);
        for (((source, &inverse), limb), row) in sources.zip(rows.chunks_exact_mut(row)) {
            let f = source.field;
            for ((vector, quotient), term) in vectors.clone().zip(quotients.iter_mut()).zip(row) {
                let x = load::<F, W, REST>(f, limb, vector);
                let y = f.term(f.mul_constant(x, inverse));
                f.store_term(y, term);
                let sum = f.add_quotient(f.load_real(quotient), y, source.reciprocal);
                f.store_real(sum, quotient);
            }
        }
        for quotient in quotients {
            let sum = f.load_real(quotient);
            f.store_term(f.round_to_term(sum), quotient);
        }
    }
}

/// Where a step works: the numbers of its first vector in the limbs and in each row of scratch, and
/// the vectors in a row.
#[derive(Debug, Clone, Copy)]
struct Place {
    limb: usize,
    scratch: usize,
    row: usize,
}

impl<F> Target<F> {
    /// sum y_i (Q / q_i) - v Q for `COUNT` vectors.
    #[inline(always)]
    fn combine<const W: usize, const COUNT: usize, const REST: bool>(
        &self,
        scratch: &[[u64; W]],
        place: Place,
        out: &mut [u64],
    ) where
        F: Field<W>,
    {
        let f = self.field;
        let mut sums = [f.sum(f.splat(0)); COUNT];
        let mut room = F::SUM_TERMS;
        for (&factor, terms) in self.factors.iter().zip(scratch.chunks_exact(place.row)) {
            if room == 0 {
                room = F::SUM_TERMS;
                for sum in &mut sums {
                    *sum = f.fold(*sum);
                }
            }
            room -= 1;
            let factor = f.splat_term(factor);
            let terms = &terms[place.scratch..place.scratch + COUNT];
            for (sum, term) in sums.iter_mut().zip(terms) {
                *sum = f.accumulate(*sum, f.load_term(term), factor);
            }
        }
        for (index, sum) in sums.into_iter().enumerate() {
            store::<F, W, REST>(f, f.finish(sum), out, place.limb + index);
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
#[cfg(target_arch = "x86_64")]
pub(crate) use implement_convert;

implement_convert!(ScalarField, 1);
