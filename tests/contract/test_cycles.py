"""Cycles through native objects are collected, and what is still used is not."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fhelium.compile import (
    Compilation,
    OperationBackend,
    Pipeline,
    PythonPass,
    capture,
    compile,
    default_pipeline,
    message,
)

ONE = np.asarray(1.0)


class Anchor:
    """Something that a cycle goes through and that a weak reference can watch."""

    def __init__(self) -> None:
        self.other: Any = None


def through_a_backend(anchor: Anchor) -> None:
    def implementation(x: Any) -> Any:
        return -x if anchor else x

    backend = OperationBackend().with_implementation("tensor.neg", "mine", implementation)
    compiled = compile(lambda x: -x, backend=backend)
    assert compiled(ONE) == -1.0
    anchor.other = compiled


def through_a_selected_backend(anchor: Anchor) -> None:
    def implementation(x: Any) -> Any:
        return -x if anchor else x

    backend = OperationBackend().with_implementation("tensor.neg", "mine", implementation, cost=2)
    anchor.other = backend.with_selection("tensor.neg", "mine")


def through_a_pass(anchor: Anchor) -> None:
    def watch(compilation: Compilation) -> None:
        assert anchor is not None

    pipeline = default_pipeline().then(PythonPass("watch", watch).named("again"))
    compiled = compile(lambda x: x + 1, pipeline=pipeline)
    assert compiled(ONE) == 2.0
    anchor.other = compiled


def through_passes_of_a_pipeline(anchor: Anchor) -> None:
    def watch(compilation: Compilation) -> None:
        assert anchor is not None

    anchor.other = Pipeline(PythonPass("watch", watch)).passes


def through_a_workspace(anchor: Anchor) -> None:
    compilation = capture(lambda x: x + 1, inputs={"x": message(())})
    compilation.workspace["anchor"] = anchor
    anchor.other = compile(compilation.copy())
    assert anchor.other(ONE) == 2.0


def through_a_default(anchor: Anchor) -> None:
    def function(x: Any, unused: Any = None) -> Any:
        return x + 1

    compiled = compile(function)
    assert compiled(ONE) == 2.0
    compiled.__dict__["anchor"] = anchor
    anchor.other = compiled.specializations[0].executable, compiled._core


def through_a_specialization(anchor: Anchor) -> None:
    def implementation(x: Any) -> Any:
        return -x if anchor else x

    backend = OperationBackend().with_implementation("tensor.neg", "mine", implementation)
    anchor.other = compile(lambda x: -x, backend=backend).prepare(ONE).executable


CYCLES = [
    through_a_backend,
    through_a_selected_backend,
    through_a_pass,
    through_passes_of_a_pipeline,
    through_a_workspace,
    through_a_default,
    through_a_specialization,
]


@pytest.mark.parametrize("make", CYCLES, ids=lambda make: make.__name__)
def test_cycles_are_collected(make: Callable[[Anchor], None]) -> None:
    anchor = Anchor()
    gone = weakref.ref(anchor)
    make(anchor)
    gc.collect()
    assert gone() is anchor
    del anchor
    gc.collect()
    assert gone() is None


def test_functions_live_as_long_as_anything_runs_them() -> None:
    """The backend, the callable and the pipeline go; what was made of them still runs."""

    def specialization() -> Any:
        backend = OperationBackend().with_implementation("tensor.neg", "mine", lambda x: x * 0 - 7)
        compiled = compile(lambda x: -x, backend=backend)
        return compiled.prepare(ONE)

    prepared = specialization()
    executable, backend = prepared.executable, prepared.backend
    del prepared
    gc.collect()
    assert executable.run(ONE) == -7.0
    del executable
    gc.collect()
    assert compile(lambda x: -x, backend=backend)(ONE) == -7.0

    def passes() -> Any:
        names: list[str] = []
        watch = PythonPass("watch", lambda compilation: names.append(compilation.program.name))
        return names, default_pipeline().then(watch.named("again")).passes[-1]

    names, last = passes()
    gc.collect()
    compile(lambda x: x + 1, pipeline=default_pipeline().then(last))(ONE)
    assert len(names) == 1

    def chosen(signature: Any) -> Pipeline:
        return default_pipeline().then(PythonPass("fresh", lambda compilation: None))

    assert compile(lambda x: x + 1, pipeline=chosen)(ONE) == 2.0


def test_dicts_of_a_compilation_stay_with_every_copy_of_it() -> None:
    def made() -> Any:
        compilation = capture(lambda x: x + 1, inputs={"x": message(())})
        compilation.workspace["note"] = 1
        return default_pipeline().run(compilation)

    compilation = made()
    gc.collect()
    assert compilation.workspace["note"] == 1
    compiled = compile(compilation)
    compiled(ONE)
    specialization = compiled.specializations[0]
    del compiled, compilation
    gc.collect()
    assert specialization.source.workspace["note"] == 1
    assert specialization.compilation.workspace["note"] == 1
