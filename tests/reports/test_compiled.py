"""Reports about capture, specialization, memory and threads, restated for fhelium."""

from __future__ import annotations

import gc
import resource
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.compile import Pipeline, PythonPass, compile, default_pipeline


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_jax_7155_a_compiled_helper_is_captured_with_its_caller(bench: Any) -> None:
    """A jitted helper called ten times, or passed as an argument, was traced again each time."""
    ran = []

    @compile
    def helper(x: Any, k: float) -> Any:
        ran.append(k)
        return x * k

    @compile
    def outer(x: Any) -> Any:
        total = x
        for _ in range(10):
            total = total + x * 0 + (helper(x, 1.0)).rescale() if False else total + helper(x, 1)
        return total

    x, cx = bench.fresh()
    for _ in range(3):
        assert np.abs(bench.decrypt(outer(cx)) - 11 * x).max() < 1e-5
    assert len(ran) == 10
    assert (outer.misses, helper.misses, helper.hits) == (1, 0, 0)


def test_pytorch_117496_defaults_and_keywords_are_one_argument(bench: Any) -> None:
    """The first value of a float argument with a default was used for all."""
    f = compile(scaled)
    x, cx = bench.fresh()
    for call, factor in (
        (lambda: f(cx, 8.0), 8.0),
        (lambda: f(cx, t=4.0), 4.0),
        (lambda: f(cx, 2.0), 2.0),
        (lambda: f(cx), 1.0),
        (lambda: f(cx, t=8.0), 8.0),
    ):
        assert np.abs(bench.decrypt(call()) - x * factor).max() < 1e-6
    assert len(f.specializations) == 4
    for one in (1, 1.0, True):
        f(cx, one)
    assert len(f.specializations) == 6


def scaled(x: Any, t: float = 1.0) -> Any:
    return x * t


def test_pytorch_149406_a_changing_weight_as_an_array(bench: Any) -> None:
    """Every float recompiled, even where dynamic was asked for."""
    f = compile(scaled)
    x, cx = bench.fresh()
    for weight in np.linspace(0, 1, 100):
        found = f(cx, np.asarray(weight))
    assert np.abs(bench.decrypt(found) - x).max() < 1e-6
    assert (f.misses, f.hits) == (1, 99)
    f(cx, np.float64(0.5))
    assert f.misses == 1
    for weight in range(20):
        f(cx, float(weight))
    assert len(f.specializations) == 21


def test_jax_14183_wrapping_a_compiled_function_again(bench: Any) -> None:
    """A fresh partial or lambda around a jitted function compiled it again."""
    ran = []

    @compile
    def f(x: Any, k: int) -> Any:
        ran.append(k)
        return x * k

    _, cx = bench.fresh()
    for _ in range(50):
        partial(f, k=2)(cx)
        (lambda v: f(v, 2))(cx)
    assert len(ran) == 1


def test_triton_4051_a_function_chosen_by_name(bench: Any) -> None:
    """The old body of a helper ran after it was fixed."""
    helpers = {"add": lambda x: x + 1, "sub": lambda x: x - 1}
    f = compile(lambda x, name: helpers[name](x))
    x, cx = bench.fresh()
    assert np.abs(bench.decrypt(f(cx, "add")) - (x + 1)).max() < 1e-6
    assert np.abs(bench.decrypt(f(cx, "sub")) - (x - 1)).max() < 1e-6
    assert len(f.specializations) == 2


@pytest.mark.slow
def test_tenseal_317_memory_is_flat_over_many_calls(bench: Any) -> None:
    """The same product in a loop of thousands took more and more memory."""
    _, cx = bench.fresh()

    def product(x: Any) -> Any:
        return (x * x).relinearize().rescale()

    for function in (product, compile(product)):
        for _ in range(200):
            function(cx)
        before = resident_bytes()
        for _ in range(2000):
            function(cx)
        assert resident_bytes() - before < 16 * 2**20


@pytest.mark.slow
def test_numba_5976_functions_made_in_a_loop_are_freed(bench: Any) -> None:
    """A decorated function made in a loop, then dropped, was never freed."""
    _, cx = bench.fresh()

    def define_and_call(number: int) -> None:
        weights = np.full(bench.slots, float(number))
        compile(lambda x: x * weights)(cx)

    for number in range(50):
        define_and_call(number)
    gc.collect()
    before = resident_bytes()
    for number in range(400):
        define_and_call(number)
    gc.collect()
    assert resident_bytes() - before < 20 * 2**20


def test_pytorch_118260_threads_with_many_signatures(bench: Any) -> None:
    """Settings leaked from one compile to another in a second thread."""

    def marking(name: str) -> Pipeline:
        def mark(compilation: Any) -> None:
            compilation.workspace["mark"] = name

        return default_pipeline().then(PythonPass(name, mark))

    first = compile(lambda x: x + 1, pipeline=marking("first"))
    second = compile(lambda x: x - 1, pipeline=marking("second"))
    barrier = threading.Barrier(2)

    def work(function: Any) -> None:
        barrier.wait()
        for batch in range(1, 11):
            x = np.full((batch, 4), float(batch))
            change = 1 if function is first else -1
            np.testing.assert_array_equal(function(x), x + change)

    for pair in ((first, first), (first, second)):
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, pair))
    for function, name in ((first, "first"), (second, "second")):
        assert len(function.specializations) == 10
        for specialization in function.specializations:
            assert specialization.compilation.workspace["mark"] == name
            assert specialization.compilation.reports[-1].name == name


@pytest.mark.slow
def test_eva_8_compile_time_grows_with_the_program(bench: Any) -> None:
    """Compile time was quadratic in the program's size."""
    _, cx = bench.fresh()

    def seconds(count: int) -> float:
        def f(x: Any) -> Any:
            total = x * 2
            for place in range(count):
                total = total + x * (place % 7)
            return total

        best = float("inf")
        for _ in range(3):
            begin = time.process_time()
            compile(f).prepare(cx)
            best = min(best, time.process_time() - begin)
        return best

    small, large = seconds(500), seconds(2000)
    assert large < 10
    # Four times the operations; quadratic growth would be sixteen times the time.
    assert large < 8 * small


def test_arrays_of_other_libraries_come_back_as_they_came() -> None:
    """Clear results come back in the framework that was given."""

    class Foreign:
        """An array that speaks DLPack only."""

        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    f = compile(lambda x: x + 1)
    np.testing.assert_array_equal(f(Foreign(np.ones(3))), np.full(3, 2.0))
    bench_free = fh.Engine(fh.Parameters(depth=1, scale_bits=30, log_n=10, allow_insecure=True))
    encoded = bench_free.encode(Foreign(np.ones(3)))
    assert np.abs(bench_free.decode(encoded)[:3] - 1).max() < 1e-5
