//! Sums, slices and stacks of batches.

use super::batch_shape::{BatchSpan, sliced, stacked, stacked_plain_state, stacked_state, summed};
use crate::buffers::Buffer;
use crate::context::Context;
use crate::error::Result;
use crate::values::{Ciphertext, Plaintext, batch_size};

impl Context {
    /// The sum of a batch along one axis, which goes; level, scale and parts stay. No key is needed.
    ///
    /// # Errors
    /// [`CkksError::Shape`](crate::CkksError::Shape) for an axis that the batch lacks or that is empty;
    /// [`CkksError::ParametersMismatch`](crate::CkksError::ParametersMismatch).
    pub fn sum_batch(&self, ciphertext: &Ciphertext, axis: usize) -> Result<Ciphertext> {
        self.check_ciphertext("sum_batch", ciphertext)?;
        let batch_shape = summed(&ciphertext.batch_shape, axis)?;
        let from = &ciphertext.batch_shape;
        let extent = from[axis];
        let inner = batch_size(&from[axis + 1..]);
        let n = self.n();
        let limbs = ciphertext.state.level + 1;
        let per_item = ciphertext.state.parts * limbs;
        let mut data = self.result_buffer("sum_batch", batch_size(&batch_shape) * per_item * n)?;
        self.each_limb(&mut data, |index, out| {
            let (item, limb) = (index / per_item, index % per_item);
            let first = item / inner * extent * inner + item % inner;
            let at = |place: usize| {
                &ciphertext.data[((first + place * inner) * per_item + limb) * n..][..n]
            };
            let ring = &self.limbs()[limb % limbs];
            if extent == 1 {
                out.copy_from_slice(at(0));
                return;
            }
            ring.add(out, at(0), at(1));
            for place in 2..extent {
                ring.add_assign(out, at(place));
            }
        });
        Ok(Ciphertext {
            batch_shape,
            data,
            ..ciphertext.without_data()
        })
    }

    /// Evenly spaced items along each batch axis, as numpy's basic indexing takes them.
    ///
    /// # Errors
    /// [`CkksError::Shape`](crate::CkksError::Shape) where the spans do not lie within the batch;
    /// [`CkksError::ParametersMismatch`](crate::CkksError::ParametersMismatch).
    pub fn slice_batch(&self, ciphertext: &Ciphertext, spans: &[BatchSpan]) -> Result<Ciphertext> {
        self.check_ciphertext("batch_slice", ciphertext)?;
        let (batch_shape, items) = sliced(&ciphertext.batch_shape, spans)?;
        let limbs = ciphertext.state.parts * (ciphertext.state.level + 1);
        let data = self.gather("batch_slice", items.len(), limbs, |item| {
            (&ciphertext.data, items[item])
        })?;
        Ok(Ciphertext {
            batch_shape,
            data,
            ..ciphertext.without_data()
        })
    }

    /// As [`slice_batch`](Self::slice_batch), of a plaintext.
    ///
    /// # Errors
    /// As there.
    pub fn slice_plain_batch(
        &self,
        plaintext: &Plaintext,
        spans: &[BatchSpan],
    ) -> Result<Plaintext> {
        self.parameters()
            .check_id("batch_slice", "plaintext", plaintext.parameters)?;
        let (batch_shape, items) = sliced(&plaintext.batch_shape, spans)?;
        let limbs = plaintext.state.level + 1;
        let data = self.gather("batch_slice", items.len(), limbs, |item| {
            (&plaintext.data, items[item])
        })?;
        Ok(Plaintext {
            parameters: plaintext.parameters,
            state: plaintext.state.clone(),
            batch_shape,
            data,
        })
    }

    /// Ciphertexts of one batch shape along a new batch axis: equal levels and parts, scales equal or
    /// nominally equal, of which the largest is the result's.
    ///
    /// # Errors
    /// The level and scale rules'; [`CkksError::Shape`](crate::CkksError::Shape) where batch shapes or parts differ, where
    /// the axis is none of the result's or nothing is given; values of different parameters or
    /// secrets.
    pub fn stack_batch(&self, ciphertexts: &[&Ciphertext], axis: usize) -> Result<Ciphertext> {
        let shapes = ciphertexts.iter().map(|other| &other.batch_shape[..]);
        let batch_shape = stacked(shapes, axis)?;
        let first = ciphertexts[0];
        for other in ciphertexts {
            self.check_pair("stack_batch", first, other)?;
        }
        let states = ciphertexts.iter().map(|other| &other.state);
        let state = stacked_state(self.parameters().chain(), states)?;
        let state = state.unwrap_or_else(|| first.state.clone());
        let inner = batch_size(&first.batch_shape[axis..]);
        let count = ciphertexts.len();
        let limbs = state.parts * (state.level + 1);
        let data = self.gather("stack_batch", batch_size(&batch_shape), limbs, |item| {
            let (outer, operand) = (item / inner / count, item / inner % count);
            (&ciphertexts[operand].data, outer * inner + item % inner)
        })?;
        Ok(Ciphertext {
            state,
            batch_shape,
            data,
            ..first.without_data()
        })
    }

    /// Plaintexts of one level and batch shape along a new batch axis.
    ///
    /// # Errors
    /// As [`stack_batch`](Self::stack_batch).
    pub fn stack_plain_batch(&self, plaintexts: &[&Plaintext], axis: usize) -> Result<Plaintext> {
        let shapes = plaintexts.iter().map(|other| &other.batch_shape[..]);
        let batch_shape = stacked(shapes, axis)?;
        let first = plaintexts[0];
        for other in plaintexts {
            self.parameters()
                .check_id("stack_batch", "plaintext", other.parameters)?;
        }
        let states = plaintexts.iter().map(|other| &other.state);
        let state = stacked_plain_state(self.parameters().chain(), states)?;
        let state = state.unwrap_or_else(|| first.state.clone());
        let inner = batch_size(&first.batch_shape[axis..]);
        let count = plaintexts.len();
        let data = self.gather(
            "stack_batch",
            batch_size(&batch_shape),
            state.level + 1,
            |item| {
                let (outer, operand) = (item / inner / count, item / inner % count);
                (&plaintexts[operand].data, outer * inner + item % inner)
            },
        )?;
        Ok(Plaintext {
            parameters: first.parameters,
            state,
            batch_shape,
            data,
        })
    }

    /// Items of `limbs` limbs each, copied from where `source` says: a buffer and an item of it.
    fn gather<'a>(
        &self,
        operation: &'static str,
        items: usize,
        limbs: usize,
        source: impl Fn(usize) -> (&'a Buffer, usize) + Send + Sync,
    ) -> Result<Buffer> {
        let n = self.n();
        let mut data = self.result_buffer(operation, items * limbs * n)?;
        self.each_limb(&mut data, |index, out| {
            let (from, item) = source(index / limbs);
            out.copy_from_slice(&from[(item * limbs + index % limbs) * n..][..n]);
        });
        Ok(data)
    }
}
