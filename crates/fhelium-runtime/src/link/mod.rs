//! Turning a Program into something that runs.

mod executable;
mod footprint;
mod host_part;
mod kept;
mod keys;
mod linker;
mod manifest;
mod places;
mod planned;
mod prediction;
mod replay;
mod sources;
mod tape;

pub(crate) use executable::check_places;
pub use executable::{Executable, Measured};
pub use host_part::HostWork;
pub use keys::RequiredKey;
pub use linker::{LinkOptions, link};
pub use manifest::{Manifest, ManifestEntry, Memory};
pub use prediction::predicted_time;
pub use replay::Replays;
