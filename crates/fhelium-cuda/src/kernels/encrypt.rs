//! Encryption and decryption: kernels/cuda/encrypt.cu.

use super::{Arguments, Basis, Core, Kernel, Kernels, arguments};
use crate::device::Device;
use crate::error::Result;
use crate::queue::Queue;

/// `Encrypt` in encrypt.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Encrypt {
    pub primes: u64,
    pub small: u64,
    pub key: u64,
    pub message: u64,
    pub target: u64,
    pub basis: Basis,
    pub log_n: u32,
    pub key_limbs: u32,
}

/// `Decrypt` in encrypt.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Decrypt {
    pub primes: u64,
    pub source: u64,
    pub secret: u64,
    pub target: u64,
    pub basis: Basis,
    pub log_n: u32,
    pub parts: u32,
}

arguments!(Encrypt, 64, [primes, small, key, message, target]);
arguments!(Decrypt, 56, [primes, source, secret, target]);

const THREADS: u32 = 256;

pub(super) struct Encryption {
    public: Kernel<Encrypt>,
    secret: Kernel<Encrypt>,
    decrypt: Kernel<Decrypt>,
}

impl Encryption {
    pub fn load(device: &Device, core: Core) -> Result<Self> {
        let suffix = core.suffix();
        fn load<A: Arguments>(device: &Device, name: String) -> Result<Kernel<A>> {
            Kernel::load(device, "encrypt", &name, THREADS)
        }
        Ok(Encryption {
            public: load(device, format!("encrypt_public_{suffix}"))?,
            secret: load(device, format!("encrypt_secret_{suffix}"))?,
            decrypt: load(device, format!("decrypt_{suffix}"))?,
        })
    }
}

impl Kernels {
    /// Encrypts a batch under a public key.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn encrypt_public(
        &self,
        queue: &Queue,
        items: usize,
        arguments: &Encrypt,
    ) -> Result<()> {
        let grid = self.encryption_grid(arguments.basis, items);
        // SAFETY: the caller's promise.
        unsafe { self.encryption.public.launch(queue, grid, 0, arguments) }
    }

    /// Encrypts a batch under a secret.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn encrypt_secret(
        &self,
        queue: &Queue,
        items: usize,
        arguments: &Encrypt,
    ) -> Result<()> {
        let grid = self.encryption_grid(arguments.basis, items);
        // SAFETY: the caller's promise.
        unsafe { self.encryption.secret.launch(queue, grid, 0, arguments) }
    }

    /// Decrypts a batch.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn decrypt(&self, queue: &Queue, items: usize, arguments: &Decrypt) -> Result<()> {
        let grid = self.encryption_grid(arguments.basis, items);
        // SAFETY: the caller's promise.
        unsafe { self.encryption.decrypt.launch(queue, grid, 0, arguments) }
    }

    fn encryption_grid(&self, basis: Basis, items: usize) -> [u32; 3] {
        let tiles = (1 << self.log_n) / (2 * THREADS);
        [tiles, basis.limbs, items as u32]
    }
}
