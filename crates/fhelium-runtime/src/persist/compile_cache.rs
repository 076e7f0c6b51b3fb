//! Compiled Programs kept in a directory, so that a later process need not run the passes.
//!
//! An entry is found by a hash of everything that decides what the passes leave: the Program
//! without its source lines, the pipeline, the target, and the version of the compiler. It holds
//! the Program that came out, with its plans' choices and the reports. Source lines are put back
//! from the Program at hand, so that an edit that only moves lines hits, and messages name the
//! lines of today.
//!
//! Entries are written whole or not at all. Processes that compile the same at once each write
//! the same entry; the last one stays. An entry that cannot be read, or does not fit the Program,
//! is passed over with a warning and written anew. The directory is kept below a size: entries that
//! were used longest ago go first.

use super::bound::{ENDING, shrink, touch};
use super::container::{Opened, Outgoing, Part};
use super::error::{PersistError, Result};
use super::file::{Placement, open_file, write_file};
use super::programs::PlansRecord;
use super::reports::ReportRecord;
use super::{Kind, SCHEMA};
use crate::{DeviceKind, Engine, OperationBackend};
use fhelium_ir::{Location, Program};
use fhelium_passes::{Compilation, Dump, PassReport, Pipeline, PipelineError};
use safetensors::Dtype;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory of compiled Programs. Processes and threads may share one.
///
/// Whoever can write to the directory decides what is computed by those who read it: keep it
/// private to one user.
#[derive(Debug)]
pub struct CompileCache {
    directory: PathBuf,
    max_bytes: u64,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// What the cache did for one Program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// What happened.
    pub outcome: CacheOutcome,
    /// What is wrong with an entry or with the directory; the Program was compiled all the same.
    pub warning: Option<String>,
}

/// How a Program was compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheOutcome {
    /// Without a cache: none was given, or the pipeline has a pass without a
    /// [cache key](fhelium_passes::Pass::cache_key), or dumps are asked for.
    #[default]
    Unused,
    /// From an entry.
    Hit,
    /// By running the passes; the entry is written for the next time.
    Miss,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    key: String,
    plans: PlansRecord,
    reports: Vec<ReportRecord>,
}

const PROGRAM: &str = "program";

impl CompileCache {
    /// A cache in a directory, which is made when the first entry is written.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        CompileCache {
            directory: directory.into(),
            max_bytes: Self::DEFAULT_MAX_BYTES,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// The bytes that a directory may take unless it is said otherwise: thousands of entries.
    pub const DEFAULT_MAX_BYTES: u64 = 256 << 20;

    /// The same with another bound of its directory's bytes. The newest entry stays, however large.
    #[must_use]
    pub fn with_max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// The bytes that its directory may take.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Programs that came from an entry.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Programs that were compiled and could have come from an entry.
    pub fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }

    /// What `pipeline` leaves of `source`: from the entry for it, else by running the passes.
    ///
    /// # Errors
    /// Those of the pipeline. What is wrong with the directory is a warning.
    pub fn run(
        &self,
        source: Compilation,
        pipeline: &Pipeline,
        backend: &OperationBackend,
        engine: &Engine,
    ) -> std::result::Result<(Compilation, CacheUse), PipelineError> {
        let dumps = Dump::from_environment() != Dump::Off;
        let Some(pipeline_key) = pipeline.cache_key().filter(|_| !dumps) else {
            return Ok((pipeline.run(source)?, CacheUse::default()));
        };
        let lines = Lines::of(source.program());
        let key = key(&source, &lines, &pipeline_key, backend, engine);
        let path = self.directory.join(format!("{key}{ENDING}"));
        let mut warnings = Vec::new();
        match read_entry(&path, &key, &source, &lines) {
            Ok(Some(compilation)) => {
                self.hits.fetch_add(1, Ordering::Relaxed);
                touch(&path);
                let outcome = CacheOutcome::Hit;
                return Ok((
                    compilation,
                    CacheUse {
                        outcome,
                        warning: None,
                    },
                ));
            }
            Ok(None) => {}
            Err(error) => warnings.push(format!(
                "a compile cache entry is ignored and written anew: {error}"
            )),
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let earlier = source.reports().len();
        let compilation = pipeline.run(source.clone())?;
        let reports = &compilation.reports()[earlier..];
        if let Err(error) = self.write_entry(&path, key, &source, &compilation, reports, &lines) {
            warnings.push(format!("the compile cache cannot be written to: {error}"));
        }
        let warning = (!warnings.is_empty()).then(|| warnings.join("; "));
        let outcome = CacheOutcome::Miss;
        Ok((compilation, CacheUse { outcome, warning }))
    }

    fn write_entry(
        &self,
        path: &Path,
        key: String,
        source: &Compilation,
        compilation: &Compilation,
        reports: &[PassReport],
        lines: &Lines,
    ) -> Result<()> {
        make_directory(&self.directory)?;
        let materials = source.program().materials();
        let program = lines.taken_off(compilation.program());
        let program = program.map_descriptions(&mut |symbol, description| match materials
            .contains_key(symbol)
        {
            true => "".into(),
            false => description.into(),
        });
        let text = program.to_text();
        let reports = reports.iter().map(|report| {
            let mut report = report.clone();
            lines.change_report(&mut report, |lines, line| lines.number(line));
            ReportRecord::from(&report)
        });
        let entry = Entry {
            key,
            plans: compilation.plans().into(),
            reports: reports.collect(),
        };
        let part = Part::new(PROGRAM, Dtype::U8, vec![text.len()], text.as_bytes());
        let outgoing = Outgoing::new(Kind::CacheEntry, &entry, vec![part])?;
        // Nothing is lost with an entry that a crash of the machine damages: it is found out.
        let placement = Placement {
            overwrite: true,
            private: true,
            durable: false,
        };
        write_file(path, placement, |file| outgoing.write(file))?;
        shrink(&self.directory, self.max_bytes, path).map_err(|error| PersistError::Io {
            file: self.directory.display().to_string(),
            action: "removing old entries",
            error,
        })
    }
}

fn make_directory(path: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| PersistError::Io {
        file: path.display().to_string(),
        action: "making the directory",
        error,
    })
}

/// Everything that decides what comes out, as one hash.
fn key(
    source: &Compilation,
    lines: &Lines,
    pipeline: &str,
    backend: &OperationBackend,
    engine: &Engine,
) -> String {
    let program = lines.taken_off(source.program());
    let program = program.map_descriptions(&mut |_, _| "".into());
    let mut hash = Sha256::new();
    let mut field = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    field(&format!("fhelium compile cache {SCHEMA}"));
    field(env!("CARGO_PKG_VERSION"));
    field(env!("FHELIUM_COMPILER_SOURCES"));
    field(pipeline);
    field(&target(backend, engine.device().kind()));
    field(&engine.parameters().id().to_string());
    field(&format!("{:?}", PlansRecord::from(source.plans())));
    field(&program.to_text());
    let digest = hash.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a pass may have asked the backend: its implementations and their costs.
fn target(backend: &OperationBackend, device: DeviceKind) -> String {
    format!("{device} {}", backend.description())
}

/// The compilation of an entry; `None` where there is no entry.
fn read_entry(
    path: &Path,
    key: &str,
    source: &Compilation,
    lines: &Lines,
) -> Result<Option<Compilation>> {
    let (mut file, length) = match open_file(path) {
        Ok(opened) => opened,
        Err(PersistError::Io { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let name = path.display().to_string();
    let opened = Opened::read(&name, &mut file, length)?;
    if opened.kind != Kind::CacheEntry {
        return Err(PersistError::WrongKind {
            file: name.clone(),
            found: opened.kind,
            expected: Kind::CacheEntry.noun(),
        });
    }
    let entry: Entry = opened.contents()?;
    let mut incoming = opened.data(&mut file)?;
    if entry.key != key {
        let expected = format!("{key}; the file was renamed or copied");
        return Err(incoming.refuse("key", &entry.key, expected));
    }
    let text = incoming.text(PROGRAM)?;
    incoming.finish()?;
    let refuse = |found: &dyn std::fmt::Display, expected: &str| {
        PersistError::malformed(&name, PROGRAM, found, expected)
    };
    let program = Program::parse(&text)
        .map_err(|error| refuse(&error, "a Program of this version's operations"))?;
    let materials = source.program().materials();
    let program = lines
        .put_back(&program)
        .map_descriptions(&mut |symbol, description| {
            let known = materials.get(symbol);
            known.map_or_else(|| description.into(), |known| known.description.clone())
        });
    if let Some(difference) = difference(source.program(), &program) {
        return Err(refuse(
            &difference,
            "the source's, which a pass may not change",
        ));
    }
    let plans = entry.plans.plans(&program);
    let mut reports = source.reports().to_vec();
    reports.extend(entry.reports.iter().map(|record| {
        let mut report = PassReport::from(record);
        lines.change_report(&mut report, Lines::line);
        report
    }));
    let mut compilation = source.clone();
    compilation.set_program(program);
    compilation.restore(plans, reports);
    Ok(Some(compilation))
}

/// What callers and bindings rely on and an entry has otherwise.
fn difference(source: &Program, found: &Program) -> Option<String> {
    if source.chain() != found.chain() {
        return Some("another modulus chain".to_owned());
    }
    if source.inputs() != found.inputs() {
        return Some("other inputs".to_owned());
    }
    if source.outputs() != found.outputs() {
        return Some("another structure of results".to_owned());
    }
    let materials = found.materials().iter();
    let mut changed = materials.filter(|(symbol, material)| {
        let known = source.materials().get(*symbol);
        known.is_some_and(|known| known.ty != material.ty)
    });
    changed
        .next()
        .map(|(symbol, _)| format!("another type of @{symbol}"))
}

/// The source lines of a Program, numbered by their first appearance.
struct Lines {
    lines: Vec<Location>,
    numbers: HashMap<Location, u32>,
}

impl Lines {
    fn of(program: &Program) -> Self {
        let mut lines = Lines {
            lines: Vec::new(),
            numbers: HashMap::new(),
        };
        // The Program that comes out is not needed: this is a walk over regions too.
        let _ = program.map_locations(&mut |line| {
            if !lines.numbers.contains_key(line) {
                lines.lines.push(line.clone());
                lines.numbers.insert(line.clone(), lines.lines.len() as u32);
            }
            None
        });
        lines
    }

    /// A line's number, in the place of a line.
    fn number(&self, line: &Location) -> Option<Location> {
        let number = self.numbers.get(line)?;
        Some(Location::new("", *number, ""))
    }

    /// The line of a number.
    fn line(&self, number: &Location) -> Option<Location> {
        let place = (number.line as usize).checked_sub(1)?;
        self.lines.get(place).cloned()
    }

    fn taken_off(&self, program: &Program) -> Program {
        program.map_locations(&mut |line| self.number(line))
    }

    fn put_back(&self, program: &Program) -> Program {
        program.map_locations(&mut |number| self.line(number))
    }

    fn change_report(
        &self,
        report: &mut PassReport,
        change: impl Fn(&Self, &Location) -> Option<Location>,
    ) {
        for diagnostic in &mut report.result.diagnostics {
            let location = diagnostic.location.take();
            diagnostic.location = location.and_then(|line| change(self, &line));
        }
    }
}
