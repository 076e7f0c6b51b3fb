//! `dead-values`: what nothing reads.

use fhelium_ir::{Core, IrError, OpKind, Program, Rewriter};
use std::collections::HashSet;

use crate::compilation::Compilation;
use crate::error::PassError;
use crate::pass::{Pass, PassContext, PassResult, PassStats};

/// Removes operations whose results neither the outputs nor another kept operation read, and the
/// declarations of materials that no operation refers to any more.
///
/// Every operation of the table may be removed: none does anything but give its results. Inputs
/// stay, since callers pass them.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeadValues;

impl Pass for DeadValues {
    fn name(&self) -> &str {
        "dead-values"
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
        let mut is_read = vec![false; body.values().len()];
        body.results()
            .iter()
            .for_each(|v| is_read[v.index()] = true);
        let mut is_live = vec![false; body.ops().len()];
        let mut materials = HashSet::new();
        for (place, op) in body.ops().iter().enumerate().rev() {
            is_live[place] = op.results().iter().any(|value| is_read[value.index()]);
            if !is_live[place] {
                continue;
            }
            op.operands().iter().for_each(|v| is_read[v.index()] = true);
            if op.kind() == OpKind::Core(Core::Material) {
                materials.extend(op.attributes().symbol("symbol"));
            }
        }
        let removed = is_live.iter().filter(|&&live| !live).count();
        if removed == 0 && materials.len() == program.materials().len() {
            return Ok(PassResult::default());
        }
        let kept = keep(&program, &is_live).map_err(|error| context.ir_error(error))?;
        compilation.set_program(kept);
        Ok(PassResult {
            stats: PassStats {
                matched: removed,
                transformed: removed,
                removed,
                ..PassStats::default()
            },
            ..PassResult::default()
        })
    }
}

fn keep(program: &Program, is_live: &[bool]) -> Result<Program, IrError> {
    let mut rewriter = Rewriter::new(program)?;
    for (op, live) in program.body().ops().iter().zip(is_live) {
        if *live {
            rewriter.copy(op)?;
        }
    }
    rewriter.builder().retain_used_materials();
    rewriter.finish()
}
