//! How a call's signature differs from prepared ones.

use super::{CallSignature, Condition};
use std::fmt;
use std::sync::Arc;

/// One condition that a call does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The argument.
    pub argument: Arc<str>,
    /// The condition: `kind`, `level`, `shape` and so on; `argument` where it is missing.
    pub condition: &'static str,
    /// What the call has.
    pub found: String,
    /// What the prepared variant holds.
    pub expected: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} is {}, prepared for {}",
            self.argument, self.condition, self.found, self.expected
        )
    }
}

impl CallSignature {
    /// The conditions of `prepared` that this signature does not meet, in the order of the
    /// arguments; empty exactly when the two are equal.
    pub fn difference(&self, prepared: &CallSignature) -> Vec<Difference> {
        let mut differences = Vec::new();
        let longest = self.arguments.len().max(prepared.arguments.len());
        for position in 0..longest {
            match (
                self.arguments.get(position),
                prepared.arguments.get(position),
            ) {
                (Some(found), Some(expected)) => {
                    if found.name != expected.name {
                        differences.push(Difference {
                            argument: found.name.clone(),
                            condition: "name",
                            found: found.name.to_string(),
                            expected: expected.name.to_string(),
                        });
                    }
                    compare(
                        &found.name,
                        &found.condition,
                        &expected.condition,
                        &mut differences,
                    );
                }
                (Some(found), None) => differences.push(Difference {
                    argument: found.name.clone(),
                    condition: "argument",
                    found: found.condition.to_string(),
                    expected: "no such argument".to_owned(),
                }),
                (None, Some(expected)) => differences.push(Difference {
                    argument: expected.name.clone(),
                    condition: "argument",
                    found: "no such argument".to_owned(),
                    expected: expected.condition.to_string(),
                }),
                (None, None) => {}
            }
        }
        differences
    }
}

fn compare(
    argument: &Arc<str>,
    found: &Condition,
    expected: &Condition,
    differences: &mut Vec<Difference>,
) {
    if found == expected {
        return;
    }
    let mut push = |condition, found: String, expected: String| {
        differences.push(Difference {
            argument: argument.clone(),
            condition,
            found,
            expected,
        });
    };
    if found.kind() != expected.kind() {
        push("kind", found.to_string(), expected.to_string());
        return;
    }
    for ((name, left), (_, right)) in found.properties().into_iter().zip(expected.properties()) {
        if left != right {
            push(name, left, right);
        }
    }
    // Scales that print alike can still differ; their exact forms never do.
    if let (Some(left), Some(right)) = (scale(found), scale(expected))
        && left != right
        && left.to_string() == right.to_string()
    {
        push("scale", left.exact(), right.exact());
    }
}

fn scale(condition: &Condition) -> Option<&fhelium_state::Scale> {
    match condition {
        Condition::Ciphertext { scale, .. } | Condition::Plaintext { scale, .. } => Some(scale),
        _ => None,
    }
}

/// How far apart two conditions are: a wrong kind outweighs any number of wrong properties.
fn weight(difference: &Difference) -> usize {
    match difference.condition {
        "argument" | "name" => 100,
        "kind" => 20,
        "parameters" => 8,
        "device" | "dtype" | "key" | "type" => 4,
        _ => 1,
    }
}

/// The prepared signatures by how little `found` differs from them, nearest first: the position
/// in `prepared` and the differences. Ties keep the order of `prepared`.
pub fn nearest<'a>(
    found: &CallSignature,
    prepared: impl IntoIterator<Item = &'a CallSignature>,
) -> Vec<(usize, Vec<Difference>)> {
    let mut ranked: Vec<(usize, Vec<Difference>)> = prepared
        .into_iter()
        .map(|signature| found.difference(signature))
        .enumerate()
        .collect();
    ranked.sort_by_key(|(_, differences)| differences.iter().map(weight).sum::<usize>());
    ranked
}
