"""Operations on the batch axes of ciphertexts and plaintexts, eager or captured.

The slots are no axis here: axis -1 is the last axis of the batch shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from . import _arithmetic
from ._indexing import NoBasicIndex, basic_index
from ._recording import active_recorder
from .errors import ArgumentError, BatchIndexError

__all__ = ["BatchAxes", "SummableBatch", "stack", "sum_batch"]


def _apply(operation: str, operands: Sequence[Any], attributes: Any, engine: Any) -> Any:
    if engine is None and active_recorder() is None:
        # What was captured has none, and is refused with the line that made it.
        engine = getattr(operands[0], "_engine", None) if _eager(operands[0]) else None
    return _arithmetic.apply(operation, operands, attributes, engine=engine)


def _eager(value: Any) -> bool:
    return not getattr(type(value), "_fhelium_captured", False)


def sum_batch(ciphertext: Any, axis: Any = 0, *, engine: Any = None) -> Any:
    """The sum along one batch axis, which goes."""
    if _arithmetic.kind_of(ciphertext) != "ciphertext":
        raise TypeError(f"sum_batch: expected a ciphertext, found {type(ciphertext).__name__}")
    attributes = {"axis": _arithmetic.integer("sum_batch", "axis", axis)}
    return _apply("he.sum_batch", [ciphertext], attributes, engine)


def stack(values: Any, axis: Any = 0, *, engine: Any = None) -> Any:
    """Ciphertexts, or plaintexts, of one type along a new batch axis."""
    if not isinstance(values, list | tuple):
        raise TypeError(
            f"stack: ciphertexts or plaintexts come in a list, found {type(values).__name__}"
        )
    items = list(values)
    if not items:
        raise ArgumentError("stack: one ciphertext at least is needed, found none")
    for item in items:
        if _arithmetic.kind_of(item) not in ("ciphertext", "plaintext"):
            raise TypeError(
                f"stack: expected ciphertexts or plaintexts, found {type(item).__name__}"
            )
    attributes = {"axis": _arithmetic.integer("stack", "axis", axis)}
    return _apply("he.stack_batch", items, attributes, engine)


class BatchAxes:
    """Indexing and reshaping of a value's batch."""

    __slots__ = ()

    def __getitem__(self, item: Any) -> Self:
        """The items at a place of the batch, by numpy's basic indexing.

        Integers, slices with steps, None and `...` are about batch axes; slots are not reached.
        """
        shape: tuple[int, ...] = self.batch_shape  # type: ignore[attr-defined]
        try:
            index = basic_index(shape, item, "the batch")
        except (IndexError, ValueError, NoBasicIndex) as error:
            refused = BatchIndexError if isinstance(error, IndexError) else ArgumentError
            what = "batch axes are " if isinstance(error, NoBasicIndex) else ""
            raise refused(
                f"{what}{error}; the batch shape is {shape}, and slots cannot be indexed"
            ) from None
        taken = self
        if not index.takes_all(shape):
            attributes = {
                "starts": index.starts,
                "sizes": index.sizes,
                "steps": index.steps,
                "dropped": index.dropped,
            }
            taken = _apply("he.batch_slice", [self], attributes, None)
        return taken.reshape(index.shape)

    def reshape(self, *shape: Any) -> Self:
        """The same items under another batch shape, one extent of which may be -1."""
        extents = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        target = [_arithmetic.integer("reshape", "an extent", extent) for extent in extents]
        if tuple(target) == self.batch_shape:  # type: ignore[attr-defined]
            return self
        result: Self = _apply("he.batch_reshape", [self], {"shape": target}, None)
        return result


class SummableBatch(BatchAxes):
    """Batch axes of a ciphertext."""

    __slots__ = ()

    def sum_batch(self, axis: int = 0) -> Self:
        """The sum along one batch axis, which goes; see `Engine.sum_batch`."""
        result: Self = sum_batch(self, axis)
        return result
