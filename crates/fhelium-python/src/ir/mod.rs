//! Programs, their types and their builder.

mod attributes;
mod builder;
mod outputs;
mod program;
mod types;

pub use attributes::{attributes_from, attributes_to_python, operation_from_name};
pub use builder::PyProgramBuilder;
pub use outputs::{PyOutput, literal_to_python};
pub use program::{PyOperation, PyProgram};
pub use types::{PyType, dtype_name};

use fhelium_ir::Location;

/// A source line as Python passes it: file, line and function.
pub type LocationTuple = (String, u32, String);

/// A source line from Python.
pub fn location_from(location: Option<LocationTuple>) -> Option<Location> {
    location.map(|(file, line, function)| Location::new(file, line, function))
}

/// A source line for Python.
pub fn location_to_python(location: Option<&Location>) -> Option<LocationTuple> {
    let Location {
        file,
        line,
        function,
    } = location?;
    Some((file.to_string(), *line, function.to_string()))
}
