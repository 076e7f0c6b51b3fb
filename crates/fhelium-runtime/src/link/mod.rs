//! Turning a Program into something that runs.

mod executable;
mod kept;
mod keys;
mod linker;
mod manifest;
mod replay;
mod tape;

pub use executable::Executable;
pub(crate) use executable::check_places;
pub use keys::RequiredKey;
pub use linker::{LinkOptions, link};
pub use manifest::{Manifest, ManifestEntry, Memory};
pub use replay::Replays;
