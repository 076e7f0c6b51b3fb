//! `linear-fusion`: sums, differences and multiples that run as one.

mod groups;
mod region;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use fhelium_ir::state::LinearProgram;
use fhelium_ir::{IrError, OpKind, Origin, Program, Rewriter};

use crate::compilation::Compilation;
use crate::error::PassError;
use crate::pass::{Decision, Pass, PassContext, PassResult, PassStats};
use crate::target::{Rates, Target};

use groups::{Group, Groups};

/// Joins elementwise operations on ciphertexts and plaintexts of one level and batch into
/// `rns.fused` operations: each operand is read once for each use, and values in between are
/// neither written nor read again.
///
/// A group is an operation and what only the group reads, and groups that share an operand or that
/// hand a value on join further; so sums of products, chains, and several sums over the same
/// ciphertexts become one operation. Which operations may join is told by the operation table:
/// those of which an element depends on the same place of each operand only. Values that are read
/// elsewhere too become further results. Operations have no effects, so others may come to stand
/// before or after a group; what depends on a group and is depended on by it keeps it apart.
///
/// Whether a group runs as one is decided by cost: memory traffic, arithmetic and launches of
/// either form at the target's [`Rates`]. What depends on materials and constants only is grouped
/// with its like, so that a runtime still computes it once. A Program that has fused operations stays
/// as it is: what was decided about the rest was decided with them in view.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearFusion {
    /// The most operands of one group, from 2 to what the kernels take, 64. All of them are alive
    /// at once.
    pub max_operands: usize,
    /// What work costs.
    pub rates: Rates,
    /// Operations that stay whole.
    pub keep: BTreeSet<OpKind>,
}

impl Default for LinearFusion {
    fn default() -> Self {
        LinearFusion {
            max_operands: LinearProgram::LIMITS.operands,
            rates: Rates::default(),
            keep: BTreeSet::new(),
        }
    }
}

impl Pass for LinearFusion {
    fn name(&self) -> &str {
        "linear-fusion"
    }

    fn cache_key(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }

    fn for_target(&self, target: &Target) -> Option<Arc<dyn Pass>> {
        Some(Arc::new(LinearFusion {
            rates: target.rates,
            keep: &self.keep | &target.whole,
            ..self.clone()
        }))
    }

    fn run(
        &self,
        compilation: &mut Compilation,
        context: &PassContext<'_>,
    ) -> Result<PassResult, PassError> {
        let most = LinearProgram::LIMITS.operands;
        if !(2..=most).contains(&self.max_operands) {
            return Err(context.error(format!(
                "max_operands is {}, expected 2 to {most}",
                self.max_operands
            )));
        }
        let program = compilation.program().clone();
        let mut ops = program.body().ops().iter();
        if program.chain().is_none() || ops.any(|op| op.region().is_some()) {
            return Ok(PassResult::default());
        }
        let found = Groups::find(&program, self);
        let found = found.map_err(|error| context.ir_error(error))?;
        let (fused, separate): (Vec<&Group>, Vec<&Group>) =
            found.groups.iter().partition(|group| group.fuses());
        let transformed: usize = fused.iter().map(|group| group.members.len()).sum();
        let result = PassResult {
            stats: PassStats {
                matched: found.candidates,
                transformed,
                inserted: fused.len(),
                removed: transformed,
                skipped: found.candidates - transformed,
            },
            decisions: decisions(&program, &fused, &separate),
            ..PassResult::default()
        };
        if !fused.is_empty() {
            let rewritten = rewrite(&program, &fused);
            compilation.set_program(rewritten.map_err(|error| context.ir_error(error))?);
        }
        Ok(result)
    }
}

/// One decision for groups of the same operations.
fn decisions(program: &Program, fused: &[&Group], separate: &[&Group]) -> Vec<Decision> {
    struct Sum {
        groups: usize,
        operands: usize,
        results: usize,
        separate: f64,
        fused: f64,
    }
    let mut sums: BTreeMap<(String, bool), Sum> = BTreeMap::new();
    let all = fused.iter().map(|group| (group, true));
    for (group, is_fused) in all.chain(separate.iter().map(|group| (group, false))) {
        let mut counts: BTreeMap<OpKind, usize> = BTreeMap::new();
        for &place in &group.members {
            *counts
                .entry(program.body().ops()[place].kind())
                .or_default() += 1;
        }
        let counts = counts.iter();
        let names: Vec<String> = counts
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        let sum = sums.entry((names.join(", "), is_fused)).or_insert(Sum {
            groups: 0,
            operands: group.operands.len(),
            results: group.results.len(),
            separate: 0.0,
            fused: 0.0,
        });
        sum.groups += 1;
        sum.separate += group.separate;
        sum.fused += group.fused;
    }
    sums.into_iter()
        .map(|((names, is_fused), sum)| Decision {
            subject: format!("{} x ({names})", sum.groups),
            selected: if is_fused { "fused" } else { "separate" }.to_owned(),
            candidates: vec!["fused".to_owned(), "separate".to_owned()],
            details: format!(
                "expected {:.1} us fused, {:.1} us separate; {} operands and {} results each",
                sum.fused / 1e3,
                sum.separate / 1e3,
                sum.operands,
                sum.results
            ),
        })
        .collect()
}

/// The Program with groups in the place of their operations.
///
/// A group stands where its last operation stood, or later where it reads what comes later; what
/// reads a group stands after it.
fn rewrite(program: &Program, groups: &[&Group]) -> Result<Program, IrError> {
    let body = program.body();
    let ops = body.ops();
    // Units are operations by place, then groups.
    let mut unit: Vec<usize> = (0..ops.len()).collect();
    for (number, group) in groups.iter().enumerate() {
        for &place in &group.members {
            unit[place] = ops.len() + number;
        }
    }
    let mut waits = vec![0usize; ops.len() + groups.len()];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); ops.len() + groups.len()];
    for (place, op) in ops.iter().enumerate() {
        for operand in op.operands() {
            if let Origin::Result { op: source, .. } = body.values()[operand.index()].origin
                && unit[source] != unit[place]
            {
                readers[unit[source]].push(unit[place]);
                waits[unit[place]] += 1;
            }
        }
    }
    let place_of = |unit: usize| match unit.checked_sub(ops.len()) {
        Some(group) => groups[group].members[groups[group].members.len() - 1],
        None => unit,
    };
    let is_unit = |place: usize| unit[place] == place;
    let mut ready: BinaryHeap<Reverse<(usize, usize)>> = (0..ops.len())
        .filter(|&place| is_unit(place))
        .chain(ops.len()..ops.len() + groups.len())
        .filter(|&unit| waits[unit] == 0)
        .map(|unit| Reverse((place_of(unit), unit)))
        .collect();
    let mut rewriter = Rewriter::new(program)?;
    while let Some(Reverse((_, next))) = ready.pop() {
        match next.checked_sub(ops.len()) {
            Some(group) => region::emit(groups[group], &mut rewriter)?,
            None => {
                rewriter.copy(&ops[next])?;
            }
        }
        for &reader in &readers[next] {
            waits[reader] -= 1;
            if waits[reader] == 0 {
                ready.push(Reverse((place_of(reader), reader)));
            }
        }
    }
    rewriter.finish()
}
