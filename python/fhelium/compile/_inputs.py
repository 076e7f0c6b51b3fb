"""Declared inputs: what a function's arguments will be, before there are any."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .. import _native
from ..errors import CompileInputError

__all__ = ["InputSpec", "encrypted", "message", "plaintext", "static"]

Role = Literal["encrypted", "plaintext", "message", "static"]
_STATICS = (type(None), bool, int, float, complex, str)
_ALLOWED: dict[str, tuple[str, ...]] = {
    "encrypted": ("level", "scale", "parts", "batch_shape"),
    "plaintext": ("level", "scale", "batch_shape"),
    "message": ("shape", "dtype"),
    "static": ("value",),
}


@dataclass(frozen=True)
class InputSpec:
    """What one argument of a captured function is.

    `encrypted`, `plaintext`, `message` and `static` make one; a field belongs to the roles whose
    constructor takes it.

    Attributes:
        role: "encrypted", "plaintext", "message" (a clear array) or "static" (a Python scalar).
        level: Rescales left; None for a fresh value, which has all.
        scale: The scale; None for the parameters' scale.
        parts: 2, or 3 for a product that is not relinearized.
        batch_shape: Batch axes; () for a single value.
        shape: Extents of a clear array; None for one message of all slots.
        dtype: Element type of a clear array.
        value: The value of a static scalar.
    """

    role: Role
    level: int | None = None
    scale: Any = None
    parts: int = 2
    batch_shape: tuple[int, ...] = ()
    shape: tuple[int, ...] | None = None
    dtype: str = "float64"
    value: Any = None

    def __post_init__(self) -> None:
        if self.role not in _ALLOWED:
            raise ValueError(f"role must be one of {', '.join(_ALLOWED)}, found {self.role!r}")
        allowed = _ALLOWED[self.role]
        for name, default in _DEFAULTS.items():
            if name not in allowed and getattr(self, name) != default:
                raise ValueError(
                    f"{name} does not belong to an input of role {self.role!r}, which takes "
                    f"{', '.join(allowed)}"
                )
        if self.level is not None:
            _natural("level", self.level)
        if self.scale is not None:
            _check_scale(self.scale)
        if self.parts not in (2, 3) or isinstance(self.parts, bool):
            raise ValueError(f"parts must be 2 or 3, found {self.parts!r}")
        object.__setattr__(self, "batch_shape", _extents("batch_shape", self.batch_shape))
        if self.shape is not None:
            object.__setattr__(self, "shape", _extents("shape", self.shape))
        if self.role == "message":
            object.__setattr__(self, "dtype", str(np.dtype(self.dtype)))
        if self.role == "static":
            check_static("value", self.value)

    def type(self, name: str, parameters: _native.Parameters | None) -> _native.Type:
        """The type of a Program input of this description."""
        if self.role == "message":
            shape = self.shape
            if shape is None:
                shape = (_needed(name, parameters).slots,)
            return _native.Type.tensor(self.dtype, shape)
        given = _needed(name, parameters)
        level = given.depth if self.level is None else self.level
        scale = given.scale if self.scale is None else self.scale
        if level > given.depth:
            raise CompileInputError(
                f"input {name!r}: level {level} does not exist: levels run from 0 to {given.depth}"
            )
        if self.role == "plaintext":
            return _native.Type.plaintext(level, scale, self.batch_shape)
        return _native.Type.ciphertext(level, scale, self.parts, self.batch_shape)


_DEFAULTS: dict[str, Any] = {
    "level": None,
    "scale": None,
    "parts": 2,
    "batch_shape": (),
    "shape": None,
    "dtype": "float64",
    "value": None,
}


def encrypted(
    level: int | None = None,
    scale: Any = None,
    *,
    parts: int = 2,
    batch_shape: Iterable[int] = (),
) -> InputSpec:
    """A ciphertext: by default a fresh one."""
    return InputSpec("encrypted", level, scale, parts, tuple(batch_shape))


def plaintext(
    level: int | None = None, scale: Any = None, *, batch_shape: Iterable[int] = ()
) -> InputSpec:
    """A plaintext: by default at the parameters' depth and scale."""
    return InputSpec("plaintext", level, scale, batch_shape=tuple(batch_shape))


def message(shape: Iterable[int] | None = None, dtype: Any = "float64") -> InputSpec:
    """A clear array: by default one message of all slots."""
    # The spec checks the extents.
    return InputSpec("message", shape=shape, dtype=dtype)  # type: ignore[arg-type]


def static(value: Any) -> InputSpec:
    """A scalar that specializes the Program by its exact value and type."""
    return InputSpec("static", value=value)


def check_static(name: str, value: Any) -> None:
    """Refuses what is no finite immutable scalar."""
    if type(value) not in _STATICS:
        raise TypeError(
            f"{name} must be None, a bool, int, float, complex or str, found {type(value).__name__}"
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} must be finite, found {value!r}")
    if isinstance(value, complex) and not (math.isfinite(value.real) and math.isfinite(value.imag)):
        raise ValueError(f"{name} must be finite, found {value!r}")


def _needed(name: str, parameters: _native.Parameters | None) -> _native.Parameters:
    if parameters is None:
        raise CompileInputError(
            f"input {name!r} needs to know the parameters: pass parameters=fh.Parameters(...)"
        )
    return parameters


def _natural(name: str, value: Any) -> None:
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, found a bool")
    if operator.index(value) < 0:
        raise ValueError(f"{name} must not be negative, found {value}")


def _extents(name: str, value: Iterable[int]) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{name} must be a tuple of extents, found {type(value).__name__}")
    extents = tuple(value)
    for extent in extents:
        _natural(name, extent)
    return extents


def _check_scale(scale: Any) -> None:
    number = float(scale)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"scale must be positive and finite, found {scale!r}")
