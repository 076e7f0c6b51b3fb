"""Rules 78 and 79: `prepare` leaves no kernel to compile, and warm calls replay."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from fhelium.compile import compile


def product(x: Any) -> Any:
    return ((x * x).relinearize().rescale() + 1.0).rotate(1)


def test_rule_79_prepare_leaves_nothing_to_compile(bench: Any) -> None:
    """A call after `prepare` is a hit: nothing is captured, transformed or linked, and its time is
    that of a run."""
    _, x = bench.fresh(1)
    compiled = compile(product)
    specialization = compiled.prepare(x)
    seconds = compiled.preparation_seconds
    counted = (compiled.misses, specialization.cost["preparation_seconds"])
    for hits in (1, 2, 3):
        compiled(x)
        assert compiled.hits == hits
        assert compiled.prepare(x) is specialization
    assert compiled.preparation_seconds == seconds
    assert (compiled.misses, specialization.cost["preparation_seconds"]) == counted
    assert specialization.cost["runs"] == 3


NO_COMPILER = """
import os, subprocess
import fhelium as fh

def refused(*arguments, **options):
    raise AssertionError(f"a process was started: {arguments}")

subprocess.Popen = os.system = os.posix_spawn = refused
engine = fh.Engine(fh.Parameters(depth=2, scale_bits=30, log_n=10, allow_insecure=True))
keys = engine.keygen()
engine.use(keys.evaluation())
compiled = fh.jit(lambda x: (x * x).relinearize().rescale())
x = engine.encrypt(0.5, keys.public)
compiled.prepare(x)
assert abs(engine.decrypt(compiled(x), keys.secret)[0] - 0.25) < 1e-3
files = [line.split()[-1] for line in open("/proc/self/maps") if "/" in line]
compilers = [file for file in files if "nvrtc" in file or "llvm" in file.lower()]
assert compilers == [], compilers
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/maps")
def test_rule_79_no_compiler_is_needed() -> None:
    """Kernels are in the package: neither a process nor a library compiles one, ever."""
    done = subprocess.run(
        [sys.executable, "-c", NO_COMPILER], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_rule_78_warm_calls_give_the_bits_of_eager_ones(bench: Any) -> None:
    """Whether a call launches kernels or replays what was recorded is not to be seen in the
    result: cold and warm, with the first and with another argument."""
    compiled = compile(product)
    for seed in (2, 3):
        _, x = bench.fresh(seed)
        eager = product(x)._residues()
        for _ in range(4):
            assert (compiled(x)._residues() == eager).all()
    assert (compiled.misses, compiled.hits) == (1, 7)


@pytest.mark.parametrize("warm", [0, 1, 4])
def test_rule_78_clear_drops_what_was_recorded(bench: Any, warm: int) -> None:
    _, x = bench.fresh(4)
    compiled = compile(product)
    first = compiled(x)._residues()
    for _ in range(warm):
        compiled(x)
    compiled.clear()
    assert compiled.specializations == ()
    assert (compiled(x)._residues() == first).all()


def test_rule_78_a_specialization_says_how_it_runs(bench: Any, device: str) -> None:
    _, x = bench.fresh(5)
    compiled = compile(product)
    specialization = compiled.prepare(x)
    for _ in range(3):
        compiled(x)
    found = specialization.executable.replays
    assert ("CPU" if device == "cpu" else "in turns") in found, found
    # On a GPU both ways of replaying are timed by then, and the faster is known.
    for _ in range(20):
        compiled(x)
    bench.engine.synchronize()
    found = specialization.executable.replays
    ways = ("CPU",) if device == "cpu" else ("as a CUDA graph of ", "recorded launches")
    assert any(way in found for way in ways), found
    assert "in turns" not in found
