//! Whether a build compiles the kernels, and what it does where it cannot.

use crate::Error;
use std::path::PathBuf;

/// What a build is made for, in cargo's words.
#[derive(Clone, Copy, Debug)]
pub struct Platform<'a> {
    /// `CARGO_CFG_TARGET_OS`: `linux`, `macos`.
    pub os: &'a str,
    /// `CARGO_CFG_TARGET_ARCH`: `x86_64`, `aarch64`.
    pub arch: &'a str,
}

impl Platform<'_> {
    /// Whether the build requirements bring NVRTC along, so that a build without it is a mistake
    /// rather than the rule.
    fn always_has_nvrtc(self) -> bool {
        (self.os, self.arch) == ("linux", "x86_64")
    }

    /// Whether CUDA's driver exists there at all.
    fn has_cuda(self) -> bool {
        self.os == "linux"
    }
}

/// What a build does about the kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Compiles them with this library.
    Compile {
        /// NVRTC.
        nvrtc: PathBuf,
    },
    /// Builds for the CPU only.
    CpuOnly {
        /// What to tell the builder, who did not ask for it.
        warning: Option<String>,
    },
}

impl Plan {
    /// Decides from `FHELIUM_CUDA` and the platform; `find` looks for NVRTC and is called only where
    /// it matters.
    ///
    /// Asked with `off`, a build is for the CPU only; with `on`, it stops where NVRTC is missing.
    /// Not asked, it stops on Linux x86-64, where one pip line installs NVRTC and a package that
    /// silently lacks CUDA would be found out only on a user's machine. Elsewhere it goes on for the
    /// CPU only and says so.
    ///
    /// # Errors
    /// [`Error::Request`], and `find`'s.
    pub fn decide(
        request: Option<&str>,
        platform: Platform,
        find: impl FnOnce() -> Result<PathBuf, Error>,
    ) -> Result<Plan, Error> {
        let demanded = match request {
            Some("off") => return Ok(Plan::CpuOnly { warning: None }),
            Some("on") => true,
            Some("") | None => platform.always_has_nvrtc(),
            Some(other) => {
                return Err(Error::Request {
                    found: other.to_owned(),
                });
            }
        };
        let cpu_only = |reason: String| {
            let Platform { os, arch } = platform;
            Plan::CpuOnly {
                warning: Some(format!(
                    "{reason}: this build for {os} {arch} is for the CPU only; FHELIUM_CUDA=off says \
                     that this is wanted, FHELIUM_CUDA=on that it is not"
                )),
            }
        };
        if !demanded && !platform.has_cuda() {
            return Ok(cpu_only("CUDA does not exist there".to_owned()));
        }
        match find() {
            Ok(nvrtc) => Ok(Plan::Compile { nvrtc }),
            Err(Error::NotFound { looked_at }) if !demanded => Ok(cpu_only(format!(
                "the CUDA kernels' compiler, NVRTC, was not found (looked at: {looked_at})"
            ))),
            Err(error) => Err(error),
        }
    }
}
