//! Sums, differences, negation and integer multiples.

use super::broadcast::Broadcast;
use crate::arith::Limb;
use crate::context::Context;
use crate::error::Result;
use crate::values::{Ciphertext, Plaintext};
use std::cmp::Ordering;

/// What becomes of a pair of limbs.
#[derive(Clone, Copy, PartialEq)]
enum Sum {
    Add,
    Subtract,
    /// Right minus left.
    SubtractFrom,
}

impl Sum {
    fn combine(self, ring: &Limb, out: &mut [u64], left: &[u64], right: &[u64]) {
        match self {
            Sum::Add => ring.add(out, left, right),
            Sum::Subtract => ring.sub(out, left, right),
            Sum::SubtractFrom => ring.sub(out, right, left),
        }
    }

    fn left_alone(self, ring: &Limb, out: &mut [u64], left: &[u64]) {
        out.copy_from_slice(left);
        if self == Sum::SubtractFrom {
            ring.neg_assign(out);
        }
    }

    fn right_alone(self, ring: &Limb, out: &mut [u64], right: &[u64]) {
        out.copy_from_slice(right);
        if self == Sum::Subtract {
            ring.neg_assign(out);
        }
    }
}

impl Context {
    /// left + right: equal levels, and scales equal or nominally equal.
    ///
    /// # Errors
    /// The level and scale rules', values of different parameters or secrets, batch shapes that do
    /// not broadcast.
    pub fn add(&self, left: &Ciphertext, right: &Ciphertext) -> Result<Ciphertext> {
        self.sum("add", Sum::Add, left, right)
    }

    /// left - right.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn subtract(&self, left: &Ciphertext, right: &Ciphertext) -> Result<Ciphertext> {
        self.sum("subtract", Sum::Subtract, left, right)
    }

    /// ciphertext + plaintext, which may hold more levels.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_plain(&self, ciphertext: &Ciphertext, plaintext: &Plaintext) -> Result<Ciphertext> {
        self.plain_sum("add", Sum::Add, ciphertext, plaintext)
    }

    /// ciphertext - plaintext.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn subtract_plain(
        &self,
        ciphertext: &Ciphertext,
        plaintext: &Plaintext,
    ) -> Result<Ciphertext> {
        self.plain_sum("subtract", Sum::Subtract, ciphertext, plaintext)
    }

    /// plaintext - ciphertext.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn plain_subtract(
        &self,
        plaintext: &Plaintext,
        ciphertext: &Ciphertext,
    ) -> Result<Ciphertext> {
        self.plain_sum("subtract", Sum::SubtractFrom, ciphertext, plaintext)
    }

    /// -ciphertext.
    ///
    /// # Errors
    /// [`CkksError::ParametersMismatch`](crate::CkksError::ParametersMismatch).
    pub fn negate(&self, ciphertext: &Ciphertext) -> Result<Ciphertext> {
        self.check_ciphertext("negate", ciphertext)?;
        let limbs = ciphertext.state.level + 1;
        let mut result = ciphertext.clone();
        self.each_limb(&mut result.data, |index, out| {
            self.limbs()[index % limbs].neg_assign(out)
        });
        Ok(result)
    }

    /// factor * ciphertext, exactly and at the same scale.
    ///
    /// The message grows by the factor, and must still fit the modulus at its level: beyond that it
    /// wraps around, as every result does.
    ///
    /// # Errors
    /// [`CkksError::ParametersMismatch`](crate::CkksError::ParametersMismatch).
    pub fn multiply_integer(&self, ciphertext: &Ciphertext, factor: i64) -> Result<Ciphertext> {
        self.check_ciphertext("multiply", ciphertext)?;
        let limbs = ciphertext.state.level + 1;
        let mut result = ciphertext.clone();
        self.each_limb(&mut result.data, |index, out| {
            let ring = &self.limbs()[index % limbs];
            ring.mul_scalar_assign(out, ring.modulus().from_i64(factor));
        });
        Ok(result)
    }

    fn sum(
        &self,
        operation: &'static str,
        sum: Sum,
        left: &Ciphertext,
        right: &Ciphertext,
    ) -> Result<Ciphertext> {
        self.check_pair(operation, left, right)?;
        let state = left
            .state
            .add(self.parameters().chain(), operation, &right.state)?;
        let batch = Broadcast::new(operation, &left.batch_shape, &right.batch_shape)?;
        let n = self.n();
        let limbs = state.level + 1;
        let mut data = self.result_buffer(operation, batch.size() * state.parts * limbs * n)?;
        self.each_limb(&mut data, |index, out| {
            let (item, part, limb) = (
                index / limbs / state.parts,
                index / limbs % state.parts,
                index % limbs,
            );
            let ring = &self.limbs()[limb];
            let (l, r) = batch.items(item);
            let at = |value: &'_ Ciphertext, item: usize| {
                ((item * value.state.parts + part) * limbs + limb) * n
            };
            // An operand of two parts beside one of three has a third part of zeros.
            match left.state.parts.cmp(&right.state.parts) {
                Ordering::Less if part == 2 => {
                    sum.right_alone(ring, out, &right.data[at(right, r)..][..n]);
                }
                Ordering::Greater if part == 2 => {
                    sum.left_alone(ring, out, &left.data[at(left, l)..][..n]);
                }
                _ => {
                    let left = &left.data[at(left, l)..][..n];
                    sum.combine(ring, out, left, &right.data[at(right, r)..][..n]);
                }
            }
        });
        Ok(Ciphertext {
            parameters: left.parameters,
            secret: left.secret,
            state,
            batch_shape: batch.shape,
            data,
        })
    }

    fn plain_sum(
        &self,
        operation: &'static str,
        sum: Sum,
        ciphertext: &Ciphertext,
        plaintext: &Plaintext,
    ) -> Result<Ciphertext> {
        self.check_plaintext(operation, ciphertext, plaintext)?;
        let chain = self.parameters().chain();
        let state = ciphertext
            .state
            .add_plain(chain, operation, &plaintext.state)?;
        let batch = Broadcast::new(operation, &ciphertext.batch_shape, &plaintext.batch_shape)?;
        let n = self.n();
        let (limbs, plain_limbs) = (state.level + 1, plaintext.state.level + 1);
        let mut data = self.result_buffer(operation, batch.size() * state.parts * limbs * n)?;
        self.each_limb(&mut data, |index, out| {
            let (item, part, limb) = (
                index / limbs / state.parts,
                index / limbs % state.parts,
                index % limbs,
            );
            let ring = &self.limbs()[limb];
            let (c, p) = batch.items(item);
            let cipher = &ciphertext.data[((c * state.parts + part) * limbs + limb) * n..][..n];
            if part == 0 {
                let plain = &plaintext.data[(p * plain_limbs + limb) * n..][..n];
                sum.combine(ring, out, cipher, plain);
            } else {
                sum.left_alone(ring, out, cipher);
            }
        });
        Ok(Ciphertext {
            parameters: ciphertext.parameters,
            secret: ciphertext.secret,
            state,
            batch_shape: batch.shape,
            data,
        })
    }
}
