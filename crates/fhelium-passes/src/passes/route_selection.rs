//! `route-selection`: how each operation is carried out.

use std::fmt;
use std::sync::Arc;

use crate::compilation::Compilation;
use crate::error::PassError;
use crate::pass::{Decision, Pass, PassContext, PassResult, PassStats};
use crate::plan::{Route, RouteCosts, RoutePlan, WholeOperations};

/// Chooses the cheapest route of each operation among those that a target has, and leaves the
/// [`RoutePlan`]. The report holds one decision for each kind of operation and route.
#[derive(Clone)]
pub struct RouteSelection {
    costs: Arc<dyn RouteCosts>,
}

impl RouteSelection {
    /// A selection among the routes that `costs` knows.
    pub fn new(costs: Arc<dyn RouteCosts>) -> Self {
        RouteSelection { costs }
    }
}

impl Default for RouteSelection {
    fn default() -> Self {
        RouteSelection::new(Arc::new(WholeOperations))
    }
}

impl fmt::Debug for RouteSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RouteSelection")
    }
}

impl Pass for RouteSelection {
    fn name(&self) -> &str {
        "route-selection"
    }

    fn cache_key(&self) -> Option<String> {
        let costs = self.costs.cache_key()?;
        Some(format!("RouteSelection({costs:?})"))
    }

    fn run(
        &self,
        compilation: &mut Compilation,
        _context: &PassContext<'_>,
    ) -> Result<PassResult, PassError> {
        let (plan, summaries) = RoutePlan::of(compilation.program(), self.costs.as_ref());
        let matched = summaries.iter().map(|summary| summary.operations).sum();
        let decisions = summaries.into_iter().map(|summary| Decision {
            subject: format!("{} x {}", summary.operations, summary.kind),
            selected: summary.selected.to_string(),
            candidates: summary.candidates.iter().map(Route::to_string).collect(),
            details: format!("expected cost {:.0}", summary.cost),
        });
        let decisions = decisions.collect();
        compilation.plans_mut().routes = Some(Arc::new(plan));
        Ok(PassResult {
            stats: PassStats {
                matched,
                ..PassStats::default()
            },
            decisions,
            ..PassResult::default()
        })
    }
}
