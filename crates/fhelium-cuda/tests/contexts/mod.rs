//! A parameter set on the host and on a device, real or emulated.

// Each test program uses its part of this.
#![allow(dead_code)]

#[path = "../host/mod.rs"]
mod host;

use fhelium_ckks::Parameters;
use fhelium_cuda::{Context, ContextOptions, Core, Device};
use std::sync::Arc;

/// Whether there is something to run: a build without kernels has nothing.
pub fn has_kernels() -> bool {
    let built = !fhelium_cuda::built_targets().is_empty();
    if !built {
        eprintln!("skipped: built without kernels (FHELIUM_CUDA=off)");
    }
    built
}

pub fn open() -> Arc<Device> {
    host::device();
    Device::open(0).unwrap()
}

/// The host's context and the device's.
pub fn contexts(parameters: &Parameters, core: Option<Core>) -> (fhelium_ckks::Context, Context) {
    let host = fhelium_ckks::Context::new(parameters, Default::default()).unwrap();
    let options = ContextOptions {
        core,
        ..ContextOptions::default()
    };
    let device = Context::new(&host, &open(), options).unwrap();
    (host, device)
}

/// The same parameters' context on the device of this index; `None` where there is none.
pub fn context_on(host: &fhelium_ckks::Context, index: usize) -> Option<Context> {
    host::device();
    let count = fhelium_cuda::probe().unwrap().devices;
    if index >= count {
        eprintln!("skipped: there are {count} devices");
        return None;
    }
    let device = Device::open(index).unwrap();
    Some(Context::new(host, &device, ContextOptions::default()).unwrap())
}

/// A device's context for what no parameters matter to; `None` in a build without kernels.
pub fn any_context() -> Option<Context> {
    let parameters = Parameters::builder(1, 40).log_n(10).allow_insecure(true);
    has_kernels().then(|| contexts(&parameters.build().unwrap(), None).1)
}
