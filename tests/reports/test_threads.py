"""Reports about threads, restated for fhelium."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from fhelium.compile import Pipeline, PythonPass, compile, default_pipeline

THREADS = 8
ROUNDS = 200


def together(count: int, work: Any) -> list[Any]:
    """Runs work(0) ... work(count - 1) in threads that start at once."""
    barrier = threading.Barrier(count)

    def started(number: int) -> Any:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(started, range(count)))


def test_threads_share_one_engine_without_a_lock(bench: Any) -> None:
    """lattigo 226 and 213: panics or wrong values unless each thread had its own evaluator."""
    engine, keys = bench.engine, bench.keys

    def work(thread: int) -> Any:
        worst, parts = 0.0, []
        for turn in range(ROUNDS):
            x = np.random.default_rng((thread, turn)).uniform(-1, 1, bench.slots)
            plain = engine.encode(x)
            ciphertext = engine.encrypt(plain, keys.public)
            parts.append(ciphertext._residues()[1, 0, :4].tobytes())
            product = engine.multiply(ciphertext, ciphertext)
            turned = engine.rotate(engine.rescale(engine.relinearize(product)), 1 + turn % 4)
            found = engine.decrypt(turned, keys.secret)
            worst = max(worst, np.abs(found - np.roll(x**2, -(1 + turn % 4))).max())
            worst = max(worst, np.abs(engine.decode(plain) - x).max())
        return worst, parts

    results = together(THREADS, work)
    assert max(worst for worst, _ in results) <= 1e-6
    # No two ciphertexts share their random part, not even those of one thread.
    parts = [part for _, many in results for part in many]
    assert len(set(parts)) == THREADS * ROUNDS


def test_threads_encrypting_one_plaintext_share_no_randomness(bench: Any) -> None:
    """lattigo 226: two threads that drew the same mask would show the difference of messages."""
    plain = bench.engine.encode(0.25)

    def work(thread: int) -> list[bytes]:
        key = bench.keys.public if thread % 2 else bench.keys.secret
        return [bench.engine.encrypt(plain, key)._residues()[0, 0, :4].tobytes() for _ in range(50)]

    parts = [part for many in together(THREADS, work) for part in many]
    assert len(set(parts)) == THREADS * 50


def test_threads_make_keys_and_use_them_at_once(bench: Any) -> None:
    """lattigo 213: keys registered by one thread while others compute."""
    engine = bench.engine

    def work(thread: int) -> float:
        worst = 0.0
        for _ in range(5):
            keys = engine.keygen(rotations=[thread + 1])
            engine.use(keys.evaluation())
            x = bench.message(thread)
            turned = engine.encrypt(x, keys.public).rotate(thread + 1)
            found = engine.decrypt(turned, keys.secret)
            worst = max(worst, np.abs(found - np.roll(x, -(thread + 1))).max())
        return worst

    assert max(together(THREADS, work)) <= 1e-6


def test_threads_with_many_signatures_of_one_callable(bench: Any) -> None:
    """PyTorch 118260: settings leaked from one compile to another in a second thread."""
    weights = bench.message(9)
    f = compile(lambda x: (x * weights).rescale() + 1)
    inputs = [bench.fresh(batch, (batch,)) for batch in range(1, 21)]

    def work(thread: int) -> float:
        worst = 0.0
        order = inputs if thread == 0 else inputs[::-1]
        for x, cx in order:
            found = f(cx)
            assert found.batch_shape == cx.batch_shape
            worst = max(worst, np.abs(bench.decrypt(found) - (x * weights + 1)).max())
        return worst

    assert max(together(2, work)) <= 1e-6
    assert len(f.specializations) == 20
    assert f.misses + f.hits == 40
    shapes = {s.program.inputs["x"].shape for s in f.specializations}
    assert shapes == {(batch,) for batch in range(1, 21)}


def marking(name: str) -> Pipeline:
    def mark(compilation: Any) -> None:
        compilation.workspace["mark"] = name

    return default_pipeline().then(PythonPass(name, mark))


def test_threads_with_two_pipelines(bench: Any) -> None:
    """PyTorch 118260: each Program comes from its own pipeline."""
    first = compile(lambda x: x + 1, pipeline=marking("first"))
    second = compile(lambda x: x * 3, pipeline=marking("second"))
    plain = compile(lambda x: x - 1)

    def work(thread: int) -> None:
        for batch in range(1, 21):
            x = np.full((batch, 4), float(batch))
            function, exact = ((first, x + 1), (second, x * 3), (plain, x - 1))[thread % 3]
            np.testing.assert_array_equal(function(x), exact)

    together(6, work)
    for function, name in ((first, "first"), (second, "second"), (plain, None)):
        assert len(function.specializations) == 20
        for specialization in function.specializations:
            assert specialization.compilation.workspace.get("mark") == name
            names = [report.name for report in specialization.compilation.reports]
            assert ("first" in names, "second" in names) == (name == "first", name == "second")


def test_threads_that_miss_at_once_compile_once(bench: Any) -> None:
    """PyTorch 118260: and what leaks least is what is not compiled twice."""
    runs = []

    def body(x: Any) -> Any:
        runs.append(threading.get_ident())
        return x + 1

    f = compile(body)
    x, cx = bench.fresh()
    found = together(THREADS, lambda _: f(cx))
    assert len(runs) == 1
    assert len(f.specializations) == 1
    for ciphertext in found:
        assert np.abs(bench.decrypt(ciphertext) - (x + 1)).max() <= 1e-6


def test_captures_in_threads_know_nothing_of_each_other(bench: Any) -> None:
    """PyTorch 118260: a capture in one thread while another computes eagerly."""
    x, cx = bench.fresh()

    def work(thread: int) -> None:
        for turn in range(20):
            if thread % 2:
                f = compile(lambda c, k=turn: c * k + 1)
                found = f(cx)
            else:
                found = cx * turn + 1
            assert np.abs(bench.decrypt(found) - (x * turn + 1)).max() <= 1e-5

    together(4, work)


def test_clear_and_calls_race_safely(bench: Any) -> None:
    """PyTorch 118260: a table that is emptied under a call."""
    x, cx = bench.fresh()
    f = compile(lambda x: x + 1)

    def work(thread: int) -> None:
        for _ in range(50):
            if thread == 0:
                f.clear()
            else:
                assert np.abs(bench.decrypt(f(cx)) - (x + 1)).max() <= 1e-6

    together(4, work)
