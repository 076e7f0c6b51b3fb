//! What planning passes leave for the linker.

mod buffers;
mod prologue;
mod routes;

pub use buffers::{BufferPlan, Lifetime, ValuePlan};
pub use prologue::Prologue;
pub(crate) use prologue::constant_operations;
pub use routes::{Route, RouteChoice, RouteCosts, RoutePlan, WholeOperations};

use std::sync::Arc;

/// The plans made for a Program, each by the pass that its documentation names.
///
/// They speak of operations and values by number, so a [`Compilation`](crate::Compilation) drops
/// them when its Program is replaced.
#[derive(Clone, Debug, Default)]
pub struct Plans {
    /// What need not be computed at every call, by `constant-encodings`.
    pub prologue: Option<Arc<Prologue>>,
    /// How each operation is carried out, by `route-selection`.
    pub routes: Option<Arc<RoutePlan>>,
    /// Which values share memory, by `buffer-planning`.
    pub buffers: Option<Arc<BufferPlan>>,
}
