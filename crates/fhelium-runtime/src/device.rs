//! Where a value lives and an operation runs.

use crate::RuntimeError;
use std::fmt;
use std::str::FromStr;

/// A place that holds values: the host or one CUDA device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Device {
    /// Host memory.
    #[default]
    Cpu,
    /// The CUDA device of this ordinal.
    Cuda(u32),
}

/// The kinds of places, each with kernels of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum DeviceKind {
    /// The host.
    #[default]
    Cpu,
    /// CUDA devices.
    Cuda,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Cuda => "cuda",
        })
    }
}

impl Device {
    /// The kind of place.
    pub fn kind(self) -> DeviceKind {
        match self {
            Device::Cpu => DeviceKind::Cpu,
            Device::Cuda(_) => DeviceKind::Cuda,
        }
    }

    /// The CUDA device of this ordinal.
    pub(crate) fn cuda(ordinal: usize) -> Self {
        Device::Cuda(u32::try_from(ordinal).unwrap_or(u32::MAX))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

impl FromStr for Device {
    type Err = RuntimeError;

    /// Reads `cpu`, `cuda` (the first CUDA device) or `cuda:1`.
    fn from_str(text: &str) -> Result<Self, RuntimeError> {
        let cuda = |ordinal: &str| ordinal.parse().ok().map(Device::Cuda);
        let device = match text {
            "cpu" => Some(Device::Cpu),
            "cuda" => Some(Device::Cuda(0)),
            _ => text.strip_prefix("cuda:").and_then(cuda),
        };
        device.ok_or_else(|| {
            RuntimeError::Device(format!(
                "device {text:?} is not known; use \"cpu\", \"cuda\" or \"cuda:<number>\""
            ))
        })
    }
}
