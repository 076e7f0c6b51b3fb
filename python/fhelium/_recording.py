"""Whether the running code is being captured, and by what.

A function under capture runs once, and every operation on its values is recorded instead of
computed. The recorder is held in a context variable: each thread has its own, so captures in
several threads know nothing of each other.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .errors import CaptureError

if TYPE_CHECKING:
    from ._native import Parameters

__all__ = [
    "LIBRARIES",
    "Location",
    "Recorder",
    "active_recorder",
    "caller_location",
    "recording_with",
    "refuse",
]

Location = tuple[str, int, str]
"""File, line (from 1) and function of a line of the user's code."""

# A call of a compiled function binds its arguments with inspect.
LIBRARIES = (
    str(Path(__file__).parent) + "/",
    str(Path(np.__file__).parent) + "/",
    inspect.__file__,
)


class Recorder(Protocol):
    """What records the operations of a function under capture."""

    @property
    def parameters(self) -> Parameters:
        """The parameters of the captured ciphertexts."""

    def meet_engine(self, engine: Any) -> None:
        """Learns of an engine whose method was called."""

    def apply(
        self,
        operation: str,
        operands: Sequence[Any],
        attributes: Mapping[str, Any],
        key: Any = None,
    ) -> Any:
        """Records one operation and returns its captured result, or a list of several."""


_active: ContextVar[Recorder | None] = ContextVar("fhelium_recorder", default=None)


def active_recorder() -> Recorder | None:
    """The recorder of the capture that runs in this thread, if one does."""
    return _active.get()


@contextmanager
def recording_with(recorder: Recorder) -> Iterator[None]:
    """Records what the body of the `with` statement does with `recorder`."""
    token = _active.set(recorder)
    try:
        yield
    finally:
        _active.reset(token)


def caller_location() -> Location | None:
    """The nearest line of code that belongs neither to fhelium nor to numpy."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(LIBRARIES):
            return (code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return None


def describe(location: Location | None) -> str:
    """A location as messages write it."""
    if location is None:
        return "an unknown line"
    file, line, function = location
    return f"{file}:{line} in {function}"


def refuse(action: str) -> None:
    """Raises if a capture runs: `action` cannot be part of a Program."""
    if _active.get() is not None:
        raise CaptureError(
            f"{describe(caller_location())}: {action} cannot be captured: a compiled function "
            "computes on values that exist; do this before the call and pass the result"
        )
