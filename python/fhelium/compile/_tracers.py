"""Stand-ins for values while a function is captured.

A captured value knows its type and the line that made it, and nothing of its contents. Whatever
would look at the contents raises, with the line of the function that did it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from .. import _arithmetic, _batches
from .._recording import Location, active_recorder, caller_location, describe
from ..errors import CaptureError

if TYPE_CHECKING:
    from .._native import Parameters, Type
    from ._recorder import CaptureRecorder

__all__ = [
    "Captured",
    "CapturedAttributeError",
    "CapturedCiphertext",
    "CapturedKey",
    "CapturedPlaintext",
    "CapturedTensor",
    "Pending",
    "belongs",
    "fail",
]


class Pending(NamedTuple):
    """A material that is declared when it is first used."""

    owner: Any
    data: Any
    prefix: str
    snapshot: np.ndarray[Any, Any] | None


class CapturedAttributeError(CaptureError, AttributeError):
    """An attribute that a captured value does not have."""


def fail(message: str) -> NoReturn:
    """Raises a CaptureError at the user's line."""
    raise CaptureError(f"{describe(caller_location())}: {message}")


class Captured:
    """A value of a function under capture."""

    __slots__ = ("_location", "_pending", "_recorder", "_type", "_value")
    _fhelium_captured = True
    _what = "value"

    def __init__(
        self,
        recorder: CaptureRecorder,
        value: int | None,
        type_: Type,
        location: Location | None,
        pending: Pending | None = None,
    ) -> None:
        self._recorder = recorder
        self._pending = pending
        self._value = value
        self._type = type_
        self._location = location

    def _refuse(self, action: str, remedy: str) -> NoReturn:
        fail(
            f"{action} a captured {self._what} (made at {describe(self._location)}): a compiled "
            f"function cannot look at its values while it is captured; {remedy}"
        )

    def __bool__(self) -> NoReturn:
        self._refuse(
            "testing the truth of",
            "branch on a static scalar argument, or compute both branches",
        )

    def __iter__(self) -> NoReturn:
        self._refuse("iterating over", "loop over range(...) of a known length and index")

    def __len__(self) -> NoReturn:
        self._refuse("asking the length of", "use .shape or .batch_shape, which are known")

    def __contains__(self, item: object) -> NoReturn:
        self._refuse("searching", "keep what you search in a Python list")

    def _compare(self, other: object) -> NoReturn:
        self._refuse(
            "comparing", "use `is` for identity, or pass what you compare as a static scalar"
        )

    __eq__ = _compare
    __ne__ = _compare
    __lt__ = _compare
    __le__ = _compare
    __gt__ = _compare
    __ge__ = _compare

    def __hash__(self) -> NoReturn:
        self._refuse("hashing", "use a list, or the name of the value as the key")

    def _to_scalar(self) -> NoReturn:
        self._refuse(
            "converting to a Python number",
            "pass numbers that steer the function as static scalar arguments",
        )

    def __int__(self) -> int:
        self._to_scalar()

    def __float__(self) -> float:
        self._to_scalar()

    def __complex__(self) -> complex:
        self._to_scalar()

    def __index__(self) -> int:
        self._to_scalar()

    def __array__(self, *_arguments: Any, **_options: Any) -> Any:
        self._refuse(
            "converting to an array", "use the operators and numpy functions on it directly"
        )

    def __setitem__(self, item: object, value: object) -> NoReturn:
        self._refuse(
            "assigning into", "build a new value, for example with numpy.where or concatenate"
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._refuse("pickling or copying", "return it from the function instead")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        known = ", ".join(sorted(entry for entry in dir(type(self)) if not entry.startswith("_")))
        raise CapturedAttributeError(
            f"{describe(caller_location())}: a captured {self._what} has no attribute {name!r}; it "
            f"has {known}"
        )

    def __repr__(self) -> str:
        return f"<captured {self._type}>"


class _Encrypted(Captured):
    __slots__ = ()

    @property
    def level(self) -> int:
        """Rescales left."""
        return self._known("level")  # type: ignore[no-any-return]

    @property
    def scale(self) -> Any:
        """The exact scale."""
        return self._known("scale")

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Batch axes; () for a single one."""
        return self._type.shape

    @property
    def parameters(self) -> Parameters:
        """The parameters of the captured values."""
        return self._recorder.parameters

    def _known(self, field: str) -> Any:
        value = getattr(self._type, field)
        if value is None:
            fail(
                f"the {field} of this captured {self._what} is not decided yet: a pass assigns it "
                "after capture"
            )
        return value


class CapturedCiphertext(_arithmetic.CipherOperators, _batches.SummableBatch, _Encrypted):
    """A ciphertext of a function under capture."""

    __slots__ = ()
    _what = "ciphertext"

    @property
    def parts(self) -> int:
        """Two, or three after a product that is not relinearized."""
        return self._known("parts")  # type: ignore[no-any-return]

    def _refusal(self, message: str) -> Exception:
        return CaptureError(f"{describe(caller_location())}: {message}")


class CapturedPlaintext(_batches.BatchAxes, _Encrypted):
    """A plaintext of a function under capture."""

    __slots__ = ()
    __array_ufunc__ = None
    _fhelium_kind = "plaintext"
    _what = "plaintext"

    def __add__(self, other: Any) -> Any:
        return _arithmetic.add(self, other) if _is_ciphertext(other) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return _arithmetic.subtract(self, other) if _is_ciphertext(other) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        return _arithmetic.multiply(self, other) if _is_ciphertext(other) else NotImplemented


class CapturedKey(Captured):
    """An evaluation key that is an argument of a function under capture."""

    __slots__ = ()
    _fhelium_kind = "key"
    _what = "key"

    @property
    def kind(self) -> str:
        """What the key is for: "relinearization", "rotation" or "conjugation"."""
        return str(self._type.key_kind)

    @property
    def step(self) -> int | None:
        """The step of a rotation key."""
        return self._type.step


def _is_ciphertext(value: Any) -> bool:
    return _arithmetic.kind_of(value) == "ciphertext"


class CapturedTensor(Captured):
    """A clear array of a function under capture.

    It takes part in operators and numpy functions like an array; they are computed when the
    compiled function is called.
    """

    __slots__ = ()
    _fhelium_kind = "tensor"
    _what = "array"

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return self._type.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._type.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self._type.shape, dtype=np.int64))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return np.dtype(self._type.dtype)

    @property
    def T(self) -> Any:
        """The axes in reverse order."""
        return self.transpose()

    @property
    def real(self) -> Any:
        """The real parts."""
        return self._call(np.real)

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return self._call(np.imag)

    def _call(self, function: Any, *arguments: Any, **options: Any) -> Any:
        from ._numpy import call_function

        return call_function(self._recorder, function, (self, *arguments), options)

    def _operator(self, ufunc: np.ufunc, *operands: Any) -> Any:
        from ._numpy import call_ufunc

        if any(_arithmetic.kind_of(operand) in (None, "ciphertext", "key") for operand in operands):
            return NotImplemented
        return call_ufunc(self._recorder, ufunc, operands)

    def __add__(self, other: Any) -> Any:
        return self._operator(np.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return self._operator(np.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return self._operator(np.subtract, self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._operator(np.subtract, other, self)

    def __mul__(self, other: Any) -> Any:
        return self._operator(np.multiply, self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._operator(np.multiply, other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._operator(np.true_divide, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._operator(np.true_divide, other, self)

    def __pow__(self, other: Any) -> Any:
        return self._operator(np.power, self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._operator(np.power, other, self)

    def __matmul__(self, other: Any) -> Any:
        return self._operator(np.matmul, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self._operator(np.matmul, other, self)

    def __neg__(self) -> Any:
        return self._operator(np.negative, self)

    def __pos__(self) -> CapturedTensor:
        return self

    def __abs__(self) -> Any:
        return self._operator(np.absolute, self)

    def __getitem__(self, item: Any) -> Any:
        from ._numpy import index

        return index(self._recorder, self, item)

    def reshape(self, *shape: Any) -> Any:
        """numpy.reshape."""
        return self._call(np.reshape, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Any:
        """numpy.transpose."""
        return self._call(np.transpose, (axes[0] if len(axes) == 1 else axes) or None)

    def astype(self, dtype: Any) -> Any:
        """The same values in another element type."""
        from ._numpy import cast

        return cast(self._recorder, self, dtype)

    def sum(self, axis: Any = None, keepdims: bool = False) -> Any:
        """numpy.sum."""
        return self._call(np.sum, axis=axis, keepdims=keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Any:
        """numpy.mean."""
        return self._call(np.mean, axis=axis, keepdims=keepdims)

    def clip(self, low: Any = None, high: Any = None) -> Any:
        """numpy.clip."""
        return self._call(np.clip, low, high)

    def conj(self) -> Any:
        """numpy.conj."""
        return self._operator(np.conjugate, self)

    conjugate = conj

    def ravel(self) -> Any:
        """numpy.ravel."""
        return self._call(np.ravel)

    flatten = ravel

    def copy(self) -> CapturedTensor:
        """The same values: captured values never change."""
        return self

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        from ._numpy import call_ufunc

        if any(_is_ciphertext(value) for value in inputs):
            return NotImplemented
        if method != "__call__" or options:
            what = f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
            fail(f"{what} with {method} {sorted(options)} is not available in a compiled function")
        return call_ufunc(self._recorder, ufunc, inputs)

    def __array_function__(
        self, function: Any, types: Any, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        from ._numpy import call_function

        return call_function(self._recorder, function, arguments, options)


def belongs(value: Captured) -> bool:
    """Whether the value is of the capture that runs now."""
    return value._recorder is active_recorder()
