"""The errors that fhelium raises.

Each derives from `FheliumError` and from the built-in class that a person would catch. A message
names the value, what was found, what was expected, the line of the function that was compiled
where there is one, and what to do.
"""

from __future__ import annotations

__all__ = [
    "ArgumentError",
    "BatchIndexError",
    "CaptureError",
    "CompileCacheWarning",
    "CompileError",
    "CompileInputError",
    "DeviceError",
    "FheliumError",
    "KeyMismatch",
    "LevelExhausted",
    "LevelMismatch",
    "LinkError",
    "MissingKey",
    "OutOfMemory",
    "ParameterError",
    "PartsMismatch",
    "ScaleMismatch",
    "SecurityError",
    "SerializationError",
    "SpecializationMiss",
]


class FheliumError(Exception):
    """The root of all errors of this package."""


class ParameterError(FheliumError, ValueError):
    """Parameters that cannot be made."""


class SecurityError(FheliumError, ValueError):
    """Parameters below the security that was asked for."""


class ArgumentError(FheliumError, ValueError):
    """An argument of the wrong value or shape."""


class BatchIndexError(ArgumentError, IndexError):
    """An index outside the batch."""


class ScaleMismatch(FheliumError, ValueError):
    """Operands whose scales differ."""


class LevelMismatch(FheliumError, ValueError):
    """Operands whose levels differ."""


class PartsMismatch(FheliumError, ValueError):
    """A ciphertext with three parts where two are needed, or two where three are."""


class LevelExhausted(FheliumError, ValueError):
    """An operation that needs more levels than are left."""


class MissingKey(FheliumError, KeyError):
    """An operation without the evaluation key that it needs."""

    # A KeyError prints the repr of its argument; a sentence is to be read as one.
    __str__ = Exception.__str__


class KeyMismatch(FheliumError, ValueError):
    """A key or value of another secret or of other parameters."""


class CompileError(FheliumError, RuntimeError):
    """A Program that is malformed, or a pass that failed."""


class CompileInputError(CompileError, ValueError):
    """Inputs declared for a function that do not fit it."""


class CaptureError(CompileError):
    """A function that cannot be captured as a Program."""


class LinkError(CompileError):
    """A Program that no backend can run."""


class SpecializationMiss(FheliumError, RuntimeError):
    """No specialization for these arguments, where none may be made."""


class DeviceError(FheliumError, RuntimeError):
    """A device that is missing, or that is not the value's."""


class OutOfMemory(FheliumError, MemoryError):
    """Memory that could not be had."""


class SerializationError(FheliumError, ValueError):
    """A file or text that does not hold what it should."""


class CompileCacheWarning(UserWarning):
    """An entry of the compile cache that is no good, or a directory that cannot be used."""
