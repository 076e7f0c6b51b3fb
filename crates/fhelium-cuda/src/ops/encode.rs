//! Messages to plaintexts and back.

use crate::context::Context;
use crate::error::Result;
use crate::kernels::{Centre, Columns, Constant, Round, Rows, Towards};
use crate::queue::Buffer;
use crate::values::Plaintext;
use bytemuck::AnyBitPattern;
use fhelium_ckks::{Complex64, ExactScale, Message, PlainState, Scale, Values};

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
        let state = PlainState {
            level,
            scale: scale.clone(),
        };
        let _order = self.queue().lock();
        let result = self.plain_result(state, message.batch_shape().to_vec())?;
        match message.shape().last() {
            None => self.encode_constant(message.values(), &result)?,
            Some(&count) => self.encode_slots(&message, count, items, &result)?,
        }
        Ok(result)
    }

    fn encode_constant(&self, values: Values<'_>, result: &Plaintext) -> Result<()> {
        let value = match values {
            Values::Real(values) => Complex64::new(values[0], 0.0),
            Values::Complex(values) => values[0],
        };
        let PlainState { level, scale } = &result.state;
        let residues = self.host().constant_residues(value, *level, scale)?;
        let residues = self.queue().upload(residues.as_flattened())?;
        let arguments = Constant {
            residues: residues.address(),
            target: result.data.address(),
            log_n: self.parameters().log_n(),
            unused: 0,
        };
        // SAFETY: a pair of residues for each limb of the result.
        unsafe { self.kernels().constant(self.queue(), level + 1, &arguments) }
    }

    fn encode_slots(
        &self,
        message: &Message<'_>,
        count: usize,
        items: usize,
        result: &Plaintext,
    ) -> Result<()> {
        let (queue, kernels) = (self.queue(), self.kernels());
        let (n, slots) = (self.n(), self.parameters().slots());
        let source = match message.values() {
            Values::Real(values) => {
                let source = queue.allocate(values.len())?;
                queue.fill(&source, values)?;
                source
            }
            Values::Complex(values) => {
                let source = queue.allocate(2 * values.len())?;
                queue.fill(&source, values)?;
                source
            }
        };
        let scale = ExactScale::new(&result.state.scale);
        let transformed = queue.allocate(items * n)?;
        let coefficients = queue.allocate(items * n)?;
        let embedding = self.tables().scheme.embedding();
        let columns = Columns {
            embedding,
            source: source.address(),
            target: transformed.address(),
            count: count as u32,
            complex: u32::from(matches!(message.values(), Values::Complex(_))),
        };
        let rows = Rows {
            embedding,
            source: transformed.address(),
            target: coefficients.address(),
            factor: scale.mantissa() / slots as f64,
            complex: 0,
            unused: 0,
        };
        // SAFETY: the source holds `count` values an item, real or complex, the others N words.
        unsafe {
            kernels.columns(queue, Towards::Coefficients, items, &columns)?;
            kernels.rows(queue, Towards::Coefficients, items, &rows)?;
        }
        // No coefficient is larger than the largest value, but for the transform's rounding.
        let largest = 1.01 * message.magnitude() * scale.mantissa();
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
        let _order = queue.lock();
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
