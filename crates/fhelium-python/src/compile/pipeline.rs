//! Pipelines of passes.

use super::compilation::PyCompilation;
use super::passes::PyPass;
use crate::errors::{OrRaise, bad_argument};
use crate::held::Holds;
use fhelium_passes::{Dump, Pass, Pipeline, PipelineError, Place};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{PyTraverseError, PyVisit};
use std::path::PathBuf;
use std::sync::Arc;

/// An ordered sequence of passes with unique names, verified after every pass.
///
/// A Pipeline is a value: every edit returns another one. A pass is addressed by its name or by
/// its position, counted from 0.
#[pyclass(name = "Pipeline", module = "fhelium.compile", frozen)]
#[derive(Default)]
pub struct PyPipeline {
    /// The passes.
    pub pipeline: Pipeline,
    /// The functions of those that are Python's.
    pub holds: Holds,
}

/// A pass of a pipeline, by name or position.
#[derive(FromPyObject)]
enum PlaceArgument {
    Position(i64),
    Name(String),
}

impl PlaceArgument {
    fn place(&self) -> PyResult<Place<'_>> {
        Ok(match self {
            PlaceArgument::Position(position) => {
                let position = usize::try_from(*position).map_err(|_| {
                    bad_argument(format!(
                        "position {position} is outside the pipeline: positions count from 0"
                    ))
                })?;
                Place::Position(position)
            }
            PlaceArgument::Name(name) => Place::Name(name),
        })
    }
}

fn passes_from(passes: &Bound<'_, PyTuple>) -> PyResult<(Vec<Arc<dyn Pass>>, Holds)> {
    let mut all = (Vec::with_capacity(passes.len()), Holds::default());
    for pass in passes {
        let Ok(pass) = pass.cast::<PyPass>() else {
            return Err(PyTypeError::new_err(format!(
                "a pipeline holds passes, such as DeadValues() or PythonPass(name, function), \
                 found {}",
                pass.get_type().name()?
            )));
        };
        all.0.push(pass.get().pass.clone());
        all.1 = all.1.and(pass.get().holds.clone_ref(passes.py()));
    }
    Ok(all)
}

impl PyPipeline {
    /// An edit that adds passes.
    fn edited(
        &self,
        passes: &Bound<'_, PyTuple>,
        edit: impl FnOnce(Pipeline, Vec<Arc<dyn Pass>>) -> Result<Pipeline, PipelineError>,
    ) -> PyResult<Self> {
        let py = passes.py();
        let (passes, holds) = passes_from(passes)?;
        Ok(PyPipeline {
            pipeline: edit(self.pipeline.clone(), passes).or_raise()?,
            holds: self.holds.clone_ref(py).and(holds),
        })
    }
}

#[pymethods]
impl PyPipeline {
    #[new]
    #[pyo3(signature = (*passes))]
    fn new(passes: &Bound<'_, PyTuple>) -> PyResult<Self> {
        PyPipeline::default().edited(passes, |pipeline, passes| pipeline.then(passes))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.holds.visit(&visit)
    }

    /// The names of the passes, in order.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.pipeline
            .names()
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    /// The passes, in order.
    #[getter]
    fn passes(&self, py: Python<'_>) -> Vec<PyPass> {
        let passes = self.pipeline.passes().iter();
        let owned = |pass: &Arc<dyn Pass>| PyPass {
            pass: pass.clone(),
            holds: self.holds.clone_ref(py),
        };
        passes.map(owned).collect()
    }

    /// A text that stands for what the whole pipeline does; None where a pass has no cache key.
    #[getter]
    fn cache_key(&self) -> Option<String> {
        self.pipeline.cache_key()
    }

    /// Passes added at the end.
    #[pyo3(signature = (*passes))]
    fn then(&self, passes: &Bound<'_, PyTuple>) -> PyResult<Self> {
        self.edited(passes, |pipeline, passes| pipeline.then(passes))
    }

    /// Passes put before the one at `place`.
    #[pyo3(signature = (place, *passes))]
    fn before(&self, place: PlaceArgument, passes: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let place = place.place()?;
        self.edited(passes, |pipeline, passes| pipeline.before(place, passes))
    }

    /// Passes put after the one at `place`.
    #[pyo3(signature = (place, *passes))]
    fn after(&self, place: PlaceArgument, passes: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let place = place.place()?;
        self.edited(passes, |pipeline, passes| pipeline.after(place, passes))
    }

    /// Passes put in the place of the one at `place`.
    #[pyo3(signature = (place, *passes))]
    fn replace(&self, place: PlaceArgument, passes: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let place = place.place()?;
        self.edited(passes, |pipeline, passes| pipeline.replace(place, passes))
    }

    /// The pipeline without the pass at `place`.
    fn remove(&self, py: Python<'_>, place: PlaceArgument) -> PyResult<Self> {
        let place = place.place()?;
        self.edited(&PyTuple::empty(py), |pipeline, _| pipeline.remove(place))
    }

    /// Runs the passes on a Compilation or Program, and gives what comes out.
    ///
    /// `dump` names a directory into which the Program is written after each pass; without it,
    /// the environment variable FHELIUM_DUMP does.
    #[pyo3(signature = (compilation, *, dump = None))]
    fn run(
        &self,
        py: Python<'_>,
        compilation: &Bound<'_, PyAny>,
        dump: Option<PathBuf>,
    ) -> PyResult<PyCompilation> {
        let source = PyCompilation::from_source(py, compilation)?;
        let dump = dump.map_or_else(Dump::from_environment, Dump::To);
        let compilation = source.compilation.clone();
        let done = py.detach(|| self.pipeline.run_with(compilation, &dump));
        Ok(PyCompilation::of(py, done.or_raise()?))
    }

    fn __len__(&self) -> usize {
        self.pipeline.len()
    }

    fn __repr__(&self) -> String {
        format!("Pipeline[{}]", self.pipeline)
    }
}

/// What compiled functions run through unless they are given another pipeline.
///
/// It removes dead values, computes equal expressions once, makes keys and levels explicit,
/// hoists rotations, fuses sums and multiples, keeps constant encodings, and plans routes and buffers. It inserts no
/// rescale and no relinearization.
#[pyfunction]
pub fn default_pipeline() -> PyPipeline {
    PyPipeline {
        pipeline: fhelium_passes::default_pipeline(),
        holds: Holds::default(),
    }
}
