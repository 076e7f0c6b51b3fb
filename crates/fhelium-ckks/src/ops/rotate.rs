//! Rotations and conjugation.

use super::key_switch::{Digits, KeyProduct};
use crate::context::Context;
use crate::error::Result;
use crate::keys::{KeyKind, KeySwitchKey};
use crate::values::Ciphertext;

impl Context {
    /// Slot i receives slot i + `step`, modulo the slots. A step of 0 is the identity and accepts any
    /// key.
    ///
    /// # Errors
    /// The level and scale rules' for an operand of three parts, and a key of another step, kind,
    /// secret or parameter set.
    pub fn rotate(
        &self,
        ciphertext: &Ciphertext,
        step: i64,
        key: &KeySwitchKey,
    ) -> Result<Ciphertext> {
        self.rotate_hoisted(ciphertext, &[(step, key)])
            .map(|mut rotated| rotated.swap_remove(0))
    }

    /// Several rotations of one ciphertext, which is decomposed once. The residues are those of
    /// single rotations.
    ///
    /// # Errors
    /// As [`rotate`](Self::rotate), before anything is computed.
    pub fn rotate_hoisted(
        &self,
        ciphertext: &Ciphertext,
        steps: &[(i64, &KeySwitchKey)],
    ) -> Result<Vec<Ciphertext>> {
        let slots = self.parameters().slots();
        let kinds: Vec<_> = steps
            .iter()
            .map(|&(step, key)| (KeyKind::rotation(step, slots), key))
            .collect();
        self.automorphisms("rotate", ciphertext, &kinds)
    }

    /// The complex conjugate of every slot.
    ///
    /// # Errors
    /// As [`rotate`](Self::rotate).
    pub fn conjugate(&self, ciphertext: &Ciphertext, key: &KeySwitchKey) -> Result<Ciphertext> {
        self.automorphisms("conjugate", ciphertext, &[(KeyKind::Conjugation, key)])
            .map(|mut results| results.swap_remove(0))
    }

    fn automorphisms(
        &self,
        operation: &'static str,
        ciphertext: &Ciphertext,
        kinds: &[(KeyKind, &KeySwitchKey)],
    ) -> Result<Vec<Ciphertext>> {
        self.check_ciphertext(operation, ciphertext)?;
        let state = ciphertext.state.automorphism(operation)?;
        let turning = |kind: KeyKind| kind != KeyKind::Rotation { step: 0 };
        for &(kind, key) in kinds.iter().filter(|(kind, _)| turning(*kind)) {
            key.check(operation, self, ciphertext.secret, kind)?;
        }
        let result = |&(kind, _): &(KeyKind, _)| match turning(kind) {
            true => Ok(Ciphertext {
                data: self.result_buffer(operation, ciphertext.data.len())?,
                ..ciphertext.without_data()
            }),
            false => Ok(ciphertext.clone()),
        };
        let mut results = kinds.iter().map(result).collect::<Result<Vec<_>>>()?;
        let words = (state.level + 1) * self.n();
        self.install(|| {
            for (item, parts) in ciphertext.data.chunks_exact(2 * words).enumerate() {
                let digits = self.decompose(state.level, &parts[words..]);
                for (&(kind, key), result) in kinds.iter().zip(&mut results) {
                    if turning(kind) {
                        let out = &mut result.data[item * 2 * words..][..2 * words];
                        self.automorphism(kind, key, &digits, parts, out);
                    }
                }
            }
        });
        Ok(results)
    }

    /// sigma(c_0 + b, a) of one item, where (b, a) is the key's switch of c_1 from s to sigma^-1(s).
    fn automorphism(
        &self,
        kind: KeyKind,
        key: &KeySwitchKey,
        digits: &Digits,
        parts: &[u64],
        out: &mut [u64],
    ) {
        let n = self.n();
        let (c0, polynomial) = parts.split_at(parts.len() / 2);
        let permutation = self.permutation(kind.galois(n));
        let (first, second) = out.split_at_mut(c0.len());
        let rows = first.chunks_exact_mut(n).zip(second.chunks_exact_mut(n));
        let mut switched = self.buffer(parts.len());
        let product = KeyProduct::new(self, digits, polynomial, key);
        self.switch(
            &product,
            &mut switched,
            rows,
            |limb, [b, a], (first, second)| {
                let ring = &self.limbs()[limb];
                ring.add_assign(b, &c0[limb * n..][..n]);
                ring.permute(first, b, &permutation);
                ring.permute(second, a, &permutation);
            },
        );
    }
}
