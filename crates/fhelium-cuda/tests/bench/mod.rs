//! A parameter set on the host and on a device, with keys and operands of chosen residues.

// Each test program uses its part of this.
#![allow(dead_code, unused_imports)]

#[path = "../contexts/mod.rs"]
mod contexts;
#[path = "../words/mod.rs"]
mod words;

pub use contexts::{context_on, has_kernels, open};
pub use words::Words;

use contexts::contexts;
use fhelium_ckks::{
    CipherState, Ciphertext, KeyGenerator, KeySwitchKey, Parameters, PlainState, Plaintext,
    Randomness, Scale, SecretId,
};
use fhelium_cuda::{Context, Core};

impl Words {
    /// A residue: mostly uniform, sometimes at an end or in the middle of the range.
    pub fn residue(&mut self, p: u64) -> u64 {
        let word = self.next();
        match word % 64 {
            0 => 0,
            1 => p - 1,
            2 => p / 2,
            3 => p / 2 + 1,
            _ => ((u128::from(self.next()) * u128::from(p)) >> 64) as u64,
        }
    }
}

/// A parameter set on the host and a device, with keys and a source of operands.
pub struct Bench {
    pub host: fhelium_ckks::Context,
    pub device: Context,
    pub secret: SecretId,
    pub relinearization: KeySwitchKey,
    pub rotations: Vec<(i64, KeySwitchKey)>,
    pub conjugation: KeySwitchKey,
    pub words: Words,
}

pub const STEPS: [i64; 5] = [1, -1, 3, 100, 7];

impl Bench {
    pub fn new(parameters: &Parameters, core: Option<Core>) -> Self {
        let (host, device) = contexts(parameters, core);
        let randomness = Randomness::from_seed_for_tests(5);
        let keys = KeyGenerator::new(&host, &randomness);
        let secret = keys.secret().unwrap();
        Bench {
            secret: secret.secret_id(),
            relinearization: keys.relinearization(&secret).unwrap(),
            rotations: STEPS
                .map(|step| (step, keys.rotation(&secret, step).unwrap()))
                .into(),
            conjugation: keys.conjugation(&secret).unwrap(),
            words: Words(parameters.log_n().into()),
            host,
            device,
        }
    }

    pub fn residues(&mut self, level: usize, polynomials: usize) -> Vec<u64> {
        let moduli = self.host.parameters().moduli()[..=level].to_vec();
        let n = self.host.parameters().n();
        (0..polynomials)
            .flat_map(|_| moduli.iter().flat_map(|&p| vec![p; n]).collect::<Vec<_>>())
            .map(|p| self.words.residue(p))
            .collect()
    }

    pub fn ciphertext(&mut self, level: usize, parts: usize, shape: &[usize]) -> Ciphertext {
        let scale = self.host.parameters().scale().clone();
        self.ciphertext_at(level, parts, shape, scale)
    }

    pub fn ciphertext_at(
        &mut self,
        level: usize,
        parts: usize,
        shape: &[usize],
        scale: Scale,
    ) -> Ciphertext {
        let items: usize = shape.iter().product();
        let data = self.residues(level, items * parts);
        let state = CipherState {
            level,
            scale,
            parts,
        };
        let parameters = self.host.parameters();
        Ciphertext::from_raw(parameters, self.secret, state, shape.to_vec(), data).unwrap()
    }

    pub fn plaintext(&mut self, level: usize, shape: &[usize]) -> Plaintext {
        let items: usize = shape.iter().product();
        let data = self.residues(level, items);
        let parameters = self.host.parameters();
        let state = PlainState {
            level,
            scale: parameters.scale().clone(),
        };
        Plaintext::from_raw(parameters, state, shape.to_vec(), data).unwrap()
    }

    /// Compares what the host and the device gave.
    #[track_caller]
    pub fn same(
        &self,
        what: &str,
        host: fhelium_ckks::Result<Ciphertext>,
        device: fhelium_cuda::Result<fhelium_cuda::Ciphertext>,
    ) {
        let host = host.unwrap();
        let device = self.device.download(&device.unwrap()).unwrap();
        assert_eq!(host.state(), device.state(), "{what}");
        assert_eq!(host.batch_shape(), device.batch_shape(), "{what}");
        assert_eq!(host.secret_id(), device.secret_id(), "{what}");
        if host.data() != device.data() {
            let n = self.host.parameters().n();
            let differing = host
                .data()
                .iter()
                .zip(device.data())
                .filter(|(a, b)| a != b)
                .count();
            let first = host
                .data()
                .iter()
                .zip(device.data())
                .position(|(a, b)| a != b)
                .unwrap();
            panic!(
                "{what} at N = {n}, {:?}: {differing} of {} residues differ, first word {} of limb {}: {} and {}",
                self.device.core(),
                host.data().len(),
                first % n,
                first / n,
                host.data()[first],
                device.data()[first],
            );
        }
    }
}

pub fn is_emulated() -> bool {
    open().name().starts_with("emulated")
}

pub fn parameters(log_n: u32, depth: usize, scale_bits: u32, special: Option<usize>) -> Parameters {
    let mut builder = Parameters::builder(depth, scale_bits)
        .log_n(log_n)
        .allow_insecure(true);
    if let Some(count) = special {
        builder = builder.special_primes(count);
    }
    if scale_bits > 51 {
        builder = builder.first_bits(60);
    }
    builder.build().unwrap()
}
