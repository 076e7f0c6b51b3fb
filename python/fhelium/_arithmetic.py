"""What each operator on encrypted values means, the same for eager and for captured values.

The functions here choose the operations of the operation table and encode arrays and scalars
that stand beside a ciphertext. Outside a capture an operation is computed by the engine at once;
inside one it is recorded.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from ._native import Array
from ._recording import active_recorder, caller_location, describe
from .errors import ArgumentError, CaptureError

__all__ = [
    "CipherOperators",
    "add",
    "apply",
    "conjugate",
    "drop_levels",
    "encode",
    "integer",
    "integers",
    "kind_of",
    "multiply",
    "negate",
    "relinearize",
    "rescale",
    "rotate",
    "rotate_many",
    "square",
    "subtract",
    "sum_slots",
]

_LARGEST_INTEGER = 2**63 - 1
# DLPack's number for CUDA devices.
CUDA = 2
_ARRAYS = (np.ndarray, list, tuple, memoryview, array)


def kind_of(value: Any) -> str | None:
    """`"ciphertext"`, `"plaintext"`, `"tensor"` (captured), `"array"`, `"scalar"` or None."""
    kind = getattr(type(value), "_fhelium_kind", None)
    if kind is not None:
        return str(kind)
    if isinstance(value, bool | int | float | complex | np.number | np.bool_):
        return "scalar"
    if isinstance(value, _ARRAYS) or hasattr(type(value), "__dlpack__"):
        return "array"
    return None


def apply(
    operation: str,
    operands: Sequence[Any],
    attributes: Mapping[str, Any] | None = None,
    *,
    engine: Any = None,
    key: Any = None,
) -> Any:
    """Computes or records one operation; several results come as a list."""
    if key is not None and kind_of(key) != "key":
        raise TypeError(
            f"{operation}: key must be an evaluation key, such as keys.relinearization or "
            f"keys.rotations[1], found {type(key).__name__}"
        )
    recorder = active_recorder()
    if recorder is not None:
        if engine is not None:
            recorder.meet_engine(engine)
        return recorder.apply(operation, operands, attributes or {}, key)
    for operand in operands:
        _refuse_escaped(operand)
    if engine is None:
        engine = next(value._engine for value in operands if kind_of(value) == "ciphertext")
    return engine._apply(operation, list(operands), dict(attributes or {}), key)


def _refuse_escaped(value: Any) -> None:
    if getattr(type(value), "_fhelium_captured", False):
        raise CaptureError(
            f"{describe(caller_location())}: a value captured at {describe(value._location)} is "
            "used after the capture of its function ended; return it from the function instead of "
            "storing it"
        )


def encode(values: Any, *, like: Any, level: int, scale: Any, engine: Any = None) -> Any:
    """Encodes an array or scalar for the ciphertext `like`."""
    if active_recorder() is None:
        _refuse_escaped(values)
        values = message_for(engine if engine is not None else like._engine, values)
    return apply(
        "he.encode",
        [values],
        {"level": level, "scale": scale},
        engine=engine if engine is not None or active_recorder() else like._engine,
    )


def is_on_gpu(values: Any) -> bool:
    """Whether this is an array of any library on a CUDA device."""
    return hasattr(type(values), "__dlpack_device__") and values.__dlpack_device__()[0] == CUDA


def host_array(values: Any) -> np.ndarray[Any, Any]:
    """Values as an array in host memory: shared where they are there, else copied."""
    if is_on_gpu(values):
        return Array.from_dlpack(values).numpy()
    if not isinstance(values, np.ndarray) and hasattr(type(values), "__dlpack__"):
        return np.from_dlpack(values)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ArgumentError(f"values must form an array: {error}") from None


def numeric_array(values: Any) -> np.ndarray[Any, Any]:
    """Values as an array of float64 or complex128; arrays come by numpy or by DLPack."""
    numbers = host_array(values)
    if numbers.dtype.kind in "biuf":
        return numbers.astype(np.float64, copy=False)
    if numbers.dtype.kind == "c":
        return numbers.astype(np.complex128, copy=False)
    raise TypeError(
        f"values must be real or complex numbers, found an array of dtype {numbers.dtype}; convert "
        "it with .astype(float)"
    )


def message_for(engine: Any, values: Any) -> Any:
    """Values to encode: an array on the engine's own GPU as it is, all others as numpy's arrays."""
    if engine.device != "cpu" and is_on_gpu(values):
        _, index = values.__dlpack_device__()
        if f"cuda:{index}" == engine.device:
            return values
    return numeric_array(values)


def _plain_for(ciphertext: Any, other: Any, *, product: bool, operation: str, engine: Any) -> Any:
    """The operand beside a ciphertext: a ciphertext or plaintext as it is, else encoded."""
    kind = kind_of(other)
    if kind in ("ciphertext", "plaintext"):
        return other
    if kind is None:
        raise TypeError(
            f"{operation}: expected a ciphertext, plaintext, array or number beside a ciphertext, "
            f"found {type(other).__name__}"
        )
    recorder = active_recorder()
    if product:
        source = engine or recorder or ciphertext._engine
        scale = source.parameters.scale
    else:
        scale = ciphertext.scale
    return encode(other, like=ciphertext, level=ciphertext.level, scale=scale, engine=engine)


def _binary(operation: str, name: str, left: Any, right: Any, *, product: bool, engine: Any) -> Any:
    left_encrypted = kind_of(left) == "ciphertext"
    right_encrypted = kind_of(right) == "ciphertext"
    if not (left_encrypted or right_encrypted):
        raise TypeError(
            f"{name}: one of the operands must be a ciphertext, found {type(left).__name__} and "
            f"{type(right).__name__}; compute on clear values with numpy"
        )
    if not left_encrypted:
        left = _plain_for(right, left, product=product, operation=name, engine=engine)
    elif not right_encrypted:
        right = _plain_for(left, right, product=product, operation=name, engine=engine)
    return apply(operation, [left, right], engine=engine)


def add(left: Any, right: Any, *, engine: Any = None) -> Any:
    """The sum; an array or scalar is encoded at the ciphertext's level and scale."""
    # The builtin sum() begins with 0.
    for value, zero in ((left, right), (right, left)):
        if type(zero) is int and zero == 0 and kind_of(value) == "ciphertext":
            return value
    return _binary("he.add", "add", left, right, product=False, engine=engine)


def subtract(left: Any, right: Any, *, engine: Any = None) -> Any:
    """The difference; an array or scalar is encoded at the ciphertext's level and scale."""
    return _binary("he.sub", "subtract", left, right, product=False, engine=engine)


def multiply(left: Any, right: Any, *, engine: Any = None) -> Any:
    """The product; an array or float is encoded at the parameters' scale, an integer is exact."""
    for ciphertext, factor in ((left, right), (right, left)):
        if isinstance(factor, int | np.integer) and kind_of(ciphertext) == "ciphertext":
            value = int(factor)
            if abs(value) > _LARGEST_INTEGER:
                raise ArgumentError(
                    f"multiply: an integer factor must be between -(2^63 - 1) and 2^63 - 1, found "
                    f"{value}; multiply by float({value}) to have it encoded"
                )
            return apply("he.mul_integer", [ciphertext], {"value": value}, engine=engine)
    return _binary("he.mul", "multiply", left, right, product=True, engine=engine)


def _encrypted(operation: str, value: Any) -> None:
    if kind_of(value) != "ciphertext":
        raise TypeError(f"{operation}: expected a ciphertext, found {type(value).__name__}")


def _unary(
    operation: str,
    name: str,
    value: Any,
    attributes: Mapping[str, Any] | None = None,
    *,
    engine: Any = None,
    key: Any = None,
) -> Any:
    _encrypted(name, value)
    return apply(operation, [value], attributes, engine=engine, key=key)


def square(ciphertext: Any, *, engine: Any = None) -> Any:
    """The product of a ciphertext with itself."""
    return _unary("he.square", "square", ciphertext, engine=engine)


def negate(ciphertext: Any, *, engine: Any = None) -> Any:
    """The ciphertext of the negated message."""
    return _unary("he.neg", "negate", ciphertext, engine=engine)


def integer(operation: str, name: str, value: Any) -> int:
    """The value as a Python integer of 64 bits; what is none is refused by name."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            f"{operation}: {name} must be an integer, found {type(value).__name__}"
        ) from None
    if not -(2**63) <= number < 2**63:
        raise ArgumentError(f"{operation}: {name} must be from -2^63 to 2^63 - 1, found {number}")
    return number


def integers(operation: str, name: str, values: Any) -> list[int]:
    """Several of them, from a list or another iterable."""
    if not hasattr(type(values), "__iter__"):
        raise TypeError(
            f"{operation}: {name}s come in a list, such as [1, 2], found {type(values).__name__}"
        )
    return [integer(operation, f"a {name}", value) for value in values]


def rotate(ciphertext: Any, step: Any, *, engine: Any = None, key: Any = None) -> Any:
    """Slot i receives slot (i + step) modulo the slots."""
    attributes = {"step": integer("rotate", "step", step)}
    return _unary("he.rotate", "rotate", ciphertext, attributes, engine=engine, key=key)


def rotate_many(ciphertext: Any, steps: Any, *, engine: Any = None, key: Any = None) -> list[Any]:
    """One rotation for each step, sharing what they have in common."""
    _encrypted("rotate_many", ciphertext)
    wanted = integers("rotate_many", "step", steps)
    slots = (engine or ciphertext).parameters.slots
    keys = [None if key is None or step % slots == 0 else _key_of(key, step) for step in wanted]
    if active_recorder() is None and key is None:
        engine = engine if engine is not None else ciphertext._engine
        return list(engine._rotate_many(ciphertext, wanted))
    # The hoisting pass joins rotations of one ciphertext.
    return [
        rotate(ciphertext, step, engine=engine, key=own)
        for step, own in zip(wanted, keys, strict=True)
    ]


def _key_of(keys: Any, step: int) -> Any:
    try:
        return keys[step]
    except TypeError:
        raise TypeError(
            "rotate_many: key must be a mapping from steps to rotation keys, such as "
            f"keys.rotations, found {type(keys).__name__}"
        ) from None


def conjugate(ciphertext: Any, *, engine: Any = None, key: Any = None) -> Any:
    """The ciphertext of the complex conjugates."""
    return _unary("he.conjugate", "conjugate", ciphertext, engine=engine, key=key)


def relinearize(ciphertext: Any, *, engine: Any = None, key: Any = None) -> Any:
    """A three-part product brought back to two parts."""
    return _unary("he.relinearize", "relinearize", ciphertext, engine=engine, key=key)


def rescale(ciphertext: Any, *, engine: Any = None) -> Any:
    """The message at a scale divided by the level's prime, one level lower."""
    return _unary("he.rescale", "rescale", ciphertext, engine=engine)


def drop_levels(ciphertext: Any, count: Any = 1, *, engine: Any = None) -> Any:
    """The same message and scale, `count` levels lower."""
    attributes = {"count": integer("drop_levels", "count", count)}
    return _unary("he.drop_levels", "drop_levels", ciphertext, attributes, engine=engine)


def sum_slots(ciphertext: Any, count: Any = None, *, engine: Any = None) -> Any:
    """Slot i receives the sum of slots i ... i + count - 1, modulo the slots."""
    _encrypted("sum_slots", ciphertext)
    slots = (engine or ciphertext).parameters.slots
    number = slots if count is None else integer("sum_slots", "count", count)
    if not 1 <= number <= slots or number & (number - 1):
        raise ArgumentError(
            f"sum_slots: count must be a power of two from 1 to the {slots} slots, found {number}"
        )
    while number > 1:
        number //= 2
        ciphertext = add(ciphertext, rotate(ciphertext, number, engine=engine), engine=engine)
    return ciphertext


def power(ciphertext: Any, exponent: Any) -> Any:
    """`ciphertext ** 1` and `ciphertext ** 2`."""
    if isinstance(exponent, int | np.integer) and not isinstance(exponent, bool):
        if exponent == 1:
            return ciphertext
        if exponent == 2:
            return square(ciphertext)
    raise ArgumentError(
        f"a ciphertext has the powers 1 and 2, found the exponent {exponent!r}; write higher "
        "powers as products, each relinearized and rescaled"
    )


_UFUNCS: dict[Any, Callable[..., Any]] = {
    np.add: add,
    np.subtract: subtract,
    np.multiply: multiply,
    np.negative: negate,
    np.positive: lambda value: value,
    np.square: square,
    np.conjugate: conjugate,
    np.power: power,
    np.float_power: power,
}
_COMPARISONS = {
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
    np.logical_not,
    np.logical_and,
    np.logical_or,
    np.sign,
    np.maximum,
    np.minimum,
}


class CipherOperators:
    """The operators of a ciphertext, eager or captured."""

    __slots__ = ()
    _fhelium_kind = "ciphertext"

    def __add__(self, other: Any) -> Self:
        if kind_of(other) is None:
            return NotImplemented
        result: Self = add(self, other)
        return result

    def __radd__(self, other: Any) -> Self:
        if kind_of(other) is None:
            return NotImplemented
        result: Self = add(other, self)
        return result

    def __sub__(self, other: Any) -> Self:
        if kind_of(other) is None:
            return NotImplemented
        result: Self = subtract(self, other)
        return result

    def __rsub__(self, other: Any) -> Self:
        if kind_of(other) is None:
            return NotImplemented
        result: Self = subtract(other, self)
        return result

    def __mul__(self, other: Any) -> Self:
        if kind_of(other) is None:
            return NotImplemented
        result: Self = multiply(self, other)
        return result

    def __rmul__(self, other: Any) -> Self:
        if kind_of(other) is None:
            return NotImplemented
        result: Self = multiply(other, self)
        return result

    def __pow__(self, exponent: Any) -> Self:
        result: Self = power(self, exponent)
        return result

    def __truediv__(self, other: Any) -> Self:
        raise self._refusal(
            "a ciphertext cannot be divided: multiply by the inverse, x * (1 / y), and rescale"
        )

    def __neg__(self) -> Self:
        result: Self = negate(self)
        return result

    def __pos__(self) -> Self:
        return self

    def __array__(self, *_arguments: Any, **_options: Any) -> Any:
        raise self._refusal(
            "an encrypted value cannot become an array: decrypt it, or use the operators on it"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        function = _UFUNCS.get(ufunc)
        if function is not None and method == "__call__" and not options:
            return function(*inputs)
        if ufunc in _COMPARISONS:
            raise self._comparison(ufunc.__name__)
        raise self._no_function(f"numpy.{ufunc.__name__}", method, options)

    def __array_function__(
        self, function: Any, types: Any, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        if function is np.roll and len(arguments) in (2, 3):
            return self._roll(*arguments, **options)
        raise self._no_function(f"numpy.{function.__name__}", "__call__", options)

    def _roll(self, values: Any, shift: Any, axis: Any = None) -> Any:
        if axis not in (None, -1):
            raise self._refusal(
                f"numpy.roll turns a ciphertext along its slots, axis=-1, found axis={axis!r}"
            )
        if axis is None and self.batch_shape:  # type: ignore[attr-defined]
            raise self._refusal(
                "numpy.roll without an axis would carry values from one batch entry to the next; "
                "say axis=-1"
            )
        return rotate(values, -integer("numpy.roll", "shift", shift))

    def rotate(self, step: int, *, key: Any = None) -> Self:
        """Slot i receives slot (i + step) modulo the slots; see `Engine.rotate`."""
        result: Self = rotate(self, step, key=key)
        return result

    def conjugate(self, *, key: Any = None) -> Self:
        """The ciphertext of the complex conjugates; see `Engine.conjugate`."""
        result: Self = conjugate(self, key=key)
        return result

    def relinearize(self, *, key: Any = None) -> Self:
        """A three-part product brought back to two parts; see `Engine.relinearize`."""
        result: Self = relinearize(self, key=key)
        return result

    def rescale(self) -> Self:
        """The scale divided by the level's prime, one level lower; see `Engine.rescale`."""
        result: Self = rescale(self)
        return result

    def drop_levels(self, count: int = 1) -> Self:
        """The same message and scale, `count` levels lower; see `Engine.drop_levels`."""
        result: Self = drop_levels(self, count)
        return result

    def sum_slots(self, count: int | None = None) -> Self:
        """Slot i receives the sum of `count` slots from i on; see `Engine.sum_slots`."""
        result: Self = sum_slots(self, count)
        return result

    def _refusal(self, message: str) -> Exception:
        return TypeError(message)

    def _comparison(self, name: str) -> Exception:
        return self._refusal(
            f"{name}: encrypted values cannot be compared or tested; decrypt them first"
        )

    def _no_function(self, name: str, method: str, options: Mapping[str, Any]) -> Exception:
        what = name if method == "__call__" else f"{name}.{method}"
        if options:
            what += f" with {', '.join(options)}"
        return self._refusal(
            f"{what} has no meaning on encrypted values; there are + - * ** 2, numpy.roll and "
            "conjugate, and the methods of a ciphertext"
        )
