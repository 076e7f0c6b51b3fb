"""Reports about what is compiled again and what is not, restated for fhelium."""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.compile import compile
from fhelium.errors import SpecializationMiss


def error_of(bench: Any, ciphertext: Any, exact: Any) -> float:
    return float(np.abs(bench.decrypt(ciphertext) - exact).max())


class Counted:
    """Counts how often a function's body runs: once for each capture."""

    def __init__(self, function: Any) -> None:
        self.runs = 0

        @functools.wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.runs += 1
            return function(*args, **kwargs)

        self.body = counted


# --- helpers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["in a loop", "nested", "passed on", "chosen"])
def test_a_compiled_helper_is_captured_with_its_caller(bench: Any, shape: str) -> None:
    """JAX 7155 and 284: a jitted helper called ten times in a jitted function was traced anew."""
    runs = []

    @compile
    def helper(x: Any, k: int) -> Any:
        runs.append(k)
        return x * k

    def in_a_loop(x: Any) -> Any:
        total = x
        for _ in range(10):
            total = total + helper(x, 1)
        return total

    @compile
    def middle(x: Any) -> Any:
        return helper(x, 1) + helper(x, k=1)

    def nested(x: Any) -> Any:
        total = x
        for _ in range(5):
            total = total + middle(x)
        return total

    def passed_on(x: Any) -> Any:
        def repeat(function: Any, times: int) -> Any:
            total = x
            for _ in range(times):
                total = total + function(x, 1)
            return total

        return repeat(helper, 10)

    table = {"helper": helper}

    def chosen(x: Any) -> Any:
        return sum((table["helper"](x, 1) for _ in range(10)), x)

    outer = compile(
        {"in a loop": in_a_loop, "nested": nested, "passed on": passed_on, "chosen": chosen}[shape]
    )
    x, cx = bench.fresh()
    for _ in range(5):
        assert error_of(bench, outer(cx), 11 * x) <= 1e-5
    # The body became part of the outer function, at its one capture; the helper made nothing.
    assert len(runs) == 10
    assert (outer.misses, outer.hits) == (1, 4)
    assert (helper.misses, helper.hits, helper.specializations) == (0, 0, ())
    assert (middle.misses, middle.specializations) == (0, ())
    # Called by itself, it is a compiled function as before.
    assert error_of(bench, helper(cx, 1), x) <= 1e-6
    assert (helper.misses, len(runs)) == (1, 11)


def test_wrapping_a_compiled_function_again(bench: Any) -> None:
    """JAX 14183: a fresh partial or lambda around a jitted function compiled it again."""
    runs = []

    @compile
    def f(x: Any, k: int) -> Any:
        runs.append(k)
        return x * k

    x, cx = bench.fresh()
    for _ in range(50):
        for call in (functools.partial(f, k=2), lambda v: f(v, 2), functools.partial(f, cx, 2)):
            found = call() if getattr(call, "args", ()) else call(cx)
    assert error_of(bench, found, 2 * x) <= 1e-6
    assert runs == [2]
    assert (f.misses, f.hits) == (1, 149)


def test_a_partial_is_refused_with_what_to_write() -> None:
    """JAX 14183: at construction, before a cache can be missed on every call."""

    def f(k: int, x: Any) -> Any:
        return x * k

    with pytest.raises(TypeError, match=r"partial; .*def f\(x\): return g\(x, 2\)"):
        fh.jit(functools.partial(f, 2))


# --- scalars ---------------------------------------------------------------------------------


def scaled(x: Any, t: float = 1.0) -> Any:
    return x * t


def test_defaults_keywords_and_positions_are_one_argument(bench: Any) -> None:
    """PyTorch 117496: the first value of a float with a default was used for all."""
    f = compile(scaled)
    x, cx = bench.fresh()
    for call, factor in (
        (lambda: f(cx, 8.0), 8.0),
        (lambda: f(cx, t=4.0), 4.0),
        (lambda: f(cx, 2.0), 2.0),
        (lambda: f(cx), 1.0),
        (lambda: f(t=8.0, x=cx), 8.0),
        (lambda: f(cx, 8.0), 8.0),
        (lambda: f(x=cx), 1.0),
    ):
        assert error_of(bench, call(), x * factor) <= 1e-6
    assert len(f.specializations) == 4


def test_equal_scalars_of_other_types_are_others(bench: Any) -> None:
    """PyTorch 117496: 1, 1.0 and True are equal in Python and mean different things."""
    f = compile(scaled)
    x, cx = bench.fresh()
    scales = [f(cx, one).scale for one in (1, 1.0, True, 1 + 0j)]
    assert len(f.specializations) == 4
    # An integer multiplies exactly and leaves the scale; the others are encoded.
    assert (scales[0], scales[1]) == (2**40, 2**80)
    for number, count in ((0.0, 5), (-0.0, 6), (0, 7), (False, 8)):
        assert error_of(bench, f(cx, number), 0 * x) <= 1e-6
        assert len(f.specializations) == count
    text = compile(lambda x, name: x + (1 if name == "a" else 2))
    assert error_of(bench, text(cx, "a"), x + 1) <= 1e-6
    assert error_of(bench, text(cx, "b"), x + 2) <= 1e-6
    assert len(text.specializations) == 2


def test_a_changing_weight_as_an_array_is_captured_once(bench: Any) -> None:
    """PyTorch 149406: every float recompiled, even where dynamic was asked for."""
    counted = Counted(lambda x, t: x * t)
    f = compile(lambda x, t: counted.body(x, t))
    x, cx = bench.fresh()
    for weight in np.linspace(0, 1, 100):
        found = f(cx, np.asarray(weight))
    assert error_of(bench, found, x) <= 1e-6
    assert error_of(bench, f(cx, np.float64(0.25)), 0.25 * x) <= 1e-6
    assert (f.misses, f.hits, counted.runs) == (1, 100, 1)


def test_a_changing_weight_as_a_float_is_one_variant_each(bench: Any) -> None:
    """PyTorch 149406: said as a Python float it specializes, and the same value is a hit."""
    f = compile(scaled)
    _, cx = bench.fresh()
    for _ in range(2):
        for weight in range(100):
            f(cx, float(weight))
    assert (len(f.specializations), f.misses, f.hits) == (100, 100, 100)


def test_a_hit_costs_the_same_among_many_variants() -> None:
    """PyTorch 149406: guards that were tried one after the other."""
    f = compile(lambda x, k: x + k)
    array = np.ones(4)

    def seconds() -> float:
        times = []
        for _ in range(9):
            begin = time.process_time()
            for _ in range(300):
                f(array, 0.0)
            times.append(time.process_time() - begin)
        return min(times)

    f(array, 0.0)
    one = seconds()
    for number in range(100):
        f(array, float(number))
    assert len(f.specializations) == 100
    assert seconds() <= 2 * one


# --- what is read when -----------------------------------------------------------------------

FACTOR = 2.0
HELPERS: dict[str, Any] = {}


def by_global(x: Any) -> Any:
    return x * FACTOR


def by_name(x: Any, name: str) -> Any:
    return HELPERS[name](x)


def test_a_rebound_constant_is_read_again_after_clear(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Triton 7322: the old value of a module's constant, until a cache folder was deleted.

    Within a process, a Python number is part of the compiled function until `clear`.
    """
    f = compile(by_global)
    x, cx = bench.fresh()
    assert error_of(bench, f(cx), 2 * x) <= 1e-6
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert error_of(bench, f(cx), 2 * x) <= 1e-6
    assert error_of(bench, compile(by_global)(cx), 3 * x) <= 1e-6
    f.clear()
    assert f.specializations == ()
    assert error_of(bench, f(cx), 3 * x) <= 1e-6


def test_an_array_that_changes_is_read_at_each_call(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Triton 7322: an array is data, so its contents count at the call."""
    weights = bench.message(1)
    f = compile(lambda x: x * weights + weights)
    x, cx = bench.fresh()

    def exact() -> Any:
        return x * weights

    g = compile(lambda x: (x * weights).rescale())
    for change in range(4):
        weights[change] = 0.5 * change
        weights[-1] = -weights[-1]
        assert error_of(bench, g(cx), exact()) <= 1e-6
        assert error_of(bench, f(cx), exact() + weights) <= 1e-6
    assert (g.misses, f.misses) == (1, 1)


def test_a_function_chosen_by_name(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton 4051: the old body of a helper ran after it was fixed."""
    monkeypatch.setitem(HELPERS, "add", lambda x: x + 1)
    monkeypatch.setitem(HELPERS, "sub", lambda x: x + 1)
    f = compile(by_name)
    x, cx = bench.fresh()
    assert error_of(bench, f(cx, "add"), x + 1) <= 1e-6
    assert error_of(bench, f(cx, "sub"), x + 1) <= 1e-6
    assert len(f.specializations) == 2
    # The helper is fixed: callables made anew, or cleared, run the new body.
    monkeypatch.setitem(HELPERS, "sub", lambda x: x - 1)
    assert error_of(bench, compile(by_name)(cx, "sub"), x - 1) <= 1e-6
    f.clear()
    assert error_of(bench, f(cx, "sub"), x - 1) <= 1e-6
    assert error_of(bench, f(cx, "add"), x + 1) <= 1e-6
    assert len(f.specializations) == 2


def test_clear_frees_and_the_callable_still_works(bench: Any) -> None:
    """JAX 10828: no call that empties a callable's table; for one callable there is `clear`."""
    f = compile(scaled)
    x, cx = bench.fresh()
    for weight in (1.0, 2.0, 3.0):
        f(cx, weight)
    kept = f.specializations[0]
    f.clear()
    assert f.specializations == ()
    assert error_of(bench, f(cx, 2.0), 2 * x) <= 1e-6
    assert len(f.specializations) == 1
    # Who still holds a variant can still run it.
    assert error_of(bench, kept.executable.run(cx), x) <= 1e-6


# --- what a miss says ------------------------------------------------------------------------


def test_a_miss_says_which_argument_differs_and_how(bench: Any) -> None:
    """PyTorch 117496: no way to see why a call compiled again, or did not."""
    f = compile(scaled, on_miss="error")
    _, cx = bench.fresh()
    with pytest.raises(SpecializationMiss, match="nothing is prepared"):
        f(cx, 1.0)
    f.prepare(cx, 1.0)
    f(cx, 1.0)
    for arguments, words in (
        ((cx, 2.0), ["t", "2", "1"]),
        ((cx, 1), ["t", "int", "float"]),
        ((cx.drop_levels(1), 1.0), ["x", "level", "3", "4"]),
        ((cx * cx, 1.0), ["x", "parts", "3", "2"]),
        ((bench.encrypt([[0.5], [1.0]]), 1.0), ["x", "batch_shape", "(2,)", "()"]),
        ((cx, np.array(1.0)), ["t", "tensor", "float"]),
    ):
        with pytest.raises(SpecializationMiss) as caught:
            f(*arguments)
        text = str(caught.value)
        assert all(word in text for word in words), text
        assert f.explain(*arguments).startswith("miss")
    assert len(f.specializations) == 1
    assert f.explain(cx, 1.0).startswith("hit")
