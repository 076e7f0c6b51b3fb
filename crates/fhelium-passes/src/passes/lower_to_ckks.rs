//! `lower-to-ckks`: keys made operands, products and relinearizations joined.

use fhelium_ir::{
    Attributes, Body, Ckks, He, IrError, KeyKind, Level, Location, Material, Op, OpKind, Origin,
    Program, Rewriter, Type, ValueId,
};
use fhelium_state::ErrorKind;
use smallvec::SmallVec;
use std::collections::HashMap;

use crate::compilation::Compilation;
use crate::error::PassError;
use crate::lowering::{Lowered, Source, key_symbol, lower_operation};
use crate::pass::{Pass, PassContext, PassResult, PassStats};

/// Turns `he` operations into `ckks` operations.
///
/// - A key that the user did not name becomes a declared material: `@rotation_5`,
///   `@relinearization`, `@conjugation`. The reference to it carries the source line that first
///   asked for the key.
/// - A rotation by 0 and a drop of no levels vanish; a product of a value with itself is a square.
/// - A product that only its relinearization reads becomes one `ckks.mul_relin` or
///   `ckks.square_relin`. This holds for `ckks` Programs too.
///
/// Nothing is rescaled, relinearized or aligned that the user did not ask for.
#[derive(Clone, Copy, Debug, Default)]
pub struct LowerToCkks;

impl Pass for LowerToCkks {
    fn name(&self) -> &str {
        "lower-to-ckks"
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
        let deferred = deferred_products(program.body());
        let has_he = |op: &Op| op.kind().level() == Some(Level::He);
        if !program.body().ops().iter().any(has_he) && !deferred.contains(&true) {
            return Ok(PassResult::default());
        }
        let (lowered, stats) =
            lower(&program, deferred).map_err(|error| context.ir_error(error))?;
        compilation.set_program(lowered);
        Ok(PassResult {
            stats,
            ..PassResult::default()
        })
    }
}

fn lower(program: &Program, deferred: Vec<bool>) -> Result<(Program, PassStats), IrError> {
    let mut lowering = Lowering {
        program,
        rewriter: Rewriter::new(program)?,
        deferred,
        keys: HashMap::new(),
        stats: PassStats::default(),
    };
    for (place, op) in program.body().ops().iter().enumerate() {
        lowering.lower(place, op)?;
    }
    Ok((lowering.rewriter.finish()?, lowering.stats))
}

struct Lowering<'a> {
    program: &'a Program,
    rewriter: Rewriter<'a>,
    /// For each operation whether it is a product that its relinearization takes in.
    deferred: Vec<bool>,
    /// References to keys, by kind.
    keys: HashMap<KeyKind, ValueId>,
    stats: PassStats,
}

impl<'a> Lowering<'a> {
    fn lower(&mut self, place: usize, op: &Op) -> Result<(), IrError> {
        if self.deferred[place] {
            self.stats.matched += 1;
            self.stats.transformed += 1;
            self.stats.removed += 1;
            return Ok(());
        }
        let (kind, operands, attributes) = match op.kind() {
            OpKind::He(he) => {
                self.stats.matched += 1;
                self.stats.transformed += 1;
                let body = self.program.body();
                let types: SmallVec<[&Type; 3]> =
                    op.operands().iter().map(|&v| body.type_of(v)).collect();
                let lowered = lower_operation(he, &types, op.attributes()).map_err(|error| {
                    IrError::new(ErrorKind::Compile, error.to_string())
                        .at(op.kind().name(), op.location())
                })?;
                match lowered {
                    Lowered::Operand(operand) => {
                        let value = self.rewriter.map(op.operands()[operand])?;
                        self.stats.removed += 1;
                        return self.rewriter.replace(op, &[value]);
                    }
                    Lowered::Operation {
                        kind,
                        operands,
                        attributes,
                    } => (kind, operands, attributes),
                }
            }
            OpKind::Ckks(Ckks::Relinearize) => {
                let operands = [Source::Operand(0), Source::Operand(1)].as_slice().into();
                (Ckks::Relinearize, operands, op.attributes().clone())
            }
            _ => {
                self.rewriter.copy(op)?;
                return Ok(());
            }
        };
        self.append(op, kind, &operands, &attributes)
    }

    fn append(
        &mut self,
        op: &Op,
        kind: Ckks,
        sources: &[Source],
        attributes: &Attributes,
    ) -> Result<(), IrError> {
        let mut kind = kind;
        let mut operands: SmallVec<[ValueId; 3]> = SmallVec::new();
        for (place, source) in sources.iter().enumerate() {
            match *source {
                Source::Key(key) => operands.push(self.key(key, op.location())?),
                Source::Operand(operand) => {
                    let value = op.operands()[operand];
                    match self.deferred_product(value) {
                        Some(product) if kind == Ckks::Relinearize && place == 0 => {
                            let factors = self.rewriter.map_all(product.operands())?;
                            kind = if is_square(product) {
                                operands.push(factors[0]);
                                Ckks::SquareRelin
                            } else {
                                operands.extend(factors);
                                Ckks::MulRelin
                            };
                        }
                        _ => operands.push(self.rewriter.map(value)?),
                    }
                }
            }
        }
        if kind == Ckks::Mul && is_square(op) {
            kind = Ckks::Square;
            operands.truncate(1);
        }
        let location = op.location().cloned();
        let builder = self.rewriter.builder();
        let result = builder.one(kind, &operands, attributes, location)?;
        self.rewriter.replace(op, &[result])
    }

    /// The product that defines a value, if it waits for its relinearization.
    fn deferred_product(&self, value: ValueId) -> Option<&'a Op> {
        let body = self.program.body();
        match body.values()[value.index()].origin {
            Origin::Result { op, .. } if self.deferred[op] => Some(&body.ops()[op]),
            _ => None,
        }
    }

    /// A reference to the key of a kind, declared on its first use.
    fn key(&mut self, kind: KeyKind, location: Option<&Location>) -> Result<ValueId, IrError> {
        if let Some(&known) = self.keys.get(&kind) {
            return Ok(known);
        }
        let ty = Type::Key(kind);
        let builder = self.rewriter.builder();
        let mut symbol = key_symbol(kind);
        // Data that the user named like this stays apart.
        while let Some(other) = builder.materials().get(symbol.as_str())
            && other.ty != ty
        {
            symbol.push('_');
        }
        if !builder.materials().contains_key(symbol.as_str()) {
            let material = Material::new(ty, format!("the evaluation key for {kind}"));
            builder.material(symbol.as_str(), material)?;
        }
        let reference = builder.reference(symbol.as_str(), location.cloned())?;
        self.stats.inserted += 1;
        self.keys.insert(kind, reference);
        Ok(reference)
    }
}

/// Finds the products of ciphertexts whose only reader is a relinearization.
fn deferred_products(body: &Body) -> Vec<bool> {
    let uses = body.uses();
    let mut is_returned = vec![false; body.values().len()];
    body.results()
        .iter()
        .for_each(|value| is_returned[value.index()] = true);
    let is_deferred = |op: &Op| {
        let [product] = *op.results() else {
            return false;
        };
        let is_product = match op.kind() {
            OpKind::He(He::Square) | OpKind::Ckks(Ckks::Mul | Ckks::Square) => true,
            OpKind::He(He::Mul) => op
                .operands()
                .iter()
                .all(|&value| matches!(body.type_of(value), Type::Ciphertext { .. })),
            _ => false,
        };
        let relinearized = |reader: usize| {
            matches!(
                body.ops()[reader].kind(),
                OpKind::He(He::Relinearize) | OpKind::Ckks(Ckks::Relinearize)
            )
        };
        is_product
            && !is_returned[product.index()]
            && matches!(*uses.of(product), [reader] if relinearized(reader))
    };
    body.ops().iter().map(is_deferred).collect()
}

/// Whether a product is of one value with itself.
fn is_square(product: &Op) -> bool {
    match *product.operands() {
        [_] => true,
        [x, y] => x == y,
        _ => false,
    }
}
