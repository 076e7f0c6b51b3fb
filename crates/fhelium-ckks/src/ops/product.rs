//! Products of ciphertexts and with plaintexts.

use super::broadcast::Broadcast;
use crate::context::Context;
use crate::error::Result;
use crate::keys::{KeyKind, KeySwitchKey};
use crate::values::{Ciphertext, Plaintext};

impl Context {
    /// left * right: three parts, the product of the scales.
    ///
    /// # Errors
    /// The level and scale rules', values of different parameters or secrets, batch shapes that do
    /// not broadcast.
    pub fn multiply(&self, left: &Ciphertext, right: &Ciphertext) -> Result<Ciphertext> {
        if std::ptr::eq(left, right) {
            return self.square(left);
        }
        self.check_pair("multiply", left, right)?;
        let state = left
            .state
            .multiply(self.parameters().chain(), "multiply", &right.state)?;
        let batch = Broadcast::new("multiply", &left.batch_shape, &right.batch_shape)?;
        let n = self.n();
        let limbs = state.level + 1;
        let mut data = vec![0; batch.size() * 3 * limbs * n];
        self.each_product_limb(&mut data, limbs, |item, limb, [c0, c1, c2]| {
            let (l, r) = batch.items(item);
            let [a0, a1] = left.pair_limb(l, limb, n);
            let [b0, b1] = right.pair_limb(r, limb, n);
            self.limbs()[limb].tensor(c0, c1, c2, a0, a1, b0, b1);
        });
        Ok(Ciphertext {
            parameters: left.parameters,
            secret: left.secret,
            state,
            batch_shape: batch.shape,
            data,
        })
    }

    /// The square of a ciphertext: three parts. The residues are those of
    /// [`multiply`](Self::multiply) with itself.
    ///
    /// # Errors
    /// As [`multiply`](Self::multiply).
    pub fn square(&self, ciphertext: &Ciphertext) -> Result<Ciphertext> {
        self.check_ciphertext("square", ciphertext)?;
        let chain = self.parameters().chain();
        let state = ciphertext
            .state
            .multiply(chain, "square", &ciphertext.state)?;
        let n = self.n();
        let limbs = state.level + 1;
        let mut data = vec![0; ciphertext.data.len() / 2 * 3];
        self.each_product_limb(&mut data, limbs, |item, limb, [c0, c1, c2]| {
            let [a0, a1] = ciphertext.pair_limb(item, limb, n);
            self.limbs()[limb].square_tensor(c0, c1, c2, a0, a1);
        });
        Ok(Ciphertext {
            state,
            data,
            ..ciphertext.without_data()
        })
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
        let mut data = vec![0; batch.size() * words];
        self.each_limb(&mut data, |index, out| {
            let (item, rest) = (index / limbs / state.parts, index % (limbs * state.parts));
            let (c, p) = batch.items(item);
            let limb = rest % limbs;
            let plain = &plaintext.data[(p * plain_limbs + limb) * n..][..n];
            self.limbs()[limb].mul(out, &ciphertext.data[c * words + rest * n..][..n], plain);
        });
        Ok(Ciphertext {
            parameters: ciphertext.parameters,
            secret: ciphertext.secret,
            state,
            batch_shape: batch.shape,
            data,
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
        let mut data = vec![0; ciphertext.data.len() / 3 * 2];
        let items = ciphertext
            .data
            .chunks_exact(3 * words)
            .zip(data.chunks_exact_mut(2 * words));
        for (parts, out) in items {
            let (pair, third) = parts.split_at(2 * words);
            let digits = self.decompose(state.level, third);
            self.switch(&digits, third, key, out);
            let limbs = state.level + 1;
            self.each_limb(out, |index, out| {
                let sum = &pair[index * self.n()..][..self.n()];
                self.limbs()[index % limbs].add_assign(out, sum);
            });
        }
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
        key.check("multiply", self, left.secret, KeyKind::Relinearization)?;
        self.relinearize(&self.multiply(left, right)?, key)
    }

    /// Calls `work` with the item, the limb and the three parts of that limb of a product.
    fn each_product_limb(
        &self,
        data: &mut [u64],
        limbs: usize,
        work: impl Fn(usize, usize, [&mut [u64]; 3]) + Send + Sync,
    ) {
        let n = self.n();
        let mut tasks = Vec::with_capacity(data.len() / 3 / n);
        for (item, parts) in data.chunks_exact_mut(3 * limbs * n).enumerate() {
            let (c0, rest) = parts.split_at_mut(limbs * n);
            let (c1, c2) = rest.split_at_mut(limbs * n);
            let rows = c0
                .chunks_exact_mut(n)
                .zip(c1.chunks_exact_mut(n))
                .zip(c2.chunks_exact_mut(n));
            for (limb, ((c0, c1), c2)) in rows.enumerate() {
                tasks.push((item, limb, [c0, c1, c2]));
            }
        }
        self.each(tasks, |(item, limb, parts)| work(item, limb, parts));
    }
}

impl Ciphertext {
    /// One limb of both parts of an item.
    pub(super) fn pair_limb(&self, item: usize, limb: usize, n: usize) -> [&[u64]; 2] {
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
            data: Vec::new(),
        }
    }
}
