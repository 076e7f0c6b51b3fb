"""Saving, loading and looking into files.

One format serves parameters, values, keys, Programs and Compilations: a safetensors file with a
header that says what is in it. It holds no code, and what it says is checked: loading a file from
anyone gives a valid object or an error.
"""

from __future__ import annotations

import os
from typing import Any, TypeVar, overload

from . import _native

__all__ = ["dumps", "inspect", "load", "loads", "save"]

T = TypeVar("T")
Path = str | os.PathLike[str]


def save(object: Any, path: Path, *, overwrite: bool = False, allow_secret: bool = False) -> None:
    """Saves an object in a file.

    The file appears whole or not at all, and what is in it is on the disk when this returns.

    Args:
        object: Parameters, a Ciphertext or Plaintext, a key or set of keys, a Program or a
            Compilation.
        path: The file.
        overwrite: Whether a file of that name is replaced.
        allow_secret: Whether a SecretKey or KeySet may be written. Whoever reads the file
            decrypts everything; only its owner may.

    Raises:
        SerializationError: A secret without `allow_secret`.
        FileExistsError: There is a file of that name and `overwrite` is False.
        OSError: The system refuses.
    """
    _native.save(object, path, overwrite=overwrite, allow_secret=allow_secret)


@overload
def load(
    path: Path,
    type: type[T],
    *,
    engine: _native.Engine | None = None,
    device: str | None = None,
) -> T: ...


@overload
def load(
    path: Path,
    type: None = None,
    *,
    engine: _native.Engine | None = None,
    device: str | None = None,
) -> Any: ...


def load(
    path: Path,
    type: Any = None,
    *,
    engine: _native.Engine | None = None,
    device: str | None = None,
) -> Any:
    """Loads the object of a file.

    A loaded Ciphertext or Plaintext belongs to `engine` and is on its device, as loaded keys are;
    with `device` to the engine of its parameters there that `.to(device)` would give it. Without
    both it is in host memory and joins, when it is first computed with, the CPU's engine of its
    parameters that was made last in this process and is still alive; if there is none, one is
    made that stays.

    Args:
        path: The file.
        type: The class that is expected, such as `fhelium.Ciphertext`; by default any.
        engine: The engine to load for, whose parameters the object must have.
        device: Where to load to instead: "cpu", "cuda" or "cuda:1". Parameters and Programs are
            on no device.

    Raises:
        SerializationError: The file is damaged, is no file of fhelium's, or holds another class.
        KeyMismatch: The object is of other parameters than the engine's.
        DeviceError: There is no such device.
        TypeError: Both `engine` and `device`.
        OSError: The system refuses.
    """
    return _native.load(path, type, engine=engine, device=device)


def dumps(object: Any, *, allow_secret: bool = False) -> bytes:
    """The bytes that `save` would write."""
    return _native.dumps(object, allow_secret=allow_secret)


@overload
def loads(
    data: Any,
    type: type[T],
    *,
    engine: _native.Engine | None = None,
    device: str | None = None,
) -> T: ...


@overload
def loads(
    data: Any,
    type: None = None,
    *,
    engine: _native.Engine | None = None,
    device: str | None = None,
) -> Any: ...


def loads(
    data: Any,
    type: Any = None,
    *,
    engine: _native.Engine | None = None,
    device: str | None = None,
) -> Any:
    """Loads an object from the bytes of a file, as `load` does. Bytes of anyone may be given."""
    return _native.loads(data, type, engine=engine, device=device)


def inspect(path: Path) -> dict[str, Any]:
    """What a file says of itself, without loading it.

    Returns:
        `kind`, `schema` and `writer` (the versions of the format and of fhelium), `nbytes` and
        `tensors` (type and shape by name); `parameters` and `secret_id` where there are some; of a
        value `level`, `scale`, `batch_shape` and `parts`; of keys `holds_secret` and `keys`; of a
        Program or Compilation `name`, `program_level`, `operations`, `materials` and `passes`.
    """
    return _native.inspect(path)


# The names that pickles hold: where the functions are found, not where they are written.
for _function in (dumps, inspect, load, loads, save):
    _function.__module__ = "fhelium"
