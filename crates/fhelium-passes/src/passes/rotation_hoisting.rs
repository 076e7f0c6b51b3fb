//! `rotation-hoisting`: rotations of one value, decomposed once.

use fhelium_ir::{
    Attributes, Body, Ckks, Core, He, IrError, Op, OpKind, Origin, Program, Rewriter, ValueId,
};
use std::collections::HashMap;

use crate::compilation::Compilation;
use crate::error::PassError;
use crate::pass::{Diagnostic, Pass, PassContext, PassResult, PassStats};

/// Joins rotations of one ciphertext into `ckks.rotate_hoisted`, which decomposes it once.
///
/// Hoisting is due to Halevi and Shoup, "Faster homomorphic linear transformations in HElib",
/// 2018, section 4. The joined operation stands where the first of the rotations stood: the
/// ciphertext is defined there, and every reader comes later. References to keys move up to it; a
/// rotation whose key is computed after that place opens another group. Operations have no
/// effects, so whatever stands between two rotations does not part them.
#[derive(Clone, Copy, Debug)]
pub struct RotationHoisting {
    /// The most rotations in one group, at least 2. All results of a group are alive at once;
    /// beyond a dozen, sharing the decomposition gains little more.
    pub max_group_size: usize,
}

impl Default for RotationHoisting {
    fn default() -> Self {
        RotationHoisting { max_group_size: 16 }
    }
}

/// Rotations of one value, of which the first is the anchor.
struct Group {
    source: ValueId,
    anchor: usize,
    members: Vec<Member>,
}

/// Equal rotations: one result of the group.
struct Member {
    step: i64,
    key: ValueId,
    places: Vec<usize>,
}

impl Group {
    /// How many rotations it joins.
    fn rotations(&self) -> usize {
        self.members.iter().map(|member| member.places.len()).sum()
    }
}

impl Pass for RotationHoisting {
    fn name(&self) -> &str {
        "rotation-hoisting"
    }

    fn cache_key(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }

    fn run(
        &self,
        compilation: &mut Compilation,
        context: &PassContext<'_>,
    ) -> Result<PassResult, PassError> {
        if self.max_group_size < 2 {
            return Err(context.error(format!(
                "max_group_size is {}, expected 2 or more",
                self.max_group_size
            )));
        }
        let program = compilation.program().clone();
        let body = program.body();
        let rotations = body.ops().iter().filter(|op| is_rotation(op)).count();
        let groups = self.groups(body);
        let mut result = PassResult::default();
        result.stats.matched = rotations;
        result.diagnostics.extend(unlowered(body));
        if groups.is_empty() {
            result.stats.skipped = rotations;
            return Ok(result);
        }

        let rewritten = rewrite(&program, &groups).map_err(|error| context.ir_error(error))?;
        compilation.set_program(rewritten);
        let transformed = groups.iter().map(Group::rotations).sum();
        result.stats = PassStats {
            matched: rotations,
            transformed,
            inserted: groups.len(),
            removed: transformed,
            skipped: rotations - transformed,
        };
        Ok(result)
    }
}

impl RotationHoisting {
    /// Groups of two steps or more, in the order of their anchors.
    fn groups(&self, body: &Body) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        // The group of each source that still takes rotations, and where each rotation is.
        let mut open: HashMap<ValueId, usize> = HashMap::new();
        let mut known: HashMap<(ValueId, ValueId, i64), (usize, usize)> = HashMap::new();
        for (place, op) in body.ops().iter().enumerate() {
            let (true, &[source, key], Some(step)) =
                (is_rotation(op), op.operands(), op.attributes().int("step"))
            else {
                continue;
            };
            if let Some(&(group, member)) = known.get(&(source, key, step)) {
                groups[group].members[member].places.push(place);
                continue;
            }
            let group = match open.get(&source) {
                Some(&group)
                    if groups[group].members.len() < self.max_group_size
                        && is_available(body, key, groups[group].anchor) =>
                {
                    group
                }
                _ => {
                    open.insert(source, groups.len());
                    groups.push(Group {
                        source,
                        anchor: place,
                        members: Vec::new(),
                    });
                    groups.len() - 1
                }
            };
            known.insert((source, key, step), (group, groups[group].members.len()));
            groups[group].members.push(Member {
                step,
                key,
                places: vec![place],
            });
        }
        groups.retain(|group| group.members.len() > 1);
        groups
    }
}

fn is_rotation(op: &Op) -> bool {
    op.kind() == OpKind::Ckks(Ckks::Rotate)
}

/// Whether a key can be had at a place: an input, a material, or defined before.
fn is_available(body: &Body, key: ValueId, place: usize) -> bool {
    match body.values()[key.index()].origin {
        Origin::Argument(_) => true,
        Origin::Result { op, .. } => {
            op < place || body.ops()[op].kind() == OpKind::Core(Core::Material)
        }
    }
}

fn rewrite(program: &Program, groups: &[Group]) -> Result<Program, IrError> {
    let body = program.body();
    let mut by_anchor: HashMap<usize, &Group> = HashMap::new();
    // What stands elsewhere in the new Program: rotations and the references to their keys.
    let mut is_placed = vec![false; body.ops().len()];
    for group in groups {
        by_anchor.insert(group.anchor, group);
        let places = group.members.iter().flat_map(|member| &member.places);
        places.for_each(|&place| is_placed[place] = true);
    }
    let mut rewriter = Rewriter::new(program)?;
    for (place, op) in body.ops().iter().enumerate() {
        match by_anchor.get(&place) {
            Some(group) => hoist(group, &mut rewriter, &mut is_placed)?,
            None if is_placed[place] => {}
            None => {
                rewriter.copy(op)?;
            }
        }
    }
    rewriter.finish()
}

fn hoist(
    group: &Group,
    rewriter: &mut Rewriter<'_>,
    is_placed: &mut [bool],
) -> Result<(), IrError> {
    let body = rewriter.source().body();
    let mut operands = vec![rewriter.map(group.source)?];
    for &Member { key, .. } in &group.members {
        if let Origin::Result { op, .. } = body.values()[key.index()].origin
            && op > group.anchor
            && !is_placed[op]
        {
            rewriter.copy(&body.ops()[op])?;
            is_placed[op] = true;
        }
        operands.push(rewriter.map(key)?);
    }
    let steps: Vec<i64> = group.members.iter().map(|member| member.step).collect();
    let attributes = Attributes::new().with("steps", steps);
    let location = body.ops()[group.anchor].location().cloned();
    let results = rewriter
        .builder()
        .op(Ckks::RotateHoisted, &operands, &attributes, location)?
        .to_vec();
    for (member, result) in group.members.iter().zip(results) {
        for &place in &member.places {
            rewriter.replace(&body.ops()[place], &[result])?;
        }
    }
    Ok(())
}

/// Says where rotations are still `he` operations, which have no hoisted form.
fn unlowered(body: &Body) -> Option<Diagnostic> {
    let op = body
        .ops()
        .iter()
        .find(|op| op.kind() == OpKind::He(He::Rotate) && op.attributes().int("step") != Some(0))?;
    Some(Diagnostic {
        message: "he rotations are left alone; run lower-to-ckks before this pass".to_owned(),
        operation: Some(op.kind().name().to_owned()),
        location: op.location().cloned(),
    })
}
