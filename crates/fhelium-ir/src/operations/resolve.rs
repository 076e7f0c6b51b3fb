//! Applying an entry of the table: checks, defaults, canonical attributes, result types.

use super::{Call, Count, InferContext, OpDef, OpKind};
use crate::{Attributes, Basis, Body, InferError, Type};

/// An operation's canonical attributes and the types of its results.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// In the table's order; defaults filled in; axes and rotation steps normalised.
    pub attributes: Attributes,
    /// One for each result.
    pub results: Vec<Type>,
}

impl OpKind {
    /// Checks an operation's operands and attributes and gives its canonical attributes and
    /// result types.
    ///
    /// Builders, the verifier and the eager engine all decide here. `region` is the body of an
    /// operation that holds one.
    pub fn resolve(
        self,
        context: &InferContext<'_>,
        operands: &[&Type],
        attributes: &Attributes,
        region: Option<&Body>,
    ) -> Result<Resolved, InferError> {
        let def = self.def();
        check_operands(def, operands)?;
        for operand in operands {
            check_type(context, operand)?;
        }
        if def.has_region != region.is_some() {
            return Err(InferError::malformed(if def.has_region {
                "the region is missing"
            } else {
                "a region was given, but this operation has none"
            }));
        }
        let mut attributes = complete(def, attributes)?;
        if let Some(canonicalize) = def.canonicalize {
            let mut canonical = attributes.clone();
            let call = Call {
                context,
                operands,
                attributes: &attributes,
                region,
            };
            canonicalize(&call, &mut canonical)?;
            // Set anew in the table's order: an attribute that was filled in came last.
            attributes = complete(def, &canonical)?;
        }
        let call = Call {
            context,
            operands,
            attributes: &attributes,
            region,
        };
        let results = (def.rule)(&call)?;
        Ok(Resolved {
            attributes,
            results,
        })
    }

    /// The result types of an operation without a region.
    pub fn infer(
        self,
        context: &InferContext<'_>,
        operands: &[&Type],
        attributes: &Attributes,
    ) -> Result<Vec<Type>, InferError> {
        Ok(self.resolve(context, operands, attributes, None)?.results)
    }
}

fn check_operands(def: &OpDef, operands: &[&Type]) -> Result<(), InferError> {
    let least = def
        .operands
        .iter()
        .filter(|spec| spec.count == Count::One)
        .count();
    let last = def.operands.last().map_or(Count::One, |spec| spec.count);
    let most = match last {
        Count::One => least,
        Count::Optional => least + 1,
        Count::Many => usize::MAX,
    };
    if !(least..=most).contains(&operands.len()) {
        let expected = match last {
            Count::One => format!("{least}"),
            Count::Optional => format!("{least} or {most}"),
            Count::Many => format!("{least} or more"),
        };
        let names: Vec<_> = def.operands.iter().map(|spec| spec.name).collect();
        return Err(InferError::malformed(format!(
            "expected {expected} operands ({}), found {}",
            names.join(", "),
            operands.len()
        )));
    }
    for (index, operand) in operands.iter().enumerate() {
        let Some(spec) = def.operands.get(index).or(def.operands.last()) else {
            break;
        };
        if !spec.kind.accepts(operand) {
            return Err(InferError::malformed(format!(
                "operand {index} ({}) is {}, expected {}",
                spec.name,
                operand.noun(),
                spec.kind
            )));
        }
    }
    Ok(())
}

/// Refuses a type that no value can have: a level outside the chain, a scale that does not fit,
/// a wrong number of parts, more elements than memory can number.
pub(crate) fn check_type(context: &InferContext<'_>, ty: &Type) -> Result<(), InferError> {
    let chain = |what: &str| {
        context.chain.ok_or_else(|| {
            InferError::malformed(format!(
                "{what} refers to a modulus chain, but the program declares none"
            ))
        })
    };
    super::shape::check_size(ty.batch())?;
    match ty {
        Type::Ciphertext {
            state: Some(state), ..
        } => {
            if !(2..=3).contains(&state.parts) {
                return Err(InferError::value(format!(
                    "a ciphertext has 2 or 3 parts, found {}",
                    state.parts
                )));
            }
            chain("a ciphertext's level")?.check_encoding(
                "a ciphertext type",
                state.level,
                &state.scale,
            )?;
        }
        Type::Plaintext {
            state: Some(state), ..
        } => chain("a plaintext's level")?.check_encoding(
            "a plaintext type",
            state.level,
            &state.scale,
        )?,
        Type::Residues { parts, basis, .. } => {
            if !(1..=3).contains(parts) {
                return Err(InferError::value(format!(
                    "residues have 1 to 3 parts, found {parts}"
                )));
            }
            chain("a basis")?.check_level("a residues type", basis.level())?;
            if let Basis::Digit { level, start, end } = basis
                && !(start < end && *end <= level + 1)
            {
                return Err(InferError::value(format!(
                    "{basis} holds no primes of level {level}: a digit is a non-empty range within \
                     0..{}",
                    level + 1
                )));
            }
        }
        _ => {}
    }
    Ok(())
}

/// The attributes in the table's order, with defaults; unknown and missing ones refused.
fn complete(def: &OpDef, given: &Attributes) -> Result<Attributes, InferError> {
    for (name, _) in given.iter() {
        if def.attribute(name).is_none() {
            let known: Vec<_> = def.attributes.iter().map(|spec| spec.name).collect();
            return Err(InferError::malformed(if known.is_empty() {
                format!("the attribute {name} is unknown: this operation has none")
            } else {
                format!(
                    "the attribute {name} is unknown, expected {}",
                    known.join(", ")
                )
            }));
        }
    }
    let mut attributes = Attributes::new();
    for spec in def.attributes {
        match given.get(spec.name) {
            Some(value) if spec.kind.accepts(value) => attributes.set(spec.name, value.clone()),
            Some(value) => {
                return Err(InferError::malformed(format!(
                    "the attribute {} is {value}, expected {}",
                    spec.name, spec.kind
                )));
            }
            None => match (spec.default_value(), spec.presence) {
                (Some(value), _) => attributes.set(spec.name, value),
                (None, super::Presence::Required) => {
                    return Err(InferError::malformed(format!(
                        "the attribute {} is missing: {}",
                        spec.name, spec.doc
                    )));
                }
                (None, _) => {}
            },
        }
    }
    Ok(attributes)
}
