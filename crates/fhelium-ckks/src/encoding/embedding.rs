//! The canonical embedding by a complex transform of length N/2.
//!
//! With c_k = a_k + i a_(k + N/2) for a real polynomial sum a_k X^k, and a root w = zeta^(4t + 1),
//! w^(N/2) = i, so the polynomial's value is sum over k < N/2 of c_k zeta^k exp(2 pi i t k / (N/2)):
//! a transform of the twisted c_k whose entry t is the slot j with 5^j = 4t + 1 modulo 2N.

use super::Complex64;
use rustfft::{Fft, FftPlanner};
use std::f64::consts::PI;
use std::sync::Arc;

/// zeta^k for k < N/2: what the coefficients are multiplied by before the transform to slots.
pub fn twist(n: usize) -> Vec<Complex64> {
    let power = |k| Complex64::cis(PI * k as f64 / n as f64);
    (0..n / 2).map(power).collect()
}

/// For each slot j the transform's index t, with 5^j = 4t + 1 modulo 2N.
pub fn slot_order(n: usize) -> Vec<u32> {
    let powers = std::iter::successors(Some(1usize), |power| Some(power * 5 % (2 * n)));
    powers.take(n / 2).map(|power| (power / 4) as u32).collect()
}

/// Tables for one ring degree.
pub(crate) struct Embedding {
    to_coefficients: Arc<dyn Fft<f64>>,
    to_slots: Arc<dyn Fft<f64>>,
    /// zeta^k for k < N/2.
    twist: Vec<Complex64>,
    /// The transform's index t for each slot.
    order: Vec<u32>,
}

impl Embedding {
    pub fn new(n: usize) -> Self {
        let slots = n / 2;
        let mut planner = FftPlanner::new();
        Embedding {
            to_coefficients: planner.plan_fft_forward(slots),
            to_slots: planner.plan_fft_inverse(slots),
            twist: twist(n),
            order: slot_order(n),
        }
    }

    /// The N real coefficients whose first `count` slots are given and whose others are zero.
    pub fn coefficients(
        &self,
        slot: impl Fn(usize) -> Complex64,
        count: usize,
        coefficients: &mut [f64],
    ) {
        let mut values = vec![Complex64::default(); self.order.len()];
        for (j, &t) in self.order[..count].iter().enumerate() {
            values[t as usize] = slot(j);
        }
        self.to_coefficients.process(&mut values);
        let (real, imaginary) = coefficients.split_at_mut(self.order.len());
        let norm = 1.0 / self.order.len() as f64;
        for (((value, twist), re), im) in values.iter().zip(&self.twist).zip(real).zip(imaginary) {
            let untwisted = value * twist.conj() * norm;
            (*re, *im) = (untwisted.re, untwisted.im);
        }
    }

    /// The N/2 slots of N real coefficients.
    pub fn slots(&self, coefficients: &[f64], slots: &mut [Complex64]) {
        let (real, imaginary) = coefficients.split_at(self.order.len());
        let mut values: Vec<_> = real
            .iter()
            .zip(imaginary)
            .zip(&self.twist)
            .map(|((&re, &im), twist)| Complex64::new(re, im) * twist)
            .collect();
        self.to_slots.process(&mut values);
        for (slot, &t) in slots.iter_mut().zip(&self.order) {
            *slot = values[t as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the definition: slot j is the polynomial's value at zeta^(5^j).
    #[test]
    fn slots_are_values_at_powers_of_five() {
        let n = 32;
        let coefficients: Vec<f64> = (0..n).map(|k| ((k * k + 3) % 17) as f64 - 8.0).collect();
        let embedding = Embedding::new(n);
        let mut slots = vec![Complex64::default(); n / 2];
        embedding.slots(&coefficients, &mut slots);
        let mut power = 1;
        for slot in &slots {
            let at = |k: usize| Complex64::cis(PI * (power * k % (2 * n)) as f64 / n as f64);
            let value: Complex64 = (0..n).map(|k| coefficients[k] * at(k)).sum();
            assert!((value - slot).norm() < 1e-11, "{value} {slot}");
            power = power * 5 % (2 * n);
        }
        let mut back = vec![0.0; n];
        embedding.coefficients(|j| slots[j], n / 2, &mut back);
        for (found, expected) in back.iter().zip(&coefficients) {
            assert!((found - expected).abs() < 1e-12);
        }
    }
}
