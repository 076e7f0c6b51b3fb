"""numpy's functions on captured arrays: each becomes operations of the tensor dialect."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arithmetic import is_on_gpu, kind_of
from .._indexing import NoBasicIndex, basic_index
from ._tracers import CapturedTensor, fail

if TYPE_CHECKING:
    from ._recorder import CaptureRecorder

__all__ = ["call_function", "call_ufunc", "cast", "index"]

_UFUNCS: dict[np.ufunc, str] = {
    np.add: "tensor.add",
    np.subtract: "tensor.sub",
    np.multiply: "tensor.mul",
    np.true_divide: "tensor.div",
    np.power: "tensor.pow",
    np.negative: "tensor.neg",
    np.absolute: "tensor.abs",
    np.exp: "tensor.exp",
    np.log: "tensor.log",
    np.sqrt: "tensor.sqrt",
    np.sin: "tensor.sin",
    np.cos: "tensor.cos",
    np.tanh: "tensor.tanh",
    np.conjugate: "tensor.conj",
    np.matmul: "tensor.matmul",
}


def call_ufunc(recorder: CaptureRecorder, ufunc: np.ufunc, inputs: Sequence[Any]) -> Any:
    """Records `ufunc(*inputs)`."""
    if ufunc is np.positive:
        return inputs[0]
    if ufunc is np.square:
        return call_ufunc(recorder, np.multiply, (inputs[0], inputs[0]))
    operation = _UFUNCS.get(ufunc)
    if operation is None:
        fail(
            f"numpy.{ufunc.__name__} is not available on captured arrays; there are "
            + ", ".join(sorted(known.__name__ for known in _UFUNCS))
        )
    return recorder.apply(operation, _operands(recorder, inputs), {})


def _operands(recorder: CaptureRecorder, inputs: Sequence[Any]) -> list[Any]:
    """Operands with Python scalars in the element type that numpy would give them."""
    inputs = [recorder.lift(value) if is_on_gpu(value) else value for value in inputs]
    arrays = [value for value in inputs if kind_of(value) in ("tensor", "array")]
    lifted = []
    for value in inputs:
        if kind_of(value) != "scalar":
            lifted.append(recorder.lift(value))
            continue
        weak = type(value) in (bool, int, float, complex)
        dtypes = [_dtype_of(array) for array in arrays] if weak else []
        # A Python scalar is weak: it takes the arrays' type where that can hold its kind.
        dtype = np.result_type(*dtypes, value) if dtypes else np.asarray(value).dtype
        lifted.append(recorder.constant(value, _supported(dtype)))
    return lifted


def _dtype_of(value: Any) -> np.dtype[Any]:
    return value.dtype if isinstance(value, CapturedTensor) else np.asarray(value).dtype


def _supported(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The element type itself, or the next wider one that Programs have."""
    wider = {"float16": "float32", "int8": "int32", "int16": "int32", "uint8": "int32"}
    return np.dtype(wider.get(dtype.name, dtype.name))


def cast(recorder: CaptureRecorder, value: CapturedTensor, dtype: Any) -> Any:
    """Records `value.astype(dtype)`."""
    return recorder.apply("tensor.cast", [value], {"dtype": str(np.dtype(dtype))})


# --- indexing --------------------------------------------------------------------------------


def index(recorder: CaptureRecorder, value: CapturedTensor, item: Any) -> Any:
    """Records `value[item]` for integers, slices, `...` and None."""
    try:
        taken = basic_index(value.shape, item)
    except NoBasicIndex as error:
        fail(f"a captured array is {error}; select with numpy.where")
    part = value
    if not taken.takes_all(value.shape):
        attributes = {
            "starts": taken.starts,
            "sizes": taken.sizes,
            "steps": taken.steps,
            "dropped": taken.dropped,
        }
        part = recorder.apply("tensor.slice", [value], attributes)
    return _reshape(recorder, part, taken.shape)


# --- functions -------------------------------------------------------------------------------


def _reshape(recorder: CaptureRecorder, value: Any, shape: tuple[int, ...]) -> Any:
    if value.shape == shape:
        return value
    return recorder.apply("tensor.reshape", [value], {"shape": list(shape)})


def _tensor(recorder: CaptureRecorder, value: Any) -> CapturedTensor:
    lifted = recorder.lift(value)
    if not isinstance(lifted, CapturedTensor):
        fail(f"expected an array here, found {lifted!r}")
    return lifted


def _axis(axis: Any, ndim: int) -> int:
    position = operator.index(axis)
    if not -ndim <= position < ndim:
        raise ValueError(f"axis {position} is out of bounds for array of dimension {ndim}")
    return position % ndim


def _axes(axis: Any, ndim: int) -> list[int]:
    if axis is None:
        return list(range(ndim))
    given = axis if isinstance(axis, tuple | list) else (axis,)
    axes = [_axis(entry, ndim) for entry in given]
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in axis {axis}")
    return axes


def _np_roll(recorder: CaptureRecorder, a: Any, shift: Any, axis: Any = None) -> Any:
    value = _tensor(recorder, a)
    if axis is None:
        return recorder.apply("tensor.roll", [value], {"shift": operator.index(shift)})
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    shifts = shift if isinstance(shift, tuple | list) else (shift,) * len(axes)
    if len(shifts) == 1:
        shifts = tuple(shifts) * len(axes)
    for each, place in zip(shifts, axes, strict=True):
        attributes = {"shift": operator.index(each), "axis": _axis(place, value.ndim)}
        value = recorder.apply("tensor.roll", [value], attributes)
    return value


def _np_reshape(recorder: CaptureRecorder, a: Any, shape: Any = None, **newshape: Any) -> Any:
    value = _tensor(recorder, a)
    if shape is None:
        shape = newshape.pop("newshape")
    extents = [operator.index(entry) for entry in (shape if np.iterable(shape) else (shape,))]
    if extents.count(-1) == 1:
        known = int(np.prod([entry for entry in extents if entry != -1], dtype=np.int64))
        if known == 0 or value.size % known:
            raise ValueError(f"cannot reshape array of size {value.size} into shape {shape}")
        extents[extents.index(-1)] = value.size // known
    return _reshape(recorder, value, tuple(extents))


def _np_ravel(recorder: CaptureRecorder, a: Any) -> Any:
    value = _tensor(recorder, a)
    return _reshape(recorder, value, (value.size,))


def _np_transpose(recorder: CaptureRecorder, a: Any, axes: Any = None) -> Any:
    value = _tensor(recorder, a)
    if axes is None:
        order = list(reversed(range(value.ndim)))
    else:
        order = _axes(tuple(axes), value.ndim)
        if len(order) != value.ndim:
            raise ValueError("axes don't match array")
    if order == list(range(value.ndim)):
        return value
    return recorder.apply("tensor.transpose", [value], {"axes": order})


def _np_swapaxes(recorder: CaptureRecorder, a: Any, axis1: Any, axis2: Any) -> Any:
    value = _tensor(recorder, a)
    order = list(range(value.ndim))
    first, second = _axis(axis1, value.ndim), _axis(axis2, value.ndim)
    order[first], order[second] = order[second], order[first]
    return _np_transpose(recorder, value, order)


def _np_broadcast_to(recorder: CaptureRecorder, array: Any, shape: Any) -> Any:
    value = _tensor(recorder, array)
    extents = [operator.index(entry) for entry in (shape if np.iterable(shape) else (shape,))]
    if list(value.shape) == extents:
        return value
    return recorder.apply("tensor.broadcast", [value], {"shape": extents})


def _np_expand_dims(recorder: CaptureRecorder, a: Any, axis: Any) -> Any:
    value = _tensor(recorder, a)
    count = len(axis) if isinstance(axis, tuple | list) else 1
    axes = _axes(axis, value.ndim + count)
    rest = iter(value.shape)
    shape = [1 if place in axes else next(rest) for place in range(value.ndim + count)]
    return _reshape(recorder, value, tuple(shape))


def _np_squeeze(recorder: CaptureRecorder, a: Any, axis: Any = None) -> Any:
    value = _tensor(recorder, a)
    if axis is None:
        dropped = [place for place, extent in enumerate(value.shape) if extent == 1]
    else:
        dropped = _axes(axis, value.ndim)
        if any(value.shape[place] != 1 for place in dropped):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    shape = tuple(extent for place, extent in enumerate(value.shape) if place not in dropped)
    return _reshape(recorder, value, shape)


def _joined(arrays: Any) -> list[Any]:
    if not isinstance(arrays, tuple | list):
        fail(f"expected a list or tuple of arrays, found {type(arrays).__name__}")
    return list(arrays)


def _np_stack(recorder: CaptureRecorder, arrays: Any, axis: Any = 0) -> Any:
    values = [_tensor(recorder, array) for array in _joined(arrays)]
    place = _axis(axis, values[0].ndim + 1 if values else 1)
    return recorder.apply("tensor.stack", values, {"axis": place})


def _np_concatenate(recorder: CaptureRecorder, arrays: Any, axis: Any = 0) -> Any:
    values = [_tensor(recorder, array) for array in _joined(arrays)]
    if axis is None:
        values, axis = [_np_ravel(recorder, value) for value in values], 0
    place = _axis(axis, values[0].ndim if values else 1)
    return recorder.apply("tensor.concatenate", values, {"axis": place})


def _reduction(operation: str) -> Callable[..., Any]:
    def reduce(
        recorder: CaptureRecorder, a: Any, axis: Any = None, dtype: Any = None, **options: Any
    ) -> Any:
        value = _tensor(recorder, a)
        keepdims = options.pop("keepdims", False)
        if options:
            fail(f"{operation}: the options {sorted(options)} are not available")
        if dtype is not None:
            value = cast(recorder, value, dtype)
        attributes = {
            "axes": _axes(axis, value.ndim),
            "keepdims": bool(keepdims) and keepdims is not np._NoValue,
        }
        return recorder.apply(operation, [value], attributes)

    return reduce


def _np_clip(
    recorder: CaptureRecorder, a: Any, a_min: Any = None, a_max: Any = None, **options: Any
) -> Any:
    low = options.pop("min", a_min)
    high = options.pop("max", a_max)
    if options:
        fail(f"numpy.clip: the options {sorted(options)} are not available")
    low = None if low is np._NoValue else low
    high = None if high is np._NoValue else high
    value = _tensor(recorder, a)
    if low is None and high is None:
        return value
    least, greatest = _range(value.dtype)
    bounds = [least if low is None else low, greatest if high is None else high]
    return recorder.apply("tensor.clip", _operands(recorder, [value, *bounds]), {})


def _range(dtype: np.dtype[Any]) -> tuple[int | float, int | float]:
    """The least and the greatest number of an element type."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return int(limits.min), int(limits.max)
    return -np.inf, np.inf


def _np_where(recorder: CaptureRecorder, condition: Any, *branches: Any) -> Any:
    if len(branches) != 2:
        fail("numpy.where needs both branches: where(condition, x, y)")
    chosen = _operands(recorder, branches)
    return recorder.apply("tensor.where", [_tensor(recorder, condition), *chosen], {})


def _unary(operation: str) -> Callable[..., Any]:
    def call(recorder: CaptureRecorder, val: Any) -> Any:
        return recorder.apply(operation, [_tensor(recorder, val)], {})

    return call


def _np_dot(recorder: CaptureRecorder, a: Any, b: Any) -> Any:
    left, right = _tensor(recorder, a), _tensor(recorder, b)
    if left.ndim == 0 or right.ndim == 0:
        return call_ufunc(recorder, np.multiply, (left, right))
    if right.ndim > 2:
        fail("numpy.dot with more than two axes is not available; use numpy.matmul")
    return call_ufunc(recorder, np.matmul, (left, right))


def _np_flip(recorder: CaptureRecorder, m: Any, axis: Any = None) -> Any:
    value = _tensor(recorder, m)
    axes = _axes(axis, value.ndim)
    backwards = slice(None, None, -1)
    item = tuple(backwards if place in axes else slice(None) for place in range(value.ndim))
    return index(recorder, value, item)


def _np_zeros_like(recorder: CaptureRecorder, a: Any, **options: Any) -> Any:
    return np.zeros(_tensor(recorder, a).shape, options.pop("dtype", None) or a.dtype, **options)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.roll: _np_roll,
    np.reshape: _np_reshape,
    np.ravel: _np_ravel,
    np.transpose: _np_transpose,
    np.swapaxes: _np_swapaxes,
    np.broadcast_to: _np_broadcast_to,
    np.expand_dims: _np_expand_dims,
    np.squeeze: _np_squeeze,
    np.stack: _np_stack,
    np.concatenate: _np_concatenate,
    np.sum: _reduction("tensor.sum"),
    np.mean: _reduction("tensor.mean"),
    np.clip: _np_clip,
    np.where: _np_where,
    np.real: _unary("tensor.real"),
    np.imag: _unary("tensor.imag"),
    np.dot: _np_dot,
    np.flip: _np_flip,
    np.zeros_like: _np_zeros_like,
    np.shape: lambda recorder, a: a.shape,
    np.ndim: lambda recorder, a: a.ndim,
    np.size: lambda recorder, a: a.size,
    np.copy: lambda recorder, a: a,
}


def call_function(
    recorder: CaptureRecorder,
    function: Any,
    arguments: Sequence[Any],
    options: Mapping[str, Any],
) -> Any:
    """Records `function(*arguments, **options)` of numpy."""
    known = _FUNCTIONS.get(function)
    if known is None:
        fail(
            f"numpy.{function.__name__} is not available on captured arrays; there are "
            + ", ".join(sorted(known.__name__ for known in _FUNCTIONS))
            + "; or compute it before the call and capture the result"
        )
    return known(recorder, *arguments, **options)
