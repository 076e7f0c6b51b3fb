//! Messages to plaintexts and back.

use crate::context::Context;
use crate::error::Result;
use crate::kernels::{Centre, Check, Columns, Constant, ConstantResidues, Round, Rows, Towards};
use crate::queue::Buffer;
use crate::tensor::Tensor;
use crate::values::Plaintext;
use bytemuck::AnyBitPattern;
use fhelium_ckks::{Complex64, ExactScale, Message, PlainState, Scale, Values};
use fhelium_ir::DType;

/// Values on the device, for the slots: real or complex, item by item.
struct Slots {
    source: u64,
    is_complex: bool,
    /// Values of an item.
    count: usize,
    items: usize,
    check: Check,
    /// No |re| + |im| is larger.
    magnitude: f64,
}

impl Context {
    /// Encodes a message at a level and a scale.
    ///
    /// The integers are those nearest to the transform's results, exactly, as on the host; those
    /// results are, in units of 1 / scale, within (13 log2(N/2) + 38) 2^-53 of the largest |value|
    /// of what they should be, and the host's within as much. A constant, which needs no transform,
    /// has the host's residues.
    ///
    /// # Errors
    /// As [`fhelium_ckks::Context::encode`], and the device's.
    pub fn encode(&self, message: Message<'_>, level: usize, scale: &Scale) -> Result<Plaintext> {
        self.host().check_message(&message, level, scale)?;
        let items: usize = message.batch_shape().iter().product();
        self.check_rows("encode", items)?;
        let _turn = self.queue().lock()?;
        let result = self.encoding_result(message.shape(), level, scale)?;
        let Some(&count) = message.shape().last() else {
            let value = match message.values() {
                Values::Real(values) => Complex64::new(values[0], 0.0),
                Values::Complex(values) => values[0],
            };
            let residues = self.host().constant_residues(value, level, scale)?;
            let residues = self.queue().upload(residues.as_flattened())?;
            self.fill_constant(&residues, &result)?;
            return Ok(result);
        };
        let (source, is_complex) = match message.values() {
            Values::Real(values) => {
                let source = self.queue().allocate(values.len())?;
                self.queue().fill(&source, values)?;
                (source, false)
            }
            Values::Complex(values) => {
                let source = self.queue().allocate(2 * values.len())?;
                self.queue().fill(&source, values)?;
                (source, true)
            }
        };
        let slots = Slots {
            source: source.address(),
            is_complex,
            count,
            items,
            check: Check::NONE,
            magnitude: message.magnitude(),
        };
        // SAFETY: the source holds as many values, which were just copied there.
        unsafe { self.encode_slots(&slots, &result)? };
        Ok(result)
    }

    /// Encodes an array on the device, of any element type and strides, without waiting for it: to
    /// the residues that [`encode`](Self::encode) gives for its elements.
    ///
    /// # Errors
    /// As [`encode`](Self::encode), but for the values': those that are not finite or that the level
    /// does not hold are refused by whatever waits for the device next, such as
    /// [`Queue::synchronize`](crate::Queue::synchronize) and downloads. Arrays of another device.
    pub fn encode_tensor(
        &self,
        message: &Tensor,
        level: usize,
        scale: &Scale,
    ) -> Result<Plaintext> {
        let shape = message.shape();
        self.host().check_message_shape(shape, level, scale)?;
        let items = shape
            .split_last()
            .map_or(1, |(_, batch)| batch.iter().product());
        self.check_rows("encode", items)?;
        let is_complex = message.dtype().is_complex();
        let wide = if is_complex { DType::C128 } else { DType::F64 };
        let queue = self.queue();
        let _turn = queue.lock()?;
        let dense = self.contiguous(&self.cast("encode", message, wide)?)?;
        let joined = self.join("encode", &[("array", &**dense.buffer())])?;
        let result = self.encoding_result(shape, level, scale)?;
        let bound = self.host().message_bound(level, scale);
        let check = Check {
            report: queue.report_address()?,
            bound,
            log2_scale: scale.log2(),
            level: level as u32,
            unused: 0,
        };
        if let Some(&count) = shape.last() {
            let slots = Slots {
                source: dense.address(),
                is_complex,
                count,
                items,
                check,
                // Twice: the bound is of magnitudes.
                magnitude: 2.0 * bound,
            };
            // SAFETY: the array is dense and of the type that is read.
            unsafe { self.encode_slots(&slots, &result)? };
        } else {
            let exact = ExactScale::new(scale);
            let residues = queue.allocate(2 * (level + 1))?;
            let arguments = ConstantResidues {
                primes: self.tables().primes(),
                source: dense.address(),
                roots: self.tables().scheme.imaginary_roots(),
                target: residues.address(),
                check,
                mantissa: exact.mantissa(),
                exponent: exact.exponent(),
                limbs: level as u32 + 1,
                complex: u32::from(is_complex),
                unused: 0,
            };
            // SAFETY: the array holds one number of the type that is read, the target two words for
            // each limb of the level.
            unsafe { self.kernels().constant_residues(queue, &arguments)? };
            self.fill_constant(&residues, &result)?;
        }
        joined.leave()?;
        queue.expect_reports();
        Ok(result)
    }

    /// A plaintext of undefined residues for a message of a shape.
    fn encoding_result(&self, shape: &[usize], level: usize, scale: &Scale) -> Result<Plaintext> {
        let state = PlainState {
            level,
            scale: scale.clone(),
        };
        let batch = shape.split_last().map_or(&[][..], |(_, batch)| batch);
        self.plain_result(state, batch.to_vec())
    }

    /// Writes a constant's limbs; a pair of residues for each.
    fn fill_constant(&self, residues: &Buffer, result: &Plaintext) -> Result<()> {
        let limbs = result.state.level + 1;
        debug_assert_eq!(residues.words(), 2 * limbs);
        let arguments = Constant {
            residues: residues.address(),
            target: result.data.address(),
            log_n: self.parameters().log_n(),
            unused: 0,
        };
        // SAFETY: a pair of residues for each limb of the result.
        unsafe { self.kernels().constant(self.queue(), limbs, &arguments) }
    }

    /// # Safety
    /// The source is of live memory of this queue that holds the values.
    unsafe fn encode_slots(&self, message: &Slots, result: &Plaintext) -> Result<()> {
        let (queue, kernels) = (self.queue(), self.kernels());
        let (n, slots) = (self.n(), self.parameters().slots());
        let scale = ExactScale::new(&result.state.scale);
        let transformed = queue.allocate(message.items * n)?;
        let coefficients = queue.allocate(message.items * n)?;
        let embedding = self.tables().scheme.embedding();
        let columns = Columns {
            embedding,
            source: message.source,
            target: transformed.address(),
            check: message.check,
            count: message.count as u32,
            complex: u32::from(message.is_complex),
        };
        let rows = Rows {
            embedding,
            source: transformed.address(),
            target: coefficients.address(),
            factor: scale.mantissa() / slots as f64,
            complex: 0,
            unused: 0,
        };
        // SAFETY: the source holds `count` values an item, real or complex, by the caller's promise;
        // the others hold N words.
        unsafe {
            kernels.columns(queue, Towards::Coefficients, message.items, &columns)?;
            kernels.rows(queue, Towards::Coefficients, message.items, &rows)?;
        }
        // No coefficient is larger than the largest value, but for the transform's rounding.
        let largest = 1.01 * message.magnitude * scale.mantissa();
        self.round(
            &coefficients,
            &scale,
            largest,
            &result.data,
            result.state.level,
        )
    }

    /// Real coefficients, (item, N), multiplied by a scale's mantissa and at most so large, to the
    /// transforms of the nearest integers, (item, limb, N).
    pub(super) fn round(
        &self,
        coefficients: &Buffer,
        scale: &ExactScale,
        largest: f64,
        target: &Buffer,
        level: usize,
    ) -> Result<()> {
        let items = coefficients.words() / self.n();
        let basis = self.basis(level + 1);
        let as_floats = scale.rounds_as_floats(largest);
        let arguments = Round {
            primes: self.tables().primes(),
            source: coefficients.address(),
            target: target.address(),
            factor: if as_floats {
                2f64.powi(scale.exponent())
            } else {
                0.0
            },
            basis,
            exponent: scale.exponent(),
            exact: u32::from(!as_floats),
            log_n: self.parameters().log_n(),
            unused: 0,
        };
        // SAFETY: the target holds all limbs of as many items.
        unsafe { self.kernels().round(self.queue(), items, &arguments)? };
        self.forward_over(target, basis, items)
    }

    /// The message of a plaintext: (batch..., slots) complex values.
    ///
    /// Coefficients are lifted to their exact centred integers, whatever the level, and rounded once
    /// to floats, as on the host; the transform changes the values by at most (13 log2(N/2) + 37)
    /// 2^-53 times the root of the sum of their squares.
    ///
    /// # Errors
    /// A plaintext of other parameters or of another device, and the device's.
    pub fn decode(&self, plaintext: &Plaintext) -> Result<Vec<Complex64>> {
        self.slots(plaintext, true)
    }

    /// The real parts of the message of a plaintext: (batch..., slots).
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_real(&self, plaintext: &Plaintext) -> Result<Vec<f64>> {
        self.slots(plaintext, false)
    }

    /// The slots, complex or real.
    fn slots<T: AnyBitPattern>(&self, plaintext: &Plaintext, complex: bool) -> Result<Vec<T>> {
        self.check_parameters("decode", "plaintext", plaintext.parameters)?;
        let items: usize = plaintext.batch_shape.iter().product();
        self.check_rows("decode", items)?;
        let (queue, kernels) = (self.queue(), self.kernels());
        let (n, slots, log_n) = (
            self.n(),
            self.parameters().slots(),
            self.parameters().log_n(),
        );
        let PlainState { level, scale } = &plaintext.state;
        let limbs = level + 1;
        let scale = ExactScale::new(scale);
        let _turn = queue.lock()?;
        let joined = self.join("decode", &[("plaintext", &plaintext.data)])?;
        let residues = queue.allocate(items * limbs * n)?;
        self.inverse_over(&plaintext.data, &residues, self.basis(limbs), items)?;
        joined.leave()?;
        let coefficients = queue.allocate(items * n)?;
        let transformed = queue.allocate(items * n)?;
        let embedding = self.tables().scheme.embedding();
        let centre = Centre {
            primes: self.tables().primes(),
            residues: residues.address(),
            target: coefficients.address(),
            inverses: self.tables().scheme.lift_inverses(),
            product: self.tables().scheme.level_product(*level),
            mantissa: scale.mantissa(),
            exponent: scale.exponent(),
            limbs: limbs as u32,
            log_n,
            unused: 0,
        };
        let columns = Columns {
            embedding,
            source: coefficients.address(),
            target: transformed.address(),
            check: Check::NONE,
            count: 0,
            complex: 0,
        };
        let rows = Rows {
            embedding,
            source: transformed.address(),
            // The coefficients have been read by then, and the slots take no more room.
            target: coefficients.address(),
            factor: 1.0,
            complex: u32::from(complex),
            unused: 0,
        };
        // SAFETY: all hold N words an item, the residues N for each limb.
        unsafe {
            kernels.centre(queue, items, &centre)?;
            kernels.columns(queue, Towards::Slots, items, &columns)?;
            kernels.rows(queue, Towards::Slots, items, &rows)?;
        }
        let mut values = vec![T::zeroed(); items * slots];
        queue.read(&coefficients, &mut values)?;
        Ok(values)
    }
}
