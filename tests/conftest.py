"""What the tests share: small engines with keys, and values with bounds on their errors."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

import fhelium as fh

# Machines that run the tests differ in speed, and the first example pays for set-up.
settings.register_profile("fhelium", deadline=None, max_examples=25)
settings.load_profile("fhelium")


@dataclass(frozen=True)
class Bench:
    """An engine, its keys in use, and random messages."""

    engine: fh.Engine
    keys: fh.KeySet

    @property
    def slots(self) -> int:
        return self.engine.slots

    @cached_property
    def noise(self) -> fh.NoiseModel:
        return fh.NoiseModel(self.engine.parameters)

    def message(self, seed: int = 0, batch: tuple[int, ...] = ()) -> np.ndarray[Any, Any]:
        return np.random.default_rng(seed).uniform(-1, 1, (*batch, self.slots))

    def encrypt(self, message: Any, **options: Any) -> fh.Ciphertext:
        return self.engine.encrypt(message, self.keys.public, **options)

    def decrypt(self, ciphertext: fh.Ciphertext, **options: Any) -> np.ndarray[Any, Any]:
        return self.engine.decrypt(ciphertext, self.keys.secret, **options)

    def fresh(self, seed: int = 0, batch: tuple[int, ...] = (), **options: Any) -> Any:
        """A message with its ciphertext."""
        message = self.message(seed, batch)
        return message, self.encrypt(message, **options)


# None where a GPU can be used.
_PROBLEM: str | None = fh.build_info()["cuda"]["problem"]
_DEVICES = ["cpu"] if _PROBLEM else ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def pytest_report_header() -> str:
    return f"cuda: not tested: {_PROBLEM}" if _PROBLEM else "cuda: tested beside the CPU"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" in metafunc.fixturenames:
        # Files hold the host form of everything: what a GPU adds to them is in tests/cuda.
        on_host = metafunc.definition.path.parent.name == "persist"
        devices = ["cpu"] if on_host else _DEVICES
        metafunc.parametrize("device", devices, indirect=True, scope="session")


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> str:
    """Where the benches below compute: on the CPU and, where there is one, on a GPU."""
    return str(request.param)


def _make_bench(
    device: str, rotations: Any = (), conjugation: bool = True, **parameters: Any
) -> Bench:
    engine = fh.Engine(fh.Parameters(**parameters), device=device)
    keys = engine.keygen(rotations=rotations, conjugation=conjugation)
    engine.use(keys.evaluation())
    return Bench(engine, keys)


SMALL = {"depth": 4, "scale_bits": 40, "log_n": 10, "allow_insecure": True}


@pytest.fixture(scope="session")
def bench(device: str) -> Bench:
    """A small, insecure ring: fast, and with every kind of key."""
    return _make_bench(device, rotations=(1, 2, 3, 4, 8, -1, -3), **SMALL)


@pytest.fixture(scope="session")
def other(device: str) -> Bench:
    """Another secret of the same parameters, on another engine."""
    return _make_bench(device, rotations=(1,), **SMALL)


@pytest.fixture(scope="session")
def usual(device: str) -> Bench:
    """The engine of the reports: N = 2^14, depth 7, scale 2^40."""
    return _make_bench(device, rotations=(1, 2, 4, -1), depth=7, scale_bits=40, log_n=14)


@pytest.fixture(scope="session")
def line_of() -> Any:
    """Gives `file:line in name` of the line of a function that holds a text."""

    def find(function: Any, text: str) -> str:
        lines, first = inspect.getsourcelines(function)
        place = next(place for place, line in enumerate(lines) if text in line)
        return f"{inspect.getsourcefile(function)}:{first + place} in {function.__name__}"

    return find


@pytest.fixture(scope="session")
def make_bench(device: str) -> Any:
    """Makes a Bench from rotation steps and parameters."""
    return functools.partial(_make_bench, device)
