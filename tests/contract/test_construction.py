"""Rules 1 to 12: constructing a CompiledCallable."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.compile import (
    CompiledCallable,
    OperationBackend,
    Program,
    capture,
    compile,
    default_pipeline,
    encrypted,
    message,
    static,
)


def double(x: Any) -> Any:
    """Twice x."""
    return x + x


def test_rule_01_one_positional_source_and_keyword_options() -> None:
    parameters = inspect.signature(CompiledCallable).parameters
    assert next(iter(parameters)) == "source"
    options = {name: entry for name, entry in parameters.items() if name != "source"}
    assert all(entry.kind is entry.KEYWORD_ONLY for entry in options.values())
    expected = {
        "backend": None,
        "pipeline": None,
        "on_miss": "compile",
        "workspace": None,
        "inputs": None,
        "material_names": None,
    }
    assert {name: options[name].default for name in expected} == expected
    assert CompiledCallable[[int], int]


def test_rule_02_construction_does_nothing() -> None:
    def raises(x: Any) -> Any:
        raise AssertionError("the body ran")

    compiled = CompiledCallable(raises)
    assert compiled.specializations == ()
    assert (compiled.hits, compiled.misses) == (0, 0)


def test_rule_03_on_miss_is_checked_at_construction() -> None:
    with pytest.raises(ValueError, match='"compile" or "error", found \'never\''):
        CompiledCallable(double, on_miss="never")


def test_rule_04_sources() -> None:
    compilation = capture(double, inputs={"x": message((3,))})
    x = np.arange(3.0)
    for source in (double, lambda x: x + x, compilation, compilation.program):
        np.testing.assert_array_equal(CompiledCallable(source)(x), 2 * x)


async def coroutine(x: Any) -> Any:
    return x


async def async_generator(x: Any) -> Any:
    yield x


def generator(x: Any) -> Any:
    yield x


class Model:
    def method(self, x: Any) -> Any:
        return x

    def __call__(self, x: Any) -> Any:
        return x


@pytest.mark.parametrize(
    "source",
    [
        coroutine,
        async_generator,
        generator,
        Model().method,
        Model(),
        Model,
        len,
        np.add,
        functools.partial(double, 2),
        CompiledCallable(double),
        3,
        None,
    ],
    ids=str,
)
def test_rule_05_other_sources_are_refused(source: Any) -> None:
    with pytest.raises(TypeError, match=r"expected a"):
        CompiledCallable(source)


def test_rule_05_a_partial_is_refused_with_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"def f\(x\): return g\(x, 2\)"):
        fh.jit(functools.partial(double, 2))


def test_rule_06_variadic_functions_are_refused() -> None:
    def positional(*xs: Any) -> Any:
        return xs

    def named(**xs: Any) -> Any:
        return xs

    for function in (positional, named):
        with pytest.raises(TypeError, match="fixed signature"):
            CompiledCallable(function)

    @compile
    def every_kind(a: Any, /, b: Any, c: Any = 3.0, *, d: Any, e: Any = 5.0) -> Any:
        return a + 10 * b + 100 * c + 1000 * d + 10000 * e

    one = np.array([1.0])
    assert every_kind(one, 2.0, d=4.0) == 54321.0
    assert every_kind(one, b=2.0, c=0.0, d=4.0, e=0.0) == 4021.0
    with pytest.raises(TypeError, match=r"every_kind.*positional.only"):
        every_kind(a=one, b=2.0, d=4.0)


def test_rule_07_capture_options_need_a_function() -> None:
    compilation = capture(double, inputs={"x": message((3,))})
    for source in (compilation, compilation.program):
        with pytest.raises(ValueError, match="inputs"):
            CompiledCallable(source, inputs={"x": message((3,))})
        with pytest.raises(ValueError, match="material_names"):
            CompiledCallable(source, material_names={})
    with pytest.raises(ValueError, match="workspace"):
        CompiledCallable(compilation, workspace={})
    CompiledCallable(compilation.program, workspace={})


def test_rule_08_the_source_is_copied() -> None:
    compilation = capture(double, inputs={"x": message((3,))})
    workspace = {"entry": 1}
    compiled = CompiledCallable(compilation)
    compilation.workspace.update(workspace)
    compilation.material_bindings["unknown"] = np.zeros(1)
    x = np.arange(3.0)
    specialization = compiled.prepare(x)
    assert "entry" not in specialization.source.workspace
    assert "unknown" not in specialization.source.material_bindings
    np.testing.assert_array_equal(compiled(x), 2 * x)


def test_rule_09_metadata_is_the_functions() -> None:
    double.tag = "not copied"  # type: ignore[attr-defined]
    compiled = CompiledCallable(double)
    assert compiled.__name__ == "double"
    assert compiled.__qualname__ == "double"
    assert compiled.__module__ == double.__module__
    assert compiled.__doc__ == "Twice x."
    assert compiled.__wrapped__ is double
    assert not hasattr(compiled, "tag")
    assert compiled.__signature__ == inspect.signature(double)
    assert inspect.signature(compiled) == inspect.signature(double)
    assert compiled.reference is double


def test_rule_10_a_captured_compilation_keeps_the_functions_signature() -> None:
    def scaled(x: Any, factor: int, *, shift: Any) -> Any:
        """Scaled."""
        return x * factor + shift

    compilation = capture(
        scaled, inputs={"x": message((2,)), "factor": static(3), "shift": message((2,))}
    )
    compiled = CompiledCallable(compilation)
    assert str(inspect.signature(compiled)).startswith("(x")
    assert list(compiled.__signature__.parameters) == ["x", "shift"]
    assert compiled.__signature__.parameters["shift"].kind is inspect.Parameter.KEYWORD_ONLY
    assert compiled.__name__ == "scaled"
    assert compiled.__doc__ == "Scaled."
    assert compiled.reference is scaled
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(compiled(x, shift=x), 4 * x)

    bare = CompiledCallable(compilation.program)
    assert list(bare.__signature__.parameters) == ["x", "shift"]
    assert bare.reference is None
    np.testing.assert_array_equal(bare(x, x), 4 * x)


def test_rule_11_public_attributes() -> None:
    backend, pipeline = OperationBackend(), default_pipeline()
    inputs = {"x": message((3,))}
    compiled = CompiledCallable(
        double, backend=backend, pipeline=pipeline, on_miss="error", inputs=inputs
    )
    assert compiled.backend is backend
    assert compiled.pipeline is pipeline
    assert compiled.on_miss == "error"
    assert compiled.inputs == inputs
    assert compiled.inputs is not inputs
    assert compiled.reference is double
    assert compiled.specializations == ()
    plain = CompiledCallable(double)
    assert plain.backend is None
    assert plain.pipeline is None
    assert plain.inputs is None


def test_rule_12_the_decorator_forms() -> None:
    @compile
    def bare(x: Any) -> Any:
        return x

    @compile(on_miss="error")
    def with_options(x: Any) -> Any:
        return x

    assert isinstance(bare, CompiledCallable)
    assert with_options.on_miss == "error"
    program = capture(double, inputs={"x": message((3,))}).program
    assert isinstance(program, Program)
    assert isinstance(compile(program), CompiledCallable)
    assert fh.jit is compile


def test_rule_12_encrypted_inputs_of_a_program(bench: Any) -> None:
    parameters = bench.engine.parameters
    compilation = capture(double, inputs={"x": encrypted()}, parameters=parameters)
    text = compilation.program.to_text()
    x, ciphertext = bench.fresh()
    compiled = compile(Program.parse(text))
    assert np.abs(bench.decrypt(compiled(ciphertext)) - 2 * x).max() < 1e-6
