//! A parameter set on a device: its tables and kernels, and the way there and back.

use crate::device::Device;
use crate::error::{CudaError, Result};
use crate::kernels::{Basis, Conversion, Core, Kernels, Operand, TensorKernels};
use crate::queue::{Buffer, MemoryUse, Queue, Turn};
use crate::tables::Tables;
use crate::unit_times::UnitTimes;
use crate::values::{Ciphertext, Plaintext};
use fhelium_ckks::{CkksError, Parameters, ParametersId};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// How a [`Context`] is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContextOptions {
    /// The arithmetic core; by default the FP64 core where the device is fast at double precision
    /// and every prime is below 2^49.5, else the 64-bit one. The results are the same.
    pub core: Option<Core>,
    /// The most bytes of device memory to use; by default what the device has.
    pub memory_limit: Option<usize>,
    /// Whether base conversions and the transforms behind them run as kernels of their own: slower,
    /// with the same residues, and there to compare the fused ones with.
    pub unfused: bool,
}

/// A parameter set's operations on a device, in the order of one stream. Clones share it.
///
/// Operations have the names, the rules and the residues of [`fhelium_ckks::Context`]'s. They
/// return as soon as they are in the queue; errors of the device itself show at a later call.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    host: fhelium_ckks::Context,
    kernels: Arc<Kernels>,
    tensor_kernels: Arc<TensorKernels>,
    tables: Arc<Tables>,
    unit_times: Mutex<Option<UnitTimes>>,
    /// Last: it may be the last to hold the device, which lets go of kernels properly.
    queue: Arc<Queue>,
}

/// Primes of the FP64 core are below 2^49.5.
const FP64_BITS: f64 = 49.5;

/// Blocks that a launch's second and third axis may have.
const GRID_ROWS: usize = 65535;

impl Context {
    /// Puts a parameter set on a device, with a new stream.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], [`CudaError::CoreTooNarrow`], [`CudaError::Driver`].
    pub fn new(
        host: &fhelium_ckks::Context,
        device: &Arc<Device>,
        options: ContextOptions,
    ) -> Result<Self> {
        let parameters = host.parameters();
        let primes = parameters
            .moduli()
            .iter()
            .chain(parameters.special_moduli());
        let bits = primes.map(|&p| (p as f64).log2()).fold(0.0, f64::max);
        let core = match options.core {
            Some(Core::Fp64) if bits >= FP64_BITS => return Err(CudaError::CoreTooNarrow { bits }),
            Some(core) => core,
            None if device.has_fast_fp64() && bits < FP64_BITS => Core::Fp64,
            None => Core::Integer,
        };
        let _current = device.enter()?;
        let queue = Queue::new(device, options.memory_limit)?;
        let sources = (parameters.digit_size(), parameters.special_moduli().len());
        let digits = parameters.digits(parameters.depth());
        let conversion = |of| Conversion::of(device, parameters, core, of, options.unfused);
        // A mod-down is of both halves.
        let conversions = (conversion((sources.0, digits)), conversion((sources.1, 2)));
        let kernels = Kernels::load(device, parameters.log_n(), core, sources, conversions)?;
        let tables = Tables::new(parameters, core, conversions, &queue)?;
        Ok(Context(Arc::new(Inner {
            host: host.clone(),
            queue,
            kernels: Arc::new(kernels),
            tensor_kernels: Arc::default(),
            tables: Arc::new(tables),
            unit_times: Mutex::default(),
        })))
    }

    /// The same in a stream and with memory of its own.
    pub(crate) fn aside(&self) -> Result<Self> {
        Ok(Context(Arc::new(Inner {
            host: self.0.host.clone(),
            queue: Queue::new(self.device(), None)?,
            kernels: self.0.kernels.clone(),
            tensor_kernels: self.0.tensor_kernels.clone(),
            tables: self.0.tables.clone(),
            unit_times: Mutex::default(),
        })))
    }

    /// The parameters.
    pub fn parameters(&self) -> &Parameters {
        self.0.host.parameters()
    }

    /// The same parameters' context on the CPU.
    pub fn host(&self) -> &fhelium_ckks::Context {
        &self.0.host
    }

    /// The device.
    pub fn device(&self) -> &Arc<Device> {
        self.0.queue.device()
    }

    /// The stream and its memory.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.0.queue
    }

    /// The arithmetic that runs.
    pub fn core(&self) -> Core {
        self.0.kernels.core()
    }

    /// What device memory is in use.
    pub fn memory(&self) -> MemoryUse {
        self.0.queue.memory()
    }

    /// Bytes of the tables of twiddles and constants on the device.
    pub fn tables_nbytes(&self) -> usize {
        self.0.tables.nbytes()
    }

    /// Waits until all operations so far have run.
    ///
    /// # Errors
    /// [`CudaError::Driver`], also for a fault of an earlier operation.
    pub fn synchronize(&self) -> Result<()> {
        self.0.queue.synchronize()
    }

    /// Runs `work` with this context's operations on another library's stream, as
    /// [`Queue::on_stream`] says.
    ///
    /// # Errors
    /// As [`Queue::on_stream`].
    ///
    /// # Safety
    /// As [`Queue::on_stream`].
    pub unsafe fn on_stream<R, E: From<CudaError>>(
        &self,
        stream: usize,
        work: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        let work = || {
            // Captured launches read the tables.
            self.0.queue.keep_for_capture(|| self.0.clone());
            work()
        };
        // SAFETY: the caller's promise.
        unsafe { self.0.queue.on_stream(stream, work) }
    }

    /// Moves a ciphertext to the device.
    ///
    /// # Errors
    /// Values of other parameters, [`CudaError::OutOfMemory`], [`CudaError::Driver`].
    pub fn upload(&self, ciphertext: &fhelium_ckks::Ciphertext) -> Result<Ciphertext> {
        self.check_parameters("upload", "ciphertext", ciphertext.parameters_id())?;
        Ok(Ciphertext {
            parameters: ciphertext.parameters_id(),
            secret: ciphertext.secret_id(),
            state: ciphertext.state().clone(),
            batch_shape: ciphertext.batch_shape().to_vec(),
            data: Arc::new(self.0.queue.upload(ciphertext.data())?),
        })
    }

    /// Moves a ciphertext to the host.
    ///
    /// # Errors
    /// Values of other parameters, [`CudaError::Driver`].
    pub fn download(&self, ciphertext: &Ciphertext) -> Result<fhelium_ckks::Ciphertext> {
        self.check_parameters("download", "ciphertext", ciphertext.parameters)?;
        let joined = self.join("download", &[("ciphertext", &ciphertext.data)])?;
        let data = self.0.queue.download(&ciphertext.data)?;
        joined.leave()?;
        Ok(fhelium_ckks::Ciphertext::from_raw(
            self.parameters(),
            ciphertext.secret,
            ciphertext.state.clone(),
            ciphertext.batch_shape.clone(),
            data,
        )?)
    }

    /// Moves a plaintext to the device.
    ///
    /// # Errors
    /// As [`upload`](Self::upload).
    pub fn upload_plaintext(&self, plaintext: &fhelium_ckks::Plaintext) -> Result<Plaintext> {
        self.check_parameters("upload", "plaintext", plaintext.parameters_id())?;
        Ok(Plaintext {
            parameters: plaintext.parameters_id(),
            state: plaintext.state().clone(),
            batch_shape: plaintext.batch_shape().to_vec(),
            data: Arc::new(self.0.queue.upload(plaintext.data())?),
        })
    }

    /// Moves a plaintext to the host.
    ///
    /// # Errors
    /// As [`download`](Self::download).
    pub fn download_plaintext(&self, plaintext: &Plaintext) -> Result<fhelium_ckks::Plaintext> {
        self.check_parameters("download", "plaintext", plaintext.parameters)?;
        let joined = self.join("download", &[("plaintext", &plaintext.data)])?;
        let data = self.0.queue.download(&plaintext.data)?;
        joined.leave()?;
        Ok(fhelium_ckks::Plaintext::from_raw(
            self.parameters(),
            plaintext.state.clone(),
            plaintext.batch_shape.clone(),
            data,
        )?)
    }

    pub(crate) fn n(&self) -> usize {
        self.parameters().n()
    }

    pub(crate) fn kernels(&self) -> &Kernels {
        &self.0.kernels
    }

    pub(crate) fn tensor_kernels(&self) -> &TensorKernels {
        &self.0.tensor_kernels
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.0.tables
    }

    pub(crate) fn unit_times_cell(&self) -> &Mutex<Option<UnitTimes>> {
        &self.0.unit_times
    }

    pub(crate) fn special_count(&self) -> usize {
        self.0.tables.moduli.len() - self.0.tables.level_primes
    }

    /// The primes of a polynomial with so many limbs.
    pub(crate) fn basis(&self, limbs: usize) -> Basis {
        Basis {
            first: 0,
            split: limbs as u32,
            skip: 0,
            limbs: limbs as u32,
        }
    }

    /// The primes of a level and the special ones.
    pub(crate) fn extended_basis(&self, limbs: usize) -> Basis {
        Basis {
            first: 0,
            split: limbs as u32,
            skip: (self.0.tables.level_primes - limbs) as u32,
            limbs: (limbs + self.special_count()) as u32,
        }
    }

    /// The special primes, and behind them, for a merged rescale, the prime of a level.
    pub(crate) fn special_basis(&self, level: usize, dropped: bool) -> Basis {
        let (first, count) = (
            self.0.tables.level_primes as u32,
            self.special_count() as u32,
        );
        Basis {
            first,
            split: count,
            // Backwards: the kernels' indices wrap.
            skip: (level as u32).wrapping_sub(first + count),
            limbs: count + u32::from(dropped),
        }
    }

    pub(crate) fn check_parameters(
        &self,
        operation: &'static str,
        what: &'static str,
        found: ParametersId,
    ) -> Result<()> {
        let expected = self.parameters().id();
        if found == expected {
            return Ok(());
        }
        Err(CkksError::ParametersMismatch {
            operation,
            what,
            found,
            expected,
        }
        .into())
    }

    /// Refuses a batch with more polynomials than a launch has rows.
    pub(crate) fn check_rows(&self, operation: &'static str, rows: usize) -> Result<()> {
        if rows <= GRID_ROWS {
            return Ok(());
        }
        let found = format!("a batch of {rows} polynomials");
        let expected = format!("at most {GRID_ROWS} in one operation; split the batch");
        Err(CkksError::Shape {
            operation,
            found,
            expected,
        }
        .into())
    }

    /// Makes this context's next work wait for the queues that operands come from, and keeps other
    /// threads' operations out of it.
    ///
    /// # Errors
    /// [`CudaError::OtherDevice`] for an operand of another device, [`CudaError::Capture`] for one
    /// of another stream while this one is being recorded.
    pub(crate) fn join<'a>(
        &'a self,
        operation: &'static str,
        operands: &[(&'static str, &'a Buffer)],
    ) -> Result<Joined<'a>> {
        let turn = self.0.queue.lock()?;
        let mut others = Vec::new();
        for &(what, buffer) in operands {
            self.0.queue.refuse_placeholder(buffer)?;
            self.0.queue.keep(buffer);
            let queue = buffer.queue();
            if Arc::ptr_eq(queue, &self.0.queue) {
                continue;
            }
            if !Arc::ptr_eq(queue.device(), self.device()) {
                return Err(CudaError::OtherDevice {
                    operation,
                    what,
                    found: queue.device().to_string(),
                    expected: self.device().to_string(),
                });
            }
            if self.0.queue.is_capturing_foreign() {
                // Values do not change: waited for once, they are there at each run of the graph.
                queue.wait_for_capture()?;
                continue;
            }
            if self.0.queue.is_capturing() {
                let remedy =
                    "an operand belongs to another engine's stream; move it to this one first";
                return Err(CudaError::Capture { operation, remedy });
            }
            self.0.queue.wait_for(queue)?;
            self.0.queue.follow_reports(queue);
            others.push(queue);
        }
        Ok(Joined {
            here: &self.0.queue,
            others,
            _turn: turn,
        })
    }

    /// The address and strides of polynomials of so many limbs in parts.
    pub(crate) fn operand(&self, buffer: &Buffer, parts: usize, limbs: usize) -> Operand {
        let part_stride = (limbs * self.n()) as u64;
        Operand {
            data: buffer.address(),
            batch_stride: parts as u64 * part_stride,
            part_stride,
        }
    }
}

/// Queues whose buffers this context's work reads.
#[must_use]
pub(crate) struct Joined<'a> {
    here: &'a Queue,
    others: Vec<&'a Arc<Queue>>,
    /// What another thread records or captures is not where this work belongs.
    _turn: Turn<'a>,
}

impl Joined<'_> {
    /// Makes those queues wait for the work in turn, so that what they free is not used any more.
    pub fn leave(self) -> Result<()> {
        self.others
            .into_iter()
            .try_for_each(|other| other.wait_for(self.here))
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("parameters", self.parameters())
            .field("device", self.device())
            .field("core", &self.core())
            .finish()
    }
}
