"""Arguments of the wrong kind are refused where they are given, and the message names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.compile import (
    Pipeline,
    Reuse,
    RotationHoisting,
    cache_directory,
    compile,
    default_pipeline,
    message,
)
from fhelium.errors import ArgumentError, ParameterError

Refusal = tuple[Callable[[Any, Any], Any], type[Exception], str]

ENGINE: list[Refusal] = [
    (lambda e, x: e.keygen(rotations=1), TypeError, "rotation steps come in a list.*found int"),
    (lambda e, x: e.keygen(rotations=[2**70]), ArgumentError, "a rotation step must be from -2"),
    (lambda e, x: e.rotate_many(x, 1), TypeError, "rotate_many: steps come in a list"),
    (lambda e, x: x.rotate(2**80), ArgumentError, "rotate: step must be from -2"),
    (lambda e, x: e.stack(3), TypeError, "stack: .*come in a list, found int"),
    (lambda e, x: e.encode([[1], [1, 2]]), ArgumentError, "values must form an array"),
    (lambda e, x: e.decode(x), TypeError, "expected a Plaintext, found Ciphertext.*decrypt"),
    (lambda e, x: x / 2, TypeError, "cannot be divided: multiply by the inverse"),
    (lambda e, x: x[np.array([True])], ArgumentError, "integers, slices.*found ndarray"),
    (lambda e, x: fh.Engine(e.parameters, seed=-1), ArgumentError, "seed must be from 0"),
    (lambda e, x: fh.Engine(e.parameters, threads=1025), ParameterError, "1..=1024"),
]


@pytest.mark.parametrize(("wrong", "error", "text"), ENGINE)
def test_engines_and_values_name_what_is_wrong(
    bench: Any, wrong: Callable[[Any, Any], Any], error: type[Exception], text: str
) -> None:
    _, x = bench.fresh(1, batch=(2,))
    with pytest.raises(error, match=text):
        wrong(bench.engine, x)


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"max_specializations": "1"}, "max_specializations must be an integer, found str"),
    ({"max_specializations": 1.5}, "max_specializations must be an integer, found float"),
    ({"backend": "cpu"}, "backend must be an OperationBackend, found str"),
    ({"pipeline": "fast"}, "pipeline must be a Pipeline.*found str"),
    ({"pipeline": [Reuse()]}, "pipeline must be a Pipeline.*found list"),
    ({"workspace": 3}, "workspace must be a dict, found int"),
    ({"inputs": 3}, "inputs must be a dict, found int"),
    ({"material_names": [1]}, "material_names must be a dict, found list"),
]


@pytest.mark.parametrize(("options", "text"), OPTIONS)
def test_options_are_checked_when_they_are_given(options: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        compile(lambda x: x, **options)


def test_places_paths_and_shapes_are_named() -> None:
    with pytest.raises(ArgumentError, match=r"position -1 is outside.*count from 0"):
        default_pipeline().remove(-1)
    with pytest.raises(ArgumentError, match="max_group_size must be at least 2, found -1"):
        RotationHoisting(max_group_size=-1)
    with pytest.raises(ArgumentError, match=r"names are unique: give one of the two another name$"):
        Pipeline(Reuse(), Reuse())
    for path in (3, True):
        with pytest.raises(TypeError, match="path must be a path, or False"):
            cache_directory(path)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="shape must be a tuple of extents, found int"):
        message(4)  # type: ignore[arg-type]


@pytest.mark.parametrize("atol", ["small", -1.0, float("nan")])
def test_a_check_needs_a_tolerance(bench: Any, atol: Any) -> None:
    _, x = bench.fresh(2)
    with pytest.raises(ArgumentError, match="atol must be a number of 0 or more"):
        compile(lambda x: x + 1).check(x, secret=bench.keys.secret, atol=atol)
