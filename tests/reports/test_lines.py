"""Reports about messages without a line: functions that go wrong while they are captured.

TenSEAL 217 and 78: the operation, without the line of the function that asked for it.
"""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fhelium.compile import compile
from fhelium.errors import (
    ArgumentError,
    CaptureError,
    CompileInputError,
    FheliumError,
    LevelExhausted,
    LevelMismatch,
    MissingKey,
    PartsMismatch,
    ScaleMismatch,
)


# Functions that go wrong while they are captured, on the line after their first.
def adds_text(x: Any) -> Any:
    return x + "text"


def adds_nan(x: Any) -> Any:
    return x + float("nan")


def adds_too_many(x: Any) -> Any:
    return x + np.ones(513)


def adds_objects(x: Any) -> Any:
    return x + np.array([object()])


def compares(x: Any) -> Any:
    return x if x > 0 else -x


def is_equal(x: Any) -> Any:
    return x if x == x else -x


def asks_for_truth(x: Any) -> Any:
    return x if x else -x


def iterates(x: Any) -> Any:
    return [value for value in x]  # noqa: C416


def measures(x: Any) -> Any:
    return x * len(x)


def hashes(x: Any) -> Any:
    return {x: 1}


def converts(x: Any) -> Any:
    return float(x)


def makes_array(x: Any) -> Any:
    return np.asarray(x) + 1


def has_no_such_attribute(x: Any) -> Any:
    return x.spam()


def applies_exp(x: Any) -> Any:
    return np.exp(x)


def cubes(x: Any) -> Any:
    return x**3


def turns_by_half(x: Any) -> Any:
    return x.rotate(0.5)


def turns_without_key(x: Any) -> Any:
    return x.rotate(6)


def turns_three_parts(x: Any) -> Any:
    return (x * x).rotate(1)


def rescales_twice(x: Any) -> Any:
    return (x * 0.5).rescale().rescale()


def relinearizes_two_parts(x: Any) -> Any:
    return x.relinearize()


def drops_too_many(x: Any) -> Any:
    return x.drop_levels(9)


def adds_other_scale(x: Any) -> Any:
    return x * x + x


def adds_other_level(x: Any) -> Any:
    return x + x.drop_levels(1)


def multiplies_by_too_much(x: Any) -> Any:
    return x * 2**70


def divides_by_zero(x: Any) -> Any:
    return x * (1 / 0)


def returns_an_object(x: Any) -> Any:
    return object()


def returns_a_set(x: Any) -> Any:
    return {1, 2}


def assigns_into(x: Any) -> Any:
    x[0] = 1


def pickles(x: Any) -> Any:
    return pickle.dumps(x)


def asserts(x: Any) -> Any:
    assert x.level == 99, "the level is wrong"


def drops_below(x: Any) -> Any:
    return x.drop_levels(4) * x.drop_levels(4)


CAPTURED: list[tuple[Any, type[Exception], list[str]]] = [
    (adds_text, Exception, ["Ciphertext", "str"]),
    (adds_nan, FheliumError, ["finite"]),
    (adds_too_many, ArgumentError, ["513", "512"]),
    (adds_objects, Exception, ["object"]),
    (compares, CaptureError, ["comparing", "static"]),
    (is_equal, CaptureError, ["comparing", "static"]),
    (asks_for_truth, CaptureError, ["truth", "static"]),
    (iterates, CaptureError, ["iterating", "range"]),
    (measures, CaptureError, ["length", "batch_shape"]),
    (hashes, CaptureError, ["hashing"]),
    (converts, CaptureError, ["Python number", "static"]),
    (makes_array, CaptureError, ["array"]),
    (has_no_such_attribute, CaptureError, ["'spam'", "rotate"]),
    (applies_exp, CaptureError, ["numpy.exp", "there are"]),
    (cubes, FheliumError, ["3", "1 and 2"]),
    (turns_by_half, Exception, ["float", "integer"]),
    (turns_without_key, MissingKey, ["rotation 6", "[1, 2, 3, 4, 8, 509, 511]"]),
    (turns_three_parts, PartsMismatch, ["3 parts", "relinearize"]),
    (rescales_twice, ScaleMismatch, ["2^40", "2^20"]),
    (relinearizes_two_parts, PartsMismatch, ["2 parts", "3"]),
    (drops_too_many, LevelExhausted, ["9", "level 4"]),
    (adds_other_scale, ScaleMismatch, ["2^80 (level 4)", "2^40 (level 4)"]),
    (adds_other_level, LevelMismatch, ["level 4", "level 3", "drop_levels(1)"]),
    (multiplies_by_too_much, ArgumentError, [str(2**70), "2^63"]),
    (divides_by_zero, CaptureError, ["ZeroDivisionError", "division by zero"]),
    (returns_an_object, CaptureError, ["object", "returns"]),
    (returns_a_set, CaptureError, ["set", "returns"]),
    (assigns_into, CaptureError, ["assigning"]),
    (pickles, CaptureError, ["pickling"]),
    (asserts, CompileInputError, ["the level is wrong"]),
    (drops_below, LevelExhausted, ["level 0 of 4", "depth=5"]),
]


@pytest.mark.parametrize(
    ("function", "expected", "words"), CAPTURED, ids=lambda v: getattr(v, "__name__", "")
)
def test_a_wrong_line_of_a_compiled_function_is_named(
    t: SimpleNamespace, check_text: Any, function: Any, expected: type[Exception], words: list[str]
) -> None:
    """TenSEAL 217: the operation without the line that asked for it."""
    compiled = compile(function)
    for _ in range(2):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            compiled(t.x)
        assert isinstance(caught.value, expected), repr(caught.value)
        check_text(caught.value, words)
        # What is wrong about the value returned is said of the function itself.
        line = function.__code__.co_firstlineno + (not function.__name__.startswith("returns"))
        assert f"{__file__}:{line} in {function.__name__}" in str(caught.value)
    # Nothing is left half made; that a constant cannot be encoded shows when it is.
    assert compiled.specializations == () or function is adds_nan
