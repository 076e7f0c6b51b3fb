//! Where NVRTC is.

use crate::Error;
use std::path::PathBuf;
use std::process::Command;

/// The line that installs NVRTC.
pub const PIP_LINE: &str = "python -m pip install nvidia-cuda-nvrtc-cu12==12.8.93";

/// The environment variables that decide where NVRTC is looked for, for `rerun-if-env-changed`.
pub const SEARCH_VARIABLES: [&str; 4] = ["FHELIUM_NVRTC", "PYO3_PYTHON", "PYTHON", "VIRTUAL_ENV"];

/// Asks a Python where the wheel put its library, without importing anything of it.
const ASK_PYTHON: &str = "
import importlib.util, os
spec = importlib.util.find_spec('nvidia')
for folder in (spec.submodule_search_locations or []) if spec else []:
    path = os.path.join(folder, 'cuda_nvrtc', 'lib', 'libnvrtc.so.12')
    if os.path.exists(path):
        print(path)
        break
";

/// Finds NVRTC: the file that `FHELIUM_NVRTC` names, else the wheel in the Python that
/// `PYO3_PYTHON` or `PYTHON` name, the active virtual environment's, or `python3`.
///
/// # Errors
/// [`Error::NotFound`] with the places looked at and the pip line that installs it.
pub fn find_nvrtc() -> Result<PathBuf, Error> {
    if let Some(path) = variable("FHELIUM_NVRTC") {
        let path = PathBuf::from(path);
        if path.exists() {
            return Ok(path);
        }
        return Err(Error::NotFound {
            looked_at: format!("FHELIUM_NVRTC={}", path.display()),
        });
    }
    let mut looked_at = Vec::new();
    for python in pythons() {
        match Command::new(&python).args(["-c", ASK_PYTHON]).output() {
            Ok(output) if output.status.success() => {
                let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                if !path.is_empty() {
                    return Ok(PathBuf::from(path));
                }
                looked_at.push(format!("the packages of {python}"));
            }
            _ => looked_at.push(format!("{python}, which does not run")),
        }
    }
    Err(Error::NotFound {
        looked_at: looked_at.join(", "),
    })
}

fn pythons() -> Vec<String> {
    let mut pythons: Vec<String> = ["PYO3_PYTHON", "PYTHON"]
        .into_iter()
        .filter_map(variable)
        .collect();
    if let Some(environment) = variable("VIRTUAL_ENV") {
        pythons.push(format!("{environment}/bin/python"));
    }
    pythons.push("python3".to_owned());
    pythons.dedup();
    pythons
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
