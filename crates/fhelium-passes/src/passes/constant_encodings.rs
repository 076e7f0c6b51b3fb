//! `constant-encodings`: what need not be computed at every call.

use std::sync::Arc;

use crate::compilation::Compilation;
use crate::error::PassError;
use crate::pass::{Diagnostic, Pass, PassContext, PassResult, PassStats};
use crate::plan::Prologue;

/// Finds the operations that depend on materials and constants only, encodings of captured arrays
/// above all, and leaves the [`Prologue`] plan. The Program stays as it is.
#[derive(Clone, Copy, Debug)]
pub struct ConstantEncodings {
    /// The most bytes that may stay in memory between calls. What does not fit is computed at
    /// each call.
    pub max_resident_bytes: u64,
}

impl Default for ConstantEncodings {
    fn default() -> Self {
        ConstantEncodings {
            max_resident_bytes: 1 << 30,
        }
    }
}

impl Pass for ConstantEncodings {
    fn name(&self) -> &str {
        "constant-encodings"
    }

    fn cache_key(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }

    fn run(
        &self,
        compilation: &mut Compilation,
        _context: &PassContext<'_>,
    ) -> Result<PassResult, PassError> {
        let program = compilation.program();
        let prologue = Prologue::of(program, self.max_resident_bytes);
        let mut result = PassResult {
            stats: PassStats {
                matched: prologue.operations.len() + prologue.over_budget.len(),
                skipped: prologue.over_budget.len(),
                ..PassStats::default()
            },
            ..PassResult::default()
        };
        if let Some(&first) = prologue.over_budget.first() {
            let op = &program.body().ops()[first];
            result.diagnostics.push(Diagnostic {
                message: format!(
                    "{} operations on constants run at every call, this one first: with their \
                     results more than max_resident_bytes = {} bytes would stay in memory",
                    prologue.over_budget.len(),
                    self.max_resident_bytes
                ),
                operation: Some(op.kind().name().to_owned()),
                location: op.location().cloned(),
            });
        }
        compilation.plans_mut().prologue = Some(Arc::new(prologue));
        Ok(result)
    }
}
