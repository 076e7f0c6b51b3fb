"""The directory in which compiled Programs are kept for later processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from .. import _native

__all__ = ["cache_directory"]


def cache_directory(
    path: str | os.PathLike[str] | Literal[False] | None = None,
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

    Returns:
        The directory in use, or None.
    """
    if path is not None:
        _native.set_cache_directory(None if path is False else path)
    return _native.get_cache_directory()
