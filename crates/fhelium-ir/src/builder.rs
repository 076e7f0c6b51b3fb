//! Building Programs operation by operation.

use crate::outputs::MAX_DEPTH;
use crate::{
    Attributes, Body, Core, InferContext, Input, IrError, Literal, Location, Material, Materials,
    Op, OpKind, Origin, OutputTree, Program, Type, Value, ValueId,
};
use fhelium_state::{Chain, ErrorKind};
use std::collections::HashSet;
use std::sync::Arc;

/// Builds a body: a Program's, or the region of a fused operation.
#[derive(Clone, Debug, Default)]
pub struct BodyBuilder {
    body: Body,
}

impl BodyBuilder {
    /// A body without arguments yet.
    pub fn new() -> Self {
        BodyBuilder::default()
    }

    /// One more argument; arguments come before operations.
    pub fn argument(&mut self, ty: Type) -> Result<ValueId, IrError> {
        if !self.body.ops.is_empty() {
            return Err(IrError::malformed(
                "an argument was added after an operation; declare all of them first",
            ));
        }
        let place = self.body.values.len();
        let id = self.define(ty, Origin::Argument(place))?;
        self.body.arguments += 1;
        Ok(id)
    }

    fn define(&mut self, ty: Type, origin: Origin) -> Result<ValueId, IrError> {
        let id = u32::try_from(self.body.values.len())
            .map_err(|_| IrError::malformed("a body holds at most 2^32 values"))?;
        self.body.values.push(Value { ty, origin });
        Ok(ValueId(id))
    }

    /// A value's type; `None` if the value is not this body's.
    pub fn type_of(&self, value: ValueId) -> Option<&Type> {
        self.body.values.get(value.index()).map(|value| &value.ty)
    }

    /// The body so far.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Appends an operation; its results are typed by the table's rule.
    pub fn op(
        &mut self,
        context: &InferContext<'_>,
        kind: OpKind,
        operands: &[ValueId],
        attributes: &Attributes,
        location: Option<Location>,
        region: Option<Arc<Body>>,
    ) -> Result<&[ValueId], IrError> {
        let mut types = Vec::with_capacity(operands.len());
        for operand in operands {
            let value = self.body.values.get(operand.index()).ok_or_else(|| {
                IrError::malformed(format!("value {} is not defined", operand.index()))
                    .at(kind.name(), location.as_ref())
            })?;
            types.push(&value.ty);
        }
        let resolved = kind
            .resolve(context, &types, attributes, region.as_deref())
            .map_err(|error| self.explain(error.into(), kind, operands, location.as_ref()))?;
        let place = self.body.ops.len();
        let mut op = Op {
            kind,
            operands: operands.into(),
            results: Default::default(),
            attributes: resolved.attributes,
            location,
            region,
        };
        for (index, ty) in resolved.results.into_iter().enumerate() {
            let id = self.define(ty, Origin::Result { op: place, index })?;
            op.results.push(id);
        }
        self.body.ops.push(op);
        Ok(&self.body.ops[place].results)
    }

    /// The error with the operation's place, and for operands that do not agree, theirs.
    fn explain(
        &self,
        mut error: IrError,
        kind: OpKind,
        operands: &[ValueId],
        location: Option<&Location>,
    ) -> IrError {
        if matches!(
            error.kind,
            ErrorKind::ScaleMismatch | ErrorKind::LevelMismatch
        ) && let [left, right, ..] = *operands
        {
            let made = |value| self.body.definition(value).and_then(Op::location);
            match (made(left), made(right)) {
                (Some(left), Some(right)) => {
                    error.message += &format!(
                        " (the left operand was made at {left}, the right one at {right})"
                    );
                }
                (Some(one), None) | (None, Some(one)) => {
                    error.message += &format!(" (an operand was made at {one})");
                }
                (None, None) => {}
            }
        }
        error.at(kind.name(), location)
    }

    /// The body that gives these values.
    pub fn finish(mut self, results: &[ValueId]) -> Result<Body, IrError> {
        if let Some(unknown) = results.iter().find(|value| self.type_of(**value).is_none()) {
            return Err(IrError::malformed(format!(
                "value {} is returned but not defined",
                unknown.index()
            )));
        }
        self.body.results = results.to_vec();
        Ok(self.body)
    }
}

/// Builds a Program.
///
/// Every operation is checked as it is added, so that an error points to the source line that
/// asked for it.
///
/// ```
/// use fhelium_ir::{Attributes, DType, OutputTree, ProgramBuilder, Tensor, Type};
/// let mut builder = ProgramBuilder::new("double", None);
/// let x = builder.input("x", Type::tensor(DType::F64, [4]))?;
/// let y = builder.op(Tensor::Add, &[x, x], &Attributes::new(), None)?[0];
/// let program = builder.finish(&OutputTree::Value(y))?;
/// assert_eq!(program.body().ops().len(), 1);
/// # Ok::<(), fhelium_ir::IrError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ProgramBuilder {
    name: Arc<str>,
    chain: Option<Arc<Chain>>,
    inputs: Vec<Input>,
    input_names: HashSet<Arc<str>>,
    materials: Arc<Materials>,
    body: BodyBuilder,
}

impl ProgramBuilder {
    /// A Program without inputs yet. The chain is needed wherever a level or scale is known.
    pub fn new(name: impl Into<Arc<str>>, chain: Option<Arc<Chain>>) -> Self {
        ProgramBuilder {
            name: name.into(),
            chain,
            inputs: Vec::new(),
            input_names: HashSet::new(),
            materials: Arc::default(),
            body: BodyBuilder::new(),
        }
    }

    /// A Program with the name, chain and materials of another.
    pub fn without_inputs_of(program: &Program) -> Self {
        let mut builder = ProgramBuilder::new(program.name.clone(), program.chain.clone());
        builder.materials = program.materials.clone();
        builder
    }

    /// Gives the chain where none was known when the builder was made.
    ///
    /// # Errors
    /// Where another chain is known already.
    pub fn set_chain(&mut self, chain: Arc<Chain>) -> Result<(), IrError> {
        match &self.chain {
            Some(known) if *known != chain => Err(IrError::new(
                ErrorKind::KeyMismatch,
                "values of two parameter sets meet in one Program; encrypt both under one",
            )),
            _ => {
                self.chain = Some(chain);
                Ok(())
            }
        }
    }

    /// What the rules see.
    pub fn context(&self) -> InferContext<'_> {
        InferContext {
            chain: self.chain.as_deref(),
            materials: Some(&self.materials),
        }
    }

    /// One more parameter; parameters come before operations.
    pub fn input(&mut self, name: impl Into<Arc<str>>, ty: Type) -> Result<ValueId, IrError> {
        let name = name.into();
        let about = |error: IrError| error.about(format_args!("input {name}"));
        crate::operations::check_type(&self.context(), &ty).map_err(|error| about(error.into()))?;
        if self.input_names.contains(&name) {
            return Err(about(IrError::malformed(
                "the name is taken by another input",
            )));
        }
        let id = self.body.argument(ty.clone()).map_err(about)?;
        self.input_names.insert(name.clone());
        self.inputs.push(Input { name, ty });
        Ok(id)
    }

    /// Declares a material; [`ProgramBuilder::reference`] gives a value that stands for it.
    pub fn material(
        &mut self,
        symbol: impl Into<Arc<str>>,
        material: Material,
    ) -> Result<(), IrError> {
        let symbol = symbol.into();
        crate::verify::check_material(&self.context(), &symbol, &material)?;
        if self.materials.contains_key(&symbol) {
            return Err(IrError::malformed(format!(
                "material {}: the symbol is taken",
                crate::text::Symbol(&symbol)
            )));
        }
        Arc::make_mut(&mut self.materials).insert(symbol, material);
        Ok(())
    }

    /// Takes back the declarations that no operation so far refers to.
    pub fn retain_used_materials(&mut self) {
        let ops = self.body.body().ops().iter();
        let used: HashSet<&Arc<str>> = ops
            .filter(|op| op.kind == OpKind::Core(Core::Material))
            .filter_map(|op| op.attributes.symbol("symbol"))
            .collect();
        if used.len() < self.materials.len() {
            Arc::make_mut(&mut self.materials).retain(|symbol, _| used.contains(symbol));
        }
    }

    /// The materials declared so far.
    pub fn materials(&self) -> &Materials {
        &self.materials
    }

    /// Appends a reference to a material.
    pub fn reference(
        &mut self,
        symbol: impl Into<Arc<str>>,
        location: Option<Location>,
    ) -> Result<ValueId, IrError> {
        let mut attributes = Attributes::new();
        attributes.set("symbol", crate::Attribute::Symbol(symbol.into()));
        self.one(Core::Material, &[], &attributes, location)
    }

    /// Appends an operation and gives its results.
    pub fn op(
        &mut self,
        kind: impl Into<OpKind>,
        operands: &[ValueId],
        attributes: &Attributes,
        location: Option<Location>,
    ) -> Result<&[ValueId], IrError> {
        self.op_with_region(kind, operands, attributes, location, None)
    }

    /// Appends an operation that has one result and gives it.
    pub fn one(
        &mut self,
        kind: impl Into<OpKind>,
        operands: &[ValueId],
        attributes: &Attributes,
        location: Option<Location>,
    ) -> Result<ValueId, IrError> {
        let kind = kind.into();
        match *self.op(kind, operands, attributes, location)? {
            [one] => Ok(one),
            ref many => Err(IrError::malformed(format!(
                "{} results, where one was expected",
                many.len()
            ))
            .at(kind.name(), None)),
        }
    }

    /// Appends an operation, with the region that it holds, and gives its results.
    pub fn op_with_region(
        &mut self,
        kind: impl Into<OpKind>,
        operands: &[ValueId],
        attributes: &Attributes,
        location: Option<Location>,
        region: Option<Arc<Body>>,
    ) -> Result<&[ValueId], IrError> {
        let context = InferContext {
            chain: self.chain.as_deref(),
            materials: Some(&self.materials),
        };
        self.body.op(
            &context,
            kind.into(),
            operands,
            attributes,
            location,
            region,
        )
    }

    /// A value's type; `None` if the value is not this Program's.
    pub fn type_of(&self, value: ValueId) -> Option<&Type> {
        self.body.type_of(value)
    }

    /// The operations so far.
    pub fn body(&self) -> &Body {
        self.body.body()
    }

    /// The Program that returns this, verified.
    pub fn finish(self, outputs: &OutputTree<ValueId>) -> Result<Program, IrError> {
        check_tree(outputs)?;
        let mut results = Vec::new();
        let outputs = outputs.map(&mut |&value| {
            results.push(value);
            Ok::<_, IrError>(results.len() - 1)
        })?;
        let program = Program {
            name: self.name,
            chain: self.chain,
            inputs: self.inputs.into(),
            materials: self.materials,
            body: Arc::new(self.body.finish(&results)?),
            outputs: Arc::new(outputs),
        };
        crate::verify::verify_structure(&program)?;
        Ok(program)
    }
}

/// Refuses trees that nest too deep and dicts with a key twice.
pub(crate) fn check_tree<Leaf>(tree: &OutputTree<Leaf>) -> Result<(), IrError> {
    fn keys<Leaf>(tree: &OutputTree<Leaf>) -> Result<(), IrError> {
        match tree {
            OutputTree::Value(_) | OutputTree::Literal(_) => Ok(()),
            OutputTree::Tuple(items) | OutputTree::List(items) => items.iter().try_for_each(keys),
            OutputTree::Dict(items) => {
                let mut seen: HashSet<&Literal> = HashSet::new();
                for (key, item) in items {
                    if !seen.insert(key) {
                        return Err(IrError::malformed(format!(
                            "a returned dict has the key {key} twice"
                        )));
                    }
                    keys(item)?;
                }
                Ok(())
            }
        }
    }
    if tree.is_deeper_than(MAX_DEPTH) {
        return Err(IrError::malformed(format!(
            "the returned structure nests deeper than {MAX_DEPTH}"
        )));
    }
    keys(tree)
}
