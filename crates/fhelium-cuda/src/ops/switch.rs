//! Hybrid key switching (K. Han, D. Ki, "Better Bootstrapping for Approximate Homomorphic
//! Encryption", CT-RSA 2020), as fhelium_ckks does it, in five launches at best.
//!
//! The polynomial d is transformed back, scaled for the conversion as it is; each digit is lifted
//! to the other primes, which runs on into the first pass of the transforms there; their second pass
//! runs straight into the inner product with the key, and for the special limbs on into the inverse
//! transform's first pass. The mod-down's conversion is transformed likewise, and the second pass
//! runs into the last step: the division by P and the automorphism. Where a block can hold its columns
//! over all primes that are converted from, the inverse transforms' second pass is in the conversion's
//! kernel, too.
//!
//! What is added to the result, the other parts of the operand or of a product, is multiplied by P and
//! enters the inner product, where its words are at hand: the mod-down divides it by P again.
//!
//! A rescale merges into the mod-down, whose result in the limb that is dropped is that of the sum: the
//! conversion takes the rescale's rounding in. Residues are those of the two operations one after the
//! other.

use crate::context::Context;
use crate::error::Result;
use crate::kernels::{
    Added, Finish, ForwardA, Inner, InverseA, KEYS, ModDown, ModUp, Operand, PassB, Route, Whole,
    split,
};
use crate::keys::KeySwitchKey;
use crate::queue::Buffer;
use crate::values::Ciphertext;
use fhelium_ckks::KeyKind;

/// What is switched.
pub(super) struct Switched {
    pub operation: &'static str,
    pub level: usize,
    /// Batch elements.
    pub batch: usize,
    /// The polynomial d, or a factor of it.
    pub own: Operand,
    /// The other factor.
    pub factor: Option<Operand>,
    /// What is added to the result.
    pub added: Added,
    /// Whether the result is rescaled.
    pub rescale: bool,
}

/// The part of the device's memory, one in so many, that the intermediate words of one round of keys
/// may take: the more keys at once, the fuller the device and the fewer reads of the digits.
const ROUND_SHARE: usize = 64;

impl Context {
    /// Switches a polynomial under each key, applies the key's automorphism, and writes the targets.
    pub(super) fn switch(
        &self,
        switched: &Switched,
        targets: &[(&KeySwitchKey, KeyKind, &Ciphertext)],
    ) -> Result<()> {
        let n = self.n();
        let limbs = switched.level + 1;
        let dropped = usize::from(switched.rescale);
        let kept_limbs = limbs - dropped;
        let special_limbs = self.special_count() + dropped;
        let extended_limbs = limbs + self.special_count();
        let digits = self.parameters().digits(switched.level);
        self.check_rows(switched.operation, switched.batch * digits)?;

        let extended = self
            .queue()
            .allocate(switched.batch * digits * extended_limbs * n)?;
        self.decompose(switched, &extended)?;
        let route =
            self.kernels()
                .route(extended_limbs, special_limbs, switched.batch, targets.len());
        if route != Route::Fused {
            self.transform_digits(switched, &extended)?;
        }
        let words_each = 2 * switched.batch * (2 * kept_limbs + special_limbs) * n;
        let round_words = self.device().memory() / ROUND_SHARE / size_of::<u64>();
        let at_once = (round_words / words_each.max(1)).clamp(1, KEYS);
        for round in targets.chunks(at_once) {
            let items = switched.batch * round.len();
            self.check_rows(switched.operation, 2 * items)?;
            let kept = self.queue().allocate(items * 2 * kept_limbs * n)?;
            let special = self.queue().allocate(items * 2 * special_limbs * n)?;
            self.inner_product(switched, route, &extended, round, &kept, &special)?;
            if route == Route::Flat {
                self.special_rows(switched, items, &special)?;
            }
            let moved = self.queue().allocate(items * 2 * kept_limbs * n)?;
            self.mod_down(switched, items, &special, &moved)?;
            self.finish(switched, round, &kept, &moved)?;
        }
        Ok(())
    }

    /// The digits over the other primes, after pass A of their transforms.
    fn decompose(&self, switched: &Switched, extended: &Buffer) -> Result<()> {
        let (n, log_n) = (self.n(), self.parameters().log_n());
        let limbs = switched.level + 1;
        let digits = self.parameters().digits(switched.level) as u32;
        let digit_size = self.parameters().digit_size() as u32;
        let primes = self.tables().primes();
        let coefficients = self.queue().allocate(switched.batch * limbs * n)?;
        let stride = (limbs * n) as u64;
        let (factor, factor_stride) = switched
            .factor
            .map_or((0, 0), |factor| (factor.data, factor.batch_stride));
        let pass_b = PassB {
            primes,
            source: switched.own.data,
            factor,
            target: coefficients.address(),
            source_stride: switched.own.batch_stride,
            factor_stride,
            target_stride: stride,
            basis: self.basis(limbs),
            log_n,
            polynomials: switched.batch as u32,
        };
        let pass_a = InverseA {
            primes,
            scales: self.tables().up_scales(switched.level),
            source: coefficients.address(),
            target: coefficients.address(),
            source_stride: stride,
            target_stride: stride,
            basis: self.basis(limbs),
            log_n,
            log_b: split(log_n).1,
        };
        let basis = self.extended_basis(limbs);
        let extended_stride = u64::from(basis.limbs) * n as u64;
        let mod_up = ModUp {
            primes,
            source: coefficients.address(),
            target: extended.address(),
            factors: self.tables().up_factors(switched.level),
            scales: self.tables().up_scales(switched.level),
            source_stride: stride,
            target_stride: extended_stride,
            basis,
            log_n,
            digits,
            digit_size,
            digit_limbs: limbs as u32,
            chunk: 0,
            row: self.tables().up_row,
        };
        let forward = ForwardA {
            primes,
            source: extended.address(),
            target: extended.address(),
            source_stride: extended_stride,
            target_stride: extended_stride,
            basis,
            log_n,
            digit_size,
            digits,
            digit_limbs: limbs as u32,
        };
        let (queue, kernels) = (self.queue(), self.kernels());
        // SAFETY: the coefficients hold the level's limbs of the batch, `extended` all limbs of
        // every digit; the operands' strides are their own.
        unsafe {
            kernels.inverse_b(queue, &pass_b)?;
            kernels.mod_up(queue, switched.batch, &pass_a, &mod_up, &forward)
        }
    }

    fn transform_digits(&self, switched: &Switched, extended: &Buffer) -> Result<()> {
        let limbs = switched.level + 1;
        let basis = self.extended_basis(limbs);
        let whole = Whole {
            primes: self.tables().primes(),
            extended: extended.address(),
            extended_stride: u64::from(basis.limbs) * self.n() as u64,
            own: switched.own,
            own_factor: switched.factor.unwrap_or(Operand::NONE),
            basis,
            log_n: self.parameters().log_n(),
            digits: self.parameters().digits(switched.level) as u32,
            digit_size: self.parameters().digit_size() as u32,
            digit_limbs: limbs as u32,
        };
        // SAFETY: `extended` holds all limbs of every digit, `own` and its factor the level's limbs.
        unsafe { self.kernels().whole(self.queue(), switched.batch, &whole) }
    }

    fn inner_product(
        &self,
        switched: &Switched,
        route: Route,
        extended: &Buffer,
        round: &[(&KeySwitchKey, KeyKind, &Ciphertext)],
        kept: &Buffer,
        special: &Buffer,
    ) -> Result<()> {
        let n = self.n();
        let limbs = switched.level + 1;
        let dropped = usize::from(switched.rescale);
        let basis = self.extended_basis(limbs);
        let mut inner = Inner {
            primes: self.tables().primes(),
            extended: extended.address(),
            extended_stride: u64::from(basis.limbs) * n as u64,
            own: switched.own,
            own_factor: switched.factor.unwrap_or(Operand::NONE),
            kept: kept.address(),
            special: special.address(),
            kept_stride: ((limbs - dropped) * n) as u64,
            special_stride: ((self.special_count() + dropped) * n) as u64,
            added: switched.added,
            special_products: self.tables().special_products(),
            basis,
            log_n: self.parameters().log_n(),
            digits: self.parameters().digits(switched.level) as u32,
            digit_size: self.parameters().digit_size() as u32,
            digit_limbs: limbs as u32,
            key_limbs: self.tables().moduli.len() as u32,
            dropped: dropped as u32,
            batch: switched.batch as u32,
            key_count: round.len() as u32,
            keys: [0; KEYS],
        };
        for (place, (key, _, _)) in inner.keys.iter_mut().zip(round) {
            *place = key.data.address();
        }
        // SAFETY: keys hold every digit and prime of the parameters; `kept` and `special` hold
        // their limbs for both halves of each item; what is added has its operand's own strides and at
        // least the level's limbs.
        unsafe { self.kernels().inner(self.queue(), route, &inner) }
    }

    /// Pass B of the special limbs' inverse transforms, which a flat inner product leaves out.
    fn special_rows(&self, switched: &Switched, items: usize, special: &Buffer) -> Result<()> {
        let basis = self.special_basis(switched.level, switched.rescale);
        let stride = u64::from(basis.limbs) * self.n() as u64;
        let pass_b = PassB {
            primes: self.tables().primes(),
            source: special.address(),
            factor: 0,
            target: special.address(),
            source_stride: stride,
            factor_stride: 0,
            target_stride: stride,
            basis,
            log_n: self.parameters().log_n(),
            polynomials: 2 * items as u32,
        };
        // SAFETY: the buffer holds these limbs for both halves of each item; rows stay in place.
        unsafe { self.kernels().inverse_b_held(self.queue(), &pass_b) }
    }

    /// What the mod-down of both halves of `items` subtracts, after pass A of its transform.
    fn mod_down(
        &self,
        switched: &Switched,
        items: usize,
        special: &Buffer,
        moved: &Buffer,
    ) -> Result<()> {
        let (n, log_n) = (self.n(), self.parameters().log_n());
        let kept_limbs = switched.level + 1 - usize::from(switched.rescale);
        let special_basis = self.special_basis(switched.level, switched.rescale);
        let special_stride = u64::from(special_basis.limbs) * n as u64;
        let moved_stride = (kept_limbs * n) as u64;
        let primes = self.tables().primes();
        let pass_a = InverseA {
            primes,
            scales: self.tables().down_scales(),
            source: special.address(),
            target: special.address(),
            source_stride: special_stride,
            target_stride: special_stride,
            basis: special_basis,
            log_n,
            log_b: split(log_n).1,
        };
        let mod_down = ModDown {
            primes,
            source: special.address(),
            target: moved.address(),
            factors: self.tables().down_factors(),
            rest_factors: self.tables().rest_factors(),
            scales: self.tables().down_scales(),
            source_stride: special_stride,
            target_stride: moved_stride,
            p_inverse: self.tables().special_inverse(switched.level),
            basis: self.basis(kept_limbs),
            log_n,
            special_first: self.tables().level_primes as u32,
            specials: self.special_count() as u32,
            dropped: u32::from(switched.rescale),
            chunk: 0,
            row: self.tables().down_row,
        };
        let forward = ForwardA {
            primes,
            source: moved.address(),
            target: moved.address(),
            source_stride: moved_stride,
            target_stride: moved_stride,
            basis: self.basis(kept_limbs),
            log_n,
            digit_size: 0,
            digits: 1,
            digit_limbs: 0,
        };
        let (queue, kernels) = (self.queue(), self.kernels());
        // SAFETY: both buffers hold their limbs for both halves of each item.
        unsafe { kernels.mod_down(queue, 2 * items, &pass_a, &mod_down, &forward) }
    }

    fn finish(
        &self,
        switched: &Switched,
        round: &[(&KeySwitchKey, KeyKind, &Ciphertext)],
        kept: &Buffer,
        moved: &Buffer,
    ) -> Result<()> {
        let n = self.n();
        let kept_limbs = switched.level + 1 - usize::from(switched.rescale);
        let stride = (kept_limbs * n) as u64;
        let mut finish = Finish {
            primes: self.tables().primes(),
            closing: self.tables().closing(switched.level, switched.rescale),
            moved: moved.address(),
            kept: kept.address(),
            moved_stride: stride,
            kept_stride: stride,
            target_batch_stride: 2 * stride,
            target_part_stride: stride,
            basis: self.basis(kept_limbs),
            log_n: self.parameters().log_n(),
            batch: switched.batch as u32,
            polynomials: (2 * switched.batch * round.len()) as u32,
            unused: 0,
            targets: [0; KEYS],
            galois: [1; KEYS],
            galois_inverse: [1; KEYS],
        };
        for (place, (_, kind, target)) in round.iter().enumerate() {
            finish.targets[place] = target.data.address();
            finish.galois[place] = kind.galois(n) as u32;
            finish.galois_inverse[place] = kind.inverse_galois(n) as u32;
        }
        // SAFETY: `kept` and `moved` hold both halves of each item, each target two parts of the
        // batch.
        unsafe { self.kernels().finish(self.queue(), &finish) }
    }
}
