//! What a Program needs and costs, without changing it.

mod costs;
mod requirements;
mod sizes;

pub use costs::{Cost, Costs, costs, operation_cost};
pub use requirements::{KeyRequirement, Requirements, requirements};
pub use sizes::{limbs, value_bytes};
