"""Sums, differences and multiples run as one, with the bits of their operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.compile import LinearFusion, OperationBackend, Program, compile, default_pipeline
from fhelium.errors import ArgumentError


def chain(x: Any, y: Any, p: Any) -> Any:
    return -(x + y - p) * 3 + y - x


def products(x: Any, y: Any, p: Any) -> Any:
    return x * p + y * p - (x + y) * p


def rows(x: Any, y: Any, p: Any) -> Any:
    total = x + y
    return total, x - y, total * p, p - x, (total - y).rotate(1)


def batched(x: Any, y: Any, p: Any) -> Any:
    several = x * np.linspace(-1, 1, 6).reshape(3, 2)
    return several + several, several - x * p, (several * 2).sum_batch(0)


def captured(x: Any, y: Any, p: Any) -> Any:
    total = x * 0.25
    for factor in (0.5, -0.5, 1.5):
        total = total + y * factor
    return total - x * np.arange(4.0)


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
        return
    # Files hold all that a value is.
    assert fh.dumps(found) == fh.dumps(expected)


FUNCTIONS = [chain, products, rows, batched, captured]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_compiled_chains_equal_eager_calls_bit_for_bit(
    bench: Any, function: Callable[..., Any]
) -> None:
    (_, x), (_, y) = bench.fresh(), bench.fresh(seed=2)
    p = bench.engine.encode(bench.message(3))
    compiled = compile(function)
    expected = function(x, y, p)
    for _ in range(3):
        assert_same(compiled(x, y, p), expected)
    (specialization,) = compiled.specializations
    names = [operation["operation"] for operation in specialization.manifest["operations"]]
    assert "rns.fused" in names
    assert not {"ckks.sub", "ckks.neg", "ckks.mul_integer"} & set(names)
    text = specialization.explain()
    assert "linear-fusion" in text
    assert "x rns.fused -> " in text
    assert Program.parse(specialization.program.to_text()) == specialization.program
    separate = compile(function, pipeline=default_pipeline().remove("linear-fusion"))
    assert_same(separate(x, y, p), expected)


def test_what_was_fused_and_why_is_reported(bench: Any) -> None:
    (_, x), (_, y) = bench.fresh(), bench.fresh(seed=2)
    p = bench.engine.encode(bench.message(3))
    specialization = compile(chain).prepare(x, y, p)
    (fused,) = specialization.manifest["operations"]
    assert fused["location"] is not None
    reports = {report.name: report for report in specialization.compilation.reports}
    ((subject, selected, candidates, details),) = reports["linear-fusion"].decisions
    assert "ckks.sub_plain" in subject
    assert (selected, candidates) == ("fused", ["fused", "separate"])
    assert "us separate; 3 operands" in details
    assert specialization.cost["operations"] == {"rns.fused": 1}
    assert specialization.cost["products"] > 0


def test_a_backends_own_implementation_is_not_fused_away(bench: Any) -> None:
    if bench.engine.device != "cpu":
        pytest.skip("a Python implementation computes on host values")
    calls = []

    def subtract(x: Any, y: Any) -> Any:
        calls.append(1)
        return x - y

    backend = OperationBackend().with_implementation("ckks.sub", "mine", subtract)
    (_, x), (_, y) = bench.fresh(), bench.fresh(seed=2)
    compiled = compile(lambda x, y: (x + y) - x - y, backend=backend)
    assert_same(compiled(x, y), (x + y) - x - y)
    assert len(calls) == 2


def test_the_number_of_operands_is_checked(bench: Any) -> None:
    (_, x), (_, y) = bench.fresh(), bench.fresh(seed=2)
    p = bench.engine.encode(bench.message(3))
    few = default_pipeline().replace("linear-fusion", LinearFusion(max_operands=2))
    compiled = compile(products, pipeline=few)
    assert_same(compiled(x, y, p), products(x, y, p))
    for wrong in (1, 65, -1):
        with pytest.raises(
            ArgumentError, match=f"max_operands must be from 2 to 64, found {wrong}"
        ):
            LinearFusion(max_operands=wrong)
