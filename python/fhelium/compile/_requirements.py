"""What a function or Program needs, before any key exists."""

from __future__ import annotations

from types import FunctionType

from .. import _native
from ._callable import CompiledCallable
from ._capture import capture
from ._inputs import InputSpec

__all__ = ["requirements"]


def requirements(
    source: FunctionType | CompiledCallable[..., object] | _native.Program | _native.Compilation,
    /,
    *,
    parameters: _native.Parameters | None = None,
    **inputs: InputSpec,
) -> _native.Requirements:
    """Finds the keys, levels and depth that a function or Program needs.

    Args:
        source: A function, compiled or not, a Program or a Compilation.
        parameters: The parameters of encrypted inputs; with them, key bytes are known too.
        inputs: For a function, a description of each parameter.
    """
    if isinstance(source, CompiledCallable):
        compiled = source.reference or source.source
        return requirements(compiled, parameters=parameters, **inputs)  # type: ignore[arg-type]
    if isinstance(source, _native.Compilation):
        source = source.program
    if not isinstance(source, _native.Program):
        source = capture(source, inputs=inputs, parameters=parameters).program
    return _native.program_requirements(source, parameters)
