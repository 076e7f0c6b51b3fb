"""What ours offers beyond the contract: guards, precision checks, sums over slots."""

from __future__ import annotations

import copy
import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fhelium as fh
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


def test_a_sum_of_a_list_begins_with_nothing(bench: Any) -> None:
    x, cx = bench.fresh()
    f = compile(lambda c: sum([c, c, c]))
    assert [operation.name for operation in f.prepare(cx).source.program.walk()] == ["he.add"] * 2
    assert np.abs(bench.decrypt(f(cx)) - 3 * x).max() < 1e-6


def test_methods_are_refused_where_they_are_written() -> None:
    with pytest.raises((TypeError, RuntimeError)) as caught:

        class Model:
            @compile
            def score(self, x: Any) -> Any:
                return x

    error = caught.value if isinstance(caught.value, TypeError) else caught.value.__cause__
    assert "is a method, which cannot be compiled" in str(error)

    class Namespace:
        score = compile(lambda x: x + 1)

    assert Namespace.score(np.ones(1)) == 2


def test_a_specialization_shows_itself(bench: Any, tmp_path: Path) -> None:
    weights = bench.message(1)
    f = compile(lambda x, k: (x * weights).rescale().rotate(k))
    _, cx = bench.fresh()
    specialization = f.prepare(cx, 1)
    specialization.to_svg(tmp_path / "program.svg")
    picture = (tmp_path / "program.svg").read_text()
    assert picture.startswith("<svg")
    assert "rotate" in picture
    assert "<svg" in specialization.source.program.to_svg()
    html = specialization._repr_html_()
    assert html.startswith("<table>")
    assert "ciphertext(level=4" in html
    assert "rotation 1" in html
    text = specialization.explain()
    for part in ("dead-values", "ckks.rotate", "rotation 1", "bytes", "prepared in"):
        assert part in text
    cost = specialization.cost
    assert cost["operations"]["ckks.rotate"] == 1
    assert cost["key_switches"] == 1
    assert set(cost["preparation_seconds"]) == {"capture", "passes", "link"}
    assert f.preparation_seconds > 0
    manifest = specialization.manifest
    assert manifest["materials"] == {"tensor0": "live"}
    assert manifest["bytes"]["peak"] > 0
    with pytest.raises(TypeError):
        manifest["bytes"] = None
    with pytest.raises(OSError, match="no-such-directory"):
        specialization.to_svg(tmp_path / "no-such-directory" / "program.svg")


def test_values_are_their_own_copies(bench: Any) -> None:
    _, cx = bench.fresh()
    assert copy.copy(cx) is cx
    assert copy.deepcopy([cx])[0] is cx
    for function in (np.asarray, np.array, lambda c: np.stack([c, c])):
        with pytest.raises(TypeError, match=r"cannot become an array|has no meaning"):
            function(cx)


def test_compiled_functions_say_how_to_pickle() -> None:
    f = compile(lambda x: x + 1)
    with pytest.raises(TypeError, match="pickle the Program"):
        pickle.dumps(f)
    program = f.prepare(np.ones(2)).source.program
    again = pickle.loads(pickle.dumps(program))
    assert again == program
    np.testing.assert_array_equal(compile(again)(np.ones(2)), [2.0, 2.0])
    parameters = fh.Parameters(depth=1, scale_bits=30)
    assert pickle.loads(pickle.dumps(parameters)) == parameters
    assert pickle.loads(pickle.dumps(parameters.scale)) == 2**30
