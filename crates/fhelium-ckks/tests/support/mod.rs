//! A context with keys, and random messages.

#![allow(dead_code, reason = "each test program uses its own part")]

use fhelium_ckks::*;

pub struct Bench {
    pub context: Context,
    pub randomness: Randomness,
    pub secret: SecretKey,
    pub public: PublicKey,
}

impl Bench {
    pub fn new(parameters: ParametersBuilder, seed: u64) -> Self {
        Bench::with(
            &parameters.build().unwrap(),
            ContextOptions::default(),
            seed,
        )
    }

    pub fn with(parameters: &Parameters, options: ContextOptions, seed: u64) -> Self {
        let context = Context::new(parameters, options).unwrap();
        let randomness = Randomness::from_seed_for_tests(seed);
        let keys = KeyGenerator::new(&context, &randomness);
        let secret = keys.secret().unwrap();
        let public = keys.public(&secret).unwrap();
        Bench {
            context,
            randomness,
            secret,
            public,
        }
    }

    pub fn parameters(&self) -> &Parameters {
        self.context.parameters()
    }

    pub fn keys(&self) -> KeyGenerator<'_> {
        KeyGenerator::new(&self.context, &self.randomness)
    }

    /// Complex values with both parts uniform in [-1, 1].
    pub fn random(&self, seed: u64, shape: &[usize]) -> Vec<Complex64> {
        random(seed, shape.iter().product())
    }

    pub fn encode(&self, values: &[Complex64], shape: &[usize], level: usize) -> Plaintext {
        let message = Message::complex(values, shape).unwrap();
        self.context
            .encode(message, level, self.parameters().scale())
            .unwrap()
    }

    pub fn encrypt(&self, values: &[Complex64], shape: &[usize], level: usize) -> Ciphertext {
        let plaintext = self.encode(values, shape, level);
        self.context
            .encrypt(&plaintext, &self.public, &self.randomness)
            .unwrap()
    }

    pub fn decrypt(&self, ciphertext: &Ciphertext) -> Vec<Complex64> {
        let plaintext = self.context.decrypt(ciphertext, &self.secret).unwrap();
        self.context.decode(&plaintext).unwrap()
    }
}

/// Uniform values with both parts in [-1, 1], from splitmix64.
pub fn random(seed: u64, count: usize) -> Vec<Complex64> {
    let mut state = seed;
    let mut unit = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as f64 * 2f64.powi(-63) - 1.0
    };
    (0..count).map(|_| Complex64::new(unit(), unit())).collect()
}

/// The largest distance of two messages.
pub fn distance(left: &[Complex64], right: &[Complex64]) -> f64 {
    assert_eq!(left.len(), right.len());
    left.iter()
        .zip(right)
        .map(|(l, r)| (l - r).norm())
        .fold(0.0, f64::max)
}
