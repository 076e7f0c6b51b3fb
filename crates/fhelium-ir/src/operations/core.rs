//! `core`: references to data that the Program names.

use super::{AttributeKind, Call, Dialect, OpDef, OpKind, attribute, dialect};
use crate::{InferError, Type};

dialect! {
    /// References to data that the Program names.
    Core, "core":
    Material "material" "The material of that symbol: a captured array, a value or a key."
        => OpDef::new(
            &[],
            &[attribute("symbol", AttributeKind::Symbol, "the declared material")],
            "a value of the material's type",
            material,
            "core.material {symbol = @weights}",
        ).reading();
}

fn material(call: &Call<'_>) -> Result<Vec<Type>, InferError> {
    let symbol = call.symbol("symbol")?;
    let declared = call.context.materials.and_then(|all| all.get(symbol));
    match declared {
        Some(material) => Ok(vec![material.ty.clone()]),
        None => Err(InferError::malformed(format!(
            "no material is declared as {}",
            crate::text::Symbol(symbol)
        ))),
    }
}
