//! What a Program needs and costs, without changing it.

mod costs;
mod linear_form;
mod requirements;
mod scratch;
mod sizes;

pub use costs::{Cost, Costs, costs, operation_cost};
pub use linear_form::linear_program;
pub use requirements::{KeyRequirement, Requirements, requirements};
pub use scratch::scratch_bytes;
pub use sizes::{limbs, value_bytes};
