//! Turning a Program into something that runs.

mod executable;
mod kept;
mod keys;
mod linker;
mod manifest;
mod places;
mod prediction;
mod replay;
mod tape;

pub(crate) use executable::check_places;
pub use executable::{Executable, Measured};
pub use keys::RequiredKey;
pub use linker::{LinkOptions, link};
pub use manifest::{Manifest, ManifestEntry, Memory};
pub use prediction::predicted_time;
pub use replay::Replays;
