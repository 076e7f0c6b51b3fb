"""The directory in which compiled Programs are kept for later processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from .. import _native
from .._arithmetic import integer
from ..errors import ArgumentError

__all__ = ["cache_directory"]


def cache_directory(
    path: str | os.PathLike[str] | Literal[False] | None = None,
    *,
    max_bytes: int | None = None,
) -> Path | None:
    """The directory of compiled Programs; with an argument, sets it first.

    A compiled function that meets arguments for the first time looks there for what the passes
    would make of its Program, and writes it there where it is not found. Entries are found by the
    Program, the pipeline, the parameters, the backend and the version of fhelium, so that an
    edited function or constant is compiled anew. Without a call of this, the environment variable
    FHELIUM_CACHE_DIR names the directory; without that, nothing is kept.

    Whoever can write to the directory decides what is computed: keep it private.

    Args:
        path: The directory, made when it is first written to; False to keep nothing.
        max_bytes: The bytes that the directory, and every one named later, may take, 256 MiB unless
            it is said. Where a new entry would make it more, those used longest ago are removed;
            the new one stays. Any number of processes may do so at once.

    Returns:
        The directory in use, or None.
    """
    if max_bytes is not None:
        number = integer("cache_directory", "max_bytes", max_bytes)
        if not 0 <= number < 2**64:
            raise ArgumentError(
                f"cache_directory: max_bytes must be from 0 to 2^64 - 1, found {number}"
            )
        _native.set_cache_max_bytes(number)
    if not (path is None or path is False or isinstance(path, str | os.PathLike)):
        raise TypeError(
            f"cache_directory: path must be a path, or False for none, found {type(path).__name__}"
        )
    if path is not None:
        _native.set_cache_directory(None if path is False else path)
    return _native.get_cache_directory()
