//! Exact residue arithmetic in a tiny ring, without rounding but where the scheme divides.
//!
//! Polynomials are kept as coefficients; the NTT domain is a label here, since transforms change
//! nothing but the representation. Keys carry no noise, so key switching is exact but for its
//! division by the special primes.

use fhelium_ir::state::Chain;
use fhelium_ir::{Basis, KeyKind};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::ToPrimitive;

/// Coefficients by one prime.
pub type Limb = Vec<u64>;
/// One limb for each prime of a basis.
pub type Poly = Vec<Limb>;

/// The primes of a basis.
pub fn primes(chain: &Chain, basis: Basis) -> Vec<u64> {
    let q = chain.moduli();
    match basis {
        Basis::Q { level } => q[..=level].to_vec(),
        Basis::QP { level } => [&q[..=level], chain.special_moduli()].concat(),
        Basis::Digit { start, end, .. } => q[start..end].to_vec(),
    }
}

/// The product of primes.
pub fn modulus(primes: &[u64]) -> BigInt {
    primes.iter().map(|&p| BigInt::from(p)).product()
}

fn mul_mod(x: u64, y: u64, p: u64) -> u64 {
    (u128::from(x) * u128::from(y) % u128::from(p)) as u64
}

/// `x (op) y`, limb by limb.
pub fn zip(x: &Poly, y: &Poly, primes: &[u64], op: impl Fn(u64, u64, u64) -> u64) -> Poly {
    let limbs = x.iter().zip(y).zip(primes);
    limbs
        .map(|((x, y), &p)| x.iter().zip(y).map(|(&x, &y)| op(x, y, p)).collect())
        .collect()
}

pub fn add(x: &Poly, y: &Poly, primes: &[u64]) -> Poly {
    zip(x, y, primes, |x, y, p| {
        ((u128::from(x) + u128::from(y)) % u128::from(p)) as u64
    })
}

pub fn sub(x: &Poly, y: &Poly, primes: &[u64]) -> Poly {
    zip(x, y, primes, |x, y, p| {
        ((u128::from(x) + u128::from(p - y)) % u128::from(p)) as u64
    })
}

/// The product modulo X^N + 1.
pub fn mul(x: &Poly, y: &Poly, primes: &[u64]) -> Poly {
    let limbs = x.iter().zip(y).zip(primes);
    limbs
        .map(|((x, y), &p)| {
            let n = x.len();
            let mut product = vec![0u64; n];
            for (i, &a) in x.iter().enumerate() {
                for (j, &b) in y.iter().enumerate() {
                    let term = mul_mod(a, b, p);
                    let term = if i + j < n { term } else { (p - term) % p };
                    let sum = u128::from(product[(i + j) % n]) + u128::from(term);
                    product[(i + j) % n] = (sum % u128::from(p)) as u64;
                }
            }
            product
        })
        .collect()
}

/// Integer coefficients by primes.
pub fn reduce(coefficients: &[BigInt], primes: &[u64]) -> Poly {
    let limb = |&p: &u64| {
        let p = BigInt::from(p);
        let residue = |c: &BigInt| c.mod_floor(&p).to_u64().unwrap();
        coefficients.iter().map(residue).collect()
    };
    primes.iter().map(limb).collect()
}

/// The integer coefficients between -Q/2 and Q/2 that have these residues.
pub fn lift(poly: &Poly, primes: &[u64]) -> Vec<BigInt> {
    let q = modulus(primes);
    let garner: Vec<BigInt> = primes
        .iter()
        .map(|&p| {
            let (p, rest) = (BigInt::from(p), &q / p);
            &rest * rest.modpow(&(&p - 2), &p)
        })
        .collect();
    (0..poly[0].len())
        .map(|place| {
            let terms = poly.iter().zip(&garner).map(|(limb, g)| g * limb[place]);
            center(&terms.sum(), &q)
        })
        .collect()
}

/// The representative between -q/2 and q/2.
pub fn center(x: &BigInt, q: &BigInt) -> BigInt {
    let x = x.mod_floor(q);
    if &x * 2 > *q { x - q } else { x }
}

/// X to X^g.
pub fn automorphism<T: Clone>(x: &[T], g: usize, negate: impl Fn(&T) -> T) -> Vec<T> {
    let n = x.len();
    let mut out = x.to_vec();
    for (i, value) in x.iter().enumerate() {
        let to = i * g % (2 * n);
        out[to % n] = if to < n { value.clone() } else { negate(value) };
    }
    out
}

pub fn automorphism_of(x: &Poly, g: usize, primes: &[u64]) -> Poly {
    let limbs = x.iter().zip(primes);
    limbs
        .map(|(limb, &p)| automorphism(limb, g, |&v| (p - v) % p))
        .collect()
}

/// Residues of x / d, rounded, where d is the product of `dropped`, the last primes.
pub fn divide(x: &Poly, kept: &[u64], dropped: &[u64]) -> Poly {
    let all = [kept, dropped].concat();
    let d = modulus(dropped);
    let rest = lift(&x[kept.len()..].to_vec(), dropped);
    let difference = sub(x, &reduce(&rest, &all), &all);
    kept.iter()
        .zip(difference)
        .map(|(&p, limb)| {
            let inverse = d
                .modpow(&BigInt::from(p - 2), &BigInt::from(p))
                .to_u64()
                .unwrap();
            limb.iter().map(|&v| mul_mod(v, inverse, p)).collect()
        })
        .collect()
}

/// A secret and keys made for it on demand.
pub struct Secret {
    coefficients: Vec<BigInt>,
}

/// Numbers that look random.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn poly(&mut self, n: usize, primes: &[u64]) -> Poly {
        let limb = |&p: &u64| (0..n).map(|_| self.next() % p).collect();
        primes.iter().map(limb).collect()
    }
}

impl Secret {
    pub fn new(n: usize, random: &mut Random) -> Self {
        let ternary = (0..n).map(|_| BigInt::from(random.next() % 3) - 1);
        Secret {
            coefficients: ternary.collect(),
        }
    }

    pub fn by(&self, primes: &[u64]) -> Poly {
        reduce(&self.coefficients, primes)
    }

    /// The pair for each digit: b = P g s_in - a s_out, where g is 1 by the digit's primes and 0
    /// by the others.
    pub fn key(&self, chain: &Chain, kind: KeyKind, random: &mut Random) -> Vec<[Poly; 2]> {
        let all = primes(
            chain,
            Basis::QP {
                level: chain.depth(),
            },
        );
        let s = self.by(&all);
        let order = 2 * chain.n();
        // The inverse of the automorphism that follows the switch.
        let inverse = |g: usize| (1..order).find(|h| g * h % order == 1).unwrap();
        let (from, to) = match kind {
            KeyKind::Relinearization => (mul(&s, &s, &all), s),
            KeyKind::Conjugation => (s.clone(), automorphism_of(&s, order - 1, &all)),
            KeyKind::Rotation { step } => {
                let g = galois(step, chain);
                (s.clone(), automorphism_of(&s, inverse(g), &all))
            }
        };
        let p = modulus(chain.special_moduli());
        let size = chain.digit_size().unwrap();
        (0..=chain.depth() / size)
            .map(|digit| {
                let a = random.poly(chain.n(), &all);
                let gadget: Poly = all
                    .iter()
                    .enumerate()
                    .map(|(place, &q)| {
                        let inside = place <= chain.depth() && place / size == digit;
                        let factor = (&p * u64::from(inside))
                            .mod_floor(&q.into())
                            .to_u64()
                            .unwrap();
                        from[place].iter().map(|&v| mul_mod(v, factor, q)).collect()
                    })
                    .collect();
                [sub(&gadget, &mul(&a, &to, &all), &all), a]
            })
            .collect()
    }
}

/// The exponent that moves slot i + step to slot i.
pub fn galois(step: i64, chain: &Chain) -> usize {
    let step = step.rem_euclid(chain.slots() as i64);
    (0..step).fold(1, |g, _| g * 5 % (2 * chain.n()))
}
