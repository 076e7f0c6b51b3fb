"""Guards that every vector tier of the machine gives the same bits, and that one can be forced."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import fhelium as fh

SCRIPT = """
import hashlib
import numpy as np
import fhelium as fh

assert fh.build_info()["tier"] == "{tier}"
engine = fh.Engine(fh.Parameters(depth=2, scale_bits=40), seed=7)
keys = engine.keygen(rotations=[3])
engine.use(keys.evaluation())
x = engine.encrypt(np.linspace(-1, 1, engine.slots), keys.public)
y = (x * x).relinearize().rescale().rotate(3)
print(hashlib.sha256(fh.dumps(y)).hexdigest(), engine.decrypt(y, keys.secret)[:2].round(6))
"""


def run(tier: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(tier=tier)],
        env={**os.environ, "FHELIUM_CPU_TIER": tier},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_tier_of_this_machine_gives_the_same_bits() -> None:
    runs = {tier: run(tier) for tier in fh.build_info()["tiers"]}
    for tier, finished in runs.items():
        assert finished.returncode == 0, (tier, finished.stderr)
    assert len({finished.stdout for finished in runs.values()}) == 1, runs


def test_a_tier_that_does_not_exist_is_refused_by_name() -> None:
    script = "import fhelium as fh\nfh.Engine(fh.Parameters(depth=1, scale_bits=40))"
    finished = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "FHELIUM_CPU_TIER": "sse9"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ParameterError" in finished.stderr or "ArgumentError" in finished.stderr
    assert "sse9" in finished.stderr
    assert "scalar" in finished.stderr


@pytest.mark.parametrize("key", ["version", "debug", "tiers", "tier", "devices"])
def test_build_info_says(key: str) -> None:
    assert key in fh.build_info()
