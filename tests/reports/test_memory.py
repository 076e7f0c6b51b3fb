"""Reports about memory that grows, restated for fhelium."""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.compile import compile

MB = 2**20


def resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def product(x: Any) -> Any:
    return (x * x).relinearize().rescale()


def everything(x: Any) -> Any:
    turned = [x.rotate(1), x.rotate(2), x.rotate(0)]
    return (product(x) * 0.5).rescale(), turned, x.conjugate() + 1.0, x.drop_levels(2)


@pytest.mark.slow
@pytest.mark.parametrize("function", [product, everything])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_memory_is_flat_over_thousands_of_calls(bench: Any, function: Any, compiled: bool) -> None:
    """TenSEAL 317, HElib 111 and 252: the same product in a loop took more and more memory."""
    _, cx = bench.fresh()
    run = compile(function) if compiled else function
    for _ in range(200):
        run(cx)
    before = resident_bytes()
    for _ in range(2000):
        run(cx)
    # A ciphertext here has 80 kB: what each call kept would be more than a hundred megabytes.
    assert resident_bytes() - before <= 8 * MB


def test_memory_is_flat_over_encryptions_and_failures(bench: Any) -> None:
    """TenSEAL 317: the same for what makes values, and for calls that raise."""

    def turn() -> None:
        ciphertext = bench.encrypt(bench.message())
        bench.decrypt(ciphertext)
        bench.engine.decode(bench.engine.encode(0.5))
        with pytest.raises(fh.errors.ScaleMismatch):
            ciphertext + ciphertext * 0.5
        with pytest.raises(fh.errors.LevelMismatch):
            compile(lambda x: x + x.drop_levels(1))(ciphertext)

    for _ in range(50):
        turn()
    before = resident_bytes()
    for _ in range(300):
        turn()
    assert resident_bytes() - before <= 8 * MB


@pytest.mark.slow
def test_functions_made_in_a_loop_are_freed(bench: Any) -> None:
    """numba 5976 and 9672: a decorated function made in a loop, then dropped, stayed for ever."""
    _, cx = bench.fresh()

    def define_and_call(number: int) -> None:
        weights = np.full(bench.slots, float(number))

        @compile
        def f(x: Any) -> Any:
            return x * weights + number

        f(cx)

    for number in range(200):
        define_and_call(number)
    before = resident_bytes()
    for number in range(2000):
        define_and_call(number)
    assert resident_bytes() - before <= 20 * MB


def test_a_dropped_callable_frees_what_it_held(bench: Any) -> None:
    """numba 5976: the function and its captured arrays are collected."""
    _, cx = bench.fresh()

    class Watched:
        pass

    def define_and_call() -> Any:
        watched = Watched()

        def f(x: Any) -> Any:
            return x * (1 if watched else 2)

        compiled = compile(f)
        compiled(cx)
        return weakref.ref(watched), weakref.ref(f)

    for reference in define_and_call():
        gc.collect()
        assert reference() is None


def test_cleared_variants_are_freed(bench: Any) -> None:
    """JAX 10828: a table that only grows; `clear` gives its memory back."""
    _, cx = bench.fresh()
    weights = np.ones((64, bench.slots))
    f = compile(lambda x, k: x * weights + k)

    def fill() -> None:
        for number in range(10):
            f(cx, number)
        f.clear()

    fill()
    before = resident_bytes()
    for _ in range(10):
        fill()
    assert resident_bytes() - before <= 32 * MB


def test_a_bounded_table_stays_bounded(bench: Any) -> None:
    """JAX 10828: with max_specializations, the variant used longest ago goes."""
    _, cx = bench.fresh()
    f = compile(lambda x, k: x * k, max_specializations=3)
    for number in range(20):
        f(cx, number)
        f(cx, 0)
    assert len(f.specializations) <= 3
    misses = f.misses
    f(cx, 0)
    assert f.misses == misses


def test_engines_and_keys_are_freed() -> None:
    """HElib 252: contexts and keys that are made anew and dropped."""
    parameters = fh.Parameters(depth=2, scale_bits=40, log_n=11, allow_insecure=True)

    def turn() -> None:
        engine = fh.Engine(parameters)
        keys = engine.keygen(rotations=range(1, 9))
        engine.use(keys.evaluation())
        product(engine.encrypt(0.5, keys.public))

    for _ in range(5):
        turn()
    before = resident_bytes()
    for _ in range(40):
        turn()
    # The keys alone of one turn take 2 MB.
    assert resident_bytes() - before <= 16 * MB


TOO_LARGE = """
import resource, numpy as np, fhelium as fh
engine = fh.Engine(fh.Parameters(depth=7, scale_bits=40, log_n=12, allow_insecure=True))
keys = engine.keygen()
column = engine.encrypt(np.ones((300, 1, 1)), keys.public)
row = engine.encrypt(np.ones((300, 1)), keys.public)
plain = engine.encode(np.ones((300, 1)))
many = np.ones((10**6, 1))
resource.setrlimit(resource.RLIMIT_AS, (5 * 2**30, 5 * 2**30))
for use in (
    lambda: engine.encode(many),
    lambda: engine.encrypt(many, keys.public),
    lambda: row + many[:10**5],
    lambda: column + row,
    lambda: column - row,
    lambda: column * row,
    lambda: column + plain,
    lambda: column * plain,
    lambda: fh.jit(lambda x, y: (x * y).rescale())(column, row),
):
    try:
        use()
    except MemoryError as error:
        assert isinstance(error, fh.errors.OutOfMemory), repr(error)
        assert "bytes" in str(error), str(error)
        print("refused")
print(abs(engine.decrypt(row + 1, keys.secret)[3, 0] - 2) < 1e-6)
"""


def test_results_that_do_not_fit_are_refused_with_their_bytes() -> None:
    """SEAL 94 and 285: std::bad_alloc, or the end of the process, for too large a batch."""
    result = subprocess.run(
        [sys.executable, "-c", TOO_LARGE],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.stdout.split() == ["refused"] * 9 + ["True"], result.stderr
