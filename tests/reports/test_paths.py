"""Reports about values that reach a level by different paths, restated for fhelium.

Nominally equal scales add and multiply; the bound on the error is that of the parameters' noise
model, which counts the relative difference of such scales.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fhelium as fh
from fhelium.compile import compile


def error_of(bench: Any, ciphertext: Any, exact: Any) -> float:
    return float(np.abs(bench.decrypt(ciphertext) - exact).max())


def square(x: Any) -> Any:
    return (x * x).relinearize().rescale()


def ways(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    """The same function run eagerly and compiled."""
    return [function, compile(function)]


class Value(NamedTuple):
    """A message, its ciphertext, and the bound that the parameters give on the error."""

    exact: Any
    ciphertext: fh.Ciphertext
    bound: fh.NoiseEstimate


def fresh(bench: Any, seed: int) -> Value:
    return Value(*bench.fresh(seed), bench.noise.encrypt(bench.noise.encode(1.0)))


def add(bench: Any, x: Value, y: Value) -> Value:
    return Value(x.exact + y.exact, x.ciphertext + y.ciphertext, bench.noise.add(x.bound, y.bound))


def multiply(bench: Any, x: Value, y: Value) -> Value:
    noise = bench.noise
    return Value(
        x.exact * y.exact,
        (x.ciphertext * y.ciphertext).relinearize().rescale(),
        noise.rescale(noise.key_switch(noise.multiply(x.bound, y.bound))),
    )


def scaled(bench: Any, x: Value, factor: Any) -> Value:
    noise = bench.noise
    plain = noise.encode(float(np.abs(factor).max()), level=x.bound.level)
    return Value(
        x.exact * factor,
        (x.ciphertext * factor).rescale(),
        noise.rescale(noise.multiply(x.bound, plain)),
    )


def shifted(bench: Any, x: Value, number: float) -> Value:
    noise = bench.noise
    plain = noise.encode(abs(number), level=x.bound.level, scale=x.bound.scale)
    return Value(x.exact + number, x.ciphertext + number, noise.add(x.bound, plain))


def dropped(bench: Any, x: Value, count: int) -> Value:
    return Value(x.exact, x.ciphertext.drop_levels(count), bench.noise.drop_levels(x.bound, count))


def lower(bench: Any, x: Value, how: str) -> Value:
    """The value one level lower; each way ends at another exact scale, nominally the same."""
    if how == "square":
        return multiply(bench, x, x)
    if how == "drop":
        return dropped(bench, x, 1)
    if how == "integer":
        twice = bench.noise.multiply_integer(x.bound, 2)
        return scaled(bench, Value(x.exact * 2, x.ciphertext * 2, twice), 0.5)
    return scaled(bench, x, 0.75 if how == "scalar" else bench.message(99))


def check(bench: Any, x: Value) -> None:
    assert x.ciphertext.scale == x.bound.scale
    assert error_of(bench, x.ciphertext, x.exact) <= bench.noise.decode(x.bound)


@pytest.mark.parametrize("run", [0, 1], ids=["eager", "compiled"])
def test_a_level_reached_by_two_paths(usual: Any, run: int) -> None:
    """phantom-fhe 5, SEAL 659, SEAL-Python 98: "scale mismatch" though both scales print alike."""
    x, y = fresh(usual, 0), fresh(usual, 1)
    third = multiply(usual, multiply(usual, x, x), dropped(usual, x, 1))
    total = add(usual, third, dropped(usual, y, 2))
    assert error_of(usual, third.ciphertext, third.exact) <= 1e-6
    check(usual, total)

    def cube(x: Any, y: Any) -> Any:
        product = (square(x) * x.drop_levels(1)).relinearize().rescale()
        return product, product + y.drop_levels(2)

    for found, expected in zip(
        ways(cube)[run](x.ciphertext, y.ciphertext), (third, total), strict=True
    ):
        np.testing.assert_array_equal(found._residues(), expected.ciphertext._residues())


PATHS = st.lists(
    st.tuples(*[st.sampled_from(["square", "array", "scalar", "integer", "drop"])] * 2),
    min_size=1,
    max_size=5,
)


@settings(max_examples=20)
@given(paths=PATHS, seed=st.integers(0, 2**32 - 1))
def test_any_two_paths_to_a_level_meet(usual: Any, paths: list[tuple[str, str]], seed: int) -> None:
    """phantom-fhe 5, SEAL 659, SEAL-Python 98: the kind of fault, over random pairs of paths."""
    x, y = fresh(usual, seed), fresh(usual, seed + 1)
    for left, right in paths:
        x, y = lower(usual, x, left), lower(usual, y, right)
    assert x.ciphertext.level == y.ciphertext.level == 7 - len(paths)
    for value in (x, y, add(usual, x, y), multiply(usual, x, y)):
        check(usual, value)


A, B = 13 / 16, -10 / 16


def chain_with_input(x: Any, places: set[int]) -> Any:
    """a (a (b (x + 3) - 13)) + x, with x added after some of the products as well."""
    y = ((x + 3) * B).rescale() - 13
    for place in (1, 2, 3):
        if place > 1:
            y = (y * A).rescale()
        if place in places:
            y = y + x.drop_levels(place)
    return y


@pytest.mark.parametrize("places", [{3}, {1}, {2}, {1, 2}, {1, 2, 3}, set()], ids=str)
def test_the_input_added_back(usual: Any, places: set[int]) -> None:
    """concrete 1309: adding the input to the end of a chain of products made it wrong.

    A sum of a product and the input is one of nominally equal scales, so its error grows by
    their relative difference times the message, which is up to 18 here; `NoiseModel.add` says so.
    """
    x = fresh(usual, 0)
    y = shifted(usual, scaled(usual, shifted(usual, x, 3), B), -13)
    for place in (1, 2, 3):
        y = scaled(usual, y, A) if place > 1 else y
        y = add(usual, y, dropped(usual, x, place)) if place in places else y
    check(usual, y)
    if places <= {3}:
        assert error_of(usual, y.ciphertext, y.exact) <= 1e-6
    for run in ways(lambda x: chain_with_input(x, places)):
        found = run(x.ciphertext)
        np.testing.assert_array_equal(found._residues(), y.ciphertext._residues())
