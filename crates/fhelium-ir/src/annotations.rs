//! What a Program says of itself without meaning anything by it: source lines and notes.

use crate::{Body, Location, Material, Program};
use std::sync::Arc;

impl Program {
    /// The same Program with other source lines, those inside regions too; `None` takes a line away.
    ///
    /// What operations do does not depend on their lines, so nothing needs to be verified again.
    #[must_use]
    pub fn map_locations(&self, replace: &mut dyn FnMut(&Location) -> Option<Location>) -> Program {
        Program {
            body: Arc::new(map_body(&self.body, replace)),
            ..self.clone()
        }
    }

    /// The same Program with other descriptions of its materials, by symbol.
    #[must_use]
    pub fn map_descriptions(&self, describe: &mut dyn FnMut(&str, &str) -> Arc<str>) -> Program {
        let materials = self.materials.iter().map(|(symbol, material)| {
            let description = describe(symbol, &material.description);
            let ty = material.ty.clone();
            (symbol.clone(), Material { ty, description })
        });
        Program {
            materials: Arc::new(materials.collect()),
            ..self.clone()
        }
    }
}

fn map_body(body: &Body, replace: &mut dyn FnMut(&Location) -> Option<Location>) -> Body {
    let mut body = body.clone();
    for op in &mut body.ops {
        op.location = op.location.as_ref().and_then(&mut *replace);
        if let Some(region) = &op.region {
            op.region = Some(Arc::new(map_body(region, replace)));
        }
    }
    body
}
