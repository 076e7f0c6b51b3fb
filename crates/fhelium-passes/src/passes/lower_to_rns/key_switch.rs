//! Key switching and automorphisms on residues.

use fhelium_ir::{Attributes, Ckks, IrError, KeyKind, Op, Rns, ValueId};
use fhelium_state::{Chain, ErrorKind};

use super::Lowering;

impl Lowering<'_> {
    /// The digits of a polynomial, each lifted to all primes and the special ones.
    pub(super) fn digits(
        &mut self,
        polynomial: ValueId,
        level: usize,
    ) -> Result<Vec<ValueId>, IrError> {
        let Some(size) = self.chain.digit_size() else {
            return Err(IrError::new(
                ErrorKind::Parameter,
                "the special primes of the chain are too few for key switching; their product must \
                 be about as large as the largest prime at least",
            ));
        };
        let coefficients = self.op(Rns::Intt, &[polynomial])?;
        let mut digits = Vec::new();
        for digit in 0..(level + 1).div_ceil(size) {
            let attributes = Attributes::new()
                .with("digit", digit as i64)
                .with("size", size as i64);
            let residues = self.emit(Rns::Decompose, &[coefficients], &attributes)?;
            let lifted = self.op(Rns::ExtendBasis, &[residues])?;
            digits.push(self.op(Rns::Ntt, &[lifted])?);
        }
        Ok(digits)
    }

    /// Two parts that stand for the polynomial of these digits under the key's target secret.
    pub(super) fn switch(&mut self, digits: &[ValueId], key: ValueId) -> Result<ValueId, IrError> {
        let key = self.rewriter.map(key)?;
        let mut sum = None;
        for (digit, &lifted) in digits.iter().enumerate() {
            let attributes = Attributes::new().with("digit", digit as i64);
            let product = self.emit(Rns::KeyProduct, &[lifted, key], &attributes)?;
            sum = Some(match sum {
                None => product,
                Some(sum) => self.op(Rns::Add, &[sum, product])?,
            });
        }
        // A level has one prime at least, so there is a digit.
        let sum = sum.ok_or_else(|| IrError::new(ErrorKind::Compile, "no digits to switch"))?;
        self.op(Rns::ReduceBasis, &[sum])
    }

    /// Rotations and conjugations of one ciphertext, which share its digits.
    pub(super) fn automorphisms(&mut self, op: &Op, kind: Ckks) -> Result<(), IrError> {
        let step = op.attributes().int("step").unwrap_or(0);
        let kinds = match kind {
            Ckks::Conjugate => vec![KeyKind::Conjugation],
            Ckks::Rotate => vec![KeyKind::Rotation { step }],
            _ => {
                let steps = op.attributes().ints("steps").unwrap_or(&[]).iter();
                steps.map(|&step| KeyKind::Rotation { step }).collect()
            }
        };
        let x = op.operands()[0];
        let residues = self.residues(x)?;
        let mut keys = op.operands()[1..].iter();
        let mut shared: Option<(ValueId, Vec<ValueId>)> = None;
        for (&result, kind) in op.results().iter().zip(kinds) {
            if kind == (KeyKind::Rotation { step: 0 }) {
                self.residues[result.index()] = Some(residues);
                continue;
            }
            let Some(&key) = keys.next() else {
                return Err(IrError::new(ErrorKind::Compile, "a key is missing"));
            };
            let (first, digits) = match shared.take() {
                Some(known) => known,
                None => {
                    let first = self.part(residues, 0)?;
                    let second = self.part(residues, 1)?;
                    (first, self.digits(second, self.level(x))?)
                }
            };
            let switched = self.switch(&digits, key)?;
            let of_first = self.part(switched, 0)?;
            let sum = self.op(Rns::Add, &[of_first, first])?;
            let second = self.part(switched, 1)?;
            let both = self.op(Rns::Pack, &[sum, second])?;
            let attributes = Attributes::new().with("galois", galois(kind, self.chain));
            let moved = self.emit(Rns::Automorphism, &[both], &attributes)?;
            self.residues[result.index()] = Some(moved);
            shared = Some((first, digits));
        }
        Ok(())
    }
}

/// The exponent g of the automorphism X to X^g: powers of 5 rotate the slots.
fn galois(kind: KeyKind, chain: &Chain) -> i64 {
    let order = 2 * chain.n() as u128;
    let exponent = match kind {
        KeyKind::Relinearization => 1,
        KeyKind::Conjugation => order - 1,
        KeyKind::Rotation { step } => {
            let mut step = i128::from(step).rem_euclid(chain.slots() as i128);
            let (mut power, mut base) = (1, 5 % order);
            while step > 0 {
                if step & 1 == 1 {
                    power = power * base % order;
                }
                base = base * base % order;
                step >>= 1;
            }
            power
        }
    };
    exponent as i64
}
