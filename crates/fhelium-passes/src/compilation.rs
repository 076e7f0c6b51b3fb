//! What a pipeline works on.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use fhelium_ir::Program;

use crate::pass::PassReport;
use crate::plan::Plans;

/// A Program under compilation, with the data bound to its materials and what passes leave
/// behind.
///
/// Passes change the Program and never look into bindings: the data of a material is known to the
/// runtime alone. Cloning is cheap; clones share bindings and workspace entries.
#[derive(Clone, Debug)]
pub struct Compilation {
    program: Program,
    /// The data of each material, by symbol.
    pub material_bindings: Bindings,
    /// Entries that passes and callers hand to each other, by name.
    pub workspace: Bindings,
    plans: Plans,
    reports: Vec<PassReport>,
}

impl Compilation {
    /// A compilation of `program` with nothing bound.
    pub fn new(program: Program) -> Self {
        Compilation {
            program,
            material_bindings: Bindings::default(),
            workspace: Bindings::default(),
            plans: Plans::default(),
            reports: Vec::new(),
        }
    }

    /// The Program as the passes so far left it.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Puts another Program in place, which makes plans for the old one void.
    pub fn set_program(&mut self, program: Program) {
        self.program = program;
        self.plans = Plans::default();
    }

    /// What planning passes decided for the Program as it stands.
    pub fn plans(&self) -> &Plans {
        &self.plans
    }

    /// Where a planning pass puts its plan.
    pub fn plans_mut(&mut self) -> &mut Plans {
        &mut self.plans
    }

    /// One report for each pass that ran, in order.
    pub fn reports(&self) -> &[PassReport] {
        &self.reports
    }

    /// Puts back what an earlier run of a pipeline left for the Program as it stands: plans and
    /// reports.
    pub fn restore(&mut self, plans: Plans, reports: Vec<PassReport>) {
        self.plans = plans;
        self.reports = reports;
    }

    pub(crate) fn push_report(&mut self, report: PassReport) {
        self.reports.push(report);
    }

    /// The Program alone.
    pub fn into_program(self) -> Program {
        self.program
    }
}

impl From<Program> for Compilation {
    fn from(program: Program) -> Self {
        Compilation::new(program)
    }
}

/// Shared values of any type, by name.
#[derive(Clone, Default)]
pub struct Bindings {
    entries: BTreeMap<String, Arc<dyn Any + Send + Sync>>,
}

impl Bindings {
    /// Binds `name`, and returns what was bound before.
    pub fn insert<T: Any + Send + Sync>(
        &mut self,
        name: impl Into<String>,
        value: Arc<T>,
    ) -> Option<Arc<dyn Any + Send + Sync>> {
        self.entries.insert(name.into(), value)
    }

    /// The value bound to `name`, if it is a `T`.
    pub fn get<T: Any + Send + Sync>(&self, name: &str) -> Option<Arc<T>> {
        self.entries.get(name)?.clone().downcast().ok()
    }

    /// Whether anything is bound to `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Unbinds `name`, and returns what was bound.
    pub fn remove(&mut self, name: &str) -> Option<Arc<dyn Any + Send + Sync>> {
        self.entries.remove(name)
    }

    /// The bound names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The number of bound names.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is bound.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl fmt::Debug for Bindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.entries.keys()).finish()
    }
}
