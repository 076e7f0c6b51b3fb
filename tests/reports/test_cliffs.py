"""Reports about costs that grow faster than the program, restated for fhelium."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fhelium.compile import compile


def multiply_add(count: int, x: Any) -> Any:
    """`count` multiplications and additions of clear integers, one after the other."""
    total = x
    for place in range(count // 2):
        total = total * (place % 3 - 1) + x
    return total


def array_multiply_add(count: int, x: Any) -> Any:
    """The same with arrays: each is encoded for its use."""
    weights = np.ones(8)
    total = x * weights
    for _ in range(count // 2):
        total = total + x * weights
    return total


def constants(count: int, x: Any) -> Any:
    """A different constant in each addition."""
    total = x
    for place in range(count):
        total = total + float(place)
    return total


def turns(count: int, x: Any) -> Any:
    """A chain of rotations and additions."""
    total = x
    for place in range(count // 2):
        total = total.rotate(1 + place % 2) + x
    return total


def fan(count: int, x: Any) -> Any:
    """Rotations of one value, which hoisting groups."""
    total = x
    for place in range(count // 2):
        total = total + x.rotate(1 + place % 4)
    return total


def dead(count: int, x: Any) -> Any:
    """Values of which none is used."""
    for place in range(count):
        x + float(place)
    return x


SHAPES: list[Callable[[int, Any], Any]] = [
    multiply_add,
    array_multiply_add,
    constants,
    turns,
    fan,
    dead,
]
SIZES = (500, 1000, 2000, 4000)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_compile_time_grows_with_the_program(bench: Any, shape: Any) -> None:
    """EVA 8: compile time grew with the square of the program, to 1344 s for 8000 products.

    The processor's time is measured, the least of several, so that a busy machine changes little;
    over a factor of eight a square law would show as 64, against the 17.6 of 2.6 per doubling.
    """
    _, cx = bench.fresh()
    seconds = {}
    for size in SIZES:
        runs = []
        for _ in range(3):
            begin = time.process_time()
            compile(lambda x: shape(size, x)).prepare(cx)  # noqa: B023
            runs.append(time.process_time() - begin)
        seconds[size] = min(runs)
    assert seconds[4000] <= 10
    assert seconds[4000] <= 2.6**3 * seconds[500]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_the_compiled_program_is_no_larger_than_what_was_written(bench: Any, shape: Any) -> None:
    """EVA 8: counted, not timed: operations and what passes report, for each size."""
    _, cx = bench.fresh()
    sizes = []
    for size in (500, 1000, 2000):
        specialization = compile(lambda x: shape(size, x)).prepare(cx)  # noqa: B023
        source, program = specialization.source.program, specialization.program
        assert len(program) <= len(source) + 4
        sizes.append((len(source), len(program), specialization.cost["key_switches"]))
    (first, second, third) = sizes
    for small, middle, large in zip(first, second, third, strict=True):
        # Each measure grows by the same amount from 500 to 1000 and, twice, to 2000.
        assert large - middle == pytest.approx(2 * (middle - small), abs=8)


def test_a_long_compiled_program_is_right(bench: Any) -> None:
    """EVA 8: large programs are compiled, and then run."""
    x, cx = bench.fresh()
    found = compile(lambda x: turns(400, x) * 1 + constants(100, x) * 1)(cx)
    exact = turns(400, Rolled(x)).array + x + sum(map(float, range(100)))
    assert np.abs(bench.decrypt(found) - exact).max() <= 1e-3


class Rolled:
    """A message that is turned like a ciphertext."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def rotate(self, step: int) -> Rolled:
        return Rolled(np.roll(self.array, -step))

    def __add__(self, other: Rolled) -> Rolled:
        return Rolled(self.array + other.array)
