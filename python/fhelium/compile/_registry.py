"""Every compiled function that is alive, to clear them all at once."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._callable import CompiledCallable

__all__ = ["clear_caches", "remember"]

_alive: weakref.WeakSet[CompiledCallable[..., Any]] = weakref.WeakSet()
# A set must not grow while another thread goes through it.
_lock = threading.Lock()


def remember(callable: CompiledCallable[..., Any]) -> None:
    """Has `clear_caches` clear this one too, for as long as it lives."""
    with _lock:
        _alive.add(callable)


def clear_caches() -> None:
    """Drops the specializations of every compiled function of this process.

    It is `clear()` of each: the next call of each captures anew, and memory that only the
    specializations held is given back. Calls that are running finish. Not touched are
    specializations that somebody else holds, the counters, registered keys, engines, and the
    directory of compiled Programs, from which the next calls may read: see `cache_directory`.
    """
    with _lock:
        callables = list(_alive)
    for callable in callables:
        callable.clear()
