//! Guards that arrays on a device are encoded there: to the residues of the same elements given from
//! the host, whatever their element type and strides, in recordings too; and that values which no
//! plaintext holds are refused by what waits next, once, and by nobody else.

mod contexts;

use contexts::{contexts, has_kernels, open};
use cudarc::driver::sys::{self, CUstreamCaptureMode};
use fhelium_ckks::{Complex64, ErrorKind, Message, Parameters, Scale};
use fhelium_cuda::{Context, ContextOptions, CudaError, Plaintext, Tensor, captured_stream};
use fhelium_ir::{Attributes, DType, Tensor as Operation};

fn parameters(depth: usize, scale_bits: u32) -> Parameters {
    let mut builder = Parameters::builder(depth, scale_bits).log_n(10);
    if scale_bits > 51 {
        builder = builder.first_bits(60);
    }
    builder.allow_insecure(true).build().unwrap()
}

/// `None` in a build without kernels.
fn device(depth: usize, scale_bits: u32) -> Option<Context> {
    has_kernels().then(|| contexts(&parameters(depth, scale_bits), None).1)
}

/// Row-major complex numbers in an element type, and what they are in it.
fn uploaded(
    device: &Context,
    dtype: DType,
    values: &[Complex64],
    shape: &[usize],
) -> (Tensor, Vec<Complex64>) {
    let (mut bytes, mut exact) = (Vec::new(), Vec::new());
    for value in values {
        let (re, im) = (value.re, value.im);
        let mut put = |value: &[u8]| bytes.extend_from_slice(value);
        exact.push(match dtype {
            DType::Bool => {
                put(&[u8::from(re > 0.0)]);
                Complex64::new(f64::from(u8::from(re > 0.0)), 0.0)
            }
            DType::I32 => {
                put(&(re as i32).to_ne_bytes());
                Complex64::new(f64::from(re as i32), 0.0)
            }
            DType::I64 => {
                put(&(re as i64).to_ne_bytes());
                Complex64::new((re as i64) as f64, 0.0)
            }
            DType::F32 => {
                put(&(re as f32).to_ne_bytes());
                Complex64::new(f64::from(re as f32), 0.0)
            }
            DType::F64 => {
                put(&re.to_ne_bytes());
                Complex64::new(re, 0.0)
            }
            DType::C64 => {
                put(&(re as f32).to_ne_bytes());
                put(&(im as f32).to_ne_bytes());
                Complex64::new(f64::from(re as f32), f64::from(im as f32))
            }
            DType::C128 => {
                put(&re.to_ne_bytes());
                put(&im.to_ne_bytes());
                *value
            }
        });
    }
    let strides = fhelium_ir::layout::row_major(shape);
    let tensor = device.upload_tensor(dtype, shape, &strides, &bytes);
    (tensor.unwrap(), exact)
}

fn numbers(count: usize, size: f64) -> Vec<Complex64> {
    let number = |k: usize| {
        let re = ((k * 37 + 11) % 201) as f64 / 100.0 - 1.0;
        Complex64::new(re * size, ((k * 53) % 97) as f64 / 97.0 * size)
    };
    (0..count).map(number).collect()
}

fn bytes(device: &Context, plaintext: &Plaintext) -> Vec<u64> {
    let here = device.download_plaintext(plaintext).unwrap();
    here.data().to_vec()
}

#[track_caller]
fn same_as_from_the_host(
    device: &Context,
    tensor: &Tensor,
    exact: &[Complex64],
    level: usize,
    scale: &Scale,
) {
    let real: Vec<f64> = exact.iter().map(|value| value.re).collect();
    let message = match tensor.dtype().is_complex() {
        true => Message::complex(exact, tensor.shape()),
        false => Message::real(&real, tensor.shape()),
    };
    let expected = device.encode(message.unwrap(), level, scale).unwrap();
    let found = device.encode_tensor(tensor, level, scale).unwrap();
    assert_eq!(found.batch_shape(), expected.batch_shape());
    assert_eq!(found.state(), expected.state());
    let same = bytes(device, &found) == bytes(device, &expected);
    assert!(same, "{tensor:?} at level {level} and scale {scale}");
}

#[test]
fn arrays_have_the_residues_of_their_elements() {
    for (depth, bits) in [(3, 40), (2, 58)] {
        let Some(device) = device(depth, bits) else {
            return;
        };
        let slots = device.parameters().slots();
        let scales = [20, 40, 62, 90].map(Scale::from_bits);
        for (case, &dtype) in [
            DType::Bool,
            DType::I32,
            DType::I64,
            DType::F32,
            DType::F64,
            DType::C64,
            DType::C128,
        ]
        .iter()
        .enumerate()
        {
            for (place, scale) in scales.iter().enumerate() {
                let level = [depth, depth, depth, 0][case % 4];
                if scale.log2() + 12.0 > device.parameters().chain().log_q(level) {
                    continue;
                }
                let shapes: [&[usize]; 5] = [&[slots], &[], &[3, 7], &[2, 1, slots / 2], &[0, 5]];
                let shape = shapes[(case + place) % 5];
                let values = numbers(shape.iter().product(), if place == 0 { 900.0 } else { 3.0 });
                let (tensor, exact) = uploaded(&device, dtype, &values, shape);
                same_as_from_the_host(&device, &tensor, &exact, level, scale);
            }
        }
    }
}

#[test]
fn views_are_encoded_as_the_arrays_that_they_show() {
    let Some(device) = device(2, 40) else { return };
    let values = numbers(4 * 6, 2.0);
    let scale = device.parameters().scale().clone();
    for dtype in [DType::F32, DType::F64, DType::C128] {
        let (tensor, exact) = uploaded(&device, dtype, &values, &[4, 6]);
        let view = |operation, attributes: &Attributes| {
            device.tensor(operation, &[&tensor], attributes).unwrap()
        };
        let transposed = view(
            Operation::Transpose,
            &Attributes::new().with("axes", vec![1, 0]),
        );
        let by_columns: Vec<_> = (0..24).map(|k| exact[k % 4 * 6 + k / 4]).collect();
        same_as_from_the_host(&device, &transposed, &by_columns, 2, &scale);
        let reversed = view(
            Operation::Slice,
            &Attributes::new()
                .with("starts", vec![3, 1])
                .with("sizes", vec![4, 2])
                .with("steps", vec![-1, 3])
                .with("dropped", Vec::<i64>::new()),
        );
        let backwards: Vec<_> = (0..8)
            .map(|k| exact[(3 - k / 2) * 6 + 1 + k % 2 * 3])
            .collect();
        same_as_from_the_host(&device, &reversed, &backwards, 1, &scale);
        // Of memory of its own, it is like any other of its layout.
        let trimmed = reversed.trimmed();
        same_as_from_the_host(&device, &trimmed, &backwards, 1, &scale);
        if dtype.is_complex() {
            let imaginary = view(Operation::Imag, &Attributes::new());
            let parts: Vec<_> = exact.iter().map(|v| Complex64::new(v.im, 0.0)).collect();
            same_as_from_the_host(&device, &imaginary, &parts, 0, &scale);
        }
    }
}

/// Reals of one item on the device.
fn reals(device: &Context, values: &[f64]) -> Tensor {
    let values: Vec<Complex64> = values.iter().map(|&v| Complex64::new(v, 0.0)).collect();
    uploaded(device, DType::F64, &values, &[values.len()]).0
}

#[test]
fn values_that_no_plaintext_holds_are_refused_by_the_next_wait() {
    let Some(device) = device(2, 40) else { return };
    let scale = device.parameters().scale().clone();
    let bound = device.host().message_bound(0, &scale);
    let good = reals(&device, &[0.5, -0.25, bound * 0.999]);
    device.encode_tensor(&good, 0, &scale).unwrap();
    device.synchronize().unwrap();
    let cases: [(&[f64], &str); 4] = [
        (&[1.0, f64::NAN], "index 1 is NaN"),
        (&[f64::NEG_INFINITY], "index 0 is -inf"),
        (
            &[0.0, 0.0, bound * 1.001],
            "at index 2 does not fit: at scale 2^40 and level 0",
        ),
        (&[0.0, -1e300], "value -1e300 at index 1"),
    ];
    for (values, expected) in cases {
        let tensor = reals(&device, values);
        let encoded = device.encode_tensor(&tensor, 0, &scale).unwrap();
        let error = device.synchronize().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value);
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.to_string().contains("array on a GPU"), "{error}");
        // Once; the residues are some, below the primes.
        device.synchronize().unwrap();
        let level_prime = device.parameters().moduli()[0];
        assert!(bytes(&device, &encoded).iter().all(|&r| r < level_prime));
    }
    // Constants, complex ones, and batches, whose indices go on.
    let complex = [Complex64::new(f64::INFINITY, -0.5)];
    let (number, _) = uploaded(&device, DType::C64, &complex, &[]);
    device.encode_tensor(&number, 1, &scale).unwrap();
    let error = device.download_tensor(&number).unwrap_err().to_string();
    assert!(error.contains("index 0 is inf-0.5i"), "{error}");
    let mut values = vec![Complex64::new(0.5, 0.0); 12];
    values[7].im = f64::NAN;
    let (batch, _) = uploaded(&device, DType::C128, &values, &[3, 4]);
    let encoded = device.encode_tensor(&batch, 1, &scale).unwrap();
    let error = device.decode_real(&encoded).unwrap_err().to_string();
    assert!(error.contains("index 7 is 0.5NaNi"), "{error}");
    // What does not depend on values is refused at once.
    let many = reals(&device, &vec![0.0; device.parameters().slots() + 1]);
    let error = device.encode_tensor(&many, 0, &scale).unwrap_err();
    assert!(error.to_string().contains("a last axis of 513"), "{error}");
    let error = device.encode_tensor(&good, 3, &scale).unwrap_err();
    assert!(error.to_string().contains("level 3"), "{error}");
}

/// A value of one context that another one uses carries the refusal along.
#[test]
fn a_refusal_follows_the_data() {
    let Some(device) = device(1, 40) else { return };
    let scale = device.parameters().scale().clone();
    let other = |host: &fhelium_ckks::Context| {
        Context::new(host, &open(), ContextOptions::default()).unwrap()
    };
    let (reader, stranger) = (other(device.host()), other(device.host()));
    let bad = reals(&device, &[f64::NAN]);
    let encoded = device.encode_tensor(&bad, 1, &scale).unwrap();
    stranger.synchronize().unwrap();
    let error = reader.download_plaintext(&encoded).unwrap_err();
    assert!(error.to_string().contains("NaN"), "{error}");
    device.synchronize().unwrap();
}

#[test]
fn recorded_encodings_refuse_what_they_are_bound_to() {
    let Some(device) = device(2, 40) else { return };
    let scale = device.parameters().scale().clone();
    let arrays: Vec<Tensor> = [0.5, -3.0, f64::NAN]
        .iter()
        .map(|&first| reals(&device, &[first, 0.25, 0.125]))
        .collect();
    let add = |x: &Tensor| device.tensor(Operation::Add, &[x, x], &Attributes::new());
    device.encode_tensor(&arrays[0], 2, &scale).unwrap();
    let graph = device
        .capture(&arrays[..1], |inputs| {
            device.encode_tensor(&inputs[0], 2, &scale)?;
            Ok::<_, CudaError>(vec![add(&inputs[0])?])
        })
        .unwrap();
    for array in [0, 1, 0, 1].map(|place| &arrays[place]) {
        let twice = graph.replay(std::slice::from_ref(array)).unwrap().remove(0);
        let found = device.download_tensor(&twice).unwrap();
        let expected = device.download_tensor(&add(array).unwrap()).unwrap();
        assert_eq!(found, expected);
    }
    graph.replay(&arrays[2..]).unwrap();
    let error = device.synchronize().unwrap_err();
    assert!(error.to_string().contains("index 0 is NaN"), "{error}");
    device.synchronize().unwrap();
}

/// Guards that arrays of other contexts go into another library's capture, which cannot wait for what
/// is outside it; that its replays encode what the arrays hold; and that the stream of the capture is
/// known to who brings arrays in.
#[test]
fn arrays_of_others_are_encoded_in_a_capture() {
    let Some(device) = device(1, 40) else { return };
    let scale = device.parameters().scale().clone();
    let owner = Context::new(device.host(), &open(), ContextOptions::default()).unwrap();
    let (good, bad) = (
        reals(&owner, &[0.5, -0.25]),
        reals(&owner, &[0.5, f64::NAN]),
    );
    // SAFETY: the calls are in the order that the driver asks for, on live handles.
    unsafe {
        let context = device.device().primary_context();
        sys::cuCtxSetCurrent(context as sys::CUcontext)
            .result()
            .unwrap();
        let mut stream = std::ptr::null_mut();
        sys::cuStreamCreate(&mut stream, 1).result().unwrap();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        sys::cuStreamBeginCapture_v2(stream, mode).result().unwrap();
        assert_eq!(captured_stream(0), None);
        let encoded = device.on_stream(stream as usize, || {
            assert_eq!(captured_stream(0), Some(stream as usize));
            assert_eq!(captured_stream(1), None);
            // What goes into the capture is awaited there, whoever's order it is in.
            assert_eq!(
                owner.queue().after_lender(|stream| stream)?,
                stream as usize
            );
            device.encode_tensor(&bad, 1, &scale)?;
            device.encode_tensor(&good, 1, &scale)
        });
        assert_eq!(captured_stream(0), None);
        let own = owner.queue().stream().cu_stream() as usize;
        assert_eq!(owner.queue().after_lender(|stream| stream).unwrap(), own);
        let encoded = encoded.unwrap();
        let mut graph = std::ptr::null_mut();
        sys::cuStreamEndCapture(stream, &mut graph)
            .result()
            .unwrap();
        let mut executable = std::ptr::null_mut();
        sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0)
            .result()
            .unwrap();
        sys::cuGraphDestroy(graph).result().unwrap();
        let expected = device.encode_tensor(&good, 1, &scale).unwrap();
        let expected = bytes(&device, &expected);
        for _ in 0..2 {
            sys::cuGraphLaunch(executable, stream).result().unwrap();
            sys::cuStreamSynchronize(stream).result().unwrap();
            // Each run of the graph may report, whoever starts it.
            let error = device.synchronize().unwrap_err();
            assert!(error.to_string().contains("index 1 is NaN"), "{error}");
            assert!(bytes(&device, &encoded) == expected);
        }
        drop(encoded);
        sys::cuGraphExecDestroy(executable).result().unwrap();
        sys::cuStreamDestroy_v2(stream).result().unwrap();
    }
}
