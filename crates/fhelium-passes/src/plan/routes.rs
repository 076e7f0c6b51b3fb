//! How each operation is carried out.

use std::collections::BTreeMap;
use std::fmt;

use fhelium_ir::{Body, Op, OpKind, Program};
use fhelium_state::Chain;

use crate::analysis::{Cost, operation_cost};

/// A way to carry an operation out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Route {
    /// The backend's native implementation of the whole operation.
    Native,
    /// Another one, by the name under which a backend knows it.
    Named(String),
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Route::Native => f.write_str("native"),
            Route::Named(name) => f.write_str(name),
        }
    }
}

/// A route and what it is expected to cost.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteChoice {
    /// The route.
    pub route: Route,
    /// Its expected cost, in a unit that all candidates for an operation share.
    pub cost: f64,
}

/// Knows the routes that a target has for an operation.
pub trait RouteCosts: Send + Sync {
    /// The candidates for an operation of `body`, which is a Program's with this chain; the
    /// cheapest is taken, the first of equals. An empty list leaves the operation native.
    fn candidates(&self, op: &Op, body: &Body, chain: Option<&Chain>) -> Vec<RouteChoice>;

    /// A text that stands for the routes and their costs, for the
    /// [cache key](crate::Pass::cache_key) of `route-selection`.
    fn cache_key(&self) -> Option<String> {
        None
    }
}

/// A target that carries every operation out whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct WholeOperations;

impl RouteCosts for WholeOperations {
    fn candidates(&self, op: &Op, body: &Body, chain: Option<&Chain>) -> Vec<RouteChoice> {
        let Cost {
            transforms,
            products,
            conversions,
            key_products,
            ..
        } = operation_cost(op, body, chain);
        // A transform is log2(N) / 2 products and as many sums for each coefficient.
        let log_n = chain.map_or(0.0, |chain| f64::from(chain.log_n()));
        vec![RouteChoice {
            route: Route::Native,
            cost: transforms as f64 * log_n + (products + conversions + 2 * key_products) as f64,
        }]
    }

    fn cache_key(&self) -> Option<String> {
        Some("whole operations".to_owned())
    }
}

/// The route of every operation that computes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutePlan {
    routes: Vec<Option<Route>>,
}

/// What was chosen for the operations of one kind.
pub(crate) struct RouteSummary {
    pub(crate) kind: OpKind,
    pub(crate) selected: Route,
    pub(crate) candidates: Vec<Route>,
    pub(crate) operations: usize,
    pub(crate) cost: f64,
}

impl RoutePlan {
    /// The plan of a Program in which the operations at some places take named routes and the
    /// others the native one. Places outside the Program are not heeded.
    pub fn from_named(program: &Program, named: impl IntoIterator<Item = (usize, String)>) -> Self {
        let ops = program.body().ops().iter();
        let computes = |op: &Op| !matches!(op.kind(), OpKind::Core(_));
        let mut routes: Vec<_> = ops
            .map(|op| computes(op).then_some(Route::Native))
            .collect();
        for (place, name) in named {
            if let Some(Some(route)) = routes.get_mut(place) {
                *route = Route::Named(name);
            }
        }
        RoutePlan { routes }
    }

    /// The operations that do not take the native route, by place, with the names of theirs.
    pub fn named(&self) -> impl Iterator<Item = (usize, &str)> {
        let routes = self.routes.iter().enumerate();
        routes.filter_map(|(place, route)| match route {
            Some(Route::Named(name)) => Some((place, name.as_str())),
            Some(Route::Native) | None => None,
        })
    }

    /// The route of the operation at a place; `None` for references to materials.
    pub fn route(&self, place: usize) -> Option<&Route> {
        self.routes.get(place)?.as_ref()
    }

    /// Chooses for every operation the cheapest candidate.
    pub(crate) fn of(program: &Program, costs: &dyn RouteCosts) -> (Self, Vec<RouteSummary>) {
        let body = program.body();
        let chain = program.chain().map(AsRef::as_ref);
        let mut summaries: BTreeMap<(OpKind, String), RouteSummary> = BTreeMap::new();
        let routes = body.ops().iter().map(|op| {
            if matches!(op.kind(), OpKind::Core(_)) {
                return None;
            }
            let candidates = costs.candidates(op, body, chain);
            let cheapest = candidates.iter().reduce(|best, candidate| {
                if candidate.cost < best.cost {
                    candidate
                } else {
                    best
                }
            });
            let (selected, cost) =
                cheapest.map_or((Route::Native, 0.0), |best| (best.route.clone(), best.cost));
            let summary = summaries
                .entry((op.kind(), selected.to_string()))
                .or_insert_with(|| RouteSummary {
                    kind: op.kind(),
                    selected: selected.clone(),
                    candidates: candidates.into_iter().map(|c| c.route).collect(),
                    operations: 0,
                    cost: 0.0,
                });
            summary.operations += 1;
            summary.cost += cost;
            Some(selected)
        });
        let routes = routes.collect();
        (RoutePlan { routes }, summaries.into_values().collect())
    }
}
