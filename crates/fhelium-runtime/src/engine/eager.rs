//! Operations one by one.
//!
//! An eager call is typed by the operation table, lowered by the table that the compiler's pass
//! uses and run by the implementation that a compiled program runs, so both give the same bits.

use super::Engine;
use super::devices::Operand;
use crate::backend::{Invocation, Operands, run_checked};
use crate::value::normalized;
use crate::{OperationBackend, RuntimeError, Value};
use fhelium_ckks::SecretId;
use fhelium_ir::{Attributes, Ckks, He, InferContext, IrError, KeyKind, Location, OpKind, Type};
use fhelium_passes::lowering::{Lowered, Source, lower_operation};
use smallvec::SmallVec;

impl Engine {
    /// Runs one operation of any dialect that has implementations.
    ///
    /// An `he` operation that needs a key and is given none finds it among the registered ones.
    ///
    /// # Errors
    /// The operation table's where types or attributes do not fit; [`crate::MissingKeys`];
    /// [`RuntimeError::KeyMismatch`] for values of other parameters; what the implementation
    /// refuses. All with the source line where one is given.
    pub fn apply(
        &self,
        operation: OpKind,
        operands: &[Value],
        attributes: &Attributes,
        location: Option<&Location>,
    ) -> Result<Vec<Value>, RuntimeError> {
        self.apply_here(operation, operands, attributes)
            .map_err(|error| error.at(location))
    }

    fn apply_here(
        &self,
        operation: OpKind,
        operands: &[Value],
        attributes: &Attributes,
    ) -> Result<Vec<Value>, RuntimeError> {
        let named = operands.iter().enumerate();
        self.check_places(&operation, named.map(|(place, x)| (Operand(place), x)))?;
        for (place, operand) in operands.iter().enumerate() {
            self.check_parameters(operand, &format_args!("operand {place} of {operation}"))?;
        }
        let types: SmallVec<[Type; 4]> = operands.iter().map(Value::ty).collect();
        let types: SmallVec<[&Type; 4]> = types.iter().collect();
        let context = InferContext::of_chain(self.parameters().chain());
        let resolved = operation
            .resolve(&context, &types, attributes, None)
            .map_err(|error| IrError::from(error).at(operation.name(), None))?;
        let OpKind::He(he) = operation else {
            let operands = operands.iter().cloned().collect();
            return self.run(
                operation,
                &types,
                operands,
                &resolved.attributes,
                &resolved.results,
            );
        };
        let lowered = lower_operation(he, &types, &resolved.attributes)
            .map_err(|error| RuntimeError::Value(format!("{operation}: {error}")))?;
        let (kind, sources, attributes) = match lowered {
            Lowered::Operand(place) => return Ok(vec![operands[place].clone()]),
            Lowered::Operation {
                kind,
                operands,
                attributes,
            } => (kind, operands, attributes),
        };
        let mut values = Operands::new();
        for source in sources {
            values.push(match source {
                Source::Operand(place) => operands[place].clone(),
                Source::Key(key) => self.key_for(key, operands)?,
            });
        }
        let types: SmallVec<[Type; 4]> = values.iter().map(Value::ty).collect();
        let types: SmallVec<[&Type; 4]> = types.iter().collect();
        self.run(kind.into(), &types, values, &attributes, &resolved.results)
    }

    fn run(
        &self,
        operation: OpKind,
        types: &[&Type],
        operands: Operands,
        attributes: &Attributes,
        results: &[Type],
    ) -> Result<Vec<Value>, RuntimeError> {
        let tensors = operands.iter().map(|operand| operand.device().kind());
        let place = OperationBackend::place_of(operation, self.device.kind(), tensors);
        let implementation = self.backend.resolve(operation, place, types, attributes)?;
        let invocation = Invocation {
            engine: self,
            attributes,
            region: None,
            results,
        };
        run_checked(implementation.as_ref(), &invocation, operands).map(SmallVec::into_vec)
    }

    /// The registered key of the ciphertext operand's secret.
    fn key_for(&self, kind: KeyKind, operands: &[Value]) -> Result<Value, RuntimeError> {
        let secret: Option<SecretId> = operands.iter().find_map(Value::secret_id);
        let secret = secret.ok_or_else(|| {
            RuntimeError::Value(format!("the {kind} key is asked for without a ciphertext"))
        })?;
        let kind = normalized(kind, self.parameters());
        Ok(Value::Key(self.registry.require(secret, kind)?))
    }

    fn one(
        &self,
        operation: He,
        operands: &[Value],
        attributes: &Attributes,
    ) -> Result<Value, RuntimeError> {
        let results = self.apply(operation.into(), operands, attributes, None)?;
        results.into_iter().next().ok_or_else(|| {
            RuntimeError::Implementation(format!("{} gave no result", operation.def().name))
        })
    }

    fn keyed(
        &self,
        operation: He,
        x: &Value,
        key: Option<&Value>,
        attributes: &Attributes,
    ) -> Result<Value, RuntimeError> {
        match key {
            Some(key) => self.one(operation, &[x.clone(), key.clone()], attributes),
            None => self.one(operation, std::slice::from_ref(x), attributes),
        }
    }

    /// The sum of two ciphertexts, or of a ciphertext and a plaintext in either order: equal
    /// levels and scales, batch shapes that broadcast.
    ///
    /// # Errors
    /// As [`Engine::apply`]; so for all operations below.
    pub fn add(&self, x: &Value, y: &Value) -> Result<Value, RuntimeError> {
        self.one(He::Add, &[x.clone(), y.clone()], &Attributes::new())
    }

    /// `x - y`, as [`Engine::add`].
    pub fn subtract(&self, x: &Value, y: &Value) -> Result<Value, RuntimeError> {
        self.one(He::Sub, &[x.clone(), y.clone()], &Attributes::new())
    }

    /// The product: of ciphertexts in three parts. Its scale is the product of the scales.
    pub fn multiply(&self, x: &Value, y: &Value) -> Result<Value, RuntimeError> {
        self.one(He::Mul, &[x.clone(), y.clone()], &Attributes::new())
    }

    /// The product with an integer; the scale stays.
    pub fn multiply_integer(&self, x: &Value, factor: i64) -> Result<Value, RuntimeError> {
        let attributes = Attributes::new().with("value", factor);
        self.one(He::MulInteger, std::slice::from_ref(x), &attributes)
    }

    /// A ciphertext times itself, in three parts.
    pub fn square(&self, x: &Value) -> Result<Value, RuntimeError> {
        self.one(He::Square, std::slice::from_ref(x), &Attributes::new())
    }

    /// `-x`.
    pub fn negate(&self, x: &Value) -> Result<Value, RuntimeError> {
        self.one(He::Neg, std::slice::from_ref(x), &Attributes::new())
    }

    /// Slot i receives slot i + `step`, modulo the slots; 0 is the identity and needs no key.
    pub fn rotate(&self, x: &Value, step: i64, key: Option<&Value>) -> Result<Value, RuntimeError> {
        let attributes = Attributes::new().with("step", step);
        self.keyed(He::Rotate, x, key, &attributes)
    }

    /// Several rotations of one ciphertext, decomposed once; the bits are those of single ones.
    pub fn rotate_many(&self, x: &Value, steps: &[i64]) -> Result<Vec<Value>, RuntimeError> {
        if steps.is_empty() {
            return Ok(Vec::new());
        }
        let mut operands = vec![x.clone()];
        for &step in steps {
            let kind = normalized(KeyKind::Rotation { step }, self.parameters());
            if kind != (KeyKind::Rotation { step: 0 }) {
                operands.push(self.key_for(kind, std::slice::from_ref(x))?);
            }
        }
        let attributes = Attributes::new().with("steps", steps.to_vec());
        self.apply(Ckks::RotateHoisted.into(), &operands, &attributes, None)
    }

    /// The complex conjugate of every slot.
    pub fn conjugate(&self, x: &Value, key: Option<&Value>) -> Result<Value, RuntimeError> {
        self.keyed(He::Conjugate, x, key, &Attributes::new())
    }

    /// Three parts to two.
    pub fn relinearize(&self, x: &Value, key: Option<&Value>) -> Result<Value, RuntimeError> {
        self.keyed(He::Relinearize, x, key, &Attributes::new())
    }

    /// One level less, the scale divided by that level's prime.
    pub fn rescale(&self, x: &Value) -> Result<Value, RuntimeError> {
        self.one(He::Rescale, std::slice::from_ref(x), &Attributes::new())
    }

    /// `count` levels less at the same scale.
    pub fn drop_levels(&self, x: &Value, count: usize) -> Result<Value, RuntimeError> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let attributes = Attributes::new().with("count", count);
        self.one(He::DropLevels, std::slice::from_ref(x), &attributes)
    }

    /// The sum of a batch along one of its axes, which goes; negative axes count from the end.
    pub fn sum_batch(&self, x: &Value, axis: i64) -> Result<Value, RuntimeError> {
        let attributes = Attributes::new().with("axis", axis);
        self.one(He::SumBatch, std::slice::from_ref(x), &attributes)
    }

    /// Evenly spaced items along each batch axis: `sizes` of them from `starts`, `steps` apart;
    /// axes of size 1 in `dropped` go.
    pub fn batch_slice(
        &self,
        x: &Value,
        starts: &[i64],
        sizes: &[i64],
        steps: &[i64],
        dropped: &[i64],
    ) -> Result<Value, RuntimeError> {
        let attributes = Attributes::new()
            .with("starts", starts.to_vec())
            .with("sizes", sizes.to_vec())
            .with("steps", steps.to_vec())
            .with("dropped", dropped.to_vec());
        self.one(He::BatchSlice, std::slice::from_ref(x), &attributes)
    }

    /// The same items under other batch axes; one extent may be -1.
    pub fn batch_reshape(&self, x: &Value, shape: &[i64]) -> Result<Value, RuntimeError> {
        let attributes = Attributes::new().with("shape", shape.to_vec());
        self.one(He::BatchReshape, std::slice::from_ref(x), &attributes)
    }

    /// Ciphertexts, or plaintexts, of one type along a new batch axis.
    pub fn stack(&self, items: &[Value], axis: i64) -> Result<Value, RuntimeError> {
        let attributes = Attributes::new().with("axis", axis);
        self.one(He::StackBatch, items, &attributes)
    }
}
