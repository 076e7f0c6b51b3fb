"""Encrypted and encoded values."""

from __future__ import annotations

from typing import Any, NoReturn, Self

from . import _arithmetic, _batches, _native

__all__ = ["Ciphertext", "Plaintext"]


class Ciphertext(_arithmetic.CipherOperators, _batches.SummableBatch, _native.Ciphertext):
    """Encrypted messages of all slots each, batched or not.

    Operators make new ciphertexts and change none. An array or a number beside a ciphertext is
    encoded for it: at its level; at its scale for `+` and `-`, at the parameters' scale for `*`.
    Integers multiply exactly, without encoding, and leave the scale alone. Nothing is rescaled
    or relinearized unless it is said.

    Integers and slices in brackets take items of the batch, as of a numpy array; `reshape` and
    `sum_batch` work along its axes. Slots are no axis of it.

    Ciphertexts compare by identity. `Engine.encrypt` makes them.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        kind = _arithmetic.kind_of(other)
        if kind in ("scalar", "array", "tensor", "plaintext"):
            raise self._comparison("==")
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __bool__(self) -> NoReturn:
        raise self._comparison("bool()")

    def __iter__(self) -> NoReturn:
        _refuse_iteration(self)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        # A value never changes, so it serves as its own copy.
        return self

    def _compare(self, other: object) -> NoReturn:
        raise self._comparison("an order")

    __lt__ = _compare
    __le__ = _compare
    __gt__ = _compare
    __ge__ = _compare


class Plaintext(_batches.BatchAxes, _native.Plaintext):
    """Encoded messages of all slots each, batched or not. `Engine.encode` makes them."""

    __slots__ = ()
    __array_ufunc__ = None
    _fhelium_kind = "plaintext"

    def __iter__(self) -> NoReturn:
        _refuse_iteration(self)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __add__(self, other: Any) -> Any:
        return _arithmetic.add(self, other) if _is_ciphertext(other) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return _arithmetic.subtract(self, other) if _is_ciphertext(other) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        return _arithmetic.multiply(self, other) if _is_ciphertext(other) else NotImplemented


def _refuse_iteration(value: Ciphertext | Plaintext) -> NoReturn:
    raise TypeError(
        f"a {type(value).__name__} cannot be iterated over: write `for i in range(n)` and index "
        f"it; its batch shape is {value.batch_shape}"
    )


def _is_ciphertext(value: Any) -> bool:
    return _arithmetic.kind_of(value) == "ciphertext"


_native.register_values(Ciphertext, Plaintext)
