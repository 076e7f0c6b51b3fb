"""What a function or Program needs, before any key exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from .. import _native
from .._recording import Location
from ..errors import ArgumentError, LevelExhausted, ParameterError
from ._callable import CompiledCallable
from ._capture import capture
from ._inputs import InputSpec

__all__ = ["Requirements", "requirements"]


@dataclass(frozen=True)
class Requirements:
    """What running a Program needs.

    Attributes:
        levels: The most levels that a value loses.
        multiplicative_depth: The most products, with ciphertexts or plaintexts, in a row.
        rotation_steps: Steps that need a rotation key, ascending.
        relinearization: Whether the relinearization key is needed.
        conjugation: Whether the conjugation key is needed.
        keys: Each key, such as "rotation 5", with the lines that ask for it.
        key_bytes: Bytes of these keys; None where no parameters are known.
        peak_bytes: Bytes of intermediate values and results at the most at one time on the CPU,
            under the default pipeline; None where it does not apply to the Program.
        parameters: The smallest Parameters of the same scale that fit; None where no parameters
            are known or none fit.
    """

    levels: int
    multiplicative_depth: int
    rotation_steps: tuple[int, ...]
    relinearization: bool
    conjugation: bool
    keys: tuple[tuple[str, tuple[Location, ...]], ...]
    key_bytes: int | None
    peak_bytes: int | None
    parameters: _native.Parameters | None


def requirements(
    source: FunctionType | CompiledCallable[..., Any] | _native.Program | _native.Compilation,
    /,
    *,
    parameters: _native.Parameters | None = None,
    **inputs: InputSpec,
) -> Requirements:
    """Finds the keys, levels and bytes that a function or Program needs.

    Args:
        source: A function, compiled or not, a Program or a Compilation.
        parameters: The parameters of encrypted inputs; with them, key bytes are known too.
        inputs: For a function, a description of each parameter.
    """
    if isinstance(source, CompiledCallable):
        source = source.source  # type: ignore[assignment]
    function = source if isinstance(source, FunctionType) else None
    if function is not None:
        source = capture(function, inputs=inputs, parameters=parameters)
    elif inputs:
        raise ArgumentError("inputs describe the parameters of a function, found a Program")
    if isinstance(source, _native.Program):
        source = _native.Compilation(source)
    if not isinstance(source, _native.Compilation):
        raise TypeError(
            f"expected a function, a Program or a Compilation, found {type(source).__name__}"
        )
    found = _native.program_requirements(source.program, parameters)
    return Requirements(
        levels=found.levels,
        multiplicative_depth=found.multiplicative_depth,
        rotation_steps=tuple(found.rotation_steps),
        relinearization=found.relinearization,
        conjugation=found.conjugation,
        keys=tuple((kind, tuple(lines)) for kind, lines in found.keys),
        key_bytes=found.key_bytes,
        peak_bytes=_native.default_pipeline().run(source).peak_bytes,
        parameters=_smallest(function, inputs, parameters, found.levels),
    )


def _smallest(
    function: FunctionType | None,
    inputs: Mapping[str, InputSpec],
    parameters: _native.Parameters | None,
    levels: int,
) -> _native.Parameters | None:
    """The parameters of least depth under which the function can be captured."""
    if parameters is None:
        return None
    scale_bits = round(parameters.scale.log2)
    # A value that is never rescaled after a product needs more levels than it loses.
    for depth in range(levels, max(levels, parameters.depth) + 1):
        try:
            smallest = _native.Parameters(depth, scale_bits)
        except ParameterError:
            return None
        if function is None:
            return smallest
        try:
            capture(function, inputs=inputs, parameters=smallest)
        except LevelExhausted:
            continue
        return smallest
    return None
