//! What the runtime's tests share: a small engine with keys, and comparisons to the bit.
#![allow(dead_code, reason = "each test binary uses a part")]

use fhelium_runtime::ckks::Parameters;
use fhelium_runtime::ir::{Location, OpKind, OutputTree, Program};
use fhelium_runtime::passes::{Compilation, default_pipeline};
use fhelium_runtime::tensor::Tensor;
use fhelium_runtime::{
    CallSignature, Device, DeviceKind, Engine, EngineOptions, Implementation, Invocation, KeySet,
    MaterialBinding, Operands, OperationBackend, PrepareOptions, Results, RuntimeError,
    Specialization, Value, prepare,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

#[path = "../../../fhelium-cuda/tests/host/mod.rs"]
mod host;

/// Where the tests of this binary compute: `on_cuda` runs those of the other files on a device.
pub fn device() -> Device {
    if env!("CARGO_CRATE_NAME") != "on_cuda" {
        return Device::Cpu;
    }
    host::device();
    Device::Cuda(0)
}

/// Ring degree 2^10, depth 3: fast, and not secure.
pub fn parameters() -> Parameters {
    Parameters::builder(3, 40)
        .log_n(10)
        .allow_insecure(true)
        .build()
        .unwrap()
}

/// An engine with registered keys for the rotation steps 1, 2, 5 and -1, and for conjugation.
pub fn engine() -> &'static (Arc<Engine>, KeySet) {
    static ENGINE: OnceLock<(Arc<Engine>, KeySet)> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let engine = new_engine();
        let keys = engine.keygen(&[1, 2, 5, -1], true).unwrap();
        engine.use_keys(&keys.evaluation()).unwrap();
        (engine, keys)
    })
}

/// An engine on the CPU with the keys of [`engine`]'s.
pub fn twin() -> &'static Arc<Engine> {
    static TWIN: OnceLock<Arc<Engine>> = OnceLock::new();
    TWIN.get_or_init(|| {
        let options = EngineOptions {
            threads: Some(1),
            ..EngineOptions::default()
        };
        let twin = Engine::new(&parameters(), options).unwrap();
        let keys = engine().1.evaluation();
        twin.use_keys(&twin.place_keys(&keys).unwrap()).unwrap();
        twin
    })
}

/// The value in host memory.
pub fn on_host(value: &Value) -> Value {
    match value.device() {
        Device::Cpu => value.clone(),
        Device::Cuda(_) => twin().place_value(value).unwrap(),
    }
}

/// Another engine; its keys are of other secrets.
pub fn new_engine() -> Arc<Engine> {
    static SEEDS: AtomicUsize = AtomicUsize::new(1);
    let options = EngineOptions {
        device: device(),
        threads: Some(1),
        seed: Some(SEEDS.fetch_add(1, Ordering::Relaxed) as u64),
        ..EngineOptions::default()
    };
    Engine::new(&parameters(), options).unwrap()
}

/// Values in [-1, 1) that differ with `seed`.
pub fn message(seed: usize, shape: &[usize]) -> Tensor {
    let len = shape.iter().product::<usize>();
    let values = (0..len).map(|i| ((i * 37 + seed * 101) % 200) as f64 / 100.0 - 1.0);
    Tensor::from_vec(values.collect(), shape).unwrap()
}

pub fn encrypt(engine: &Engine, keys: &KeySet, message: &Tensor) -> Value {
    let plaintext = engine.encode(message, None, None).unwrap();
    engine.encrypt(&plaintext, &keys.public).unwrap().into()
}

pub fn decrypt(engine: &Engine, keys: &KeySet, value: &Value) -> Vec<f64> {
    let plaintext = engine
        .decrypt(value.ciphertext().unwrap(), &keys.secret, None)
        .unwrap();
    engine.decode(&plaintext, true).unwrap().to_vec()
}

/// Whether two values, wherever they are, hold the same residues or elements and say the same of
/// themselves.
pub fn same_bits(left: &Value, right: &Value) -> bool {
    match (&on_host(left), &on_host(right)) {
        (Value::Ciphertext(x), Value::Ciphertext(y)) => {
            x.state() == y.state()
                && x.batch_shape() == y.batch_shape()
                && x.host().unwrap().data() == y.host().unwrap().data()
        }
        (Value::Plaintext(x), Value::Plaintext(y)) => {
            x.state() == y.state()
                && x.batch_shape() == y.batch_shape()
                && x.host().unwrap().data() == y.host().unwrap().data()
        }
        (Value::Tensor(x), Value::Tensor(y)) => {
            x.dtype() == y.dtype()
                && x.shape() == y.shape()
                && x.host().unwrap().to_contiguous().bytes()
                    == y.host().unwrap().to_contiguous().bytes()
        }
        (Value::Key(x), Value::Key(y)) => {
            let (x, y) = (x.host().unwrap(), y.host().unwrap());
            x.key_kind() == y.key_kind() && x.seed() == y.seed() && x.residues() == y.residues()
        }
        _ => false,
    }
}

/// The value leaves of an output, left to right.
pub fn leaves(outputs: &OutputTree<Value>) -> Vec<Value> {
    let mut leaves = Vec::new();
    let collected = outputs.map(&mut |value: &Value| {
        leaves.push(value.clone());
        Ok::<_, std::convert::Infallible>(())
    });
    assert!(collected.is_ok());
    leaves
}

pub fn at(line: u32) -> Option<Location> {
    Some(Location::new("score.py", line, "score"))
}

/// A Program of `func` over the engine's chain, `%x` standing for a fresh ciphertext's type.
pub fn program(engine: &Engine, materials: &str, func: &str) -> Program {
    let chain = engine.parameters().chain();
    let list = |primes: &[u64]| {
        let primes: Vec<String> = primes.iter().map(u64::to_string).collect();
        primes.join(", ")
    };
    let text = format!(
        "program @score {{\n  chain {{ log_n = {}, scale = {}, moduli = [{}], special = [{}] }}\n  \
         {materials}\n  {func}\n}}\n",
        chain.log_n(),
        chain.scale().exact(),
        list(chain.moduli()),
        list(chain.special_moduli()),
    );
    let text = text.replace("!fresh", "!ciphertext<[], level=3, scale=2^40, parts=2>");
    Program::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Prepares a Program on the default pipeline and the standard backend.
pub fn prepared(
    engine: &Arc<Engine>,
    program: Program,
    materials: &[(&str, MaterialBinding)],
    options: PrepareOptions<'_>,
) -> Result<Specialization, RuntimeError> {
    prepared_on(
        engine,
        program,
        materials,
        options,
        &OperationBackend::standard(),
    )
}

pub fn prepared_on(
    engine: &Arc<Engine>,
    program: Program,
    materials: &[(&str, MaterialBinding)],
    options: PrepareOptions<'_>,
    backend: &OperationBackend,
) -> Result<Specialization, RuntimeError> {
    let mut compilation = Compilation::new(program);
    for (symbol, binding) in materials {
        compilation
            .material_bindings
            .insert(*symbol, Arc::new(binding.clone()));
    }
    prepare(
        &compilation,
        &default_pipeline(),
        backend,
        CallSignature::default(),
        engine,
        options,
    )
}

/// Runs a kernel of the standard backend, counts the runs and claims to be faster.
pub struct Counting {
    pub operation: OpKind,
    pub name: &'static str,
    pub cost: f64,
    pub runs: AtomicUsize,
}

impl Counting {
    pub fn new(operation: impl Into<OpKind>, name: &'static str, cost: f64) -> Arc<Self> {
        Arc::new(Counting {
            operation: operation.into(),
            name,
            cost,
            runs: AtomicUsize::new(0),
        })
    }

    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

impl Implementation for Counting {
    fn name(&self) -> &str {
        self.name
    }

    fn operation(&self) -> OpKind {
        self.operation
    }

    fn cost(&self) -> f64 {
        self.cost
    }

    fn device(&self) -> DeviceKind {
        device().kind()
    }

    fn execute(
        &self,
        invocation: &Invocation<'_>,
        operands: Operands,
    ) -> Result<Results, RuntimeError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let standard = OperationBackend::standard();
        let mut kernels = standard.available(self.operation).iter();
        let kernel = kernels.find(|kernel| kernel.device() == self.device());
        kernel.unwrap().execute(invocation, operands)
    }
}
