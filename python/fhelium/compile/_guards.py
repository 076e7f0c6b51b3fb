"""Guards: noticing that a constant which a function captured has changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import CellType, FunctionType
from typing import Any

__all__ = ["Guards"]

_SCALARS = (type(None), bool, int, float, complex, str, bytes)
_ABSENT = object()


@dataclass(frozen=True)
class _Guard:
    what: str
    read: Callable[[], Any]
    token: Any
    # Kept, so that no other object gets the identity that the token holds.
    value: Any


class Guards:
    """What the globals, closure cells and defaults of captured functions held.

    Scalars, and tuples, lists and dicts of them, are compared by value; everything else by
    identity. The contents of arrays are live and need no guard.
    """

    def __init__(self) -> None:
        self._guards: list[_Guard] = []

    def global_name(self, names: dict[str, Any], name: str) -> None:
        """Watches a global of a function."""
        self._add(f"the global {name}", lambda: names.get(name, _ABSENT))

    def cell(self, cell: CellType, name: str) -> None:
        """Watches a variable of an enclosing function."""

        def read() -> Any:
            try:
                return cell.cell_contents
            except ValueError:
                return _ABSENT

        self._add(f"the variable {name}", read)

    def defaults(self, function: FunctionType) -> None:
        """Watches the defaults of a function's parameters."""
        self._add(
            f"the defaults of {function.__qualname__}",
            lambda: (function.__defaults__, function.__kwdefaults__),
        )

    def extend(self, other: Guards) -> None:
        """Watches what another holds, too."""
        self._guards.extend(other._guards)

    def _add(self, what: str, read: Callable[[], Any]) -> None:
        value = read()
        self._guards.append(_Guard(what, read, _token(value), value))

    def changed(self) -> str | None:
        """What has changed, if anything has."""
        for guard in self._guards:
            if _token(guard.read()) != guard.token:
                return guard.what
        return None


def _token(value: Any, depth: int = 8) -> Any:
    """What is equal for equal scalars and containers of them, and for one object alone."""
    if type(value) in _SCALARS:
        return (type(value), repr(value))
    if depth > 0 and type(value) in (tuple, list):
        return (type(value), tuple(_token(item, depth - 1) for item in value))
    if depth > 0 and type(value) is dict:
        entries = tuple(
            (_token(key, depth - 1), _token(item, depth - 1)) for key, item in value.items()
        )
        return (dict, entries)
    return (id(value),)
