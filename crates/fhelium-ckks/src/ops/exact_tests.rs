//! Key switching and rescaling against big integers, for every tier and at word-edge primes.

use crate::arith::{Limb, Tier, primes};
use crate::keys::KeySwitchKey;
use crate::security::SecurityLevel;
use crate::{
    CipherState, Ciphertext, Context, ContextOptions, KeyGenerator, Parameters, Randomness, Scale,
};
use num_bigint::BigInt;
use num_traits::{Signed, Zero};

const LOG_N: u32 = 10;
const N: usize = 1 << LOG_N;

/// Coefficients whose results are compared: the ends and some between.
const SAMPLED: [usize; 8] = [0, 1, 2, 511, 512, 777, N - 2, N - 1];

fn primes_below(bits: f64, count: usize) -> Vec<u64> {
    primes::primes_below(bits.exp2() as u64, LOG_N + 1)
        .take(count)
        .collect()
}

/// Chains at the edges of the cores: all primes in the fast range, some as large as it allows, all
/// outside it and as large as words allow, both mixed, and small ones.
fn chains() -> Vec<Parameters> {
    let make = |moduli: Vec<u64>, special: Vec<u64>, log_scale: f64| {
        let scale = Scale::from_f64(log_scale.exp2()).unwrap();
        let level = SecurityLevel::Bits128;
        Parameters::from_primes(LOG_N, moduli, special, scale, level, true).unwrap()
    };
    let fast = primes_below(49.5, 8);
    let wide = primes_below(61.0, 3);
    let large = primes_below(60.05, 4);
    let small = primes_below(30.0, 6);
    vec![
        make(
            [&fast[..1], &primes_below(48.5, 4)].concat(),
            fast[5..7].to_vec(),
            48.3,
        ),
        make(
            [&wide[..1], &large[..3]].concat(),
            wide[1..3].to_vec(),
            59.6,
        ),
        make(
            [&large[..1], &fast[..4]].concat(),
            [&wide[..1], &fast[4..6]].concat(),
            49.2,
        ),
        make(
            [&fast[..1], &small[..5]].concat(),
            fast[1..4].to_vec(),
            29.8,
        ),
    ]
}

/// The integers modulo the product of a chain's primes at some level.
struct Integers<'a> {
    limbs: Vec<&'a Limb>,
    modulus: BigInt,
    /// (M / m_i) ((M / m_i)^-1 mod m_i) for each prime.
    idempotents: Vec<BigInt>,
}

impl<'a> Integers<'a> {
    fn new(limbs: Vec<&'a Limb>) -> Self {
        let primes: Vec<BigInt> = limbs.iter().map(|l| l.modulus().value().into()).collect();
        let modulus: BigInt = primes.iter().product();
        let idempotent = |prime: &BigInt| {
            let others = &modulus / prime;
            let inverse = (&others % prime).modpow(&(prime - 2), prime);
            others * inverse
        };
        let idempotents = primes.iter().map(idempotent).collect();
        Integers {
            limbs,
            modulus,
            idempotents,
        }
    }

    /// The centred coefficients of a polynomial in the transform domain.
    fn coefficients(&self, residues: &[u64]) -> Vec<BigInt> {
        let mut residues = residues.to_vec();
        for (limb, row) in self.limbs.iter().zip(residues.chunks_exact_mut(N)) {
            limb.inverse(row);
        }
        (0..N)
            .map(|k| {
                let terms = self.idempotents.iter().enumerate();
                self.centred(terms.map(|(i, e)| e * residues[i * N + k]).sum())
            })
            .collect()
    }

    fn centred(&self, value: BigInt) -> BigInt {
        let rest = ((value % &self.modulus) + &self.modulus) % &self.modulus;
        if &rest * 2 > self.modulus {
            rest - &self.modulus
        } else {
            rest
        }
    }
}

/// The nearest integer to a / b; b is odd, so there is no tie.
fn divide_rounded(a: &BigInt, b: &BigInt) -> BigInt {
    let twice: BigInt = a * 2 + b;
    let double: BigInt = b * 2;
    let quotient = &twice / &double;
    if twice.is_negative() && !(&twice % &double).is_zero() {
        quotient - 1
    } else {
        quotient
    }
}

/// Coefficient k of a b modulo X^N + 1.
fn product_coefficient(a: &[BigInt], b: &[BigInt], k: usize) -> BigInt {
    (0..N)
        .map(|i| {
            if i <= k {
                &a[i] * &b[k - i]
            } else {
                -(&a[i] * &b[N + k - i])
            }
        })
        .sum()
}

fn random_ciphertext(
    context: &Context,
    keys: &KeyGenerator,
    level: usize,
    parts: usize,
) -> Ciphertext {
    let secret = keys.secret().unwrap();
    let randomness = Randomness::from_seed_for_tests(level as u64);
    let draw = randomness.draw().unwrap();
    let mut data = vec![0; parts * (level + 1) * N];
    for (index, limb) in data.chunks_exact_mut(N).enumerate() {
        let modulus = context.limbs()[index % (level + 1)].modulus();
        crate::sampler::uniform(&mut draw.stream(index as u64), modulus, limb);
        // The ends of the range too.
        limb[..2].copy_from_slice(&[0, modulus.value() - 1]);
    }
    let state = CipherState {
        level,
        scale: context.parameters().scale().clone(),
        parts,
    };
    Ciphertext::from_raw(
        context.parameters(),
        secret.secret_id(),
        state,
        vec![],
        data,
    )
    .unwrap()
}

/// Every chain under every tier that the machine has, with two threads so that tasks are cut.
fn contexts() -> impl Iterator<Item = Context> {
    chains().into_iter().flat_map(|parameters| {
        Tier::available().into_iter().map(move |tier| {
            let options = ContextOptions {
                threads: Some(2),
                tier: Some(tier),
            };
            Context::new(&parameters, options).unwrap()
        })
    })
}

#[test]
fn rescale_divides_and_rounds_exactly() {
    let randomness = Randomness::from_seed_for_tests(1);
    for context in contexts() {
        let parameters = context.parameters();
        let keys = KeyGenerator::new(&context, &randomness);
        for level in 1..=parameters.depth() {
            let mut x = random_ciphertext(&context, &keys, level, 3);
            x.state.scale = parameters.scale().times(parameters.scale());
            let y = context.rescale(&x).unwrap();
            let above = Integers::new(context.limbs()[..=level].iter().collect());
            let below = Integers::new(context.limbs()[..level].iter().collect());
            let prime = BigInt::from(parameters.moduli()[level]);
            for (x, y) in x.data.chunks(N * (level + 1)).zip(y.data.chunks(N * level)) {
                let (x, y) = (above.coefficients(x), below.coefficients(y));
                for k in 0..N {
                    assert_eq!(y[k], below.centred(divide_rounded(&x[k], &prime)));
                }
            }
        }
    }
}

/// What a key makes of a polynomial, by its definition: digits as centred integers, times key halves
/// modulo QP, divided by P and rounded.
fn reference_switch(
    context: &Context,
    level: usize,
    polynomial: &[u64],
    key: &KeySwitchKey,
) -> [Vec<BigInt>; 2] {
    let parameters = context.parameters();
    let all = context.limbs().len();
    let extended: Vec<usize> = (0..all)
        .filter(|&limb| limb <= level || limb > parameters.depth())
        .collect();
    let whole = Integers::new(
        extended
            .iter()
            .map(|&limb| &context.limbs()[limb])
            .collect(),
    );
    let special: BigInt = parameters
        .special_moduli()
        .iter()
        .map(|&prime| BigInt::from(prime))
        .product();
    let digits: Vec<Vec<BigInt>> = (0..parameters.digits(level))
        .map(|digit| {
            let own = parameters.digit_range(level, digit);
            let limbs = context.limbs()[own.clone()].iter().collect();
            Integers::new(limbs).coefficients(&polynomial[own.start * N..own.end * N])
        })
        .collect();
    [&key.b, &key.uniform(context).to_vec()].map(|half| {
        let halves: Vec<Vec<BigInt>> = (0..digits.len())
            .map(|digit| {
                let rows = extended
                    .iter()
                    .map(|limb| &half[(digit * all + limb) * N..][..N]);
                whole.coefficients(&rows.collect::<Vec<_>>().concat())
            })
            .collect();
        let sum = |&k: &usize| {
            let products = digits
                .iter()
                .zip(&halves)
                .map(|(d, h)| product_coefficient(d, h, k));
            divide_rounded(&whole.centred(products.sum()), &special)
        };
        SAMPLED.iter().map(sum).collect()
    })
}

#[test]
fn key_switching_is_its_definition_exactly() {
    let randomness = Randomness::from_seed_for_tests(2);
    for context in contexts() {
        let parameters = context.parameters();
        let keys = KeyGenerator::new(&context, &randomness);
        let secret = keys.secret().unwrap();
        let key = keys.relinearization(&secret).unwrap();
        for level in [parameters.depth(), 1, 0] {
            let mut x = random_ciphertext(&context, &keys, level, 3);
            x.secret = secret.secret_id();
            let y = context.relinearize(&x, &key).unwrap();
            let words = (level + 1) * N;
            let ring = Integers::new(context.limbs()[..=level].iter().collect());
            let expected = reference_switch(&context, level, &x.data[2 * words..], &key);
            for (part, expected) in expected.iter().enumerate() {
                let before = ring.coefficients(&x.data[part * words..][..words]);
                let after = ring.coefficients(&y.data[part * words..][..words]);
                for (&k, switched) in SAMPLED.iter().zip(expected) {
                    let expected = ring.centred(&before[k] + switched);
                    assert_eq!(after[k], expected, "{:?} level {level}", context.tier());
                }
            }
        }
    }
}

/// One seed, every tier: the same keys, ciphertexts and results, bit for bit.
#[test]
fn tiers_and_threads_agree_on_every_residue() {
    for parameters in chains() {
        let mut first: Option<Vec<Vec<u64>>> = None;
        for tier in Tier::available() {
            for threads in [1, 2] {
                let options = ContextOptions {
                    threads: Some(threads),
                    tier: Some(tier),
                };
                let context = Context::new(&parameters, options).unwrap();
                let randomness = Randomness::from_seed_for_tests(3);
                let keys = KeyGenerator::new(&context, &randomness);
                let secret = keys.secret().unwrap();
                let public = keys.public(&secret).unwrap();
                let relinearization = keys.relinearization(&secret).unwrap();
                let rotation = keys.rotation(&secret, 5).unwrap();
                let values: Vec<f64> = (0..2 * N / 2).map(|i| (i as f64).sin()).collect();
                let shape = [2, N / 2];
                let message = crate::Message::real(&values, &shape).unwrap();
                let plain = context
                    .encode(message, parameters.depth(), parameters.scale())
                    .unwrap();
                let x = context.encrypt(&plain, &public, &randomness).unwrap();
                let y = context.encrypt(&plain, &secret, &randomness).unwrap();
                let product = context
                    .multiply_relinearize(&x, &y, &relinearization)
                    .unwrap();
                let rescaled = context.rescale(&product).unwrap();
                let rotated = context.rotate(&rescaled, 5, &rotation).unwrap();
                let clear = context.decrypt(&rotated, &secret).unwrap();
                let results = vec![
                    secret.residues.to_vec(),
                    public.b.clone(),
                    rotation.b.clone(),
                    x.data.to_vec(),
                    y.data.to_vec(),
                    product.data.to_vec(),
                    rescaled.data.to_vec(),
                    rotated.data.to_vec(),
                    clear.data.to_vec(),
                ];
                match &first {
                    None => first = Some(results),
                    Some(first) => assert!(first == &results, "{tier} with {threads} threads"),
                }
            }
        }
    }
}
