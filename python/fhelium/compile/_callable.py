"""CompiledCallable: a function that is compiled for each kind of arguments it meets."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Generic, Literal, ParamSpec, TypeVar, overload

import numpy as np

from .. import _native
from .._arithmetic import integer, kind_of
from .._recording import active_recorder, caller_location, describe
from ..errors import ArgumentError, CaptureError
from ._capture import (
    CAPTURED_FUNCTION,
    capture_call,
    check_function,
    check_inputs,
    run_inline,
)
from ._check import PrecisionReport, check_program
from ._guards import Guards
from ._inputs import InputSpec, check_static
from ._recorder import check_material_names
from ._registry import remember

__all__ = ["CompiledCallable", "compile"]

P = ParamSpec("P")
R = TypeVar("R")

PipelineChoice = _native.Pipeline | Callable[[_native.CallSignature], _native.Pipeline]
_POLICIES = ("compile", "error")


class CompiledCallable(Generic[P, R]):
    """A Program, a Compilation or a plain Python function, compiled for the arguments it meets.

    A call looks for a specialization whose recorded conditions all equal those of the arguments
    and runs it. On a miss the source is captured, transformed by the pipeline, linked to the
    backend, stored and run. Construction does none of that.

    Args:
        source: A plain synchronous function with fixed parameters, a Program or a Compilation.
        backend: Implementations of operations; the standard ones by default.
        pipeline: Passes, in place of `default_pipeline()`; or a function from a CallSignature to
            a Pipeline.
        on_miss: "compile", or "error" to raise SpecializationMiss instead.
        workspace: Entries for passes.
        inputs: A description of every parameter; by default the arguments of each call describe
            themselves.
        material_names: Symbols for fixed arrays and values that the function uses.
        max_specializations: The most that are kept, the one used longest ago being dropped;
            None keeps all.
        frozen_materials: Whether fixed arrays are read once, at the first call, instead of being
            looked at for changes on each call.
        cache_directory: A directory in which compiled Programs are kept for later processes; None
            for the process' one (see `cache_directory()`), False for none.
        guard_constants: Whether each call looks for changes of the globals, closure variables and
            defaults that were captured, and captures anew after one. By default such a change is
            not noticed until `clear`.
    """

    def __init__(
        self,
        source: Callable[P, R] | _native.Program | _native.Compilation,
        *,
        backend: _native.OperationBackend | None = None,
        pipeline: PipelineChoice | None = None,
        on_miss: str = "compile",
        workspace: Mapping[str, Any] | None = None,
        inputs: Mapping[str, InputSpec] | None = None,
        material_names: Mapping[str, Any] | None = None,
        max_specializations: int | None = None,
        frozen_materials: bool = False,
        cache_directory: str | os.PathLike[str] | Literal[False] | None = None,
        guard_constants: bool = False,
    ) -> None:
        if on_miss not in _POLICIES:
            raise ValueError(f'on_miss must be "compile" or "error", found {on_miss!r}')
        if max_specializations is not None:
            max_specializations = integer("compile", "max_specializations", max_specializations)
            if max_specializations < 1:
                raise ValueError(
                    f"max_specializations must be positive, found {max_specializations}"
                )
        check_options(backend, pipeline, workspace, inputs, material_names)
        self._function: FunctionType | None = None
        self._reference: Any = None
        self._compilation: _native.Compilation | None = None
        if isinstance(source, _native.Program | _native.Compilation):
            signature = self._take_program(source, workspace, inputs, material_names)
        else:
            signature = check_function(source)
            self._function = self._reference = source  # type: ignore[assignment]
            self._take_metadata(source)
            if inputs is not None:
                check_inputs(source, signature, inputs)  # type: ignore[arg-type]
        self.__signature__ = signature
        self._backend = backend
        self._pipeline = pipeline
        self._on_miss = on_miss
        self._workspace = dict(workspace or {})
        self._inputs = None if inputs is None else dict(inputs)
        self._material_names = dict(material_names or {})
        check_material_names(self._material_names)
        self._max_specializations = max_specializations
        self._guards = Guards() if guard_constants else None
        parameters = signature.parameters.values()
        self._core = _native.CallableCore(
            self._name,
            [
                (parameter.name, parameter.kind.name, parameter.default is parameter.empty)
                for parameter in parameters
            ],
            tuple(parameter.default for parameter in parameters),
            backend,
            on_miss == "error",
            max_specializations,
            frozen_materials,
            cache_directory,
        )
        remember(self)

    # --- the source --------------------------------------------------------------------------

    def _take_program(
        self,
        source: _native.Program | _native.Compilation,
        workspace: Mapping[str, Any] | None,
        inputs: Mapping[str, InputSpec] | None,
        material_names: Mapping[str, Any] | None,
    ) -> inspect.Signature:
        kind = type(source).__name__
        for name, value in (("inputs", inputs), ("material_names", material_names)):
            if value is not None:
                raise ValueError(
                    f"{name} chooses how a Python function is captured; a {kind} is captured "
                    "already: leave it out"
                )
        if isinstance(source, _native.Program):
            self._compilation = _native.Compilation(source)
        elif workspace is not None:
            raise ValueError("workspace: a Compilation brings its own; leave it out")
        else:
            self._compilation = source.copy()
        names = self._compilation.program.input_names
        captured = self._compilation.workspace.get(CAPTURED_FUNCTION)
        if captured is not None:
            signature = inspect.signature(captured, follow_wrapped=False)
            kept = [signature.parameters[name] for name in names if name in signature.parameters]
            if len(kept) == len(names):
                self._take_metadata(captured)
                self._reference = captured
                return signature.replace(parameters=_in_legal_order(kept))
        self.__name__ = self.__qualname__ = self._compilation.program.name
        return inspect.Signature(
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        )

    def _take_metadata(self, function: Any) -> None:
        for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
            setattr(self, attribute, getattr(function, attribute))
        self.__wrapped__ = function

    @property
    def _name(self) -> str:
        return str(getattr(self, "__qualname__", type(self).__name__))

    @property
    def backend(self) -> _native.OperationBackend | None:
        """The backend, as it was given."""
        return self._backend

    @property
    def pipeline(self) -> PipelineChoice | None:
        """The pipeline, as it was given."""
        return self._pipeline

    @property
    def on_miss(self) -> str:
        """What a miss does: "compile" or "error"."""
        return self._on_miss

    @property
    def inputs(self) -> dict[str, InputSpec] | None:
        """The description of the parameters, if one was given."""
        return None if self._inputs is None else dict(self._inputs)

    @property
    def reference(self) -> Callable[P, R] | None:
        """The original function, to compare with; None for a Program."""
        return self._reference  # type: ignore[no-any-return]

    @property
    def source(self) -> Callable[P, R] | _native.Compilation:
        """What is compiled: the function, or a copy of the Compilation."""
        if self._function is not None:
            return self._function
        assert self._compilation is not None
        return self._compilation.copy()

    # --- calls -------------------------------------------------------------------------------

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs the specialization for these arguments, compiling one if there is none."""
        recorder = active_recorder()
        if recorder is not None:
            return self._inline(recorder, args, kwargs)  # type: ignore[no-any-return]
        if self._guards is not None:
            self._drop_stale(self._guards)
        return self._core.call(self, args, kwargs)  # type: ignore[no-any-return]

    def prepare(self, *args: P.args, **kwargs: P.kwargs) -> _native.Specialization:
        """Makes the specialization for these arguments, without running it."""
        if self._guards is not None:
            self._drop_stale(self._guards)
        return self._core.prepare(self, args, kwargs)

    def _drop_stale(self, guards: Guards) -> None:
        """Drops the specializations if a captured constant has changed."""
        if guards.changed() is not None:
            self.clear()

    def explain(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """What a call with these arguments would do, and why."""
        return self._core.explain(self, args, kwargs)

    def check(
        self, *args: Any, secret: _native.SecretKey, atol: float = 1e-4, **kwargs: Any
    ) -> PrecisionReport:
        """Runs operation by operation beside the same computation on clear numbers.

        Args:
            args: The arguments, as of a call.
            secret: The secret key of the encrypted arguments.
            atol: The largest error that is accepted.
            kwargs: The arguments that are given by name.

        Returns:
            The error of every encrypted result; `first` is the line where precision is lost.
        """
        if not isinstance(atol, int | float | np.number) or not atol >= 0:
            raise ArgumentError(f"check: atol must be a number of 0 or more, found {atol!r}")
        values = self._bind(args, kwargs)
        specialization = self._core.prepare(self, args, kwargs)
        inputs = specialization.program.inputs
        named = zip(self.__signature__.parameters, values, strict=True)
        given = [value for name, value in named if name in inputs]
        if not any(kind_of(value) == "ciphertext" for value in given):
            raise ArgumentError(f"check: no argument of {self._name} is a ciphertext")
        return check_program(specialization.source, given, secret, atol)

    def with_backend(self, backend: _native.OperationBackend) -> CompiledCallable[P, R]:
        """A callable of the same source on another backend.

        It starts with the compiled variants of this one, none of them linked.
        """
        other: CompiledCallable[P, R] = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._backend = backend
        other._core = self._core.unlinked_copy(backend)
        remember(other)
        return other

    def clear(self) -> None:
        """Drops all specializations; the next call captures anew."""
        self._core.clear()
        if self._guards is not None:
            self._guards = Guards()

    @property
    def specializations(self) -> tuple[_native.Specialization, ...]:
        """The linked variants, in the order of their preparation."""
        return self._core.specializations

    @property
    def hits(self) -> int:
        """Calls that found their specialization."""
        return self._core.hits

    @property
    def misses(self) -> int:
        """Calls and preparations that found none."""
        return self._core.misses

    @property
    def disk_hits(self) -> int:
        """Specializations whose compiled Program came from the cache directory."""
        return self._core.disk_hits

    @property
    def disk_misses(self) -> int:
        """Specializations that were compiled and then written to the cache directory."""
        return self._core.disk_misses

    @property
    def evictions(self) -> int:
        """Specializations dropped because of `max_specializations`."""
        return self._core.evictions

    @property
    def preparation_seconds(self) -> float:
        """Seconds spent in capture, passes and linking, failed preparations included."""
        return self._core.preparation_seconds

    def __set_name__(self, owner: type, name: str) -> None:
        first = next(iter(self.__signature__.parameters), None)
        if first in ("self", "cls"):
            raise TypeError(
                f"{owner.__qualname__}.{name} is a method, which cannot be compiled: compile a "
                "function, and pass it what the method takes from the object"
            )

    def __repr__(self) -> str:
        count = len(self.specializations)
        plural = "" if count == 1 else "s"
        return f"<compiled {self._name}{self.__signature__}, {count} specialization{plural}>"

    def __reduce__(self) -> Any:
        raise TypeError(
            f"the compiled function {self._name} cannot be pickled: pickle the Program of a "
            "specialization, or its .compilation, which has the captured data too, and compile that"
        )

    # --- what the core asks for --------------------------------------------------------------

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments in the order of the parameters."""
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self._name}{self.__signature__}: {error}") from None
        bound.apply_defaults()
        return tuple(bound.arguments[name] for name in self.__signature__.parameters)

    def _source(
        self, types: tuple[_native.Type | None, ...], values: tuple[Any, ...]
    ) -> _native.Compilation:
        """The Compilation for arguments of these types; statics have none."""
        if self._compilation is not None:
            self._check_inputs(types, values)
            compilation = self._compilation.copy()
            compilation.workspace.update(self._workspace)
            return compilation
        assert self._function is not None
        arguments: dict[str, tuple[_native.Type | None, Any]] = {}
        parameters = None
        engines = []
        for name, type_, value in zip(self.__signature__.parameters, types, values, strict=True):
            if type_ is None:
                check_static(f"argument {name!r} of {self._name}", value)
            elif parameters is None:
                parameters = getattr(value, "parameters", None)
            engine = getattr(value, "_engine", None)
            if engine is not None:
                engines.append(engine)
            self._check_role(name, type_)
            arguments[name] = (type_, value)
        compilation = capture_call(
            self._function,
            arguments,
            parameters=parameters,
            engines=engines,
            material_names=self._material_names,
            guards=self._guards,
        )
        compilation.workspace.update(self._workspace)
        return compilation

    def _check_inputs(
        self, types: tuple[_native.Type | None, ...], values: tuple[Any, ...]
    ) -> None:
        """Refuses arguments that are not what the Program's inputs say."""
        assert self._compilation is not None
        inputs = self._compilation.program.inputs.items()
        for (name, expected), found, value in zip(inputs, types, values, strict=True):
            kind = f"the scalar {value!r}" if found is None else f"a {found.kind}"
            if found is None or found.kind != expected.kind:
                raise TypeError(
                    f"input {name!r} of {self._name} must be a {expected.kind}, found {kind}"
                )
            for field in ("level", "scale", "parts", "shape", "dtype", "key_kind", "step"):
                known, given = getattr(expected, field), getattr(found, field)
                if known is not None and known != given:
                    raise ArgumentError(
                        f"input {name!r} of {self._name}: the Program is for {field} {known}, "
                        f"found {given}"
                    )

    def _check_role(self, name: str, type_: _native.Type | None) -> None:
        if self._inputs is None:
            return
        role = self._inputs[name].role
        found = "static" if type_ is None else type_.kind
        expected = {"encrypted": "ciphertext", "message": "tensor"}.get(role, role)
        if found != expected:
            raise TypeError(
                f"argument {name!r} of {self._name} is declared {role}, found a {found}"
            )

    def _choose_pipeline(self, signature: _native.CallSignature) -> _native.Pipeline | None:
        if self._pipeline is None or isinstance(self._pipeline, _native.Pipeline):
            return self._pipeline
        chosen = self._pipeline(signature)
        if not isinstance(chosen, _native.Pipeline):
            raise TypeError(
                f"the pipeline function of {self._name} must return a Pipeline, found "
                f"{type(chosen).__name__}"
            )
        return chosen

    def _inline(self, recorder: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the function as part of the capture that is under way."""
        values = self._bind(args, kwargs)
        if self._function is None:
            raise CaptureError(
                f"{describe(caller_location())}: {self._name} is compiled from a Program and "
                "cannot become part of another function; call it outside, or compile the Python "
                "function"
            )
        named = dict(zip(self.__signature__.parameters, values, strict=True))
        return run_inline(self._function, named, recorder)


def check_options(
    backend: Any, pipeline: Any, workspace: Any, inputs: Any, material_names: Any
) -> None:
    """Refuses options of the wrong type at once, and not at the first call."""
    if backend is not None and not isinstance(backend, _native.OperationBackend):
        raise TypeError(
            f"backend must be an OperationBackend, found {type(backend).__name__}; where a "
            "function runs is its arguments' engine's choice"
        )
    if not (pipeline is None or isinstance(pipeline, _native.Pipeline) or callable(pipeline)):
        raise TypeError(
            "pipeline must be a Pipeline, such as Pipeline(Reuse(), ...), or a function from a "
            f"CallSignature to one, found {type(pipeline).__name__}"
        )
    dicts = {"workspace": workspace, "inputs": inputs, "material_names": material_names}
    for name, value in dicts.items():
        if not isinstance(value, Mapping | None):
            raise TypeError(f"{name} must be a dict, found {type(value).__name__}")


def _in_legal_order(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """Parameters of which some are gone, without a default before one that has none."""
    legal: list[inspect.Parameter] = []
    for parameter in reversed(parameters):
        positional = parameter.kind is not parameter.KEYWORD_ONLY
        required_follows = any(
            later.default is later.empty and later.kind is not later.KEYWORD_ONLY for later in legal
        )
        if positional and required_follows:
            parameter = parameter.replace(default=parameter.empty)
        legal.insert(0, parameter)
    return legal


@overload
def compile(source: Callable[P, R], /, **options: Any) -> CompiledCallable[P, R]: ...


@overload
def compile(
    source: _native.Program | _native.Compilation, /, **options: Any
) -> CompiledCallable[..., Any]: ...


@overload
def compile(**options: Any) -> Callable[[Callable[P, R]], CompiledCallable[P, R]]: ...


def compile(source: Any = None, /, **options: Any) -> Any:
    """Compiles a function, a Program or a Compilation; a decorator, bare or with options.

    See CompiledCallable for the options.
    """
    if source is None:
        return lambda function: CompiledCallable(function, **options)
    return CompiledCallable(source, **options)
