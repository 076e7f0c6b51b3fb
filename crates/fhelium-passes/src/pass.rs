//! Passes and what they report.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fhelium_ir::{IrError, Location};

use crate::compilation::Compilation;
use crate::error::PassError;
use crate::target::Target;

/// A transformation or analysis of a [`Compilation`].
///
/// A pass reads and replaces the Program, or leaves a plan for it. It must leave a Program that
/// verifies; the pipeline checks that after every pass.
pub trait Pass: Send + Sync {
    /// The name by which a pipeline addresses the pass, such as `rotation-hoisting`.
    fn name(&self) -> &str;

    /// Runs the pass.
    ///
    /// # Errors
    /// A [`PassError`] where the Program does not allow what the pass must do; made with
    /// [`PassContext::error`], so that it names the pass, the operation and the source line. The
    /// pipeline then drops the compilation, however far the pass came.
    fn run(
        &self,
        compilation: &mut Compilation,
        context: &PassContext<'_>,
    ) -> Result<PassResult, PassError>;

    /// A text that stands for what the pass does: two passes with one text leave the same for the
    /// same Program, in this process and in others. It names the pass and every option.
    ///
    /// A pass that gives one promises that it looks at the Program alone, not at bindings or the
    /// workspace. Without one, nothing that the pass had a part in is kept on disk.
    fn cache_key(&self) -> Option<String> {
        None
    }

    /// The same pass with what it has to know of where the Program will run; `None` for a pass that
    /// need not know anything. What it takes from the target is part of its cache key.
    fn for_target(&self, target: &Target) -> Option<Arc<dyn Pass>> {
        let _ = target;
        None
    }
}

/// Where a pass runs.
#[derive(Clone, Copy, Debug)]
pub struct PassContext<'a> {
    pass: &'a str,
    position: usize,
}

impl<'a> PassContext<'a> {
    /// The context of the pass named `pass`, at `position` of its pipeline, counted from 0.
    pub fn new(pass: &'a str, position: usize) -> Self {
        PassContext { pass, position }
    }

    /// The name of the pass that runs.
    pub fn pass(&self) -> &str {
        self.pass
    }

    /// The position of the pass in its pipeline, counted from 0.
    pub fn position(&self) -> usize {
        self.position
    }

    /// An error of the pass that runs.
    pub fn error(&self, message: impl Into<String>) -> PassError {
        PassError::new(self.pass, message)
    }

    /// The error of a Program that the pass that runs built wrongly, or was asked to.
    pub fn ir_error(&self, error: IrError) -> PassError {
        let failure = self.error(error.message.clone()).of_kind(error.kind);
        let failure = match error.operation {
            Some(operation) => failure.at(operation, error.location.clone()),
            None => failure,
        };
        failure.caused_by(error)
    }
}

/// A pass made of a name and a function, for callers outside this crate.
pub struct FunctionPass<F> {
    name: String,
    function: F,
    cache_key: Option<String>,
}

impl<F> FunctionPass<F>
where
    F: Fn(&mut Compilation, &PassContext<'_>) -> Result<PassResult, PassError> + Send + Sync,
{
    /// A pass called `name` that runs `function`.
    pub fn new(name: impl Into<String>, function: F) -> Self {
        FunctionPass {
            name: name.into(),
            function,
            cache_key: None,
        }
    }

    /// The same pass with a [`cache_key`](Pass::cache_key), to be changed whenever the function is.
    #[must_use]
    pub fn with_cache_key(mut self, key: impl Into<String>) -> Self {
        self.cache_key = Some(key.into());
        self
    }
}

impl<F> Pass for FunctionPass<F>
where
    F: Fn(&mut Compilation, &PassContext<'_>) -> Result<PassResult, PassError> + Send + Sync,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn run(
        &self,
        compilation: &mut Compilation,
        context: &PassContext<'_>,
    ) -> Result<PassResult, PassError> {
        (self.function)(compilation, context)
    }

    fn cache_key(&self) -> Option<String> {
        self.cache_key.clone()
    }
}

/// What a pass did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PassResult {
    /// Counts.
    pub stats: PassStats,
    /// What a person may want to know: what was left alone, and why.
    pub diagnostics: Vec<Diagnostic>,
    /// Choices that were made.
    pub decisions: Vec<Decision>,
}

/// Counts of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassStats {
    /// Operations that the pass is about.
    pub matched: usize,
    /// Those of them that it changed.
    pub transformed: usize,
    /// Operations that it made.
    pub inserted: usize,
    /// Operations that it took away.
    pub removed: usize,
    /// Matched operations that it left alone.
    pub skipped: usize,
}

impl PassStats {
    /// Whether the Program changed.
    pub fn changed(&self) -> bool {
        self.transformed + self.inserted + self.removed > 0
    }
}

impl fmt::Display for PassStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} matched, {} transformed, {} inserted, {} removed, {} skipped",
            self.matched, self.transformed, self.inserted, self.removed, self.skipped
        )
    }
}

/// A remark of a pass, with the operation and source line that it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// The remark.
    pub message: String,
    /// The operation's name, such as `ckks.rotate`.
    pub operation: Option<String>,
    /// The line that made the operation.
    pub location: Option<Location>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
        }
        if let Some(operation) = &self.operation {
            write!(f, "{operation}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// A choice among candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What was chosen for.
    pub subject: String,
    /// What was chosen.
    pub selected: String,
    /// All candidates, the selected one too.
    pub candidates: Vec<String>,
    /// Why, with the figures compared.
    pub details: String,
}

/// What one pass of a pipeline did, and how long it took.
#[derive(Clone, Debug, PartialEq)]
pub struct PassReport {
    /// The pass.
    pub name: String,
    /// Its result.
    pub result: PassResult,
    /// Time in the pass itself.
    pub time: Duration,
    /// Time in the verifier after it.
    pub verification: Duration,
    /// Operations of the Program before and after.
    pub operations: (usize, usize),
}

impl fmt::Display for PassReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} ({} -> {} operations, {:.1} ms)",
            self.name,
            self.result.stats,
            self.operations.0,
            self.operations.1,
            self.time.as_secs_f64() * 1e3
        )
    }
}
