//! Messages to plaintexts and back: the canonical embedding (J. H. Cheon, A. Kim, M. Kim, Y. Song,
//! "Homomorphic Encryption for Arithmetic of Approximate Numbers", ASIACRYPT 2017, section 2.2).
//!
//! A message of N/2 complex slots is the list of values of a real polynomial m(X) at the roots
//! zeta^(5^j), zeta = exp(i pi / N); a plaintext holds the integer coefficients nearest to scale *
//! m(X). So the automorphism X -> X^5 turns the slots by one.

mod constant;
mod embedding;
mod lift;
mod rounding;

pub(crate) use embedding::Embedding;
pub use embedding::{slot_order, twist};
pub use rustfft::num_complex::Complex64;

use crate::buffers::Buffer;
use crate::context::Context;
use crate::error::{CkksError, Result};
use crate::values::{Plaintext, batch_size};
use fhelium_state::{PlainState, Scale};
pub use rounding::ExactScale;
use rounding::Rounded;

/// Values to encode, with their shape: `()` is a constant for every slot, `(..., k)` are batch axes
/// and then k values for the first k slots, zeros behind them.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    values: Values<'a>,
    shape: &'a [usize],
}

/// Real or complex values.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// Real numbers.
    Real(&'a [f64]),
    /// Complex numbers.
    Complex(&'a [Complex64]),
}

impl<'a> Values<'a> {
    fn len(self) -> usize {
        match self {
            Values::Real(values) => values.len(),
            Values::Complex(values) => values.len(),
        }
    }

    fn get(self, index: usize) -> Complex64 {
        match self {
            Values::Real(values) => Complex64::new(values[index], 0.0),
            Values::Complex(values) => values[index],
        }
    }

    fn text(self, index: usize) -> String {
        match self {
            // Debug: it writes a large number with an exponent instead of hundreds of digits.
            Values::Real(values) => format!("{:?}", values[index]),
            Values::Complex(values) => {
                let value = values[index];
                format!("{:?}{:+?}i", value.re, value.im)
            }
        }
    }
}

impl<'a> Message<'a> {
    /// Real values in row-major order.
    ///
    /// # Errors
    /// [`CkksError::Shape`] where the shape has another number of entries.
    pub fn real(values: &'a [f64], shape: &'a [usize]) -> Result<Self> {
        Message::new(Values::Real(values), shape)
    }

    /// Complex values in row-major order.
    ///
    /// # Errors
    /// [`CkksError::Shape`] where the shape has another number of entries.
    pub fn complex(values: &'a [Complex64], shape: &'a [usize]) -> Result<Self> {
        Message::new(Values::Complex(values), shape)
    }

    fn new(values: Values<'a>, shape: &'a [usize]) -> Result<Self> {
        let size = shape
            .iter()
            .try_fold(1usize, |size, &axis| size.checked_mul(axis));
        if size != Some(values.len()) {
            return Err(CkksError::Shape {
                operation: "encode",
                found: format!("{} values", values.len()),
                expected: format!("as many as the shape {shape:?} has"),
            });
        }
        Ok(Message { values, shape })
    }

    /// The batch axes: all but the last.
    pub fn batch_shape(&self) -> &'a [usize] {
        self.shape.split_last().map_or(&[], |(_, batch)| batch)
    }

    /// The values, in row-major order.
    pub fn values(&self) -> Values<'a> {
        self.values
    }

    /// The shape: none of it for a constant.
    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    /// The largest |re| + |im| among the values, which bounds their magnitudes.
    pub fn magnitude(&self) -> f64 {
        self.fold_sums(0.0, f64::max)
    }

    /// Folds |re| + |im| of all values.
    fn fold_sums<T>(&self, start: T, fold: impl Fn(T, f64) -> T) -> T {
        match self.values {
            Values::Real(values) => values.iter().fold(start, |all, v| fold(all, v.abs())),
            Values::Complex(values) => values
                .iter()
                .fold(start, |all, v| fold(all, v.re.abs() + v.im.abs())),
        }
    }

    /// Refuses values that are not finite or that `bound` does not hold.
    fn check(&self, level: usize, scale: &Scale, bound: f64) -> Result<()> {
        let operation = "encode";
        // One pass without branches tells that all is well, as it mostly is: NaN and infinities are
        // below nothing.
        if self.fold_sums(true, |fit, sum| fit & (sum < bound)) {
            return Ok(());
        }
        for index in 0..self.values.len() {
            let value = self.values.get(index);
            if !value.re.is_finite() || !value.im.is_finite() {
                let found = self.values.text(index);
                return Err(CkksError::NotFinite {
                    operation,
                    index,
                    found,
                });
            }
            // The norm is at most the sum, and costs more.
            let sum = value.re.abs() + value.im.abs();
            if sum >= bound && value.norm() >= bound {
                return Err(CkksError::DoesNotFit {
                    operation,
                    found: self.values.text(index),
                    index,
                    scale: scale.to_string(),
                    level,
                    bound,
                });
            }
        }
        Ok(())
    }
}

impl Context {
    /// The bound below which |values| at this level and scale must stay: half the modulus over the
    /// scale. Infinite where it is beyond floats.
    pub fn message_bound(&self, level: usize, scale: &Scale) -> f64 {
        // The margin keeps a value that rounds up inside.
        let margin = 2f64.powi(-30);
        (self.parameters().chain().log_q(level) - 1.0 - scale.log2()).exp2() * (1.0 - margin)
    }

    /// Encodes a message at a level and a scale.
    ///
    /// Coefficients are rounded to the nearest integer, exactly at any scale: past 2^53 the integer
    /// is the coefficient's 53-bit mantissa times a power of two. A constant is encoded without a
    /// transform, so its only error is that rounding.
    ///
    /// # Errors
    /// The level and scale rules' for a level or scale that the parameters lack;
    /// [`CkksError::Shape`] for more values than slots, or none; [`CkksError::NotFinite`];
    /// [`CkksError::DoesNotFit`] for values outside [`message_bound`](Self::message_bound);
    /// [`CkksError::OutOfMemory`] for a batch that memory does not hold.
    pub fn encode(&self, message: Message<'_>, level: usize, scale: &Scale) -> Result<Plaintext> {
        self.check_message(&message, level, scale)?;
        let batch_shape = message.batch_shape().to_vec();
        let data = if message.shape.is_empty() {
            self.constant(message.values.get(0), level, scale)?
        } else {
            self.message_residues(&message, level, scale)?
        };
        let state = PlainState {
            level,
            scale: scale.clone(),
        };
        Ok(Plaintext {
            parameters: self.parameters().id(),
            state,
            batch_shape,
            data,
        })
    }

    /// Refuses what [`encode`](Self::encode) refuses, but for a lack of memory.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn check_message(&self, message: &Message<'_>, level: usize, scale: &Scale) -> Result<()> {
        self.check_message_shape(message.shape, level, scale)?;
        message.check(level, scale, self.message_bound(level, scale))
    }

    /// Refuses a message's shape, level or scale as [`encode`](Self::encode) does, whatever the values.
    ///
    /// # Errors
    /// As [`encode`](Self::encode), but for the values'.
    pub fn check_message_shape(&self, shape: &[usize], level: usize, scale: &Scale) -> Result<()> {
        let parameters = self.parameters();
        parameters.chain().check_encoding("encode", level, scale)?;
        match shape.last() {
            Some(&count) if !(1..=parameters.slots()).contains(&count) => Err(CkksError::Shape {
                operation: "encode",
                found: format!("a last axis of {count}, shape {shape:?}"),
                expected: format!("1 to {} values for the slots", parameters.slots()),
            }),
            _ => Ok(()),
        }
    }

    fn message_residues(
        &self,
        message: &Message<'_>,
        level: usize,
        scale: &Scale,
    ) -> Result<Buffer> {
        let (n, limbs) = (self.n(), level + 1);
        let batch = batch_size(message.batch_shape());
        let scale = ExactScale::new(scale);
        let mut data = self.result_buffer("encode", batch * limbs * n)?;
        let mut coefficients = vec![0.0; batch * n];
        let count = message.shape.last().copied().unwrap_or(1);
        let items = coefficients.chunks_exact_mut(n).enumerate().collect();
        self.each(items, |(item, coefficients): (usize, &mut [f64])| {
            let slot = |j: usize| message.values.get(item * count + j);
            self.embedding().coefficients(slot, count, coefficients);
            scale.apply(coefficients);
        });
        let items: Vec<Rounded<'_>> = coefficients
            .chunks_exact(n)
            .map(|item| scale.round(item))
            .collect();
        self.each_limb(&mut data, |index, out| {
            let limb = &self.limbs()[index % limbs];
            items[index / limbs].residues(limb, out);
            limb.forward(out);
        });
        Ok(data)
    }

    /// The message of a plaintext: (batch..., slots) complex values.
    ///
    /// Coefficients are lifted to their exact centred integers, whatever the level, and rounded once
    /// to floats.
    ///
    /// # Errors
    /// [`CkksError::ParametersMismatch`] for a plaintext of other parameters.
    pub fn decode(&self, plaintext: &Plaintext) -> Result<Vec<Complex64>> {
        let parameters = self.parameters();
        parameters.check_id("decode", "plaintext", plaintext.parameters)?;
        let slots = parameters.slots();
        let coefficients = self.coefficients(plaintext);
        let mut message = vec![Complex64::default(); batch_size(&plaintext.batch_shape) * slots];
        let items = message
            .chunks_exact_mut(slots)
            .zip(coefficients.chunks_exact(2 * slots));
        self.each(items.collect(), |(message, coefficients)| {
            self.embedding().slots(coefficients, message);
        });
        Ok(message)
    }

    /// The real parts of the message of a plaintext: (batch..., slots).
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_real(&self, plaintext: &Plaintext) -> Result<Vec<f64>> {
        Ok(self
            .decode(plaintext)?
            .into_iter()
            .map(|value| value.re)
            .collect())
    }
}
