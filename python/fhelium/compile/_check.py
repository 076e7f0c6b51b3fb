"""Finding the line of a compiled function at which precision is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _native
from .._arithmetic import host_array, is_on_gpu, kind_of
from .._recording import Location, describe

__all__ = ["PrecisionReport", "PrecisionRow", "check_program"]

Clear = np.ndarray[Any, Any]


@dataclass(frozen=True)
class PrecisionRow:
    """One encrypted result of a Program, beside the same computation on clear numbers.

    Attributes:
        operation: The operation's name.
        location: File, line and function of the line that made it.
        level: The result's level.
        scale: The result's scale.
        magnitude: The largest |message|.
        error: The largest distance of a slot from the clear computation.
    """

    operation: str
    location: Location | None
    level: int
    scale: _native.Scale
    magnitude: float
    error: float

    def __str__(self) -> str:
        return (
            f"{describe(self.location)}: {self.operation}: level {self.level}, scale "
            f"{self.scale}, |message| {self.magnitude:.3g}, error {self.error:.3g}"
        )


@dataclass(frozen=True)
class PrecisionReport:
    """How far each encrypted result is from the clear computation.

    Attributes:
        rows: One for each operation with an encrypted result, in order.
        atol: The largest error that is accepted.
    """

    rows: tuple[PrecisionRow, ...]
    atol: float

    @property
    def first(self) -> PrecisionRow | None:
        """The first result with a larger error than is accepted: where precision is lost."""
        return next((row for row in self.rows if not row.error <= self.atol), None)

    @property
    def passed(self) -> bool:
        """Whether every error is accepted."""
        return self.first is None

    @property
    def largest_error(self) -> float:
        """The largest error of all."""
        return max((row.error for row in self.rows), default=0.0)

    def __str__(self) -> str:
        first = self.first
        if first is None:
            return f"{len(self.rows)} results, largest error {self.largest_error:.3g}"
        return f"precision is lost (error above {self.atol:.3g}) at {first}"


def check_program(
    compilation: _native.Compilation,
    inputs: list[Any],
    secret: _native.SecretKey,
    atol: float,
) -> PrecisionReport:
    """Runs a Program operation by operation beside the same on clear numbers."""
    program = compilation.program
    engine = next(value._engine for value in inputs if kind_of(value) == "ciphertext")
    clear_of = _Clear(engine, secret)
    values: list[tuple[Any, Any]] = [(value, clear_of(value)) for value in inputs]
    rows = []
    for operation in program.walk():
        operands = [values[place] for place in operation.operands]
        if operation.name == "core.material":
            value = compilation.material_bindings[operation.attributes["symbol"]]
            values.append((value, clear_of(value)))
            continue
        found = engine._apply(
            operation.name, [value for value, _ in operands], operation.attributes, None
        )
        exact = _exact(operation, [clear for _, clear in operands], engine.slots, found)
        values.append((found, exact))
        if kind_of(found) == "ciphertext":
            rows.append(
                PrecisionRow(
                    operation=operation.name,
                    location=operation.location,
                    level=found.level,
                    scale=found.scale,
                    magnitude=float(np.abs(exact).max()),
                    error=float(np.abs(clear_of(found) - exact).max()),
                )
            )
    return PrecisionReport(tuple(rows), atol)


class _Clear:
    """The messages of encrypted and encoded values."""

    def __init__(self, engine: _native.Engine, secret: _native.SecretKey) -> None:
        self._engine = engine
        self._secret = secret

    def __call__(self, value: Any) -> Any:
        kind = kind_of(value)
        if kind == "ciphertext":
            return self._engine._decrypt(value, self._secret, False, None)
        if kind == "plaintext":
            return self._engine._decode(value, False)
        return host_array(value) if is_on_gpu(value) else value


def _message(tensor: Any, slots: int) -> Clear:
    """What an encoded tensor means, slot by slot."""
    array = np.asarray(tensor)
    if array.ndim == 0:
        return np.full(slots, array)
    padding = [(0, 0)] * (array.ndim - 1) + [(0, slots - array.shape[-1])]
    return np.pad(array, padding)


def _slice(message: Clear, attributes: dict[str, Any]) -> Clear:
    """The items that a slice of the batch takes."""
    spans = zip(attributes["starts"], attributes["sizes"], attributes["steps"], strict=True)
    for axis, (start, size, step) in enumerate(spans):
        message = message.take([start + place * step for place in range(size)], axis=axis)
    return message.squeeze(tuple(attributes["dropped"]))


_UNCHANGED = ("he.relinearize", "he.rescale", "he.drop_levels")
_BINARY: dict[str, Callable[[Clear, Clear], Clear]] = {
    "he.add": np.add,
    "he.sub": np.subtract,
    "he.mul": np.multiply,
}


def _exact(operation: _native.Operation, operands: list[Any], slots: int, found: Any) -> Any:
    """The operation on clear numbers; a clear tensor's is what was computed."""
    name, attributes = operation.name, operation.attributes
    if name in _BINARY:
        return _BINARY[name](operands[0], operands[1])
    if name in _UNCHANGED:
        return operands[0]
    if name == "he.square":
        return operands[0] * operands[0]
    if name == "he.mul_integer":
        return operands[0] * attributes["value"]
    if name == "he.neg":
        return -operands[0]
    if name == "he.rotate":
        return np.roll(operands[0], -attributes["step"], axis=-1)
    if name == "he.conjugate":
        return np.conj(operands[0])
    if name == "he.sum_batch":
        return operands[0].sum(axis=attributes["axis"])
    if name == "he.batch_slice":
        return _slice(operands[0], attributes)
    if name == "he.batch_reshape":
        return operands[0].reshape(*attributes["shape"], slots)
    if name == "he.stack_batch":
        return np.stack(operands, axis=attributes["axis"])
    if name == "he.encode":
        return _message(operands[0], slots)
    return host_array(found) if is_on_gpu(found) else found
