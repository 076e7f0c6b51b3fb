//! The passes.

mod buffer_planning;
mod constant_encodings;
mod dead_values;
mod linear_fusion;
mod lower_to_ckks;
mod lower_to_rns;
mod rescale_joining;
mod reuse;
mod rotation_hoisting;
mod route_selection;

pub use buffer_planning::BufferPlanning;
pub use constant_encodings::ConstantEncodings;
pub use dead_values::DeadValues;
pub use linear_fusion::LinearFusion;
pub use lower_to_ckks::LowerToCkks;
pub use lower_to_rns::LowerToRns;
pub use rescale_joining::RescaleJoining;
pub use reuse::Reuse;
pub use rotation_hoisting::RotationHoisting;
pub use route_selection::RouteSelection;
