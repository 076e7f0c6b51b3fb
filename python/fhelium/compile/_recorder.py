"""Records a function's operations as a Program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from .._arithmetic import host_array, is_on_gpu, kind_of
from .._recording import Location, caller_location, describe
from ..errors import CaptureError, FheliumError, KeyMismatch
from ._tracers import (
    Captured,
    CapturedCiphertext,
    CapturedKey,
    CapturedPlaintext,
    CapturedTensor,
    Pending,
    belongs,
    fail,
)

if TYPE_CHECKING:
    from ._private import PrivateCopies

__all__ = ["CaptureRecorder", "check_material_names"]

_CLASSES: dict[str, type[Captured]] = {
    "ciphertext": CapturedCiphertext,
    "plaintext": CapturedPlaintext,
    "tensor": CapturedTensor,
    "key": CapturedKey,
}
_SCALARS = (bool, int, float, complex, str)


def check_material_names(names: Mapping[str, Any]) -> None:
    """Refuses names of what cannot be a material."""
    for symbol, value in names.items():
        if kind_of(value) not in ("array", "ciphertext", "plaintext", "key"):
            raise TypeError(
                f"material_names[{symbol!r}] must be an array, ciphertext, plaintext or key that "
                f"the function uses, found {type(value).__name__}"
            )


class CaptureRecorder:
    """Builds the Program of one function, operation by operation.

    Fixed arrays, ciphertexts, plaintexts and keys that the function uses become materials: the
    Program names them by symbol, and the data stays where it is.
    """

    def __init__(
        self,
        name: str,
        parameters: _native.Parameters | None,
        material_names: Mapping[str, Any] | None = None,
    ) -> None:
        self._builder = _native.ProgramBuilder(name, parameters)
        self._parameters = parameters
        check_material_names(material_names or {})
        self._names = {id(value): symbol for symbol, value in (material_names or {}).items()}
        self._named = dict(material_names or {})
        self._symbols: set[str] = set(self._named)
        self._counts: dict[str, int] = {}
        # By identity; the values are kept, so that no identity is used twice.
        self._materials: dict[int, tuple[Any, Captured]] = {}
        self._bindings: dict[str, Any] = {}
        # Copies of arrays that only the running function can reach: it may still change them.
        self._snapshots: dict[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = {}
        self.engines: list[Any] = []
        self.copies: PrivateCopies | None = None

    @property
    def parameters(self) -> _native.Parameters:
        """The parameters of the captured ciphertexts."""
        if self._parameters is None:
            fail("no parameters are known here: the function has met no ciphertext yet")
        return self._parameters

    def input(self, name: str, type_: _native.Type) -> Captured:
        """A parameter of the Program."""
        return self._captured(self._builder.input(name, type_), None)

    def _captured(self, value: int, location: Location | None) -> Captured:
        type_ = self._builder.type_of(value)
        return _CLASSES[type_.kind](self, value, type_, location)

    # --- operations --------------------------------------------------------------------------

    def apply(
        self,
        operation: str,
        operands: Sequence[Any],
        attributes: Mapping[str, Any],
        key: Any = None,
    ) -> Any:
        """Records one operation; its result, or a list where it has several."""
        location = caller_location()
        lifted = [self.lift(operand) for operand in operands]
        if key is not None:
            lifted.append(self.lift(key))
        results = self._builder.operation(
            operation, [self._id(value) for value in lifted], dict(attributes), location
        )
        captured = [self._captured(value, location) for value in results]
        return captured[0] if len(captured) == 1 else captured

    def _id(self, value: Captured) -> int:
        if value._value is None:
            self._declare(value)
        assert value._value is not None
        return value._value

    def lift(self, value: Any) -> Captured:
        """A captured value for whatever may stand as an operand."""
        if isinstance(value, Captured):
            if not belongs(value):
                fail(
                    f"a value captured elsewhere (at {describe(value._location)}) is used here; "
                    "return it from its function and pass it as an argument"
                )
            return value
        kind = kind_of(value)
        if kind == "scalar":
            return self.constant(value)
        if kind is None:
            fail(
                f"a {type(value).__name__} cannot take part in a Program: expected a ciphertext, "
                "plaintext, key, array or number"
            )
        known = self._materials.get(id(value))
        if known is not None and not self._changed_since(known[1], value):
            return known[1]
        if kind == "array":
            return self.array(value, fixed=False)
        return self._fixed(value, kind)

    def constant(self, value: Any, dtype: np.dtype[Any] | None = None) -> CapturedTensor:
        """A scalar as a clear tensor without axes."""
        if dtype is None:
            dtype = np.asarray(value).dtype
        number = dtype.type(value).item()
        results = self._builder.operation(
            "tensor.constant",
            [],
            {"value": number, "dtype": str(dtype)},
            caller_location(),
        )
        captured = self._captured(results[0], caller_location())
        assert isinstance(captured, CapturedTensor)
        return captured

    # --- materials ---------------------------------------------------------------------------

    def array(self, value: Any, *, fixed: bool = True) -> CapturedTensor:
        """A captured tensor that stands for an array; declared when it is first used.

        An array that is `fixed` was reached from outside the function, so a change of it is its
        owner's. Another may be one that the function is still filling in.
        """
        known = self._materials.get(id(value))
        if fixed and known is not None:
            assert isinstance(known[1], CapturedTensor)
            return known[1]
        # One on a GPU stays as it is: its contents are read there, at each call.
        array = _native.Array.from_dlpack(value) if is_on_gpu(value) else host_array(value)
        try:
            type_ = _native.Type.tensor(str(array.dtype), array.shape)
        except FheliumError as error:
            fail(str(error))
        if isinstance(array, _native.Array):
            pending = Pending(value, value, "tensor", None)
        else:
            pending = Pending(value, array, "tensor", None if fixed else array.copy())
        captured = CapturedTensor(self, None, type_, caller_location(), pending)
        self._materials[id(value)] = (value, captured)
        return captured

    def _fixed(self, value: Any, kind: str) -> Captured:
        """A ciphertext, plaintext or key that exists already."""
        self.meet(value)
        pending = Pending(value, value, kind, None)
        captured = _CLASSES[kind](self, None, value._type(), caller_location(), pending)
        self._materials[id(value)] = (value, captured)
        return captured

    def meet(self, value: Any) -> None:
        """Learns parameters and engine from a ciphertext, plaintext or key."""
        self._meet_parameters(value.parameters)
        engine = getattr(value, "_engine", None)
        if engine is not None:
            self.meet_engine(engine)

    def meet_engine(self, engine: Any) -> None:
        """Remembers an engine, whose parameters the values must have."""
        self._meet_parameters(engine.parameters)
        if all(known != engine for known in self.engines):
            self.engines.append(engine)

    def _meet_parameters(self, parameters: _native.Parameters) -> None:
        if self._parameters is None:
            self._parameters = parameters
            self._builder.set_parameters(parameters)
        elif parameters != self._parameters:
            raise KeyMismatch(
                f"{describe(caller_location())}: values of two parameter sets meet in one "
                f"function: {parameters} and {self._parameters}; encrypt both under one"
            )

    def _declare(self, captured: Captured) -> None:
        pending = captured._pending
        assert pending is not None
        symbol = self._symbol(pending)
        description = f"captured at {describe(captured._location)}"
        captured._value = self._builder.material(
            symbol, captured._type, description, captured._location
        )
        self._bindings[symbol] = pending.data
        if pending.snapshot is not None:
            self._snapshots[symbol] = (pending.data, pending.snapshot)

    def _symbol(self, pending: Pending) -> str:
        prefix = pending.prefix
        named = self._names.get(id(pending.owner))
        if named is not None:
            return named
        while True:
            number = self._counts.get(prefix, 0)
            self._counts[prefix] = number + 1
            symbol = f"{prefix}{number}"
            if symbol not in self._symbols:
                self._symbols.add(symbol)
                return symbol

    @staticmethod
    def _changed_since(captured: Captured, value: Any) -> bool:
        pending = captured._pending
        if pending is None or pending.snapshot is None:
            return False
        return not np.array_equal(np.asarray(value), pending.snapshot, equal_nan=True)

    # --- outputs -----------------------------------------------------------------------------

    def finish(self, returned: Any) -> _native.Compilation:
        """The Program that returns `returned`, with its materials bound."""
        program = self._builder.finish(self._outputs(returned, "the returned value", 0))
        for symbol, (array, snapshot) in self._snapshots.items():
            # Changed after use: the Program means the contents at the use.
            if not np.array_equal(array, snapshot, equal_nan=True):
                snapshot.setflags(write=False)
                self._bindings[symbol] = snapshot
        used = {name: self._bindings[name] for name in program.materials if name in self._bindings}
        return _native.Compilation(program, used, self.engines)

    def _outputs(self, value: Any, where: str, depth: int) -> Any:
        if depth > 60:
            raise CaptureError(f"{where} is nested deeper than 60 containers")
        if value is None or type(value) in _SCALARS:
            return value
        if isinstance(value, tuple | list) and type(value) in (tuple, list):
            items = [
                self._outputs(item, f"{where}[{place}]", depth + 1)
                for place, item in enumerate(value)
            ]
            return tuple(items) if isinstance(value, tuple) else items
        if type(value) is dict:
            for key in value:
                if key is not None and type(key) not in _SCALARS:
                    raise CaptureError(
                        f"{where} has a key of type {type(key).__name__}; keys of a returned dict "
                        "are None, bool, int, float, complex or str"
                    )
            return {
                key: self._outputs(item, f"{where}[{key!r}]", depth + 1)
                for key, item in value.items()
            }
        is_container = isinstance(value, tuple | list)
        kind = None if is_container else kind_of(value)
        if kind not in (None, "scalar", "key"):
            captured = self.lift(value)
            return _native.Output(self._id(captured))
        if isinstance(value, np.generic):
            return value.item()
        raise CaptureError(
            f"{where} is a {type(value).__name__}; a compiled function returns ciphertexts, "
            "plaintexts, arrays and scalars, in tuples, lists and dicts"
        )
