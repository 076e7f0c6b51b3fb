//! `lower-to-rns`: operations taken apart into residue arithmetic.

mod elementwise;
mod key_switch;

pub(crate) use elementwise::residue_operation;

use std::collections::BTreeSet;

use fhelium_ir::{
    Attributes, Ckks, IrError, Location, Op, OpKind, Program, Rewriter, Rns, Type, ValueId,
};
use fhelium_state::Chain;

use crate::compilation::Compilation;
use crate::error::PassError;
use crate::pass::{Pass, PassContext, PassResult};

/// Turns `ckks` operations into `rns` operations, at which fusing works.
///
/// Ciphertexts become residues where an operation that was taken apart reads them and ciphertexts
/// again where one that stays whole does, or where they are returned. Key switching is the hybrid
/// one of Han and Ki, "Better bootstrapping for approximate homomorphic encryption", 2020, section
/// 3, with digits of [`Chain::digit_size`] primes; a rotation's key switches to the secret that the
/// automorphism brings back, so that the automorphism comes last and rotations of one value share
/// their digits.
///
/// Encodings and operations on batch axes stay whole. Not part of the default pipeline.
#[derive(Clone, Debug, Default)]
pub struct LowerToRns {
    /// Operations that stay whole beside those that always do.
    pub keep: BTreeSet<Ckks>,
}

impl Pass for LowerToRns {
    fn name(&self) -> &str {
        "lower-to-rns"
    }

    fn cache_key(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }

    fn run(
        &self,
        compilation: &mut Compilation,
        context: &PassContext<'_>,
    ) -> Result<PassResult, PassError> {
        let program = compilation.program().clone();
        let is_ckks = |op: &Op| matches!(op.kind(), OpKind::Ckks(_));
        let (Some(chain), true) = (program.chain(), program.body().ops().iter().any(is_ckks))
        else {
            return Ok(PassResult::default());
        };
        let mut lowering = Lowering {
            program: &program,
            chain,
            rewriter: Rewriter::new(&program).map_err(|error| context.ir_error(error))?,
            residues: vec![None; program.body().values().len()],
            location: None,
            result: PassResult::default(),
        };
        lowering
            .lower_all(&self.keep)
            .map_err(|error| context.ir_error(error))?;
        let Lowering {
            rewriter,
            mut result,
            ..
        } = lowering;
        let lowered = rewriter.finish().map_err(|error| context.ir_error(error))?;
        result.stats.inserted = lowered
            .body()
            .ops()
            .iter()
            .filter(|op| matches!(op.kind(), OpKind::Rns(_)))
            .count();
        compilation.set_program(lowered);
        Ok(result)
    }
}

/// Whether an operation has no form in residue arithmetic.
fn stays_whole(kind: Ckks) -> bool {
    matches!(
        kind,
        Ckks::Encode | Ckks::SumBatch | Ckks::BatchSlice | Ckks::BatchReshape | Ckks::StackBatch
    )
}

struct Lowering<'a> {
    program: &'a Program,
    chain: &'a Chain,
    rewriter: Rewriter<'a>,
    /// Residues of old values, where there are some by now.
    residues: Vec<Option<ValueId>>,
    /// The line that made the operation at hand.
    location: Option<Location>,
    result: PassResult,
}

impl Lowering<'_> {
    fn lower_all(&mut self, keep: &BTreeSet<Ckks>) -> Result<(), IrError> {
        let body = self.program.body();
        for op in body.ops() {
            self.location = op.location().cloned();
            let OpKind::Ckks(kind) = op.kind() else {
                self.keep(op)?;
                continue;
            };
            self.result.stats.matched += 1;
            if stays_whole(kind) || keep.contains(&kind) {
                self.result.stats.skipped += 1;
                self.keep(op)?;
                continue;
            }
            self.result.stats.transformed += 1;
            self.result.stats.removed += 1;
            self.lower(op, kind)
                .map_err(|error| error.at(op.kind().name(), op.location()))?;
        }
        self.location = None;
        for &returned in body.results() {
            self.whole(returned)?;
        }
        Ok(())
    }

    /// Keeps an operation as it is, over whole values.
    fn keep(&mut self, op: &Op) -> Result<(), IrError> {
        for &operand in op.operands() {
            self.whole(operand)?;
        }
        self.rewriter.copy(op)?;
        Ok(())
    }

    /// The ciphertext, plaintext or other value itself.
    fn whole(&mut self, old: ValueId) -> Result<ValueId, IrError> {
        let made = self.rewriter.map(old);
        let (
            Err(_),
            Some(residues),
            Type::Ciphertext {
                state: Some(state), ..
            },
        ) = (&made, self.residues[old.index()], self.program.type_of(old))
        else {
            return made;
        };
        let attributes = Attributes::new().with("scale", state.scale.clone());
        let new = self.emit(Rns::Ciphertext, &[residues], &attributes)?;
        self.rewriter.bind(old, new);
        Ok(new)
    }

    /// The residues of a ciphertext or plaintext.
    fn residues(&mut self, old: ValueId) -> Result<ValueId, IrError> {
        if let Some(known) = self.residues[old.index()] {
            return Ok(known);
        }
        let whole = self.rewriter.map(old)?;
        let residues = self.emit(Rns::Residues, &[whole], &Attributes::new())?;
        self.residues[old.index()] = Some(residues);
        Ok(residues)
    }

    /// The residues of a ciphertext, or those of a plaintext by the primes of a ciphertext's level.
    fn plain_residues(&mut self, old: ValueId, level: usize) -> Result<ValueId, IrError> {
        let residues = self.residues(old)?;
        let Type::Plaintext {
            state: Some(state), ..
        } = self.program.type_of(old)
        else {
            return Ok(residues);
        };
        match state.level.saturating_sub(level) {
            0 => Ok(residues),
            count => {
                let attributes = Attributes::new().with("count", count as i64);
                self.emit(Rns::DropLimbs, &[residues], &attributes)
            }
        }
    }

    fn emit(
        &mut self,
        kind: Rns,
        operands: &[ValueId],
        attributes: &Attributes,
    ) -> Result<ValueId, IrError> {
        let location = self.location.clone();
        self.rewriter
            .builder()
            .one(kind, operands, attributes, location)
    }

    fn op(&mut self, kind: Rns, operands: &[ValueId]) -> Result<ValueId, IrError> {
        self.emit(kind, operands, &Attributes::new())
    }

    fn part(&mut self, residues: ValueId, part: i64) -> Result<ValueId, IrError> {
        self.emit(
            Rns::ExtractPart,
            &[residues],
            &Attributes::new().with("part", part),
        )
    }

    fn level(&self, old: ValueId) -> usize {
        match self.program.type_of(old) {
            Type::Ciphertext {
                state: Some(state), ..
            } => state.level,
            _ => 0,
        }
    }

    fn lower(&mut self, op: &Op, kind: Ckks) -> Result<(), IrError> {
        let operands = op.operands();
        let x = operands[0];
        if let Some(rns) = residue_operation(kind) {
            let level = self.level(op.results()[0]);
            let operands = operands.iter();
            let operands: Vec<ValueId> = operands
                .map(|&operand| self.plain_residues(operand, level))
                .collect::<Result<_, _>>()?;
            let result = self.emit(rns, &operands, op.attributes())?;
            self.residues[op.results()[0].index()] = Some(result);
            return Ok(());
        }
        let result = match kind {
            Ckks::Mul => {
                let product = self.product(x, operands[1])?;
                self.op(Rns::Pack, &product)?
            }
            Ckks::Square => {
                let product = self.product(x, x)?;
                self.op(Rns::Pack, &product)?
            }
            Ckks::MulRelin => self.relinearized_product(x, operands[1], operands[2])?,
            Ckks::SquareRelin => self.relinearized_product(x, x, operands[1])?,
            Ckks::Relinearize => self.relinearized(x, operands[1])?,
            Ckks::MulRelinRescale => {
                let product = self.relinearized_product(x, operands[1], operands[2])?;
                self.op(Rns::Rescale, &[product])?
            }
            Ckks::SquareRelinRescale => {
                let product = self.relinearized_product(x, x, operands[1])?;
                self.op(Rns::Rescale, &[product])?
            }
            Ckks::RelinearizeRescale => {
                let product = self.relinearized(x, operands[1])?;
                self.op(Rns::Rescale, &[product])?
            }
            Ckks::Rescale => {
                let x = self.residues(x)?;
                self.op(Rns::Rescale, &[x])?
            }
            Ckks::Rotate | Ckks::Conjugate | Ckks::RotateHoisted => {
                return self.automorphisms(op, kind);
            }
            // Those that stay whole; the others were residue operations.
            _ => return self.keep(op),
        };
        self.residues[op.results()[0].index()] = Some(result);
        Ok(())
    }

    /// Two parts of the product of two ciphertexts.
    fn relinearized_product(
        &mut self,
        x: ValueId,
        y: ValueId,
        key: ValueId,
    ) -> Result<ValueId, IrError> {
        let parts = self.product(x, y)?;
        self.switched(parts, self.level(x), key)
    }

    /// Two parts of a ciphertext of three.
    fn relinearized(&mut self, x: ValueId, key: ValueId) -> Result<ValueId, IrError> {
        let residues = self.residues(x)?;
        let parts = [
            self.part(residues, 0)?,
            self.part(residues, 1)?,
            self.part(residues, 2)?,
        ];
        self.switched(parts, self.level(x), key)
    }

    /// The first two parts and the key switch of the third.
    fn switched(
        &mut self,
        [first, second, third]: [ValueId; 3],
        level: usize,
        key: ValueId,
    ) -> Result<ValueId, IrError> {
        let two = self.op(Rns::Pack, &[first, second])?;
        let digits = self.digits(third, level)?;
        let switched = self.switch(&digits, key)?;
        self.op(Rns::Add, &[two, switched])
    }

    /// The three parts of a product.
    fn product(&mut self, x: ValueId, y: ValueId) -> Result<[ValueId; 3], IrError> {
        let is_square = x == y;
        let (x, y) = (self.residues(x)?, self.residues(y)?);
        let (x0, x1) = (self.part(x, 0)?, self.part(x, 1)?);
        let (y0, y1) = if is_square {
            (x0, x1)
        } else {
            (self.part(y, 0)?, self.part(y, 1)?)
        };
        let first = self.op(Rns::Mul, &[x0, y0])?;
        let cross = self.op(Rns::Mul, &[x1, y0])?;
        let second = if is_square {
            self.op(Rns::Add, &[cross, cross])?
        } else {
            self.op(Rns::MulAdd, &[x0, y1, cross])?
        };
        let third = self.op(Rns::Mul, &[x1, y1])?;
        Ok([first, second, third])
    }
}
