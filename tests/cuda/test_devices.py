"""What only a GPU has: moves, operands in two places, memory, compiled functions on both."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.errors import DeviceError, LinkError, OutOfMemory

pytestmark = pytest.mark.gpu

SMALL: dict[str, Any] = {"depth": 3, "scale_bits": 40, "log_n": 10, "allow_insecure": True}


@pytest.fixture(scope="module")
def pair(needs_a_gpu: None) -> tuple[fh.Engine, fh.Engine, fh.KeySet]:
    """An engine on the GPU, one on the CPU, and the GPU's keys, in use on both."""
    gpu = fh.Engine(fh.Parameters(**SMALL), device="cuda")
    cpu = fh.Engine(gpu.parameters)
    keys = gpu.keygen(rotations=[1], conjugation=True)
    gpu.use(keys.evaluation())
    cpu.use(keys.evaluation().to("cpu"))
    return gpu, cpu, keys


Pair = tuple[fh.Engine, fh.Engine, fh.KeySet]


def test_everything_says_where_it_is_and_moves(pair: Pair) -> None:
    """`.to` and `Engine.to` move every kind of value and key, bit for bit; a move to where it is
    gives the same object."""
    gpu, cpu, keys = pair
    x = gpu.encrypt([1.0, 2.0], keys.public)
    movable: list[Any] = [x, gpu.encode(1.5), keys, keys.secret, keys.public, keys.rotations[1]]
    movable += [keys.evaluation()]
    for value in movable:
        assert value.device == "cuda:0"
        assert "cuda:0" in repr(value)
        assert value.to("cuda") is value
        here = value.to("cpu")
        assert here.device == "cpu"
        assert "cuda" not in repr(here)
        assert gpu.to(here).device == "cuda:0"
        assert cpu.to(value).device == "cpu"
    np.testing.assert_array_equal(x._residues(), x.to("cpu").to("cuda")._residues())
    assert x.to("cpu")._engine == cpu
    with pytest.raises(TypeError, match="Ciphertext"):
        gpu.to(np.ones(3))


def test_operations_agree_to_the_bit(pair: Pair) -> None:
    gpu, _, keys = pair
    x = gpu.encrypt(np.linspace(-1, 1, gpu.slots), keys.public)
    y = (x * x).relinearize().rescale().rotate(1).conjugate() * 3
    here = x.to("cpu")
    z = (here * here).relinearize().rescale().rotate(1).conjugate() * 3
    np.testing.assert_array_equal(y._residues(), z._residues())
    close = np.linspace(-1, 1, gpu.slots) ** 2 * 3
    np.testing.assert_allclose(gpu.decrypt(y, keys.secret), np.roll(close, -1), atol=1e-6)


def test_operands_in_two_places_are_refused(pair: Pair) -> None:
    """The message names both, where each is, and the move."""
    gpu, cpu, keys = pair
    x = gpu.encrypt([1.0], keys.public)
    here = x.to("cpu")
    with pytest.raises(DeviceError, match=r"is on cpu and operand 0 on cuda:0.*\.to\("):
        x + here
    with pytest.raises(DeviceError, match=r"is on cuda:0 and operand 0 on cpu"):
        here + x
    with pytest.raises(DeviceError, match="computes on cpu"):
        cpu.square(x)
    with pytest.raises(DeviceError, match=r"use: the relinearization key is on cuda:0"):
        cpu.use(keys.evaluation())
    with pytest.raises(DeviceError, match="the secret key is on cuda:0"):
        cpu.decrypt(here, keys.secret)

    @fh.jit
    def total(a: Any, b: Any) -> Any:
        return a + b

    with pytest.raises(DeviceError, match="the argument b is on cpu and the argument a on cuda:0"):
        total(x, here)

    @fh.jit
    def captured(a: Any) -> Any:
        return a + here

    with pytest.raises(DeviceError, match="is on cpu"):
        captured(x)


def test_one_function_serves_both_places(pair: Pair) -> None:
    """A specialization each; the GPU's is replayed from its third call on, on other values."""
    gpu, _, keys = pair
    weights = np.linspace(0, 1, gpu.slots)

    @fh.jit
    def score(a: Any) -> Any:
        return (a * a).relinearize().rescale() * weights

    for round_ in range(4):
        x = gpu.encrypt(np.full(gpu.slots, 0.1 * round_), keys.public)
        eager = (x * x).relinearize().rescale() * weights
        np.testing.assert_array_equal(score(x)._residues(), eager._residues())
        weights += 0.5
    there, *others = score.specializations
    assert not others
    assert "recorded launches" in there.executable.replays or "graph" in there.executable.replays
    assert "runs as" in there.explain()
    score(x.to("cpu"))
    here = score.specializations[1]
    assert "device=cpu" in str(here.signature)
    assert "CPU" in here.executable.replays


def test_files_hold_the_host_form(pair: Pair, tmp_path: Path) -> None:
    gpu, _, keys = pair
    x = gpu.encrypt([1.0, 2.0], keys.public)
    assert fh.dumps(x) == fh.dumps(x.to("cpu"))
    loaded = pickle.loads(pickle.dumps(x))
    assert loaded.device == "cpu"
    fh.save(keys.evaluation(), tmp_path / "keys.fhelium")
    for there in ({"engine": gpu}, {"device": "cuda"}):
        placed = fh.load(tmp_path / "keys.fhelium", fh.EvaluationKeys, **there)
        assert placed.device == placed.relinearization.device == "cuda:0"


def test_memory_is_limited_and_told(pair: Pair) -> None:
    gpu, cpu, _ = pair
    assert cpu.memory().limit is None
    limited = fh.Engine(gpu.parameters, device="cuda", memory_limit=2**23)
    memory = limited.memory()
    assert memory is not None
    assert memory.limit == 2**23
    assert 0 < memory.used <= memory.peak
    with pytest.raises(OutOfMemory, match=r"asked for.*under the limit"):
        limited.encode(np.ones((400, 8)))
    limited.synchronize()
    assert limited.encode(1.0).device == "cuda:0"
    for limit in (0, -1):
        with pytest.raises(ValueError, match=str(limit)):
            fh.Engine(gpu.parameters, device="cuda", memory_limit=limit)


def test_memory_of_a_call_is_told_before_it(pair: Pair) -> None:
    gpu, _, keys = pair
    engine = fh.Engine(gpu.parameters, device="cuda")
    engine.use(keys.evaluation())
    x = engine.encrypt([1.0, 2.0], keys.public)
    weights = np.array([0.5, 0.25])

    @fh.jit
    def f(x: Any, y: Any) -> Any:
        z = (x * weights).rescale() + (x * y).rescale()
        return z.rotate(1) + z, (z * z).relinearize().rescale()

    y = np.array([3.0, 4.0])
    stated = f.prepare(x, y).manifest["bytes"]["peak"]
    f(x, y)
    for _ in range(3):
        engine._reset_memory_peak()
        before = engine.memory().used
        f(x, y)
        assert engine.memory().peak - before == stated


def test_a_host_implementation_does_not_run_on_the_gpu(pair: Pair) -> None:
    """It is passed over for the GPU's own; chosen by name it is an error, not a silent move."""
    gpu, _, keys = pair
    x = gpu.encrypt([1.0], keys.public)

    backend = fh.compile.OperationBackend().with_implementation("ckks.neg", "mine", lambda a: a)
    own = fh.jit(lambda a: -a, backend=backend)
    np.testing.assert_array_equal(own(x)._residues(), (-x)._residues())
    chosen = fh.jit(lambda a: -a, backend=backend.with_selection("ckks.neg", "mine"))
    with pytest.raises(LinkError, match=r"mine.*runs on cpu"):
        chosen(x)


def test_devices_that_are_not_there(pair: Pair) -> None:
    gpu, _, _ = pair
    with pytest.raises(DeviceError, match="cuda:99"):
        fh.Engine(gpu.parameters, device="cuda:99")


def test_work_on_another_stream(pair: Pair) -> None:
    """Another library's stream takes the work, in order; errors and wrong handles come through."""
    gpu, cpu, keys = pair
    x = gpu.encrypt([1.0, 2.0], keys.public)

    @fh.jit
    def square(a: Any) -> Any:
        return (a * a).relinearize().rescale()

    expected = square(x)._residues()
    square(x)

    class Stream:
        cuda_stream = 0

    for stream in (0, Stream()):
        y = gpu.on_stream(stream, square, x)
        np.testing.assert_array_equal(y._residues(), expected)
        z = gpu.on_stream(stream, lambda a, *, times: a * times, x, times=3)
        np.testing.assert_array_equal(z._residues(), (x * 3)._residues())
    with pytest.raises(ZeroDivisionError):
        gpu.on_stream(0, lambda: 1 // 0)
    with pytest.raises(TypeError, match="str"):
        gpu.on_stream("stream", square, x)
    with pytest.raises(DeviceError, match="on_stream"):
        cpu.on_stream(0, square, x)
    np.testing.assert_array_equal(square(x)._residues(), expected)
