//! Rebuilding a Program operation by operation: how most passes change one.

use crate::{Body, IrError, Location, Op, Program, ProgramBuilder, Type, ValueId};

/// Builds a changed Program from another, in one pass over its operations.
///
/// For each operation in order the caller copies it, appends others in its place and binds its
/// results to theirs, or leaves it out. Types follow from the new operands, so that a change of
/// state (a rescale put in, an input specialised) carries on by itself.
///
/// ```
/// # use fhelium_ir::*;
/// # let mut builder = ProgramBuilder::new("f", None);
/// # let x = builder.input("x", Type::tensor(DType::F64, [4]))?;
/// # let y = builder.one(Tensor::Neg, &[x], &Attributes::new(), None)?;
/// # let z = builder.one(Tensor::Neg, &[y], &Attributes::new(), None)?;
/// # let program = builder.finish(&OutputTree::Value(z))?;
/// // -(-x) is x.
/// let mut rewriter = Rewriter::new(&program)?;
/// for op in program.body().ops() {
///     let inner = program.body().definition(op.operands()[0]);
///     match inner {
///         Some(inner) if inner.kind() == op.kind() => {
///             let x = rewriter.map(inner.operands()[0])?;
///             rewriter.bind(op.results()[0], x);
///         }
///         _ => {
///             rewriter.copy(op)?;
///         }
///     }
/// }
/// assert_eq!(rewriter.finish()?.results(), &[x]);
/// # Ok::<(), IrError>(())
/// ```
pub struct Rewriter<'p> {
    source: &'p Program,
    builder: ProgramBuilder,
    map: Vec<Option<ValueId>>,
}

impl<'p> Rewriter<'p> {
    /// A Program with the source's name, chain, inputs and materials.
    pub fn new(source: &'p Program) -> Result<Self, IrError> {
        Rewriter::with_input_types(source, |_, ty| ty.clone())
    }

    /// The same, with other types for the inputs: `retype` gets each input's place and type.
    pub fn with_input_types(
        source: &'p Program,
        mut retype: impl FnMut(usize, &Type) -> Type,
    ) -> Result<Self, IrError> {
        let mut builder = ProgramBuilder::without_inputs_of(source);
        let mut map = vec![None; source.body().values().len()];
        for (place, input) in source.inputs().iter().enumerate() {
            let ty = retype(place, &input.ty);
            map[place] = Some(builder.input(input.name.clone(), ty)?);
        }
        Ok(Rewriter {
            source,
            builder,
            map,
        })
    }

    /// The Program that is changed.
    pub fn source(&self) -> &'p Program {
        self.source
    }

    /// The Program that is being built: operations and materials are added there.
    pub fn builder(&mut self) -> &mut ProgramBuilder {
        &mut self.builder
    }

    /// The operations built so far.
    pub fn body(&self) -> &Body {
        self.builder.body()
    }

    /// The new value that stands for a value of the source.
    ///
    /// An error if its operation was neither copied nor replaced.
    pub fn map(&self, old: ValueId) -> Result<ValueId, IrError> {
        let new = self.map.get(old.index()).copied().flatten();
        new.ok_or_else(|| {
            IrError::malformed(format!(
                "value {} of {} is used after its operation was removed",
                old.index(),
                self.source.name()
            ))
        })
    }

    /// The new values for several values of the source.
    pub fn map_all(&self, old: &[ValueId]) -> Result<Vec<ValueId>, IrError> {
        old.iter().map(|&value| self.map(value)).collect()
    }

    /// The type that a value of the source has now.
    pub fn type_of(&self, old: ValueId) -> Result<&Type, IrError> {
        let new = self.map(old)?;
        Ok(self.builder.body().type_of(new))
    }

    /// Lets a new value stand for a value of the source.
    pub fn bind(&mut self, old: ValueId, new: ValueId) {
        if let Some(slot) = self.map.get_mut(old.index()) {
            *slot = Some(new);
        }
    }

    /// Lets new values stand for all results of an operation of the source.
    pub fn replace(&mut self, op: &Op, new: &[ValueId]) -> Result<(), IrError> {
        if new.len() != op.results().len() {
            return Err(IrError::malformed(format!(
                "{} values replace {} results",
                new.len(),
                op.results().len()
            ))
            .at(op.kind().name(), op.location()));
        }
        for (&old, &new) in op.results().iter().zip(new) {
            self.bind(old, new);
        }
        Ok(())
    }

    /// Appends an operation of the source with its operands as they are now.
    pub fn copy(&mut self, op: &Op) -> Result<Vec<ValueId>, IrError> {
        let operands = self.map_all(op.operands())?;
        self.copy_with(op, &operands, op.location().cloned())
    }

    /// Appends an operation of the source with other operands.
    pub fn copy_with(
        &mut self,
        op: &Op,
        operands: &[ValueId],
        location: Option<Location>,
    ) -> Result<Vec<ValueId>, IrError> {
        let region = op.region().cloned();
        let results = self
            .builder
            .op_with_region(op.kind(), operands, op.attributes(), location, region)?
            .to_vec();
        self.replace(op, &results)?;
        Ok(results)
    }

    /// The built Program, verified; it returns what the source returns.
    pub fn finish(self) -> Result<Program, IrError> {
        let outputs = self.source.output_values().map(&mut |&old| self.map(old))?;
        self.builder.finish(&outputs)
    }
}
