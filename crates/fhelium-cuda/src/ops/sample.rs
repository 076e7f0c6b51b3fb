//! Small and uniform polynomials, made on the device.

use crate::context::Context;
use crate::error::Result;
use crate::kernels::{Basis, Lift, Small, Uniform};
use crate::queue::Buffer;
use fhelium_ckks::draws::{GAUSSIAN_TAILS, Purpose, SmallDraw, uniform_stream};
use zeroize::Zeroize;

/// What a uniform polynomial is expanded for.
pub(super) struct Expansion<'a> {
    pub purpose: Purpose,
    /// One seed for all polynomials, which are then a key's digits, or one for each.
    pub seeds: &'a [[u8; 32]],
    pub basis: Basis,
    pub polynomials: usize,
    /// Where the first polynomial starts, and words from one to the next.
    pub target: u64,
    pub target_stride: usize,
}

impl Context {
    /// Samples small polynomials and transforms them over a basis: (polynomial, limb, N). They are
    /// secret.
    pub(super) fn small_polynomials(&self, draw: &SmallDraw, basis: Basis) -> Result<Buffer> {
        let key = self
            .queue()
            .allocate_secret(draw.key().len() / size_of::<u64>())?;
        self.queue().fill(&key, draw.key())?;
        let polynomials = draw.groups * draw.members;
        let small = self
            .queue()
            .allocate_secret(polynomials * self.n() / size_of::<u64>())?;
        let mut arguments = Small {
            target: small.address(),
            key: words_of(draw.key()),
            first_stream: draw.first_stream,
            group_step: draw.group_step,
            members: draw.members as u32,
            first_member: 0,
            log_n: self.parameters().log_n(),
            unused: 0,
            tails: GAUSSIAN_TAILS,
        };
        let sampled = self.sample(draw, &mut arguments);
        arguments.key.zeroize();
        sampled?;
        self.lifted(&small, polynomials, basis)
    }

    fn sample(&self, draw: &SmallDraw, arguments: &mut Small) -> Result<()> {
        let (queue, kernels) = (self.queue(), self.kernels());
        // SAFETY: the target, which `small_polynomials` made, has room for all polynomials.
        unsafe {
            if draw.ternary_first {
                kernels.ternary(queue, draw.groups, arguments)?;
            }
            arguments.first_member = draw.ternary_first.into();
            let members = draw.members - usize::from(draw.ternary_first);
            kernels.gaussian(queue, draw.groups, members, arguments)
        }
    }

    /// The transforms over a basis of polynomials of bytes, (polynomial, N). They are secret.
    pub(super) fn lifted(
        &self,
        small: &Buffer,
        polynomials: usize,
        basis: Basis,
    ) -> Result<Buffer> {
        let stride = basis.limbs as usize * self.n();
        let target = self.queue().allocate_secret(polynomials * stride)?;
        let arguments = Lift {
            primes: self.tables().primes(),
            source: small.address(),
            target: target.address(),
            target_stride: stride as u64,
            basis,
            log_n: self.parameters().log_n(),
            unused: 0,
        };
        // SAFETY: source and target hold as many polynomials.
        unsafe { self.kernels().lift(self.queue(), polynomials, &arguments)? };
        self.forward_over(&target, basis, polynomials)?;
        Ok(target)
    }

    /// Expands uniform polynomials.
    ///
    /// # Safety
    /// The target is memory of this queue and holds them.
    pub(super) unsafe fn expand(&self, expansion: &Expansion<'_>) -> Result<()> {
        // One seed goes with the launch.
        let seeds = match expansion.seeds {
            [_] => None,
            seeds => {
                let words: Vec<u64> = seeds.iter().flat_map(words_of).collect();
                Some(self.queue().upload(&words)?)
            }
        };
        let number = |digit| uniform_stream(expansion.purpose, digit, 0);
        let arguments = Uniform {
            primes: self.tables().primes(),
            seeds: seeds.as_ref().map_or(0, Buffer::address),
            target: expansion.target,
            seed: expansion.seeds.first().map_or([0; 4], words_of),
            target_stride: expansion.target_stride as u64,
            stream: number(0),
            stream_step: match seeds {
                None => number(1) - number(0),
                Some(_) => 0,
            },
            basis: expansion.basis,
            log_n: self.parameters().log_n(),
            unused: 0,
        };
        // SAFETY: the caller's promise.
        unsafe {
            self.kernels()
                .uniform(self.queue(), expansion.polynomials, &arguments)
        }
    }
}

/// A key or seed as the kernels take it.
fn words_of(bytes: &[u8; 32]) -> [u64; 4] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|index| u64::from_le_bytes(words[index]))
}
