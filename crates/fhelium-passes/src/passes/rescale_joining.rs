//! `rescale-joining`: a relinearization and its rescale in one operation.

use fhelium_ir::{Attributes, Body, Ckks, IrError, Op, OpKind, Origin, Program, Rewriter, ValueId};

use crate::compilation::Compilation;
use crate::error::PassError;
use crate::pass::{Pass, PassContext, PassResult, PassStats};

/// Joins a `ckks.relinearize`, `ckks.mul_relin` or `ckks.square_relin` with the `ckks.rescale`
/// that alone reads it: dividing by the special primes and by the level's prime at once takes
/// fewer transforms and gives the same residues.
///
/// The joined operation stands where the rescale stood and carries the source line of the
/// relinearization, which asks for the key.
#[derive(Clone, Copy, Debug, Default)]
pub struct RescaleJoining;

impl Pass for RescaleJoining {
    fn name(&self) -> &str {
        "rescale-joining"
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
        let body = program.body();
        let rescale = OpKind::from(Ckks::Rescale);
        let matched = body.ops().iter().filter(|op| op.kind() == rescale).count();
        let taken = taken(body);
        let joined = taken.iter().filter(|&&taken| taken).count();
        if joined > 0 {
            let rewritten = join(&program, &taken).map_err(|error| context.ir_error(error))?;
            compilation.set_program(rewritten);
        }
        Ok(PassResult {
            stats: PassStats {
                matched,
                transformed: joined,
                inserted: joined,
                removed: 2 * joined,
                skipped: matched - joined,
            },
            ..PassResult::default()
        })
    }
}

/// The operation that does the work of one and of the rescale after it.
fn joined(kind: OpKind) -> Option<Ckks> {
    match kind {
        OpKind::Ckks(Ckks::Relinearize) => Some(Ckks::RelinearizeRescale),
        OpKind::Ckks(Ckks::MulRelin) => Some(Ckks::MulRelinRescale),
        OpKind::Ckks(Ckks::SquareRelin) => Some(Ckks::SquareRelinRescale),
        _ => None,
    }
}

/// For each operation whether the rescale that reads it takes it in.
fn taken(body: &Body) -> Vec<bool> {
    let uses = body.uses();
    let mut is_returned = vec![false; body.values().len()];
    for value in body.results() {
        is_returned[value.index()] = true;
    }
    let ops = body.ops().iter();
    ops.map(|op| {
        let [result] = *op.results() else {
            return false;
        };
        joined(op.kind()).is_some()
            && !is_returned[result.index()]
            && matches!(*uses.of(result),
                [reader] if body.ops()[reader].kind() == OpKind::from(Ckks::Rescale))
    })
    .collect()
}

fn join(program: &Program, taken: &[bool]) -> Result<Program, IrError> {
    let body = program.body();
    let taken_in = |value: ValueId| -> Option<&Op> {
        match body.values()[value.index()].origin {
            Origin::Result { op, .. } if taken[op] => Some(&body.ops()[op]),
            _ => None,
        }
    };
    let mut rewriter = Rewriter::new(program)?;
    for (place, op) in body.ops().iter().enumerate() {
        if taken[place] {
            continue;
        }
        let relinearization = op.operands().first().and_then(|&value| taken_in(value));
        let Some((first, kind)) =
            relinearization.and_then(|first| Some((first, joined(first.kind())?)))
        else {
            rewriter.copy(op)?;
            continue;
        };
        let operands = rewriter.map_all(first.operands())?;
        let location = first.location().or(op.location()).cloned();
        let result = rewriter
            .builder()
            .one(kind, &operands, &Attributes::new(), location)?;
        rewriter.replace(op, &[result])?;
    }
    rewriter.finish()
}
