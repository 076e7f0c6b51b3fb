//! The plans that a program is linked by.

use super::linker::LinkOptions;
use crate::MaterialBinding;
use fhelium_ir::{Core, Op, OpKind};
use fhelium_passes::Compilation;
use fhelium_passes::plan::{BufferPlan, Prologue};
use std::sync::Arc;

/// Bytes that a prologue may keep where the compilation has no plan for it.
const MAX_RESIDENT_BYTES: u64 = 4 << 30;

/// What stays between calls, and the buffers: as planned, unless materials may change with nobody
/// telling, which no plan knows.
pub(super) fn plans(
    compilation: &Compilation,
    options: LinkOptions<'_>,
) -> (Arc<Prologue>, Arc<BufferPlan>) {
    let (program, plans) = (compilation.program(), compilation.plans());
    let planned = plans.prologue.as_ref();
    let most = planned.map_or(MAX_RESIDENT_BYTES, |planned| planned.max_resident_bytes);
    let may_change = |op: &Op| {
        let symbol = op.attributes().symbol("symbol");
        let is_material = op.kind() == OpKind::Core(Core::Material);
        let symbol = symbol.filter(|_| is_material && !options.frozen_materials);
        symbol.is_some_and(|symbol| {
            let binding = compilation.material_bindings.get::<MaterialBinding>(symbol);
            binding.is_some_and(|binding| binding.changing().is_some())
        })
    };
    let as_planned = !program.body().ops().iter().any(may_change);
    let prologue = match planned.filter(|_| as_planned) {
        Some(planned) => planned.clone(),
        None => Arc::new(Prologue::without(program, most, may_change)),
    };
    let buffers = match plans.buffers.as_ref().filter(|_| as_planned) {
        Some(buffers) => buffers.clone(),
        None => Arc::new(BufferPlan::of(program, Some(&prologue))),
    };
    (prologue, buffers)
}
