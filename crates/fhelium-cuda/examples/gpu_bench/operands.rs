//! Operands of random residues.

use fhelium_ckks::{
    CipherState, Ciphertext, KeyKind, KeySwitchKey, PlainState, Plaintext, SecretId,
};
use fhelium_cuda::{Context, Result};

/// Ciphertexts: operands or results of an operation.
pub type Values = Vec<fhelium_cuda::Ciphertext>;

const SECRET: SecretId = SecretId::from_bytes([1; 16]);

/// Makes operands on a device.
pub struct Operands {
    device: Context,
    word: u64,
}

impl Operands {
    pub fn new(device: &Context) -> Self {
        Operands {
            device: device.clone(),
            word: 1,
        }
    }

    fn next(&mut self) -> u64 {
        // Marsaglia's xorshift64.
        self.word ^= self.word << 13;
        self.word ^= self.word >> 7;
        self.word ^= self.word << 17;
        self.word
    }

    fn residues(&mut self, moduli: &[u64], polynomials: usize) -> Vec<u64> {
        let n = self.device.parameters().n();
        let mut data = Vec::with_capacity(polynomials * moduli.len() * n);
        for _ in 0..polynomials {
            for &p in moduli {
                data.extend((0..n).map(|_| self.next() % p));
            }
        }
        data
    }

    pub fn ciphertext(&mut self, level: usize) -> Result<fhelium_cuda::Ciphertext> {
        let parameters = self.device.parameters().clone();
        let data = self.residues(&parameters.moduli()[..=level], 2);
        let state = CipherState::new(level, parameters.scale().clone());
        let ciphertext = Ciphertext::from_raw(&parameters, SECRET, state, vec![], data)?;
        self.device.upload(&ciphertext)
    }

    pub fn plaintext(&mut self, level: usize) -> Result<fhelium_cuda::Plaintext> {
        let parameters = self.device.parameters().clone();
        let data = self.residues(&parameters.moduli()[..=level], 1);
        let state = PlainState {
            level,
            scale: parameters.scale().clone(),
        };
        let plaintext = Plaintext::from_raw(&parameters, state, vec![], data)?;
        self.device.upload_plaintext(&plaintext)
    }

    /// A key of random residues: it switches to nothing, in the same time.
    pub fn key(&mut self, kind: KeyKind) -> Result<fhelium_cuda::KeySwitchKey> {
        let parameters = self.device.parameters().clone();
        let moduli = [parameters.moduli(), parameters.special_moduli()].concat();
        let b = self.residues(&moduli, parameters.digits(parameters.depth()));
        let seed = [self.next() as u8; 32];
        let key = KeySwitchKey::from_raw(&parameters, SECRET, kind, seed, b)?;
        self.device.upload_key(&key)
    }
}
