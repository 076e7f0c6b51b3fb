//! Guards that cust and fhelium compute in one context, in one order and on each other's memory,
//! that neither frees the other's, and that what cannot be shared is refused with its remedy.
//!
//! Without a GPU each test runs again in a process with the emulated driver.

#[path = "../../fhelium-cuda/tests/host/mod.rs"]
mod host;

use cust::context::legacy;
use cust::memory::{AsyncCopyDestination, DeviceBuffer};
use cust::prelude::{CudaFlags, Stream, StreamFlags};
use fhelium_ckks::{KeyGenerator, Message, Parameters, Randomness, SecretKey};
use fhelium_cuda::{Ciphertext, Context, ContextOptions, Device, built_targets, probe};
use fhelium_cust::CustError;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

const EMULATED: &str = "FHELIUM_TEST_EMULATED";

/// The folder of the emulated driver, with what cust and the example need of it.
fn emulated_driver() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut driver = host::emulated_driver_with(&[
        crate_folder.join("examples/add_residues.cu"),
        crate_folder.join("tests/emulated/cust.cpp"),
        // Last: of its weak functions only those count that no other file has.
        crate_folder.join("stub/lib64/libcuda.cpp"),
    ]);
    driver.pop();
    driver
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{error}");
    text
}

/// Runs a test's body where there is a device: here, or in a process with the emulated driver.
fn with_device(test: &str, body: impl FnOnce()) {
    if built_targets().is_empty() {
        eprintln!("skipped: built without kernels");
    } else if probe().is_ok() {
        body();
    } else {
        assert!(std::env::var(EMULATED).is_err(), "{:?}", probe());
        let mut process = Command::new(std::env::current_exe().unwrap());
        process.args(["--exact", test, "--nocapture"]);
        process.env("LD_LIBRARY_PATH", emulated_driver());
        let text = output(process.env(EMULATED, "1"));
        assert!(text.contains("1 passed"), "{text}");
    }
}

/// Both sides in one context.
struct Bench {
    cust: cust::context::Context,
    stream: Stream,
    cpu: fhelium_ckks::Context,
    gpu: Context,
    randomness: Randomness,
    secret: SecretKey,
}

fn driver_device() -> cust::device::Device {
    cust::init(CudaFlags::empty()).unwrap();
    cust::device::Device::get_device(0).unwrap()
}

impl Bench {
    fn new() -> Self {
        let cust = cust::context::Context::new(driver_device()).unwrap();
        let stream = Stream::new(StreamFlags::DEFAULT, None).unwrap();
        let device = fhelium_cust::adopt(&cust, 0).unwrap();
        let parameters = Parameters::builder(1, 40).log_n(11).allow_insecure(true);
        let cpu = fhelium_ckks::Context::new(&parameters.build().unwrap(), Default::default());
        let cpu = cpu.unwrap();
        let gpu = Context::new(&cpu, &device, ContextOptions::default()).unwrap();
        let randomness = Randomness::from_seed_for_tests(3);
        let secret = KeyGenerator::new(&cpu, &randomness).secret().unwrap();
        Bench {
            cust,
            stream,
            cpu,
            gpu,
            randomness,
            secret,
        }
    }

    fn encrypt(&self, message: [f64; 2]) -> fhelium_ckks::Ciphertext {
        let parameters = self.cpu.parameters();
        let message = Message::real(&message, &[2]).unwrap();
        let plaintext = self
            .cpu
            .encode(message, parameters.depth(), parameters.scale());
        let key = &self.secret;
        let encrypted = self.cpu.encrypt(&plaintext.unwrap(), key, &self.randomness);
        encrypted.unwrap()
    }

    fn value(
        &self,
        like: &fhelium_ckks::Ciphertext,
        buffer: fhelium_cuda::Buffer,
    ) -> fhelium_cuda::Result<Ciphertext> {
        let (secret, state) = (like.secret_id(), like.state().clone());
        Ciphertext::from_buffer(&self.gpu, secret, state, Vec::new(), buffer)
    }
}

#[test]
fn both_sides_have_one_context_and_either_may_let_go_first() {
    with_device(
        "both_sides_have_one_context_and_either_may_let_go_first",
        || {
            let bench = Bench::new();
            let device = bench.gpu.device();
            assert!(Arc::ptr_eq(device, &Device::open(0).unwrap()));
            assert_eq!(bench.cust.as_raw() as usize, device.primary_context());
            let x = bench.encrypt([1.0, 2.0]);
            drop((bench.stream, bench.cust));
            let found = bench.gpu.download(&bench.gpu.upload(&x).unwrap()).unwrap();
            assert_eq!(found.data(), x.data());
        },
    );
}

#[test]
fn another_context_and_what_was_made_in_it_are_refused() {
    with_device(
        "another_context_and_what_was_made_in_it_are_refused",
        || {
            let bench = Bench::new();
            let flags = legacy::ContextFlags::SCHED_AUTO;
            let other = legacy::Context::create_and_push(flags, driver_device()).unwrap();
            let stream = Stream::new(StreamFlags::DEFAULT, None).unwrap();
            let memory = Arc::new(DeviceBuffer::from_slice(&[0u64; 4]).unwrap());

            let error = fhelium_cust::adopt(&other, 0).unwrap_err();
            assert!(matches!(error, CustError::NotPrimary { .. }), "{error}");
            assert!(
                error.to_string().contains("context::Context::new"),
                "{error}"
            );

            let work = || -> Result<(), CustError> { panic!("it must not run") };
            let error = fhelium_cust::on_stream(&bench.gpu, &stream, work).unwrap_err();
            assert!(matches!(error, CustError::OtherStream { .. }), "{error}");

            let error = fhelium_cust::borrow(&bench.gpu, memory).unwrap_err();
            assert!(matches!(error, CustError::OtherMemory { .. }), "{error}");
        },
    );
}

#[test]
fn a_device_that_is_not_there_is_named() {
    with_device("a_device_that_is_not_there_is_named", || {
        let context = cust::context::Context::new(driver_device()).unwrap();
        let error = fhelium_cust::adopt(&context, 1000).unwrap_err();
        assert!(error.to_string().contains("cuda:1000"), "{error}");
    });
}

#[test]
fn a_borrowed_cust_buffer_is_an_operand_and_goes_back_to_cust() {
    with_device(
        "a_borrowed_cust_buffer_is_an_operand_and_goes_back_to_cust",
        || {
            let bench = Bench::new();
            let (x, y) = (bench.encrypt([1.0, 2.0]), bench.encrypt([0.5, -4.0]));
            let memory = Arc::new(DeviceBuffer::from_slice(x.data()).unwrap());
            let used = bench.gpu.memory().used;

            let buffer = fhelium_cust::borrow(&bench.gpu, memory.clone()).unwrap();
            assert_eq!(bench.gpu.memory().used, used, "it is not fhelium's memory");
            let borrowed = bench.value(&x, buffer).unwrap();
            let sum = bench.gpu.add(&borrowed, &bench.gpu.upload(&y).unwrap());
            let found = bench.gpu.download(&sum.unwrap()).unwrap();
            assert_eq!(found.data(), bench.cpu.add(&x, &y).unwrap().data());

            assert_eq!(Arc::strong_count(&memory), 2);
            drop(borrowed);
            let memory = Arc::try_unwrap(memory).expect("fhelium has let go");
            assert_eq!(memory.as_host_vec().unwrap(), x.data());
            DeviceBuffer::drop(memory).map_err(|(e, _)| e).unwrap();
        },
    );
}

#[test]
fn memory_that_does_not_fit_its_value_is_refused() {
    with_device("memory_that_does_not_fit_its_value_is_refused", || {
        let bench = Bench::new();
        let x = bench.encrypt([1.0, 2.0]);
        let words = x.data().len();
        let short = bench.gpu.queue().allocate(words - 1).unwrap();
        let error = bench.value(&x, short).unwrap_err().to_string();
        let found = format!("{} residues", words - 1);
        assert!(
            error.contains(&found) && error.contains("2 parts"),
            "{error}"
        );

        let mut state = x.state().clone();
        state.parts = 4;
        let buffer = bench.gpu.queue().allocate(words).unwrap();
        let four = Ciphertext::from_buffer(&bench.gpu, x.secret_id(), state, Vec::new(), buffer);
        assert!(four.unwrap_err().to_string().contains("4 parts"));

        // From the second word of an allocation, which stays the first buffer's.
        let whole = DeviceBuffer::from_slice(&vec![0u64; words + 1]).unwrap();
        let odd = whole.as_device_ptr().wrapping_add(1);
        // SAFETY: the words lie in `whole`, and the buffer that would free them is forgotten.
        let odd = Arc::new(unsafe { DeviceBuffer::from_raw_parts(odd, words) });
        let buffer = fhelium_cust::borrow(&bench.gpu, odd.clone()).unwrap();
        let error = bench.value(&x, buffer).unwrap_err().to_string();
        assert!(error.contains("divisible by 16"), "{error}");
        std::mem::forget(odd);
    });
}

#[test]
fn views_and_lent_streams_reach_the_same_memory_and_free_nothing() {
    with_device(
        "views_and_lent_streams_reach_the_same_memory_and_free_nothing",
        || {
            let bench = Bench::new();
            let (x, y) = (bench.encrypt([1.0, 2.0]), bench.encrypt([0.5, -4.0]));
            let on_gpu = bench.gpu.upload(&x).unwrap();
            let mut copy = bench.gpu.queue().allocate(x.data().len()).unwrap();
            let address = copy.address();
            {
                let lent = fhelium_cust::lend_stream(&bench.gpu);
                let own = bench.gpu.queue().stream().cu_stream();
                assert_eq!(lent.as_inner() as usize, own as usize);
                let source = fhelium_cust::view(on_gpu.buffer());
                let mut target = fhelium_cust::view_mut(&mut copy);
                assert_eq!(target.as_device_ptr().as_raw(), address);
                // SAFETY: both live until the download below, which waits for the stream.
                unsafe { target.async_copy_from(&*source, &lent) }.unwrap();
            }
            let copied = bench.value(&x, copy).unwrap();
            let sum = fhelium_cust::on_stream(&bench.gpu, &bench.stream, || {
                let y = bench.gpu.upload(&y)?;
                Ok::<_, CustError>(bench.gpu.add(&copied, &y)?)
            });
            let found = bench.gpu.download(&sum.unwrap()).unwrap();
            assert_eq!(found.data(), bench.cpu.add(&x, &y).unwrap().data());
            drop(on_gpu);
        },
    );
}

#[test]
fn the_example_runs() {
    with_device("the_example_runs", || {
        let mut folder = std::env::current_exe().unwrap();
        folder.pop();
        folder.set_file_name("examples");
        let text = output(&mut Command::new(folder.join("cust_interop")));
        assert!(text.contains("residues equal"), "{text}");
    });
}
