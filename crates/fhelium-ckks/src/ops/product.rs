//! Products of ciphertexts and with plaintexts.

use super::broadcast::Broadcast;
use super::key_switch::KeyProduct;
use crate::buffers::Buffer;
use crate::context::Context;
use crate::error::Result;
use crate::keys::{KeyKind, KeySwitchKey};
use crate::values::{Ciphertext, Plaintext};
use fhelium_state::CipherState;

impl Context {
    /// left * right: three parts, the product of the scales.
    ///
    /// # Errors
    /// The level and scale rules', values of different parameters or secrets, batch shapes that do
    /// not broadcast.
    pub fn multiply(&self, left: &Ciphertext, right: &Ciphertext) -> Result<Ciphertext> {
        Product::new(self, "multiply", left, right)?.three_parts()
    }

    /// The square of a ciphertext: three parts. The residues are those of
    /// [`multiply`](Self::multiply) with itself.
    ///
    /// # Errors
    /// As [`multiply`](Self::multiply).
    pub fn square(&self, ciphertext: &Ciphertext) -> Result<Ciphertext> {
        Product::new(self, "square", ciphertext, ciphertext)?.three_parts()
    }

    /// ciphertext * plaintext, which may hold more levels; the product of the scales.
    ///
    /// # Errors
    /// As [`multiply`](Self::multiply).
    pub fn multiply_plain(
        &self,
        ciphertext: &Ciphertext,
        plaintext: &Plaintext,
    ) -> Result<Ciphertext> {
        self.check_plaintext("multiply", ciphertext, plaintext)?;
        let chain = self.parameters().chain();
        let state = ciphertext
            .state
            .multiply_plain(chain, "multiply", &plaintext.state)?;
        let batch = Broadcast::new("multiply", &ciphertext.batch_shape, &plaintext.batch_shape)?;
        let n = self.n();
        let (limbs, plain_limbs) = (state.level + 1, plaintext.state.level + 1);
        let words = state.parts * limbs * n;
        let mut data = self.result_buffer("multiply", batch.size() * words)?;
        self.each_limb(&mut data, |index, out| {
            let (item, row) = (index / limbs / state.parts, index % (limbs * state.parts));
            let (c, p) = batch.items(item);
            let limb = row % limbs;
            let plain = &plaintext.data[(p * plain_limbs + limb) * n..][..n];
            self.limbs()[limb].mul(out, &ciphertext.data[c * words + row * n..][..n], plain);
        });
        let batch_shape = batch.shape;
        Ok(Ciphertext {
            state,
            data,
            batch_shape,
            ..ciphertext.without_data()
        })
    }

    /// Three parts to two.
    ///
    /// # Errors
    /// The level and scale rules' for an operand of two parts, and a key of another kind, secret or
    /// parameter set.
    pub fn relinearize(&self, ciphertext: &Ciphertext, key: &KeySwitchKey) -> Result<Ciphertext> {
        self.check_ciphertext("relinearize", ciphertext)?;
        let state = ciphertext.state.relinearize()?;
        key.check(
            "relinearize",
            self,
            ciphertext.secret,
            KeyKind::Relinearization,
        )?;
        let words = (state.level + 1) * self.n();
        let mut data = self.result_buffer("relinearize", ciphertext.data.len() / 3 * 2)?;
        let items = ciphertext
            .data
            .chunks_exact(3 * words)
            .zip(data.chunks_exact_mut(2 * words));
        self.install(|| {
            items.for_each(|(parts, out)| self.relinearize_item(state.level, parts, key, out));
        });
        Ok(Ciphertext {
            state,
            data,
            ..ciphertext.without_data()
        })
    }

    /// [`relinearize`](Self::relinearize) and then [`rescale`](Self::rescale), with the same residues
    /// in less time.
    ///
    /// # Errors
    /// As for both.
    pub fn relinearize_rescale(
        &self,
        ciphertext: &Ciphertext,
        key: &KeySwitchKey,
    ) -> Result<Ciphertext> {
        self.check_ciphertext("relinearize", ciphertext)?;
        let state = ciphertext
            .state
            .relinearize()?
            .rescale(self.parameters().chain())?;
        key.check(
            "relinearize",
            self,
            ciphertext.secret,
            KeyKind::Relinearization,
        )?;
        let level = ciphertext.state.level;
        let words = level * self.n();
        let items = ciphertext.data.chunks_exact(3 * (words + self.n()));
        let mut data = self.result_buffer("relinearize", items.len() * 2 * words)?;
        let items = items.zip(data.chunks_exact_mut(2 * words));
        self.install(|| {
            items.for_each(|(parts, out)| self.relinearize_rescale_item(level, parts, key, out));
        });
        Ok(Ciphertext {
            state,
            data,
            ..ciphertext.without_data()
        })
    }

    /// left * right in two parts: the residues of [`multiply`](Self::multiply) and
    /// [`relinearize`](Self::relinearize).
    ///
    /// # Errors
    /// As for both.
    pub fn multiply_relinearize(
        &self,
        left: &Ciphertext,
        right: &Ciphertext,
        key: &KeySwitchKey,
    ) -> Result<Ciphertext> {
        let product = Product::new(self, "multiply", left, right)?;
        key.check("multiply", self, left.secret, KeyKind::Relinearization)?;
        product.run(product.state.relinearize()?, |level, parts, out| {
            self.relinearize_item(level, parts, key, out);
        })
    }

    /// left * right in two parts, one level lower: the residues of [`multiply`](Self::multiply),
    /// [`relinearize`](Self::relinearize) and [`rescale`](Self::rescale) in less time.
    ///
    /// # Errors
    /// As for the three.
    pub fn multiply_relinearize_rescale(
        &self,
        left: &Ciphertext,
        right: &Ciphertext,
        key: &KeySwitchKey,
    ) -> Result<Ciphertext> {
        let product = Product::new(self, "multiply", left, right)?;
        let state = product
            .state
            .relinearize()?
            .rescale(self.parameters().chain())?;
        key.check("multiply", self, left.secret, KeyKind::Relinearization)?;
        product.run(state, |level, parts, out| {
            self.relinearize_rescale_item(level, parts, key, out);
        })
    }

    /// Two parts of three.
    fn relinearize_item(&self, level: usize, parts: &[u64], key: &KeySwitchKey, out: &mut [u64]) {
        let n = self.n();
        let (pair, polynomial) = parts.split_at(parts.len() / 3 * 2);
        let digits = &self.decompose(level, polynomial);
        let product = KeyProduct::new(self, digits, polynomial, key);
        self.switch(&product, out, vec![(); level + 1], |limb, switched, ()| {
            for (part, out) in switched.into_iter().enumerate() {
                let term = &pair[(part * (level + 1) + limb) * n..][..n];
                self.limbs()[limb].add_assign(out, term);
            }
        });
    }

    /// Two parts, one level lower, of three.
    fn relinearize_rescale_item(
        &self,
        level: usize,
        parts: &[u64],
        key: &KeySwitchKey,
        out: &mut [u64],
    ) {
        let (pair, polynomial) = parts.split_at(parts.len() / 3 * 2);
        let digits = &self.decompose(level, polynomial);
        let product = KeyProduct::new(self, digits, polynomial, key);
        self.switch_rescale(&product, pair, out);
    }
}

/// A product of two ciphertexts, checked.
struct Product<'a> {
    context: &'a Context,
    left: &'a Ciphertext,
    right: &'a Ciphertext,
    batch: Broadcast,
    /// Of the three parts.
    state: CipherState,
}

impl<'a> Product<'a> {
    fn new(
        context: &'a Context,
        operation: &'static str,
        left: &'a Ciphertext,
        right: &'a Ciphertext,
    ) -> Result<Self> {
        context.check_pair(operation, left, right)?;
        let chain = context.parameters().chain();
        let state = left.state.multiply(chain, operation, &right.state)?;
        let batch = Broadcast::new(operation, &left.batch_shape, &right.batch_shape)?;
        Ok(Product {
            context,
            left,
            right,
            batch,
            state,
        })
    }

    /// The product as it is.
    fn three_parts(&self) -> Result<Ciphertext> {
        let words = 3 * (self.state.level + 1) * self.context.n();
        let mut data = self.buffer(words)?;
        for (item, out) in data.chunks_exact_mut(words).enumerate() {
            self.tensor(item, out);
        }
        Ok(self.with(self.state.clone(), data))
    }

    /// For results of so many words for each item.
    fn buffer(&self, words: usize) -> Result<Buffer> {
        self.context
            .result_buffer("multiply", self.batch.size() * words)
    }

    /// The product at another state, each item of two parts made by `finish` from the level and the
    /// three parts, which live only until then.
    fn run(
        &self,
        state: CipherState,
        finish: impl Fn(usize, &[u64], &mut [u64]) + Send + Sync,
    ) -> Result<Ciphertext> {
        let n = self.context.n();
        let words = 2 * (state.level + 1) * n;
        let mut data = self.buffer(words)?;
        let mut parts = self.context.buffer(3 * (self.state.level + 1) * n);
        self.context.install(|| {
            for (item, out) in data.chunks_exact_mut(words).enumerate() {
                self.tensor(item, &mut parts);
                finish(self.state.level, &parts, out);
            }
        });
        Ok(self.with(state, data))
    }

    fn with(&self, state: CipherState, data: Buffer) -> Ciphertext {
        let batch_shape = self.batch.shape.clone();
        Ciphertext {
            state,
            data,
            batch_shape,
            ..self.left.without_data()
        }
    }

    /// The three parts of one item.
    fn tensor(&self, item: usize, out: &mut [u64]) {
        let n = self.context.n();
        let (l, r) = self.batch.items(item);
        let (c0, rest) = out.split_at_mut(out.len() / 3);
        let (c1, c2) = rest.split_at_mut(rest.len() / 2);
        let rows = c0
            .chunks_exact_mut(n)
            .zip(c1.chunks_exact_mut(n))
            .zip(c2.chunks_exact_mut(n));
        self.context
            .each(rows.enumerate().collect(), |(limb, ((c0, c1), c2))| {
                let ring = &self.context.limbs()[limb];
                let [a0, a1] = self.left.pair_limb(l, limb, n);
                let [b0, b1] = self.right.pair_limb(r, limb, n);
                if std::ptr::eq(a0, b0) {
                    ring.square_tensor(c0, c1, c2, a0, a1);
                } else {
                    ring.tensor(c0, c1, c2, a0, a1, b0, b1);
                }
            });
    }
}

impl Ciphertext {
    /// One limb of both parts of an item.
    fn pair_limb(&self, item: usize, limb: usize, n: usize) -> [&[u64]; 2] {
        let limbs = self.state.level + 1;
        let start = item * 2 * limbs + limb;
        [start, start + limbs].map(|index| &self.data[index * n..][..n])
    }

    /// Everything but the residues.
    pub(super) fn without_data(&self) -> Ciphertext {
        Ciphertext {
            parameters: self.parameters,
            secret: self.secret,
            state: self.state.clone(),
            batch_shape: self.batch_shape.clone(),
            data: Buffer::default(),
        }
    }
}
