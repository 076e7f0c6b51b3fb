//! A GPU: its context, what it can do, and its kernels, loaded when they are first asked for.

use crate::current::{Current, Held};
use crate::error::{CudaError, Result, driver};
use crate::images::{self, built_targets};
use crate::probe::probe;
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute, CUfunction};
use cudarc::driver::{CudaContext, CudaFunction, CudaModule};
use cudarc::nvrtc::Ptx;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};

/// One GPU of this machine.
///
/// It uses the device's primary context, which other libraries of the process share.
pub struct Device {
    context: Held<Arc<CudaContext>>,
    index: usize,
    name: String,
    capability: u32,
    multiprocessors: u32,
    block_shared: u32,
    memory: usize,
    fast_fp64: bool,
    overlaps_launches: bool,
    modules: Mutex<HashMap<&'static str, Held<Arc<CudaModule>>>>,
    /// Kernels' names by their handles, which the driver tells only since CUDA 12.3.
    names: Mutex<HashMap<usize, String>>,
}

impl Device {
    /// Opens a device; the same one is shared while it is in use.
    ///
    /// # Errors
    /// Those of [`probe`], [`CudaError::BuiltWithoutKernels`], [`CudaError::NoSuchDevice`], [`CudaError::NoImage`],
    /// [`CudaError::Driver`].
    pub fn open(index: usize) -> Result<Arc<Self>> {
        static OPEN: Mutex<Vec<Weak<Device>>> = Mutex::new(Vec::new());
        let built = built_targets();
        if built.is_empty() {
            return Err(CudaError::BuiltWithoutKernels);
        }
        let found = probe()?;
        let count = found.devices;
        if index >= count {
            return Err(CudaError::NoSuchDevice { index, count });
        }
        let mut open = OPEN.lock();
        open.resize(count, Weak::new());
        if let Some(device) = open[index].upgrade() {
            return Ok(device);
        }
        let device = Arc::new(Self::retain(index, found.version, &built)?);
        open[index] = Arc::downgrade(&device);
        Ok(device)
    }

    fn retain(index: usize, driver_version: i32, built: &[String]) -> Result<Self> {
        let _kept = Current::kept()?;
        let context = CudaContext::new(index).map_err(driver("opening the device"))?;
        let context = Held::new(context.clone(), &context);
        // Streams are ordered here, and events between them would break captures.
        // SAFETY: every access to a buffer goes through `Queue`, which orders streams itself.
        unsafe { context.disable_event_tracking() };
        let attribute = |attribute| {
            context
                .attribute(attribute)
                .map_err(driver("asking for an attribute of the device"))
        };
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let capability = (10 * major + minor) as u32;
        let name = context
            .name()
            .map_err(driver("asking for the device's name"))?;
        let Some(image) = images::select(KERNEL_FILE, capability) else {
            return Err(CudaError::NoImage {
                device: name,
                capability,
                built: built.join(", "),
            });
        };
        let multiprocessors =
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32;
        let block_shared =
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as u32;
        let memory = context
            .total_mem()
            .map_err(driver("asking for the device's memory"))?;
        // 2 on data-centre GPUs, 32 or 64 on the others.
        let single_to_double =
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)?;
        Ok(Device {
            context,
            index,
            name,
            capability,
            multiprocessors,
            block_shared,
            memory,
            fast_fp64: single_to_double <= 4,
            // Programmatic dependent launches, and their capture, are of Hopper and CUDA 12.3.
            overlaps_launches: image.overlaps_launches() && driver_version >= 12030,
            modules: Mutex::default(),
            names: Mutex::default(),
        })
    }

    /// Its index among the devices that the driver shows.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The vendor's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ten times the major compute capability plus the minor.
    pub fn capability(&self) -> u32 {
        self.capability
    }

    /// Multiprocessors.
    pub fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// Bytes of shared memory that a block may have.
    pub(crate) fn block_shared(&self) -> u32 {
        self.block_shared
    }

    /// Bytes of memory, used and free.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Whether double precision runs at half the rate of single, so that the FP64 core pays.
    pub fn has_fast_fp64(&self) -> bool {
        self.fast_fp64
    }

    /// Whether a launch may be set up while the one before runs.
    pub(crate) fn overlaps_launches(&self) -> bool {
        self.overlaps_launches
    }

    /// The handle of its primary context, a `CUcontext`.
    pub fn primary_context(&self) -> usize {
        self.context.cu_ctx() as usize
    }

    pub(crate) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// Has this thread work in the device's context, until what is returned is dropped.
    ///
    /// # Errors
    /// [`CudaError::Forked`], [`CudaError::Driver`].
    pub(crate) fn enter(&self) -> Result<Current> {
        Current::of(&self.context)
    }

    /// A kernel by its file and name.
    pub(crate) fn function(&self, stem: &'static str, name: &str) -> Result<CudaFunction> {
        let module = self.module(stem)?;
        let function = module
            .load_function(name)
            .map_err(driver("looking up a kernel"))?;
        let handle = function.cu_function() as usize;
        self.names.lock().insert(handle, name.to_owned());
        Ok(function)
    }

    /// The name of a kernel that was looked up here.
    pub(crate) fn name_of(&self, function: CUfunction) -> String {
        let names = self.names.lock();
        names.get(&(function as usize)).cloned().unwrap_or_default()
    }

    fn module(&self, stem: &'static str) -> Result<Arc<CudaModule>> {
        let _current = self.enter()?;
        let mut modules = self.modules.lock();
        if let Some(module) = modules.get(stem) {
            return Ok(Arc::clone(module));
        }
        let image = images::select(stem, self.capability).ok_or_else(|| CudaError::NoImage {
            device: self.name.clone(),
            capability: self.capability,
            built: built_targets().join(", "),
        })?;
        let module = self
            .context
            .load_module(Ptx::from_binary(image.bytes.to_vec()));
        let module = module.map_err(|error| match error.0 {
            sys::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
            | sys::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => CudaError::Driver {
                call: "loading kernels",
                reason: format!(
                    "{:?}: the driver takes neither the machine code nor the PTX for {} of capability {}; \
                     update the driver",
                    error.0, self.name, self.capability
                ),
            },
            _ => driver("loading kernels")(error),
        })?;
        modules.insert(stem, Held::new(module.clone(), &self.context));
        Ok(module)
    }
}

/// One of the kernel files, which are all compiled for the same targets.
const KERNEL_FILE: &str = "ntt";

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{} ({})", self.index, self.name)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({self})")
    }
}
