//! Sums, slices, stacks and reshapes of batches.

use crate::context::Context;
use crate::error::Result;
use crate::kernels::{BatchSum, Move, pieces};
use crate::queue::Buffer;
use crate::values::{Ciphertext, Plaintext};
use fhelium_ckks::batch_shape::{
    BatchSpan, check_reshape, sliced, stacked, stacked_plain_state, stacked_state, summed,
};
use std::sync::Arc;

/// Bytes of the elements that batches are moved by: two residues.
const PAIR: usize = 16;

/// The distance from one item to the next along each batch axis, in elements.
fn strides(batch_shape: &[usize], item: usize) -> Vec<isize> {
    let mut strides = vec![item as isize; batch_shape.len()];
    for axis in (1..batch_shape.len()).rev() {
        strides[axis - 1] = strides[axis] * batch_shape[axis] as isize;
    }
    strides
}

impl Context {
    /// The sum of a batch along one axis, which goes; level, scale and parts stay. No key is needed.
    ///
    /// # Errors
    /// An axis that the batch lacks or that is empty; a ciphertext of other parameters or another
    /// device, and the device's.
    pub fn sum_batch(&self, ciphertext: &Ciphertext, axis: usize) -> Result<Ciphertext> {
        self.check_parameters("sum_batch", "ciphertext", ciphertext.parameters)?;
        let batch_shape = summed(&ciphertext.batch_shape, axis)?;
        let (parts, limbs) = (ciphertext.state.parts, ciphertext.state.level + 1);
        let polynomials = batch_shape.iter().product::<usize>() * parts;
        self.check_rows("sum_batch", polynomials)?;
        let _turn = self.queue().lock()?;
        let joined = self.join("sum_batch", &[("ciphertext", &ciphertext.data)])?;
        let inner: usize = batch_shape[axis..].iter().product();
        let extent = ciphertext.batch_shape[axis];
        let result = self.result(ciphertext.secret, ciphertext.state.clone(), batch_shape)?;
        let arguments = BatchSum {
            primes: self.tables().primes(),
            source: ciphertext.data.address(),
            target: result.data.address(),
            polynomial: (limbs * self.n()) as u64,
            extent: extent as u32,
            inner: (inner * parts) as u32,
            log_n: self.parameters().log_n(),
            unused: 0,
            basis: self.basis(limbs),
        };
        // SAFETY: the operand holds `extent` polynomials for each of the result's, spaced by
        // `inner`.
        unsafe {
            self.kernels()
                .batch_sum(self.queue(), polynomials, &arguments)?
        };
        joined.leave()?;
        Ok(result)
    }

    /// Evenly spaced items along each batch axis, as numpy's basic indexing takes them.
    ///
    /// # Errors
    /// Spans that do not lie within the batch; a ciphertext of other parameters or another device,
    /// and the device's.
    pub fn slice_batch(&self, ciphertext: &Ciphertext, spans: &[BatchSpan]) -> Result<Ciphertext> {
        self.check_parameters("batch_slice", "ciphertext", ciphertext.parameters)?;
        let limbs = ciphertext.state.parts * (ciphertext.state.level + 1);
        let (batch_shape, data) =
            self.slice_items(&ciphertext.data, &ciphertext.batch_shape, spans, limbs)?;
        Ok(Ciphertext {
            state: ciphertext.state.clone(),
            batch_shape,
            data,
            ..*ciphertext
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
        self.check_parameters("batch_slice", "plaintext", plaintext.parameters)?;
        let limbs = plaintext.state.level + 1;
        let (batch_shape, data) =
            self.slice_items(&plaintext.data, &plaintext.batch_shape, spans, limbs)?;
        Ok(Plaintext {
            state: plaintext.state.clone(),
            batch_shape,
            data,
            ..*plaintext
        })
    }

    /// Ciphertexts of one batch shape along a new batch axis: equal levels and parts, scales equal or
    /// nominally equal, of which the largest is the result's.
    ///
    /// # Errors
    /// The level and scale rules'; batch shapes or parts that differ, an axis that is none of the
    /// result's, or nothing to stack; values of different parameters, secrets or devices, and the
    /// device's.
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
        let limbs = state.parts * (state.level + 1);
        let operands: Vec<_> = ciphertexts.iter().map(|other| &*other.data).collect();
        let data = self.stack_items(&operands, &batch_shape, axis, limbs)?;
        Ok(Ciphertext {
            state,
            batch_shape,
            data,
            ..*first
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
            self.check_parameters("stack_batch", "plaintext", other.parameters)?;
        }
        let states = plaintexts.iter().map(|other| &other.state);
        let state = stacked_plain_state(self.parameters().chain(), states)?;
        let state = state.unwrap_or_else(|| first.state.clone());
        let operands: Vec<_> = plaintexts.iter().map(|other| &*other.data).collect();
        let data = self.stack_items(&operands, &batch_shape, axis, state.level + 1)?;
        Ok(Plaintext {
            state,
            batch_shape,
            data,
            ..*first
        })
    }

    /// The items of a slice, each of so many limbs.
    fn slice_items(
        &self,
        source: &Buffer,
        from: &[usize],
        spans: &[BatchSpan],
        limbs: usize,
    ) -> Result<(Vec<usize>, Arc<Buffer>)> {
        let (batch_shape, items) = sliced(from, spans)?;
        let _turn = self.queue().lock()?;
        let joined = self.join("batch_slice", &[("operand", source)])?;
        let item = limbs * self.n() / 2;
        let data = self.queue().allocate(items.len() * 2 * item)?;
        let mut shape: Vec<usize> = spans.iter().map(|span| span.size).collect();
        let steps = strides(from, item);
        let steps = steps.iter().zip(spans).map(|(step, span)| step * span.step);
        let mut read: Vec<isize> = steps.collect();
        let mut written = strides(&shape, item);
        shape.push(item);
        read.push(1);
        written.push(1);
        let first = items.first().map_or(0, |&first| first * item);
        self.move_pairs(&shape, (source, &read, first), (&data, &written, 0))?;
        joined.leave()?;
        Ok((batch_shape, Arc::new(data)))
    }

    /// The items of equal batches side by side along an axis of `batch_shape`, each of so many limbs.
    fn stack_items(
        &self,
        operands: &[&Buffer],
        batch_shape: &[usize],
        axis: usize,
        limbs: usize,
    ) -> Result<Arc<Buffer>> {
        let _turn = self.queue().lock()?;
        let named: Vec<_> = operands
            .iter()
            .map(|&operand| ("operand", operand))
            .collect();
        let joined = self.join("stack_batch", &named)?;
        let item = limbs * self.n() / 2;
        let items: usize = batch_shape.iter().product();
        let data = self.queue().allocate(items * 2 * item)?;
        // Of each operand, whole runs of items within the new axis.
        let inner = batch_shape[axis + 1..].iter().product::<usize>() * item;
        let outer: usize = batch_shape[..axis].iter().product();
        let shape = [outer, inner];
        let read = [inner as isize, 1];
        let written = [(operands.len() * inner) as isize, 1];
        for (place, operand) in operands.iter().enumerate() {
            self.move_pairs(
                &shape,
                (operand, &read, 0),
                (&data, &written, place * inner),
            )?;
        }
        joined.leave()?;
        Ok(Arc::new(data))
    }

    /// Moves pairs of residues of a shape, each side with its strides and the first pair's place.
    fn move_pairs(
        &self,
        shape: &[usize],
        (source, read, from): (&Buffer, &[isize], usize),
        (target, written, to): (&Buffer, &[isize], usize),
    ) -> Result<()> {
        pieces(
            shape,
            [read, written],
            [from as i64, to as i64],
            &mut |piece, [from, to]| {
                let arguments = Move {
                    source: source.address() + from as u64 * PAIR as u64,
                    target: target.address() + to as u64 * PAIR as u64,
                    shape: *piece,
                };
                // SAFETY: the callers derive shape and strides from the batch shapes of both.
                unsafe { self.kernels().move_elements(self.queue(), PAIR, &arguments) }
            },
        )
    }
}

impl Ciphertext {
    /// This ciphertext's batch under another shape of as many items; the residues are shared.
    ///
    /// # Errors
    /// A shape of more or fewer items.
    pub fn reshape_batch(mut self, batch_shape: Vec<usize>) -> Result<Self> {
        check_reshape(&self.batch_shape, &batch_shape)?;
        self.batch_shape = batch_shape;
        Ok(self)
    }
}

impl Plaintext {
    /// As [`Ciphertext::reshape_batch`].
    ///
    /// # Errors
    /// As there.
    pub fn reshape_batch(mut self, batch_shape: Vec<usize>) -> Result<Self> {
        check_reshape(&self.batch_shape, &batch_shape)?;
        self.batch_shape = batch_shape;
        Ok(self)
    }
}
