//! A Program prepared for one signature.

use crate::link::{Executable, LinkOptions, Manifest, RequiredKey, check_places, link};
use crate::persist::{CacheOutcome, CacheUse, CompileCache};
use crate::{CallSignature, Engine, OperationBackend, RuntimeError, Value};
use fhelium_ir::{Program, Rewriter};
use fhelium_passes::analysis::Costs;
use fhelium_passes::{Compilation, Pipeline};
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A linked variant of a compiled function.
#[derive(Debug)]
pub struct Specialization {
    signature: CallSignature,
    source: Compilation,
    compilation: Compilation,
    backend: OperationBackend,
    executable: Executable,
    cost: Costs,
    times: PreparationTimes,
    cache_use: CacheUse,
}

/// Where the time of a preparation went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreparationTimes {
    /// Capturing the function; 0 for a Program.
    pub capture: Duration,
    /// Passes and the verifier between them.
    pub passes: Duration,
    /// Linking.
    pub link: Duration,
}

/// How a Program is prepared.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrepareOptions<'a> {
    /// Arguments of the signature's kind. Inputs without level and scale take theirs, and the keys
    /// of their secret are looked up at once.
    pub arguments: Option<&'a [Value]>,
    /// Whether live materials are read once and never again.
    pub frozen_materials: bool,
    /// Time that capturing took, to be told with the rest.
    pub capture: Duration,
    /// Compiled Programs of earlier processes.
    pub cache: Option<&'a CompileCache>,
}

/// Runs the pipeline on a compilation and links what comes out.
///
/// # Errors
/// [`RuntimeError::Value`] where an argument does not fit an input; a pass's, the verifier's and
/// [`link`]'s.
pub fn prepare(
    source: &Compilation,
    pipeline: &Pipeline,
    backend: &OperationBackend,
    signature: CallSignature,
    engine: &Arc<Engine>,
    options: PrepareOptions<'_>,
) -> Result<Specialization, RuntimeError> {
    let started = Instant::now();
    let mut compilation = source.clone();
    if let Some(arguments) = options.arguments {
        let program = source.program();
        check_places(program.name(), program.inputs(), engine, arguments)?;
        specialize_inputs(&mut compilation, arguments)?;
    }
    let pipeline = &pipeline.for_target(&backend.target(engine.device().kind()));
    let (compilation, cache_use) = match options.cache {
        Some(cache) => cache.run(compilation, pipeline, backend, engine)?,
        None => (pipeline.run(compilation)?, CacheUse::default()),
    };
    let passes = started.elapsed();
    let started = Instant::now();
    let executable = link(
        &compilation,
        backend,
        engine,
        LinkOptions {
            arguments: options.arguments,
            frozen_materials: options.frozen_materials,
            relink: None,
        },
    )?;
    let link = started.elapsed();
    Ok(Specialization {
        cost: fhelium_passes::analysis::costs(compilation.program()),
        signature,
        source: source.clone(),
        compilation,
        backend: backend.clone(),
        executable,
        times: PreparationTimes {
            capture: options.capture,
            passes,
            link,
        },
        cache_use,
    })
}

/// Gives inputs without level and scale those of the arguments.
fn specialize_inputs(
    compilation: &mut Compilation,
    arguments: &[Value],
) -> Result<(), RuntimeError> {
    let program = compilation.program();
    let inputs = program.inputs();
    if inputs.len() != arguments.len() {
        return Err(RuntimeError::Value(format!(
            "{} has {} inputs, but {} arguments were given",
            program.name(),
            inputs.len(),
            arguments.len()
        )));
    }
    for (input, argument) in inputs.iter().zip(arguments) {
        if !argument.has_type(&input.ty) {
            return Err(RuntimeError::Value(format!(
                "{}: the input {} is {}, but the argument is {}",
                program.name(),
                input.name,
                input.ty,
                argument.ty()
            )));
        }
    }
    if !inputs.iter().any(|input| input.ty.is_unplaced()) {
        return Ok(());
    }
    let mut rewriter = Rewriter::with_input_types(program, |place, _| arguments[place].ty())?;
    for op in program.body().ops() {
        rewriter.copy(op)?;
    }
    let specialized = rewriter.finish()?;
    compilation.set_program(specialized);
    Ok(())
}

impl Specialization {
    /// What arguments must be.
    pub fn signature(&self) -> &CallSignature {
        &self.signature
    }

    /// The compilation before the pipeline.
    pub fn source(&self) -> &Compilation {
        &self.source
    }

    /// The compilation after the pipeline, with the passes' reports.
    pub fn compilation(&self) -> &Compilation {
        &self.compilation
    }

    /// The Program after the pipeline.
    pub fn program(&self) -> &Program {
        self.compilation.program()
    }

    /// The backend that it was linked with.
    pub fn backend(&self) -> &OperationBackend {
        &self.backend
    }

    /// What runs.
    pub fn executable(&self) -> &Executable {
        &self.executable
    }

    /// Implementations, keys and bytes.
    pub fn manifest(&self) -> &Manifest {
        self.executable.manifest()
    }

    /// Operation and transform counts.
    pub fn cost(&self) -> &Costs {
        &self.cost
    }

    /// The evaluation keys that a call looks up, with the lines that need them.
    pub fn keys(&self) -> &[RequiredKey] {
        &self.manifest().keys
    }

    /// Where the time of its preparation went.
    pub fn times(&self) -> PreparationTimes {
        self.times
    }

    /// What the compile cache did for it.
    pub fn cache_use(&self) -> &CacheUse {
        &self.cache_use
    }

    /// The same compiled Program, linked with another backend or engine. The implementations
    /// chosen by name stay; one that the new backend lacks is an error.
    ///
    /// # Errors
    /// Those of [`link`].
    pub fn relink(
        &self,
        backend: &OperationBackend,
        engine: &Arc<Engine>,
        options: PrepareOptions<'_>,
    ) -> Result<Specialization, RuntimeError> {
        let started = Instant::now();
        let executable = link(
            &self.compilation,
            backend,
            engine,
            LinkOptions {
                arguments: options.arguments,
                frozen_materials: options.frozen_materials,
                relink: Some(self.manifest()),
            },
        )?;
        Ok(Specialization {
            signature: self.signature.clone(),
            source: self.source.clone(),
            compilation: self.compilation.clone(),
            backend: backend.clone(),
            executable,
            cost: self.cost.clone(),
            times: PreparationTimes {
                link: started.elapsed(),
                ..PreparationTimes::default()
            },
            cache_use: CacheUse::default(),
        })
    }

    /// A text for people: signature, passes, implementations, keys, costs, bytes and times.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        // Writing to a String does not fail.
        let _ = self.write_explanation(&mut text);
        text
    }

    fn write_explanation(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "{}{}", self.program().name(), self.signature)?;
        writeln!(text, "on {}", self.executable.engine().parameters())?;
        let passes = match self.cache_use.outcome {
            CacheOutcome::Hit => "passes (run by an earlier process; read from the compile cache)",
            CacheOutcome::Miss | CacheOutcome::Unused => "passes",
        };
        writeln!(text, "\n{passes}")?;
        for report in self.compilation.reports() {
            writeln!(text, "  {report}")?;
        }
        writeln!(text, "\noperations")?;
        for (operation, implementation, count) in self.manifest().summary() {
            let cost = self.cost.operations.get(operation.name());
            let transforms = cost.map_or(0, |(_, cost)| cost.transforms);
            writeln!(
                text,
                "  {count:>6} x {operation} -> {implementation} ({transforms} transforms)"
            )?;
        }
        let total = self.cost.total;
        writeln!(
            text,
            "  in all {} transforms, {} products, {} sums, {} base conversions, {} key products, \
             {} key switches",
            total.transforms,
            total.products,
            total.sums,
            total.conversions,
            total.key_products,
            total.key_switches
        )?;
        writeln!(text, "\nkeys")?;
        for key in self.keys() {
            write!(text, "  {}", key.kind)?;
            for (position, location) in key.locations.iter().enumerate() {
                let before = if position == 0 { " for " } else { ", " };
                write!(text, "{before}{location}")?;
            }
            writeln!(text)?;
        }
        let memory = self.manifest().memory;
        writeln!(
            text,
            "\nbytes: inputs {}, peak {}, kept between calls {}",
            memory.inputs, memory.peak, memory.resident
        )?;
        if self.executable.engine().cuda().is_some() {
            writeln!(text, "runs {}", self.executable.replays())?;
            let work = self.executable.host_work();
            if !work.is_empty() {
                writeln!(text, "before that, in each call: {work}")?;
            }
        }
        let PreparationTimes {
            capture,
            passes,
            link,
        } = self.times;
        writeln!(
            text,
            "prepared in {:.1} ms: capture {:.1}, passes {:.1}, link {:.1}",
            milliseconds(capture + passes + link),
            milliseconds(capture),
            milliseconds(passes),
            milliseconds(link)
        )?;
        match self.executable.predicted(self.executable.engine()) {
            Some(time) => writeln!(text, "predicted {:.3} ms a run", milliseconds(time))?,
            None => writeln!(text, "no prediction: not every operation is a host kernel")?,
        }
        let measured = self.executable.measured();
        if let Some(fastest) = measured.fastest {
            writeln!(
                text,
                "measured {:.3} ms a run in {} runs, the fastest {:.3} ms",
                milliseconds(measured.total) / measured.runs as f64,
                measured.runs,
                milliseconds(fastest)
            )?;
        }
        Ok(())
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
