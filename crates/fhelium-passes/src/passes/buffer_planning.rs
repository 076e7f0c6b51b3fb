//! `buffer-planning`: which values share memory.

use std::sync::Arc;

use crate::compilation::Compilation;
use crate::error::PassError;
use crate::pass::{Decision, Pass, PassContext, PassResult, PassStats};
use crate::plan::BufferPlan;

/// Plans lifetimes and buffers of what is computed at each call, and leaves the [`BufferPlan`].
///
/// It heeds the prologue that `constant-encodings` left, so it comes after that pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct BufferPlanning;

impl Pass for BufferPlanning {
    fn name(&self) -> &str {
        "buffer-planning"
    }

    fn cache_key(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }

    fn run(
        &self,
        compilation: &mut Compilation,
        _context: &PassContext<'_>,
    ) -> Result<PassResult, PassError> {
        let prologue = compilation.plans().prologue.clone();
        let plan = BufferPlan::of(compilation.program(), prologue.as_deref());
        let planned = plan.values.iter().filter(|value| value.slot.is_some());
        let planned = planned.count();
        let decision = Decision {
            subject: format!("memory of {planned} values"),
            selected: format!("{} buffers, {} bytes", plan.slots.len(), plan.slot_bytes()),
            candidates: Vec::new(),
            details: format!(
                "at most {} bytes alive at once, {} in place, {} bytes of inputs, {} bytes kept \
                 between calls",
                plan.peak_bytes,
                plan.in_place.iter().flatten().count(),
                plan.input_bytes,
                plan.resident_bytes
            ),
        };
        compilation.plans_mut().buffers = Some(Arc::new(plan));
        Ok(PassResult {
            stats: PassStats {
                matched: planned,
                ..PassStats::default()
            },
            decisions: vec![decision],
            ..PassResult::default()
        })
    }
}
