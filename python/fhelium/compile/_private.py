"""Private copies of the functions that a capture runs.

Arrays that a function reaches through globals, closure cells and defaults must be captured as
live data, so a capture runs a copy of the function whose globals, cells and defaults hold
captured arrays in their place. Neither the function nor its module is touched.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

from ._guards import Guards
from ._recorder import CaptureRecorder

__all__ = ["PrivateCopies"]

_LIBRARIES = frozenset({"numpy", "fhelium", "scipy", "torch", "jax", "pytest", "hypothesis"})
_PLAIN = (type(None), bool, int, float, complex, str, bytes)


class PrivateCopies:
    """Copies functions for one capture, each once."""

    def __init__(self, recorder: CaptureRecorder) -> None:
        self._recorder = recorder
        self.guards = Guards()
        # By identity; originals are kept, so that no identity is used twice.
        self._known: dict[int, tuple[Any, Any]] = {}
        self._globals: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
        self._cells: dict[int, tuple[CellType, CellType]] = {}

    def function(self, function: FunctionType) -> FunctionType:
        """The private copy of a function."""
        known = self._known.get(id(function))
        if known is not None:
            return known[1]  # type: ignore[no-any-return]
        names = self._module(function.__globals__)
        closure = function.__closure__
        cells = None if closure is None else tuple(self._cell(cell) for cell in closure)
        copy = FunctionType(function.__code__, names, function.__name__, None, cells)
        # Known before its parts are copied: functions may refer to themselves and to each other.
        self._known[id(function)] = (function, copy)
        copy.__kwdefaults__ = self._wrapped(function.__kwdefaults__)
        copy.__defaults__ = self._wrapped(function.__defaults__)
        copy.__dict__.update(function.__dict__)
        copy.__module__ = function.__module__
        copy.__qualname__ = function.__qualname__
        copy.__doc__ = function.__doc__
        self.guards.defaults(function)
        free = function.__code__.co_freevars
        for name, cell, original in zip(free, cells or (), closure or (), strict=True):
            self._fill(cell, original)
            self.guards.cell(original, name)
        original_names = function.__globals__
        for name in _names(function.__code__):
            if name in original_names:
                names[name] = self._wrapped(original_names[name])
                self.guards.global_name(original_names, name)
        return copy

    def _module(self, names: dict[str, Any]) -> dict[str, Any]:
        """The globals that all private copies from one module share."""
        known = self._globals.get(id(names))
        if known is None:
            known = (names, dict(names))
            self._globals[id(names)] = known
        return known[1]

    def _cell(self, cell: CellType) -> CellType:
        known = self._cells.get(id(cell))
        if known is None:
            known = (cell, CellType())
            self._cells[id(cell)] = known
        return known[1]

    def _fill(self, copy: CellType, original: CellType) -> None:
        try:
            contents = original.cell_contents
        except ValueError:  # a variable that is not assigned yet
            return
        copy.cell_contents = self._wrapped(contents)

    def _wrapped(self, value: Any) -> Any:
        """What a private copy sees in place of a value: the value itself if nothing is captured."""
        if type(value) in _PLAIN:
            return value
        if type(value) is FunctionType:
            return self.function(value) if _is_user_code(value) else value
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        # A container that holds itself stays as it is.
        self._known[id(value)] = (value, value)
        wrapped = self._copied(value)
        self._known[id(value)] = (value, wrapped)
        return wrapped

    def _copied(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return self._recorder.array(value) if value.dtype.kind in "biufc" else value
        if type(value) in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_make")):
            items = [self._wrapped(item) for item in value]
            if all(new is old for new, old in zip(items, value, strict=True)):
                return value
            return value._make(items) if hasattr(value, "_make") else type(value)(items)
        if type(value) is dict:
            entries = {key: self._wrapped(item) for key, item in value.items()}
            return value if all(entries[key] is value[key] for key in value) else entries
        if type(value) is functools.partial:
            return functools.partial(
                self._wrapped(value.func),
                *self._wrapped(value.args),
                **self._wrapped(value.keywords),
            )
        if hasattr(type(value), "__dlpack__") and hasattr(value, "shape"):
            return self._recorder.array(value)
        return value


def _is_user_code(function: FunctionType) -> bool:
    root = (function.__module__ or "").partition(".")[0]
    return root not in _LIBRARIES and root not in sys.stdlib_module_names


def _names(code: CodeType) -> Iterator[str]:
    """Names that a code object and those inside it may look up among globals."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
