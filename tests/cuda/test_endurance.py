"""That a GPU serves for long: many calls, many threads, and processes that end in mid-run."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import fhelium as fh

pytestmark = [pytest.mark.gpu, pytest.mark.slow, pytest.mark.usefixtures("needs_a_gpu")]

SMALL: dict[str, Any] = {"depth": 3, "scale_bits": 40, "log_n": 12, "allow_insecure": True}


def resident_bytes() -> int:
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize("compiled", [False, True])
def test_memory_stays_flat_over_ten_thousand_calls(compiled: bool) -> None:
    """TenSEAL 317, HElib 111 and 252 on a GPU: neither the device nor the host runs full."""
    engine = fh.Engine(fh.Parameters(**SMALL), device="cuda")
    keys = engine.keygen(rotations=[1])
    engine.use(keys.evaluation())
    message = np.linspace(-1, 1, engine.slots)
    x = engine.encrypt(message, keys.public)

    def square(x: Any) -> Any:
        return (x * x).relinearize().rescale().rotate(1)

    function = fh.jit(square) if compiled else square
    calls = 10_000 if compiled else 2_000
    for _ in range(calls // 10):
        y = function(x)
    engine.synchronize()
    before, host = engine.memory(), resident_bytes()
    for _ in range(calls):
        y = function(x)
    engine.synchronize()
    after = engine.memory()
    assert (after.used, after.peak) == (before.used, before.peak)
    assert after.kept == before.kept
    assert resident_bytes() - host < 32 << 20
    exact = np.roll(message**2, -1)
    assert np.abs(engine.decrypt(y, keys.secret) - exact).max() < 1e-6


def test_threads_share_an_engine_and_have_their_own() -> None:
    """Calls of one compiled function from eight threads, half of them on engines of their own."""
    shared = fh.Engine(fh.Parameters(**SMALL), device="cuda")
    shared_keys = shared.keygen()
    shared.use(shared_keys.evaluation())
    function = fh.jit(lambda x: (x * x).relinearize().rescale())

    def work(number: int) -> float:
        engine, keys = shared, shared_keys
        if number % 2:
            engine = fh.Engine(shared.parameters, device="cuda")
            keys = engine.keygen()
            engine.use(keys.evaluation())
        message = np.full(engine.slots, 1 / (number + 1))
        x = engine.encrypt(message, keys.public)
        worst = 0.0
        for _ in range(100):
            found = engine.decrypt(function(x), keys.secret)
            worst = max(worst, float(np.abs(found - message**2).max()))
        return worst

    with ThreadPoolExecutor(8) as pool:
        assert max(pool.map(work, range(8))) < 1e-6


ENDLESS = """
import fhelium as fh
engine = fh.Engine(fh.Parameters(depth=7, scale_bits=40, log_n=14), device="cuda")
keys = engine.keygen(rotations=[1])
engine.use(keys.evaluation())
x = engine.encrypt(0.5, keys.public)
f = fh.jit(lambda x: (x * x).relinearize().rescale().rotate(1))
print("running", flush=True)
while True:
    f(x)
"""


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_killed_in_mid_run_leaves_the_device_usable(kind: signal.Signals) -> None:
    process = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    time.sleep(0.5)
    process.send_signal(kind)
    process.wait(timeout=30)
    process.stdout.close()
    engine = fh.Engine(fh.Parameters(**SMALL), device="cuda")
    keys = engine.keygen()
    x = engine.encrypt([0.25], keys.public)
    assert abs(engine.decrypt(x + x, keys.secret)[0] - 0.5) < 1e-6
