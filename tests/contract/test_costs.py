"""What a specialization says of its work and its time.

How near predictions come to measured times is a benchmark's matter (benches/predictions.py):
here is what holds on any machine, however busy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.compile import CompiledCallable, OperationBackend, compile

COUNTS = ("transforms", "products", "sums", "conversions", "key_products", "key_switches")


def prepared(function: Any, *arguments: Any) -> Any:
    return compile(function).prepare(*arguments)


def predicted(function: Any, *arguments: Any) -> float:
    seconds: float = prepared(function, *arguments).cost["predicted_seconds"]
    return seconds


def product(x: Any) -> Any:
    return (x * x).relinearize().rescale()


def test_a_prediction_is_there_before_the_first_run(bench: Any) -> None:
    _, x = bench.fresh(1)
    compiled = compile(product)
    cost = compiled.prepare(x).cost
    assert cost["runs"] == 0
    assert cost["fastest_seconds"] is None
    assert 0 < cost["predicted_seconds"] < 1
    for _ in range(3):
        compiled(x)
    after = compiled.prepare(x).cost
    # The machine is measured once: later predictions are the same number.
    assert after["predicted_seconds"] == cost["predicted_seconds"]
    assert after["runs"] == 3
    assert 0 < 3 * after["fastest_seconds"] <= after["seconds"]


def test_predictions_add_up_and_grow_with_the_work(bench: Any) -> None:
    _, x = bench.fresh(2)
    alone = [predicted(lambda x, step=step: x.rotate(step), x) for step in (1, 2)]
    # One rotation after the other; of the same value they would share the decomposition.
    chained = predicted(lambda x: x.rotate(1).rotate(2), x)
    longer = predicted(lambda x: x.rotate(1).rotate(2).rotate(1), x)
    # Each operation adds its own time, beside what a run takes to begin on a GPU.
    assert longer - chained == pytest.approx(chained - alone[0], rel=1e-3)
    assert max(alone) < chained <= sum(alone) * (1 + 1e-4)
    hoisted = predicted(lambda x: (x.rotate(1), x.rotate(2)), x)
    assert max(alone) < hoisted < chained
    assert predicted(lambda x: x + x, x) < predicted(product, x)
    assert predicted(product, x.drop_levels(2)) < predicted(product, x)
    _, batch = bench.fresh(3, batch=(3,))
    # A GPU launches for the batch at once.
    assert alone[0] < predicted(lambda x: x.rotate(1), batch) <= 3 * alone[0] * (1 + 1e-4)


def test_counts_are_those_of_the_work(bench: Any) -> None:
    _, x = bench.fresh(4)
    cost = prepared(lambda x: (x + x) * 3, x).cost
    limbs = 2 * (x.level + 1)
    assert {name: cost[name] for name in COUNTS} == {
        "transforms": 0,
        "products": limbs,
        "sums": limbs,
        "conversions": 0,
        "key_products": 0,
        "key_switches": 0,
    }
    rotation = prepared(lambda x: x.rotate(1), x).cost
    assert all(rotation[name] > 0 for name in COUNTS)


def test_what_is_kept_between_calls_is_not_predicted(bench: Any) -> None:
    """Encodings of constants are made by the first run alone."""
    _, x = bench.fresh(5)
    weights = bench.message(6)
    plaintext = bench.engine.encode(weights)
    captured = predicted(lambda x: x * weights, x)
    given = predicted(lambda x, p: x * p, x, plaintext)
    encoded = predicted(lambda x, w: x * w, x, weights)
    assert captured == pytest.approx(given, rel=1e-4)
    assert given < encoded


def test_other_implementations_have_no_prediction() -> None:
    """What computes on the host in another way takes a time that nobody measured."""
    engine = fh.Engine(fh.Parameters(depth=1, scale_bits=30, log_n=10, allow_insecure=True))
    x = engine.encrypt(1.0, engine.keygen().public)
    backend = OperationBackend().with_implementation("ckks.neg", "mine", lambda x: -x)
    callable: CompiledCallable[..., Any] = compile(lambda x: -x, backend=backend)
    specialization = callable.prepare(x)
    assert specialization.cost["predicted_seconds"] is None
    assert "no prediction" in specialization.explain()
    assert "not known" in specialization._repr_html_()


def test_clear_computations_need_no_engine_to_be_predicted() -> None:
    assert predicted(lambda x: np.sin(x) + 1, np.arange(4.0)) == 0.0


def test_explain_and_the_table_show_predicted_beside_measured(bench: Any) -> None:
    _, x = bench.fresh(8)
    compiled = compile(product)
    before = compiled.prepare(x)
    assert "predicted" in before.explain()
    assert "measured" not in before.explain()
    assert "predicted time" in before._repr_html_()
    assert "measured time" not in before._repr_html_()
    compiled(x)
    after = compiled.prepare(x)
    predicted_at = after.explain().index("predicted ")
    assert after.explain().index("measured ") > predicted_at
    assert "measured time" in after._repr_html_()


def test_more_threads_are_measured_for_themselves() -> None:
    """Guards that a prediction is of the engine's own parameters and threads."""
    for threads in (1, 2):
        engine = fh.Engine(
            fh.Parameters(depth=2, scale_bits=30, log_n=10, allow_insecure=True), threads=threads
        )
        keys = engine.keygen()
        x = engine.encrypt(1.0, keys.public)
        assert predicted(lambda x: x + x, x) > 0
