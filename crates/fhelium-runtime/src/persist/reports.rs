//! What passes reported.

use fhelium_ir::Location;
use fhelium_passes::{Decision, Diagnostic, PassReport, PassResult, PassStats};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ReportRecord {
    name: String,
    stats: StatsRecord,
    diagnostics: Vec<DiagnosticRecord>,
    decisions: Vec<DecisionRecord>,
    nanoseconds: u64,
    verification_nanoseconds: u64,
    operations: (usize, usize),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct StatsRecord {
    matched: usize,
    transformed: usize,
    inserted: usize,
    removed: usize,
    skipped: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct DiagnosticRecord {
    message: String,
    operation: Option<String>,
    location: Option<LocationRecord>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct LocationRecord {
    file: String,
    line: u32,
    function: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct DecisionRecord {
    subject: String,
    selected: String,
    candidates: Vec<String>,
    details: String,
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl From<&PassReport> for ReportRecord {
    fn from(report: &PassReport) -> Self {
        let PassResult {
            stats,
            diagnostics,
            decisions,
        } = &report.result;
        ReportRecord {
            name: report.name.clone(),
            stats: StatsRecord {
                matched: stats.matched,
                transformed: stats.transformed,
                inserted: stats.inserted,
                removed: stats.removed,
                skipped: stats.skipped,
            },
            diagnostics: diagnostics.iter().map(Into::into).collect(),
            decisions: decisions.iter().map(Into::into).collect(),
            nanoseconds: nanoseconds(report.time),
            verification_nanoseconds: nanoseconds(report.verification),
            operations: report.operations,
        }
    }
}

impl From<&ReportRecord> for PassReport {
    fn from(record: &ReportRecord) -> Self {
        let stats = &record.stats;
        PassReport {
            name: record.name.clone(),
            result: PassResult {
                stats: PassStats {
                    matched: stats.matched,
                    transformed: stats.transformed,
                    inserted: stats.inserted,
                    removed: stats.removed,
                    skipped: stats.skipped,
                },
                diagnostics: record.diagnostics.iter().map(Into::into).collect(),
                decisions: record.decisions.iter().map(Into::into).collect(),
            },
            time: Duration::from_nanos(record.nanoseconds),
            verification: Duration::from_nanos(record.verification_nanoseconds),
            operations: record.operations,
        }
    }
}

impl From<&Diagnostic> for DiagnosticRecord {
    fn from(diagnostic: &Diagnostic) -> Self {
        let location = diagnostic.location.as_ref();
        DiagnosticRecord {
            message: diagnostic.message.clone(),
            operation: diagnostic.operation.clone(),
            location: location.map(|location| LocationRecord {
                file: location.file.to_string(),
                line: location.line,
                function: location.function.to_string(),
            }),
        }
    }
}

impl From<&DiagnosticRecord> for Diagnostic {
    fn from(record: &DiagnosticRecord) -> Self {
        let location = record.location.as_ref();
        Diagnostic {
            message: record.message.clone(),
            operation: record.operation.clone(),
            location: location
                .map(|location| Location::new(&*location.file, location.line, &*location.function)),
        }
    }
}

impl From<&Decision> for DecisionRecord {
    fn from(decision: &Decision) -> Self {
        DecisionRecord {
            subject: decision.subject.clone(),
            selected: decision.selected.clone(),
            candidates: decision.candidates.clone(),
            details: decision.details.clone(),
        }
    }
}

impl From<&DecisionRecord> for Decision {
    fn from(record: &DecisionRecord) -> Self {
        Decision {
            subject: record.subject.clone(),
            selected: record.selected.clone(),
            candidates: record.candidates.clone(),
            details: record.details.clone(),
        }
    }
}
