"""What ours offers beyond the contract: guards, precision checks, sums over slots."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from fhelium.compile import PrecisionReport, compile
from fhelium.errors import ArgumentError, SpecializationMiss

RATE = 2.0
TABLE = {"steps": [1, 2]}


def helper(x: Any, shift: float = 1.0) -> Any:
    return x + shift


def uses_constants(x: Any) -> Any:
    for step in TABLE["steps"]:
        x = np.roll(x, step)
    return helper(x * RATE)


def test_guards_notice_changed_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    local = 1.0

    def outer(x: Any) -> Any:
        return uses_constants(x) + local

    guarded, plain = compile(outer, guard_constants=True), compile(outer)
    x = np.arange(4.0)

    def both() -> tuple[Any, Any]:
        return guarded(x), plain(x)

    before = outer(x)
    for found in both():
        np.testing.assert_array_equal(found, before)
    both()
    assert (guarded.hits, guarded.misses) == (1, 1)
    changes = [
        lambda: monkeypatch.setitem(globals(), "RATE", 3.0),
        lambda: monkeypatch.setitem(TABLE, "steps", [3]),
        lambda: TABLE["steps"].append(1),
        lambda: monkeypatch.setattr(helper, "__defaults__", (5.0,)),
    ]
    for number, change in enumerate(changes, 2):
        change()
        found, stale = both()
        np.testing.assert_array_equal(found, outer(x))
        np.testing.assert_array_equal(stale, before)
        assert guarded.misses == number
    local = 7.0
    np.testing.assert_array_equal(guarded(x), outer(x))
    np.testing.assert_array_equal(guarded(x), outer(x))
    assert len(guarded.specializations) == 1

    strict = compile(uses_constants, guard_constants=True, on_miss="error")
    strict.prepare(x)
    strict(x)
    monkeypatch.setitem(globals(), "RATE", 4.0)
    with pytest.raises(SpecializationMiss):
        strict(x)


def test_check_names_the_line_where_precision_is_lost(bench: Any) -> None:
    weights = bench.message(3)

    def f(x: Any, k: int) -> Any:
        y = (x * weights).rescale() + 0.25
        y = y.rotate(k).conjugate() - (-x).drop_levels(1)
        z = (y * y).relinearize().rescale()
        tiny = z * np.full(4, 1e-9)
        return tiny * 3

    compiled = compile(f)
    _, cx = bench.fresh()
    report = compiled.check(cx, 1, secret=bench.keys.secret, atol=1e-5)
    assert isinstance(report, PrecisionReport)
    assert report.passed
    assert report.first is None
    assert 0 < report.largest_error < 1e-5
    assert [row.operation for row in report.rows][:3] == ["he.mul", "he.rescale", "he.add"]

    def loses(x: Any) -> Any:
        y = x + 1
        y = y * bench.engine.encode(0.3, scale=2**2)  # lost
        return y + y

    lines, first = inspect.getsourcelines(loses)
    line = first + next(place for place, text in enumerate(lines) if "# lost" in text)
    report = compile(loses).check(cx, secret=bench.keys.secret, atol=1e-5)
    assert not report.passed
    assert report.first.operation == "he.mul"
    assert report.first.location == (__file__, line, "loses")
    assert f"{__file__}:{line} in loses: he.mul" in str(report)
    with pytest.raises(ArgumentError, match="no argument of"):
        compile(lambda x: x).check(np.ones(1), secret=bench.keys.secret)


def test_sums_over_slots(make_bench: Any) -> None:
    bench = make_bench(
        [2**k for k in range(9)], depth=1, scale_bits=40, log_n=10, allow_insecure=True
    )
    x, cx = bench.fresh()
    for count in (1, 4, 16, 512, None):
        exact = sum(np.roll(x, -shift) for shift in range(count or 512))
        for found in (
            cx.sum_slots(count),
            bench.engine.sum_slots(cx, count),
            compile(lambda c, n: c.sum_slots(n))(cx, count),
        ):
            assert np.abs(bench.decrypt(found) - exact).max() < 1e-4
    for refused in (0, 3, 1024, -2):
        with pytest.raises(ArgumentError, match=f"power of two from 1 to the 512 slots.*{refused}"):
            cx.sum_slots(refused)
