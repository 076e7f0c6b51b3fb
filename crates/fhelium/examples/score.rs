//! Scores encrypted points with a polynomial whose weights the server may change between calls.
//!
//! The client encrypts; the server, which has evaluation keys only, compiles
//! `(w . x + b)^2` for packed points once and runs it for many ciphertexts.
//!
//!     cargo run --release -p fhelium --example score

use fhelium::prelude::*;
use std::error::Error;
use std::sync::Arc;

/// Coordinates of a point; a point takes as many slots.
const DIMENSION: usize = 4;

fn main() -> Result<(), Box<dyn Error>> {
    // The client.
    let parameters = Parameters::builder(2, 40).build()?;
    println!("{parameters}");
    let client = Engine::new(&parameters, EngineOptions::default())?;
    let keys = client.keygen(&[1, 2], false)?;
    let points = points(client.slots());
    let plaintext = client.encode(&points, None, None)?;
    let x = Value::from(client.encrypt(&plaintext, &keys.public)?);

    // The server: the same parameters, evaluation keys, weights of its own.
    let server = Engine::new(&parameters, EngineOptions::default())?;
    server.use_keys(&keys.evaluation())?;
    let weights = Arc::new(LiveTensor::new(repeated(
        &[0.5, -0.25, 1.0, 0.125],
        &server,
    )));
    let mut compilation = Compilation::new(score(&server, &x)?);
    compilation
        .material_bindings
        .insert("weights", Arc::new(MaterialBinding::Live(weights.clone())));
    let specialization = prepare(
        &compilation,
        &default_pipeline(),
        &OperationBackend::standard(),
        CallSignature::default(),
        &server,
        PrepareOptions {
            arguments: Some(std::slice::from_ref(&x)),
            ..PrepareOptions::default()
        },
    )?;
    println!("\n{}", specialization.program().to_text());

    for new_weights in [[0.5, -0.25, 1.0, 0.125], [1.0, 1.0, 0.0, -1.0]] {
        weights.set(repeated(&new_weights, &server));
        let outputs = specialization.executable().run(std::slice::from_ref(&x))?;
        let OutputTree::Value(result) = outputs else {
            return Err("the program returns one value".into());
        };

        // The client again.
        let plaintext = client.decrypt(result.ciphertext()?, &keys.secret, None)?;
        let scores = client.decode(&plaintext, true)?.to_vec::<f64>();
        let points = points.to_vec::<f64>();
        let mut largest = 0.0f64;
        for (point, score) in points.chunks(DIMENSION).zip(scores.chunks(DIMENSION)) {
            let dot: f64 = point.iter().zip(&new_weights).map(|(x, w)| x * w).sum();
            largest = largest.max((score[0] - (dot + 0.5).powi(2)).abs());
        }
        println!("weights {new_weights:?}: largest error {largest:.2e}");
        assert!(largest < 1e-5);
    }
    println!("\n{}", specialization.explain());
    Ok(())
}

/// The Program: `(w . x + 0.5)^2`, the sum of each four slots in the first of them.
fn score(engine: &Engine, x: &Value) -> Result<Program, RuntimeError> {
    let chain = Arc::new(engine.parameters().chain().clone());
    let mut program = ProgramBuilder::new("score", Some(chain));
    let none = Attributes::new();
    let x = program.input("x", x.ty())?;
    let weights = Type::tensor(DType::F64, [engine.slots()]);
    program.material("weights", Material::new(weights, "repeated for each point"))?;
    let weights = program.reference("weights", None)?;
    let encoding = Attributes::new()
        .with("level", engine.parameters().depth() as i64)
        .with("scale", engine.parameters().scale().clone());
    let weights = program.one(He::Encode, &[weights], &encoding, None)?;
    let mut sum = program.one(He::Mul, &[x, weights], &none, None)?;
    for step in [2i64, 1] {
        let rotation = Attributes::new().with("step", step);
        let rotated = program.one(He::Rotate, &[sum], &rotation, None)?;
        sum = program.one(He::Add, &[sum, rotated], &none, None)?;
    }
    let half = Attributes::new()
        .with("value", 0.5)
        .with("dtype", DType::F64);
    let half = program.one(TensorOp::Constant, &[], &half, None)?;
    let scale = engine.parameters().scale();
    let encoding = Attributes::new()
        .with("level", engine.parameters().depth() as i64)
        .with("scale", scale.times(scale));
    let half = program.one(He::Encode, &[half], &encoding, None)?;
    sum = program.one(He::Add, &[sum, half], &none, None)?;
    sum = program.one(He::Rescale, &[sum], &none, None)?;
    let square = program.one(He::Square, &[sum], &none, None)?;
    let square = program.one(He::Relinearize, &[square], &none, None)?;
    let square = program.one(He::Rescale, &[square], &none, None)?;
    Ok(program.finish(&OutputTree::Value(square))?)
}

/// Points with coordinates in [-1, 1), one after the other in the slots.
fn points(slots: usize) -> Tensor {
    let values = (0..slots).map(|i| ((i * 37) % 200) as f64 / 100.0 - 1.0);
    Tensor::from_vec(values.collect(), &[slots]).expect("as many values as slots")
}

/// The weights for every point.
fn repeated(weights: &[f64; DIMENSION], engine: &Engine) -> Tensor {
    let values = weights.iter().copied().cycle().take(engine.slots());
    Tensor::from_vec(values.collect(), &[engine.slots()]).expect("as many values as slots")
}
