//! The negacyclic transform with Harvey's lazy butterflies.
//!
//! D. Harvey, "Faster arithmetic for number-theoretic transforms", 2014, algorithms 3 and 4: a
//! value stays in [0, 4p) through the forward butterflies and in [0, 2p) through the inverse ones,
//! and is reduced once at the end.

use super::field::ScalarField;
use crate::arith::error::ArithError;
use crate::arith::modulus::Modulus;
use crate::arith::order::bit_reverse;
use crate::arith::pointwise;
use crate::arith::primes;

/// A root's power with its Shoup constant.
#[derive(Debug, Clone, Copy, Default)]
struct Root {
    value: u64,
    shoup: u64,
}

/// The transform of one prime and length.
#[derive(Debug, Clone)]
pub(crate) struct ScalarTransform {
    modulus: Modulus,
    /// Entry k is psi^bitrev(k).
    roots: Vec<Root>,
    /// Entry k is psi^-bitrev(k).
    inverse_roots: Vec<Root>,
    /// 1 / N.
    inverse_n: Root,
}

/// The powers `base^bitrev(k)` for k below `n`.
pub(crate) fn bit_reversed_powers(modulus: Modulus, base: u64, n: usize) -> Vec<u64> {
    let bits = n.trailing_zeros();
    let base_shoup = modulus.shoup(base);
    let mut powers = vec![0; n];
    let mut power = 1;
    for exponent in 0..n {
        powers[bit_reverse(exponent, bits)] = power;
        power = modulus.mul_shoup(power, base, base_shoup);
    }
    powers
}

impl ScalarTransform {
    pub fn new(n: usize, modulus: Modulus) -> Result<Self, ArithError> {
        let psi = primes::primitive_root(modulus, 2 * n as u64)?;
        let root = |value| Root {
            value,
            shoup: modulus.shoup(value),
        };
        let table = |base| {
            bit_reversed_powers(modulus, base, n)
                .into_iter()
                .map(root)
                .collect()
        };
        Ok(Self {
            modulus,
            roots: table(psi),
            inverse_roots: table(modulus.inverse(psi)?),
            inverse_n: root(modulus.inverse(modulus.reduce(n as u64))?),
        })
    }

    /// Coefficients to values in the order of [`order`](crate::arith::order).
    pub fn forward(&self, a: &mut [u64]) {
        let (modulus, p) = (self.modulus, self.modulus.value());
        let two_p = 2 * p;
        let (mut groups, mut distance) = (1, a.len() / 2);
        while distance > 0 {
            let roots = &self.roots[groups..2 * groups];
            for (group, root) in a.chunks_exact_mut(2 * distance).zip(roots) {
                let (upper, lower) = group.split_at_mut(distance);
                for (u, v) in upper.iter_mut().zip(lower) {
                    let x = (*u).min(u.wrapping_sub(two_p));
                    let y = modulus.mul_shoup_lazy(*v, root.value, root.shoup);
                    *u = x + y;
                    *v = x + two_p - y;
                }
            }
            groups *= 2;
            distance /= 2;
        }
        for value in a {
            let x = (*value).min(value.wrapping_sub(two_p));
            *value = x.min(x.wrapping_sub(p));
        }
    }

    /// a = (NTT(a) - b) w for residues a, b and w.
    pub fn forward_sub_mul(&self, a: &mut [u64], b: &[u64], w: u64) {
        self.forward(a);
        pointwise::sub_mul_scalar_assign(self.field(), a, b, w);
    }

    /// out = (NTT(src) - b) w, where src are residues modulo another prime q, taken in (-q/2, q/2).
    pub fn center_forward_sub_mul(
        &self,
        out: &mut [u64],
        src: &[u64],
        q: Modulus,
        b: &[u64],
        w: u64,
    ) {
        pointwise::reduce(self.field(), out, src, q);
        self.forward_sub_mul(out, b, w);
    }

    fn field(&self) -> ScalarField {
        ScalarField {
            modulus: self.modulus,
        }
    }

    /// Values in the order of [`order`](crate::arith::order) to coefficients.
    pub fn inverse(&self, a: &mut [u64]) {
        let (modulus, p) = (self.modulus, self.modulus.value());
        let two_p = 2 * p;
        let (mut groups, mut distance) = (a.len() / 2, 1);
        while groups > 0 {
            let roots = &self.inverse_roots[groups..2 * groups];
            for (group, root) in a.chunks_exact_mut(2 * distance).zip(roots) {
                let (upper, lower) = group.split_at_mut(distance);
                for (u, v) in upper.iter_mut().zip(lower) {
                    let (x, y) = (*u, *v);
                    let sum = x + y;
                    *u = sum.min(sum.wrapping_sub(two_p));
                    *v = modulus.mul_shoup_lazy(x + two_p - y, root.value, root.shoup);
                }
            }
            groups /= 2;
            distance *= 2;
        }
        for value in a {
            *value = modulus.mul_shoup(*value, self.inverse_n.value, self.inverse_n.shoup);
        }
    }
}
