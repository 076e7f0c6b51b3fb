//! Rotations and conjugation.

use super::switch::Switched;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::Added;
use crate::keys::KeySwitchKey;
use crate::values::Ciphertext;
use fhelium_ckks::KeyKind;

impl Context {
    /// Slot i receives slot i + `step`, modulo the slots.
    ///
    /// # Errors
    /// The level and scale rules' for an operand of three parts, a key of another step, kind,
    /// secret, parameter set or device, and the device's.
    pub fn rotate(
        &self,
        ciphertext: &Ciphertext,
        step: i64,
        key: &KeySwitchKey,
    ) -> Result<Ciphertext> {
        let kind = KeyKind::rotation(step, self.parameters().slots());
        self.automorphism("rotate", ciphertext, kind, key)
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
        self.automorphism("conjugate", ciphertext, KeyKind::Conjugation, key)
    }

    fn automorphism(
        &self,
        operation: &'static str,
        ciphertext: &Ciphertext,
        kind: KeyKind,
        key: &KeySwitchKey,
    ) -> Result<Ciphertext> {
        self.automorphisms(operation, ciphertext, &[(kind, key)])
            .map(|mut results| results.swap_remove(0))
    }

    fn automorphisms(
        &self,
        operation: &'static str,
        ciphertext: &Ciphertext,
        kinds: &[(KeyKind, &KeySwitchKey)],
    ) -> Result<Vec<Ciphertext>> {
        self.check_parameters(operation, "ciphertext", ciphertext.parameters)?;
        let state = ciphertext.state.automorphism(operation)?;
        for &(kind, key) in kinds {
            self.check_key(operation, key, ciphertext.secret, kind)?;
        }
        let _turn = self.queue().lock()?;
        let mut operands = vec![("ciphertext", &*ciphertext.data)];
        operands.extend(kinds.iter().map(|(_, key)| ("key", &*key.data)));
        let joined = self.join(operation, &operands)?;
        let results = kinds
            .iter()
            .map(|_| {
                self.result(
                    ciphertext.secret,
                    state.clone(),
                    ciphertext.batch_shape.clone(),
                )
            })
            .collect::<Result<Vec<_>>>()?;
        let parts = self.polynomials(ciphertext);
        let switched = Switched {
            operation,
            level: state.level,
            batch: ciphertext.items(),
            own: parts.part(1),
            factor: None,
            added: Added {
                a: parts,
                parts: 1,
                ..Added::NONE
            },
            rescale: false,
        };
        let targets: Vec<_> = kinds
            .iter()
            .zip(&results)
            .map(|(&(kind, key), result)| (key, kind, result))
            .collect();
        self.switch(&switched, &targets)?;
        joined.leave()?;
        Ok(results)
    }
}
