"""numpy's basic indexing of a shape that is known, without the array."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

__all__ = ["BasicIndex", "NoBasicIndex", "basic_index"]


class NoBasicIndex(TypeError):
    """An entry of an index that is neither an integer, a slice, None nor `...`."""


class BasicIndex(NamedTuple):
    """What an index takes of each axis: `sizes` places from `starts` on, `steps` apart.

    The axes in `dropped` go; `shape` is what remains, with an axis of length 1 for each None.
    """

    starts: list[int]
    sizes: list[int]
    steps: list[int]
    dropped: list[int]
    shape: tuple[int, ...]

    def takes_all(self, shape: tuple[int, ...]) -> bool:
        """Whether the places are all those of `shape`, in order."""
        return (
            self.starts == [0] * len(shape)
            and self.sizes == list(shape)
            and not set(self.steps) - {1}
            and not self.dropped
        )


def basic_index(shape: tuple[int, ...], item: Any, noun: str = "array") -> BasicIndex:
    """Resolves `value[item]` for a value of that shape; IndexError where it lies outside."""
    items = list(item) if isinstance(item, tuple) else [item]
    consumed = sum(1 for entry in items if entry is not None and entry is not Ellipsis)
    ellipses = sum(1 for entry in items if entry is Ellipsis)
    if ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if consumed > len(shape):
        raise IndexError(
            f"too many indices: {noun} is {len(shape)}-dimensional, but {consumed} were indexed"
        )
    rest = [slice(None)] * (len(shape) - consumed)
    if ellipses:
        place = next(position for position, entry in enumerate(items) if entry is Ellipsis)
        items[place : place + 1] = rest
    else:
        items += rest

    starts: list[int] = []
    sizes: list[int] = []
    steps: list[int] = []
    dropped: list[int] = []
    remaining: list[int] = []
    for entry in items:
        if entry is None:
            remaining.append(1)
            continue
        axis = len(starts)
        if isinstance(entry, slice):
            start, stop, step = entry.indices(shape[axis])
            size = len(range(start, stop, step))
            remaining.append(size)
        else:
            start, size, step = _position(entry, shape[axis], axis), 1, 1
            dropped.append(axis)
        starts.append(start)
        sizes.append(size)
        steps.append(step)
    return BasicIndex(starts, sizes, steps, dropped, tuple(remaining))


def _position(entry: Any, extent: int, axis: int) -> int:
    if isinstance(entry, bool | np.bool_) or not hasattr(type(entry), "__index__"):
        raise NoBasicIndex(
            f"indexed by integers, slices, None and ..., found {type(entry).__name__}"
        )
    try:
        position = operator.index(entry)
    except TypeError:
        # An array has __index__ too, and only one item has one.
        raise NoBasicIndex(
            f"indexed by integers, slices, None and ..., found {type(entry).__name__}"
        ) from None
    if not -extent <= position < extent:
        raise IndexError(f"index {position} is out of bounds for axis {axis} with size {extent}")
    return position % extent
