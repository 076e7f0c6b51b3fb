"""Capture: running a function on captured values to get its Program."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterable, Mapping
from types import FunctionType
from typing import Any

from .. import _native
from .._recording import LIBRARIES, recording_with
from ..errors import CaptureError, CompileInputError, FheliumError
from ._guards import Guards
from ._inputs import InputSpec
from ._private import PrivateCopies
from ._recorder import CaptureRecorder

__all__ = ["CAPTURED_FUNCTION", "capture", "capture_call", "check_function", "run_inline"]

CAPTURED_FUNCTION = "captured_function"
"""The workspace entry that holds the function that `capture` captured."""


def check_function(function: Any) -> inspect.Signature:
    """The signature of a function that can be captured.

    Raises:
        TypeError: `function` is not a plain synchronous Python function with fixed parameters.
    """
    if type(function) is not FunctionType:
        raise TypeError(_not_a_function(function))
    name = function.__qualname__
    for test, what in (
        (inspect.iscoroutinefunction, "a coroutine function"),
        (inspect.isasyncgenfunction, "an async generator function"),
        (inspect.isgeneratorfunction, "a generator function"),
    ):
        if test(function):
            raise TypeError(f"{name} is {what}; expected a plain function that returns its result")
    # Of the function itself: a decorator's wrapper is what a call runs.
    signature = inspect.signature(function, follow_wrapped=False)
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(
                f"{name} takes {parameter}; a compiled function has a fixed signature: name each "
                "parameter"
            )
    return signature


def _not_a_function(value: Any) -> str:
    kind = type(value).__name__
    remedies = {
        "method": "compile the function and pass the object's arrays as arguments",
        "partial": "write a function that calls it with the fixed arguments: "
        "def f(x): return g(x, 2)",
        "builtin_function_or_method": "write a Python function that calls it",
        "type": "compile one of its functions",
        "CompiledCallable": "it is compiled already",
    }
    remedy = remedies.get(kind, "write a plain function that calls it")
    return (
        f"expected a Program, a Compilation or a plain Python function, found {value!r} of type "
        f"{kind}; {remedy}"
    )


def capture_call(
    function: FunctionType,
    arguments: Mapping[str, tuple[_native.Type | None, Any]],
    *,
    parameters: _native.Parameters | None,
    engines: Iterable[Any] = (),
    material_names: Mapping[str, Any] | None = None,
    guards: Guards | None = None,
) -> _native.Compilation:
    """Captures a function whose arguments have these types, or these static values.

    `guards` is given what the function's constants were.
    """
    recorder = CaptureRecorder(function.__name__, parameters, material_names)
    for engine in engines:
        recorder.meet_engine(engine)
    values = {
        name: value if type_ is None else recorder.input(name, type_)
        for name, (type_, value) in arguments.items()
    }
    with recording_with(recorder):
        returned = _run(recorder, function, values)
        compilation = _finish(recorder, function, returned)
    if guards is not None:
        guards.extend(_copies(recorder).guards)
    return compilation


def run_inline(function: FunctionType, values: Mapping[str, Any], recorder: Any) -> Any:
    """Runs a compiled function's body as part of the capture that is under way."""
    return _call(_copies(recorder).function(function), values)


def _copies(recorder: CaptureRecorder) -> PrivateCopies:
    if recorder.copies is None:
        recorder.copies = PrivateCopies(recorder)
    return recorder.copies


def _call(function: FunctionType, values: Mapping[str, Any]) -> Any:
    positional, named = [], {}
    for parameter in inspect.signature(function, follow_wrapped=False).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            named[parameter.name] = values[parameter.name]
        else:
            positional.append(values[parameter.name])
    return function(*positional, **named)


def _run(recorder: CaptureRecorder, function: FunctionType, values: Mapping[str, Any]) -> Any:
    try:
        return run_inline(function, values, recorder)
    except FheliumError as error:
        place = _place(error, function)
        if place.partition(" in ")[0] in str(error):
            raise
        raise type(error)(f"{place}: {error}") from error.__cause__
    except AssertionError as error:
        raise CompileInputError(f"{_place(error, function)}: {error}") from error
    except Exception as error:
        raise CaptureError(
            f"{_place(error, function)}: {type(error).__name__} while {function.__qualname__} was "
            f"captured: {error}"
        ) from error


def _place(error: Exception, function: FunctionType) -> str:
    """The last line of user code that an exception passed through."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(LIBRARIES)
    ]
    if frames:
        return f"{frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}"
    code = function.__code__
    return f"{code.co_filename}:{code.co_firstlineno} in {code.co_name}"


def _finish(
    recorder: CaptureRecorder, function: FunctionType, returned: Any
) -> _native.Compilation:
    try:
        return recorder.finish(returned)
    except CaptureError as error:
        code = function.__code__
        raise CaptureError(
            f"{code.co_filename}:{code.co_firstlineno} in {code.co_name}: {error}"
        ) from None


def capture(
    function: FunctionType,
    *,
    inputs: Mapping[str, InputSpec],
    parameters: _native.Parameters | None = None,
    material_names: Mapping[str, Any] | None = None,
) -> _native.Compilation:
    """Captures a function from a description of its arguments; nothing is computed.

    Args:
        function: A plain function with fixed parameters.
        inputs: A description of every parameter.
        parameters: The parameters of encrypted and plaintext inputs.
        material_names: Symbols for fixed arrays and values that the function uses.

    Raises:
        CompileInputError: `inputs` does not name exactly the function's parameters.
        CaptureError: The function does what cannot be captured.
    """
    signature = check_function(function)
    check_inputs(function, signature, inputs)
    arguments: dict[str, tuple[_native.Type | None, Any]] = {}
    for name in signature.parameters:
        spec = inputs[name]
        static = spec.role == "static"
        arguments[name] = (None, spec.value) if static else (spec.type(name, parameters), None)
    compilation = capture_call(
        function, arguments, parameters=parameters, material_names=material_names
    )
    compilation.workspace[CAPTURED_FUNCTION] = function
    return compilation


def check_inputs(
    function: FunctionType, signature: inspect.Signature, inputs: Mapping[str, InputSpec]
) -> None:
    """Refuses a description that does not name exactly the parameters."""
    for name, spec in inputs.items():
        if not isinstance(spec, InputSpec):
            raise TypeError(
                f"inputs[{name!r}] must be an InputSpec such as encrypted() or static(2), found "
                f"{type(spec).__name__}"
            )
    missing = [name for name in signature.parameters if name not in inputs]
    extra = [name for name in inputs if name not in signature.parameters]
    if missing or extra:
        raise CompileInputError(
            f"inputs must describe every parameter of {function.__qualname__}{signature} and "
            f"nothing else; missing: {missing or 'none'}, not a parameter: {extra or 'none'}"
        )
