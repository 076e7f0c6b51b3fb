"""One call that clears the caches of every compiled function, and what it leaves alone."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.compile import OperationBackend, cache_directory, clear_caches, compile
from fhelium.errors import ArgumentError

ONE = np.asarray(1.0)


def test_clear_caches_clears_every_callable(bench: Any) -> None:
    first, second = compile(lambda x: x + 1), compile(lambda x: x * 2)
    copy = first.with_backend(OperationBackend())
    for callable in (first, second, copy):
        callable(ONE)
    held = first.specializations[0]
    clear_caches()
    for callable in (first, second, copy):
        assert callable.specializations == ()
    # What somebody holds still runs, and the counters go on.
    assert held.executable.run(ONE) == 2.0
    assert first.misses == 1
    assert first(ONE) == 2.0
    assert first.misses == 2


def test_clear_caches_notices_changed_constants() -> None:
    scope = {"rate": 2.0}
    compiled = compile(eval("lambda x: x * rate", scope))
    assert compiled(ONE) == 2.0
    scope["rate"] = 3.0
    assert compiled(ONE) == 2.0
    clear_caches()
    assert compiled(ONE) == 3.0


def test_clear_caches_keeps_nothing_alive() -> None:
    compiled = compile(lambda x: x + 1)
    gone = weakref.ref(compiled)
    del compiled
    gc.collect()
    assert gone() is None
    clear_caches()


def test_clear_caches_leaves_keys_and_the_directory_alone(bench: Any, tmp_path: Path) -> None:
    compiled = compile(lambda x: x.rotate(1), cache_directory=tmp_path)
    _, x = bench.fresh(1)
    compiled(x)
    clear_caches()
    compiled(x)
    assert (compiled.disk_misses, compiled.disk_hits) == (1, 1)


def test_clear_caches_races_with_calls_and_new_functions() -> None:
    """Threads make, call and clear at once: every result is right, and nothing raises."""
    wrong: list[object] = []
    stop = threading.Event()

    def work(shift: float) -> None:
        try:
            while not stop.is_set():
                fresh = compile(lambda x: x + shift)
                if fresh(ONE) != 1 + shift:
                    wrong.append(shift)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(float(shift),)) for shift in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        clear_caches()
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_directory_has_a_bound(tmp_path: Path) -> None:
    directory = tmp_path / "compiled"
    try:
        cache_directory(directory, max_bytes=1)
        for factor in (2.0, 3.0, 4.0):
            assert compile(lambda x, factor=factor: x * factor)(ONE) == factor
        assert len(list(directory.iterdir())) == 1, "the newest stays"
        cache_directory(max_bytes=1 << 20)
        assert cache_directory() == directory
        for factor in (2.0, 3.0):
            assert compile(lambda x, factor=factor: x * factor)(ONE) == factor
        assert len(list(directory.iterdir())) == 3
    finally:
        cache_directory(False, max_bytes=256 << 20)


@pytest.mark.parametrize("wrong", [-1, 2**64])
def test_a_bound_out_of_range_changes_nothing(tmp_path: Path, wrong: int) -> None:
    before = cache_directory()
    with pytest.raises(ArgumentError, match=f"max_bytes.*{wrong}"):
        cache_directory(tmp_path, max_bytes=wrong)
    with pytest.raises(TypeError, match="max_bytes must be an integer, found str"):
        cache_directory(tmp_path, max_bytes="1")  # type: ignore[arg-type]
    assert cache_directory() == before
    assert fh.compile.cache_directory is cache_directory
