//! What an implementation of an operation is.

use crate::{DeviceKind, Engine, RuntimeError, Value};
use fhelium_ir::state::LinearProgram;
use fhelium_ir::{Attributes, OpKind, Type};
use smallvec::SmallVec;

/// The operands of one execution, in order. Each is the implementation's own: where it holds the
/// only reference, it may reuse the buffer.
pub type Operands = SmallVec<[Value; 4]>;

/// The results of one execution, in order.
pub type Results = SmallVec<[Value; 1]>;

/// What an execution knows beside its operands.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    /// The engine whose parameters the values have.
    pub engine: &'a Engine,
    /// The operation's attributes: complete and canonical.
    pub attributes: &'a Attributes,
    /// What the region of an `rns.fused` computes.
    pub region: Option<&'a LinearProgram>,
    /// The types that the results must have.
    pub results: &'a [Type],
}

/// Code that runs one operation.
///
/// It must give one result of each of [`Invocation::results`]' types, the same for the same
/// operands and attributes, and leave operands that others hold unchanged. It is called from many
/// threads at once.
pub trait Implementation: Send + Sync {
    /// The name, unique among the operation's implementations.
    fn name(&self) -> &str;

    /// The operation.
    fn operation(&self) -> OpKind;

    /// Whether it runs on operands of these types.
    fn supports(&self, operands: &[&Type], attributes: &Attributes) -> bool {
        let _ = (operands, attributes);
        true
    }

    /// The expected time relative to the standard kernel's, which is 1; positive. Where several
    /// implementations support an operation, the least cost is taken.
    fn cost(&self) -> f64 {
        1.0
    }

    /// Where it runs. Its encrypted operands are there, and its encrypted results must be.
    fn device(&self) -> DeviceKind {
        DeviceKind::Cpu
    }

    /// Runs the operation.
    ///
    /// # Errors
    /// Where the operands' contents do not allow it, or memory lacks.
    fn execute(
        &self,
        invocation: &Invocation<'_>,
        operands: Operands,
    ) -> Result<Results, RuntimeError>;
}

/// Runs an implementation and holds it to the promised results.
pub(crate) fn run_checked(
    implementation: &dyn Implementation,
    invocation: &Invocation<'_>,
    operands: Operands,
) -> Result<Results, RuntimeError> {
    let results = implementation.execute(invocation, operands)?;
    let (name, operation) = (implementation.name(), implementation.operation());
    if results.len() != invocation.results.len() {
        return Err(RuntimeError::Implementation(format!(
            "the implementation {name:?} of {operation} gave {} results, expected {}",
            results.len(),
            invocation.results.len()
        )));
    }
    for (result, ty) in results.iter().zip(invocation.results) {
        if !result.has_type(ty) {
            return Err(RuntimeError::Implementation(format!(
                "the implementation {name:?} of {operation} gave {}, expected {ty}",
                result.ty()
            )));
        }
        let (found, expected) = (result.device(), invocation.engine.device());
        if found != expected && !result.is_host_array() {
            return Err(RuntimeError::Implementation(format!(
                "the implementation {name:?} of {operation} gave a result on {found}, expected one \
                 on {expected}"
            )));
        }
    }
    Ok(results)
}
