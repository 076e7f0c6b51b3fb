//! Ordered sequences of passes.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::compilation::Compilation;
use crate::dump::{Dump, DumpRun};
use crate::error::{PassError, PipelineError};
use crate::pass::{Pass, PassContext, PassReport, PassResult};
use crate::target::Target;

/// An ordered sequence of passes with unique names, verified after every pass.
///
/// A Pipeline is a value: every edit returns another one. A pass is addressed by its name or by
/// its position, counted from 0.
///
/// ```
/// use fhelium_passes::{Named, default_pipeline, passes::DeadValues};
///
/// let pipeline = default_pipeline()
///     .after("rotation-hoisting", Named::new("dead-values-again", DeadValues))?
///     .remove("route-selection")?;
/// assert_eq!(pipeline.names()[0], "dead-values");
/// # Ok::<(), fhelium_passes::PipelineError>(())
/// ```
#[derive(Clone, Default)]
pub struct Pipeline {
    passes: Vec<Arc<dyn Pass>>,
}

/// A pass of a pipeline, by its name or by its position from 0.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// By name.
    Name(&'a str),
    /// By position.
    Position(usize),
}

impl<'a> From<&'a str> for Place<'a> {
    fn from(name: &'a str) -> Self {
        Place::Name(name)
    }
}

impl From<usize> for Place<'_> {
    fn from(position: usize) -> Self {
        Place::Position(position)
    }
}

/// One pass or several, as the editing methods of [`Pipeline`] take them.
pub trait IntoPasses {
    /// The passes, in order.
    fn into_passes(self) -> Vec<Arc<dyn Pass>>;
}

impl<P: Pass + 'static> IntoPasses for P {
    fn into_passes(self) -> Vec<Arc<dyn Pass>> {
        vec![Arc::new(self)]
    }
}

impl IntoPasses for Arc<dyn Pass> {
    fn into_passes(self) -> Vec<Arc<dyn Pass>> {
        vec![self]
    }
}

impl IntoPasses for Vec<Arc<dyn Pass>> {
    fn into_passes(self) -> Vec<Arc<dyn Pass>> {
        self
    }
}

impl IntoPasses for Pipeline {
    fn into_passes(self) -> Vec<Arc<dyn Pass>> {
        self.passes
    }
}

impl Pipeline {
    /// A pipeline without passes.
    pub fn new() -> Self {
        Pipeline::default()
    }

    /// A pipeline of `passes`.
    ///
    /// # Errors
    /// [`PipelineError::DuplicateName`].
    pub fn from_passes(passes: impl IntoPasses) -> Result<Self, PipelineError> {
        Pipeline::new().then(passes)
    }

    /// A pipeline of passes whose names are known to differ.
    pub(crate) fn of_distinct(passes: Vec<Arc<dyn Pass>>) -> Self {
        Pipeline { passes }
    }

    /// The passes, in order.
    pub fn passes(&self) -> &[Arc<dyn Pass>] {
        &self.passes
    }

    /// The names of the passes, in order.
    pub fn names(&self) -> Vec<&str> {
        self.passes.iter().map(|pass| pass.name()).collect()
    }

    /// A text that stands for what the whole pipeline does, made of the passes'
    /// [cache keys](Pass::cache_key); `None` where a pass has none.
    pub fn cache_key(&self) -> Option<String> {
        let keys = self.passes.iter().map(|pass| {
            let key = pass.cache_key()?;
            // Quoted, so that no key can pretend to be several.
            Some(format!("{:?} {key:?}", pass.name()))
        });
        Some(keys.collect::<Option<Vec<_>>>()?.join("\n"))
    }

    /// The same pipeline with what its passes have to know of where the Program will run.
    #[must_use]
    pub fn for_target(&self, target: &Target) -> Pipeline {
        let passes = self.passes.iter();
        let passes = passes.map(|pass| pass.for_target(target).unwrap_or_else(|| pass.clone()));
        Pipeline::of_distinct(passes.collect())
    }

    /// The number of passes.
    pub fn len(&self) -> usize {
        self.passes.len()
    }

    /// Whether there are no passes.
    pub fn is_empty(&self) -> bool {
        self.passes.is_empty()
    }

    /// The position of a pass, from 0.
    ///
    /// # Errors
    /// [`PipelineError::NoSuchPass`] or [`PipelineError::NoSuchPosition`].
    pub fn position<'a>(&self, place: impl Into<Place<'a>>) -> Result<usize, PipelineError> {
        match place.into() {
            Place::Name(name) => self
                .passes
                .iter()
                .position(|pass| pass.name() == name)
                .ok_or_else(|| PipelineError::NoSuchPass {
                    name: name.to_owned(),
                    names: self.names().join(", "),
                }),
            Place::Position(position) if position < self.passes.len() => Ok(position),
            Place::Position(position) => Err(PipelineError::NoSuchPosition {
                position,
                length: self.passes.len(),
                names: self.names().join(", "),
            }),
        }
    }

    /// `passes` added at the end.
    ///
    /// # Errors
    /// [`PipelineError::DuplicateName`].
    pub fn then(self, passes: impl IntoPasses) -> Result<Self, PipelineError> {
        let end = self.passes.len();
        self.splice(end, end, passes)
    }

    /// `passes` put before the pass at `place`.
    ///
    /// # Errors
    /// Where there is no such pass, or a name would repeat.
    pub fn before<'a>(
        self,
        place: impl Into<Place<'a>>,
        passes: impl IntoPasses,
    ) -> Result<Self, PipelineError> {
        let at = self.position(place)?;
        self.splice(at, at, passes)
    }

    /// `passes` put after the pass at `place`.
    ///
    /// # Errors
    /// Where there is no such pass, or a name would repeat.
    pub fn after<'a>(
        self,
        place: impl Into<Place<'a>>,
        passes: impl IntoPasses,
    ) -> Result<Self, PipelineError> {
        let at = self.position(place)? + 1;
        self.splice(at, at, passes)
    }

    /// `passes` put in the place of the pass at `place`.
    ///
    /// # Errors
    /// Where there is no such pass, or a name would repeat.
    pub fn replace<'a>(
        self,
        place: impl Into<Place<'a>>,
        passes: impl IntoPasses,
    ) -> Result<Self, PipelineError> {
        let at = self.position(place)?;
        self.splice(at, at + 1, passes)
    }

    /// The pipeline without the pass at `place`.
    ///
    /// # Errors
    /// Where there is no such pass.
    pub fn remove<'a>(self, place: impl Into<Place<'a>>) -> Result<Self, PipelineError> {
        let at = self.position(place)?;
        self.splice(at, at + 1, Vec::new())
    }

    fn splice(
        mut self,
        start: usize,
        end: usize,
        passes: impl IntoPasses,
    ) -> Result<Self, PipelineError> {
        self.passes.splice(start..end, passes.into_passes());
        for (index, pass) in self.passes.iter().enumerate() {
            let first = self.passes[..index]
                .iter()
                .position(|earlier| earlier.name() == pass.name());
            if let Some(position) = first {
                return Err(PipelineError::DuplicateName {
                    name: pass.name().to_owned(),
                    position,
                    names: self.names().join(", "),
                });
            }
        }
        Ok(self)
    }

    /// Runs the passes, dumping the Program after each one to `$FHELIUM_DUMP` where that is set.
    ///
    /// # Errors
    /// Where a pass fails, where the Program does not verify before or after a pass, or where a
    /// dump cannot be written.
    pub fn run(&self, compilation: impl Into<Compilation>) -> Result<Compilation, PipelineError> {
        self.run_with(compilation, &Dump::from_environment())
    }

    /// Runs the passes with `dump` deciding where the Program is written after each of them.
    ///
    /// # Errors
    /// As [`Pipeline::run`].
    pub fn run_with(
        &self,
        compilation: impl Into<Compilation>,
        dump: &Dump,
    ) -> Result<Compilation, PipelineError> {
        let mut compilation = compilation.into();
        let dump = dump.start(compilation.program())?;
        compilation
            .program()
            .verify()
            .map_err(|error| PipelineError::MalformedInput { error })?;
        for (position, pass) in self.passes.iter().enumerate() {
            let report = run_pass(pass.as_ref(), position, &mut compilation, dump.as_ref())?;
            compilation.push_report(report);
        }
        Ok(compilation)
    }
}

fn run_pass(
    pass: &dyn Pass,
    position: usize,
    compilation: &mut Compilation,
    dump: Option<&DumpRun>,
) -> Result<PassReport, PipelineError> {
    let name = pass.name();
    let before = compilation.program().clone();
    let started = Instant::now();
    let result = pass.run(compilation, &PassContext::new(name, position))?;
    let time = started.elapsed();
    // The dump comes before the verifier, so that a malformed Program can be looked at.
    if let Some(dump) = dump {
        dump.write(position + 1, name, compilation.program())?;
    }
    let mut verification = Duration::ZERO;
    // Sharing makes this comparison one of pointers where the pass changed nothing.
    if *compilation.program() != before {
        let started = Instant::now();
        compilation
            .program()
            .verify()
            .map_err(|error| PipelineError::Malformed {
                pass: name.to_owned(),
                error,
            })?;
        verification = started.elapsed();
    }
    Ok(PassReport {
        name: name.to_owned(),
        result,
        time,
        verification,
        operations: (
            before.body().ops().len(),
            compilation.program().body().ops().len(),
        ),
    })
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(", "))
    }
}

/// A pass under another name, so that a pipeline may hold it twice.
pub struct Named {
    name: String,
    pass: Arc<dyn Pass>,
}

impl Named {
    /// `pass`, called `name`.
    pub fn new(name: impl Into<String>, pass: impl Pass + 'static) -> Self {
        Named::of(name, Arc::new(pass))
    }

    /// The same of a pass that others hold too.
    pub fn of(name: impl Into<String>, pass: Arc<dyn Pass>) -> Self {
        Named {
            name: name.into(),
            pass,
        }
    }
}

impl Pass for Named {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(
        &self,
        compilation: &mut Compilation,
        context: &PassContext<'_>,
    ) -> Result<PassResult, PassError> {
        self.pass.run(compilation, context)
    }

    fn cache_key(&self) -> Option<String> {
        self.pass.cache_key()
    }

    fn for_target(&self, target: &Target) -> Option<Arc<dyn Pass>> {
        let pass = self.pass.for_target(target)?;
        Some(Arc::new(Named::of(self.name.as_str(), pass)))
    }
}
