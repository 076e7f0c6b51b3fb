"""Calls, preparations, clears and relinks of one compiled function from many threads at once."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from fhelium.compile import OperationBackend, compile
from fhelium.errors import CaptureError

SECONDS = 0.5
THREADS = 8


def race(work: Any) -> None:
    """Runs `work(random generator)` over and over in several threads for a while."""
    barrier, end = threading.Barrier(THREADS), time.monotonic() + SECONDS

    def loop(seed: int) -> int:
        generator, rounds = random.Random(seed), 0
        barrier.wait()
        while time.monotonic() < end:
            work(generator)
            rounds += 1
        return rounds

    with ThreadPoolExecutor(THREADS) as pool:
        assert min(pool.map(loop, range(THREADS))) > 0


@pytest.mark.parametrize("limit", [None, 3])
def test_calls_race_with_clear_and_prepare(limit: int | None) -> None:
    f = compile(lambda x, k: x * k + x.shape[0], max_specializations=limit)
    f(np.ones(1), 1)
    f.clear()

    def work(generator: random.Random) -> None:
        size, factor = generator.randint(1, 6), generator.randint(1, 3)
        x = np.full(size, 2.0)
        action = generator.random()
        if action < 0.05:
            f.clear()
        elif action < 0.15:
            shape = f.prepare(x, factor).signature.argument("x").get("shape")
            assert shape == f"({size},)"
        elif action < 0.2:
            assert len(f.specializations) <= (limit or 18)
            f.explain(x, factor)
        elif action < 0.25:
            np.testing.assert_array_equal(
                f.with_backend(OperationBackend())(x, factor), 2.0 * factor + size
            )
        else:
            np.testing.assert_array_equal(f(x, factor), np.full(size, 2.0 * factor + size))

    race(work)
    assert f.hits > 0


def test_encrypted_calls_race_with_new_weights(bench: Any) -> None:
    """Live weights change under the calls; each call sees one state of them or another.

    numpy writes arrays of up to 500 elements without letting another thread in between; in larger
    ones a reader may meet a half-written state, in numpy's own functions too.
    """
    count = 400
    weights = np.ones(count)
    f = compile(lambda x: (x * weights).rescale())
    x, cx = bench.fresh()
    f(cx)
    lock = threading.Lock()

    def work(generator: random.Random) -> None:
        if generator.random() < 0.2:
            with lock:
                weights[:] = generator.choice([1.0, 2.0, 3.0])
            return
        found = bench.decrypt(f(cx))[:count]
        large = np.abs(x[:count]) > 0.1
        factors = found[large] / x[:count][large]
        assert np.abs(factors - np.round(factors.mean())).max() < 1e-3

    race(work)
    assert f.misses == 1


def test_a_failed_preparation_wakes_those_who_wait() -> None:
    attempts: list[int] = []

    @compile
    def f(x: Any) -> Any:
        attempts.append(1)
        time.sleep(0.02)
        if len(attempts) < 4:
            raise ValueError("not yet")
        return x + 1

    barrier = threading.Barrier(THREADS)

    def call(_: int) -> bool:
        barrier.wait()
        with suppress(CaptureError):
            return bool((f(np.ones(2)) == 2).all())
        return False

    with ThreadPoolExecutor(THREADS) as pool:
        outcomes = list(pool.map(call, range(THREADS)))
    assert outcomes.count(False) == 3
    assert outcomes.count(True) == THREADS - 3
    assert len(f.specializations) == 1
